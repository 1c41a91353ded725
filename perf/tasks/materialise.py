"""Materialisation of LUBM(1,0) with the 107 rules: reasoning alone, and from the file in a fresh process."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

RULES = "lubm-107"
HERE = "perf.tasks.materialise"


def _graph_and_rules(file: str) -> Any:
    from loginfer import extend, load_graph, read_rules

    rules = read_rules(RULES).program
    return extend(load_graph(file), rules), rules


def ours(file: str) -> Any:
    """Prepare to reason. Each call starts without indexes of the graph."""
    from loginfer import open_engine

    graph, rules = _graph_and_rules(file)

    def call() -> Any:
        return open_engine(graph.with_triples(graph.triples)).materialise(rules)

    return call, len


def ours_end_to_end(file: str) -> Any:
    """Prepare nothing: imports, the file, the rules and the reasoning all count."""

    def call() -> Any:
        from loginfer import open_engine

        graph, rules = _graph_and_rules(file)
        return open_engine(graph).materialise(rules)

    return call, len


def nemo(file: str) -> Any:
    """Prepare Nemo: names as integers, a file per predicate. Reading those files does not count."""
    from perf.peers.nemo_lubm import NemoProgram, run_nemo

    folder = tempfile.TemporaryDirectory(prefix="loginfer-nemo-")
    program = NemoProgram(*_graph_and_rules(file), Path(folder.name))

    def call() -> Any:
        return folder, run_nemo(program)[1]

    return call, lambda value: value[1].new, lambda value: value[1].reason


def duckdb(file: str) -> Any:
    """Prepare DuckDB. Making its tables of facts does not count."""
    from perf.peers.duckdb_lubm import materialise_with_duckdb

    graph, rules = _graph_and_rules(file)
    return lambda: materialise_with_duckdb(graph, rules), lambda run: run.new, lambda run: run.reason


def tasks(space: Workspace) -> list[Task]:
    """Return reasoning and end to end for LUBM(1,0), and reasoning for LUBM(10,0)."""
    arguments = {"file": space.lubm}
    large = {"file": space.lubm_large}
    return [
        Task(
            "materialise",
            "LUBM(1,0), 107 rules: reasoning",
            (
                Case(OURS, f"{HERE}:ours", arguments),
                Case("Nemo", f"{HERE}:nemo", arguments, faster=8),
                Case("DuckDB, semi-naive loop", f"{HERE}:duckdb", arguments, faster=1),
            ),
            needs=("lubm",),
        ),
        Task(
            "end-to-end",
            "LUBM(1,0), 107 rules: end to end",
            (
                Case(OURS, f"{HERE}:ours_end_to_end", arguments),
                Case("Nemo", "perf.peers.nemo_ntriples:end_to_end", arguments, faster=3),
            ),
            needs=("lubm",),
            end_to_end=True,
        ),
        Task(
            "materialise-10",
            "LUBM(10,0), 107 rules: reasoning",
            (
                Case(OURS, f"{HERE}:ours", large),
                Case("DuckDB, semi-naive loop", f"{HERE}:duckdb", large, faster=1),
                Case("Nemo", f"{HERE}:nemo", large, faster=8, limit=120),
            ),
            needs=("lubm",),
        ),
    ]
