"""The figures along an axis: one line a step, with what it cost at each size."""

from __future__ import annotations

from typing import Any, NamedTuple

from perf.growth.axes import BASE
from perf.growth.plan import KINDS
from perf.growth.results import Record

__all__ = ["Line", "at", "lines_along"]


class Line(NamedTuple):
    """What a line is about: the step, what of it, and the engine."""

    step: str
    what: str
    engine: str

    @property
    def label(self) -> str:
        """What a legend calls it."""
        return f"{self.what}, {self.engine}" if self.engine else self.what


def lines_along(records: list[Record], axis: str) -> dict[Line, list[Record]]:
    """Return the measurements on an axis by line, smallest first; those that failed are left out.

    Lines are in the order of `perf.growth.plan.KINDS`.
    """
    found: dict[Line, list[Record]] = {}
    for record in sorted(records, key=lambda record: at(record, axis)):
        if not record["failure"] and _on(record, axis):
            found.setdefault(Line(record["step"], record["what"], record["engine"]), []).append(record)
    order = [Line(kind.step, kind.what, kind.engine) for kind in KINDS]
    return {line: found[line] for line in order if line in found}


def at(record: dict[str, Any], axis: str) -> int:
    """Return where a measurement is on an axis; constants are those that the graph has in the end."""
    return int(record[axis])


def _on(record: Record, axis: str) -> bool:
    triples, relations, entities = record["triples"], record["relations"], record["entities"]
    if axis == "triples":
        return bool(relations == BASE.relations and entities == triples // 10)
    if axis == "relations":
        return bool(triples == BASE.triples and entities == BASE.entities)
    return bool(triples == BASE.triples and relations == BASE.relations)
