"""What a page shows of the scores of one run: curves, reliability, histograms, the learning curve.

*Curves* are computed from all scores, so their areas equal `roc_auc` and `average_precision` of a run. For the plot,
points are added one by one, each where the curve drawn so far is farthest from the exact one, until nothing is farther
than `TOLERANCE` or there are `MAX_POINTS` points; `error` says how far off the drawn curve still is.

*Histograms* can be read whatever the scores are. Up to `BINS` different scores have a bar each. Other scores have bins
of equal width, with the threshold at the edge of one, unless nearly everything would fall into a few of them: then the
bins hold about equal numbers of triples.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.shortcuts import counts_from
from loginfer.evaluation.breakdown import wilson
from loginfer.evaluation.predictions import (
    PREDICTIONS,
    TWIN,
    Counts,
    LabelledScores,
    Scores,
    labels_and_scores,
    stored_twins,
)
from loginfer.evaluation.runs import TIMING, Run
from loginfer.evaluation.thresholds import Calibration, reliability
from loginfer.report.values import Rows

MAX_POINTS = 200
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
        No point of the exact curve is farther than this from the curve drawn through the points.
    """

    x: Fractions
    y: Fractions
    area: float
    error: float


def roc(positive: Scores, negative: Scores, *, max_points: int = MAX_POINTS) -> Curve | None:
    """Return the share of positives against the share of negatives from each score on.

    Joined by straight lines, since equal scores count half. None without positives or negatives.
    """
    if not len(positive) or not len(negative):
        return None
    _, true, false = counts_from(positive, negative)
    x, y = false[::-1] / len(negative), true[::-1] / len(positive)
    area = float(np.sum(np.diff(x) * (y[1:] + y[:-1])) / 2)
    return _thinned(x, y, area, max_points)


def precision_recall(positive: Scores, negative: Scores, *, max_points: int = MAX_POINTS) -> Curve | None:
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
    return _thinned(np.stack([before, recall], 1).ravel(), np.repeat(precision, 2), area, max_points)


def _thinned(x: Fractions, y: Fractions, area: float, max_points: int) -> Curve:
    indices, error = _farthest_first(x, y, max(max_points, 2))
    return Curve(x[indices], y[indices], area, error)


def _farthest_first(x: Fractions, y: Fractions, max_points: int) -> tuple[npt.NDArray[np.int64], float]:
    """Return which points to keep, and how far the curve drawn through them is from the others."""
    indices = [0, len(x) - 1]
    gaps: list[tuple[float, int, int, int]] = []  # largest distance (negated), where it is, the kept points around it

    def add_gap(first: int, last: int) -> None:
        if last - first > 1:
            distances = _distances(x, y, first, last)
            worst = int(distances.argmax())
            heapq.heappush(gaps, (-float(distances[worst]), first + 1 + worst, first, last))

    add_gap(0, len(x) - 1)
    while gaps and -gaps[0][0] > TOLERANCE and len(indices) < max_points:
        _, worst, first, last = heapq.heappop(gaps)
        indices.append(worst)
        add_gap(first, worst)
        add_gap(worst, last)
    return np.unique(np.array(indices, dtype=np.int64)), -gaps[0][0] if gaps else 0.0


def _distances(x: Fractions, y: Fractions, first: int, last: int) -> Fractions:
    """Return the distances of the points between two from the straight line that joins these."""
    dx, dy = x[last] - x[first], y[last] - y[first]
    px, py = x[first + 1 : last] - x[first], y[first + 1 : last] - y[first]
    square = dx * dx + dy * dy
    share = np.clip((px * dx + py * dy) / square, 0, 1) if square else np.zeros(len(px))
    return np.asarray(np.hypot(px - share * dx, py - share * dy))


BINS = 40
# With fewer effectively filled bins than this (see `_filled`) one would not see anything.
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
        indices = np.searchsorted(self.edges, scores, side="right") - 1
        return np.bincount(indices, minlength=len(self)).astype(np.int64)

    def labels(self) -> list[str]:
        """Return where each begins, with as few digits as tell them apart."""
        for digits in range(3, 18):
            labels = [f"{edge:.{digits}g}".replace("-", "−") for edge in (self.edges + 0.0).tolist()]
            if len(set(labels)) == len(labels):
                break
        return labels

    @property
    def axis_text(self) -> str:
        """A sentence about the axis."""
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
    # Quantiles; a score that many triples share is one edge only.
    edges = np.unique(np.quantile(scores, np.arange(bins) / bins, method="inverted_cdf"))
    return _marked("number", edges, end, threshold)


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


