"""What the measured costs say about graphs that are too large to be measured.

Two readings of the same figures make a range. *In proportion*: the unit cost at the largest measured size,
times the units. *By exponents*: the cost there times (T/t)^a · (R/r)^b · q^c, where T and R are the graph's
triples and relations, t and r those measured, q how many times as many constants it has for a triple, and
a, b and c the exponents along the three axes, a at least 1. Neither was measured: the further away, the less
it is worth.

    python -m perf.growth.estimate
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf.growth.axes import AXES
from perf.growth.results import Record, cpu
from perf.growth.series import Line, lines_along
from perf.growth.table import aligned
from perf.growth.units import MILLION, amount

__all__ = ["TARGETS", "Estimate", "Target", "estimates"]

ROOT = Path(__file__).resolve().parents[2]
# Its work is so many queries, whatever the number of triples: it is told by the units alone.
BY_UNITS = ("evaluating",)
# These spill to disk beyond a limit.
LIMITED = ("duckdb", "spark")


@dataclass(frozen=True)
class Target:
    """A graph to make an estimate for.

    Parameters
    ----------
    name
        What it is called.
    triples, relations, constants
        How many it has.
    epochs
        How often training sees all positives.
    test
        How many test triples are classified, with as many negatives, and ranked, in two positions each.
    """

    name: str
    triples: int
    relations: int
    constants: int
    epochs: int = 15
    test: int = 4000

    def units(self, line: Line) -> float:
        """Return how many units of `perf.growth.units.PER` a step has to do."""
        if line.step == "training":
            return self.epochs * self.triples / MILLION
        if line.what == "classification":
            return 2 * self.test / 1000
        if line.step == "evaluating":
            return 2 * self.test / 1000 * self.constants / MILLION
        return self.triples / MILLION


TARGETS = (
    Target("Wikidata5M", 21 * MILLION, 822, 5 * MILLION),
    Target("Wikidata", 1500 * MILLION, 10_000, 100 * MILLION),
)


@dataclass(frozen=True)
class Estimate:
    """What a step would need.

    Parameters
    ----------
    line
        The step.
    measured_triples
        The size of the largest measured graph.
    proportional, powers
        CPU seconds by either reading; None where an exponent is missing.
    gigabytes
        Peak memory in one process, by the line through the two largest measured sizes; None for an engine
        that a limit keeps below any such line.
    """

    line: Line
    measured_triples: int
    proportional: float
    powers: float | None
    gigabytes: float | None


def estimates(figures: dict[str, Any], target: Target) -> list[Estimate]:
    """Return an estimate for each step that was measured along the triples.

    Parameters
    ----------
    figures
        The content of `growth.json`.
    target
        The graph.
    """
    exponents = {(row["axis"], _line(row)): row["cpu"] for row in figures["exponents"]}
    memory = {_line(row): row for row in figures["unit_costs"]}
    found = []
    for line, points in lines_along(figures["measured"], "triples").items():
        largest, room = points[-1], memory[line]
        own = {axis: exponents.get((axis, line)) for axis in AXES}
        proportional = cpu(largest) / amount(largest) * target.units(line)
        megabytes = room["fixed_megabytes"] + room["megabytes_per_million_triples"] * target.triples / MILLION
        found.append(
            Estimate(
                line,
                largest["triples"],
                proportional,
                _powers(largest, target, own),
                None if line.engine in LIMITED else megabytes / 1024,
            )
        )
    return found


def _line(row: dict[str, Any]) -> Line:
    return Line(row["step"], row["what"], row["engine"])


def _powers(largest: Record, target: Target, exponents: dict[str, float | None]) -> float | None:
    """Return CPU seconds by the exponents along the axes."""
    if largest["step"] in BY_UNITS or any(value is None for value in exponents.values()):
        return None
    ratios = {
        "triples": target.triples / largest["triples"],
        "relations": target.relations / largest["relations"],
        "constants": target.constants / target.triples / (largest["constants"] / largest["triples"]),
    }
    powers = {axis: float(value or 0.0) for axis, value in exponents.items()}
    # Less than 1 tells of fixed costs among small graphs: a large one is read as a whole in any case.
    powers["triples"] = max(powers["triples"], 1.0)
    cost = cpu(largest) * (target.epochs if largest["step"] == "training" else 1)
    for axis, ratio in ratios.items():
        cost *= ratio ** powers[axis]
    return cost


def estimate_table(figures: dict[str, Any], target: Target) -> str:
    """Return the estimates for a graph as text."""
    header = ["step", "", "engine", "measured up to", "larger", "in proportion", "by exponents", "memory"]
    rows = [
        [
            *made.line,
            f"{made.measured_triples:,} triples",
            f"{target.triples / made.measured_triples:,.0f}×",
            _hours(made.proportional),
            "" if made.powers is None else _hours(made.powers),
            "" if made.gigabytes is None else f"{made.gigabytes:,.1f} GB",
        ]
        for made in estimates(figures, target)
    ]
    sizes = f"{target.triples:,} triples, {target.relations:,} relations, {target.constants:,} constants"
    work = f"{target.epochs} epochs, {target.test:,} test triples"
    return f"{target.name}: {sizes}; {work}\n\n{aligned([header, *rows], left=3)}"


def _hours(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} CPU {unit}"
    return f"{seconds:.1f} CPU s"


def main() -> None:
    """Print a table of unit costs, and one for each graph."""
    parser = argparse.ArgumentParser(prog="python -m perf.growth.estimate", description=__doc__)
    parser.add_argument("--json", type=Path, default=ROOT / "perf" / "results" / "growth.json")
    given = parser.parse_args()
    figures = json.loads(given.json.read_text(encoding="utf-8"))
    header = ["step", "", "engine", "CPU s", "for each", "at triples", "MB", "and per million triples"]
    rows = [
        [
            *_line(row),
            f"{row['cpu']:.3f}",
            row["per"],
            f"{row['triples']:,}",
            f"{row['fixed_megabytes']:,}",
            f"{row['megabytes_per_million_triples']:,.1f}",
        ]
        for row in figures["unit_costs"]
    ]
    print(aligned([header, *rows], left=3))
    for target in TARGETS:
        print(f"\n{estimate_table(figures, target)}")


if __name__ == "__main__":
    main()
