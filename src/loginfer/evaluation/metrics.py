"""From predictions and ranks to every figure: thresholds, classification, ranking, breakdowns, diagnosis.

Classification (section 2.2 of the paper) says how well predictions tell P_test from N_test, ranking where the
triples of P_test stand: C-MRR, R-MRR, C-Hits@k, R-Hits@k, and what helps to read them. Which metrics there are
and how each is computed stands in `metric_table`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, UnknownNameError
from loginfer.evaluation.metric_table import METRICS, Metric, MetricGroup, metric_titles, metrics_of
from loginfer.evaluation.predictions import (
    PROTOCOLS,
    TIES,
    LabelledScores,
    Predictions,
    Protocol,
    Ranks,
    Scores,
    Tie,
    labelled_triples,
)
from loginfer.evaluation.thresholds import CRITERIA, KINDS, Calibration, Criterion, Kind, Thresholds, fit_thresholds
from loginfer.systems.interface import POSITIONS, Position

Figures = dict[str, float | None]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MetricOptions:
    """Which figures to compute.

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
        for kind, value, allowed, where in (
            ("criterion", self.criterion, CRITERIA, "--criterion"),
            ("tie rule", self.tie, TIES, "--tie"),
            *(("ranking protocol", protocol, PROTOCOLS, "--ranking") for protocol in self.protocols),
        ):
            if value not in allowed:
                raise UnknownNameError(kind, value, allowed, where=where)

    def as_dict(self) -> dict[str, Any]:
        """Return as JSON values what may change when a run is scored again: all but the protocols of its ranks."""
        return {key: getattr(self, key) for key in ("threshold", "criterion", "tie", "diagnosis")}


