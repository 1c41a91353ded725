"""Benchmarks whose conclusions follow in several steps, against the definition of K_0, K_1, …"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.made_up_benchmarks import same
from tests.support.random_rules import graphs

from loginfer.benchmark import audit, build, explain_triple, load_benchmark, write_benchmark
from loginfer.benchmark.construction.pipeline import foundation
from loginfer.benchmark.construction.positives import equal_shares
from loginfer.benchmark.program import Rounds
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import extend, open_engine
from loginfer.errors import InputError, LimitError
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_rule

# A chain of rules, a recursive one, one with a type, and one that two depths share.
PROGRAMS = [
    ("(x,R,y) -> (x,S,y)", "(x,S,y) -> (x,T,y)", "(x,T,y) -> (y,U,x)"),
    ("(x,R,y), (y,R,z), x != z -> (x,R,z)",),
    ("(x,R,y) -> (x,rdf:type,<t>)", "(x,rdf:type,<t>), (x,S,y) -> (y,rdf:type,<t>)"),
    ("(x,R,y) -> (y,S,x)", "(x,S,y), (y,T,z) -> (x,S,z)", "(x,S,y) -> (x,T,y)"),
]


def steps(rules, graph, depth):
    """K_0, …, K_depth as sets of facts."""
    found = [brute_force.facts(graph)]
    for _ in range(depth):
        found.append(found[-1] | brute_force.one_step(rules, found[-1]))
    return found


def named(graph, triples):
    return {tuple(t) for t in graph.names(np.asarray(triples).reshape(-1, 3))}


def facts_of(graph, triples):
    return {(s, r, o) for s, r, o in named(graph, triples)}


def chain(length=40):
    """A graph with a path, of which transitivity makes ever longer ones."""
    return KnowledgeGraph.from_names([(f"n{i}", "R", f"n{i + 1}") for i in range(length)])


@settings(max_examples=40)
@given(graph=graphs(), program=st.sampled_from(PROGRAMS), depth=st.integers(1, 4))
def test_depths_and_derivations_are_those_of_the_definition(graph, program, depth):
    rules = [parse_rule(text) for text in program]
    graph = extend(graph, rules)
    rounds = Rounds(open_engine(graph), rules, depth, open_engine, max_triples=10_000)
    known = steps(rules, graph, depth)
    everything = sorted(known[-1] | {("a", "T", "b"), ("a", "S", "a")})
    everything = [f for f in everything if f[1] in graph.relations and {f[0], f[2]} <= set(graph.entities)]
    ids = np.array(
        [(graph.entity_id(s), graph.relation_id(r), graph.entity_id(o)) for s, r, o in everything], dtype=np.int32
    ).reshape(-1, 3)
    told = rounds.depths(ids).tolist()
    assert told == [next((d for d, k in enumerate(known) if f in k), -1) for f in everything]
    pairs = rounds.derivations(ids)
    wanted = [
        (i, place)
        for i, (fact, d) in enumerate(zip(everything, told, strict=True))
        for place, rule in enumerate(rules)
        if d > 0 and fact in brute_force.one_step([rule], known[d - 1])
    ]
    assert list(zip(pairs.triple.tolist(), pairs.rule.tolist(), strict=True)) == wanted
    last = known[max(0, min(depth, rounds.steps) - 1)]
    assert facts_of(graph, rounds.last.graph.triples) == last


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), program=st.sampled_from(PROGRAMS), seed=st.integers(0, 3), data=st.data())
def test_every_depth_has_an_equal_share_and_a_provenance(graph, program, seed, data):
    depth, k2 = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 8))
    recipe = Recipe("g", rules=program, depth=depth, k2=k2, min_new=0, seed=seed)
    rules = [parse_rule(text) for text in program]
    try:
        with foundation(recipe, graph) as laid:
            selection, provenance = laid.selection, laid.positives.provenance
            kg = laid.context.rounds.kg
    except InputError:
        assume(False)
    known = steps(rules, kg, depth)
    for place, (rule, sample) in enumerate(zip(selection.rules, selection.samples, strict=True)):
        new = [
            brute_force.one_step([rule.rule], known[d - 1]) - known[d - 1]  # at depth d
            for d in range(1, depth + 1)
        ]
        assert rule.new == sum(map(len, new))
        drawn = facts_of(kg, kg.keys.unpack(sample))
        assert [len(drawn & there) for there in new] == equal_shares([len(there) for there in new], k2)
        own = provenance.triples[provenance.conclusion[provenance.rule == place]]
        assert drawn <= facts_of(kg, own)
    for i, (triple, d) in enumerate(zip(provenance.triples, provenance.depth.tolist(), strict=True)):
        (fact,) = facts_of(kg, triple)
        assert fact in known[d] - known[d - 1]
        pairs = np.flatnonzero(provenance.conclusion == i)
        wanted = [r for r, rule in enumerate(rules) if fact in brute_force.one_step([rule], known[d - 1])]
        assert provenance.rule[pairs].tolist() == wanted
        before = kg.with_triples(laid.context.rounds.over(d).graph.triples)
        for pair in pairs.tolist():
            values = provenance.values[provenance.offsets[pair] : provenance.offsets[pair + 1]]
            first = brute_force.witnesses(rules[provenance.rule[pair]], before, conclusion=tuple(triple))[0]
            assert values.tolist() == list(first)


@settings(max_examples=25, deadline=None)
@given(graph=graphs(), program=st.sampled_from(PROGRAMS), method=st.sampled_from(["rb", "pa", "qg", "rc"]))
def test_no_negative_follows_in_any_number_of_steps(graph, program, method):
    recipe = Recipe("g", rules=program, depth=2, k2=6, min_new=0, negatives=(method,))
    try:
        made = build(recipe, graph)
    except InputError:
        assume(False)
    rules = list(made.program)
    true = steps(rules, made.kg, 30)[-1]
    for triples in (made.negatives[method].splits[split] for split in ("train", "valid", "test")):
        assert not facts_of(made.graph, triples) & true
    found = audit(made)
    assert [f for f in found.findings if f.severity == "error"] == []
    assert found.oracle[method]["accuracy"] in (None, 1.0)


@given(st.lists(st.integers(0, 12), max_size=5), st.integers(0, 40))
def test_shares_are_equal_up_to_what_each_can_take(available, wanted):
    shares = equal_shares(available, wanted)
    assert sum(shares) == min(wanted, sum(available))
    assert all(share <= most for share, most in zip(shares, available, strict=True))
    assert all(s == most or s >= max(shares) - 1 for s, most in zip(shares, available, strict=True))


def transitive(**settings):
    return Recipe("chain", rules=("(x,R,y), (y,R,z) -> (x,R,z)",), depth=3, k2=60, negatives=("pa", "qg"), **settings)


def test_a_benchmark_of_several_steps_is_written_and_read(tmp_path):
    made = build(transitive(), chain())
    assert np.bincount(made.provenance.depth).tolist() == [0, 20, 20, 20]
    write_benchmark(made, tmp_path / "b")
    again = load_benchmark(tmp_path / "b")
    assert same(made, again)
    assert list(again.manifest["depths"]) == ["1", "2", "3"]
    assert sum(again.manifest["depths"]["3"].values()) == 20
    card = (tmp_path / "b" / "README.md").read_text()
    assert "of these at depth 3" in card
    assert "in any number of steps" in card
    assert audit(tmp_path / "b").ok


def test_each_split_has_its_share_of_every_depth():
    # The first rule has many conclusions in one step, few in two.
    triples = [(f"n{i}", "R", f"m{i}") for i in range(3000)] + [(f"m{i}", "Q", f"n{i}") for i in range(100)]
    rules = ("(x,R,y) -> (x,S,y)", "(x,Q,y) -> (x,R,y)")
    recipe = Recipe("g", rules=rules, depth=2, k2=200, negatives=("pa",))
    made = build(recipe, KnowledgeGraph.from_names(triples))
    own = made.provenance.conclusion[made.provenance.rule == 0]
    split, depth = made.provenance.split[own], made.provenance.depth[own]
    for step in (1, 2):
        train, valid, test = np.bincount(split[depth == step], minlength=3)
        assert 70 <= train <= 90
        assert valid >= 4
        assert test >= 4


def test_both_engines_give_the_same_bytes(tmp_path):
    for engine in ("native", "duckdb"):
        write_benchmark(build(transitive(), chain(), engine=engine), tmp_path / engine)
    for file in sorted((tmp_path / "native").iterdir()):
        assert file.read_bytes() == (tmp_path / "duckdb" / file.name).read_bytes(), file.name


def test_the_whole_derivation_of_a_triple_is_told():
    made = build(transitive(), chain())
    place = int(np.flatnonzero((made.provenance.depth == 3) & (made.provenance.split == 2))[0])
    story = explain_triple(made, made.provenance.triples[place].tolist())
    assert story.depth == 3
    assert [step.depth for step in story.steps] == sorted(step.depth for step in story.steps)
    assert story.steps[-1].triple == story.triple
    assert story.source == "what follows from K in 2 steps"
    known = named(made.kg, made.kg.triples)
    for step in story.steps:
        assert known >= set(step.derivation.premises)
        known.add(step.triple)
    assert story.as_dict()["depth"] == 3
    several = explain_triple(made, made.provenance.triples[place].tolist(), 3)
    assert len(several.derivations) > 1


def test_a_benchmark_of_one_step_says_nothing_about_depth(tmp_path):
    made = build(transitive().changed(depth=1), chain())
    write_benchmark(made, tmp_path / "b")
    text = (tmp_path / "b" / "manifest.json").read_text()
    assert "depth" not in text
    assert "max_triples" not in text
    triple = made.provenance.triples[0].tolist()
    assert "depth" not in explain_triple(made, triple).as_dict()


def test_the_audit_finds_a_wrong_depth():
    made = build(transitive(), chain())
    made.provenance.depth[0] += 1
    messages = [f.message for f in audit(made).findings if f.severity == "error"]
    assert any("do not follow in the number of steps that is told" in m for m in messages)


def test_too_many_triples_are_refused_with_what_to_do():
    with pytest.raises(LimitError, match="more than 100 triples follow") as caught:
        build(transitive(max_triples=100), chain())
    assert "max_triples" in caught.value.hint


def test_a_depth_that_nothing_has_is_told():
    made = build(Recipe("chain", rules=("(x,R,y) -> (y,R,x)",), depth=5, k2=60, min_new=1, negatives=("pa",)), chain())
    assert "everything follows in one step; the depth asked for is 5" in made.notes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"depth": 0}, "between 1 and 100"),
        ({"depth": 101}, "between 1 and 100"),
        ({"depth": True}, "whole number"),
        ({"depth": 2, "max_triples": 0}, "at least 1"),
        ({"depth": 2, "inductive": True}, "neither noisy nor inductive"),
        ({"depth": 2, "flipped": 0.1}, "neither noisy nor inductive"),
    ],
)
def test_depths_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Recipe("g", patterns=("symmetry",), **settings)


def test_rules_with_a_negation_have_one_step():
    with pytest.raises(InputError, match="no rules with a negation"):
        build(Recipe("chain", rules=("(x,R,y), not (y,R,z) -> (y,S,x)",), depth=2), chain())
