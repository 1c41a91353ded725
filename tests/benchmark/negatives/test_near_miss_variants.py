"""Near misses of rules that are their own complement or conclude types, and in benchmarks of other kinds."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.definitions import as_set, context_of
from tests.support.near_miss_benchmarks import GIVEN, recipe_of, small_graph, typed_graph

from loginfer.benchmark import Recipe, audit, build, load_benchmark, write_benchmark
from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.negatives import SOURCES, sample_negatives
from loginfer.benchmark.negatives.context import heads_of
from loginfer.benchmark.program import complement_share
from loginfer.benchmark.shortcuts import connected_otherwise
from loginfer.engine import open_engine
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.logic import parse_rule, read_rules

SYMMETRY = "(x,R,y) -> (y,R,x)"


# -- rules that are their own complement --------------------------------------------------------------


@given(p=st.fractions(0, 1), q=st.fractions(0, 1))
def test_whatever_negatives_are_chosen_one_of_two_shortcuts_reaches_the_bound(p, q):
    """Counted over 60 conclusions and 60 negatives; another relation connects a share p and q of them."""
    conclusions, negatives = round(60 * p), round(60 * q)
    p, q = Fraction(conclusions, 60), Fraction(negatives, 60)
    any_relation = 60 + (60 - negatives)
    another = (60 - conclusions) + negatives
    assert Fraction(max(any_relation, another), 120) >= (3 - p) / 4
    best = Fraction(complement_share(float(p))).limit_denominator(10**6)
    assert best == (1 + p) / 2
    assert max(1 - best / 2, (1 + best - p) / 2) == (3 - p) / 4


def pairs_graph(pairs, otherwise, seed=1):
    """Pairs with R one way; so many of them S connects as well, the body's way; S connects others, too."""
    rng = random.Random(seed)
    names = [(f"a{i}", f"b{i}") for i in range(pairs)]
    triples = [(a, "R", b) for a, b in names] + [(a, "S", b) for a, b in names[:otherwise]]
    ends = [end for pair in names for end in pair]
    while len(triples) < 4 * pairs:
        triples.append((rng.choice(ends), rng.choice("ST"), rng.choice(ends)))
    return KnowledgeGraph.from_names(triples, type_predicate="")


def test_another_relation_in_the_bodys_direction_is_counted():
    graph = KnowledgeGraph.from_names(
        [("a", "R", "b"), ("a", "S", "b"), ("c", "R", "d"), ("d", "S", "c"), ("e", "S", "f")], type_predicate=""
    )
    conclusions = [("b", "a"), ("d", "c"), ("f", "e"), ("b", "c")]
    relation = graph.relation_id("R")
    rows = np.array([(graph.entity_id(s), relation, graph.entity_id(o)) for s, o in conclusions])
    found = connected_otherwise(graph, rows.astype(np.int32), parse_rule(SYMMETRY))
    assert found.tolist() == [True, False, True, False]
    nothing = graph.with_triples(graph.triples[:0])
    assert not connected_otherwise(nothing, rows.astype(np.int32), parse_rule(SYMMETRY)).any()


@pytest.mark.parametrize("otherwise", [0, 60, 150, 300])
def test_symmetry_is_as_near_to_the_bound_as_can_be(otherwise):
    """On a made-up graph with 300 pairs. The design leaves only noise above the bound."""
    graph = pairs_graph(300, otherwise)
    benchmark = build(recipe_of(rules=(SYMMETRY,), k2=300), graph)
    made = benchmark.negatives["nm"]
    p = connected_otherwise(graph, benchmark.provenance.triples, parse_rule(SYMMETRY)).mean()
    near = sum(int((o.source == SOURCES.index("near-miss")).sum()) for o in made.origins.values())
    by_design = next((note for note in made.notes if "by design" in note), "0 ")
    assert "complement" in by_design or p > 0.99
    spare = sum(made.asked.values()) - near
    assert abs(int(by_design.split()[0].replace(",", "")) - (1 - p) / 2 * len(benchmark.provenance.triples)) <= 3
    assert spare >= int(by_design.split()[0].replace(",", ""))
    assert audit(benchmark).ok


def test_a_symmetric_rule_on_a_graph_without_other_relations():
    """There is no near miss at all: everything is position-aware, and that is said."""
    rng = random.Random(5)
    names = [(f"e{rng.randrange(40)}", "R", f"e{rng.randrange(40)}") for _ in range(150)]
    benchmark = build(recipe_of(rules=(SYMMETRY,)), KnowledgeGraph.from_names(names, type_predicate=""))
    made = benchmark.negatives["nm"]
    assert all((o.source == SOURCES.index("position")).all() for o in made.origins.values())
    assert "100.0% by position-aware corruption" in made.notes[0]
    assert audit(benchmark).ok


