"""ROC and precision-recall curves: exact, then with as few points as a plot can show.

Both are computed from all scores. Their areas are those of the exact curves: what `roc_auc` and
`average_precision` of a run say. For the plot, points are taken one after the other, each where what is drawn
so far is farthest from the exact curve, until nothing is farther than `TOLERANCE` or there are `MOST` points;
`error` says how far off the drawn curve still is.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.shortcuts import counts_from
from loginfer.evaluation.values import Scores

__all__ = ["MOST", "TOLERANCE", "Curve", "precision_recall", "roc"]

MOST = 200
# Half a pixel of a plot of 500 pixels.
TOLERANCE = 0.001

Fractions = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve in the unit square.

    Parameters
    ----------
    x, y
        float64[n], the points, x ascending.
    area
        The area under the exact curve.
    error
        No point of the exact curve is farther than this from the one that is drawn through the points.
    """

    x: Fractions
    y: Fractions
    area: float
    error: float


def roc(positive: Scores, negative: Scores, *, most: int = MOST) -> Curve | None:
    """Return the share of positives against the share of negatives from each score on.

    Joined by straight lines, since equal scores count half. None without positives or negatives.
    """
    if not len(positive) or not len(negative):
        return None
    _, true, false = counts_from(positive, negative)
    x, y = false[::-1] / len(negative), true[::-1] / len(positive)
    area = float(np.sum(np.diff(x) * (y[1:] + y[:-1])) / 2)
    return _drawn(x, y, area, most)


def precision_recall(positive: Scores, negative: Scores, *, most: int = MOST) -> Curve | None:
    """Return the precision against the recall from each score on.

    Joined by steps, up or down first and then to the right, since there is nothing between two scores; the
    corners of the steps are points of the curve. The area is the average precision. None without positives.
    """
    if not len(positive):
        return None
    _, true, false = counts_from(positive, negative)
    true, false = true[-2::-1], false[-2::-1]  # the highest score first; above it nothing is predicted
    recall, precision = true / len(positive), true / (true + false)
    before = np.insert(recall[:-1], 0, 0.0)
    area = float(np.sum((recall - before) * precision))
    return _drawn(np.stack([before, recall], 1).ravel(), np.repeat(precision, 2), area, most)


def _drawn(x: Fractions, y: Fractions, area: float, most: int) -> Curve:
    kept, error = _farthest_first(x, y, max(most, 2))
    return Curve(x[kept], y[kept], area, error)


def _farthest_first(x: Fractions, y: Fractions, most: int) -> tuple[npt.NDArray[np.int64], float]:
    """Return which points to keep, and how far what is drawn through them is from the others."""
    kept = [0, len(x) - 1]
    gaps: list[tuple[float, int, int, int]] = []  # what is left out: how far at most, where, between which

    def leave(first: int, last: int) -> None:
        if last - first > 1:
            away = _away(x, y, first, last)
            worst = int(away.argmax())
            heapq.heappush(gaps, (-float(away[worst]), first + 1 + worst, first, last))

    leave(0, len(x) - 1)
    while gaps and -gaps[0][0] > TOLERANCE and len(kept) < most:
        _, worst, first, last = heapq.heappop(gaps)
        kept.append(worst)
        leave(first, worst)
        leave(worst, last)
    return np.unique(np.array(kept, dtype=np.int64)), -gaps[0][0] if gaps else 0.0


def _away(x: Fractions, y: Fractions, first: int, last: int) -> Fractions:
    """Return how far the points between two are from the straight line that joins these."""
    dx, dy = x[last] - x[first], y[last] - y[first]
    px, py = x[first + 1 : last] - x[first], y[first + 1 : last] - y[first]
    square = dx * dx + dy * dy
    along = np.clip((px * dx + py * dy) / square, 0, 1) if square else np.zeros(len(px))
    return np.asarray(np.hypot(px - along * dx, py - along * dy))
