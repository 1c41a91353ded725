"""Classification metrics of many groups of triples at once.

The same figures as `classification`, for hundreds of groups in the time that scikit-learn needs for one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.evaluation.classification import COUNTS, METRICS
from loginfer.evaluation.values import Counts, Scores

__all__ = ["Rows", "group_metrics"]

Mask = npt.NDArray[np.bool_]
Fractions = npt.NDArray[np.float64]


class Rows:
    """Labelled triples with scores and predictions: the positives first, then the negatives.

    Parameters
    ----------
    positive, negative
        float64[|P|], float64[|N|]: the confidences.
    predicted_positive, predicted_negative
        bool[|P|], bool[|N|]: which of them are predicted.
    """

    def __init__(
        self, positive: Scores, negative: Scores, predicted_positive: Mask, predicted_negative: Mask
    ) -> None:
        self.positives = len(positive)
        self.negatives = len(negative)
        self.scores: Scores = np.concatenate([positive, negative])
        self.predicted: Mask = np.concatenate([predicted_positive, predicted_negative])
        self.true: Mask = np.arange(len(self.scores)) < self.positives
        # Scores by their places among all scores: whole numbers sort faster, and equal ones stay equal.
        self.places: Counts = np.unique(self.scores, return_inverse=True)[1].ravel().astype(np.int64)

    def __len__(self) -> int:
        return len(self.scores)


def group_metrics(rows: Rows, group: Counts, row: Counts, size: int) -> list[dict[str, Any]]:
    """Return the metrics and counts of each group.

    Parameters
    ----------
    rows
        The triples.
    group, row
        int64[m], int64[m]: which group has which row. A row may be in several groups, once in each.
    size
        How many groups there are.

    Returns
    -------
    list
        For each group the keys of `METRICS`, then those of `COUNTS`; None for what is not defined (see
        `classification`).
    """
    true, said = rows.true[row], rows.predicted[row]
    counts = {
        "tp": _count(group[true & said], size),
        "fp": _count(group[~true & said], size),
        "tn": _count(group[~true & ~said], size),
        "fn": _count(group[true & ~said], size),
    }
    tp, fp, tn, fn = counts.values()
    positives, negatives = tp + fn, tn + fp
    recall = _share(tp, positives)
    roc_auc, average_precision = _curves(group, rows.places[row], true, size)
    found = {
        "roc_auc": roc_auc,
        "balanced_accuracy": (recall + _share(tn, negatives)) / 2,
        "accuracy": _share(tp + tn, positives + negatives),
        "f1": _share(2 * tp, positives + tp + fp, positives > 0),
        "precision": np.where(positives > 0, np.nan_to_num(_share(tp, tp + fp)), np.nan),
        "recall": recall,
        "average_precision": average_precision,
    }
    columns: list[list[Any]] = [_nones(found[name]) for name in METRICS]
    columns += [counts[name].tolist() for name in COUNTS]
    return [dict(zip((*METRICS, *COUNTS), values, strict=True)) for values in zip(*columns, strict=True)]


def _curves(group: Counts, places: Counts, true: Mask, size: int) -> tuple[Fractions, Fractions]:
    """Return ROC AUC and average precision of each group; NaN where they are not defined.

    ROC AUC is the share of pairs of a positive and a negative that are in the right order, ties counting half
    (Mann-Whitney); average precision the mean over the positives of the precision at their score.
    """
    order = np.lexsort((-places, group))
    group, places, true = group[order], places[order], true[order]
    start = np.ones(len(group), dtype=bool)  # of a block: equal scores in one group
    start[1:] = (group[1:] != group[:-1]) | (places[1:] != places[:-1])
    firsts = np.flatnonzero(start)
    if not len(firsts):
        return np.full(size, np.nan), np.full(size, np.nan)
    owner = group[firsts]
    p = np.add.reduceat(true.astype(np.int64), firsts)
    n = np.add.reduceat((~true).astype(np.int64), firsts)
    positives, negatives = (_sum(owner, part, size) for part in (p, n))
    p_from, n_from = _from(owner, p, positives), _from(owner, n, negatives)
    below = negatives[owner] - n_from
    doubled = _sum(owner, p * (2 * below + n), size)
    roc_auc = _share(doubled, 2 * positives * negatives)
    precision = p * (p_from / (p_from + n_from))
    return roc_auc, _share(np.bincount(owner, weights=precision, minlength=size), positives)


def _from(owner: Counts, part: Counts, total: Counts) -> Counts:
    """Return how many there are in each block and in the blocks of the same group with higher scores."""
    before = np.cumsum(total) - total
    return np.asarray(np.cumsum(part) - before[owner])


def _count(group: Counts, size: int) -> Counts:
    return np.bincount(group, minlength=size).astype(np.int64)


def _sum(group: Counts, values: Counts, size: int) -> Counts:
    """Return the sum of whole numbers in each group, exactly."""
    found = np.zeros(size, dtype=np.int64)
    np.add.at(found, group, values)
    return found


def _share(part: npt.NDArray[Any], whole: Counts, defined: Mask | None = None) -> Fractions:
    """Return part / whole; NaN where the whole is empty."""
    found = np.full(len(whole), np.nan)
    np.divide(part, whole, out=found, where=(whole > 0) if defined is None else defined)
    return found


def _nones(values: Fractions) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
