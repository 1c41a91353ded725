"""The DuckDB engine against the definitions, on small random graphs and rules."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.random_rules import cases, graphs

from loginfer.engine.bodies import body_texts
from loginfer.engine.duckdb import DuckDBEngine
from loginfer.errors import InputError, LimitError
from loginfer.kg import KnowledgeGraph
from loginfer.logic.canonical import canonical
from loginfer.logic.dialects.arrow import parse_pattern, parse_rule
from loginfer.logic.patterns import instantiate, patterns
from loginfer.logic.rule import Pattern, Rule

some = settings(deadline=None, max_examples=40)


def rows(array: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(row) for row in array.tolist()]


@some
@given(cases())
def test_support_and_conclusions_are_those_of_the_definition(case):
    graph, (rule,) = case
    with DuckDBEngine(graph, threads=1) as engine:
        assert engine.support(rule) == brute_force.support(rule, graph)
        assert rows(engine.conclusions(rule)) == brute_force.conclusions(rule, graph)
        assert rows(engine.conclusions(rule, new=True)) == brute_force.conclusions(rule, graph, new=True)


@some
@given(cases(), st.integers(0, 4), st.integers(0))
def test_witnesses_come_in_order_up_to_the_limit(case, limit, choice):
    graph, (rule,) = case
    with DuckDBEngine(graph, threads=1) as engine:
        expected = brute_force.witnesses(rule, graph)
        assert rows(engine.witnesses(rule).values) == expected
        assert rows(engine.witnesses(rule, limit=limit).values) == expected[:limit]
        concluded = brute_force.conclusions(rule, graph)
        if concluded:
            conclusion = concluded[choice % len(concluded)]
            expected = brute_force.witnesses(rule, graph, conclusion)
            assert rows(engine.witnesses(rule, conclusion=conclusion).values) == expected
            found = engine.witnesses(rule, limit=limit, conclusion=conclusion)
            assert found.values.shape == (min(limit, len(expected)), len(rule.variables))
            assert rows(found.values) == expected[:limit]


@some
@given(cases(most_rules=3), st.data())
def test_derives_and_derivations_say_which_rule_gives_which_triple(case, data):
    graph, rules = case
    by_rule = [brute_force.conclusions(rule, graph) for rule in rules]
    entity = st.integers(0, max(len(graph.entities) - 1, 0))
    relation = st.integers(0, len(graph.relations) - 1)
    asked = data.draw(st.lists(st.tuples(entity, relation, entity), max_size=4)) if graph.entities else []
    asked += [triple for derived in by_rule for triple in derived[::2]]
    triples = np.array(asked, dtype=np.int32).reshape(-1, 3)
    with DuckDBEngine(graph, threads=1) as engine:
        derives = engine.derives(rules, triples)
        assert derives.tolist() == [any(t in derived for derived in by_rule) for t in asked]
        found = engine.derivations(rules, triples)
        assert list(zip(found.triple.tolist(), found.rule.tolist(), strict=True)) == [
            (i, j) for i, t in enumerate(asked) for j, derived in enumerate(by_rule) if t in derived
        ]


@settings(deadline=None, max_examples=30)
@given(cases(most_rules=4))
def test_materialisation_gives_each_triple_its_first_round(case):
    graph, rules = case
    expected = brute_force.closure(rules, graph)
    with DuckDBEngine(graph, threads=1) as engine:
        found = engine.materialise(rules)
    assert rows(found.triples) == sorted(expected)
    assert found.depth.tolist() == [expected[t] for t in sorted(expected)]
    assert found.rounds == max(expected.values(), default=0)


OTHER_PATTERNS = [
    parse_pattern(text)
    for text in (
        "(x,_R,y), (y,_R,z), x != z -> (x,_S,z)",
        "(x,_R,y), (y,_S,z), (z,_T,w), x != w, y != w -> (x,_P,w)",
        "(x,type,_t), (x,_R,y), (y,type,_u) -> (y,_R,x)",
        "(x,type,_t), (x,R,<a>) -> (x,type,_u)",
        "(x,_R,y), (z,_S,w), x != z -> (x,_T,z)",
        "(x,_R,x) -> (x,_S,x)",
        "(<a>,_R,x), x != <b> -> (x,_R,<a>)",
        "(x,_R,y), (x,_S,z), (x,_T,w), y != z, y != w, z != w -> (y,_P,z)",
        "(x,R,y), (y,S,x) -> (x,_T,y)",
        "(x,_R,y), x != x -> (y,_R,x)",
    )
]


@settings(deadline=None, max_examples=30)
@given(graphs(), st.sampled_from([*patterns(), *OTHER_PATTERNS]))
def test_every_body_in_the_table_has_its_support_and_none_is_missing(graph: KnowledgeGraph, pattern: Pattern):
    with DuckDBEngine(graph, threads=1) as engine:
        table = engine.rank_bodies(pattern)
    expected = {}
    for rule in one_rule_each(pattern, graph):
        support = brute_force.support(rule, graph)
        if support:
            expected[rule.body_text] = support
    assert table.nonzero == len(table)
    ordered = sorted(expected.items(), key=lambda item: (-item[1], item[0]))
    assert list(zip(body_texts(table, graph), table.support.tolist(), strict=True)) == ordered


def one_rule_each(pattern: Pattern, graph: KnowledgeGraph) -> list[Rule]:
    """The instances of a pattern without those that lose an atom, one of each set of equal rules."""
    types, relations = graph.entities.names(graph.types), graph.relations.names(graph.rels)
    ranges = [types if pattern.is_type_template(t) else relations for t in pattern.templates]
    head = None if pattern.head_in_body else "_"
    found: dict[object, Rule] = {}
    for names in product(*ranges):
        rule = instantiate(pattern, names, head)
        if len(set(rule.atoms)) == len(set(pattern.atoms)):
            found.setdefault(canonical(rule), rule)
    return list(found.values())


@pytest.mark.parametrize(
    "text",
    [
        "(x,R,y), (z,T,w), y != w -> (x,R,z)",  # the smallest y is the only w: the next must be there
        "(x,R,y), (z,S,w), (z,S,v), y != w, y != v, w != v -> (x,R,z)",  # and the one after that
        "(x,R,y), (z,S,w), y != w -> (x,R,z)",
        "(x,R,y), (z,S,w), (u,T,v), y != w, w != v -> (x,R,u)",
        "(x,R,y), (z,S,w), y != w, y != <a> -> (x,type,<p>)",
    ],
)
def test_a_value_that_differs_from_others_is_found_whatever_their_number(text):
    names = [("p", "R", v) for v in "abc"] + [("q", "S", v) for v in "ab"] + [("r", "T", "a")]
    graph = KnowledgeGraph.from_names([*names, ("p", "type", "p")])
    rule = parse_rule(text)
    with DuckDBEngine(graph) as engine:
        assert len(engine.conclusions(rule)) == 1
        assert rows(engine.conclusions(rule)) == brute_force.conclusions(rule, graph)
        assert engine.derives([rule], engine.conclusions(rule)).all()


def chain(length: int) -> KnowledgeGraph:
    return KnowledgeGraph.from_names([(f"n{i:03}", "next", f"n{i + 1:03}") for i in range(length)])


TRANSITIVE = parse_rule("(x,next,y), (y,next,z) -> (x,next,z)")


def test_materialisation_beyond_the_rounds_allowed_is_refused():
    with DuckDBEngine(chain(8)) as engine:
        assert engine.materialise([TRANSITIVE], max_rounds=3).rounds == 3
        with pytest.raises(LimitError, match="after 2 rounds"):
            engine.materialise([TRANSITIVE], max_rounds=2)


def test_materialisation_beyond_the_triples_allowed_is_refused():
    with DuckDBEngine(chain(8)) as engine:
        assert len(engine.materialise([TRANSITIVE], max_triples=28)) == 28
        with pytest.raises(LimitError, match="more than 27 new triples"):
            engine.materialise([TRANSITIVE], max_triples=27)
        assert len(engine.materialise([TRANSITIVE])) == 28  # and nothing is left of the attempt


def test_materialisation_reports_each_round():
    seen = []
    with DuckDBEngine(chain(4)) as engine:
        engine.materialise([TRANSITIVE], progress=lambda *what: seen.append(what))
    assert seen == [("round 1", 3, None), ("round 2", 6, None)]


def test_a_product_of_two_sets_is_refused_above_the_limit():
    rule = parse_rule("(x,next,y), (z,next,w) -> (x,next,w)")
    with DuckDBEngine(chain(20), max_conclusions=399) as engine:
        with pytest.raises(LimitError, match="20 × 20 rows"):
            engine.conclusions(rule)
        with pytest.raises(LimitError, match="20 × 20 rows"):
            engine.materialise([rule])
        assert engine.support(rule) == 400
        assert engine.derives([rule], np.array([[0, 0, 20], [0, 0, 0]], dtype=np.int32)).tolist() == [True, False]
        assert len(engine.witnesses(rule, limit=3)) == 3
    with DuckDBEngine(chain(20), max_conclusions=400) as engine:
        assert len(engine.conclusions(rule)) == 400


def test_supports_beyond_64_bits_are_exact():
    graph = KnowledgeGraph.from_names([("a", "R", f"b{i}") for i in range(1000)])
    star = ", ".join(f"(x,R,y{i})" for i in range(8))
    with DuckDBEngine(graph) as engine:
        assert engine.support(parse_rule(f"{star} -> (x,R,y0)")) == 1000**8
        apart = ", ".join(f"(x{i},R,y{i})" for i in range(20))
        assert engine.support(parse_rule(f"{apart} -> (x0,R,y0)")) == 1000**20
        with pytest.raises(LimitError, match="2\\^63"):
            engine.rank_bodies(parse_pattern(", ".join(f"(x,_R,y{i})" for i in range(8)) + " -> (x,_S,y0)"))


def test_a_head_with_a_name_the_graph_does_not_have_is_refused():
    with DuckDBEngine(chain(2)) as engine:
        for ask in (engine.conclusions, lambda rule: engine.materialise([rule])):
            with pytest.raises(InputError, match="name that the graph does not have"):
                ask(parse_rule("(x,next,y) -> (x,unheard,y)"))


def test_an_interrupted_query_is_an_interrupt():
    from loginfer.engine.duckdb import translated_errors

    with pytest.raises(KeyboardInterrupt), translated_errors():
        raise RuntimeError("Query interrupted")
