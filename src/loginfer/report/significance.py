"""Whether two systems differ: McNemar's exact test and a paired bootstrap, on the same test triples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import generator
from loginfer.report.statistics import (
    RESAMPLES,
    Decisions,
    Interval,
    decision_metrics,
    interval_of_draws,
    resampled_auc,
)

__all__ = ["ALPHA", "Pair", "auc_difference", "decision_differences", "holm", "mcnemar", "pairs_of"]

# Differences with a smaller p, after Holm's correction, are called significant.
ALPHA = 0.05

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


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
    given = np.asarray(p, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    steps = given[order] * (len(given) - np.arange(len(given)))
    found = np.empty(len(given))
    found[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return found


def pairs_of(systems: Mapping[str, Decisions], *stage: object) -> list[Pair]:
    """Compare all pairs of systems on one benchmark.

    Parameters
    ----------
    systems
        What each said about the same test triples; those without a threshold are left out.
    stage
        What the randomness depends on: the name of the benchmark.
    """
    right = {name: said for name, each in systems.items() if (said := each.right) is not None}
    names = list(combinations(right, 2))
    only = [(int((right[a] & ~right[b]).sum()), int((right[b] & ~right[a]).sum())) for a, b in names]
    p = mcnemar([first for first, _ in only], [second for _, second in only])
    found = []
    for (a, b), counts, own, adjusted in zip(names, only, p.tolist(), holm(p).tolist(), strict=True):
        sizes = (len(systems[a].positive), len(systems[a].negative))
        apart = right[a].astype(np.int8) - right[b]
        difference, interval = _balanced_difference(np.split(apart, sizes[:1]), *stage, a, b)
        found.append(Pair(a, b, *counts, own, adjusted, difference, interval))
    return found


def _balanced_difference(
    apart: Sequence[npt.NDArray[np.int8]], *stage: object
) -> tuple[float, Interval] | tuple[None, None]:
    """Return the difference of balanced accuracy, and its interval.

    Parameters
    ----------
    apart
        For positives and for negatives: 1 where only the first is right, -1 where only the second is, else 0.
        Resampled, the numbers of the three are multinomial.
    stage
        What the randomness depends on.
    """
    if not all(len(side) for side in apart):
        return None, None
    draw = generator(0, "report", "pairs", *stage)
    difference, drawn = 0.0, np.zeros(RESAMPLES)
    for side in apart:
        kinds = np.bincount(side + 1, minlength=3)
        counts = draw.multinomial(len(side), kinds / len(side), size=RESAMPLES)
        drawn += (counts[:, 2] - counts[:, 0]) / (2 * len(side))
        difference += float(kinds[2] - kinds[0]) / (2 * len(side))
    return difference, interval_of_draws(drawn, "triples", sum(map(len, apart)))


def decision_differences(
    first: Decisions, second: Decisions, *stage: object
) -> dict[str, tuple[float, Interval]]:
    """Return how far two systems are apart in each decision metric, with paired bootstrap intervals.

    Each resample draws test triples, of each label as many as there are, and asks both systems about the
    same ones. A triple is predicted by both, by one or by none: the numbers of the four are multinomial.

    Parameters
    ----------
    first, second
        What they said.
    stage
        What the randomness depends on.

    Returns
    -------
    dict
        By the names of `DECISION_METRICS`; empty if one has no threshold, or if there are no triples of one
        label.
    """
    sides = ((first.said_positive, second.said_positive), (first.said_negative, second.said_negative))
    draw = generator(0, "report", "pair", *stage)
    counted: list[tuple[Counts, Counts]] = []  # how many the first predicts, how many the second
    for mine, theirs in sides:
        if mine is None or theirs is None or not len(mine):
            return {}
        kinds = np.bincount(2 * mine.astype(np.int64) + theirs, minlength=4)
        drawn = draw.multinomial(len(mine), kinds / len(mine), size=RESAMPLES)
        drawn = np.concatenate([kinds[None, :], drawn])  # the first row is what is there
        counted.append((drawn[:, 2] + drawn[:, 3], drawn[:, 1] + drawn[:, 3]))
    sizes = (len(first.positive), len(first.negative))
    one, other = (decision_metrics(counted[0][i], counted[1][i], *sizes) for i in range(2))
    found = {}
    for name in one:
        apart = one[name] - other[name]
        found[name] = (float(apart[0]), interval_of_draws(apart[1:], "triples", sum(sizes)))
    return found


def auc_difference(first: Decisions, second: Decisions, *stage: object) -> tuple[float, Interval] | None:
    """Return how far two systems are apart in the area under the ROC curve, with a paired interval."""
    sizes = (len(first.positive), len(first.negative))
    if not all(sizes):
        return None
    draw = generator(0, "report", "pair of curves", *stage)
    systems = [_columns(each) for each in (first, second)]
    found = [_apart(np.ones((1, sum(sizes)), dtype=np.int64), sizes[0], systems)]
    for _ in range(RESAMPLES // _BLOCK):
        drawn = [draw.multinomial(size, np.full(size, 1 / size), size=_BLOCK) for size in sizes]
        found.append(_apart(np.concatenate(drawn, axis=1), sizes[0], systems))
    apart = np.concatenate(found)
    return float(apart[0]), interval_of_draws(apart[1:], "triples", sum(sizes))


# So many resamples are in memory at a time.
_BLOCK = 50


def _columns(decisions: Decisions) -> tuple[Counts, Counts]:
    """Return the order of all scores, and where in it each distinct score begins."""
    both = np.concatenate([decisions.positive, decisions.negative])
    order = np.argsort(both, kind="stable")
    _, starts = np.unique(both[order], return_index=True)
    return order, starts


def _apart(counts: Counts, positives: int, systems: Sequence[tuple[Counts, Counts]]) -> Floats:
    """Return the differences for resamples that have each triple `counts[r, n]` times, positives first."""
    there, missing = counts.copy(), counts.copy()
    there[:, positives:] = 0
    missing[:, :positives] = 0
    areas = []
    for order, starts in systems:
        sides = [np.add.reduceat(each[:, order], starts, axis=1) for each in (there, missing)]
        # Each group is one score, where the positive of a pair is as often above as below.
        areas.append(resampled_auc(sides[0], sides[1], np.full(len(starts), 0.5)))
    return areas[0] - areas[1]
