"""Which of the paper's conclusions survive negatives that shortcuts do not solve: the same comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from loginfer.benchmark.negatives.methods import NEAR_MISSES, POSITION
from loginfer.evaluation.diagnosis import spearman
from loginfer.reproduction.claims import paper
from loginfer.reproduction.figures import Figures
from loginfer.reproduction.planning import EVIDENCE, benchmarks_of, data, title

# The kinds of negatives on which every conclusion is tested.
COMPARED = (POSITION.name, *NEAR_MISSES.names)

SIMPLE = ("sym", "inver", "hier")
COMPLEX = ("comp", "trian", "diam")
# What we take for "clearly", and for a gain, in points.
CLEARLY = 10.0
GAIN = 1.0
# A rank correlation from here on counts as the same order.
SAME_ORDER = 0.7


@dataclass(frozen=True, slots=True)
class Case:
    """What a conclusion is tested on.

    Parameters
    ----------
    figures
        Ours.
    groups
        Graphs and patterns that were asked for, such as `FB-sym`.
    negatives
        Which kind: one of `COMPARED`.
    """

    figures: Figures
    groups: tuple[str, ...]
    negatives: str

    def name(self, group: str, negatives: str | None = None) -> str:
        """Return the benchmark of a graph and pattern."""
        return f"LogInfer-{group}-{negatives or self.negatives}"

    def mean(self, system: str, group: str, negatives: str | None = None) -> float | None:
        """Return the balanced accuracy of a system."""
        return self.figures.mean(system, self.name(group, negatives), paper.ACCURACY)

    def mean_over(self, systems: Sequence[str], groups: Sequence[str]) -> float | None:
        """Return the mean over systems and benchmarks; None unless all figures are there."""
        return paper.mean_of(self.figures, systems, [self.name(group) for group in groups])

    def shortcut(self, group: str) -> float | None:
        """Return what the best shortcut reaches."""
        best = self.figures.best_shortcut(self.name(group))
        return None if best is None else best[1]

    def of(self, *patterns: str) -> dict[str, str]:
        """Return the groups with one of these patterns, by default all, and their benchmarks."""
        groups = [group for group in self.groups if not patterns or group.split("-", 1)[1] in patterns]
        return {group: self.name(group) for group in groups}

    @property
    def graphs(self) -> tuple[str, ...]:
        """The graphs."""
        return tuple(dict.fromkeys(group.split("-", 1)[0] for group in self.groups))


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with the judgement for each kind of negatives."""

    question: paper.Claim
    judgements: dict[str, paper.Judgement]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        question = self.question
        return {
            "number": question.number,
            "claim": question.text,
            "test": question.test,
            "verdicts": {negatives: j.verdict for negatives, j in self.judgements.items()},
            "explanations": {negatives: j.explanation for negatives, j in self.judgements.items()},
            "figures": {negatives: paper.as_figures(j) for negatives, j in self.judgements.items()},
        }


def answers(figures: Figures, groups: Sequence[str]) -> list[Answer]:
    """Test every conclusion with every kind of negatives.

    Parameters
    ----------
    figures
        Ours.
    groups
        Graphs and patterns to test it on; those of which the suite has no benchmark with a kind of negatives, and which
        earlier figures have not either, are left out with that kind.
    """
    present = {*benchmarks_of(EVIDENCE), *figures.shortcuts}
    cases = [Case(figures, tuple(g for g in groups if f"LogInfer-{g}-{kind}" in present), kind) for kind in COMPARED]
    return [
        Answer(question, {case.negatives: paper.judge(question.checks(case)) for case in cases})
        for question in QUESTIONS
    ]


# -- the conclusions --------------------------------------------------------------------------------


def _learned(case: Case) -> list[paper.ClaimCheck]:
    compared = []
    for group in case.groups:
        for system in paper.EIGHT:
            on_pa, accuracy, best = case.mean(system, group, "pa"), case.mean(system, group), case.shortcut(group)
            name = f"{title(system)} on {group}"
            if on_pa is None:
                compared.append(paper.Comparison(name))
            elif round(100 * on_pa, 6) >= paper.HIGH:
                compared.append(paper.above(name, accuracy, best, CLEARLY))
    return [paper.ClaimCheck("Clearly above the best shortcut", tuple(compared))]


