"""How sure the figures are: bootstrap intervals over the seeds, or over the test triples of one run.

A resample over test triples is stratified: it draws as many positives and as many negatives as there are,
with replacement. What a decision metric depends on, the number of predicted positives and of predicted
negatives, is then binomial, so that drawing the two numbers is the bootstrap itself and not an approximation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import generator
from loginfer.evaluation.predictions import labelled_triples
from loginfer.evaluation.runs import Run
from loginfer.evaluation.thresholds import Thresholds
from loginfer.evaluation.values import Scores
from loginfer.report.collection import Cell
from loginfer.report.scores import scores_of_test

__all__ = [
    "DECISION_METRICS",
    "LEVEL",
    "RESAMPLES",
    "Decisions",
    "Interval",
    "decision_metrics",
    "decisions_of",
    "grouped_scores",
    "interval_of_draws",
    "resampled_auc",
    "seed_interval",
    "triple_intervals",
]

RESAMPLES = 1000
LEVEL = 0.95

# Metrics of hard decisions: functions of how many positives and how many negatives are predicted.
DECISION_METRICS = ("balanced_accuracy", "accuracy", "f1", "precision", "recall")

# Scores are resampled in at most so many groups of neighbours, which keeps a report of many runs quick.
GROUPS = 32

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval with what was drawn again to get it.

    Parameters
    ----------
    low, high
        Its ends.
    over
        `seeds` or `triples`.
    count
        How many seeds or test triples there are.
    """

    low: float
    high: float
    over: str
    count: int


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a run said about P_test and N_test.

    Parameters
    ----------
    positive, negative
        float64[|P|], float64[|N|]: the scores, in the order of the benchmark's triples.
    said_positive, said_negative
        bool[|P|], bool[|N|]: which triples are predicted; None where no threshold could be chosen.
    """

    positive: Scores
    negative: Scores
    said_positive: Mask | None
    said_negative: Mask | None

    @property
    def right(self) -> Mask | None:
        """bool[|P| + |N|]: where the decision is right, positives first; None without a threshold."""
        if self.said_positive is None or self.said_negative is None:
            return None
        return np.concatenate([self.said_positive, ~self.said_negative])


def decisions_of(run: Run) -> Decisions:
    """Return what a run said about the test triples."""
    known = run.thresholds()
    if known is None or not known.get("relations"):
        scores = scores_of_test(run)
        said = [None if known is None else s >= known["value"] for s in (scores.positive, scores.negative)]
        return Decisions(scores.positive, scores.negative, *said)
    benchmark, predictions = run.labelled()
    # A relation with a threshold of its own need not be among the test triples.
    there = {name: v for name, v in known["relations"].items() if name in benchmark.graph.relations}
    thresholds = Thresholds.from_dict({**known, "relations": there}, benchmark)
    sides = (predictions.test.positive, predictions.test.negative)
    triples = labelled_triples(benchmark, predictions.method, "test")
    return Decisions(*sides, *(thresholds.predict(t, s) for t, s in zip(triples, sides, strict=True)))


# -- intervals ----------------------------------------------------------------------------------


def seed_interval(cell: Cell, metric: str, protocol: str | None = None) -> Interval | None:
    """Return the interval of a mean over the seeds; None for fewer than two."""
    values = np.array(cell.values(metric, protocol))
    if len(values) < 2:
        return None
    draw = generator(0, "report", "seeds", cell.system, cell.benchmark, metric, protocol)
    chosen = draw.integers(len(values), size=(RESAMPLES, len(values)))
    return interval_of_draws(values[chosen].mean(axis=1), "seeds", len(values))


def triple_intervals(decisions: Decisions, *stage: object) -> dict[str, Interval]:
    """Return the intervals of one run's metrics over its test triples.

    Parameters
    ----------
    decisions
        What the run said.
    stage
        What the randomness depends on: names of system and benchmark.

    Returns
    -------
    dict
        By the name of the metric: those of `DECISION_METRICS` if there was a threshold, and `roc_auc`;
        empty without triples of both labels.
    """
    positives, negatives = len(decisions.positive), len(decisions.negative)
    if not positives or not negatives:
        return {}
    draw = generator(0, "report", "triples", *stage)
    drawn: dict[str, Floats] = {}
    if decisions.said_positive is not None and decisions.said_negative is not None:
        tp = draw.binomial(positives, decisions.said_positive.mean(), size=RESAMPLES)
        fp = draw.binomial(negatives, decisions.said_negative.mean(), size=RESAMPLES)
        drawn |= decision_metrics(tp, fp, positives, negatives)
    there, missing, inner = grouped_scores(decisions.positive, decisions.negative)
    drawn["roc_auc"] = resampled_auc(
        draw.multinomial(positives, there / positives, size=RESAMPLES),
        draw.multinomial(negatives, missing / negatives, size=RESAMPLES),
        inner,
    )
    return {name: interval_of_draws(v, "triples", positives + negatives) for name, v in drawn.items()}


def interval_of_draws(drawn: Floats, over: str, count: int) -> Interval:
    """Return the percentile interval of the resampled values."""
    ends = np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2]) * (len(drawn) - 1)
    # What `numpy.quantile` gives, in a small part of its time.
    low, high = np.interp(ends, np.arange(len(drawn)), np.sort(drawn))
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
    both = np.concatenate([positive, negative])
    values, rank = np.unique(both, return_inverse=True)
    mine, theirs = rank[: len(positive)], rank[len(positive) :]
    there, missing = (np.bincount(ranks, minlength=len(values)) for ranks in (mine, theirs))
    # 1: positives alone have the score, 2: negatives alone, 3: both.
    label = (there > 0) + 2 * (missing > 0)
    begins = np.append(True, (label[1:] != label[:-1]) | (label[1:] == 3))
    part = np.cumsum(begins) - 1
    if part[-1] >= groups:
        part = part * groups // (part[-1] + 1)
    starts = np.flatnonzero(np.append(True, part[1:] != part[:-1]))
    lower = np.cumsum(missing) - missing
    # How many negatives of its own group are below a positive with this score.
    wins = there * (lower - lower[starts][part] + missing / 2)
    there, missing, wins = (np.add.reduceat(each, starts) for each in (there, missing, wins))
    pairs = there * missing
    return there, missing, np.divide(wins, pairs, out=np.full(len(starts), 0.5), where=pairs > 0)


def resampled_auc(there: Counts, missing: Counts, inner: Floats) -> Floats:
    """Return the area under the ROC curve for many resamples.

    Parameters
    ----------
    there, missing
        int64[r, k]: how many positives and negatives of each group each resample has.
    inner
        float64[k], see `grouped_scores`.
    """
    lower = np.cumsum(missing, axis=1) - missing
    wins = (there * (lower + missing * inner)).sum(axis=1)
    return np.asarray(wins / (there.sum(axis=1) * missing.sum(axis=1)))
