"""The figures as text: a table an axis, a row a size, a column a step (Markdown tables, too)."""

from __future__ import annotations

from collections import Counter

from perf.growth.axes import AXES
from perf.growth.results import Record, cpu, megabytes
from perf.growth.series import Line, at, lines_along

__all__ = ["aligned", "differing", "exponent_table", "mixed", "tables"]


def tables(records: list[Record]) -> str:
    """Return CPU seconds and peak memory along each axis."""
    return "\n\n".join(_table(records, axis) for axis in AXES if lines_along(records, axis))


def _table(records: list[Record], axis: str) -> str:
    lines = lines_along(records, axis)
    sizes = sorted({at(record, axis) for measured in lines.values() for record in measured})
    rows = [["step", "", "engine", *(f"{size:,}" for size in sizes)]]
    for line, points in lines.items():
        costs = {at(record, axis): _cost(record) for record in points}
        rows.append([*line, *(costs.get(size, "") for size in sizes)])
    rows[0][0] = f"{axis}:"
    return aligned(rows, left=3)


def _cost(record: Record) -> str:
    return f"{cpu(record):.2f} s, {megabytes(record):,.0f} MB"


def exponent_table(rows: list[dict[str, object]]) -> str:
    """Return the exponents of CPU seconds, a row a step, a column an axis."""
    found: dict[Line, dict[str, str]] = {}
    for row in rows:
        line = Line(str(row["step"]), str(row["what"]), str(row["engine"]))
        shown = "" if row["cpu"] is None else f"{row['cpu']:.2f}"
        found.setdefault(line, {})[str(row["axis"])] = shown
    cells = [[*line, *(by_axis.get(axis, "") for axis in AXES)] for line, by_axis in found.items()]
    return aligned([["step", "", "engine", *AXES], *cells], left=3)


def differing(records: list[Record]) -> list[str]:
    """Return a complaint for each size at which engines built different benchmarks."""
    sums: dict[tuple[int, int, int], dict[str, str]] = {}
    for record in records:
        if record["step"] == "building" and not record["failure"]:
            size = (record["triples"], record["relations"], record["entities"])
            sums.setdefault(size, {})[record["engine"]] = record["summary"]["checksum"]
    return [
        f"engines built different benchmarks of {size}: {by}" for size, by in sums.items() if len(set(by.values())) > 1
    ]


def mixed(records: list[Record]) -> str:
    """Return a note if the figures come from different versions of the code; else nothing."""
    versions = Counter(record["source"] for record in records)
    if len(versions) < 2:
        return ""
    shown = ", ".join(f"{count} from {version}" for version, count in versions.most_common())
    return f"note: figures of different versions of the code: {shown}; --force measures all again"


def aligned(rows: list[list[str]], left: int) -> str:
    """Return a Markdown table whose columns are aligned; the first ones to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: list[str]) -> str:
        cells = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(cells)} |"

    rule = "|".join("-" * (w + 2) if i < left else "-" * (w + 1) + ":" for i, w in enumerate(widths))
    return "\n".join([line(rows[0]), f"|{rule}|", *map(line, rows[1:])])
