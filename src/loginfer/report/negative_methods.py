"""Methods for negatives as the report orders them, and where a run belongs: one group, several methods."""

from __future__ import annotations

from typing import Any

from loginfer.report.collection import Cell, Collection
from loginfer.report.paper import benchmark_parts

__all__ = ["METHODS", "Groups", "grouped", "method_order", "place_of"]

# In the order of the paper, then near misses, plain and matched; others follow by name.
METHODS = ("rc", "rb", "pa", "qg", "nm", "nmm")

# By graph and pattern, then by method, then by system.
Groups = dict[str, dict[str, dict[str, Cell]]]


def place_of(cell: Cell) -> tuple[str, str | None]:
    """Return what a cell is grouped by, and its method: the suite has a benchmark for each method."""
    name = cell.first.benchmark
    parts = benchmark_parts(name)
    if parts is not None and (parts[2] == cell.method or (parts[2], cell.method) == ("nmm", "nm")):
        return f"{parts[0]}-{parts[1]}", parts[2]
    return name, cell.method


def method_order(method: str) -> tuple[int, str]:
    """Return what methods are sorted by."""
    return METHODS.index(method) if method in METHODS else len(METHODS), method


def grouped(collection: Collection) -> tuple[Groups, list[str]]:
    """Return the cells by group, method and system, and what was left out."""
    found: Groups = {}
    notes: list[str] = []
    for cell in collection.cells:
        group, method = place_of(cell)
        if method is None:
            continue
        systems = found.setdefault(group, {}).setdefault(method, {})
        if cell.system in systems:
            other = systems[cell.system].benchmark
            notes.append(
                f"{cell.system} on {cell.benchmark} is not shown: {other} has the same name and method"
            )
        else:
            systems[cell.system] = cell

    def order(item: tuple[str, Any]) -> tuple[int, str]:
        return method_order(item[0])

    return {group: dict(sorted(methods.items(), key=order)) for group, methods in found.items()}, notes
