"""Systems on inductive benchmarks: what they learn from train, they apply to new constants."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.faults import random_graph

from loginfer.benchmark import Benchmark, Recipe, build
from loginfer.errors import InputError
from loginfer.evaluation import evaluate
from loginfer.evaluation.ranking import rank
from loginfer.systems.interface import able_systems

RULES = ("(x,helps,y) -> (y,likes,x)", "(x,meets,y), (y,knows,z) -> (x,adores,z)")
BOUND = ("transe", "rotate", "complex", "distmult", "boxe", "r-gcn")


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    recipe = Recipe("random", rules=RULES, k2=300, negatives=("pa",), inductive=True, inductive_share=0.4)
    return build(recipe, random_graph(entities=150, triples=1600))


@pytest.mark.parametrize("system", ["exact", "contrast", "anyburl", "rulen"])
def test_mined_rules_are_applied_to_the_context_graph(benchmark, system):
    settings = {"steps": 12} if system == "anyburl" else None
    found = evaluate(benchmark, system, settings=settings, ranking=())
    assert found.metrics["balanced_accuracy"] > 0.8
    # Without the context graph nothing is known about these constants.
    blind = Benchmark(benchmark.name, benchmark.graph, benchmark.positives, benchmark.negatives)
    assert evaluate(blind, system, settings=settings, ranking=()).metrics["balanced_accuracy"] == 0.5


def test_the_oracle_is_right_and_simpbl_looks_into_the_context_graph(benchmark):
    assert evaluate(benchmark, "oracle").metrics["accuracy"] == 1
    seen = benchmark.context.triples
    involved = {(int(c), int(r)) for s, r, o in seen for c in (s, o)}
    found = evaluate(benchmark, "simpbl", ranking=(), threshold=0.5).outcome.predictions.test
    expected = [(int(s), int(r)) in involved and (int(o), int(r)) in involved for s, r, o in benchmark.positives.test]
    assert found.positive.astype(bool).tolist() == expected
    assert any(expected)


@pytest.mark.parametrize("system", BOUND)
def test_a_system_with_a_vector_for_each_constant_is_refused(benchmark, system):
    with pytest.raises(InputError, match="learns a vector for each constant") as caught:
        evaluate(benchmark, system)
    assert "exact" in caught.value.hint
    assert system not in able_systems()


def test_every_shortcut_can_be_evaluated(benchmark):
    for system in able_systems():
        if system not in ("anyburl", "rulen", "exact", "contrast", "external"):
            assert evaluate(benchmark, system, ranking=("given",)).metrics["accuracy"] is not None


def test_test_triples_are_ranked_among_the_constants_of_the_context_graph(benchmark):
    class Number:
        def score(self, triples):
            return triples[:, 0] * 1000.0 + triples[:, 2]

    wanted = set(benchmark.context.consts.tolist())
    known = {tuple(t) for t in benchmark.everything.triples.tolist()}
    (ranks,) = rank(Number(), benchmark, ranking=("filtered",), positions=("object",))
    for place, (s, r, o) in enumerate(benchmark.positives.test.tolist()):
        others = [c for c in wanted if (s, r, c) not in known]
        assert ranks.competitors[place] == len(others)
        assert ranks.above[place] == sum(c > o for c in others)


def test_an_own_system_gets_the_context_graph_but_no_test_triples(benchmark):
    class Own:
        def fit(self, seen):
            self.seen = seen
            return self

        def score(self, triples):
            return self.seen.seen.contains(triples[:, [2, 1, 0]]).astype(float)

    own = Own()
    assert evaluate(benchmark, own, ranking=()).metrics["accuracy"] is not None
    assert own.seen.context == benchmark.context
    assert not len(own.seen.positives.test)
    assert not own.seen.rules
    assert np.array_equal(own.seen.graph.triples, benchmark.graph.triples)
