"""The engine on Spark."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from loginfer.engine.spark.application import Application, make_folder, place_of
from loginfer.engine.spark.database import SparkDatabase, check_arrived
from loginfer.engine.spark.launching import is_local
from loginfer.engine.spark.store import may_replace, read_about, read_store, write_store
from loginfer.engine.sql.closing import Closing
from loginfer.engine.sql.engine import MAX_CONCLUSIONS, SqlEngine
from loginfer.errors import InputError
from loginfer.files import atomic_folder, check_folder
from loginfer.kg import KnowledgeGraph

__all__ = ["SparkEngine"]

# About what a triple of names takes in a file; only to choose a number of partitions.
BYTES_A_TRIPLE = 30


class SparkEngine(Closing, SqlEngine):
    """Exact evaluation of rules in Spark, on one machine or many.

    Made of a graph in memory, or, for graphs larger than that, by `from_files` and `open`: then `graph` is a
    `StoredGraph`, whose vocabularies are in memory and whose triples stay in files. Close it after use, or
    use it in a `with` statement. Engines that are open at the same time share one Spark application, which
    stops when the last one is closed.

    Parameters
    ----------
    graph
        The graph K.
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

    name = "spark"

    def __init__(
        self,
        graph: KnowledgeGraph,
        *,
        master: str | None = None,
        settings: Mapping[str, str] | None = None,
        directory: str | Path | None = None,
        spark: Any = None,
        max_conclusions: int = MAX_CONCLUSIONS,
    ) -> None:
        database, close = open_database(len(graph), master, settings, directory, spark)
        self._start(graph, database, close, max_conclusions)
        try:
            triples = graph.triples
            database.load("given", {name: triples[:, i] for i, name in enumerate("sro")})
            check_arrived(database.create_partitioned("triples", "SELECT s, r, o FROM given"), len(triples))
            database.drop("given")
        except BaseException:
            self.close()
            raise

    def _start(
        self,
        graph: KnowledgeGraph,
        database: SparkDatabase,
        close: Callable[[], None],
        max_conclusions: int,
    ) -> None:
        super().__init__(graph, database, max_conclusions=max_conclusions)
        self._close_by(close)

    @classmethod
    def open(
        cls,
        store: str | Path,
        *,
        master: str | None = None,
        settings: Mapping[str, str] | None = None,
        directory: str | Path | None = None,
        spark: Any = None,
        max_conclusions: int = MAX_CONCLUSIONS,
    ) -> SparkEngine:
        """Open a folder that `from_files` made; it is only read.

        Parameters
        ----------
        store
            The folder; all workers must see it.
        master, settings, directory, spark, max_conclusions
            As for the class.
        """
        folder = Path(store).absolute()
        size = int(read_about(folder)["triples"])
        database, close = open_database(size, master, settings, directory, spark)
        try:
            graph = read_store(database, folder)
        except BaseException:
            close()
            raise
        engine = cls.__new__(cls)
        engine._start(graph, database, close, max_conclusions)
        return engine

    @classmethod
    def from_files(
        cls,
        paths: Sequence[str | Path],
        store: str | Path,
        *,
        type_predicate: str | None = None,
        entities: Iterable[str] = (),
        relations: Iterable[str] = (),
        force: bool = False,
        master: str | None = None,
        settings: Mapping[str, str] | None = None,
        directory: str | Path | None = None,
        spark: Any = None,
        max_conclusions: int = MAX_CONCLUSIONS,
    ) -> SparkEngine:
        """Let Spark read TSV or Parquet files of names into a folder, and open it.

        The triples never come to this machine; the names do in the end.

        Parameters
        ----------
        paths
            TSV/TXT files (also .gz) with three columns, or Parquet files with the columns that `load_graph`
            knows; the graph is their union. All workers must see them, and the store.
        store
            The folder to make.
        type_predicate
            As for `KnowledgeGraph`.
        entities, relations
            Names that the vocabularies shall hold besides, such as those of the heads of rules.
        force
            Replace an existing store.
        master, settings, directory, spark, max_conclusions
            As for the class.
        """
        files, target = [Path(path).absolute() for path in paths], Path(store).absolute()
        check_folder(target, force=force, may_replace=may_replace)
        size = sum(path.stat().st_size for path in files if path.is_file()) // BYTES_A_TRIPLE
        database, close = open_database(size, master, settings, directory, spark)
        with contextlib.ExitStack() as stack:
            # What follows uses the same Spark, so that it need not start a second time.
            stack.callback(close)
            with atomic_folder(target, force=force, may_replace=may_replace) as part:
                write_store(
                    database,
                    files,
                    part,
                    type_predicate=type_predicate,
                    entities=entities,
                    relations=relations,
                )
            return cls.open(
                target,
                master=master,
                directory=directory,
                spark=spark,
                max_conclusions=max_conclusions,
            )
        raise AssertionError  # the stack swallows nothing


def open_database(
    triples: int,
    master: str | None,
    settings: Mapping[str, str] | None,
    directory: str | Path | None,
    spark: Any,
) -> tuple[SparkDatabase, Callable[[], None]]:
    """Return a database of Spark's, and what closes it."""
    with contextlib.ExitStack() as stack:
        application = Application.use(master, settings, directory, spark)
        stack.callback(application.leave)
        if directory is not None and application.context is not None and "://" not in str(directory):
            make_folder(Path(directory))
        place = place_of(directory) or application.directory
        if place is None and not is_local(application.master):
            raise InputError(
                f"the Spark master `{application.master}` needs a directory for temporary files",
                hint="give one that all workers see under the same name (--scratch on the command line)",
            )
        place = place or place_of(application.folder)
        session = application.open_session()
        database = SparkDatabase(session, str(place), application.context, triples)
        stack.callback(database.close)
        if database.files is not None:
            application.leftovers.append(database.files)
        return database, stack.pop_all().close
    raise AssertionError  # the stack swallows nothing
