"""Steps 1 and 2 against their definitions, by brute force on small graphs."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.support import brute_force
from tests.support.random_rules import graphs

from loginfer.benchmark.construction.positives import distribute
from loginfer.benchmark.construction.rules import given_rules, named_patterns, select_rules
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import extend, open_engine
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.logic import canonical_text, instantiate, parse_pattern, parse_rule

PATTERNS = ("symmetry", "inversion", "composition", "intersection", "triangle")
TYPED = "(x,type,_t), (x,_R,y) -> (y,type,_u)"


def ranked(pattern, graph):
    """All candidates by support and text, from the definition: every tuple of predicates."""
    relations, types = graph.relations.names(graph.rels), graph.entities.names(graph.types)
    choices = [types if pattern.is_type_template(t) else relations for t in pattern.templates]
    rows = {}
    for names in product(*choices):
        rule = instantiate(pattern, names, None if pattern.head_in_body else "_")
        if len(set(rule.atoms)) == len(rule.atoms):
            support = brute_force.support(rule, graph)
            key = canonical_text(rule)
            if support and (key not in rows or rule.body_text < rows[key][1]):
                rows[key] = (-support, rule.body_text)
    return sorted(rows.values())


@settings(max_examples=60)
@given(graph=graphs(), pattern=st.sampled_from([*PATTERNS, TYPED]), k1=st.integers(1, 6), data=st.data())
def test_the_rules_with_the_largest_support_are_selected(graph, pattern, k1, data):
    protocol = data.draw(st.sampled_from(["paper", "sound"]))
    recipe = Recipe("g", (pattern,), k1=k1, k2=5, protocol=protocol, min_new=2, allow_fewer=True)
    (parsed,) = named_patterns(recipe)
    expected = ranked(parsed, graph)
    try:
        chosen = select_rules(recipe, open_engine(graph))
    except InputError:
        return
    met = [(-known.support, known.rule.body_text) for known in (*chosen.rules, *chosen.passed_over)]
    assert len(chosen.rules) <= k1
    if parsed.head_in_body or len(graph.rels) > len(parsed.templates):
        assert sorted(met) == expected[: len(met)]
        assert len(chosen.rules) == k1 or len(met) == len(expected)
    for known, sample in zip(chosen.rules, chosen.samples, strict=True):
        new = brute_force.conclusions(known.rule, graph, new=True)
        assert known.new == len(new)
        assert known.sampled == len(sample) == min(5, len(new))
        assert {tuple(t) for t in graph.keys.unpack(sample).tolist()} <= set(new)
        assert protocol == "paper" or known.new >= 2
        head = known.rule.head
        if not parsed.head_in_body:
            assert head not in [a for a in known.rule.atoms if a.terms == head.terms]
            bodies = [a.terms[1] for a in known.rule.atoms if a.is_type] if head.is_type else None
            used = bodies if bodies is not None else [a.relation for a in known.rule.atoms]
            assert (head.object if head.is_type else head.relation) not in used
    assert all(passed.new < 2 for passed in chosen.passed_over)


def test_the_head_is_drawn_uniformly_from_predicates_outside_the_body():
    triples = [("a", r, "b") for r in "RSTUVW"] + [("c", "R", "d"), ("e", "R", "f")]
    graph = KnowledgeGraph.from_names(triples)
    drawn = []
    for seed in range(600):
        recipe = Recipe("g", ("hierarchy",), k1=1, k2=5, min_new=1, seed=seed)
        (rule,) = select_rules(recipe, open_engine(graph)).program
        assert str(rule.atoms[0].relation) == "R"
        drawn.append(str(rule.head.relation))
    names, counts = np.unique(drawn, return_counts=True)
    assert names.tolist() == list("STUVW")
    assert stats.chisquare(counts).pvalue > 1e-3


def test_the_rules_for_a_smaller_k1_are_among_those_for_a_larger_one():
    graph = load_graph("lubm")
    engine = open_engine(graph)
    few, many = (select_rules(Recipe("lubm", ("composition",), k1=k1, k2=50), engine).program for k1 in (5, 30))
    assert many[:5] == few


def test_patterns_mix_and_each_contributes_k1_rules():
    engine = open_engine(load_graph("lubm"))
    chosen = select_rules(Recipe("lubm", ("inversion", "composition"), k1=4, k2=50), engine)
    patterns = [known.pattern for known in chosen.rules]
    assert patterns == [patterns[0]] * 4 + [patterns[-1]] * 4
    assert patterns[0] == str(parse_pattern("inversion"))


def test_a_support_interval_bounds_the_candidates():
    engine = open_engine(load_graph("lubm"))
    recipe = Recipe("lubm", ("composition",), k1=3, k2=50, min_support=500, max_support=8000)
    assert all(500 <= known.support <= 8000 for known in select_rules(recipe, engine).rules)
    with pytest.raises(InputError, match=r"has no rule with a support of 90,000,000 or more"):
        select_rules(recipe.changed(max_support=None, min_support=90_000_000), engine)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe("lubm", ("symmetry",), k1=900), "only .* of 900 rules of `symmetry`"),
        (Recipe("lubm", ("(x,type,_t), (x,type,_u), (x,_R,x) -> (x,_S,x)",), k1=1), "has no rule on this"),
        (Recipe("lubm", rules=("(x,nothing,y) -> (y,nothing,x)",)), "the rule does not conclude 10 or more"),
    ],
)
def test_a_recipe_that_cannot_be_met_says_what_there_is(recipe, message):
    engine = open_engine(extend(load_graph("lubm"), given_rules(recipe)))
    with pytest.raises(InputError, match=message):
        select_rules(recipe, engine)


def test_the_same_pattern_or_rule_twice_is_refused():
    with pytest.raises(InputError, match="are the same"):
        named_patterns(Recipe("g", ("symmetry", "(a,_R,b) -> (b,_R,a)")))
    with pytest.raises(InputError, match="are the same rule"):
        given_rules(Recipe("g", rules=("(x,R,y) -> (y,R,x)", "(u,R,v) -> (v,R,u)")))


@settings(max_examples=60)
@given(graph=graphs(), data=st.data())
def test_conclusions_are_distributed_as_the_paper_says(graph, data):
    patterns = tuple(data.draw(st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True)))
    k2 = data.draw(st.integers(1, 12))
    recipe = Recipe("g", patterns, k1=4, k2=k2, protocol="paper", allow_fewer=True, ratio="2:1:1")
    engine = open_engine(graph)
    try:
        selection = select_rules(recipe, engine)
    except InputError:
        return
    positives = distribute(recipe, engine, selection)
    unpack = graph.keys.unpack
    shares = [set(), set(), set()]
    for sample in selection.samples:
        n = len(sample)
        triples = [tuple(t) for t in unpack(sample).tolist()]
        shares[0].update(triples[: n // 2])
        shares[1].update(triples[n // 2 : 3 * n // 4])
        shares[2].update(triples[3 * n // 4 :])
    known = {tuple(t) for t in graph.triples.tolist()}
    train = shares[0] | known
    valid = shares[1] - train
    found = [{tuple(t) for t in triples.tolist()} for _, triples in positives.splits.items()]
    # Heads come from the graph, so every name of a conclusion is known to train.
    assert found == [train, valid, shares[2] - train - valid]
    _check_provenance(graph, selection.program, positives, found)


def _check_provenance(graph, rules, positives, found):
    provenance = positives.provenance
    concluded = [tuple(t) for t in provenance.triples.tolist()]
    known = {tuple(t) for t in graph.triples.tolist()}
    assert sorted(concluded) == concluded
    assert set(concluded) == set().union(*found) - known
    for place, triple in enumerate(concluded):
        assert triple in found[provenance.split[place]]
        pairs = np.flatnonzero(provenance.conclusion == place)
        derived = [i for i, rule in enumerate(rules) if triple in brute_force.conclusions(rule, graph)]
        assert provenance.rule[pairs].tolist() == derived
        for pair in pairs.tolist():
            begin, end = provenance.offsets[pair], provenance.offsets[pair + 1]
            witness = tuple(provenance.values[begin:end].tolist())
            assert witness == brute_force.witnesses(rules[provenance.rule[pair]], graph, triple)[0]


def test_a_name_that_train_would_lack_takes_its_conclusion_to_train():
    graph = KnowledgeGraph.from_names([("a", "R", "b"), ("c", "S", "d"), ("d", "S", "e")])
    recipe = Recipe("g", rules=("(x,R,y) -> (x,New,y)", "(x,S,y) -> (y,S,x)"), protocol="paper")
    engine = open_engine(extend(graph, given_rules(recipe)))
    positives = distribute(recipe, engine, select_rules(recipe, engine))
    assert engine.graph.names(positives.splits.train)[0] == ("a", "New", "b")
    assert len(positives.splits.test) == 1
    assert "went to train" in positives.notes[0]


def test_given_rules_stay_but_rare_ones_are_not_sampled_under_sound():
    graph = KnowledgeGraph.from_names([("a", "R", "b"), *((f"n{i}", "S", "m") for i in range(12))])
    rules = ("(x,R,y) -> (y,R,x)", "(x,S,y) -> (y,S,x)")
    for protocol, sampled in (("paper", [1, 12]), ("sound", [0, 12])):
        recipe = Recipe("g", rules=rules, protocol=protocol)
        selection = select_rules(recipe, open_engine(graph))
        assert selection.program == tuple(parse_rule(rule) for rule in rules)
        assert [known.sampled for known in selection.rules] == sampled
        assert bool(selection.notes) == (protocol == "sound")


def test_a_type_that_is_only_a_constant_so_far_counts_as_a_new_name():
    triples = [("a", "R", "Town"), ("b", "type", "Person"), *((f"n{i}", "S", f"n{i + 1}") for i in range(3))]
    graph = KnowledgeGraph.from_names(triples)
    recipe = Recipe("g", rules=("(x,R,y) -> (x,type,Town)", "(x,S,y) -> (y,S,x)"), protocol="paper")
    engine = open_engine(extend(graph, given_rules(recipe)))
    positives = distribute(recipe, engine, select_rules(recipe, engine))
    assert ("a", "type", "Town") in engine.graph.names(positives.splits.train)


def test_a_benchmark_without_a_name_is_called_by_what_is_not_usual():
    from loginfer.benchmark.construction.pipeline import default_name

    recipe = Recipe(kg="data/company.nt", patterns=("composition",))
    assert default_name(recipe) == "company-composition-pa"
    assert default_name(recipe.changed(protocol="paper", depth=1)) == "company-composition-pa-paper"
