"""Which rules of the benchmarks the miners of a report found: ε_ent and ε_cont with their controls."""

from __future__ import annotations

from dataclasses import dataclass, field

from loginfer.errors import InputError
from loginfer.evaluation.rule_recovery_values import RecoveryFigures
from loginfer.evaluation.runs import WEIGHTS
from loginfer.report.collection import Cell
from loginfer.report.facts import entry_of
from loginfer.report.material import Material
from loginfer.report.paper import SYSTEMS, benchmark_parts, paper_figures

__all__ = ["Recovered", "Recovery", "keeps_rules", "paper_recovery", "recover"]

# Kinds of systems that keep something else than rules.
_NO_RULES = ("baseline", "shortcut", "embedding", "graph neural network")


@dataclass(frozen=True, slots=True)
class Recovered:
    """The shares of one cell."""

    cell: Cell
    figures: RecoveryFigures


@dataclass
class Recovery:
    """The shares of all cells of miners, and why some have none."""

    found: list[Recovered] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def look_at(self, material: Material, cell: Cell) -> None:
        """Add a cell, if its system keeps rules."""
        if not keeps_rules(cell):
            return
        place = f"{cell.system} on {cell.benchmark}"
        if not (cell.first.path / WEIGHTS).is_file():
            self.notes.append(f"{place}: the run has no weights, so that its rules are not known")
            return
        if cell.benchmark not in material.collection.benchmarks:
            self.notes.append(f"{place}: the benchmark's folder was not given")
            return
        material.tell(f"rules of {place}")
        try:
            self.found.append(Recovered(cell, recover(material, cell)))
        except InputError as problem:  # it keeps something else, or there is nothing to compare
            self.notes.append(f"{place}: {problem.message}")


def keeps_rules(cell: Cell) -> bool:
    """Say whether a cell's system may have kept rules; of one that is not known, whether it kept anything."""
    entry = entry_of(cell.name)
    if entry is None or entry.kind == "plug-in":
        return (cell.first.path / WEIGHTS).is_file()
    return entry.kind not in _NO_RULES


def recover(material: Material, cell: Cell) -> RecoveryFigures:
    """Compare the rules of a cell's first run with the benchmark's, as `loginfer rules analyse` does.

    Sub-rules are left out: for rules with large bodies they would take minutes.

    Raises
    ------
    InputError
        If the run has kept no rules, or the benchmark has none.
    """
    from loginfer.evaluation.rule_recovering import rule_recovery
    from loginfer.evaluation.rule_recovery_reading import read_mined

    benchmark = material.benchmark(cell.benchmark)
    if benchmark is None:
        raise InputError("the benchmark's folder was not given")
    mined, _ = read_mined(cell.first.path, benchmark)
    found = rule_recovery(benchmark.program, mined, benchmark.graph, confidences=(), subrules=False)
    return found.figures


def paper_recovery(cell: Cell, metric: str) -> float | None:
    """Return the paper's `eps_ent` or `eps_cont` for a cell, as a fraction; None where it has none.

    The paper's table of rules has one figure for a pattern, whatever the negatives: its miners use none.
    """
    parts = benchmark_parts(cell.first.benchmark)
    if parts is None or cell.name not in SYSTEMS:
        return None
    wanted = ("result-rule", *parts[:2], SYSTEMS[cell.name], metric)
    for figure in paper_figures():
        if (figure.table, figure.kg, figure.pattern, figure.system, figure.metric) == wanted:
            return figure.value / 100
    return None