def _filled(edges: Scores, scores: Scores) -> float:
    """Return the effective number of filled bins: n bins that hold the same number of scores give n."""
    counts = np.bincount(np.searchsorted(edges, scores, side="right") - 1)
    return float(counts.sum() ** 2 / np.square(counts, dtype=np.float64).sum())


def _marked(layout: Layout, edges: Scores, end: float, threshold: float | None) -> Bins:
    if threshold is None:
        return Bins(layout, edges, end, None)
    if layout == "values":
        index = int(np.searchsorted(edges, threshold, side="left"))
        if index == len(edges):  # nothing is predicted: an empty bin behind the last score
            edges = np.append(edges, threshold)
        return Bins(layout, edges, max(end, threshold), index)
    if threshold <= edges[0]:  # everything is predicted
        return Bins(layout, edges, end, 0)
    edges = np.unique(np.append(edges, threshold))
    return Bins(layout, edges, max(end, threshold), int(np.searchsorted(edges, threshold)))


POSITIVE, NEGATIVE = "positive", "negative"

# A learning curve has at most so many points in a plot.
STEPS = 200

# Kinds of negatives by name, and the kind of each.
Kinds = tuple[Sequence[str], Counts]


# -- reading ------------------------------------------------------------------------------------


def scores_of_test(run: Run) -> LabelledScores:
    """Return the scores of P_test and N_test, in the order of the benchmark's triples.

    Names of entities, which take most of the time, are not read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from loginfer.kg.formats.parquet import ParquetFile, parquet_errors

    path = run.path / PREDICTIONS
    with ParquetFile(path, path) as file, parquet_errors(path):
        table = file.read(["split", "label", "score", TWIN])
        test = table.filter(pc.equal(table["split"], pa.scalar("test")))
        label, scores = labels_and_scores(test, path)
        twins = stored_twins(test)
    return LabelledScores(scores[label], scores[~label], twins[~label])


def threshold_of(run: Run) -> tuple[float | None, str]:
    """Return the threshold for all triples, if there is one, and a sentence about it."""
    thresholds = run.thresholds()
    if not thresholds:
        return None, "There is no threshold: nothing to choose one on."
    how = "given" if thresholds.get("criterion") is None else "chosen on valid"
    if thresholds.get("kind") == "relation":
        count = len(thresholds.get("relations", {}))
        return None, f"There are {count:,} thresholds, one for each relation, so none is drawn."
    return float(thresholds["value"]), f"Threshold {thresholds['value']:.4g}, {how}."


def timing_of(run: Run) -> Mapping[str, Any]:
    """Return what `timing.json` holds; empty if the run has none."""
    return run.timing() if (run.path / TIMING).is_file() else {}


# -- curves -------------------------------------------------------------------------------------


def curve_rows(scores: LabelledScores, metrics: Mapping[str, Any]) -> tuple[Rows, Rows]:
    """Return the points of the ROC curve and of precision against recall, each with that of the threshold.

    Without negatives there are none.
    """
    recall, balanced, precision = (metrics.get(name) for name in ("recall", "balanced_accuracy", "precision"))
    # The share of negatives that are predicted follows from the other two.
    fall_out = None if recall is None or balanced is None else max(0.0, 1 + recall - 2 * balanced)
    return (
        _curve_points(roc(scores.positive, scores.negative), fall_out, recall),
        _curve_points(
            precision_recall(scores.positive, scores.negative) if len(scores.negative) else None, recall, precision
        ),
    )


def _curve_points(curve: Curve | None, x: float | None, y: float | None) -> Rows:
    rows: list[tuple[str, float, float]] = []
    if curve is not None:
        points = zip(curve.x.round(5).tolist(), curve.y.round(5).tolist(), strict=True)
        rows += [("curve", *point) for point in points]
        if x is not None and y is not None:
            rows.append(("threshold", round(x, 5), round(y, 5)))
    return Rows.declared("roc", rows)


def reliability_rows(scores: LabelledScores, calibration: Calibration | None) -> Rows:
    """Return how likely the test triples of each bin are said to be and how many are true, with the 95 % interval."""
    values, true = scores.labelled
    if calibration is None or not len(values):
        return Rows.declared("reliability", ())
    bins = zip(*(column.tolist() for column in reliability(true, calibration.confidence(values))), strict=True)
    rows = ((confidence, share, *wilson(share, count), count) for count, confidence, share in bins)
    return Rows.declared("reliability", [tuple(round(value, 5) for value in row) for row in rows])


# -- histograms ---------------------------------------------------------------------------------


def histogram_rows(scores: LabelledScores, kinds: Kinds | None, threshold: float | None) -> tuple[Rows, str]:
    """Return how many positives and negatives of each kind have which score, and a sentence about the axis.

    The shares of negatives are below zero. Everything is there twice: with the weight `all` shares are of all
    positives or all negatives; with `kind` all kinds of negatives weigh the same, however few one has. Without
    negatives there is nothing.
    """
    parts = _parts(scores, kinds)
    if not len(scores.negative):
        return Rows.declared("scores", ()), "There are no negatives in test."
    bins = bins_of(list(parts.values()), threshold)
    labels = bins.labels()
    negatives = [kind for kind in parts if kind != POSITIVE]
    rows: list[tuple[Any, ...]] = []
    for kind, kind_scores in parts.items():
        counts = bins.counts(kind_scores)
        for weight in ("all", "kind"):
            total, sign = len(kind_scores), 1
            if kind != POSITIVE:
                total, sign = (len(scores.negative), -1) if weight == "all" else (total * len(negatives), -1)
            rows += _bars(bins, labels, kind, counts, sign, total, weight)
    if bins.mark is not None:
        mark = ("threshold", labels[bins.mark], bins.mark, threshold, None, None, None)
        rows += [(*mark, weight) for weight in ("all", "kind")]
    return Rows.declared("scores", rows), bins.axis_text


def _parts(scores: LabelledScores, kinds: Kinds | None) -> dict[str, Scores]:
    negative = scores.negative
    if kinds is None or len(kinds[1]) != len(negative):
        return {POSITIVE: scores.positive, NEGATIVE: negative}
    names, kind = kinds
    return {POSITIVE: scores.positive} | {name: negative[kind == i] for i, name in enumerate(names)}


def _bars(
    bins: Bins, labels: list[str], kind: str, counts: Counts, sign: int, total: int, weight: str
) -> list[tuple[Any, ...]]:
    starts = bins.edges.tolist()
    ends = starts if bins.layout == "values" else [*starts[1:], bins.end]
    bars = enumerate(zip(labels, starts, ends, counts.tolist(), strict=True))
    return [
        (kind, label, index, start, end, count, round(sign * count / total, 5) if total else 0, weight)
        for index, (label, start, end, count) in bars
        if count or kind == POSITIVE  # positives have every bin, so that the axis has no gap
    ]


# -- learning curves ----------------------------------------------------------------------------

# What a system may choose its weights by, and what that is called.
VALID_FIGURES = {"valid_accuracy": "Accuracy on valid", "valid_mrr": "MRR on valid"}


def learning_rows(runs: Sequence[Run]) -> Rows:
    """Return the loss and the figure on valid by epoch or step, seed by seed, with the step that was kept."""
    rows: list[tuple[Any, ...]] = []
    for run in runs:
        curve = run.curve() or []
        kept = chosen_step(curve, run.manifest["request"]["settings"])
        for measure in ("loss", *VALID_FIGURES):
            points = [(_step(row), row[measure]) for row in curve if row.get(measure) is not None]
            sampled = set(np.linspace(0, len(points) - 1, STEPS).round().astype(int).tolist())
            for index, (step, value) in enumerate(points):
                if step is not None and (len(points) <= STEPS or index in sampled or step == kept):
                    rows.append((run.seed, step, measure, value, step == kept))
    return Rows.declared("learning", rows)


def chosen_step(curve: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> int | None:
    """Return the epoch or step whose weights were kept; None where that is not known.

    Our embeddings keep the best epoch on valid, the last one among equals; R-GCN, which counts steps, the
    first.
    """
    points = [(row[name], _step(row)) for row in curve for name in VALID_FIGURES if row.get(name) is not None]
    if not points:
        return None
    highest = max(figure for figure, _ in points)
    best = [step for figure, step in points if figure == highest]
    if settings.get("keep") == "best":
        return best[-1]
    if settings.get("keep") == "last":
        return points[-1][1]
    return best[0] if "validate_every" in settings else None


def _step(row: Mapping[str, Any]) -> int | None:
    step = row.get("epoch", row.get("step"))
    return step if isinstance(step, int) else None
