"""Samples of conclusions in hash order: the same on every engine, and as the definition says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.random_rules import cases

from loginfer.engine import extend, open_engine
from loginfer.engine.duckdb import DuckDBEngine, DuckDBSession, SlicedEngine, divided
from loginfer.engine.native.engine import first_of_parts
from loginfer.engine.sql.queries import hashed
from loginfer.engine.sql.session import StoredGraph
from loginfer.kg.graph import TripleKeys
from loginfer.randomness import hash_order, mixed


@given(keys=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=50, unique=True), salt=st.integers(0, 2**64 - 1))
@settings(max_examples=60, deadline=None)
def test_duckdb_hashes_as_we_do(keys, salt):
    session = DuckDBSession()
    try:
        known = np.array(keys, dtype=np.int64)
        session.load("keys", {"k": known})
        found = session.columns(
            f"SELECT k, h FROM ({hashed('SELECT k FROM keys', 'k', salt, session.dialect)}) ORDER BY h"
        )
    finally:
        session.close()
    assert np.array_equal(found[0], known[hash_order(known, salt)])
    want = mixed(mixed(found[0].astype(np.uint64)) ^ np.uint64(salt))
    assert np.array_equal(found[1].astype(np.uint64), want)


@pytest.mark.parametrize("engine", ["native", "duckdb"])
@given(case=cases(most_rules=2), salt=st.integers(0, 2**64 - 1), count=st.integers(0, 12))
@settings(max_examples=25, deadline=None)
def test_a_sample_is_the_first_of_all_new_conclusions_in_hash_order(engine, case, salt, count):
    graph, rules = case
    made = open_engine(extend(graph, rules), engine)
    for rule in rules:
        every = made.graph.keys.pack(made.conclusions(rule, new=True))
        total, keys = made.sample_conclusions(rule, salt, count)
        assert total == len(every)
        assert np.array_equal(keys, every[hash_order(every, salt, count)])


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_a_sample_of_many_parts_is_that_of_all_together(count):
    rng = np.random.default_rng(3)
    packing = TripleKeys(40, 5)
    keys = rng.permutation(40 * 5 * 40)[:3000]
    parts = [packing.unpack(part) for part in np.array_split(keys, 9)]
    total, first = first_of_parts(parts, packing, 11, count)
    assert total == len(keys)
    assert np.array_equal(first, keys[hash_order(keys, 11, count)])


@pytest.mark.parametrize("rows", [0, 3, 10**6])
@given(case=cases(most_rules=3), salt=st.integers(0, 2**64 - 1))
@settings(max_examples=20, deadline=None)
def test_slices_of_any_size_answer_as_the_whole_graph_does(rows, case, salt):
    graph, rules = case
    whole = open_engine(extend(graph, rules))
    with DuckDBEngine(whole.graph) as stored:
        session = stored._session
        kept = StoredGraph(session, whole.graph.entities, whole.graph.relations, whole.graph.type_predicate)
        sliced = SlicedEngine(kept, session, slice_rows=rows)
        if len(whole.graph):
            needed = sliced._rows(sliced._relations(rules[:1]))
            assert (sliced._slice_engine(rules[:1]) is None) == (rows == 0 or needed > rows)
        asked = np.vstack([whole.graph.triples, *(whole.conclusions(rule) for rule in rules)])
        assert np.array_equal(sliced.derives(rules, asked), whole.derives(rules, asked))
        found, expected = (engine.derivations(rules, asked) for engine in (sliced, whole))
        assert np.array_equal(found.triple, expected.triple)
        assert np.array_equal(found.rule, expected.rule)
        derived = sliced.derived(rules, kept)
        assert np.array_equal(derived.triples, whole.derived(rules, whole.graph).triples)
        for rule in rules:
            found, expected = (e.sample_conclusions(rule, salt, 5) for e in (sliced, whole))
            assert found[0] == expected[0]
            assert np.array_equal(found[1], expected[1])
            triples = whole.conclusions(rule)[:5]
            assert np.array_equal(sliced.first_witnesses(rule, triples), whole.first_witnesses(rule, triples))


@pytest.mark.parametrize(
    ("given_", "own", "rows"),
    [("4GB", "2000000KB", 41_666_666), ("1GiB", "536870KB", 11_184_810), ("a lot", "a lot", 0)],
)
def test_memory_is_divided_between_duckdb_and_slices(given_, own, rows):
    assert divided(given_) == (own, rows)


@given(case=cases(most_rules=3))
@settings(max_examples=25, deadline=None)
def test_what_rules_derive_of_another_graph_is_the_same_on_both_engines(case):
    graph, rules = case
    found = []
    for engine in ("native", "duckdb"):
        made = open_engine(extend(graph, rules), engine)
        whole = made.graph
        other = whole.with_more(whole.triples[:, [2, 1, 0]]) if whole.type_relation is None else whole
        derived = made.derived(rules, other)
        assert np.array_equal(derived.triples, other.triples[made.derives(rules, other.triples)])
        found.append(derived.triples)
    assert np.array_equal(*found)
