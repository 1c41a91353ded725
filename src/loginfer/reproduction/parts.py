"""The parts of the reproduction: the paper's tables, and the benchmarks each of them is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loginfer.benchmark.suite import Entry, all_entries
from loginfer.errors import InputError, UnknownNameError

__all__ = ["EVIDENCE", "MAIN_METHOD", "TABLES", "benchmarks_of", "entries_of", "table_names"]

# A table that the paper does not have: what is left of its results where no shortcut helps.
EVIDENCE = "evidence"

# Our names of the paper's tables, with what they show; then those of our own.
TABLES = {
    "fb-wn": "results on FB15k-237 and WN18RR",
    "lubm": "results on LUBM",
    "negatives": "impact of the negatives",
    "rules": "rules that were mined, against those of the benchmark",
    "sizes": "sizes of the benchmarks",
    EVIDENCE: "systems and shortcuts, from position-aware negatives to matched near misses",
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
    wanted = set()
    for name in names:
        folded = name.strip().casefold()
        if folded not in TABLES:
            raise UnknownNameError("table", name.strip(), TABLES, where="--tables")
        wanted.add(folded)
    return tuple(name for name in TABLES if name in wanted or (not wanted and name != EVIDENCE))


def benchmarks_of(table: str) -> tuple[str, ...]:
    """Return the names of the benchmarks that a table is about, in the suite's order."""
    return tuple(entry.name for entry in all_entries() if _belongs(entry, table))


def entries_of(tables: Sequence[str], only: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return those of some benchmarks that the tables are about, in the suite's order.

    Raises
    ------
    InputError
        If there are none.
    """
    wanted = {name for table in tables for name in benchmarks_of(table)}
    chosen = {entry.name for entry in only} & wanted
    if not chosen:
        raise InputError(
            f"the tables {', '.join(tables)} are about none of these benchmarks",
            where="--only",
            hint=f"they are about {', '.join(e.name for e in all_entries() if e.name in wanted)}",
        )
    return tuple(entry for entry in all_entries() if entry.name in chosen)


def _belongs(entry: Entry, table: str) -> bool:
    kg, _, pattern = entry.group.name.partition("-")
    main = entry.method == MAIN_METHOD[pattern]
    return {
        "fb-wn": main and kg in ("FB", "WN"),
        "lubm": main and kg == "LUBM",
        "negatives": entry.group.name in ("FB-sym", "FB-inter") and entry.method != "nm",
        # Miners that ignore negatives find the same rules whatever the method is.
        "rules": main and kg == "FB",
        # Its numbers hold for all methods.
        "sizes": main,
        EVIDENCE: kg in ("FB", "WN") and entry.method in ("pa", "qg", "nm"),
    }[table]
