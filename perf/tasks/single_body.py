"""The support of a single body: the diamond with the most witnesses on FB15k-237."""

from __future__ import annotations

from typing import Any

from perf.case import OURS, Case, Task
from perf.tasks.rules import rules_of
from perf.workspace import Workspace

PEERS = "perf.peers.single_body"


def ours(folder: str, bodies: str) -> Any:
    """Prepare to count. Each call starts without indexes of the graph."""
    from loginfer import load_graph, open_engine

    graph = load_graph(folder)
    rule = rules_of(graph, bodies, "diamond")[0]
    return lambda: open_engine(graph.with_triples(graph.triples)).support(rule), int


def tasks(space: Workspace) -> list[Task]:
    """Return the task."""
    arguments = {"triples": space.triples, "bodies": space.bodies}
    first = Case(OURS, "perf.tasks.single_body:ours", {"folder": space.fb, "bodies": space.bodies})
    peers = (
        Case("DuckDB", f"{PEERS}:duckdb", arguments),
        Case("Nemo", f"{PEERS}:nemo", arguments),
        Case("pyoxigraph, SPARQL", f"{PEERS}:oxigraph", arguments),
    )
    return [Task("body", "one body: the largest diamond", (first, *peers), needs=("fb15k-237",))]
