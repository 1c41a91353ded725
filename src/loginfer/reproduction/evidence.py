"""The table `evidence`: systems and shortcuts, side by side, on negatives that are harder and harder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loginfer.benchmark.shortcut_combined import COMBINED
from loginfer.benchmark.shortcuts import SHORTCUTS
from loginfer.report.table_values import Entry, TableValue, best_in_bold, half_interval
from loginfer.reproduction.figures import Figures
from loginfer.reproduction.participants import title
from loginfer.reproduction.parts import EVIDENCE, benchmarks_of
from loginfer.reproduction.planning import Request

__all__ = ["NEGATIVES", "evidence_table", "groups_of"]

# As they stand in the names of benchmarks: position-aware, query-guided, near misses, matched near misses.
NEGATIVES = ("pa", "qg", "nm", "nmm")

# How a row about a shortcut is told from one about a system.
MARK = "shortcut: "

_NOTES = (
    "Balanced accuracy on test. pa: position-aware negatives. qg: query-guided ones, where the pattern has "
    "undesired sub-rules. nm: near misses. nmm: near misses matched to the positives in popularity and "
    "adjacency.",
    "A shortcut knows no rule. Its threshold is chosen on valid. combined: a logistic model over all of "
    "them.",
    "Bold: the best system, without the oracle, which knows the rules.",
)


def groups_of(benchmarks: Sequence[str]) -> tuple[str, ...]:
    """Return graph and pattern of the benchmarks that the table is about, such as `FB-sym`."""
    about = [name for name in benchmarks_of(EVIDENCE) if name in benchmarks]
    return tuple(dict.fromkeys(name.removeprefix("LogInfer-").rsplit("-", 1)[0] for name in about))


def evidence_table(figures: Figures, request: Request) -> TableValue:
    """Return the table.

    Parameters
    ----------
    figures
        What was found.
    request
        What was asked.
    """
    rows: list[tuple[Entry, ...]] = []
    blocks = []
    notes: list[str] = []
    for group in groups_of(request.benchmarks):
        blocks.append(len(rows))
        columns = [_column(figures, request, f"LogInfer-{group}-{method}", notes) for method in NEGATIVES]
        names = [*map(title, request.systems), *(MARK + name for name in (*SHORTCUTS, COMBINED))]
        for number, name in enumerate(names):
            rows.append((Entry(group), Entry(name), *(column[number] for column in columns)))
    seeds = f"Mean of {request.seeds} seeds, ± half its 95 % interval (Student's t)."
    one = "One run each, with seed 0."
    general = (*_NOTES, seeds if request.seeds > 1 else one)
    return TableValue(
        "What systems learn and what shortcuts reach: balanced accuracy in percent",
        ("benchmark", "system", *NEGATIVES),
        tuple(rows),
        (*notes, *general),
        tuple(blocks),
    )


def _column(figures: Figures, request: Request, benchmark: str, notes: list[str]) -> list[Entry]:
    """Return the entries of a benchmark: systems, then shortcuts."""
    systems = [_system(figures, system, benchmark, notes) for system in request.systems]
    shown = best_in_bold(systems, [system != "oracle" for system in request.systems])
    reached = figures.shortcuts.get(benchmark, {})
    for name in (*SHORTCUTS, COMBINED):
        shown.append(Entry(value=100 * reached[name]) if name in reached else Entry())
    return shown


def _system(figures: Figures, system: str, benchmark: str, notes: list[str]) -> Entry:
    values = [100 * value for value in figures.values(system, benchmark, "balanced_accuracy")]
    marks = []
    for failure in figures.failed(system, benchmark):
        reason = f"failed: {failure['reason']}"
        if reason not in notes:
            notes.append(reason)
        marks.append(notes.index(reason) + 1)
    entry = Entry(notes=tuple(dict.fromkeys(marks)))
    if values:
        return replace(entry, value=sum(values) / len(values), half=half_interval(values))
    return replace(entry, text="failed" if marks else "")
