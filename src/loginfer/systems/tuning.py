"""Settings that were found to do well, by system and graph.

They stand in `tuned.toml`, with how they were found: on validation triples, never on test.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from loginfer.benchmark.values import Benchmark
from loginfer.systems.registry import Entry

__all__ = ["known_graph", "tuned_graphs", "tuned_settings"]


def tuned_settings(entry: Entry, benchmark: Benchmark) -> dict[str, Any]:
    """Return the tuned settings of a system for a benchmark's graph; nothing where none were found."""
    graph = known_graph(benchmark)
    if graph is None:
        return {}
    return tuned_graphs(entry).get(graph, {})


def tuned_graphs(entry: Entry) -> dict[str, dict[str, Any]]:
    """Return the tuned settings of a system for each graph that has some."""
    return {graph: dict(values) for graph, values in _tuned()["settings"].get(entry.name, {}).items()}


def known_graph(benchmark: Benchmark) -> str | None:
    """Return the graph that a benchmark was built from, if settings were tuned for it.

    It is recognised by the sum of its triples, so a copy under another name is recognised too.
    """
    kg = benchmark.manifest.get("kg") or {}
    for name, sha256 in _tuned()["graphs"].items():
        if kg.get("sha256") == sha256:
            return str(name)
    return None


@cache
def _tuned() -> dict[str, Any]:
    text = resources.files("loginfer.systems").joinpath("tuned.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
