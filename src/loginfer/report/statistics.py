"""How sure figures are: bootstrap intervals, and whether two systems differ.

Intervals are over the seeds, or over the test triples of one run. A resample over test triples is stratified: it draws
as many positives and as many negatives as there are, with replacement. A decision metric depends only on the numbers of
predicted positives and predicted negatives. These are then binomial, so that drawing the two numbers is the bootstrap
itself and not an approximation. Two systems are compared on the same test triples, by McNemar's exact test and a paired
bootstrap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from loginfer.evaluation.metric_table import twin_points
from loginfer.evaluation.predictions import LabelledScores, Scores, labelled_triples
from loginfer.evaluation.runs import Run
from loginfer.evaluation.thresholds import Thresholds
from loginfer.randomness import generator
from loginfer.report.collection import Cell
from loginfer.report.scores import scores_of_test

RESAMPLES = 1000
LEVEL = 0.95

# Metrics of hard decisions: functions of how many positives and how many negatives are predicted.
DECISION_METRICS = ("balanced_accuracy", "accuracy", "f1", "precision", "recall")

# Scores are resampled in at most so many groups of neighbours, which keeps a report of many runs fast.
GROUPS = 32

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Interval:
    """A bootstrap interval, with what was resampled.

    Parameters
    ----------
    low, high
        Its ends.
    over
        `seeds`, `triples`, or `pairs` of a conclusion and its twin.
    count
        How many of them there are.
    """

    low: float
    high: float
    over: str
    count: int


def bounds(interval: Interval | None) -> tuple[float | None, float | None]:
    """Return the ends of an interval as pages show them."""
    return (None, None) if interval is None else (round(interval.low, 5), round(interval.high, 5))


@dataclass(frozen=True, slots=True)
class Decisions:
    """The scores and decisions of a run on P_test and N_test.

    Parameters
    ----------
    positive, negative
        float64[|P|], float64[|N|]: the scores, in the order of the benchmark's triples.
    predicted_positive, predicted_negative
        bool[|P|], bool[|N|]: which triples are predicted; None where no threshold could be chosen.
    twins
        float64[k], for each pair of a conclusion and its twin: see `twin_points`.
    """

    positive: Scores
    negative: Scores
    predicted_positive: Mask | None
    predicted_negative: Mask | None
    twins: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def scores(self) -> Scores:
        """float64[|P| + |N|]: all scores, positives first."""
        return np.concatenate([self.positive, self.negative])

    @property
    def right(self) -> Mask | None:
        """bool[|P| + |N|]: where the decision is right, positives first; None without a threshold."""
        if self.predicted_positive is None or self.predicted_negative is None:
            return None
        return np.concatenate([self.predicted_positive, ~self.predicted_negative])


def decisions_of(run: Run) -> Decisions:
    """Return the scores and decisions of a run on the test triples."""
    saved = run.thresholds()
    if saved is None or not saved.get("relations"):
        scores = scores_of_test(run)
        positive, negative = (
            None if saved is None else s >= saved["value"] for s in (scores.positive, scores.negative)
        )
        return Decisions(scores.positive, scores.negative, positive, negative, _twins(scores))
    benchmark, predictions = run.labelled()
    # A relation with a threshold of its own need not be among the test triples.
    by_relation = {name: v for name, v in saved["relations"].items() if name in benchmark.graph.relations}
    thresholds = Thresholds.from_dict({**saved, "relations": by_relation}, benchmark)
    sides = (predictions.test.positive, predictions.test.negative)
    triples = labelled_triples(benchmark, predictions.method, "test")
    positive, negative = (thresholds.predict(t, s) for t, s in zip(triples, sides, strict=True))
    return Decisions(*sides, positive, negative, _twins(predictions.test))


def _twins(scores: LabelledScores) -> Floats:
    positives, negatives = scores.pairs
    return np.asarray(twin_points(scores.positive[positives], scores.negative[negatives]))


# -- intervals ----------------------------------------------------------------------------------


def seed_interval(cell: Cell, metric: str, protocol: str | None = None) -> Interval | None:
    """Return the interval of a mean over the seeds; None for fewer than two."""
    values = np.array(cell.values(metric, protocol))
    if len(values) < 2:
        return None
    draw = generator(0, "report", "seeds", cell.system, cell.benchmark, metric, protocol)
    seeds = draw.integers(len(values), size=(RESAMPLES, len(values)))
    return interval_of_draws(values[seeds].mean(axis=1), "seeds", len(values))


def triple_intervals(decisions: Decisions, *stage: object) -> dict[str, Interval]:
    """Return the intervals of one run's metrics over its test triples.

    Parameters
    ----------
    decisions
        The scores and decisions of the run.
    stage
        What the randomness depends on: names of system and benchmark.

    Returns
    -------
    dict
        By the name of the metric: those of `DECISION_METRICS` if there was a threshold, `roc_auc`, and where
        there are twins `twin_accuracy`; empty without triples of both labels.
    """
    positives, negatives = len(decisions.positive), len(decisions.negative)
    if not positives or not negatives:
        return {}
    draw = generator(0, "report", "triples", *stage)
    resampled: dict[str, Floats] = {}
    if decisions.predicted_positive is not None and decisions.predicted_negative is not None:
        tp = draw.binomial(positives, decisions.predicted_positive.mean(), size=RESAMPLES)
        fp = draw.binomial(negatives, decisions.predicted_negative.mean(), size=RESAMPLES)
        resampled |= decision_metrics(tp, fp, positives, negatives)
    positive_groups, negative_groups, inner = grouped_scores(decisions.positive, decisions.negative)
    positive_counts = draw.multinomial(positives, positive_groups / positives, size=RESAMPLES)
    negative_counts = draw.multinomial(negatives, negative_groups / negatives, size=RESAMPLES)
    resampled["roc_auc"] = resampled_auc(positive_counts, negative_counts, inner)
    intervals = {name: interval_of_draws(v, "triples", positives + negatives) for name, v in resampled.items()}
    if len(decisions.twins):
        intervals["twin_accuracy"] = interval_of_mean(decisions.twins, draw)
    return intervals


def interval_of_mean(values: Floats, draw: np.random.Generator) -> Interval:
    """Return the interval of the mean over pairs, of whose values few are distinct."""
    kinds, counts = np.unique(values, return_counts=True)
    resampled = draw.multinomial(len(values), counts / len(values), size=RESAMPLES) @ kinds / len(values)
    return interval_of_draws(resampled, "pairs", len(values))


def interval_of_draws(values: Floats, over: str, count: int) -> Interval:
    """Return the percentile interval of the resampled values."""
    ends = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2]) * (len(values) - 1)
    # What `numpy.quantile` gives, in a small part of its time.
    low, high = np.interp(ends, np.arange(len(values)), np.sort(values))
    return Interval(float(low), float(high), over, count)


# -- metrics of many resamples at once ----------------------------------------------------------


def decision_metrics(tp: Counts, fp: Counts, positives: int, negatives: int) -> dict[str, Floats]:
    """Return the metrics of many pairs of numbers: how many positives and negatives are predicted.

    As in `evaluation.classification`, precision is 0 where nothing is predicted.
    """
    recall = tp / positives
    predicted = tp + fp
    precision = np.divide(tp, predicted, out=np.zeros(np.shape(tp)), where=predicted > 0)
    return {
        "balanced_accuracy": (recall + 1 - fp / negatives) / 2,
        "accuracy": (tp + negatives - fp) / (positives + negatives),
        "f1": 2 * tp / (positives + predicted),
        "precision": precision,
        "recall": recall,
    }


def grouped_scores(positive: Scores, negative: Scores, groups: int = GROUPS) -> tuple[Counts, Counts, Floats]:
    """Put scores into groups of neighbours, so that all scores of a group are below those of the next.

    Neighbours with the same label are one group, which loses nothing: only the order of positives and
    negatives matters. Where that gives too many groups, the same number of them is put together.

    Returns
    -------
    tuple
        int64[k], int64[k], float64[k]: positives and negatives of each group, and the share of the pairs of
        a positive and a negative inside the group in which the positive is higher; ties count half.
    """
    scores = np.concatenate([positive, negative])
    values, rank = np.unique(scores, return_inverse=True)
    positive_ranks, negative_ranks = rank[: len(positive)], rank[len(positive) :]
    positives, negatives = (np.bincount(ranks, minlength=len(values)) for ranks in (positive_ranks, negative_ranks))
    # 1: positives alone have the score, 2: negatives alone, 3: both.
    label = (positives > 0) + 2 * (negatives > 0)
    begins = np.append(True, (label[1:] != label[:-1]) | (label[1:] == 3))
    part = np.cumsum(begins) - 1
    if part[-1] >= groups:
        part = part * groups // (part[-1] + 1)
    starts = np.flatnonzero(np.append(True, part[1:] != part[:-1]))
    lower = np.cumsum(negatives) - negatives
    # How many negatives of its own group are below a positive with this score.
    wins = positives * (lower - lower[starts][part] + negatives / 2)
    positives, negatives, wins = (np.add.reduceat(counts, starts) for counts in (positives, negatives, wins))
    pairs = positives * negatives
    return positives, negatives, np.divide(wins, pairs, out=np.full(len(starts), 0.5), where=pairs > 0)


def resampled_auc(positives: Counts, negatives: Counts, inner: Floats) -> Floats:
    """Return the area under the ROC curve for many resamples.

    Parameters
    ----------
    positives, negatives
        int64[r, k]: how many positives and negatives of each group each resample has.
    inner
        float64[k], see `grouped_scores`.
    """
    lower = np.cumsum(negatives, axis=1) - negatives
    wins = (positives * (lower + negatives * inner)).sum(axis=1)
    return np.asarray(wins / (positives.sum(axis=1) * negatives.sum(axis=1)))


# Differences with a smaller p, after Holm's correction, are called significant.
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems on the same test triples.

    Parameters
    ----------
    first, second
        Their names.
    only_first, only_second
        How many triples only one of them decides rightly.
    p
        Of McNemar's exact test.
    adjusted
        The same after Holm's correction over all pairs of the benchmark.
    difference, interval
        Balanced accuracy of the first minus that of the second, with its interval over the test triples;
        None where there are no triples of one label.
    """

    first: str
    second: str
    only_first: int
    only_second: int
    p: float
    adjusted: float
    difference: float | None
    interval: Interval | None

    @property
    def significant(self) -> bool:
        """Whether the two differ."""
        return self.adjusted < ALPHA


