"""The native engine against the definition, on tiny graphs with every kind of rule."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from tests.support import brute_force as brute
from tests.support.random_rules import cases

from loginfer.engine import extend
from loginfer.engine.binding import Bound, bind
from loginfer.engine.native import join
from loginfer.engine.native.engine import NativeEngine
from loginfer.engine.native.materialise import index_of_pairs
from loginfer.engine.native.plan import Body, BodyShape, JoinPlan, Scales, plan_projection
from loginfer.kg import KnowledgeGraph
from loginfer.kg import graph as graph_module
from loginfer.kg.graph import RelationIndex
from loginfer.logic.dialects.arrow import parse_rule
from loginfer.logic.rule import Rule

some = settings(deadline=None, max_examples=120)

GRAPH = KnowledgeGraph.from_names(
    [
        ("A", "R", "B"), ("B", "R", "C"), ("C", "R", "A"), ("A", "R", "A"), ("A", "R", "D"), ("D", "R", "E"),
        ("B", "S", "C"), ("C", "S", "D"), ("D", "S", "A"), ("E", "S", "E"), ("A", "S", "C"), ("E", "S", "B"),
        ("A", "T", "E"), ("B", "T", "E"), ("C", "T", "B"), ("D", "T", "B"), ("E", "T", "A"), ("C", "T", "D"),
        ("A", "type", "Man"), ("B", "type", "Man"), ("C", "type", "Woman"), ("E", "type", "Woman"),
        ("E", "type", "Man"),
    ]
)  # fmt: skip

ZOO = [
    "-> (A,New,B)",  # a fact
    "(A,R,B) -> (A,New,B)",  # constants only
    "(A,R,C) -> (A,New,B)",  # constants only, and false
    "(x,R,y) -> (y,S,x)",
    "(x,R,x) -> (x,S,x)",  # a loop
    "(x,R,x), (x,R,y), x != y -> (y,New,x)",
    "(x,R,y), (y,R,x) -> (x,New,y)",
    "(x,R,y), (x,R,y) -> (x,New,y)",  # twice the same atom
    "(x,R,y) -> (x,New,x)",  # the head's variable twice
    "(x,R,y) -> (A,New,x)",
    "(x,R,y) -> (y,type,Man)",
    "(x,R,y), x != A, y != B -> (x,New,y)",
    "(x,R,y), x != nobody -> (x,New,y)",
    "(x,R,y), x != x -> (x,New,y)",
    "(x,Unknown,y) -> (x,New,y)",
    "(x,R,nobody), (x,R,y) -> (x,New,y)",
    "(x,type,Man), (x,R,y), (y,type,Woman) -> (x,New,y)",
    "(x,R,y), (y,S,z) -> (x,New,z)",
    "(x,R,y), (y,S,z) -> (z,New,x)",
    "(x,R,y), (y,S,z), (z,T,w) -> (x,New,w)",
    "(x,R,y), (y,S,z), (z,T,w) -> (y,New,x)",
    "(x,R,y), (y,S,z), (z,T,w), x != w -> (x,New,w)",
    "(x,R,y), (y,S,z), (z,T,w), x != z, y != w, x != w -> (y,New,z)",
    "(x,R,y), (x,S,z), (y,T,z), x != y, x != z, y != z -> (x,New,y)",  # triangle
    "(x,R,y), (x,S,z), (y,T,w), (z,R,w), x != y, x != z, x != w, y != z, y != w, z != w -> (x,New,y)",
    "(x,R,y), (x,S,z), (y,T,w), (z,R,w) -> (x,New,w)",  # opposite corners
    "(x,R,y), (x,S,z), (y,T,w), (z,R,w), y != z -> (w,New,x)",
    "(x,R,y), (z,S,w) -> (x,New,z)",  # a product
    "(x,R,y), (z,S,w), x != z -> (x,New,z)",  # a product without its diagonal
    "(x,R,y), (z,S,w), y != w -> (x,New,z)",  # held together by an inequality only
    "(x,R,y), (z,S,w), (A,T,v) -> (x,New,y)",  # parts that only need to be there
    "(x,R,y), (z,T,z) -> (x,New,y)",  # a part that is not there
    "(x,R,y), (x,S,z), (x,T,w), (x,type,v) -> (v,New,w)",  # a star
    "(x,R,y), (y,S,z), (z,T,w), (w,R,v), (v,S,u), (u,T,x) -> (x,New,w)",  # a ring of six
    "(x,R,y), (y,R,z), (z,R,w), (w,R,v), (v,R,u), (u,R,s), (s,R,x) -> (x,New,s)",  # a ring of seven
    "(A,R,x), (x,S,y), (y,T,B) -> (x,New,y)",
    "(x,R,y), (x,S,z), (y,S,z), (z,T,w), (w,R,v), (v,S,u), u != x, v != y -> (x,New,w)",
]


def case(text: str) -> tuple[NativeEngine, Rule]:
    rule = parse_rule(text)
    return NativeEngine(extend(GRAPH, [rule])), rule


def as_tuples(array: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(row) for row in array.tolist()]


def check_everything(engine: NativeEngine, rule: Rule) -> None:
    graph = engine.graph
    witnesses = brute.witnesses(rule, graph)
    assert engine.support(rule) == len(witnesses)
    assert as_tuples(engine.witnesses(rule).values) == witnesses
    assert as_tuples(engine.witnesses(rule, limit=3).values) == witnesses[:3]
    conclusions = brute.conclusions(rule, graph)
    for new in (False, True):
        found = engine.conclusions(rule, new=new)
        assert found.dtype == np.int32
        assert found.shape[1] == 3
        assert as_tuples(found) == brute.conclusions(rule, graph, new=new)
    candidates = every_triple(graph, rule)
    wanted = [triple in set(conclusions) for triple in as_tuples(candidates)]
    assert engine.derives([rule], candidates).tolist() == wanted
    for conclusion in conclusions[:3]:
        assert as_tuples(engine.witnesses(rule, conclusion=conclusion).values) == brute.witnesses(
            rule, graph, conclusion
        )


def every_triple(graph: KnowledgeGraph, rule: Rule) -> np.ndarray:
    """All triples of the head's relation, and those of the graph."""
    ids = np.arange(len(graph.entities))
    relation = bind(rule, graph).head.relation
    grid = np.stack(np.meshgrid(ids, [relation], ids, indexing="ij"), axis=-1).reshape(-1, 3)
    return np.concatenate([grid, graph.triples]).astype(np.int32)


