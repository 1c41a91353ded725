"""Which cells a reproduction consists of, in which order, and how long they should take.

A cell is a system on a benchmark with a seed. Tables say which benchmarks are needed, a budget how much each system may
learn (`full` is what is shipped, `quick` a part of it), and measured costs how long that takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from loginfer.benchmark.construction.suite import SuiteBenchmark, select
from loginfer.benchmark.negatives.methods import METHODS, NEAR_MISSES
from loginfer.errors import InputError, UnknownNameError
from loginfer.files import shipped
from loginfer.report.paper import SYSTEMS
from loginfer.reproduction.standard import StandardSplit, known_benchmarks

# Tables that the paper does not have: what is left of its results where no shortcut helps; the standard splits that it
# holds its benchmarks against; and what it says beside its tables.
EVIDENCE, STANDARD, STATEMENTS = OWN = ("evidence", "standard", "statements")

# Our names of the paper's tables, with what they show; then those of our own.
TABLES = {
    "fb-wn": "results on FB15k-237 and WN18RR",
    "lubm": "results on LUBM",
    "negatives": "impact of the negatives",
    "rules": "rules that were mined, against those of the benchmark",
    "sizes": "sizes of the benchmarks",
    EVIDENCE: "systems and shortcuts, from position-aware negatives to twins",
    STANDARD: "results on standard splits with random corruption",
    STATEMENTS: "what the paper says beside its tables",
}

# Whose negatives the paper's main tables use: query-guided ones where the pattern has undesired sub-rules.
MAIN_METHOD = {
    "sym": "pa", "inver": "pa", "hier": "pa", "comp": "pa",
    "inter": "qg", "trian": "qg", "diam": "qg", "all": "qg", "no-type": "qg",
}  # fmt: skip


def table_names(names: Iterable[str] = ()) -> tuple[str, ...]:
    """Return tables by name, in any case, in the paper's order; by default all of the paper's.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    requested = _checked("table", names, TABLES, "--tables")
    return tuple(name for name in TABLES if name in requested or (not requested and name not in OWN))


def _checked(kind: str, names: Iterable[str], known: Collection[str], where: str) -> list[str]:
    """Return names, which may be given in any case, as they are known."""
    stripped = [name.strip() for name in names]
    for name in stripped:
        if name.casefold() not in known:
            raise UnknownNameError(kind, name, known, where=where)
    return [name.casefold() for name in stripped]


def benchmarks_of(table: str) -> tuple[str, ...]:
    """Return the names of the benchmarks that a table is about, in the suite's order."""
    return tuple(entry.name for entry in known_benchmarks() if _belongs(entry, table))


def entries_of(tables: Sequence[str], only: Sequence[SuiteBenchmark]) -> tuple[SuiteBenchmark, ...]:
    """Return those of some benchmarks that the tables are about, in the suite's order.

    Raises
    ------
    InputError
        If there are none.
    """
    names = {name for table in tables for name in benchmarks_of(table)}
    selected = {entry.name for entry in only} & names
    if not selected:
        hint = f"they are about {', '.join(e.name for e in known_benchmarks() if e.name in names)}"
        message = f"the tables {', '.join(tables)} are about none of these benchmarks"
        raise InputError(message, where="--only", hint=hint)
    return tuple(entry for entry in known_benchmarks() if entry.name in selected)


def _belongs(entry: SuiteBenchmark, table: str) -> bool:
    if isinstance(entry, StandardSplit) or table in (STANDARD, STATEMENTS):
        return isinstance(entry, StandardSplit) and table == STANDARD
    kg, _, pattern = entry.group.name.partition("-")
    main = entry.method == MAIN_METHOD[pattern]
    return {
        "fb-wn": main and kg in ("FB", "WN"),
        "lubm": main and kg == "LUBM",
        "negatives": entry.group.name in ("FB-sym", "FB-inter") and entry.method != NEAR_MISSES.name,
        # Miners that ignore negatives find the same rules whatever the method is.
        "rules": main and kg == "FB",
        # Its numbers hold for all methods.
        "sizes": main,
        EVIDENCE: kg in ("FB", "WN") and METHODS[entry.method].hard,
    }[table]


BUDGETS = ("quick", "full")


def budget_named(name: str) -> str:
    """Return a budget by name, in any case."""
    return _checked("budget", [name], BUDGETS, "--budget")[0]