def test_fewer_conclusions_than_min_new_may_be_sampled():
    benchmark = build(recipe_of(patterns=("composition",), k1=1, k2=5), small_graph())
    assert [known.sampled for known in benchmark.rules] == [5]


# -- heads --------------------------------------------------------------------------------------------


def test_rules_whose_heads_are_types_in_a_variable_have_position_aware_negatives():
    graph = typed_graph(triples=150)
    rules = [parse_rule("(x,helps,y), (y,rdf:type,?t) -> (x,rdf:type,?t)"), parse_rule(GIVEN[1])]
    context = context_of(graph, rules, k2=60)
    made = sample_negatives(context, "nm")
    for split in SPLITS:
        heads = [np.bincount(heads_of(graph, t), minlength=60) for t in
                 (context.conclusions[split], made.splits[split])]  # fmt: skip
        assert (heads[1] <= heads[0]).all()
        assert set(made.origins[split].rule.tolist()) <= {-1, 1}
    assert any("some rules have none" in note for note in made.notes)


def test_the_lubm_rules_have_near_misses():
    """Given rules with types: as many negatives as conclusions, type by type, and nothing derivable."""
    graph = load_graph("lubm")
    rules = tuple(str(rule) for rule in read_rules("lubm-107").program[::12])
    benchmark = build(Recipe("lubm", rules=rules, k2=60, negatives=("nm",)), graph)
    found = audit(benchmark)
    assert not [f for f in found.findings if f.severity == "error"]
    assert found.oracle["nm"]["accuracy"] == 1.0
    instead = [o.predicate[o.edit > 0] for o in benchmark.negatives["nm"].origins.values()]
    assert np.concatenate(instead).max() > len(graph.relations), "types are among them"
    true = open_engine(benchmark.everything)
    for triples in benchmark.negatives["nm"].splits.train, benchmark.negatives["nm"].splits.test:
        assert not benchmark.everything.contains(triples).any()
        assert not true.derives(benchmark.program, triples).any()


# -- benchmarks of other kinds ------------------------------------------------------------------------


def test_conclusions_of_several_steps_have_near_misses_too(tmp_path):
    rules = ("(x,helps,y), (y,knows,z) -> (x,likes,z)", "(x,likes,y) -> (y,meets,x)")
    graph = KnowledgeGraph.from_names(small_graph().names(small_graph().triples)[::3], type_predicate="")
    benchmark = build(recipe_of(rules=rules, depth=2, k2=80), graph)
    assert benchmark.provenance.depth.max() == 2
    made = benchmark.negatives["nm"]
    # Nothing that follows in two steps is a negative.
    first = {t for rule in benchmark.program for t in brute_force.conclusions(rule, benchmark.kg)}
    twice = benchmark.kg.with_triples(np.array(sorted(first | as_set(benchmark.kg.triples)), dtype=np.int32))
    second = {t for rule in benchmark.program for t in brute_force.conclusions(rule, twice)}
    for triples in (made.splits[split] for split in SPLITS):
        assert not as_set(triples) & (first | second | as_set(benchmark.everything.triples))
    write_benchmark(benchmark, tmp_path / "out")
    found = audit(tmp_path / "out")
    assert not [f for f in found.findings if f.severity == "error"]
    assert found.oracle["nm"]["accuracy"] == 1.0


@pytest.mark.parametrize(
    "settings",
    [{"flipped": 0.1, "missing": 0.1}, {"inductive": True, "inductive_share": 0.4}],
    ids=["noise", "inductive"],
)
@pytest.mark.parametrize("match", [(), ("all",)])
def test_near_misses_go_with_noise_and_with_new_constants(settings, match, tmp_path):
    recipe = recipe_of(rules=GIVEN[:1], match=match, k2=100, **settings)
    write_benchmark(build(recipe, typed_graph(entities=90, triples=700)), tmp_path / "out")
    found = audit(tmp_path / "out")
    assert not [f for f in found.findings if f.severity == "error"]
    read = load_benchmark(tmp_path / "out")
    sources = [o.source for o in read.negatives["nm"].origins.values()]
    assert (np.concatenate(sources) == SOURCES.index("near-miss")).mean() > 0.5
