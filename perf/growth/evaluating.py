"""Evaluating: classification of valid and test, and test triples ranked against all constants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perf.growth.building import benchmark_folder
from perf.growth.meter import metered
from perf.growth.training import DIMENSION, MODEL

__all__ = ["RANKED", "classify", "rank_test"]

RANKED = 1000


def classify(folder: str) -> Any:
    """Prepare a benchmark and a model; scores, threshold and metrics are measured."""
    from loginfer.evaluation.metrics import MetricOptions, measure
    from loginfer.evaluation.predictions import predict

    known, scorer = _prepared(folder)
    wanted = MetricOptions(protocols=(), diagnosis=False)

    def call() -> Any:
        return measure(known, predict(scorer, known, "pa"), [], wanted, notes=[])

    test = len(known.positives.test) + len(known.negatives["pa"].splits.test)
    return metered(call, lambda _: {"triples": test})


def rank_test(folder: str) -> Any:
    """Prepare as above; each call starts without what is derived from the benchmark."""
    import numpy as np

    from loginfer.evaluation.ranking import rank

    known, scorer = _prepared(folder)
    test = known.positives.test
    chosen = np.sort(np.random.default_rng(0).permutation(len(test))[:RANKED])
    positives = replace(known.positives, test=test[chosen])

    def call() -> Any:
        fresh = replace(known, positives=positives, graph=known.graph.with_triples(known.graph.triples))
        return rank(scorer, fresh, ranking=["filtered"], positions=["subject", "object"])

    return metered(call, lambda found: {"queries": sum(len(ranks.places) for ranks in found)})


def _prepared(folder: str) -> tuple[Any, Any]:
    """Return a benchmark and a model with random weights, which cost as much as learned ones."""
    import numpy as np

    from loginfer import load_benchmark
    from loginfer.systems import find_system

    known = load_benchmark(benchmark_folder(folder))
    random = np.random.default_rng(0)
    sizes = {"entities": len(known.graph.entities), "relations": len(known.graph.relations)}
    weights = {name: random.standard_normal((size, DIMENSION), dtype=np.float32) for name, size in sizes.items()}
    return known, find_system(MODEL).load()(dimension=DIMENSION).restore(known, weights)