@cache
def given_settings(system: str, graph: str, budget: str) -> Mapping[str, int]:
    """Return the settings that a budget changes for a system on a graph.

    Parameters
    ----------
    system
        Our name of it.
    graph
        The graph's name, for which settings may have been tuned.
    budget
        `quick` or `full`.
    """
    from loginfer.settings import settings_of
    from loginfer.systems.registry import find_system, tuned_graphs

    shares = _shares(system, budget)
    if not shares:
        return {}
    entry = find_system(system)
    declared, tuned = settings_of(entry.load()), tuned_graphs(entry).get(graph, {})
    return {name: max(1, round(share * tuned.get(name, declared[name].default))) for name, share in shares.items()}


def cell_seconds(system: str, graph: str, budget: str) -> float:
    """Return roughly how many CPU seconds a system takes on a benchmark of a graph."""
    costs = data("costs.toml")
    return float(costs["overhead"] + costs["seconds"][system][graph] * _share(system, budget))


def build_seconds(graph: str, method: str = "pa") -> float:
    """Return roughly how many CPU seconds it takes to build a benchmark of a graph."""
    costs = data("costs.toml")
    return float(costs["build"][graph] + (costs["near_misses"][graph] if method == NEAR_MISSES.name else 0.0))


def analysis_seconds(system: str) -> float:
    """Return roughly how many CPU seconds it takes to compare the rules of a miner with a benchmark's."""
    return float(data("costs.toml")["analysis"][system])


def _share(system: str, budget: str) -> float:
    """Return which share of its time a system gets."""
    return max(_shares(system, budget).values(), default=1.0)


def _shares(system: str, budget: str) -> dict[str, float]:
    shares: dict[str, float] = data("budgets.toml")[budget].get(system, {})
    return shares


def data(name: str) -> dict[str, Any]:
    """Return what a file of `reproduction/data` holds."""
    return shipped(f"reproduction/data/{name}")


# Our names, the paper's systems first.
PARTICIPANTS = (*SYSTEMS, "exact", "contrast", "oracle")
# Those whose runs keep rules that can be compared with the benchmark's.
MINERS = ("anyburl", "rulen", "exact", "contrast")
# Nothing in them is random, with the settings used here: a second seed would give the same figures.
ONE_SEED = ("simpbl", "exact", "oracle")
# Those that answer 1 or 0: a threshold chosen on valid could change their answers.
DECIDED = {"simpbl": 0.5}


def participants(names: Iterable[str] = ()) -> tuple[str, ...]:
    """Return systems by name, in any case, in the order of the tables; by default all.

    Raises
    ------
    UnknownNameError
        For a system that does not take part, with the nearest that do.
    """
    from loginfer.systems.registry import systems

    aliases = {alias: entry.name for entry in systems() if entry.name in PARTICIPANTS for alias in entry.aliases}
    requested = _checked("system", [aliases.get(n.strip().casefold(), n) for n in names], PARTICIPANTS, "--systems")
    return tuple(name for name in PARTICIPANTS if not requested or name in requested)


def title(system: str) -> str:
    """Return a system's name in print: the paper's own where it has one."""
    return SYSTEMS.get(system, system)


