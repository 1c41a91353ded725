"""Bodies of patterns with negations: what both engines count is what the definition says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.random_rules import graphs

from loginfer.engine.bodies import predicate_names, rank_negated
from loginfer.engine.duckdb import DuckDBEngine
from loginfer.engine.native.engine import NativeEngine
from loginfer.errors import LimitError
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.logic import Rule, canonical_text, instantiate, parse_pattern
from loginfer.logic.rule import Negation

PATTERNS = (
    "(x,_R,y), not (y,_S,z) -> (x,_T,y)",
    "(x,_R,y), not (y,_R,x) -> (y,_T,x)",
    "(x,_R,y), not (x,_S,y), x != y -> (y,_R,x)",
    "(x,_R,y), (y,_S,z), not (x,_T,z) -> (x,_P,z)",
    "(x,_R,y), (x,_S,y), not (z,_T,x) -> (x,_P,y)",
    "(x,_R,y), not (y,_S,z), not (w,_T,x) -> (x,_P,y)",
    "(x,_R,y), not (y,_S,z), not (y,_T,w) -> (x,_P,y)",
    "(x,_R,y), not (y,type,_t) -> (x,_P,y)",
    "(x,_R,y), not (x,R,z), not (y,_S,y) -> (x,_P,y)",
    "(x,_R,y), not (x,_S,<a>) -> (x,_P,y)",
    "(x,_R,y), not (z,_S,w) -> (x,_P,y)",
    "(x,R,y), not (y,S,z) -> (x,_T,y)",
    "(x,type,_t), (x,_R,y), not (y,type,_u) -> (x,_R,y)",
    "(x,_R,y), (z,_S,w), not (x,_T,z), y != w -> (x,_P,z)",
)
quick = settings(max_examples=7)


def expected(graph: KnowledgeGraph, pattern) -> list[tuple[tuple[str, ...], int]]:
    """Every instance with a witness of which each negation excludes another, one of equals, in order."""
    relations = sorted(graph.relations.names(graph.rels))
    types = sorted(graph.entities.names(graph.types))
    domains = [types if pattern.is_type_template(t) else relations for t in pattern.templates]
    rows: dict[str, tuple] = {}
    for predicates in product(*domains):
        rule = instantiate(pattern, predicates, None if pattern.head_in_body else "R")
        if len(set(rule.atoms)) < len(set(pattern.atoms)):
            continue
        support = brute_force.support(rule, graph)
        effective = all(
            brute_force.support(Rule([p for p in rule.body if p != negation], rule.head), graph) > support
            for negation in rule.negations
        )
        if support and effective and len(set(rule.negations)) == len(set(pattern.negations)):
            rows.setdefault(canonical_text(rule), (-support, rule.body_text, predicates))
    return [(predicates, -count) for count, _, predicates in sorted(rows.values())]


@pytest.mark.parametrize("text", PATTERNS)
@quick
@given(graph=graphs(most=20), top=st.sampled_from((None, None, 2)))
def test_both_engines_rank_bodies_with_negations_by_the_definition(text, graph, top):
    pattern = parse_pattern(text)
    wanted = expected(graph, pattern)
    with DuckDBEngine(graph, threads=1) as duckdb:
        for engine in (NativeEngine(graph), duckdb):
            table = engine.rank_bodies(pattern, top)
            found = list(zip(predicate_names(table, graph), table.support.tolist(), strict=True))
            assert found == wanted[:top]
            assert table.nonzero == len(wanted)


def test_a_negation_that_excludes_nothing_makes_no_body():
    graph = KnowledgeGraph.from_names([("a", "R", "b"), ("c", "R", "d"), ("b", "S", "a"), ("c", "T", "a")])
    table = NativeEngine(graph).rank_bodies(parse_pattern("(x,_R,y), not (y,_S,z) -> (x,_T,y)"))
    # Of R, only b is in S; nothing that R leads to is in T.
    names = predicate_names(table, graph)
    assert ("R", "S") in names
    assert ("R", "T") not in names
    assert dict(zip(names, table.support.tolist(), strict=True))["R", "S"] == 1


def test_too_many_bodies_of_several_negations_are_refused(monkeypatch):
    monkeypatch.setattr("loginfer.engine.bodies.MOST_ROWS", 3)
    pattern = parse_pattern("(x,R,y), not (y,_S,z), not (y,_T,w) -> (x,_P,y)")
    graph = KnowledgeGraph.from_names([("a", "R", "b")])

    def count(violated: tuple[Negation, ...]):
        size = 1 if not violated else 2
        return np.zeros((size, len(violated)), dtype=np.int32), np.ones(size, dtype=np.int64)

    with pytest.raises(LimitError, match="4 bodies together"):
        rank_negated(graph, pattern, None, count)


@pytest.mark.data
@pytest.mark.parametrize("name", ["wn18rr", "fb15k-237"])
def test_both_engines_give_the_same_table_on_real_graphs(name, data_folder):
    graph = load_graph(name)
    pattern = parse_pattern(PATTERNS[0])
    native = NativeEngine(graph).rank_bodies(pattern)
    with DuckDBEngine(graph) as engine:
        other = engine.rank_bodies(pattern)
    assert np.array_equal(native.predicates, other.predicates)
    assert np.array_equal(native.support, other.support)
    rule = instantiate(pattern, predicate_names(native, graph)[3], graph.relations[0])
    assert NativeEngine(graph).support(rule) == native.support[3]
