"""The distinct conclusions of the 20 rules of largest support, on FB15k-237."""

from __future__ import annotations

from typing import Any

from perf.case import OURS, Case, Task
from perf.tasks.rules import rules_of
from perf.workspace import Workspace

CONCLUDE = "perf.peers.duckdb_conclusions:conclude"


def ours(folder: str, bodies: str, pattern: str) -> Any:
    """Prepare to apply the rules. Each call starts without indexes of the graph."""
    from loginfer import load_graph, open_engine

    graph = load_graph(folder)
    rules = rules_of(graph, bodies, pattern)

    def call() -> list[int]:
        engine = open_engine(graph.with_triples(graph.triples))
        return [len(engine.conclusions(rule)) for rule in rules]

    return call, list


def task(space: Workspace, pattern: str, name: str, *peers: Case) -> Task:
    """Return the task for the 20 rules of one pattern."""
    arguments = {"folder": space.fb, "bodies": space.bodies, "pattern": pattern}
    first = Case(OURS, "perf.tasks.conclusions:ours", arguments)
    return Task(f"{pattern}-conclusions", name, (first, *peers), needs=("fb15k-237",))


def duckdb(space: Workspace, system: str, pattern: str, query: str | None = None, faster: float | None = None) -> Case:
    """Return DuckDB's case; `query` names another way to put the question."""
    arguments = {"triples": space.triples, "bodies": space.bodies, "pattern": pattern, "query": query}
    return Case(system, CONCLUDE, arguments, faster=faster)


def tasks(space: Workspace) -> list[Task]:
    """Return a task each for triangles, diamonds and chains of three atoms."""
    by_hand = duckdb(space, "DuckDB, rewritten by hand", "diamond", "diamond by hand", faster=100)
    return [
        task(space, "triangle", "conclusions: 20 triangles", duckdb(space, "DuckDB", "triangle")),
        task(space, "diamond", "conclusions: 20 diamonds", duckdb(space, "DuckDB", "diamond", faster=100), by_hand),
        task(space, "chain", "conclusions: 20 chains", duckdb(space, "DuckDB", "chain")),
    ]
