"""The support of every body of a pattern on FB15k-237: the complete table, one query."""

from __future__ import annotations

from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

# A table's key, the pattern that has such bodies, and DuckDB's query.
TABLES = (
    ("single", "hierarchy", "single atom"),
    ("composition", "composition", "composition"),
    ("intersection", "intersection", "intersection"),
    ("triangle", "triangle", "triangle"),
    ("diamond", "diamond", "diamond"),
)
RANK = "perf.peers.duckdb_tables:rank"


def ours(folder: str, pattern: str) -> Any:
    """Prepare to rank the bodies of a pattern. Each call starts without indexes of the graph."""
    from loginfer import load_graph, open_engine, parse_pattern

    graph = load_graph(folder)

    def call() -> Any:
        engine = open_engine(graph.with_triples(graph.triples))
        return engine.rank_bodies(parse_pattern(pattern))

    return call, lambda table: [table.nonzero, int(table.support.sum())]


def tasks(space: Workspace) -> list[Task]:
    """Return one task for each kind of body."""
    peers = {key: (_duckdb(space, "DuckDB", key),) for key, _, _ in TABLES}
    by_hand = {"query": "triangle by hand", "disabled": "partial_aggregate_pushdown,join_order"}
    peers["triangle"] = (
        _duckdb(space, "DuckDB", "triangle", faster=20),
        _duckdb(space, "DuckDB, rewritten by hand", faster=20, **by_hand),
    )
    peers["diamond"] = (
        _duckdb(space, "DuckDB", "diamond", faster=10),
        _duckdb(space, "DuckDB, y = z not excluded", "diamond with y = z", faster=10, same=False),
    )
    found = []
    for key, pattern, name in TABLES:
        limit = 400 if key in ("triangle", "diamond") else None
        arguments = {"folder": space.fb, "pattern": pattern}
        first = Case(OURS, "perf.tasks.support:ours", arguments, megabytes=limit)
        found.append(Task(key, f"all bodies: {name}", (first, *peers[key]), needs=("fb15k-237",)))
    return found


def _duckdb(
    space: Workspace,
    system: str,
    query: str,
    disabled: str = "partial_aggregate_pushdown",
    faster: float | None = None,
    same: bool = True,
) -> Case:
    arguments = {"triples": space.triples, "query": query, "disabled": disabled}
    return Case(system, RANK, arguments, faster=faster, same=same)
