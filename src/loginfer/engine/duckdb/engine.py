"""The engine on DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from loginfer.engine.duckdb.session import DuckDBSession
from loginfer.engine.duckdb.slices import SlicedEngine, divided
from loginfer.engine.duckdb.stored import bad_line, ingest, read_stored_graph
from loginfer.engine.sql.closing import Closing
from loginfer.engine.sql.engine import MAX_CONCLUSIONS
from loginfer.errors import InputError, OutputError
from loginfer.files import describe_os_error, refuse_to_overwrite
from loginfer.kg import KnowledgeGraph

__all__ = ["DuckDBEngine"]

# Of the machine's memory; DuckDB's own choice, too.
DEFAULT_MEMORY = "80%"


class DuckDBEngine(Closing, SlicedEngine):
    """Exact evaluation of rules in DuckDB, which spills to disk what does not fit into memory.

    Made of a graph in memory, or, for graphs larger than that, by `from_files` and `open`: then `graph` is
    a `StoredGraph`, whose vocabularies are in memory and whose triples stay in the database until somebody
    asks for the array; compiled kernels then work on slices of it (see `slices`). Close it after use, or use
    it in a `with` statement; what it put on disk goes then, or when it is collected.

    Parameters
    ----------
    graph
        The graph K.
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

    name = "duckdb"

    def __init__(
        self,
        graph: KnowledgeGraph,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        directory: Path | None = None,
        max_conclusions: int = MAX_CONCLUSIONS,
    ) -> None:
        session = DuckDBSession(memory_limit=memory_limit, threads=threads, directory=directory)
        self._start(graph, session, max_conclusions)
        try:
            triples = graph.triples
            with session.arrow({name: triples[:, i] for i, name in enumerate("sro")}) as arrays:
                # Sorted by relation: a scan for one relation then skips the blocks of all others.
                session.create("triples", f"SELECT s, r, o FROM {arrays} ORDER BY r, s, o", keep=True)
        except BaseException:
            self.close()
            raise

    def _start(self, graph: KnowledgeGraph, session: DuckDBSession, max_conclusions: int) -> None:
        super().__init__(graph, session, max_conclusions=max_conclusions)
        self._close_by(session.close)

    @classmethod
    def open(
        cls,
        database: str | Path,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        directory: Path | None = None,
        max_conclusions: int = MAX_CONCLUSIONS,
    ) -> DuckDBEngine:
        """Open a database that `from_files` made; it is only read.

        Parameters
        ----------
        database
            The file.
        memory_limit, threads, directory, max_conclusions
            As for the class.
        """
        path = Path(database)
        if not path.is_file():
            raise InputError(f"no file `{path}`", hint="check the path")
        memory_limit, rows = divided(memory_limit or DEFAULT_MEMORY)
        session = DuckDBSession(
            path,
            memory_limit=memory_limit,
            threads=threads,
            directory=directory,
            read_only=True,
            slice_rows=rows,
        )
        try:
            graph = read_stored_graph(session, path)
        except BaseException:
            session.close()
            raise
        engine = cls.__new__(cls)
        engine._start(graph, session, max_conclusions)
        return engine

    @classmethod
    def from_files(
        cls,
        paths: Sequence[str | Path],
        database: str | Path,
        *,
        type_predicate: str | None = None,
        entities: Iterable[str] = (),
        relations: Iterable[str] = (),
        force: bool = False,
        memory_limit: str | None = None,
        threads: int | None = None,
        directory: Path | None = None,
        max_conclusions: int = MAX_CONCLUSIONS,
    ) -> DuckDBEngine:
        """Read TSV or Parquet files of names straight into a database on disk, and open it.

        Neither the names nor the triples need to fit into memory while they are read; afterwards the
        names do.

        Parameters
        ----------
        paths
            TSV/TXT files (also .gz, .zst) with three columns, or Parquet files with the columns that
            `load_graph` knows; the graph is their union.
        database
            The file to make.
        type_predicate
            As for `KnowledgeGraph`.
        entities, relations
            Names that the vocabularies shall hold besides, such as those of the heads of rules.
        force
            Replace an existing file.
        memory_limit, threads, directory, max_conclusions
            As for the class.
        """
        target = Path(database)
        refuse_to_overwrite(target, force)
        part = target.with_name(f".{target.name}.part")
        _remove_database(part)
        session = DuckDBSession(
            part,
            memory_limit=divided(memory_limit)[0] if memory_limit else None,
            threads=threads,
            directory=directory,
        )
        try:
            _ingest(session, [Path(path) for path in paths], type_predicate, entities, relations)
            session.close()
            part.replace(target)
        finally:
            session.close()
            _remove_database(part)
        return cls.open(
            target,
            memory_limit=memory_limit,
            threads=threads,
            directory=directory,
            max_conclusions=max_conclusions,
        )


def _remove_database(path: Path) -> None:
    """Remove what an earlier attempt left, with its log; make the folder if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot write `{path}`: {describe_os_error(error)}", hint="choose another place"
        ) from error


def _ingest(
    session: DuckDBSession,
    paths: Sequence[Path],
    type_predicate: str | None,
    entities: Iterable[str],
    relations: Iterable[str],
) -> None:
    import duckdb

    try:
        ingest(session, paths, type_predicate=type_predicate, entities=entities, relations=relations)
    except duckdb.InvalidInputException as error:
        explained = bad_line(error)
        if explained is None:
            raise
        raise explained from error
