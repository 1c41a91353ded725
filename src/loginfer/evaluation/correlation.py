"""How far a system's scores follow the shortcut baselines of the audit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.shortcuts import SHORTCUTS, shortcut, shortcut_accuracies
from loginfer.benchmark.values import Benchmark
from loginfer.evaluation.values import Predictions, Scores

__all__ = ["baseline_correlations", "spearman"]


def baseline_correlations(benchmark: Benchmark, predictions: Predictions) -> dict[str, dict[str, Any]]:
    """Compare the scores of P_test and N_test with those of each shortcut baseline.

    On a benchmark that a baseline solves, a perfect system follows it, too. Whether it does so within the
    positives and within the negatives says more, where the baseline tells those apart.

    Returns
    -------
    dict
        For each baseline, as JSON values: `correlation`, `within_positives` and `within_negatives`
        (Spearman's ρ; None where one of the two is constant) and the `accuracy` of the baseline itself on
        test (None if it cannot be fitted, for want of valid). Empty without negatives.
    """
    method = predictions.method
    if method is None:
        return {}
    positives, negatives = benchmark.positives.test, benchmark.negatives[method].splits.test
    own = predictions.test
    accuracies = shortcut_accuracies(benchmark, method)
    found = {}
    for name in SHORTCUTS:
        baseline = shortcut(name, benchmark, method)
        true, false = baseline.scores(positives), baseline.scores(negatives)
        everything = np.concatenate([own.positive, own.negative])
        found[name] = {
            "correlation": spearman(everything, np.concatenate([true, false])),
            "within_positives": spearman(own.positive, true),
            "within_negatives": spearman(own.negative, false),
            "accuracy": accuracies[name]["accuracy"] if name in accuracies else None,
        }
    return found


def spearman(a: Scores, b: Scores) -> float | None:
    """Return Spearman's rank correlation, equal values sharing their mean rank; None if one is constant."""
    if not len(a):
        return None
    x, y = _centred_ranks(a), _centred_ranks(b)
    spread = float(x @ x) * float(y @ y)
    if not spread:
        return None
    return float(np.clip(float(x @ y) / np.sqrt(spread), -1, 1))


def _centred_ranks(values: Scores) -> npt.NDArray[np.float64]:
    """Return twice the mean ranks, less their mean: whole numbers, so that constant values give zeros."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    doubled = 2 * np.cumsum(count) - count
    return np.asarray((doubled[place.ravel()] - len(values)).astype(np.float64))