def short(benchmark: str) -> str:
    """Return a benchmark's name without the suite's."""
    return benchmark.removeprefix("LogInfer-")


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
    measured
        Whether `benchmark` is the name of a measurement, which is about a statement of the paper.
    """

    system: str
    benchmark: str
    seed: int
    settings: tuple[tuple[str, Any], ...] = ()
    weights: bool = False
    analyse: bool = False
    threshold: float | None = None
    seconds: float = 0.0
    measured: bool = False

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.benchmark if self.measured else f"{self.system} on {short(self.benchmark)}, seed {self.seed}"


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
    entries: tuple[SuiteBenchmark, ...]
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
    table_list, system_list, budget = table_names(tables), participants(systems), budget_named(budget)
    protocol = _protocol(table_list, protocol)
    measured = _measured(only, system_list, budget) if STATEMENTS in table_list else []
    known_benchmarks()[0].recipe({"protocol": protocol})  # complains about an unknown protocol
    alone = measured and table_list == (STATEMENTS,)
    entries = () if alone else entries_of(table_list, select(only, known_benchmarks()))
    cells = []
    for entry in entries:
        entry_tables = [table for table in table_list if entry.name in benchmarks_of(table)]
        compared = "rules" in entry_tables
        # The table of rules is about miners, that of sizes about no system.
        everyone = any(table not in ("rules", "sizes") for table in entry_tables)
        for system in system_list:
            analyse = compared and system in MINERS
            if everyone or analyse:
                number = 1 if system in ONE_SEED else seeds
                cells += [_cell(system, entry, seed, budget, analyse) for seed in range(number)]
    sizes = {entry.name: entry.group.paper["train"] for entry in entries}
    cells.sort(key=lambda cell: (cell.seed, sizes[cell.benchmark], cell.benchmark, -cell.seconds, cell.system))
    names = tuple(entry.name for entry in entries)
    return Plan(Request(table_list, system_list, names, seeds, protocol, budget), entries, (*cells, *measured))


def _cell(system: str, entry: SuiteBenchmark, seed: int, budget: str, analyse: bool) -> PlannedCell:
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


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measurement behind a statement of the paper.

    Parameters
    ----------
    kind, of
        What is measured, and of what.
    seconds
        How much CPU time it should take with the settings that are shipped.
    system
        Who learns; empty if nobody does.
    """

    kind: str
    of: str
    seconds: float
    system: str = ""

    @property
    def name(self) -> str:
        """What its file is called."""
        return "-".join(filter(None, (self.kind, self.system, self.of)))


def measurements() -> dict[str, Measurement]:
    """Return all measurements by name."""
    rows = data("statements.toml")["measurement"]
    all_ = [Measurement(row["kind"], of, row["seconds"], row.get("system", "")) for row in rows for of in row["of"]]
    return {measurement.name: measurement for measurement in all_}


def measurement_named(name: str) -> Measurement:
    """Return a measurement.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    if name not in measurements():
        raise UnknownNameError("measurement", name, measurements(), where="--measure")
    return measurements()[name]


def _measured(only: Sequence[str], systems: Sequence[str], budget: str) -> list[PlannedCell]:
    """Return the measurements that these systems and patterns of names choose, quick ones first."""
    patterns = [pattern.casefold().removeprefix("loginfer-") for pattern in only]
    cells = []
    for name, about in measurements().items():
        matches = not only or any(fnmatchcase(about.of.casefold(), pattern) for pattern in patterns)
        if matches and about.system in ("", *systems):
            seconds = about.seconds * _share(about.system, budget)
            cells.append(PlannedCell(about.system or STATEMENTS, name, 0, seconds=seconds, measured=True))
    return sorted(cells, key=lambda cell: cell.seconds)


def _protocol(tables: Sequence[str], protocol: str | None) -> str:
    """Return the protocol; near misses, which one of the tables is about, need `sound`."""
    if protocol is None:
        protocol = "sound" if tuple(tables) == (EVIDENCE,) else "paper"
    if protocol == "paper" and EVIDENCE in tables:
        hint = f"add --protocol sound, or ask for --tables {EVIDENCE} alone, in a folder of its own"
        message = f"the table `{EVIDENCE}` needs benchmarks of the protocol `sound`"
        raise InputError(message, where="--protocol", hint=hint)
    return protocol


# So many expected seconds must have passed before observations count as much as expectations.
_TRUST = 60.0


class Pace:
    """The time that is left.

    Parameters
    ----------
    jobs
        How many things are done at a time.
    expected
        The expected seconds of everything that is to be done.
    """

    def __init__(self, jobs: int, expected: Iterable[float]) -> None:
        self._jobs = jobs
        self._pending = list(expected)
        self._expected = self._actual = _TRUST

    def finished(self, expected: float, actual: float, *, counts: bool = True) -> None:
        """Record how long something took that is finished; what failed does not count for the pace."""
        self._pending.remove(expected)
        if counts:
            self._expected += expected
            self._actual += actual

    def remaining(self) -> float:
        """Return how many seconds the rest should take."""
        if not self._pending:
            return 0.0
        # With several jobs the last one decides, if it is long.
        expected = max(sum(self._pending) / self._jobs, max(self._pending))
        return expected * self._actual / self._expected


def in_words(seconds: float) -> str:
    """Say how long something takes: `40 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02} min"
