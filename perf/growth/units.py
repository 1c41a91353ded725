"""Unit costs: what a million triples, a million positives, a thousand queries cost."""

from __future__ import annotations

from typing import Any

from perf.growth.results import Record, cpu, megabytes
from perf.growth.series import Line, lines_along

__all__ = ["PER", "amount", "unit_costs"]

MILLION = 10**6
# What the cost of a step is divided by.
PER = {
    "loading": "million triples",
    "ranking": "million triples",
    "building": "million triples",
    "training": "million positives",
    "classification": "1,000 test triples",
    "1,000 ranked": "1,000 queries × million constants",
}


def amount(record: Record) -> float:
    """Return how many units of `PER` a measurement did."""
    summary = record["summary"]
    if record["step"] == "training":
        return float(summary["positives"]) / MILLION
    if record["what"] == "classification":
        return float(summary["triples"]) / 1000
    if record["step"] == "evaluating":
        return float(summary["queries"]) / 1000 * float(record["constants"]) / MILLION
    return float(record["triples"]) / MILLION


def unit_costs(records: list[Record]) -> list[dict[str, Any]]:
    """Return a row a step: CPU seconds a unit at the largest measured size, and that size.

    Memory is told as a line through the two largest sizes: so much in any case, so much a million triples.
    """
    return [_unit(line, points) for line, points in lines_along(records, "triples").items()]


def _unit(line: Line, points: list[Record]) -> dict[str, Any]:
    largest = points[-1]
    fixed, slope = _memory(points)
    return {
        **line._asdict(),
        "per": PER.get(line.what, PER.get(line.step, "")),
        "cpu": round(cpu(largest) / amount(largest), 3),
        "triples": largest["triples"],
        "fixed_megabytes": round(fixed),
        "megabytes_per_million_triples": round(slope, 1),
    }


def _memory(points: list[Record]) -> tuple[float, float]:
    if len(points) < 2:
        return megabytes(points[-1]), 0.0
    before, last = points[-2:]
    slope = (megabytes(last) - megabytes(before)) / (last["triples"] - before["triples"])
    slope = max(slope, 0.0)
    return max(megabytes(last) - slope * last["triples"], 0.0), slope * MILLION
