"""Which cells a reproduction consists of, in which order, and how long they should take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from loginfer.benchmark.suite import Entry, all_entries, select
from loginfer.errors import InputError
from loginfer.reproduction.budgets import (
    analysis_seconds,
    budget_named,
    build_seconds,
    cell_seconds,
    given_settings,
)
from loginfer.reproduction.participants import DECIDED, MINERS, ONE_SEED, participants
from loginfer.reproduction.parts import EVIDENCE, benchmarks_of, entries_of, table_names

__all__ = ["Plan", "PlannedCell", "Request", "plan"]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked.

    Parameters
    ----------
    tables, systems, benchmarks
        By name, in the order of the paper's tables.
    seeds
        How many seeds: 0, 1, …
    protocol
        `paper` or `sound`.
    budget
        `quick` or `full`.
    """

    tables: tuple[str, ...]
    systems: tuple[str, ...]
    benchmarks: tuple[str, ...]
    seeds: int
    protocol: str
    budget: str


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One system on one benchmark with one seed.

    Parameters
    ----------
    system, benchmark, seed
        Which.
    settings
        What the budget changes, as pairs.
    weights
        Whether to keep what was learned: only rules are looked at again.
    analyse
        Whether the rules that it finds are compared with those of the benchmark.
    threshold
        From which score on triples are predicted; None to choose it on valid.
    seconds
        How much CPU time it should take.
    """

    system: str
    benchmark: str
    seed: int
    settings: tuple[tuple[str, Any], ...] = ()
    weights: bool = False
    analyse: bool = False
    threshold: float | None = None
    seconds: float = 0.0

    @property
    def label(self) -> str:
        """How people are told about it."""
        return f"{self.system} on {self.benchmark.removeprefix('LogInfer-')}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole job.

    Parameters
    ----------
    request
        What was asked.
    entries
        The benchmarks to build, in the suite's order.
    cells
        What to run, in this order.
    """

    request: Request
    entries: tuple[Entry, ...]
    cells: tuple[PlannedCell, ...]

    @property
    def seconds(self) -> float:
        """How much CPU time everything should take."""
        building = sum(build_seconds(entry.group.kg, entry.method) for entry in self.entries)
        return building + sum(cell.seconds for cell in self.cells)


def plan(
    *,
    tables: Iterable[str] = (),
    systems: Iterable[str] = (),
    only: Sequence[str] = (),
    seeds: int = 3,
    protocol: str | None = None,
    budget: str = "quick",
) -> Plan:
    """Return the cells that tables of the paper need.

    The first seed of everything comes first, and small benchmarks come before large ones, so that there is
    something to look at early; within a benchmark the longest cell comes first.

    Parameters
    ----------
    tables
        Names of `TABLES`; by default all of the paper's.
    systems
        Names of `PARTICIPANTS`; by default all.
    only
        Patterns of benchmarks' names, such as `WN-*`; by default all that the tables are about.
    seeds
        How many seeds; systems in which nothing is random get one.
    protocol
        `paper` or `sound`; by default `sound` for the table `evidence` alone, else `paper`.
    budget
        `quick` or `full`.

    Raises
    ------
    InputError
        For unknown names, or if nothing is left.
    """
    if seeds < 1:
        raise InputError(f"there must be at least one seed, not {seeds}", where="--seeds")
    wanted_tables, who, budget = table_names(tables), participants(systems), budget_named(budget)
    protocol = _protocol(wanted_tables, protocol)
    chosen = entries_of(wanted_tables, select(only, all_entries()))
    _check_protocol(chosen[0], protocol)
    found = []
    for entry in chosen:
        of = [table for table in wanted_tables if entry.name in benchmarks_of(table)]
        compared = "rules" in of
        # The table of rules is about miners, that of sizes about no system.
        everyone = any(table not in ("rules", "sizes") for table in of)
        for system in who:
            analyse = compared and system in MINERS
            if everyone or analyse:
                number = 1 if system in ONE_SEED else seeds
                found += [_cell(system, entry, seed, budget, analyse) for seed in range(number)]
    sizes = {entry.name: entry.group.paper["train"] for entry in chosen}
    found.sort(
        key=lambda cell: (cell.seed, sizes[cell.benchmark], cell.benchmark, -cell.seconds, cell.system)
    )
    names = tuple(entry.name for entry in chosen)
    return Plan(Request(wanted_tables, who, names, seeds, protocol, budget), chosen, tuple(found))


def _cell(system: str, entry: Entry, seed: int, budget: str, analyse: bool) -> PlannedCell:
    graph = entry.group.kg
    # The paper compares one set of rules a benchmark, and the comparison takes as long as mining.
    analyse = analyse and seed == 0
    return PlannedCell(
        system,
        entry.name,
        seed,
        tuple(sorted(given_settings(system, graph, budget).items())),
        weights=system in MINERS,
        analyse=analyse,
        threshold=DECIDED.get(system),
        seconds=cell_seconds(system, graph, budget) + (analysis_seconds(system) if analyse else 0.0),
    )


def _protocol(tables: Sequence[str], protocol: str | None) -> str:
    """Return the protocol; near misses, which one of the tables is about, need `sound`."""
    if protocol is None:
        protocol = "sound" if tuple(tables) == (EVIDENCE,) else "paper"
    if protocol == "paper" and EVIDENCE in tables:
        raise InputError(
            f"the table `{EVIDENCE}` needs benchmarks of the protocol `sound`",
            where="--protocol",
            hint=f"add --protocol sound, or ask for --tables {EVIDENCE} alone, in a folder of its own",
        )
    return protocol


def _check_protocol(entry: Entry, protocol: str) -> None:
    entry.recipe({"protocol": protocol})
