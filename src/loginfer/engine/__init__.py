"""What a rule derives: exact evaluation of rules over a graph."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

from loginfer.engine.binding import extend
from loginfer.engine.interface import (
    BodyTable,
    Derivations,
    Engine,
    Materialisation,
    Progress,
    Projection,
    Witnesses,
)
from loginfer.errors import UnknownNameError
from loginfer.kg import KnowledgeGraph

__all__ = [
    "ENGINES",
    "BodyTable",
    "Derivations",
    "Engine",
    "Materialisation",
    "Progress",
    "Projection",
    "Witnesses",
    "extend",
    "open_engine",
    "open_engine_in",
]

ENGINES = ("native", "duckdb")


def open_engine(graph: KnowledgeGraph, name: str = "native", **options: Any) -> Engine:
    """Open an engine over a graph.

    Parameters
    ----------
    graph
        The graph. For rules whose heads use new names, `extend(graph, rules)` first.
    name
        `native` (in memory, compiled kernels) or `duckdb` (out of core).
    **options
        Options of the engine, such as `memory_limit="4GB"` for DuckDB.
    """
    if name == "native":
        from loginfer.engine.native import NativeEngine

        return NativeEngine(graph, **options)
    if name == "duckdb":
        from loginfer.engine.duckdb import DuckDBEngine

        return DuckDBEngine(graph, **options)
    raise UnknownNameError("engine", name, ENGINES)


def open_engine_in(stack: ExitStack, graph: KnowledgeGraph, name: str = "native", **options: Any) -> Engine:
    """Open an engine that a stack closes at its end, if it is of the kind that needs closing.

    Parameters
    ----------
    stack
        What closes it.
    graph, name, **options
        As for `open_engine`.
    """
    made = open_engine(graph, name, **options)
    if isinstance(made, AbstractContextManager):
        stack.enter_context(made)
    return made
