"""Rules of one shape are asked for together where queries are costly, and the answers are the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.random_rules import RELATIONS, TYPES, VARIABLES, cases, graphs, rules

from loginfer.engine import extend
from loginfer.engine.duckdb import DuckDBEngine, DuckDBSession
from loginfer.engine.native.engine import NativeEngine
from loginfer.engine.sql import engine as membership
from loginfer.engine.sql.engine import AskedTriples, shape_of
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.kg.graph import TripleKeys
from loginfer.logic.dialects.arrow import parse_rule
from loginfer.logic.rule import Atom, Constant, Negation, Rule


@pytest.fixture(scope="module", autouse=True)
def costly():
    """Let DuckDB, which starts at once, write what is written for Spark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DuckDBSession, "dialect", replace(DuckDBSession.dialect, costly=True))
        yield


@st.composite
def alike(draw: st.DrawFn, rule: Rule) -> Rule:
    """A rule that differs in its predicates, and perhaps in the names of its variables."""
    names = dict(zip(VARIABLES, draw(st.permutations(VARIABLES)), strict=True))

    def other(part):
        part = part.rename(names)
        if isinstance(part, Atom) and part.relation == RDF_TYPE:
            return replace(part, object=Constant(draw(st.sampled_from((*TYPES, "nobody")))))
        if isinstance(part, Atom):
            return replace(part, relation=draw(st.sampled_from((*RELATIONS, "Nowhere"))))
        return part

    body = [part for part in rule.body if not isinstance(part, Negation)]
    return Rule([other(part) for part in body], other(rule.head))


@st.composite
def families(draw: st.DrawFn) -> tuple[KnowledgeGraph, list[Rule]]:
    """A graph, and rules most of which share a shape."""
    graph = draw(graphs())
    first = draw(st.lists(rules(graph, atoms=3), min_size=1, max_size=2))
    program = [*first, *(draw(alike(rule)) for rule in first for _ in range(3))]
    return extend(graph, program), program


def assert_same_derivations(graph, program):
    native = NativeEngine(graph)
    asked = np.concatenate([graph.triples, *(native.conclusions(rule) for rule in program)])
    asked = np.concatenate([asked[::-1], asked[::2], [[-1, 0, 0]]]).astype(np.int32)
    expected = native.derivations(program, asked[:-1])
    with DuckDBEngine(graph) as engine:
        found = engine.derivations(program, asked)
        assert np.array_equal(engine.derives(program, asked[:-1]), native.derives(program, asked[:-1]))
        for rule in program[:2]:
            first = engine.first_witnesses(rule, asked[:-1])
            assert np.array_equal(first, native.first_witnesses(rule, asked[:-1]))
    assert found.triple.tolist() == expected.triple.tolist()
    assert found.rule.tolist() == expected.rule.tolist()


@settings(max_examples=25)
@given(families())
def test_rules_of_one_shape_derive_what_each_derives_alone(case):
    assert_same_derivations(*case)


@settings(max_examples=15)
@given(cases(most_rules=3))
def test_rules_of_any_shape_derive_the_same(case):
    assert_same_derivations(*case)


def test_twenty_rules_of_two_shapes_take_two_queries(monkeypatch):
    rng = np.random.default_rng(4)
    names = [(f"e{s}", f"r{r}", f"e{o}") for s, r, o in rng.integers((20, 3, 20), size=(300, 3)).tolist()]
    pairs = [(i, j, k) for i in range(3) for j in range(3) for k in range(2)]
    program = [parse_rule(f"(x,r{i},y), (y,r{j},z) -> (x,r{k},z)") for i, j, k in pairs]
    program += [parse_rule("(a,r0,b) -> (b,r1,a)"), parse_rule("(v,r1,w) -> (w,r2,v)")]
    graph = KnowledgeGraph.from_names(names)
    asked = []
    together = membership.derived_together
    monkeypatch.setattr(membership, "derived_together", lambda *given: asked.append(given) or together(*given))
    monkeypatch.setattr(membership.SqlEngine, "derived_by", None)  # no rule is left over
    with DuckDBEngine(graph) as engine:
        found = engine.derivations(program, graph.triples)
    expected = NativeEngine(graph).derivations(program, graph.triples)
    assert len(asked) == 2
    assert found.triple.tolist() == expected.triple.tolist()
    assert found.rule.tolist() == expected.rule.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "(x,R,y), (y,R,z), (z,R,w) -> (x,R,w)",  # y is not beside w
        "(x,R,y), (z,R,w) -> (x,R,z)",
        "(x,R,y), not (y,R,x) -> (x,R,y)",
        "(x,R,y) -> (x,R,x)",
        "(x,R,y) -> (x,R,<a>)",
    ],
)
def test_rules_that_would_not_begin_with_what_is_asked_have_no_shape(text):
    assert shape_of(parse_rule(text), KnowledgeGraph.from_names([("a", "R", "b")])) is None


def test_places_of_repeated_triples_are_all_found():
    asked = AskedTriples([[1, 0, 2], [0, 0, 1], [1, 0, 2], [5, 0, 0], [0, -1, 0]], TripleKeys(3, 1))
    assert asked.triples.tolist() == [[0, 0, 1], [1, 0, 2]]
    which, places = asked.rows(np.array([[1, 0, 2], [2, 0, 2], [0, 0, 1]], dtype=np.int32))
    assert (which.tolist(), places.tolist()) == ([0, 0, 2], [0, 2, 1])
