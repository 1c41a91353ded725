"""The oracle: it knows the rules, and predicts what they derive from P_train in one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.values import Benchmark
from loginfer.engine import Engine
from loginfer.kg import Triples
from loginfer.logic.rule import Rule

__all__ = ["Oracle", "oracle_accuracy"]


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


def oracle_accuracy(oracle: Oracle, benchmark: Benchmark, method: str) -> dict[str, Any]:
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