@pytest.mark.parametrize("text", ZOO)
def test_every_animal_of_the_zoo_means_what_the_definition_says(text: str) -> None:
    engine, rule = case(text)
    check_everything(engine, rule)


@some
@given(cases())
def test_random_rules_mean_what_the_definition_says(example: tuple[KnowledgeGraph, list[Rule]]) -> None:
    graph, (rule,) = example
    check_everything(NativeEngine(graph), rule)


@some
@given(cases(most_rules=4))
def test_derivations_name_every_rule_that_derives_a_triple(example: tuple[KnowledgeGraph, list[Rule]]) -> None:
    graph, program = example
    engine = NativeEngine(graph)
    triples = np.concatenate([every_triple(graph, rule) for rule in program])
    expected = [set(brute.conclusions(rule, graph)) for rule in program]
    pairs = [
        (i, j) for i, triple in enumerate(as_tuples(triples)) for j in range(len(program)) if triple in expected[j]
    ]
    found = engine.derivations(program, triples)
    assert list(zip(found.triple.tolist(), found.rule.tolist(), strict=True)) == pairs
    assert np.flatnonzero(engine.derives(program, triples)).tolist() == sorted({i for i, _ in pairs})


@some
@given(cases())
def test_inclusion_and_exclusion_counts_the_same_as_the_direct_way(example: tuple[KnowledgeGraph, list[Rule]]) -> None:
    graph, (rule,) = example
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "COSTLY_COUNT", 0.0)
        patch.setattr(join, "_inequality_to_drop", _first_inequality)
        assert NativeEngine(graph).support(rule) == brute.support(rule, graph)


