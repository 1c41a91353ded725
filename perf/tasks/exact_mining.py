"""Every closed path rule up to length 2 on all of FB15k-237, with exact counts."""

from __future__ import annotations

from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

THRESHOLDS = {"min_support": 2, "min_confidence": 0.01}


def ours(folder: str, **thresholds: Any) -> Any:
    """Prepare to mine. Each call starts without indexes of the graph."""
    import numpy as np

    from loginfer import load_graph
    from loginfer.systems.rules.exact import Exact
    from loginfer.systems.rules.mined import as_benchmark

    graph = load_graph(folder)

    def call() -> Any:
        fresh = graph.with_triples(graph.triples)
        return Exact(**thresholds).mine(as_benchmark(fresh, "fb15k-237")).paths

    def summarise(table: Any) -> list[list[int]]:
        found = []
        for length in (1, 2):
            of_length = table.take(np.flatnonzero(table.length == length))
            found.append([len(of_length), int(of_length.correct.sum()), int(of_length.predictions.sum())])
        return found

    return call, summarise


def tasks(space: Workspace) -> list[Task]:
    """Return the task."""
    first = Case(OURS, "perf.tasks.exact_mining:ours", {"folder": space.fb, **THRESHOLDS}, seconds=10, megabytes=1000)
    arguments = {"triples": space.triples, **THRESHOLDS}
    peer = Case("DuckDB", "perf.peers.duckdb_mining:mine", arguments, faster=10, limit=300)
    return [Task("exact", "all closed path rules up to length 2", (first, peer), needs=("fb15k-237",))]
