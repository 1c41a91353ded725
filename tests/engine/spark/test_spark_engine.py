"""The Spark engine against the definitions and the other engines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from tests.support import brute_force
from tests.support.random_rules import cases, graphs

from loginfer.engine import extend, open_engine
from loginfer.engine.duckdb import DuckDBEngine
from loginfer.engine.native.engine import NativeEngine
from loginfer.engine.sql.queries import hashed
from loginfer.errors import InputError, LimitError
from loginfer.kg import KnowledgeGraph, generate_lubm, load_graph
from loginfer.logic.dialects.arrow import parse_pattern, parse_rule
from loginfer.logic.patterns import patterns
from loginfer.logic.rule_files import read_rules
from loginfer.randomness import hash_order

pytestmark = pytest.mark.usefixtures("spark")

# A query takes Spark a tenth of a second whatever it is about; a case has dozens.
few = settings(deadline=None, max_examples=3, phases=[Phase.explicit, Phase.generate])

TYPED = parse_pattern("(x,type,_t), (x,_R,y), (y,type,_u) -> (y,_R,x)")
UNLESS = parse_pattern("(x,_R,y), (y,_S,z), not (x,_T,z) -> (x,_P,z)")


def rows(array: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(row) for row in array.tolist()]


def spark_engine(graph: KnowledgeGraph, **options):
    return open_engine(graph, "spark", **options)


@few
@given(cases())
def test_support_conclusions_and_witnesses_are_those_of_the_definition(case):
    graph, (rule,) = case
    expected = brute_force.witnesses(rule, graph)
    concluded = brute_force.conclusions(rule, graph)
    with spark_engine(graph) as engine:
        assert engine.support(rule) == len(expected)
        found = engine.conclusions(rule)
        assert found.dtype == np.int32
        assert rows(found) == concluded
        assert rows(engine.conclusions(rule, new=True)) == brute_force.conclusions(rule, graph, new=True)
        assert rows(engine.witnesses(rule).values) == expected
        assert rows(engine.witnesses(rule, limit=2).values) == expected[:2]
        if concluded:
            last = concluded[-1]
            wanted = brute_force.witnesses(rule, graph, last)
            assert rows(engine.witnesses(rule, conclusion=last).values) == wanted


@few
@given(cases(most_rules=3))
def test_derivations_first_witnesses_and_projections_are_those_of_the_native_engine(case):
    graph, rules = case
    native = NativeEngine(graph)
    asked = np.concatenate([graph.triples, *(native.conclusions(rule) for rule in rules)])
    with spark_engine(graph) as engine:
        expected, found = native.derivations(rules, asked), engine.derivations(rules, asked)
        assert found.triple.tolist() == expected.triple.tolist()
        assert found.rule.tolist() == expected.rule.tolist()
        first = engine.first_witnesses(rules[0], asked)
        assert first.dtype == np.int32
        assert np.array_equal(first, native.first_witnesses(rules[0], asked))
        for ours, theirs in zip(engine.projection(rules[0]).pairs(), native.projection(rules[0]).pairs(), strict=True):
            assert ours.dtype == np.int32
            assert np.array_equal(ours, theirs)


@settings(few, max_examples=3)
@given(cases(most_rules=3))
def test_materialisation_gives_each_triple_its_first_round(case):
    graph, rules = case
    expected = brute_force.closure(rules, graph)
    with spark_engine(graph) as engine:
        found = engine.materialise(rules)
    assert rows(found.triples) == sorted(expected)
    assert found.depth.tolist() == [expected[t] for t in sorted(expected)]
    assert found.rounds == max(expected.values(), default=0)


@settings(few, max_examples=1)
@given(graphs(most=40))
def test_every_pattern_has_the_same_table_as_elsewhere(graph):
    native = NativeEngine(graph)
    with spark_engine(graph) as engine:
        for pattern in [*patterns(), TYPED, UNLESS]:
            assert_same_table(engine.rank_bodies(pattern), native.rank_bodies(pattern))


def assert_same_table(found, expected):
    assert found.predicates.dtype == expected.predicates.dtype
    assert found.support.dtype == expected.support.dtype
    assert np.array_equal(found.support, expected.support)
    assert np.array_equal(found.predicates, expected.predicates)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["lubm", "wn18rr"])
def test_all_tables_of_real_graphs_are_the_same(name, data_folder):
    graph = generate_lubm() if name == "lubm" else load_graph(name)
    native = NativeEngine(graph)
    with spark_engine(graph) as engine:
        for key, value in (
            ("spark.sql.shuffle.partitions", "2"),
            ("spark.sql.codegen.wholeStage", "true"),
            ("spark.sql.codegen.factoryMode", "FALLBACK"),
            ("spark.sql.adaptive.enabled", "true"),
        ):
            engine._session.spark.conf.set(key, value)
        for pattern in patterns():
            assert_same_table(engine.rank_bodies(pattern), native.rank_bodies(pattern))


def test_strata_are_closed_one_after_the_other():
    graph = KnowledgeGraph.from_names(
        [("a", "next", "b"), ("b", "next", "c"), ("c", "next", "d"), ("d", "type", "End")]
    )
    rules = [
        parse_rule("(x,next,y) -> (x,before,y)"),
        parse_rule("(x,before,y), (y,next,z) -> (x,before,z)"),
        parse_rule("(x,next,y), not (x,before,<d>) -> (x,type,Lost)"),
        parse_rule("(x,next,y), not (y,next,n) -> (y,type,Last)"),
    ]
    graph = extend(graph, rules)
    expected = NativeEngine(graph).materialise(rules)
    with spark_engine(graph) as engine, DuckDBEngine(graph) as duckdb:
        found = engine.materialise(rules)
        other = duckdb.materialise(rules)
    assert len(found) == 7
    for one in (expected, other):
        assert np.array_equal(found.triples, one.triples)
        assert np.array_equal(found.depth, one.depth)
        assert found.rounds == one.rounds


def test_rules_of_lubm_conclude_the_same_on_its_graph():
    rules = [rule for rule in read_rules("lubm-107").program if len(rule.body) > 1][:2]
    graph = extend(generate_lubm(), rules)
    native = NativeEngine(graph)
    with spark_engine(graph) as engine:
        for rule in rules:
            expected = native.conclusions(rule, new=True)
            assert np.array_equal(engine.conclusions(rule, new=True), expected)


def test_samples_are_taken_in_the_order_of_the_hashes():
    graph = KnowledgeGraph.from_names([(f"a{i}", "R", f"b{i % 7}") for i in range(60)])
    rule = parse_rule("(x,R,y), (z,R,y), x != z -> (x,R,z)")
    native = NativeEngine(graph)
    with spark_engine(graph) as engine:
        for salt in (0, 2**64 - 1):
            total, keys = engine.sample_conclusions(rule, salt, 9)
            expected = native.sample_conclusions(rule, salt, 9)
            assert total == expected[0] > 9
            assert keys.tolist() == expected[1].tolist()
        keys = np.array([0, 1, 2**32 - 1, 2**32, 2**62 + 12345, 2**63 - 1], dtype=np.int64)
        engine._session.load("keys", {"k": keys})
        ordered = hashed("SELECT k FROM keys", "k", 2**63 + 1, engine._session.dialect)
        (found,) = engine._session.columns(f"SELECT k FROM ({ordered}) AS q ORDER BY h")
        assert found.tolist() == keys[hash_order(keys, 2**63 + 1)].tolist()


def test_supports_of_up_to_38_digits_are_exact_and_larger_ones_refused():
    graph = KnowledgeGraph.from_names([("a", "R", f"b{i}") for i in range(1000)])
    with spark_engine(graph) as engine:

        def star(width):
            return ", ".join(f"(x,R,y{i})" for i in range(width)) + " -> (x,R,y0)"

        assert engine.support(parse_rule(star(8))) == 1000**8
        with pytest.raises(LimitError, match="38 digits"):
            engine.support(parse_rule(star(13)))
        with pytest.raises(LimitError, match="2\\^63"):
            engine.rank_bodies(parse_pattern(star(8).replace("R", "_R")))


def test_a_product_of_two_sets_is_refused_above_the_limit():
    graph = KnowledgeGraph.from_names([(f"n{i:02}", "next", f"n{i + 1:02}") for i in range(20)])
    rule = parse_rule("(x,next,y), (z,next,w) -> (x,next,w)")
    with spark_engine(graph, max_conclusions=399) as engine:
        with pytest.raises(LimitError, match="20 × 20 rows"):
            engine.conclusions(rule)
        with pytest.raises(InputError, match="name that the graph does not have"):
            engine.conclusions(parse_rule("(x,next,y) -> (x,unheard,y)"))


def test_long_arrays_are_loaded_and_streamed_in_parts(monkeypatch):
    monkeypatch.setattr("loginfer.engine.spark.session.SENT_ALONG", 10)
    monkeypatch.setattr("loginfer.engine.spark.session.AT_A_TIME", 40)
    monkeypatch.setattr("loginfer.engine.spark.session.STREAMED", 30)
    graph = KnowledgeGraph.from_names([(f"a{i:02}", f"r{i % 3}", f"b{i % 7}") for i in range(100)])
    with spark_engine(graph) as engine:
        database = engine._session
        database.spark.conf.set("spark.sql.shuffle.partitions", "3")
        blocks = list(database.stream("SELECT s, r, o FROM triples ORDER BY s, r, o"))
        assert len(blocks) >= 4
        assert max(len(block[0]) for block in blocks) <= 30
        assert np.array_equal(np.concatenate([np.stack(b, axis=1) for b in blocks]), graph.triples)