@some
@given(cases())
def test_a_projection_is_the_same_from_either_end_and_from_a_small_atom(
    example: tuple[KnowledgeGraph, list[Rule]],
) -> None:
    graph, (rule,) = example
    expected = brute.conclusions(rule, graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "MANY_STARTS", 0)
        patch.setattr(join, "SEED_RATIO", 0)
        patch.setattr(join, "COSTLY_PROJECTION", 0.0)
        assert as_tuples(NativeEngine(graph).conclusions(rule)) == expected
        for end in (0, -1):
            patch.setattr(join, "_projection_plan", partial(_plan_from, end))
            assert as_tuples(NativeEngine(graph).conclusions(rule)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "(x,R,y), (y,S,z), (z,T,w), y != w -> (x,New,w)",  # the last value depends on y
        "(x,R,y), (y,S,z), (z,T,w), (y,P,v), (v,Q,z) -> (x,New,w)",  # what hangs at z depends on y
        "(x,R,y), (y,S,z), (y,P,v), (v,Q,z) -> (x,New,z)",  # what hangs at the end depends on y
        "(x,R,y), (y,S,z), (z,T,w), (y,P,v), (v,U,w) -> (x,New,w)",
        "(x,R,y), (y,S,z), (z,T,w) -> (x,New,w)",
    ],
)
@pytest.mark.parametrize("end", [0, -1])
@pytest.mark.parametrize("turned", [False, True])
def test_a_value_is_tried_again_where_what_lies_between_matters(
    text: str, end: int, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # D is reached through B, where nothing follows, and through C, where something does; or mirrored.
    triples = [
        ("A", "R", "B"), ("A", "R", "C"), ("B", "S", "D"), ("C", "S", "D"), ("D", "T", "B"),
        ("C", "P", "E"), ("E", "Q", "D"), ("E", "U", "B"),
    ]  # fmt: skip
    if turned:
        names = dict(zip("RST", "TSR", strict=True))
        mirror = {"B": "C", "C": "B"}
        triples += [(mirror.get(o, o), names.get(r, r), mirror.get(s, s)) for s, r, o in triples]
    rule = parse_rule(text)
    graph = extend(KnowledgeGraph.from_names(triples), [rule])
    monkeypatch.setattr(join, "_projection_plan", partial(_plan_from, end))
    found = as_tuples(NativeEngine(graph).conclusions(rule))
    assert found == brute.conclusions(rule, graph)
    assert found


def _plan_from(end: int, index: RelationIndex, bound: Bound, body: Body, wanted: tuple[int, ...]) -> JoinPlan:
    return plan_projection(body.shape, body.scales, wanted)[end]


def _first_inequality(shape: BodyShape, scales: Scales, cost: float) -> tuple[int, int] | None:
    between = [pair for pair in shape.inequalities if max(pair) < shape.variables]
    return between[0] if between else None


@some
@given(cases())
def test_witnesses_under_a_limit_are_the_first_ones_without_listing_all(
    example: tuple[KnowledgeGraph, list[Rule]],
) -> None:
    graph, (rule,) = example
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "_FEW_WITNESSES", 0)
        found = NativeEngine(graph).witnesses(rule, limit=4)
    assert as_tuples(found.values) == brute.witnesses(rule, graph)[:4]


@some
@given(cases())
def test_relations_given_as_pairs_evaluate_like_those_of_a_graph(example: tuple[KnowledgeGraph, list[Rule]]) -> None:
    graph, (rule,) = example
    relations = range(len(graph.relations))
    pairs = index_of_pairs([graph.index.pairs(r) for r in relations], len(graph.entities))
    bound = bind(rule, graph)
    own = graph.index
    assert join.support(pairs, bound) == join.support(own, bound)
    assert as_tuples(join.witnesses(pairs, bound)) == as_tuples(join.witnesses(own, bound))


def test_a_shared_engine_gives_the_same_answers_as_a_new_one_for_each_rule() -> None:
    program = [parse_rule(text) for text in ZOO]
    shared = NativeEngine(extend(GRAPH, program))
    for rule in program + program[::-1]:
        own = NativeEngine(shared.graph)
        assert as_tuples(shared.conclusions(rule, new=True)) == as_tuples(own.conclusions(rule, new=True))
        assert shared.support(rule) == own.support(rule)


def test_row_pointers_that_do_not_fit_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_module, "POINTER_BYTES", 1)
    program = [parse_rule(text) for text in ZOO]
    engine = NativeEngine(extend(GRAPH, program))
    for rule in program:
        assert engine.support(rule) == brute.support(rule, engine.graph)
        assert as_tuples(engine.conclusions(rule)) == brute.conclusions(rule, engine.graph)


def test_rules_of_one_shape_share_a_plan() -> None:
    plan_projection.cache_clear()
    for names in ("R S", "S R", "T R", "S T"):
        first, second = names.split()
        rule = parse_rule(f"(x,{first},y), (y,{second},z) -> (x,R,z)")
        join.project(GRAPH.index, bind(rule, GRAPH), (0, 2), 1000)
    assert plan_projection.cache_info().misses == 1
