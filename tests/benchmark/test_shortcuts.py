"""Shortcut baselines and the oracle, against their definitions by loops."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.benchmark.benchmark import Benchmark, NegativeSet, Splits
from loginfer.benchmark.construction.pipeline import build
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.shortcuts import (
    Adjacent,
    Cut,
    OracleScorer,
    OtherRelation,
    Popularity,
    SimpBLScorer,
    fit_cut,
    oracle_accuracy,
    visible_graph,
)
from loginfer.engine import open_engine
from loginfer.kg import KnowledgeGraph, Vocabulary
from loginfer.logic import parse_rule

ENTITIES, RELATIONS = 5, 3
EVERY = np.array(list(itertools.product(range(ENTITIES), range(RELATIONS), range(ENTITIES))), dtype=np.int32)


def graph_of(triples: list[tuple[int, int, int]]) -> KnowledgeGraph:
    entities = Vocabulary.of(f"e{i}" for i in range(ENTITIES))
    relations = Vocabulary.of(f"rel{i}" for i in range(RELATIONS))
    rows = np.array(triples, dtype=np.int32).reshape(-1, 3)
    return KnowledgeGraph(entities, relations, rows, type_predicate="")


graphs = st.lists(
    st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)),
    max_size=20,
    unique=True,
)


@given(graphs)
@settings(max_examples=60)
def test_scores_are_those_of_the_definitions(triples):
    graph = graph_of(triples)
    known = set(triples)
    involved = {(e, r) for s, r, o in known for e in (s, o)}
    expected = {
        partial(Popularity, column=0): lambda s, r, o: sum(s in (x, y) for x, _, y in known),
        partial(Popularity, column=2): lambda s, r, o: sum(o in (x, y) for x, _, y in known),
        Adjacent: lambda s, r, o: any({(s, q, o), (o, q, s)} & known for q in range(RELATIONS)),
        OtherRelation: lambda s, r, o: any((s, q, o) in known for q in range(RELATIONS) if q != r),
    }
    for baseline, score in expected.items():
        assert baseline(graph).score(EVERY).tolist() == [float(score(*row)) for row in EVERY.tolist()]
    simpbl = SimpBLScorer(graph.triples, RELATIONS).score(EVERY)
    assert simpbl.tolist() == [float((s, r) in involved and (o, r) in involved) for s, r, o in EVERY.tolist()]


numbers = st.lists(st.integers(0, 4).map(float), max_size=12)


@given(numbers, numbers)
def test_no_cut_is_better_than_the_fitted_one(positive, negative):
    if not positive and not negative:
        return
    p, n = np.array(positive), np.array(negative)

    def right(cut: Cut) -> Fraction:
        true, false = int(cut.predict(p).sum()), len(n) - int(cut.predict(n).sum())
        return Fraction(true, len(p) or 1) + Fraction(false, len(n) or 1)

    best = max(right(Cut(t - 0.5, turned)) for t in range(6) for turned in (False, True))
    fitted = fit_cut(p, n)
    assert right(fitted) == best
    if fitted.reversed:
        assert max(right(Cut(t - 0.5)) for t in range(6)) < best


def test_a_cut_lies_halfway_between_scores():
    assert fit_cut(np.array([3.0, 5.0]), np.array([0.0, 1.0])) == Cut(2.0)
    assert fit_cut(np.array([0.0]), np.array([1.0, 1.0])) == Cut(0.5, reversed=True)
    with pytest.raises(ValueError, match="no scores"):
        fit_cut(np.array([]), np.array([]))


def rows(*triples: tuple[int, int, int]) -> np.ndarray:
    return np.array(sorted(triples), dtype=np.int32).reshape(-1, 3)


def test_adjacency_looks_into_the_graph_and_not_at_conclusions():
    names = [(f"e{i}", "likes", f"e{i + 1}") for i in range(40)]
    graph = KnowledgeGraph.from_names([*names, ("e0", "knows", "e5")], type_predicate="")
    rule = "(x,likes,y), (y,likes,z) -> (x,knows,z)"
    made = build(Recipe("path", rules=(rule,), k2=30, negatives=("pa",)), graph)
    concluded = made.provenance.triples[made.provenance.split == 0]
    assert len(concluded) == 24
    assert not Adjacent(visible_graph(made)).score(concluded).any()


def test_the_oracle_predicts_what_the_rules_derive_from_training():
    graph = graph_of([(0, 0, 1), (1, 0, 2), (2, 0, 3)])
    rule = parse_rule("(x,rel0,y), (y,rel0,z) -> (x,rel1,z)")
    oracle = OracleScorer(open_engine(graph), [rule])
    positives = Splits(graph.triples, rows(), rows((0, 1, 2), (0, 1, 3)))
    made = Benchmark(
        "made up", graph, positives, {"given": NegativeSet("given", Splits(rows(), rows(), rows((1, 1, 3))))}
    )
    assert oracle.score(positives.test).tolist() == [1.0, 0.0]
    assert oracle_accuracy(oracle, made, "given") == {
        "accuracy": 1 / 3, "recall": 0.5, "false_positive_rate": 1.0,
    }  # fmt: skip
