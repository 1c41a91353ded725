"""What a rule derives: exact evaluation of rules over a graph."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from loginfer.engine.binding import extend
from loginfer.engine.interface import BodyTable, Derivations, Engine, Materialisation, Projection, Witnesses
from loginfer.errors import UnknownNameError
from loginfer.kg import KnowledgeGraph
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.engine.sql.session import StoredGraph

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


ENGINES = ("native", "duckdb", "spark")


def open_engine(graph: KnowledgeGraph, name: str = "native", **options: Any) -> Engine:
    """Open an engine over a graph.

    Parameters
    ----------
    graph
        The graph. For rules whose heads use new names, `extend(graph, rules)` first. A graph in a database
        gets an engine over that database, whatever the name and the options.
    name
        `native` (in memory, compiled kernels), `duckdb` (out of core) or `spark` (many machines).
    **options
        Options of the engine, such as `memory_limit="4GB"` for DuckDB or `master="local[2]"` for Spark.
    """
    if not graph.in_memory:
        from loginfer.engine.sql.session import StoredGraph

        if isinstance(graph, StoredGraph):
            return _over_stored(graph)
    if name == "native":
        from loginfer.engine.native.engine import NativeEngine

        return NativeEngine(graph, **options)
    if name == "duckdb":
        from loginfer.engine.duckdb import DuckDBEngine

        return DuckDBEngine(graph, **options)
    if name == "spark":
        from loginfer.engine.spark.engine import SparkEngine

        return SparkEngine(graph, **options)
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


def _over_stored(graph: StoredGraph) -> Engine:
    """Return an engine over the database that a graph is in."""
    from loginfer.engine.duckdb import DuckDBSession

    if isinstance(graph.session, DuckDBSession):
        from loginfer.engine.duckdb import SlicedEngine

        return SlicedEngine(graph, graph.session)
    from loginfer.engine.sql.engine import SqlEngine

    return SqlEngine(graph, graph.session)
