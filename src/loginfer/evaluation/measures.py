"""From predictions and ranks to every figure: metrics, ranking, breakdowns, diagnosis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast, get_args

import numpy as np

from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError, UnknownNameError
from loginfer.evaluation.thresholds import CRITERIA, KINDS, Criterion, Kind, Thresholds
from loginfer.evaluation.values import TIES, Predictions, Protocol, Ranks, Tie

__all__ = ["Measures", "Wanted", "measure"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which figures are wanted.

    Parameters
    ----------
    threshold
        `global`, `relation`, or a number that is not chosen on valid but given.
    criterion
        What a threshold is chosen for.
    protocols
        Whom test triples are ranked against.
    tie
        What becomes of competitors with the same score.
    diagnosis
        Whether to look for learned rules and shortcuts.
    """

    threshold: str | float = "global"
    criterion: Criterion = "accuracy"
    protocols: tuple[Protocol, ...] = ("filtered", "given")
    tie: Tie = "realistic"
    diagnosis: bool = True

    def __post_init__(self) -> None:
        threshold = self.threshold
        if isinstance(threshold, str) and threshold not in KINDS:
            raise UnknownNameError("kind of threshold", threshold, KINDS, where="--threshold")
        if not isinstance(threshold, str) and not math.isfinite(threshold):
            raise InputError(f"a threshold must be a finite number, not {threshold}", where="--threshold")
        for kind, value, known, where in (
            ("criterion", self.criterion, CRITERIA, "--criterion"),
            ("tie rule", self.tie, TIES, "--tie"),
            *(("ranking protocol", protocol, get_args(Protocol), "--ranking") for protocol in self.protocols),
        ):
            if value not in known:
                raise UnknownNameError(kind, value, known, where=where)


@dataclass(frozen=True, slots=True)
class Measures:
    """Every figure about a system on a benchmark.

    Parameters
    ----------
    thresholds
        From which score on triples are predicted; None where none could be chosen.
    metrics
        Classification, by name; None for a figure that is not defined.
    ranking
        By protocol.
    tie
        The tie rule of the ranking.
    breakdown
        Per relation, rule, pattern and kind of negative; empty without thresholds.
    diagnosis
        What was learned; empty without rules.
    notes
        What a user should know.
    """

    thresholds: Thresholds | None
    metrics: dict[str, float | None]
    ranking: dict[str, dict[str, Any]]
    tie: Tie
    breakdown: dict[str, Any] = field(default_factory=dict)
    diagnosis: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return all figures as JSON values."""
        return {
            "threshold": None if self.thresholds is None else self.thresholds.value,
            "metrics": dict(self.metrics),
            "ranking": dict(self.ranking),
            "tie": self.tie,
            "thresholds": None if self.thresholds is None else self.thresholds.as_dict(),
            "breakdown": self.breakdown,
            "diagnosis": self.diagnosis,
            "notes": list(self.notes),
        }


def measure(
    benchmark: Benchmark,
    predictions: Predictions,
    ranks: Sequence[Ranks],
    wanted: Wanted,
    *,
    notes: Sequence[str] = (),
) -> Measures:
    """Compute every figure that is wanted.

    Parameters
    ----------
    benchmark
        The benchmark; what is made of its labelled triples alone (`read_labelled`) gives fewer breakdowns.
    predictions, ranks
        What the system said.
    wanted
        Which figures.
    notes
        What a user should know already.
    """
    from loginfer.evaluation.breakdown import breakdown

    told = list(notes)
    thresholds = _thresholds(benchmark, predictions, wanted, told)
    metrics = _metrics(benchmark, predictions, thresholds)
    parts: dict[str, Any] = {}
    learned: dict[str, Any] = {}
    if thresholds is not None and predictions.method is not None:
        parts = breakdown(benchmark, predictions, thresholds)
        if wanted.diagnosis and len(benchmark.graph):  # labelled triples alone have no graph
            learned = _diagnosis(benchmark, predictions, thresholds)
    if not len(predictions.test.positive):
        told.append(f"{benchmark.name or 'the benchmark'} has no positives in test: there is nothing to rank")
    if predictions.method is None:
        told.append(f"{benchmark.name or 'the benchmark'} has no negatives, so there is nothing to classify")
    return Measures(thresholds, metrics, _ranking(ranks, wanted.tie), wanted.tie, parts, learned, tuple(told))


def _thresholds(
    benchmark: Benchmark, predictions: Predictions, wanted: Wanted, notes: list[str]
) -> Thresholds | None:
    from loginfer.evaluation.thresholds import fit_thresholds

    if not isinstance(wanted.threshold, str):
        return Thresholds.fixed(float(wanted.threshold))
    valid = predictions.valid
    if len(valid.positive) and len(valid.negative):
        return fit_thresholds(predictions, benchmark, cast(Kind, wanted.threshold), wanted.criterion)
    if predictions.method is None:
        return None
    lacking = "triples" if not len(valid) else "negatives" if not len(valid.negative) else "positives"
    everything = np.concatenate([predictions.test.positive, predictions.test.negative])
    if np.isin(everything, (0.0, 1.0)).all():
        notes.append(
            f"there are no {lacking} in valid to choose a threshold on: it is 0.5 for scores of 0 and 1"
        )
        return Thresholds.fixed(0.5)
    notes.append(
        f"there are no {lacking} in valid to choose a threshold on, so only metrics without one are given; "
        "--threshold NUMBER gives one"
    )
    return None


def _metrics(
    benchmark: Benchmark, predictions: Predictions, thresholds: Thresholds | None
) -> dict[str, float | None]:
    from loginfer.evaluation.breakdown import labelled_rows
    from loginfer.evaluation.classification import METRICS, classification

    if predictions.method is None:
        return dict.fromkeys(METRICS)
    rows = labelled_rows(benchmark, predictions, thresholds or Thresholds.fixed(0.0))
    split = rows.positives
    found = classification(
        rows.scores[:split], rows.scores[split:], rows.predicted[:split], rows.predicted[split:]
    )
    if thresholds is None:
        return {name: found[name] if name in _WITHOUT_THRESHOLD else None for name in METRICS}
    return found


_WITHOUT_THRESHOLD = ("roc_auc", "average_precision")


def _ranking(ranks: Sequence[Ranks], tie: Tie) -> dict[str, dict[str, Any]]:
    from loginfer.evaluation.ranking_metrics import ranking_metrics

    there = sorted({found.protocol for found in ranks})
    return {p: ranking_metrics([found for found in ranks if found.protocol == p], tie=tie) for p in there}


def _diagnosis(benchmark: Benchmark, predictions: Predictions, thresholds: Thresholds) -> dict[str, Any]:
    from loginfer.evaluation.diagnosis import diagnose

    return diagnose(benchmark, predictions, thresholds).as_dict()
