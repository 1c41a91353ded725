"""The oracle: it knows the rules, and predicts what they derive from P_train."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.rounds import everything_entailed
from loginfer.benchmark.values import Benchmark
from loginfer.engine import Engine
from loginfer.kg import Triples
from loginfer.logic.rule import Rule

__all__ = ["DeepOracle", "Oracle", "oracle_accuracy", "oracle_of"]


def oracle_of(benchmark: Benchmark, engine: Engine, rules: Sequence[Rule]) -> Oracle | DeepOracle:
    """Return the oracle of a benchmark: where conclusions follow in several steps, it takes them all.

    Parameters
    ----------
    benchmark
        The benchmark.
    engine, rules
        As for `Oracle`.
    """
    if benchmark.recipe is None or benchmark.depth == 1:
        return Oracle(engine, rules)
    return DeepOracle(engine, rules, benchmark.recipe.max_triples)


class DeepOracle:
    """Scores 1 for triples of M_R(P_train), 0 for others.

    Parameters
    ----------
    engine, rules
        As for `Oracle`.
    max_triples
        Give up when more triples follow.
    """

    def __init__(self, engine: Engine, rules: Sequence[Rule], max_triples: int) -> None:
        graph = engine.graph
        closure = everything_entailed(engine, rules, max_triples)
        self._true = graph.with_triples(np.vstack([graph.triples, closure.triples]))

    def scores(self, triples: Triples) -> npt.NDArray[np.float64]:
        """Return 1 for triples that follow, 0 for others."""
        return self._true.contains(triples).astype(np.float64)


class Oracle:
    """Scores 1 for triples of T_R(P_train), 0 for others.

    Parameters
    ----------
    engine
        An engine over P_train, whose vocabularies hold every name of the rules' heads.
    rules
        R.
    """

    def __init__(self, engine: Engine, rules: Sequence[Rule]) -> None:
        self._engine = engine
        self._rules = tuple(rules)

    def scores(self, triples: Triples) -> npt.NDArray[np.float64]:
        """Return 1 for triples that the rules derive, 0 for others."""
        return self._engine.derives(self._rules, triples).astype(np.float64)


def oracle_accuracy(oracle: Oracle | DeepOracle, benchmark: Benchmark, method: str) -> dict[str, Any]:
    """Return how well the oracle does on test with one method's negatives.

    Returns
    -------
    dict
        `accuracy`, `recall` and `false_positive_rate`; None for a figure that has no triples.
    """
    positives = oracle.scores(benchmark.positives.test)
    negatives = oracle.scores(benchmark.negatives[method].splits.test)
    size = len(positives) + len(negatives)
    right = int(positives.sum()) + len(negatives) - int(negatives.sum())
    return {
        "accuracy": right / size if size else None,
        "recall": float(positives.mean()) if len(positives) else None,
        "false_positive_rate": float(negatives.mean()) if len(negatives) else None,
    }
