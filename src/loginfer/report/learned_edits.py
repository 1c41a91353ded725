"""Which kinds of negatives systems accept: near misses by the edit that makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.values import EDITS, SOURCES, Origins
from loginfer.report.collection import Cell
from loginfer.report.material import Material
from loginfer.report.statistics import decisions_of
from loginfer.report.values import Rows

__all__ = ["CONCLUSIONS", "EDIT_FIELDS", "EDIT_NAMES", "KINDS", "edit_rows"]

EDIT_FIELDS = ("system", "kind", "triples", "share", "place")
# The column of the positives.
CONCLUSIONS = "conclusions"
# Where a negative came from, as the page says it, in the order of the columns.
EDIT_NAMES = {
    "replace": "another relation",
    "reverse": "reversed",
    "drop": "atom missing",
    "drop-inequality": "equal constants",
}
_SOURCE_NAMES = {"sub-rule": "sub-rule", "position": "other constant", "relevance": "any constants",
                 "object": "any object"}  # fmt: skip
KINDS = (CONCLUSIONS, *EDIT_NAMES.values(), *_SOURCE_NAMES.values(), "other")


def edit_rows(material: Material, benchmark: str, cells: Sequence[Cell]) -> dict[str, Any]:
    """Return for each system the shares of conclusions and of each kind of negatives that it accepts.

    Nothing without the benchmark's folder, or where it does not tell the origins of its negatives.
    """
    found = material.benchmark(benchmark)
    method = cells[0].method if cells else None
    origins = None
    if found is not None and method is not None and method in found.negatives:
        origins = found.negatives[method].origins.get("test")
    rows: list[tuple[Any, ...]] = []
    if origins is not None and len(origins):
        kinds = _kinds(origins)
        for cell in cells:
            rows += _of_cell(cell, kinds)
    return Rows.of(EDIT_FIELDS, rows).packed("system", "kind")


def _of_cell(cell: Cell, kinds: npt.NDArray[np.int64]) -> list[tuple[Any, ...]]:
    said = decisions_of(cell.first)
    if said.said_positive is None or said.said_negative is None or len(said.said_negative) != len(kinds):
        return []
    rows: list[tuple[Any, ...]] = []
    if len(said.said_positive):
        share = round(float(said.said_positive.mean()), 4)
        rows.append((cell.system, CONCLUSIONS, len(said.said_positive), share, 0))
    for place in np.unique(kinds).tolist():
        mine = said.said_negative[kinds == place]
        rows.append((cell.system, KINDS[place], len(mine), round(float(mine.mean()), 4), place))
    return rows


def _kinds(origins: Origins) -> npt.NDArray[np.int64]:
    """Return int64[n]: places in `KINDS`."""
    by_edit = [KINDS.index(EDIT_NAMES[name]) if name in EDIT_NAMES else -1 for name in EDITS]
    by_source = [
        KINDS.index(_SOURCE_NAMES[name]) if name in _SOURCE_NAMES else KINDS.index("other")
        for name in SOURCES
    ]
    edited = np.array(by_edit, dtype=np.int64)[origins.edit]
    return np.where(edited >= 0, edited, np.array(by_source, dtype=np.int64)[origins.source])
