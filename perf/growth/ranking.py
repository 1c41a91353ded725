"""Ranking: the 200 bodies of largest support of a pattern, over a graph that is loaded."""

from __future__ import annotations

from typing import Any

from perf.growth.graphs import opened, until_the_end
from perf.growth.meter import metered

__all__ = ["TOP", "rank"]

TOP = 200


def rank(folder: str, engine: str, pattern: str) -> Any:
    """Prepare a graph; each call of the native engine starts without indexes of it."""
    from loginfer import open_engine, parse_pattern

    graph = until_the_end(opened(folder, engine))

    def call() -> Any:
        fresh = graph.with_triples(graph.triples) if engine == "native" else graph
        return open_engine(fresh, engine).rank_bodies(parse_pattern(pattern), TOP)

    return metered(call, lambda table: {"largest": int(table.support[0]), "bodies": table.nonzero})
