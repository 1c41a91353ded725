"""Loading a graph: from the file to names encoded as numbers.

Ours also merges duplicates, sorts names and triples, and checks every line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import PARTS, Workspace

READERS = "perf.peers.readers"
ONE_THREAD = {"POLARS_MAX_THREADS": "1"}


def ours(path: str) -> Any:
    """Prepare nothing."""

    def call() -> Any:
        from loginfer.kg.load import read_graph

        return read_graph(path)

    return call, lambda loaded: loaded.report.statements


def tasks(space: Workspace) -> list[Task]:
    """Return text files small and large, Parquet and N-Triples."""
    fb_files = {"files": [str(Path(space.fb) / part) for part in PARTS]}
    return [
        _task(space.fb, "tsv", "load FB15k-237, text", _polars("polars_tsv", fb_files, 1 / 1.3)),
        _task(
            space.fb_large,
            "tsv-large",
            "load 8 × FB15k-237, text",
            _polars("polars_tsv", {"files": [space.fb_large]}, 1 / 1.3),
        ),
        _task(
            space.fb_parquet,
            "parquet",
            "load FB15k-237, Parquet",
            _polars("polars_parquet", {"file": space.fb_parquet}),
        ),
        _task(space.lubm, "ntriples", "load LUBM(1,0), N-Triples", _oxigraph(space.lubm), "lubm"),
        _task(space.lubm_large, "ntriples-large", "load LUBM(10,0), N-Triples", _oxigraph(space.lubm_large), "lubm"),
    ]


def _task(path: str, key: str, name: str, peer: Case, graph: str = "fb15k-237") -> Task:
    return Task(key, name, (Case(OURS, "perf.tasks.loading:ours", {"path": path}), peer), needs=(graph,))


def _polars(reader: str, arguments: dict[str, Any], faster: float | None = None) -> Case:
    # One thread costs Polars less CPU time than several.
    return Case("Polars", f"{READERS}:{reader}", arguments, faster=faster, environment=ONE_THREAD)


def _oxigraph(file: str) -> Case:
    return Case("pyoxigraph", f"{READERS}:oxigraph_ntriples", {"file": file}, faster=1)
