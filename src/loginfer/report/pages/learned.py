"""What systems really learn: beside the shortcuts, rule by rule, and against theory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from loginfer.logic.patterns import SHORT_NAMES
from loginfer.report import learned_charts as charts
from loginfer.report.figures import benchmark_labels, rounded, share_text
from loginfer.report.learned_edits import edit_rows
from loginfer.report.learned_values import (
    MARGIN,
    REFERENCES,
    Standing,
    hardest,
    outcome,
    rule_rows,
    shown,
    standings,
)
from loginfer.report.material import Material
from loginfer.report.negative_methods import Groups, grouped, method_order
from loginfer.report.paper import benchmark_parts
from loginfer.report.theory import expressiveness, theory
from loginfer.report.values import Column, DataFile, Grid, Page, Picker

__all__ = ["pages"]

# What each method is called in a sentence.
_NAMES = {
    "rc": "random corruption", "rb": "relevance-based negatives", "pa": "position-aware negatives",
    "qg": "query-guided negatives", "nm": "near misses", "nmm": "matched near misses",
}  # fmt: skip


def pages(material: Material) -> Iterator[Page | DataFile]:
    """Make the page and its data, if some benchmark has near misses or several kinds of negatives."""
    groups, notes = grouped(material.collection)
    if not any(len(methods) > 1 or "nm" in methods or "nmm" in methods for methods in groups.values()):
        return
    found = standings(material, groups)
    if not found:
        return
    options: list[tuple[str, str]] = []
    labels = benchmark_labels(material.collection.benchmark_names)
    edits = False
    for benchmark in _looked_into(groups):
        path = material.data_file("learned", benchmark)
        data = _benchmark_data(material, benchmark)
        options.append((labels[benchmark], path))
        edits = edits or bool(data["charts"]["edits"]["rows"])
        yield DataFile(path, data)
    yield _page(material, groups, found, options, edits, notes)


def _looked_into(groups: Groups) -> list[str]:
    """Return the benchmarks that are shown rule by rule: for each group its hardest negatives first."""
    found = []
    for methods in groups.values():
        order = [m for m in (hardest(list(methods)),) if m] + [m for m in methods if m in ("nmm", "qg")]
        found += [next(iter(methods[m].values())).benchmark for m in dict.fromkeys(order)]
    return list(dict.fromkeys(found))


def _benchmark_data(material: Material, benchmark: str) -> dict[str, Any]:
    cells = material.collection.of_benchmark(benchmark)
    edits = edit_rows(material, benchmark, cells)
    missing = "" if edits["rows"] else " Where its negatives came from is not known: give its folder, too."
    return {
        "charts": {"rules-and-near-misses": rule_rows(cells), "edits": edits},
        "texts": {"chosen": f"{benchmark}: first seed of each system.{missing}"},
    }


def _page(
    material: Material,
    groups: Groups,
    found: Sequence[Standing],
    options: Sequence[tuple[str, str]],
    edits: bool,
    notes: Sequence[str],
) -> Page:
    present = {s.cell.system for s in found}
    systems = [name for name in material.collection.systems if name in present]
    methods = sorted({s.method for s in found}, key=method_order)
    first = sorted(methods, key=lambda method: (method != hardest(methods), method_order(method)))
    names = [group for group in groups if any(s.group == group for s in found)]
    # A line needs two ends: groups with several kinds of negatives come first.
    several = sorted(names, key=lambda group: len(groups[group]) < 2)
    measured = any(s.best is not None for s in found)
    content = {
        "summary": _summary(found),
        "margin": round(100 * MARGIN),
        "slopes": charts.slope_chart(found, several, methods, systems),
        "margins": charts.margin_chart(found, names, first, systems) if measured else None,
        "grid_": _grid(found, names, systems) if measured else None,
        "picker": Picker("benchmark", tuple(options)),
        # Who learns something comes first in the menu.
        "rules": charts.rule_chart(sorted(systems, key=REFERENCES.__contains__)) if options else None,
        "edits": charts.edit_chart(systems) if edits else None,
        "theory": _theory(found, names, systems) if measured else None,
        "notes": notes,
    }
    title = "What do systems really learn?"
    return Page("learned.html", title, "learned.html", content, "learned")


def _summary(found: Sequence[Standing]) -> list[str]:
    """Say for each kind of negatives how often systems have shown more than a shortcut."""
    told = []
    for method, (learned, of) in shown(found).items():
        best = [s.best for s in found if s.method == method and s.best is not None]
        mean = share_text(sum(best) / len(best))
        told.append(
            f"{_NAMES.get(method, method)} ({method}): {learned} of {of} pairs of a system and a benchmark; "
            f"the best shortcut reaches {mean} % in the mean"
        )
    return told


def _grid(found: Sequence[Standing], groups: Sequence[str], systems: Sequence[str]) -> Grid:
    """Return the systems above the best shortcut, with the hardest negatives of each benchmark."""
    chosen = _hardest_of(found, groups)
    columns = [Column("system"), *(Column(f"{group} ({chosen[group]})", "share") for group in chosen)]
    by_place = {(s.cell.system, s.group): s for s in found if chosen.get(s.group) == s.method}
    rows = []
    for system in systems:
        mine = [by_place.get((system, group)) for group in chosen]
        rows.append((system, *(None if s is None else rounded(s.over) for s in mine)))
    caption = "Balanced accuracy minus that of the best shortcut, in points, and the kind of negatives."
    return Grid(tuple(columns), tuple(rows), caption)


def _hardest_of(found: Sequence[Standing], groups: Sequence[str]) -> dict[str, str]:
    chosen = {}
    for group in groups:
        method = hardest([s.method for s in found if s.group == group and s.best is not None])
        if method is not None:
            chosen[group] = method
    return chosen


# -- theory -------------------------------------------------------------------------------------


def _theory(
    found: Sequence[Standing], groups: Sequence[str], systems: Sequence[str]
) -> dict[str, Any] | None:
    """Return theory against figures: a row for each system, a column for each graph and pattern."""
    patterns = _patterns(found)
    chosen = {g: method for g, method in _hardest_of(found, groups).items() if g in patterns}
    by_place = {(s.cell.system, s.group): s for s in found if chosen.get(s.group) == s.method}
    rows = []
    for system in systems:
        cells = [_cell(by_place.get((system, group)), patterns[group]) for group in chosen]
        if any(cell is not None for cell in cells):
            rows.append((system, cells))
    if not rows:
        return None
    there = {system for system, _ in rows}
    reasons = [
        known for (name, _), known in theory().items()
        if any(s.cell.name == name and s.cell.system in there for s in found)
    ]  # fmt: skip
    asked = {patterns[group] for group in chosen}
    return {
        "columns": [(group, chosen[group]) for group in chosen],
        "rows": rows,
        "reasons": [
            (r.system, SHORT_NAMES[r.pattern], r.can, r.why, r.source) for r in reasons if r.pattern in asked
        ],
    }


def _cell(standing: Standing | None, pattern: str) -> dict[str, str] | None:
    if standing is None or standing.over is None:
        return None
    known = expressiveness(standing.cell.name, pattern)
    if known is None:
        return None
    colour, meaning = outcome(known.can, standing.learned)
    return {
        "class": colour,
        "can": known.can,
        "value": share_text(standing.value),
        "over": share_text(standing.over, sign=True),
        "meaning": meaning,
        "why": f"{known.why} ({known.source})",
    }


def _patterns(found: Sequence[Standing]) -> dict[str, str]:
    """Return the short name of each group's pattern; only names of the suite tell one."""
    parts = {s.group: benchmark_parts(s.cell.first.benchmark) for s in found}
    return {group: known[1] for group, known in parts.items() if known and known[1] in SHORT_NAMES}
