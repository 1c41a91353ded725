"""The first witness of each of many conclusions, by both engines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.random_rules import cases

from loginfer.engine import Engine, extend
from loginfer.engine.binding import bind, parts
from loginfer.engine.bodies import predicate_names
from loginfer.engine.duckdb import DuckDBEngine
from loginfer.engine.native.engine import NativeEngine
from loginfer.kg import KnowledgeGraph, Triples, load_graph
from loginfer.logic.dialects.arrow import parse_rule
from loginfer.logic.patterns import instantiate, pattern_named
from loginfer.logic.rule import Rule


def everything(graph: KnowledgeGraph, rule: Rule) -> Triples:
    """Every triple of known ids with the head's relation, some of another, and some of no id at all."""
    size, relation = len(graph.entities), bind(rule, graph).head.relation
    pairs = np.indices((size, size)).reshape(2, -1)
    triples = np.column_stack([pairs[0], np.full(size * size, relation), pairs[1]])
    strange = [[0, len(graph.relations), 0], [-1, relation, 0], [0, relation, size], [0, -1, 0]]
    others = [[s, (relation + 1) % len(graph.relations), o] for s, _, o in triples[:3].tolist()]
    return np.array([*triples.tolist(), *strange, *others, *triples[:2].tolist()], dtype=np.int32)


