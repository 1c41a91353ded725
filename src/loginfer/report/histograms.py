"""Histograms of scores that can be read whatever the scores are: few values, skewed ones, any.

Up to `BINS` different scores have a bar each. Other scores have bins of equal width, with the threshold at
the edge of one, unless nearly everything would fall into a few of them: then the bins hold about equal
numbers of triples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loginfer.evaluation.values import Counts, Scores

__all__ = ["BINS", "Bins", "bins_of"]

BINS = 40
# Fewer bins than this, if all held the same, would be as uneven: too few to see anything.
LEAST_FILLED = 6

Layout = Literal["values", "width", "number"]


@dataclass(frozen=True, slots=True)
class Bins:
    """Where the scores of a histogram are counted.

    Parameters
    ----------
    layout
        `values`: one for each score; `width`: equally wide; `number`: with about as many scores in each.
    edges
        float64[n], where each begins; with `values`, the scores themselves. A score belongs to the last bin
        that begins at or below it.
    end
        The highest score.
    mark
        The bin that begins at the threshold: it and all above are predicted. None without a threshold.
    """

    layout: Layout
    edges: Scores
    end: float
    mark: int | None

    def __len__(self) -> int:
        return len(self.edges)

    def counts(self, scores: Scores) -> Counts:
        """Return int64[n], how many scores are in each."""
        place = np.searchsorted(self.edges, scores, side="right") - 1
        return np.bincount(place, minlength=len(self)).astype(np.int64)

    def labels(self) -> list[str]:
        """Return where each begins, with as few digits as tell them apart."""
        for digits in range(3, 18):
            found = [f"{edge:.{digits}g}".replace("-", "−") for edge in (self.edges + 0.0).tolist()]
            if len(set(found)) == len(found):
                break
        return found

    @property
    def told(self) -> str:
        """What to know about the axis, in a sentence."""
        return {
            "values": "The axis has each score that occurs.",
            "width": "The axis is the score, in bins of equal width; labels say where a bin begins.",
            "number": "The axis is not even: the scores are skewed, so each bin holds about as many triples "
            "as the others; labels say where a bin begins.",
        }[self.layout]


def bins_of(parts: Sequence[Scores], threshold: float | None = None, *, bins: int = BINS) -> Bins:
    """Choose bins for all parts together.

    Parameters
    ----------
    parts
        Scores of the positives and of each kind of negative; at least one score.
    threshold
        From which score on a triple is predicted, if there is one for all.
    bins
        About how many bins to have.
    """
    scores = np.concatenate(list(parts))
    values = np.unique(scores)
    end = float(values[-1])
    if len(values) <= bins:
        return _marked("values", values, end, threshold)
    edges = _equal_width(values, threshold, bins)
    if _filled(edges, scores) >= LEAST_FILLED:
        return _marked("width", edges, end, threshold)
    return _marked("number", _equal_number(scores, bins), end, threshold)


def _equal_width(values: Scores, threshold: float | None, bins: int) -> Scores:
    """Return edges that lie at the threshold and at whole steps from it."""
    low, high = float(values[0]), float(values[-1])
    step = (high / bins - low / bins) or 1.0
    if threshold is None or not low < threshold <= high:
        return np.unique(low + step * np.arange(bins))
    # Quotients first: the difference of two large numbers may be none.
    below = int(np.ceil(threshold / step - low / step))
    above = int(high / step - threshold / step)
    edges = threshold + step * np.arange(-below, above + 1)
    edges[0] = min(edges[0], low)  # rounding must not leave the lowest score out
    return np.unique(edges)


def _equal_number(scores: Scores, bins: int) -> Scores:
    """Return quantiles; a score that many triples share is one edge only."""
    shares = np.arange(bins) / bins
    return np.unique(np.quantile(scores, shares, method="inverted_cdf"))


def _filled(edges: Scores, scores: Scores) -> float:
    """Return how many equally full bins would be as uneven as these."""
    counts = np.bincount(np.searchsorted(edges, scores, side="right") - 1)
    return float(counts.sum() ** 2 / np.square(counts, dtype=np.float64).sum())


def _marked(layout: Layout, edges: Scores, end: float, threshold: float | None) -> Bins:
    if threshold is None:
        return Bins(layout, edges, end, None)
    if layout == "values":
        place = int(np.searchsorted(edges, threshold, side="left"))
        if place == len(edges):  # nothing is predicted: an empty bin behind the last score
            edges = np.append(edges, threshold)
        return Bins(layout, edges, max(end, threshold), place)
    if threshold <= edges[0]:  # everything is predicted
        return Bins(layout, edges, end, 0)
    edges = np.unique(np.append(edges, threshold))
    return Bins(layout, edges, max(end, threshold), int(np.searchsorted(edges, threshold)))
