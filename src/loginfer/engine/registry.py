"""Which engines there are, which options each has, and how one is opened.

An engine is a file with its class and an entry in `ENGINES`. Its options are the fields of a dataclass: Python
gives them by name, and the command line offers those that have a `Flag`. The command line reads this module at
its start, so nothing heavy is imported here.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loginfer.errors import UnknownNameError

if TYPE_CHECKING:
    from loginfer.engine.interface import Engine
    from loginfer.kg import KnowledgeGraph

# A rule with more conclusions, or witnesses to list, than this is refused: the result is an array in memory. As
# triples they take 12 bytes each, and as much again while they are made.
MAX_CONCLUSIONS = 200_000_000


@dataclass(frozen=True, slots=True)
class Flag:
    """How the command line offers an option.

    Parameters
    ----------
    name
        Such as `--memory-limit`.
    help
        What it means; which engines have it is said before that.
    metavar
        What stands for its value.
    repeatable
        Whether it can be given several times.
    """

    name: str
    help: str
    metavar: str | None = None
    repeatable: bool = False


_MEMORY = {"flag": Flag("--memory-limit", "memory it may use, e.g. 4GB.")}
_SCRATCH = {"flag": Flag("--scratch", "folder for temporary files; for a cluster one that all its workers see.", "DIR")}
_WHERE = "where it runs, e.g. spark://host:7077, or sc://host:15002 for Spark Connect"
_MASTER = {"flag": Flag("--master", f"{_WHERE}; by default on all cores of this machine.", "URL")}
_SETTING = "a setting of Spark, e.g. spark.executor.memory=8g; repeatable."
_SETTINGS = {"flag": Flag("--spark-conf", _SETTING, "KEY=VALUE", repeatable=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeOptions:
    """Options of the engine in memory.

    Parameters
    ----------
    max_conclusions
        The largest number of conclusions of one rule that is written down.
    """

    max_conclusions: int = MAX_CONCLUSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDBOptions:
    """Options of the engine on DuckDB.

    Parameters
    ----------
    memory_limit
        How much memory may be used, such as "4GB"; most of the machine's by default. Half of it is for
        slices, where there are any.
    threads
        How many threads DuckDB may use; one per core by default. Results do not depend on it.
    directory
        Where the database and what does not fit into memory shall be, in a folder that is removed at the
        end. By default the database is in memory and spills to the system's folder for temporary files.
    max_conclusions
        The largest number of conclusions, or witnesses, of one rule that is written down.
    """

    memory_limit: str | None = field(default=None, metadata=_MEMORY)
    threads: int | None = None
    directory: str | Path | None = field(default=None, metadata=_SCRATCH)
    max_conclusions: int = MAX_CONCLUSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Options of the engine on Spark.

    Parameters
    ----------
    master
        Where Spark runs: `local[2]` for two threads of this machine, `spark://host:7077` for a cluster,
        `sc://host:15002` for a server of Spark Connect. By default the Spark application of this process, if
        there is one, and else `local[*]`, all cores of this machine.
    settings
        Settings of Spark, such as `{"spark.executor.memory": "8g"}`.
    directory
        A folder for temporary files; a folder is made in it and removed at the end. For a cluster it is
        needed, and every worker must see it; it may be a URL that Spark understands.
    spark
        A Spark session to use, instead of a master and settings; it is not stopped.
    max_conclusions
        The largest number of conclusions, or witnesses, of one rule that is written down.
    """

    master: str | None = field(default=None, metadata=_MASTER)
    settings: Mapping[str, str] | None = field(default=None, metadata=_SETTINGS)
    directory: str | Path | None = field(default=None, metadata=_SCRATCH)
    spark: Any = None
    max_conclusions: int = MAX_CONCLUSIONS


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """What is known of an engine before it is loaded.

    Parameters
    ----------
    address
        `module:class`. A class with `from_files` can work on files that are larger than memory.
    options
        The class of its options.
    help
        What it is good for, for the command line.
    running
        `module:function`, a context manager that takes the command line's options: what a command lets run for
        all engines that it opens one after the other.
    """

    address: str
    options: type[Any]
    help: str
    running: str | None = None

    @property
    def flags(self) -> dict[str, Flag]:
        """The options that the command line offers, by their names."""
        return {option.name: option.metadata["flag"] for option in fields(self.options) if "flag" in option.metadata}

    def load(self) -> Any:
        """Return the engine's class."""
        return imported(self.address)


def imported(address: str) -> Any:
    """Return what stands at `module:name`."""
    module, name = address.split(":")
    return getattr(importlib.import_module(module), name)


ENGINES = {
    "native": EngineEntry("loginfer.engine.native.engine:NativeEngine", NativeOptions, "in memory, compiled"),
    "duckdb": EngineEntry("loginfer.engine.duckdb:DuckDBEngine", DuckDBOptions, "from disk, for graphs beyond memory"),
    "spark": EngineEntry(
        "loginfer.engine.spark.engine:SparkEngine",
        SparkOptions,
        "on many machines",
        running="loginfer.engine.spark.session:spark_application",
    ),
}


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
            return graph.session.engine_over(graph)
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    engine: Engine = ENGINES[name].load()(graph, **options)
    return engine


def open_engine_in(stack: ExitStack, graph: KnowledgeGraph, name: str = "native", **options: Any) -> Engine:
    """Open an engine that a stack closes at its end, if it is of the kind that needs closing.

    Parameters
    ----------
    stack
        What closes it.
    graph, name, **options
        As for `open_engine`.
    """
    engine = open_engine(graph, name, **options)
    if isinstance(engine, AbstractContextManager):
        stack.enter_context(engine)
    return engine
