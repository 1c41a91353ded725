"""The two engines, which share no code that counts or joins, give the same answers on the real graphs."""

from __future__ import annotations

import numpy as np
import pytest

from loginfer.engine import BodyTable, Engine, extend
from loginfer.engine.bodies import predicate_names
from loginfer.engine.duckdb import DuckDBEngine
from loginfer.engine.native.engine import NativeEngine
from loginfer.kg import KnowledgeGraph, generate_lubm, load_graph
from loginfer.logic.dialects.arrow import parse_pattern, parse_rule
from loginfer.logic.patterns import instantiate, pattern_named
from loginfer.logic.rule import Pattern, Rule
from loginfer.logic.rule_files import read_rules

CHAIN = parse_pattern("(x,_R,y), (y,_S,z), (z,_T,w), x != w -> (x,_P,w)")
TYPED = parse_pattern("(x,type,_t), (x,_R,y), (y,type,_u) -> (y,_R,x)")
TYPED_PAIR = parse_pattern("(x,type,_t), (x,_R,y), (z,_S,y), (z,type,_u), x != z -> (x,_P,z)")


@pytest.fixture(scope="module", params=["wn18rr", "fb15k-237", "lubm"])
def engines(request):
    """Both engines on one graph."""
    if request.param == "lubm":
        graph = generate_lubm()
    else:
        request.getfixturevalue("data_folder")
        graph = load_graph(request.param)
    with DuckDBEngine(graph) as duckdb:
        yield NativeEngine(graph), duckdb


def assert_same_table(one: BodyTable, other: BodyTable) -> int:
    assert one.nonzero == other.nonzero
    assert np.array_equal(one.support, other.support)
    assert np.array_equal(one.predicates, other.predicates)
    return len(one)


@pytest.mark.data
def test_every_support_of_whole_tables_is_the_same(engines: tuple[Engine, Engine]):
    native, duckdb = engines
    shapes = [pattern_named(name) for name in ("symmetry", "composition", "intersection", "triangle")]
    if native.graph.type_relation is not None:
        shapes += [TYPED, TYPED_PAIR]
    compared = 0
    for pattern in [*shapes, CHAIN]:
        compared += assert_same_table(native.rank_bodies(pattern), duckdb.rank_bodies(pattern))
    assert compared >= 500
    assert_same_table(native.rank_bodies(shapes[2], 5), duckdb.rank_bodies(shapes[2], 5))


@pytest.mark.data
def test_diamonds_over_some_relations_have_the_same_supports(engines: tuple[Engine, Engine]):
    """Supports depend on a body's own relations only, so part of the table needs only part of the graph."""
    native, _ = engines
    graph = native.graph
    sizes = np.bincount(graph.triples[:, 1], minlength=len(graph.relations))
    chosen = graph.rels
    if len(chosen) > 100:
        chosen = chosen[sizes[chosen] <= 6000][::2]
    part = graph.with_triples(graph.triples[np.isin(graph.triples[:, 1], chosen)])
    diamond = pattern_named("diamond")
    whole = native.rank_bodies(diamond)
    inside = np.isin(whole.predicates, chosen).all(axis=1)
    with DuckDBEngine(part) as engine:
        table = engine.rank_bodies(diamond)
    assert np.array_equal(table.support, whole.support[inside])
    assert np.array_equal(table.predicates, whole.predicates[inside])
    assert len(table) > 5


def best_rules(engine: Engine, pattern: Pattern, count: int) -> list[Rule]:
    graph = engine.graph
    table = engine.rank_bodies(pattern, count)
    head = graph.relations[int(graph.rels[0])]
    return [instantiate(pattern, names, head) for names in predicate_names(table, graph)]


@pytest.mark.data
def test_conclusions_witnesses_and_derivations_are_the_same(engines: tuple[Engine, Engine]):
    native, duckdb = engines
    random = np.random.default_rng(0)
    rules = [
        rule
        for name, count in (("composition", 2), ("intersection", 2), ("triangle", 3), ("diamond", 2))
        for rule in best_rules(native, pattern_named(name), count)
    ]
    asked = [random.choice(native.graph.triples, 500)]
    for rule in rules:
        assert duckdb.support(rule) == native.support(rule)
        for new in (False, True):
            concluded = native.conclusions(rule, new=new)
            assert np.array_equal(duckdb.conclusions(rule, new=new), concluded)
        if len(concluded):
            asked.append(random.choice(concluded, 200))
        first = native.witnesses(rule, limit=7)
        assert np.array_equal(duckdb.witnesses(rule, limit=7).values, first.values)
        if len(concluded):
            conclusion = concluded[len(concluded) // 2].tolist()
            assert np.array_equal(
                duckdb.witnesses(rule, conclusion=conclusion).values,
                native.witnesses(rule, conclusion=conclusion).values,
            )
    triples = np.concatenate(asked)
    triples = np.concatenate([triples, np.column_stack([random.permutation(triples[:, 0]), triples[:, 1:]])])
    derives = native.derives(rules, triples)
    assert derives.any()
    assert not derives.all()
    assert np.array_equal(duckdb.derives(rules, triples), derives)
    expected, found = native.derivations(rules, triples), duckdb.derivations(rules, triples)
    assert np.array_equal(found.triple, expected.triple)
    assert np.array_equal(found.rule, expected.rule)


def test_the_materialisation_of_lubm_is_the_same():
    rules = read_rules("lubm-107").program
    graph = extend(generate_lubm(), rules)
    expected = NativeEngine(graph).materialise(rules)
    with DuckDBEngine(graph) as engine:
        found = engine.materialise(rules)
        new = sum(len(engine.conclusions(rule, new=True)) for rule in rules[:5])
    assert len(found) == 151_108
    assert found.rounds == expected.rounds
    assert np.array_equal(found.triples, expected.triples)
    assert np.array_equal(found.depth, expected.depth)
    assert new <= len(found)


def test_both_engines_give_the_same_answers_to_odd_rules():
    graph = KnowledgeGraph.from_names(
        [("a", "R", "a"), ("a", "R", "b"), ("b", "R", "c"), ("c", "S", "a"), ("b", "S", "b"), ("a", "type", "T")]
    )
    native = NativeEngine(graph)
    with DuckDBEngine(graph) as duckdb:
        for text in (
            "-> (<a>,R,<c>)",
            "(x,R,x) -> (x,S,x)",
            "(x,R,y), (z,S,w), x != z -> (x,S,z)",
            "(x,R,y), (z,S,w), y != w, x != w -> (x,S,<a>)",
            "(x,type,T), (y,S,z) -> (y,type,T)",
            "(x,R,y), (y,R,z), (z,S,x), x != y -> (z,R,x)",
        ):
            rule = parse_rule(text)
            assert duckdb.support(rule) == native.support(rule)
            assert np.array_equal(duckdb.conclusions(rule), native.conclusions(rule))
            assert np.array_equal(duckdb.witnesses(rule).values, native.witnesses(rule).values)
