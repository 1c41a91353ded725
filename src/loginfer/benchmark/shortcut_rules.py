"""On which rules a shortcut rests: its accuracy rule by rule.

Each test triple counts once in all. A conclusion that several rules derive is shared equally between them. So
is a negative that several rules may own; rules without a conclusion in test take no part in that unless all
of them are such. What the rules contribute to a shortcut's accuracy beyond a half then adds up to what
it has, less what triples without any rule contribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.rule_triples import rule_triples
from loginfer.benchmark.shortcuts import SHORTCUTS, fitted_shortcut
from loginfer.benchmark.values import Benchmark

__all__ = ["Decisions", "RuleShare", "balanced", "most_important", "rule_shares", "shortcut_decisions"]

# So many rules of a shortcut are named; the others are counted.
NAMED = 3

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Decisions:
    """What a shortcut says about P_test and N_test.

    Parameters
    ----------
    positive, negative
        bool[|P_test|], bool[|N_test|]: which triples it calls true.
    """

    positive: Mask
    negative: Mask

    @property
    def right(self) -> Mask:
        """bool[|P_test| + |N_test|]: where it is right, positives first."""
        return np.concatenate([self.positive, ~self.negative])

    @property
    def accuracy(self) -> float:
        """The share of triples on which it is right."""
        return float(self.right.mean())


def balanced(decisions: Decisions) -> float:
    """Return the balanced accuracy: the mean of the shares of positives and of negatives that are right."""
    return float((decisions.positive.mean() + (~decisions.negative).mean()) / 2)


def shortcut_decisions(benchmark: Benchmark, method: str) -> dict[str, Decisions]:
    """Return what each shortcut says about test, with the cut that is best on valid.

    The same shortcuts as in `shortcut_accuracies`; nothing without test.
    """
    positives, negatives = benchmark.positives.test, benchmark.negatives[method].splits.test
    if not len(positives) or not len(negatives):
        return {}
    found = {}
    for name in SHORTCUTS:
        fitted = fitted_shortcut(name, benchmark, method)
        if fitted is not None:
            scorer, cut = fitted
            said = (cut.predict(scorer.scores(triples)) for triples in (positives, negatives))
            found[name] = Decisions(*said)
    return found


@dataclass(frozen=True, slots=True)
class RuleShare:
    """How a shortcut does on the test triples of one rule.

    Parameters
    ----------
    rule
        Its place in the benchmark's rules, from 0.
    triples
        How many test triples are its own; shared ones count in part.
    accuracy
        The share of them on which the shortcut is right.
    contribution
        What they add to the shortcut's accuracy beyond a half.
    """

    rule: int
    triples: float
    accuracy: float
    contribution: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "rule": self.rule,
            "triples": round(self.triples, 6),
            "accuracy": round(self.accuracy, 6),
            "contribution": round(self.contribution, 6),
        }


def rule_shares(
    benchmark: Benchmark, method: str, decisions: Mapping[str, Decisions]
) -> dict[str, tuple[RuleShare, ...]]:
    """Return for each shortcut how it does rule by rule, those that contribute most first.

    Parameters
    ----------
    benchmark
        The benchmark.
    method
        Whose negatives.
    decisions
        What the shortcuts say, see `shortcut_decisions`.

    Returns
    -------
    dict
        Rules without a test triple are left out. Nothing for a benchmark whose rules are not known.
    """
    rule, row = rule_triples(benchmark, method)
    weight = _weights(benchmark, rule, row)
    rule, row, weight = rule[weight > 0], row[weight > 0], weight[weight > 0]
    triples = np.bincount(rule, weight, minlength=len(benchmark.rules))
    there = np.flatnonzero(triples)
    found = {}
    for name, said in decisions.items():
        right = np.bincount(rule, weight * said.right[row], minlength=len(benchmark.rules))
        shares = [
            RuleShare(
                place,
                float(triples[place]),
                float(right[place] / triples[place]),
                float((right[place] - triples[place] / 2) / len(said.right)),
            )
            for place in there.tolist()
        ]
        found[name] = tuple(sorted(shares, key=lambda share: (-round(share.contribution, 12), share.rule)))
    return found


def most_important(shares: Sequence[RuleShare], number: int = NAMED) -> tuple[RuleShare, ...]:
    """Return the rules that contribute most to a shortcut's accuracy, of those that contribute anything."""
    return tuple(share for share in shares[:number] if share.contribution > 0)


def _weights(
    benchmark: Benchmark, rule: npt.NDArray[np.int64], row: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return float64[m]: how much of each pair's triple belongs to its rule; 1 for each triple in all."""
    size = len(benchmark.positives.test)
    concluding = np.zeros(len(benchmark.rules), dtype=bool)
    concluding[rule[row < size]] = True
    rows = int(row.max(initial=-1)) + 1
    among = np.bincount(row, concluding[rule], minlength=rows)
    # Where no rule of a negative has a conclusion in test, all of its rules share it.
    taking = np.where(among[row] > 0, concluding[rule], True)
    shares = np.bincount(row, taking, minlength=rows)
    return np.asarray(taking / shares[row])
