"""The distinct subjects and objects of conclusions: products stay products, and both engines agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from tests.support import brute_force
from tests.support.random_rules import cases

from loginfer.engine import Engine, Projection
from loginfer.engine.binding import bind
from loginfer.engine.duckdb import DuckDBEngine
from loginfer.engine.native.engine import NativeEngine
from loginfer.errors import LimitError
from loginfer.kg import KnowledgeGraph
from loginfer.logic.dialects.arrow import parse_rule
from loginfer.logic.rule import Rule

ENGINES = [NativeEngine, DuckDBEngine]


def assert_equal(one: Projection, other: Projection) -> None:
    assert (one.product, one.unequal) == (other.product, other.unequal)
    for a, b in ((one.left, other.left), (one.right, other.right)):
        assert a.dtype == b.dtype == np.int32
        assert np.array_equal(a, b)


def assert_projects(projection: Projection, rule: Rule, graph: KnowledgeGraph) -> None:
    """It describes exactly the conclusions, and its sides are what the body alone says of each variable."""
    relation = bind(rule, graph).head.relation
    left, right = projection.pairs()
    concluded = [(s, relation, o) for s, o in zip(left.tolist(), right.tolist(), strict=True)]
    assert concluded == brute_force.conclusions(rule, graph)
    assert len(projection) == len(concluded)
    if not projection.product:
        assert not projection.unequal
        return
    rest = [part for part in rule.body if set(part.terms) != set(rule.head.terms) or part in rule.atoms]
    apart = brute_force.conclusions(Rule(rest, rule.head), graph)
    assert projection.left.tolist() == sorted({s for s, _, _ in apart})
    assert projection.right.tolist() == sorted({o for _, _, o in apart})


@settings(max_examples=200)
@given(cases())
def test_native_projections_are_those_of_the_definition(case):
    graph, (rule,) = case
    assert_projects(NativeEngine(graph).projection(rule), rule, graph)


@settings(max_examples=100)
@given(cases())
def test_both_engines_give_equal_projections(case):
    graph, (rule,) = case
    with DuckDBEngine(graph, threads=1) as engine:
        assert_equal(engine.projection(rule), NativeEngine(graph).projection(rule))


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    links = [("a", "R", "b"), ("b", "R", "c"), ("c", "S", "a"), ("b", "S", "b"), ("a", "S", "d"), ("a", "R", "a")]
    return KnowledgeGraph.from_names([*links, ("c", "T", "d"), ("d", "type", "Thing")])


@pytest.mark.parametrize(
    ("text", "product", "unequal"),
    [
        ("(x,R,z), (y,S,w) -> (x,R,y)", True, False),
        ("(x,R,z), (y,S,w), y != x -> (x,R,y)", True, True),
        ("(x,R,z), (y,S,w), z != w -> (x,R,y)", False, False),
        ("(x,R,z), (y,S,w), x != w -> (x,R,y)", False, False),
        ("(x,R,z), (y,S,w), x != <a>, y != <a> -> (x,R,y)", True, False),
        ("(x,R,<a>), (y,S,<a>) -> (y,R,x)", True, False),
        ("(x,R,z), (y,S,w), (u,T,v) -> (x,R,y)", True, False),
        ("(x,R,z), (y,S,w), (u,T,u) -> (x,R,y)", True, False),
        ("(x,R,z), (y,S,w), (<a>,T,<b>) -> (x,R,y)", True, False),
        ("(x,R,z), (y,S,w), x != x -> (x,R,y)", True, False),
        ("(x,R,z), (y,Nowhere,w), x != y -> (x,R,y)", True, True),
        ("(x,R,y), (y,Nowhere,x) -> (x,R,y)", False, False),
        ("(x,type,Thing), (y,S,w) -> (x,R,y)", True, False),
        ("(x,R,z), (z,S,y), x != y -> (x,R,y)", False, False),
        ("(x,R,z), (y,S,w) -> (x,R,x)", False, False),
        ("(x,R,z), (y,S,w) -> (<a>,R,y)", False, False),
        ("(x,R,z), (y,S,w) -> (x,type,Thing)", False, False),
        ("(x,R,z), (y,S,w), x != y -> (<a>,R,<b>)", False, False),
        ("(x,T,x) -> (<a>,R,<b>)", False, False),
        ("-> (<a>,R,<b>)", False, False),
    ],
)
def test_a_product_is_what_nothing_but_an_inequality_connects(graph, text, product, unequal):
    rule = parse_rule(text)
    native = NativeEngine(graph).projection(rule)
    assert (native.product, native.unequal) == (product, unequal)
    assert_projects(native, rule, graph)
    with DuckDBEngine(graph, threads=1) as engine:
        assert_equal(engine.projection(rule), native)


@pytest.fixture(scope="module")
def star() -> KnowledgeGraph:
    """A hub with 2,000 R-predecessors and as many S-successors."""
    names = [f"E{i:04}" for i in range(2000)]
    return KnowledgeGraph.from_names([(name, "R", "Hub") for name in names] + [("Hub", "S", name) for name in names])


@pytest.mark.parametrize("open_engine", ENGINES)
def test_a_product_far_beyond_the_limit_is_given_as_its_sides(star, open_engine):
    engine: Engine = open_engine(star, max_conclusions=5000)
    projection = engine.projection(parse_rule("(x,R,z), (w,S,y), x != y -> (x,S,y)"))
    assert projection.product
    assert len(projection) == 2000 * 1999


@pytest.mark.parametrize("open_engine", ENGINES)
def test_too_many_pairs_that_are_no_product_are_refused(star, open_engine):
    engine: Engine = open_engine(star, max_conclusions=5000)
    with pytest.raises(LimitError, match="5,000"):
        engine.projection(parse_rule("(x,R,z), (z,S,y) -> (x,S,y)"))
