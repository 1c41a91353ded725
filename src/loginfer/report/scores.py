"""What a page shows of the scores of one run: curves, histograms, the learning curve."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loginfer.errors import InputError
from loginfer.evaluation.runs import PREDICTIONS, TIMING, Run
from loginfer.evaluation.values import Counts, LabelledScores, Scores
from loginfer.files import reading
from loginfer.report.curves import Curve, precision_recall, roc
from loginfer.report.histograms import Bins, bins_of
from loginfer.report.values import Rows

__all__ = [
    "NEGATIVE",
    "POSITIVE",
    "chosen_step",
    "curve_rows",
    "histogram_rows",
    "learning_rows",
    "scores_of_test",
    "threshold_of",
    "timing_of",
]

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
    import pyarrow.parquet as pq

    path = run.path / PREDICTIONS
    try:
        with reading(path), path.open("rb") as stream:
            table = pq.ParquetFile(stream).read(["split", "label", "score"], use_threads=False)
        test = table.filter(pc.equal(table["split"], pa.scalar("test")))
        scores = np.asarray(test["score"].to_numpy(), dtype=np.float64)
        label = np.asarray(test["label"].to_numpy(), dtype=bool)
    except (pa.ArrowException, KeyError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"no readable predictions: {reason}", where=str(path)) from error
    if not np.isfinite(scores).all():
        raise InputError("column `score` holds something that is no finite number", where=str(path))
    return LabelledScores(scores[label], scores[~label])


def threshold_of(run: Run) -> tuple[float | None, str]:
    """Return the threshold for all triples, if there is one, and what to say about it."""
    found = run.thresholds()
    if not found:
        return None, "There is no threshold: nothing to choose one on."
    how = "given" if found.get("criterion") is None else "chosen on valid"
    if found.get("kind") == "relation":
        many = len(found.get("relations", {}))
        return None, f"There are {many:,} thresholds, one for each relation, so none is drawn."
    return float(found["value"]), f"Threshold {found['value']:.4g}, {how}."


def timing_of(run: Run) -> Mapping[str, Any]:
    """Return what `timing.json` says; nothing if a run has lost it."""
    return _optional(run, TIMING) or {}


def _optional(run: Run, name: str) -> dict[str, Any] | None:
    path = run.path / name
    if not path.is_file():
        return None
    with reading(path):
        found = json.loads(path.read_bytes())
    return found if isinstance(found, dict) else None


# -- curves -------------------------------------------------------------------------------------


def curve_rows(scores: LabelledScores, metrics: Mapping[str, Any]) -> tuple[Rows, Rows]:
    """Return the points of the ROC curve and of precision against recall, each with that of the threshold."""
    recall, balanced, precision = (metrics.get(name) for name in ("recall", "balanced_accuracy", "precision"))
    # The share of negatives that are predicted follows from the other two.
    fall_out = None if recall is None or balanced is None else max(0.0, 1 + recall - 2 * balanced)
    ways = (
        (roc(scores.positive, scores.negative), fall_out, recall),
        (precision_recall(scores.positive, scores.negative), recall, precision),
    )
    made = [_points(curve, x, y) for curve, x, y in ways]
    return made[0], made[1]


def _points(curve: Curve | None, x: float | None, y: float | None) -> Rows:
    rows: list[tuple[str, float, float]] = []
    if curve is not None:
        drawn = zip(curve.x.round(5).tolist(), curve.y.round(5).tolist(), strict=True)
        rows += [("curve", *point) for point in drawn]
        if x is not None and y is not None:
            rows.append(("threshold", round(x, 5), round(y, 5)))
    return Rows.of(("part", "x", "y"), rows)


# -- histograms ---------------------------------------------------------------------------------


def histogram_rows(scores: LabelledScores, kinds: Kinds | None, threshold: float | None) -> tuple[Rows, str]:
    """Return how many positives and negatives of each kind have which score, and what to know of the axis.

    The shares of negatives are below zero. Everything is there twice: with the weight `all` shares are of all
    positives or all negatives; with `kind` all kinds of negatives weigh the same, however few one has.
    """
    fields = ("kind", "bin", "place", "from", "to", "count", "share", "weight")
    parts = _parts(scores, kinds)
    if not sum(map(len, parts.values())):
        return Rows.of(fields, ()), "There are no test triples."
    bins = bins_of(list(parts.values()), threshold)
    labels = bins.labels()
    negatives = [kind for kind in parts if kind != POSITIVE]
    rows: list[tuple[Any, ...]] = []
    for kind, found in parts.items():
        counts = bins.counts(found)
        for weight in ("all", "kind"):
            whole, sign = len(found), 1
            if kind != POSITIVE:
                whole, sign = (len(scores.negative), -1) if weight == "all" else (whole * len(negatives), -1)
            rows += _bars(bins, labels, kind, counts, sign, whole, weight)
    if bins.mark is not None:
        mark = ("threshold", labels[bins.mark], bins.mark, threshold, None, None, None)
        rows += [(*mark, weight) for weight in ("all", "kind")]
    return Rows.of(fields, rows), bins.told


def _parts(scores: LabelledScores, kinds: Kinds | None) -> dict[str, Scores]:
    negative = scores.negative
    if kinds is None or len(kinds[1]) != len(negative):
        return {POSITIVE: scores.positive, NEGATIVE: negative}
    names, kind = kinds
    return {POSITIVE: scores.positive} | {name: negative[kind == i] for i, name in enumerate(names)}


def _bars(
    bins: Bins, labels: list[str], kind: str, counts: Counts, sign: int, whole: int, weight: str
) -> list[tuple[Any, ...]]:
    ends = [*bins.edges[1:].tolist(), bins.end]
    if bins.layout == "values":
        ends = bins.edges.tolist()
    rows = []
    for place, (label, start, end, count) in enumerate(
        zip(labels, bins.edges.tolist(), ends, counts.tolist(), strict=True)
    ):
        # Positives have every bin, so that the axis has no gap.
        if count or kind == POSITIVE:
            share = round(sign * count / whole, 5) if whole else 0
            rows.append((kind, label, place, start, end, count, share, weight))
    return rows


# -- learning curves ----------------------------------------------------------------------------


def learning_rows(runs: Sequence[Run]) -> Rows:
    """Return loss and accuracy on valid by epoch or step, seed by seed, with the step that was kept."""
    rows: list[tuple[Any, ...]] = []
    for run in runs:
        curve = run.curve() or []
        kept = chosen_step(curve, run.manifest["request"]["settings"])
        for measure in ("loss", "valid_accuracy"):
            known = [(_step(row), row[measure]) for row in curve if row.get(measure) is not None]
            shown = set(np.linspace(0, len(known) - 1, STEPS).round().astype(int).tolist())
            for place, (step, value) in enumerate(known):
                if step is not None and (len(known) <= STEPS or place in shown or step == kept):
                    rows.append((run.seed, step, measure, value, step == kept))
    return Rows.of(("seed", "step", "measure", "value", "kept"), rows)


def chosen_step(curve: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> int | None:
    """Return the epoch or step whose weights were kept, if it can be told.

    Our vector systems keep the best epoch on valid, the last one among equals; R-GCN, which counts steps, the
    first. Of others nobody knows.
    """
    known = [(row["valid_accuracy"], _step(row)) for row in curve if row.get("valid_accuracy") is not None]
    if not known:
        return None
    best = [step for value, step in known if value == max(value for value, _ in known)]
    if settings.get("keep") == "best":
        return best[-1]
    if settings.get("keep") == "last":
        return known[-1][1]
    return best[0] if "validate_every" in settings else None


def _step(row: Mapping[str, Any]) -> int | None:
    found = row.get("epoch", row.get("step"))
    return found if isinstance(found, int) else None
