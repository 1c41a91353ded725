"""The measured graph: a Parquet file, and how each engine takes it up."""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perf.growth.meter import metered

__all__ = ["ENGINES", "generate", "graph_file", "load", "opened", "spark_running", "stored", "until_the_end"]

ENGINES = ("native", "duckdb", "spark")
MEMORY_LIMIT = "4GB"
MASTER = "local[2]"
SPARK = {"spark.driver.memory": "4g"}


def graph_file(folder: str) -> Path:
    """Return where the graph is."""
    return Path(folder) / "graph.parquet"


def generate(folder: str, triples: int, relations: int, entities: int) -> Any:
    """Prepare to write a graph, and tell how many constants it has in the end."""
    from loginfer import write_graph
    from perf.power_law import power_law_graph

    def call() -> Any:
        graph = power_law_graph(triples, relations=relations, entities=entities)
        write_graph(graph, graph_file(folder), force=True)
        return graph

    def told(graph: Any) -> dict[str, int]:
        import numpy as np

        used = np.zeros(len(graph.entities), dtype=bool)
        used[graph.triples[:, 0]] = used[graph.triples[:, 2]] = True
        return {"constants": int(used.sum())}

    return metered(call, told)


def load(folder: str, engine: str) -> Any:
    """Prepare to load the graph: into memory, into a database, into Spark's store."""
    if engine == "native":
        from loginfer import load_graph

        return metered(lambda: load_graph(graph_file(folder)), lambda graph: {"triples": len(graph)})
    until_the_end(spark_running(engine))

    def call() -> int:
        with stored(folder, engine, again=True) as made:
            return len(made.graph)

    return metered(call, lambda triples: {"triples": triples})


@contextlib.contextmanager
def stored(folder: str, engine: str, again: bool = False) -> Iterator[Any]:
    """Give an engine over files of its own, which are made of the graph's file if they are not there.

    Parameters
    ----------
    folder
        Where the graph is.
    engine
        `duckdb` or `spark`.
    again
        Make them, whether they are there or not.
    """
    place, file = Path(folder) / f"graph.{engine}", graph_file(folder)
    kind: Any
    options: dict[str, Any]
    if engine == "duckdb":
        from loginfer.engine.duckdb import DuckDBEngine

        kind, options = DuckDBEngine, {"memory_limit": MEMORY_LIMIT, "directory": Path(folder)}
    else:
        from loginfer.engine.spark.engine import SparkEngine

        kind, options = SparkEngine, {"directory": folder}
    if again or not place.exists():
        made = kind.from_files([file], place, force=True, **options)
    else:
        made = kind.open(place, **options)
    with made:
        yield made


@contextlib.contextmanager
def opened(folder: str, engine: str) -> Iterator[Any]:
    """Give a graph to work on; Spark, if that is the engine, runs meanwhile."""
    if engine == "native":
        from loginfer import load_graph

        yield load_graph(graph_file(folder))
        return
    with spark_running(engine), stored(folder, engine) as made:
        yield made.graph


def spark_running(engine: str) -> Any:
    """Return a context in which Spark runs, if that is the engine."""
    if engine != "spark":
        return contextlib.nullcontext()
    from loginfer.engine.spark.session import spark_application

    return spark_application(MASTER, SPARK)


def until_the_end(manager: Any) -> Any:
    """Enter a context that is left when the process ends, and return what it gives."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(manager)
