"""All shortcuts at once: what somebody could reach who knows no rule and combines what they see.

The features of a triple (x, R, y) are the scores of the shortcuts, and adjacency by direction. A logistic
model over them, their squares and products is fitted on P_valid and N_valid. Then each relation with enough
labelled triples gets a linear correction of its own: a constant may be popular for one relation and not for
another. No rule is looked at, and no pair of relations.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import member
from loginfer.benchmark.shortcut_rules import Decisions, balanced, shortcut_decisions
from loginfer.benchmark.shortcuts import SHORTCUTS, fit_cut, shortcut
from loginfer.benchmark.values import Benchmark
from loginfer.kg import Triples
from loginfer.kg.triples import distinct_keys

__all__ = ["COMBINED", "balanced_accuracies", "combined_decisions"]

# How the tables call it.
COMBINED = "combined"

# A relation with fewer labelled triples in valid has no correction of its own.
LEAST = 30
# How strongly weights are drawn to 0, in triples: of the common model, of a relation's correction.
RIDGE, RIDGE_OF_RELATION = 1.0, 5.0
# Steps of Newton's method; far more than it needs with these penalties.
STEPS = 30

Floats = npt.NDArray[np.float64]


def balanced_accuracies(benchmark: Benchmark, method: str) -> dict[str, float]:
    """Return the balanced accuracy on test of every shortcut and of all of them combined.

    Nothing without test; without valid only shortcuts that need no fitting.
    """
    decisions = shortcut_decisions(benchmark, method)
    together = combined_decisions(benchmark, method)
    if together is not None:
        decisions[COMBINED] = together
    return {name: balanced(said) for name, said in decisions.items()}


def combined_decisions(benchmark: Benchmark, method: str) -> Decisions | None:
    """Return what the combined shortcut says about test; None without valid or without test.

    Parameters
    ----------
    benchmark
        The benchmark.
    method
        Whose negatives.
    """
    positives, negatives = benchmark.positives, benchmark.negatives[method].splits
    sets = (positives.valid, negatives.valid, positives.test, negatives.test)
    if not all(len(triples) for triples in sets):
        return None
    triples = np.vstack(sets)
    labelled = len(positives.valid) + len(negatives.valid)
    truth = (np.arange(labelled) < len(positives.valid)).astype(np.float64)
    features = _standardised(_features(benchmark, method, triples), labelled)
    scores = _fitted(_with_products(features), truth, np.zeros(len(triples)), RIDGE)
    relations, of = np.unique(triples[:, 1], return_inverse=True)
    linear = np.column_stack([np.ones(len(triples)), features])
    for relation in range(len(relations)):
        mine = np.flatnonzero(of.ravel() == relation)
        known = mine[mine < labelled]
        if len(known) >= LEAST:
            scores[mine] = _fitted(linear[mine], truth[known], scores[mine], RIDGE_OF_RELATION)
    cut = fit_cut(scores[:labelled][truth == 1], scores[:labelled][truth == 0])
    said = cut.predict(scores[labelled:])
    return Decisions(said[: len(positives.test)], said[len(positives.test) :])


def _features(benchmark: Benchmark, method: str, triples: Triples) -> Floats:
    """Return float64[n, f]: the scores of all shortcuts, popularity by its logarithm, and two directions."""
    columns = []
    for name in SHORTCUTS:
        scores = shortcut(name, benchmark, method).scores(triples)
        columns.append(np.log1p(scores) if name.endswith("popularity") else scores)
    kg = benchmark.graph if benchmark.kg is None else benchmark.kg
    size = len(kg.entities)
    pairs = distinct_keys(kg.triples[:, 0].astype(np.int64) * size + kg.triples[:, 2])
    for first, second in ((0, 2), (2, 0)):
        found = member(pairs, triples[:, first].astype(np.int64) * size + triples[:, second])
        columns.append(found.astype(np.float64))
    return np.column_stack(columns)


def _standardised(features: Floats, labelled: int) -> Floats:
    """Return features with mean 0 and deviation 1 on the labelled triples; constant ones become 0."""
    mean, spread = features[:labelled].mean(axis=0), features[:labelled].std(axis=0)
    return np.asarray((features - mean) / np.where(spread > 0, spread, np.inf))


def _with_products(features: Floats) -> Floats:
    first, second = np.triu_indices(features.shape[1])
    return np.column_stack([np.ones(len(features)), features, features[:, first] * features[:, second]])


def _fitted(columns: Floats, truth: Floats, offset: Floats, ridge: float) -> Floats:
    """Fit a logistic model on the first triples, whose truth is known, and return all log odds.

    Parameters
    ----------
    columns
        float64[n, c], those with a known truth first.
    truth
        float64[m]: 1 or 0.
    offset
        float64[n]: log odds to start from, which the model corrects.
    ridge
        The penalty of squared weights.
    """
    known, start = columns[: len(truth)], offset[: len(truth)]
    weights = np.zeros(columns.shape[1])
    for _ in range(STEPS):
        odds = np.clip(known @ weights + start, -30, 30)
        share = 1 / (1 + np.exp(-odds))
        slope = known.T @ (truth - share) - ridge * weights
        curve = (known * (share * (1 - share))[:, None]).T @ known + ridge * np.eye(len(weights))
        step = np.linalg.solve(curve, slope)
        # A step that overshoots is damped: the penalised likelihood then never falls for long.
        weights += step / max(1.0, float(np.abs(step).max()) / 5)
        if np.abs(step).max() < 1e-8:
            break
    return np.asarray(np.clip(columns @ weights + offset, -60, 60))
