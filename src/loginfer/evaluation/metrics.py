"""Every figure.

Classification (section 2.2 of the paper): how well predictions tell P_test from N_test.

The paper's "AUC" is computed on hard decisions: what to hold against it is `balanced_accuracy`. `roc_auc` is
that of the confidences.

Classification metrics of many groups of triples at once.

The same figures as `classification`, for hundreds of groups in the time that scikit-learn needs for one.

From predictions and ranks to every figure: metrics, ranking, breakdowns, diagnosis.

What figures are called where people read them.

Ranking metrics (section 2.2): C-MRR, R-MRR, C-Hits@k, R-Hits@k, and what helps to read them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast, get_args

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, UnknownNameError
from loginfer.evaluation.metric_table import METRICS, Metric, metrics_of
from loginfer.evaluation.thresholds import CRITERIA, KINDS, Criterion, Kind, Thresholds
from loginfer.evaluation.values import TIES, Counts, Predictions, Protocol, Ranks, Scores, Tie
from loginfer.systems.interface import POSITIONS, Position

COUNTS = ("tp", "fp", "tn", "fn")

Metrics = dict[str, float | None]
Mask = npt.NDArray[np.bool_]


class Confusion(TypedDict):
    """True and false positives, true and false negatives."""

    tp: int
    fp: int
    tn: int
    fn: int


def classification(positive: Scores, negative: Scores, predicted_positive: Mask, predicted_negative: Mask) -> Metrics:
    """Return the classification metrics by name; ours are fractions between 0 and 1.

    None stands for what is not defined: `roc_auc` and `balanced_accuracy` need triples of both labels,
    `accuracy` any triple, the others a positive. Where nothing is predicted, precision is 0.

    Parameters
    ----------
    positive, negative
        float64[|P|], float64[|N|]: the confidences.
    predicted_positive, predicted_negative
        bool[|P|], bool[|N|]: which of them are predicted.
    """
    metrics = metrics_of("classification")
    if not len(positive) + len(negative):
        return {metric.key: None for metric in metrics}
    truth = np.concatenate([np.ones(len(positive), dtype=np.int8), np.zeros(len(negative), dtype=np.int8)])
    scores = np.concatenate([positive, negative])
    predicted = np.concatenate([predicted_positive, predicted_negative]).astype(np.int8)
    return {metric.key: metric.compute(truth, scores, predicted) for metric in metrics}


def confusion(predicted_positive: Mask, predicted_negative: Mask) -> Confusion:
    """Return how many predictions were right and wrong, by label."""
    tp, fp = int(np.count_nonzero(predicted_positive)), int(np.count_nonzero(predicted_negative))
    return {"tp": tp, "fp": fp, "tn": len(predicted_negative) - fp, "fn": len(predicted_positive) - tp}


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

    def __init__(self, positive: Scores, negative: Scores, predicted_positive: Mask, predicted_negative: Mask) -> None:
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
        For each group our classification metrics in the order of the table, then `COUNTS`; None for what is
        not defined (see `classification`). Metrics that others registered are those of the whole only.
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
    columns = [*map(_nones, found.values()), *(counted.tolist() for counted in counts.values())]
    return [dict(zip((*found, *counts), values, strict=True)) for values in zip(*columns, strict=True)]


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
    options: MetricOptions,
    *,
    notes: Sequence[str] = (),
) -> Measures:
    """Compute every figure that is asked for.

    Parameters
    ----------
    benchmark
        The benchmark; what is made of its labelled triples alone (`read_labelled`) gives fewer breakdowns.
    predictions, ranks
        What the system said.
    options
        Which figures.
    notes
        What a user should know already.
    """
    from loginfer.evaluation.breakdown import breakdown

    told = list(notes)
    thresholds = _thresholds(benchmark, predictions, options, told)
    metrics = _metrics(benchmark, predictions, thresholds)
    parts: dict[str, Any] = {}
    learned: dict[str, Any] = {}
    if thresholds is not None and predictions.method is not None:
        parts = breakdown(benchmark, predictions, thresholds)
        if options.diagnosis and len(benchmark.graph):  # labelled triples alone have no graph
            learned = _diagnosis(benchmark, predictions, thresholds)
    if not len(predictions.test.positive):
        told.append(f"{benchmark.name or 'the benchmark'} has no positives in test: there is nothing to rank")
    if predictions.method is None:
        told.append(f"{benchmark.name or 'the benchmark'} has no negatives, so there is nothing to classify")
    return Measures(thresholds, metrics, _ranking(ranks, options.tie), options.tie, parts, learned, tuple(told))


def _thresholds(
    benchmark: Benchmark, predictions: Predictions, options: MetricOptions, notes: list[str]
) -> Thresholds | None:
    from loginfer.evaluation.thresholds import fit_thresholds

    if not isinstance(options.threshold, str):
        return Thresholds.fixed(float(options.threshold))
    valid = predictions.valid
    if len(valid.positive) and len(valid.negative):
        return fit_thresholds(predictions, benchmark, cast(Kind, options.threshold), options.criterion)
    if predictions.method is None:
        return None
    lacking = "triples" if not len(valid) else "negatives" if not len(valid.negative) else "positives"
    everything = np.concatenate([predictions.test.positive, predictions.test.negative])
    if np.isin(everything, (0.0, 1.0)).all():
        notes.append(f"there are no {lacking} in valid to choose a threshold on: it is 0.5 for scores of 0 and 1")
        return Thresholds.fixed(0.5)
    notes.append(
        f"there are no {lacking} in valid to choose a threshold on, so only metrics without one are given; "
        "--threshold NUMBER gives one"
    )
    return None


def _metrics(benchmark: Benchmark, predictions: Predictions, thresholds: Thresholds | None) -> dict[str, float | None]:
    from loginfer.evaluation.breakdown import labelled_rows

    if predictions.method is None:
        return {metric.key: None for metric in metrics_of("classification")}
    rows = labelled_rows(benchmark, predictions, thresholds or Thresholds.fixed(0.0))
    split = rows.positives
    found = classification(rows.scores[:split], rows.scores[split:], rows.predicted[:split], rows.predicted[split:])
    if thresholds is None:
        return {name: None if METRICS[name].needs_threshold else value for name, value in found.items()}
    return found


def _ranking(ranks: Sequence[Ranks], tie: Tie) -> dict[str, dict[str, Any]]:

    there = sorted({found.protocol for found in ranks})
    return {p: ranking_metrics([found for found in ranks if found.protocol == p], tie=tie) for p in there}


def _diagnosis(benchmark: Benchmark, predictions: Predictions, thresholds: Thresholds) -> dict[str, Any]:
    from loginfer.evaluation.diagnosis import diagnose

    return diagnose(benchmark, predictions, thresholds).as_dict()


Floats = npt.NDArray[np.float64]
Figures = dict[str, float | None]


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
    if len({each.protocol for each in ranks}) > 1:
        raise ValueError("ranks of several protocols have no metrics in common")
    by_position = {each.position: each for each in ranks}
    if len(by_position) < len(ranks):
        raise ValueError("several ranks for one position")
    chosen = metrics_of("ranking") if metrics is None else metrics
    by_tie = {rule: _figures(by_position, rule, chosen) for rule in TIES}
    return {
        **by_tie[tie],
        "tie": tie,
        "ties": by_tie,
        "competitors": {p: _competitors(by_position[p]) for p in POSITIONS if p in by_position},
    }


def _figures(ranks: Mapping[Position, Ranks], tie: Tie, metrics: Sequence[Metric]) -> Figures:
    def value(metric: Metric, *positions: Position) -> float | None:
        chosen = [ranks[position] for position in positions if position in ranks]
        values = np.concatenate([np.empty(0), *(each.ranks(tie) for each in chosen)])
        competitors = np.concatenate([np.empty(0, dtype=np.int64), *(each.competitors for each in chosen)])
        return metric.compute(values, competitors) if len(values) else None

    apart: Figures = {}
    of_constants: Figures = {}
    for metric in metrics:
        if metric.pooled:
            # It is no mean of two: the ranks of both are held against what is expected of both.
            of_constants[f"c_{metric.key}"] = value(metric, "subject", "object")
            continue
        subject, object_ = value(metric, "subject"), value(metric, "object")
        both = None if subject is None or object_ is None else (subject + object_) / 2
        of_constants[f"c_{metric.key}"] = both
        apart |= {f"{metric.key}_subject": subject, f"{metric.key}_object": object_}
    of_relations = {f"r_{metric.key}": value(metric, "relation") for metric in metrics}
    return {**of_constants, **of_relations, **apart}


def _competitors(ranks: Ranks) -> dict[str, float | int | None]:
    some = len(ranks.places) > 0
    return {
        "triples": len(ranks.places),
        "mean": float(ranks.competitors.mean()) if some else None,
        "none": int((ranks.competitors == 0).sum()),
        "tied": int((ranks.ties > 0).sum()),
    }