@dataclass(frozen=True, slots=True)
class Measures:
    """Every figure about a system on a benchmark.

    Parameters
    ----------
    thresholds
        From which score on triples are predicted; None where none could be chosen.
    metrics
        All but the ranking, by name; None for a figure that is not defined.
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
    interval
        Where the balanced accuracy lies with 95 % confidence, judged by so many triples; None where it is not defined.
    calibration
        What makes confidences of scores; None without positives or without negatives in valid.
    """

    thresholds: Thresholds | None
    metrics: Figures
    ranking: dict[str, dict[str, Any]]
    tie: Tie
    breakdown: dict[str, Any] = field(default_factory=dict)
    diagnosis: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    interval: tuple[float, float] | None = None
    calibration: Calibration | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return all figures as JSON values; `interval` has the shape that several seeds give it."""
        return {
            "threshold": None if self.thresholds is None else self.thresholds.value,
            "metrics": dict(self.metrics),
            "ranking": dict(self.ranking),
            "tie": self.tie,
            "thresholds": None if self.thresholds is None else self.thresholds.as_dict(),
            "breakdown": self.breakdown,
            "diagnosis": self.diagnosis,
            "notes": list(self.notes),
            **({} if self.interval is None else {"interval": {"metrics": {"balanced_accuracy": list(self.interval)}}}),
            **({} if self.calibration is None else {"calibration": self.calibration.as_dict()}),
        }


def measure(
    benchmark: Benchmark,
    predictions: Predictions,
    ranks: Sequence[Ranks],
    options: MetricOptions,
    *,
    notes: Sequence[str] = (),
) -> Measures:
    """Compute every figure that is asked for.

    Parameters
    ----------
    benchmark
        The benchmark; one that was made of labelled triples alone (`read_labelled`) gives fewer breakdowns.
    predictions, ranks
        What the system said.
    options
        Which figures.
    notes
        What a user should know already.
    """
    from loginfer.evaluation.breakdown import breakdown
    from loginfer.evaluation.diagnosis import diagnose

    remarks = list(notes)
    thresholds = _choose_thresholds(benchmark, predictions, options, remarks)
    valid = predictions.valid
    calibration = Calibration.of(valid) if len(valid.positive) and len(valid.negative) else None
    metrics, interval = _classify(benchmark, predictions, thresholds, calibration, options.criterion)
    ranking: dict[str, dict[str, Any]] = {
        protocol: ranking_metrics([part for part in ranks if part.protocol == protocol], tie=options.tie)
        for protocol in sorted({part.protocol for part in ranks})
    }
    parts: dict[str, Any] = {}
    learned: dict[str, Any] = {}
    if thresholds is not None and predictions.method is not None:
        parts = breakdown(benchmark, predictions, thresholds)
        if options.diagnosis and len(benchmark.graph):  # labelled triples alone have no graph
            learned = diagnose(benchmark, predictions, thresholds).as_dict()
    if not len(predictions.test.positive):
        remarks.append(f"{benchmark.name or 'the benchmark'} has no positives in test: there is nothing to rank")
    if predictions.method is None:
        remarks.append(f"{benchmark.name or 'the benchmark'} has no negatives, so there is nothing to classify")
    return Measures(thresholds, metrics, ranking, options.tie, parts, learned, tuple(remarks), interval, calibration)


# -- classification ---------------------------------------------------------------------------------


def _choose_thresholds(
    benchmark: Benchmark, predictions: Predictions, options: MetricOptions, notes: list[str]
) -> Thresholds | None:
    if not isinstance(options.threshold, str):
        return Thresholds.fixed(float(options.threshold))
    valid, test = predictions.valid, predictions.test
    if len(valid.positive) and len(valid.negative):
        return fit_thresholds(predictions, benchmark, cast(Kind, options.threshold), options.criterion)
    if predictions.method is None:
        return None
    lacking = "triples" if not len(valid) else "negatives" if not len(valid.negative) else "positives"
    if np.isin(np.concatenate([test.positive, test.negative]), (0.0, 1.0)).all():
        notes.append(f"there are no {lacking} in valid to choose a threshold on: it is 0.5 for scores of 0 and 1")
        return Thresholds.fixed(0.5)
    notes.append(
        f"there are no {lacking} in valid to choose a threshold on, so only metrics without one are given; "
        "--threshold NUMBER gives one"
    )
    return None


def _classify(
    benchmark: Benchmark,
    predictions: Predictions,
    thresholds: Thresholds | None,
    calibration: Calibration | None,
    criterion: Criterion,
) -> tuple[Figures, tuple[float, float] | None]:
    """Return the metrics, and the interval of the balanced accuracy."""
    from loginfer.benchmark.learned_shortcut import ShortcutDecisions

    values: Figures = dict.fromkeys(metric_titles("classification", "relation_thresholds", "calibration"))
    if predictions.method is None:
        return values, None
    positive, negative = predictions.test.positive, predictions.test.negative
    triples = labelled_triples(benchmark, predictions.method, "test")
    cutoffs = thresholds or Thresholds.fixed(0.0)
    predicted = [*map(cutoffs.predict, triples, (positive, negative))]
    values |= classification(positive, negative, *predicted)
    interval = ShortcutDecisions(*predicted).interval if len(positive) and len(negative) else None
    if calibration is not None:
        by_relation = cutoffs.kind == "relation"
        of_relations = cutoffs if by_relation else fit_thresholds(predictions, benchmark, "relation", criterion)
        decisions = map(of_relations.predict, triples, (positive, negative))
        values |= classification(positive, negative, *decisions, group="relation_thresholds")
        confidences = calibration.confidence(positive), calibration.confidence(negative)
        values |= classification(*confidences, *predicted, group="calibration")
    if thresholds is None:
        values = {name: None if METRICS[name].needs_threshold else value for name, value in values.items()}
        interval = None
    return values | pair_metrics(predictions.test), interval


def classification(
    positive: Scores,
    negative: Scores,
    predicted_positive: Mask,
    predicted_negative: Mask,
    *,
    group: MetricGroup = "classification",
) -> Figures:
    """Return the classification metrics by name; ours are fractions between 0 and 1.

    None stands for what is not defined: `roc_auc` and `balanced_accuracy` need triples of both labels,
    `accuracy` any triple, the others a positive. Where nothing is predicted, precision is 0.

    Parameters
    ----------
    positive, negative
        float64[|P|], float64[|N|]: the confidences.
    predicted_positive, predicted_negative
        bool[|P|], bool[|N|]: which of them are predicted.
    group
        Which metrics: all those that look at scores or decisions.
    """
    truth = np.repeat(np.array([1, 0], dtype=np.int8), [len(positive), len(negative)])
    scores = np.concatenate([positive, negative])
    predicted = np.concatenate([predicted_positive, predicted_negative]).astype(np.int8)
    return {m.key: m.compute(truth, scores, predicted) if len(truth) else None for m in metrics_of(group)}


def pair_metrics(scores: LabelledScores) -> Figures:
    """Return the metrics of conclusions and their twins by name; empty without twins."""
    positives, negatives = scores.pairs
    if not len(negatives):
        return {}
    pairs = scores.positive[positives], scores.negative[negatives]
    return {metric.key: metric.compute(*pairs) for metric in metrics_of("pairs")}


# -- ranking ----------------------------------------------------------------------------------------


def ranking_metrics(
    ranks: Sequence[Ranks], *, tie: Tie = "realistic", metrics: Sequence[Metric] | None = None
) -> dict[str, Any]:
    """Return the ranking metrics of one protocol.

    Parameters
    ----------
    ranks
        Those of one protocol, at most one for each position.
    tie
        What becomes of competitors with the same score.
    metrics
        Which metrics; by default those of the table.

    Returns
    -------
    dict
        Values that JSON can hold; None for what is undefined, such as the mean of no ranks.

        - `c_mrr`, `c_hits@k`: the mean of the subject's and the object's, which stand beside them as
          `mrr_subject`, `hits@k_object` and so on; `r_mrr`, `r_hits@k`: the relation's. Between 0 and 1.
        - `c_mr`, `r_mr`: the mean rank; `c_amri`, `r_amri`: the adjusted mean rank index, 1 for the best
          ranks and 0 for those that chance gives.
        - `tie`, and under `ties` the same figures by all three rules.
        - `competitors`: for each position how many test `triples` were ranked, against how many competitors
          in the `mean`, for how many there was `none`, and how many were `tied` with one.
    """
    if len({part.protocol for part in ranks}) > 1:
        raise ValueError("ranks of several protocols have no metrics in common")
    by_position = {part.position: part for part in ranks}
    if len(by_position) < len(ranks):
        raise ValueError("several ranks for one position")
    metrics = metrics_of("ranking") if metrics is None else metrics
    by_tie = {rule: _ranking_figures(by_position, rule, metrics) for rule in TIES}
    return {
        **by_tie[tie],
        "tie": tie,
        "ties": by_tie,
        "competitors": {p: _competitors(by_position[p]) for p in POSITIONS if p in by_position},
    }


def _ranking_figures(ranks: Mapping[Position, Ranks], tie: Tie, metrics: Sequence[Metric]) -> Figures:
    def value(metric: Metric, *positions: Position) -> float | None:
        parts = [ranks[position] for position in positions if position in ranks]
        if not any(len(part.places) for part in parts):
            return None
        competitors = np.concatenate([part.competitors for part in parts])
        return metric.compute(np.concatenate([part.ranks(tie) for part in parts]), competitors)

    constants: Figures = {}
    apart: Figures = {}
    for metric in metrics:
        if metric.pooled:
            constants[f"c_{metric.key}"] = value(metric, "subject", "object")
            continue
        subject, object_ = value(metric, "subject"), value(metric, "object")
        constants[f"c_{metric.key}"] = None if subject is None or object_ is None else (subject + object_) / 2
        apart |= {f"{metric.key}_subject": subject, f"{metric.key}_object": object_}
    return {**constants, **{f"r_{metric.key}": value(metric, "relation") for metric in metrics}, **apart}


def _competitors(ranks: Ranks) -> dict[str, float | int | None]:
    return {
        "triples": len(ranks.places),
        "mean": float(ranks.competitors.mean()) if len(ranks.places) else None,
        "none": int((ranks.competitors == 0).sum()),
        "tied": int((ranks.ties > 0).sum()),
    }