def _baseline(case: Case) -> list[paper.ClaimCheck]:
    return [paper.better_than_baseline(case.figures, case.of(), paper.ACCURACY, GAIN)]


def _simple_and_complex(case: Case) -> list[paper.ClaimCheck]:
    def of(graph: str, patterns: Sequence[str]) -> list[str]:
        return [name for group, name in case.of(*patterns).items() if group.startswith(f"{graph}-")]

    groups = {graph: (of(graph, SIMPLE), of(graph, COMPLEX)) for graph in case.graphs}
    return [paper.simple_above_complex(case.figures, groups, GAIN)]


def _rule_based(case: Case) -> list[paper.ClaimCheck]:
    return paper.gain_of_rules(case.figures, case.of(*SIMPLE), case.of(*COMPLEX), GAIN, GAIN)


def _poor(case: Case, system: str, pattern: str) -> list[paper.ClaimCheck]:
    comparisons = [
        paper.above(
            f"{title(system)} and the best shortcut on {group}", case.mean(system, group), case.shortcut(group), CLEARLY
        )
        for group in case.of(pattern)
    ]
    return [
        paper.ClaimCheck(f"{title(system)} poor", paper.poor(case.figures, system, case.of(pattern))),
        paper.ClaimCheck("Not clearly above the best shortcut", tuple(c.negated() for c in comparisons)),
    ]


def _strong(case: Case) -> list[paper.ClaimCheck]:
    return [paper.strong_on_hierarchy(case.figures, case.of("hier"))]


def _order(case: Case) -> list[paper.ClaimCheck]:
    compared = []
    for group in case.groups:
        pairs = [(case.mean(system, group, "pa"), case.mean(system, group)) for system in paper.EIGHT]
        complete = [(a, b) for a, b in pairs if a is not None and b is not None]
        if len(complete) < len(pairs):
            compared.append(paper.Comparison(group))
            continue
        first, second = (np.array(values) for values in zip(*complete, strict=True))
        # Figures are compared as they are shown.
        rho = spearman(np.round(100 * first, 1), np.round(100 * second, 1))
        text = "all alike" if rho is None else f"ρ = {rho:.2f}"
        compared.append(paper.Comparison(group, text, rho is not None and rho >= SAME_ORDER))
    return [paper.ClaimCheck("The same order of systems", tuple(compared))]


def _high(case: Case) -> list[paper.ClaimCheck]:
    values = [paper.at_least(group, case.mean_over(paper.EIGHT, [group]), paper.HIGH) for group in case.of(*SIMPLE)]
    return [paper.ClaimCheck("High on average", tuple(values))]


# How each conclusion is tested, by its number; its words are in `data/claims.toml`.
_CHECKS: dict[str, Callable[[Case], list[paper.ClaimCheck]]] = {
    "1": _learned, "2": _high, "3": _baseline, "4": _simple_and_complex, "5": _rule_based,
    "6": lambda case: _poor(case, "transe", "sym"), "7": lambda case: _poor(case, "distmult", "inver"),
    "8": _strong, "9": _order,
}  # fmt: skip
_LIMITS = {
    "clearly": CLEARLY, "unclear": 100 - CLEARLY, "gain": GAIN, "same_order": SAME_ORDER, "high": paper.HIGH,
    "poorly": paper.POORLY, "strong": paper.STRONG,
}  # fmt: skip
# Conclusions of the paper, which are tested with any kind of negatives.
QUESTIONS = paper.claims_of(data("claims.toml")["evidence"], _CHECKS, {}, _LIMITS)


def mean_fall(figures: Figures, groups: Sequence[str], negatives: str) -> float | None:
    """Return by how much the eight systems fall on average from pa to other negatives, as a fraction.

    Over the cells that have both figures; None without any.
    """
    case = Case(figures, tuple(groups), negatives)
    pairs = [(case.mean(s, group, "pa"), case.mean(s, group)) for group in groups for s in paper.EIGHT]
    falls = [on_pa - accuracy for on_pa, accuracy in pairs if on_pa is not None and accuracy is not None]
    return fmean(falls) if falls else None
