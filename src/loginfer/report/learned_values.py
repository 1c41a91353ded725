"""How far systems are above shortcuts, and what that says about what they learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from loginfer.report.collection import Cell
from loginfer.report.material import Material
from loginfer.report.negative_methods import Groups, method_order
from loginfer.report.rule_rows import diagnosis_of, rule_label
from loginfer.report.theory import Answer
from loginfer.report.values import Rows

__all__ = [
    "HARD",
    "MARGIN",
    "REFERENCES",
    "Outcome",
    "Standing",
    "hardest",
    "outcome",
    "rule_rows",
    "shortcuts_on",
    "shown",
    "standings",
]

# So far above the best shortcut a system must be, to have learned more than it.
MARGIN = 0.10
# Methods that say something about what was learned, the one that says most first.
HARD = ("nm", "nmm", "qg", "pa")
# Who learns nothing: the paper's baseline, and the oracle, which knows the rules.
REFERENCES = ("simpbl", "oracle")

Outcome = Literal["learned", "not shown", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Standing:
    """A system on a benchmark, beside the best shortcut there.

    Parameters
    ----------
    group, method
        Graph and pattern, and the method for negatives.
    cell
        The runs.
    value
        Balanced accuracy, the mean over the seeds.
    shortcut, best
        The best shortcut and its balanced accuracy; None where nobody knows.
    """

    group: str
    method: str
    cell: Cell
    value: float
    shortcut: str | None
    best: float | None

    @property
    def over(self) -> float | None:
        """By how much the system is above the best shortcut."""
        return None if self.best is None else self.value - self.best

    @property
    def learned(self) -> Outcome:
        """Whether the system has shown that it learned more than a shortcut."""
        if self.best is None or self.best > 1 - MARGIN:
            return "cannot tell"
        return "learned" if round(self.value - self.best, 9) >= MARGIN else "not shown"


def shortcuts_on(material: Material, cell: Cell) -> Mapping[str, float]:
    """Return the balanced accuracy of each shortcut on a cell's benchmark; nothing if nobody knows.

    Without the benchmark's folder, what the run wrote down: plain accuracy, without the combined shortcut.
    """
    return material.once(("shortcuts", cell.benchmark), lambda: _shortcuts(material, cell))


def _shortcuts(material: Material, cell: Cell) -> Mapping[str, float]:
    from loginfer.benchmark.shortcut_combined import balanced_accuracies

    benchmark = material.benchmark(cell.benchmark)
    method = cell.method
    if benchmark is not None and method is not None and method in benchmark.negatives:
        material.tell(f"shortcuts on {cell.benchmark}")
        return balanced_accuracies(benchmark, method)
    told = diagnosis_of(cell).get("baselines", {})
    return {name: known["accuracy"] for name, known in told.items() if known["accuracy"] is not None}


def standings(material: Material, groups: Groups) -> list[Standing]:
    """Return every system on every benchmark that has a balanced accuracy, in the report's order."""
    found = []
    for group, methods in groups.items():
        for method, cells in methods.items():
            known = shortcuts_on(material, next(iter(cells.values())))
            shortcut, best = max(known.items(), key=lambda item: item[1], default=(None, None))
            for cell in cells.values():
                value = cell.mean("balanced_accuracy")
                if value is not None:
                    found.append(Standing(group, method, cell, value, shortcut, best))
    return found


def hardest(methods: Sequence[str]) -> str | None:
    """Return the method that says most about what was learned; None if there is none of them."""
    return next((method for method in HARD if method in methods), None)


def outcome(can: Answer, learned: Outcome) -> tuple[str, str]:
    """Return how theory and figures agree: a word for its colour, and what it means."""
    if learned == "cannot tell":
        return "open", "a shortcut solves this benchmark: it cannot tell"
    if can == "unknown":
        return "open", "theory is silent"
    if can == "yes":
        return ("agree", "can, and does") if learned == "learned" else ("missed", "can, but does not show it")
    return (
        ("disagree", "cannot, yet is above all shortcuts")
        if learned == "learned"
        else ("agree", "cannot, and does not")
    )


def shown(found: Sequence[Standing]) -> dict[str, tuple[int, int]]:
    """Return by method on how many benchmarks systems have learned more than a shortcut, of how many."""
    counts: dict[str, tuple[int, int]] = {}
    for method in sorted({s.method for s in found}, key=method_order):
        mine = [
            s for s in found if s.method == method and s.cell.name not in REFERENCES and s.best is not None
        ]
        if mine:
            counts[method] = sum(s.learned == "learned" for s in mine), len(mine)
    return counts


RULE_FIELDS = ("system", "rule", "short", "conclusions", "recall", "negatives", "accepted", "gap")


def rule_rows(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return for each rule and system which share of its conclusions and of its negatives is accepted."""
    rows = []
    for cell in cells:
        for known in cell.metrics[0].get("breakdown", {}).get("rules", ()):
            conclusions, negatives = known["tp"] + known["fn"], known["fp"] + known["tn"]
            if conclusions and negatives:
                recall, accepted = known["tp"] / conclusions, known["fp"] / negatives
                rows.append(
                    (
                        cell.system,
                        known["rule"],
                        rule_label(known["rule"]),
                        conclusions,
                        round(recall, 4),
                        negatives,
                        round(accepted, 4),
                        round(recall - accepted, 4),
                    )
                )
    return Rows.of(RULE_FIELDS, rows).packed("system", "rule", "short")