def smallest(rule: Rule, graph: KnowledgeGraph, triples: Triples) -> list[tuple[int, ...]]:
    """The same, by looking through all substitutions in order."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    bound = bind(rule, graph)
    ends = (bound.head.subject, bound.head.object)
    for witness in brute_force.witnesses(rule, graph):
        subject, object_ = (witness[t] if t >= 0 else ~t for t in ends)
        found.setdefault((subject, bound.head.relation, object_), witness)
    nothing = (-1,) * len(rule.variables)
    return [found.get(tuple(triple), nothing) for triple in triples.tolist()]


def check(engine: Engine, rule: Rule, triples: Triples, expected: list[tuple[int, ...]]) -> None:
    found = engine.first_witnesses(rule, triples)
    assert found.dtype == np.int32
    assert found.shape == (len(triples), len(rule.variables))
    assert [tuple(row) for row in found.tolist()] == expected


@settings(max_examples=400)
@given(cases(), st.randoms(use_true_random=False))
def test_native_finds_the_smallest_witness_of_every_triple(case, random):
    graph, (rule,) = case
    triples = everything(graph, rule)
    check(NativeEngine(graph), rule, triples, smallest(rule, graph, triples))
    order = list(range(len(triples)))
    random.shuffle(order)
    check(NativeEngine(graph), rule, triples[order], smallest(rule, graph, triples[order]))


@settings(max_examples=60)
@given(cases())
def test_duckdb_finds_the_smallest_witness_of_every_triple(case):
    graph, (rule,) = case
    triples = everything(graph, rule)[::-1]
    with DuckDBEngine(graph, threads=1) as engine:
        check(engine, rule, triples, smallest(rule, graph, triples))


@settings(max_examples=60)
@given(cases())
def test_each_row_is_the_first_witness_of_its_conclusion(case):
    graph, (rule,) = case
    engine = NativeEngine(graph)
    triples = everything(graph, rule)
    for triple, row in zip(triples.tolist(), engine.first_witnesses(rule, triples), strict=True):
        first = engine.witnesses(rule, limit=1, conclusion=triple).values
        assert np.array_equal(first, row[None] if len(first) else first)
        assert len(first) or (row == -1).all()


def dense(size: int = 40) -> KnowledgeGraph:
    """A graph in which most searches fail for a while: larger than what brute force is quick for."""
    random = np.random.default_rng(3)
    names = [f"e{i:03}" for i in range(size)]
    triples = [
        (names[s], relation, names[o])
        for relation in "RSTU"
        for s, o in zip(*np.nonzero(random.random((size, size)) < 0.07), strict=True)
    ]
    return KnowledgeGraph.from_names(triples)


RULES = [
    "(x,R,y), (x,S,z), (y,T,w), (z,U,w), x != y, x != z, x != w, y != z, y != w, z != w -> (x,R,y)",
    "(x,R,a), (a,S,b), (b,T,c), (c,U,y) -> (x,R,y)",
    "(a,R,b), (b,S,x), (x,T,c), (y,U,d), (d,R,y), a != c -> (x,R,y)",
    "(a,R,b), (b,S,c), (c,T,a), (x,U,y), (d,U,d) -> (y,R,x)",
    "(a,R,x), (a,S,b), (b,T,<e005>), b != c, (c,U,y) -> (y,R,<e007>)",
    "(a,R,b), (b,S,a), a != b -> (<e001>,R,<e002>)",
]


@pytest.mark.parametrize("text", RULES)
def test_both_engines_agree_where_searches_fail_for_a_while(text):
    graph = dense()
    rule = parse_rule(text)
    native = NativeEngine(graph)
    triples = native.conclusions(rule)
    assert len(triples)
    found = native.first_witnesses(rule, triples)
    for place in range(0, len(triples), max(len(triples) // 10, 1)):
        first = native.witnesses(rule, limit=1, conclusion=triples[place].tolist())
        assert np.array_equal(first.values[0], found[place])
    with DuckDBEngine(graph, threads=1) as duckdb:
        assert np.array_equal(duckdb.first_witnesses(rule, triples), found)
        assert np.array_equal(duckdb.first_witnesses(rule, triples[::-1]), found[::-1])


@pytest.mark.parametrize("open_engine", [NativeEngine, DuckDBEngine])
def test_no_triples_have_no_witnesses(open_engine):
    rule = parse_rule("(x,R,z), (z,S,y) -> (x,New,y)")
    graph = extend(dense(5), [rule])
    found = open_engine(graph).first_witnesses(rule, np.empty((0, 3), dtype=np.int32))
    assert found.shape == (0, 3)
    assert found.dtype == np.int32


@pytest.mark.parametrize("open_engine", [NativeEngine, DuckDBEngine])
def test_a_rule_without_variables_has_rows_without_columns(open_engine):
    rule = parse_rule("(<e001>,New,<e002>) -> (<e001>,New,<e003>)")
    graph = extend(dense(5), [rule])
    found = open_engine(graph).first_witnesses(rule, np.zeros((4, 3), dtype=np.int32))
    assert found.shape == (4, 0)


@given(cases(), st.sets(st.integers(0, 5)))
def test_parts_hold_together_and_touch_nothing_but_their_context(case, chosen):
    graph, (rule,) = case
    bound = bind(rule, graph)
    given_ = tuple(sorted(v for v in chosen if v < len(rule.variables)))
    found = parts(bound, given_)
    assert sorted(v for part in found for v in part.variables) == [
        v for v in range(len(rule.variables)) if v not in given_
    ]
    edges = [(a.subject, a.object) for a in bound.atoms] + list(bound.inequalities)
    edges += [negation.variables for negation in bound.negations]
    for part in found:
        touching = [{t for t in edge if t >= 0} for edge in edges if set(edge) & set(part.variables)]
        assert set().union(*touching) <= {*part.variables, *part.context}
        assert all(any(v in edge for edge in touching) for v in part.context)
        alone = parts(bound, [v for v in range(len(rule.variables)) if v not in part.variables])
        assert [p.variables for p in alone] == [part.variables]


@pytest.mark.data
@pytest.mark.usefixtures("data_folder")
def test_both_engines_agree_on_the_best_rules_of_a_real_graph():
    graph = load_graph("wn18rr")
    native = NativeEngine(graph)
    random = np.random.default_rng(0)
    head = graph.relations[int(graph.rels[0])]
    with DuckDBEngine(graph) as duckdb:
        for name in ("composition", "triangle", "diamond"):
            table = native.rank_bodies(pattern_named(name), 4)
            for relations in predicate_names(table, graph):
                rule = instantiate(pattern_named(name), relations, head)
                derived = random.choice(native.conclusions(rule), 300)
                exchanged = np.column_stack([derived[:, :2], random.permutation(derived[:, 2])])
                triples = np.vstack([derived, exchanged])
                found = native.first_witnesses(rule, triples)
                assert (found[:300] >= 0).all()
                assert (found[300:] == -1).any()
                assert np.array_equal(duckdb.first_witnesses(rule, triples), found)