def mcnemar(only_first: npt.ArrayLike, only_second: npt.ArrayLike) -> Floats:
    """Return the p of McNemar's exact test: two-sided, binomial with one half.

    Parameters
    ----------
    only_first, only_second
        How many triples only the first or only the second system decides rightly; numbers or arrays.
    """
    from scipy.special import bdtr

    first, second = np.asarray(only_first, dtype=np.int64), np.asarray(only_second, dtype=np.int64)
    fewer = np.minimum(first, second)
    return np.asarray(np.minimum(1.0, 2 * bdtr(fewer.astype(np.float64), first + second, 0.5)))


def holm(p: npt.ArrayLike) -> Floats:
    """Return the values of p corrected for their number by Holm's method, in the same order."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = values[order] * (len(values) - np.arange(len(values)))
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected


def pairs_of(systems: Mapping[str, Decisions], *stage: object) -> list[Pair]:
    """Compare all pairs of systems on one benchmark.

    Parameters
    ----------
    systems
        The decisions of each about the same test triples; those without a threshold are left out.
    stage
        What the randomness depends on: the name of the benchmark.
    """
    right = {name: mask for name, decisions in systems.items() if (mask := decisions.right) is not None}
    names = list(combinations(right, 2))
    only = [(int((right[a] & ~right[b]).sum()), int((right[b] & ~right[a]).sum())) for a, b in names]
    p = mcnemar([first for first, _ in only], [second for _, second in only])
    pairs = []
    for (a, b), counts, p_value, adjusted in zip(names, only, p.tolist(), holm(p).tolist(), strict=True):
        sizes = (len(systems[a].positive), len(systems[a].negative))
        differences = right[a].astype(np.int8) - right[b]
        difference, interval = _balanced_difference(np.split(differences, sizes[:1]), *stage, a, b)
        pairs.append(Pair(a, b, *counts, p_value, adjusted, difference, interval))
    return pairs


def _balanced_difference(
    differences: Sequence[npt.NDArray[np.int8]], *stage: object
) -> tuple[float, Interval] | tuple[None, None]:
    """Return the difference of balanced accuracy, and its interval.

    Parameters
    ----------
    differences
        For positives and for negatives: 1 where only the first is right, -1 where only the second is, else 0.
        Resampled, the numbers of the three are multinomial.
    stage
        What the randomness depends on.
    """
    if not all(len(side) for side in differences):
        return None, None
    draw = generator(0, "report", "pairs", *stage)
    difference, resampled = 0.0, np.zeros(RESAMPLES)
    for side in differences:
        kinds = np.bincount(side + 1, minlength=3)
        counts = draw.multinomial(len(side), kinds / len(side), size=RESAMPLES)
        resampled += (counts[:, 2] - counts[:, 0]) / (2 * len(side))
        difference += float(kinds[2] - kinds[0]) / (2 * len(side))
    return difference, interval_of_draws(resampled, "triples", sum(map(len, differences)))


def differences(first: Decisions, second: Decisions, *stage: object) -> dict[str, tuple[float, Interval]]:
    """Return by how much two systems differ in each metric of decisions, scores and twins, as far as it is defined."""
    areas, twins = auc_difference(first, second, *stage), twin_difference(first, second, *stage)
    more = {} if areas is None else {"roc_auc": areas}
    more |= {} if twins is None else {"twin_accuracy": twins}
    return decision_differences(first, second, *stage) | more


def decision_differences(first: Decisions, second: Decisions, *stage: object) -> dict[str, tuple[float, Interval]]:
    """Return by how much two systems differ in each decision metric, with paired bootstrap intervals.

    Each resample draws test triples, of each label as many as there are, and asks both systems about the
    same ones. A triple is predicted by both, by one or by none: the numbers of the four are multinomial.

    Parameters
    ----------
    first, second
        Their decisions.
    stage
        What the randomness depends on.

    Returns
    -------
    dict
        By the names of `DECISION_METRICS`; empty if one has no threshold, or if there are no triples of one
        label.
    """
    sides = (
        (first.predicted_positive, second.predicted_positive),
        (first.predicted_negative, second.predicted_negative),
    )
    draw = generator(0, "report", "pair", *stage)
    predicted: list[tuple[Counts, Counts]] = []  # how many the first predicts, how many the second
    for first_mask, second_mask in sides:
        if first_mask is None or second_mask is None or not len(first_mask):
            return {}
        kinds = np.bincount(2 * first_mask.astype(np.int64) + second_mask, minlength=4)
        counts = draw.multinomial(len(first_mask), kinds / len(first_mask), size=RESAMPLES)
        counts = np.concatenate([kinds[None, :], counts])  # the first row is the test set itself
        predicted.append((counts[:, 2] + counts[:, 3], counts[:, 1] + counts[:, 3]))
    sizes = (len(first.positive), len(first.negative))
    first_metrics, second_metrics = (decision_metrics(predicted[0][i], predicted[1][i], *sizes) for i in range(2))
    differences = {}
    for name in first_metrics:
        resampled = first_metrics[name] - second_metrics[name]
        differences[name] = (float(resampled[0]), interval_of_draws(resampled[1:], "triples", sum(sizes)))
    return differences


def twin_difference(first: Decisions, second: Decisions, *stage: object) -> tuple[float, Interval] | None:
    """Return by how much two systems differ in twin accuracy, with a paired interval; None without twins."""
    if not len(first.twins) or len(first.twins) != len(second.twins):  # an older run does not tell of them
        return None
    differences = first.twins - second.twins
    return float(differences.mean()), interval_of_mean(differences, generator(0, "report", "pair of twins", *stage))


def auc_difference(first: Decisions, second: Decisions, *stage: object) -> tuple[float, Interval] | None:
    """Return by how much two systems differ in the area under the ROC curve, with a paired interval."""
    sizes = (len(first.positive), len(first.negative))
    if not all(sizes):
        return None
    draw = generator(0, "report", "pair of curves", *stage)
    systems = [_score_groups(decisions) for decisions in (first, second)]
    blocks = [_auc_differences(np.ones((1, sum(sizes)), dtype=np.int64), sizes[0], systems)]
    for _ in range(RESAMPLES // _BLOCK):
        counts = [draw.multinomial(size, np.full(size, 1 / size), size=_BLOCK) for size in sizes]
        blocks.append(_auc_differences(np.concatenate(counts, axis=1), sizes[0], systems))
    differences = np.concatenate(blocks)
    return float(differences[0]), interval_of_draws(differences[1:], "triples", sum(sizes))


# At most so many resamples are in memory at a time.
_BLOCK = 50


def _score_groups(decisions: Decisions) -> tuple[Counts, Counts]:
    """Return the order of all scores, and where in it each distinct score begins."""
    order = np.argsort(decisions.scores, kind="stable")
    _, starts = np.unique(decisions.scores[order], return_index=True)
    return order, starts


def _auc_differences(counts: Counts, positives: int, systems: Sequence[tuple[Counts, Counts]]) -> Floats:
    """Return the differences for resamples that have each triple `counts[r, n]` times, positives first."""
    positive_counts, negative_counts = counts.copy(), counts.copy()
    positive_counts[:, positives:] = 0
    negative_counts[:, :positives] = 0
    areas = []
    for order, starts in systems:
        sides = [np.add.reduceat(side[:, order], starts, axis=1) for side in (positive_counts, negative_counts)]
        # Each group is one score, where the positive of a pair is as often above as below.
        areas.append(resampled_auc(sides[0], sides[1], np.full(len(starts), 0.5)))
    return areas[0] - areas[1]
