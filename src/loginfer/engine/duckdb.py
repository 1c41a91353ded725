"""The engine on DuckDB: from memory or disk, for graphs larger than memory.

Files become a database, which is opened again without reading them. What a rule derives depends on the triples
of its body's relations alone. Of a graph that does not fit into memory those often do, and compiled kernels are
several times as fast on such a slice as SQL, without writing down conclusions by the billion. Where a slice does
not fit either, SQL answers.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import ABSENT, relation_named, relation_of
from loginfer.engine.interface import Derivations
from loginfer.engine.native.engine import NativeEngine
from loginfer.engine.registry import MAX_CONCLUSIONS, DuckDBOptions
from loginfer.engine.sql.engine import DatabaseEngine, ExtraNames, SqlEngine
from loginfer.engine.sql.queries import SqlDialect
from loginfer.engine.sql.session import StoredGraph, vocabulary_of
from loginfer.errors import InputError, LimitError, OutputError
from loginfer.files import describe_os_error, refuse_to_overwrite
from loginfer.kg import TYPE_NAMES, KnowledgeGraph, Triples, Vocabulary
from loginfer.kg.formats.parquet import triple_columns
from loginfer.kg.graph import Ids, Ints, Mask
from loginfer.logic.dialects.queries import quote_identifier, quote_text
from loginfer.logic.rule import Atom, Rule

# How many rows are fetched at a time, where not all are fetched at once.
STREAMED = 2**20

# Counting before a join is done by our own queries, by sum-product; where DuckDB adds it on its own, the
# triangle costs ten times as much.
UNWANTED_OPTIMIZER = "partial_aggregate_pushdown"

# What errors say that come of a full disk.
_DISK = "No space left on device|Disk quota exceeded|database has been invalidated"


class DuckDBSession:
    """A connection to a database in a file or in memory, with a folder to spill to.

    Parameters
    ----------
    database
        The file; None for a database of this session's own, in memory or, if a directory is given, there.
    memory_limit
        How much memory DuckDB may use, such as "4GB"; most of the machine's by default.
    threads
        How many threads it may use; one per core by default.
    directory
        Where to put what does not fit into memory; the system's folder for temporary files by default. A
        folder is made in it and removed when the session is closed.
    read_only
        Whether the file is only read. Temporary tables can be made all the same.
    slice_rows
        How many triples an engine may bring into memory at a time, besides what DuckDB uses.
    """

    dialect = SqlDialect(
        number="HUGEINT",
        bits="UBIGINT",
        signed=False,
        xor="xor({}, {})",
        right="({} >> {})",
        left="({} << {})",
        replaced="SELECT * REPLACE ({value} AS h) FROM ({rows}) AS q",
        materialised="MATERIALIZED",
    )

    def __init__(
        self,
        database: Path | None = None,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        directory: str | Path | None = None,
        read_only: bool = False,
        slice_rows: int = 0,
    ) -> None:
        import duckdb

        if memory_limit is not None:
            _check_memory_limit(memory_limit)
        self.slice_rows = slice_rows
        self.folder = _make_folder(None if directory is None else Path(directory))
        try:
            if database is None and directory is not None:
                database = self.folder / "graph.duckdb"
            config: dict[str, Any] = {
                "temp_directory": str(self.folder / "spill"),
                "preserve_insertion_order": "false",
                "autoinstall_known_extensions": "false",
            }
            if memory_limit is not None:
                config["memory_limit"] = memory_limit
            if threads is not None:
                config["threads"] = str(threads)
            with translated_errors():
                self.connection = duckdb.connect(
                    str(database) if database is not None else ":memory:", read_only, config
                )
            if (UNWANTED_OPTIMIZER,) in self.rows("SELECT name FROM duckdb_optimizers()"):
                self.rows(f"SET disabled_optimizers = '{UNWANTED_OPTIMIZER}'")
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def close(self) -> None:
        """Close the database and remove its temporary files. Closing twice is fine."""
        self.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Run a query or statement to its end; return all rows, with numbers of any size as they are.

        From 2.0 on DuckDB hands out rows while a query runs, and an unread rest blocks the connection:
        everything is always fetched.
        """
        with translated_errors():
            return self.connection.execute(query).fetchall()

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a query, with whole numbers of any size as they are."""
        (only_row,) = self.rows(query)
        return only_row

    def columns(self, query: str) -> list[npt.NDArray[Any]]:
        """Return the columns of a query as arrays of numbers."""
        with translated_errors():
            arrays = self.connection.execute(query).fetchnumpy()
        return [np.asarray(column) for column in arrays.values()]

    def stream(self, query: str) -> Iterator[list[npt.NDArray[Any]]]:
        """Yield the columns of a query some rows at a time, in order.

        Run no other query until the stream is exhausted or closed.
        """
        # Without it, blocks of an ordered result come in any order.
        self.rows("SET preserve_insertion_order = true")
        try:
            with translated_errors():
                relation: Any = self.connection.sql(query)
                # Its name in older versions is `fetch_arrow_reader`.
                read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
                for batch in read(STREAMED):
                    yield [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        finally:
            self.rows("SET preserve_insertion_order = false")

    def engine_over(self, graph: StoredGraph) -> SlicedEngine:
        """Return an engine over a graph in this database."""
        return SlicedEngine(graph, self)

    def arrow_column(self, query: str) -> Any:
        """Return the only column of a query as an Arrow array."""
        with translated_errors():
            return self.connection.sql(query).to_arrow_table().column(0)

    def load(self, table: str, columns: Mapping[str, npt.NDArray[np.integer[Any]]]) -> None:
        """Make a table of some arrays."""
        with self.arrow(columns) as name:
            self.create(table, f"SELECT * FROM {name}")

    @contextlib.contextmanager
    def arrow(self, columns: Mapping[str, Any]) -> Iterator[str]:
        """Show arrays (of NumPy or Arrow) as a table, without copying them into the database."""
        import pyarrow as pa

        arrays = {name: pa.array(column) for name, column in columns.items()}
        self.connection.register("arrow_columns", pa.table(arrays))
        try:
            yield "arrow_columns"
        finally:
            self.connection.unregister("arrow_columns")

    def create(self, table: str, query: str, *, keep: bool = False) -> int:
        """Make a table of a query's result, temporary unless to be kept; return the number of its rows."""
        kind = "TABLE" if keep else "TEMP TABLE"
        return int(self.row(f"CREATE {kind} {table} AS {query}")[0])

    def view(self, name: str, query: str) -> None:
        """Give a query a name, under which it can be read like a table."""
        self.rows(f"CREATE TEMP VIEW {name} AS {query}")

    def append(self, table: str, query: str) -> int:
        """Add a query's result to a table; return how many rows came."""
        return int(self.row(f"INSERT INTO {table} {query}")[0])

    def drop(self, table: str) -> None:
        """Drop a table if it exists."""
        self.rows(f"DROP TABLE IF EXISTS {table}")


def _check_memory_limit(limit: str) -> None:
    """Refuse what DuckDB would take for no limit at all (`-1GB`, `none`), or would not understand."""
    if not re.fullmatch(r"\s*[0-9]{1,9}(\.[0-9]+)?\s*([KMGT]i?B|%)\s*", limit, re.IGNORECASE):
        raise InputError(f"`{limit}` is no amount of memory", hint="give a number and its unit, such as 500MB or 4GB")


def _make_folder(directory: Path | None) -> Path:
    try:
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="loginfer-duckdb-", dir=directory))
    except OSError as error:
        raise OutputError(
            f"cannot make a folder for DuckDB in `{directory or tempfile.gettempdir()}`: {describe_os_error(error)}",
            hint="choose another directory",
        ) from error


@contextlib.contextmanager
def translated_errors() -> Iterator[None]:
    """Turn what DuckDB says about memory and disk into errors that say what to do."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise LimitError(
            f"DuckDB ran out of memory or of space for temporary files: {_first_line(error)}",
            hint="give it more memory, or a directory with more free space",
        ) from error
    except duckdb.Error as error:
        # A full disk may show when files are written, when that is committed, or at any time after.
        if not isinstance(error, duckdb.IOException) and not re.search(_DISK, str(error)):
            raise
        raise OutputError(
            f"DuckDB cannot use its files: {_first_line(error)}",
            hint="is the disk full? Choose a directory with more free space, or another database",
        ) from error
    except RuntimeError as error:
        # How DuckDB reports Ctrl-C.
        if "interrupted" in str(error).casefold():
            raise KeyboardInterrupt from error
        raise


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


FORMAT = 1


def ingest(session: DuckDBSession, paths: Sequence[Path], names: ExtraNames) -> None:
    """Read files of names into the tables `entities`, `relations` and `triples` of a new database.

    Ids are positions in the order of the names' UTF-8 bytes, which is how DuckDB compares texts: the same
    ids that a `KnowledgeGraph` of these triples has.

    Parameters
    ----------
    session
        A database of its own.
    paths
        TSV/TXT (also .gz, .zst) or Parquet files; the graph is their union.
    names
        Names besides those in the files.
    """
    queries = [_names_query(session, path) for path in paths]
    session.create("names", "\nUNION ALL\n".join(queries) or "SELECT '' AS s, '' AS r, '' AS o LIMIT 0")
    (empty,) = session.row("SELECT count(*) FROM names WHERE (s <> '' AND r <> '' AND o <> '') IS NOT TRUE")
    if empty:
        file_list = ", ".join(f"`{path}`" for path in paths)
        raise InputError(f"{empty:,} triples in {file_list} have an empty subject, relation or object")
    type_names = ", ".join(quote_text(name) for name in TYPE_NAMES)
    names = names.settled({name for (name,) in session.rows(f"SELECT DISTINCT r FROM names WHERE r IN ({type_names})")})
    for table, query, more in (
        ("entities", "SELECT s AS name FROM names UNION ALL SELECT o FROM names", names.entities),
        ("relations", "SELECT r AS name FROM names", names.relations),
    ):
        with session.arrow({"name": _texts(more)}) as extra:
            session.create(
                table,
                "SELECT CAST(row_number() OVER (ORDER BY name) - 1 AS INTEGER) AS id, name FROM "
                f"(SELECT DISTINCT name FROM ({query} UNION ALL SELECT name FROM {extra}) AS a) AS b "
                "ORDER BY id",
                keep=True,
            )
    session.create(
        "triples",
        "SELECT DISTINCT s.id AS s, r.id AS r, o.id AS o "
        "FROM names AS n, entities AS s, relations AS r, entities AS o "
        "WHERE n.s = s.name AND n.r = r.name AND n.o = o.name ORDER BY r, s, o",
        keep=True,
    )
    session.drop("names")
    predicate = "NULL" if names.type_predicate is None else quote_text(names.type_predicate)
    session.create("about", f"SELECT {FORMAT} AS format, CAST({predicate} AS VARCHAR) AS type", keep=True)


def read_stored_graph(session: DuckDBSession, database: Path) -> StoredGraph:
    """Return the graph that `ingest` left in a database."""
    import duckdb

    try:
        format_, type_predicate = session.row("SELECT format, type FROM about")
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise InputError(
            f"`{database}` is a DuckDB database, but holds no graph",
            hint="make one from files with DuckDBEngine.from_files",
        ) from error
    if format_ != FORMAT:
        raise InputError(f"`{database}` has format {format_}, this version reads {FORMAT}", hint="make it anew")
    return StoredGraph(session, _vocabulary(session, "entities"), _vocabulary(session, "relations"), type_predicate)


def _names_query(session: DuckDBSession, path: Path) -> str:
    """Return a query for the names s, r, o in a file."""
    if not path.is_file():
        raise InputError(f"no file `{path}`", hint="check the path")
    text = quote_text(str(path))
    plain = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    if plain.endswith(".parquet"):
        s, r, o = _parquet_columns(session, text, path)
        return f"SELECT {s} AS s, {r} AS r, {o} AS o FROM read_parquet({text})"
    if plain.endswith((".tsv", ".txt")):
        return (
            f"SELECT s, r, o FROM read_csv({text}, auto_detect = false, delim = '\t', header = false, "
            "quote = '', escape = '', columns = {'s': 'VARCHAR', 'r': 'VARCHAR', 'o': 'VARCHAR'})"
        )
    raise InputError(
        f"cannot ingest `{path}`: unknown file ending",
        hint="use .tsv, .txt (also with .gz or .zst) or .parquet; `loginfer kg convert` makes them",
    )


def _parquet_columns(session: DuckDBSession, text: str, path: Path) -> list[str]:
    """Return the columns for subject, relation and object, by the names that our own reader knows."""
    kinds = {str(row[0]): row[1] for row in session.rows(f"DESCRIBE SELECT * FROM read_parquet({text})")}
    names = triple_columns(list(kinds), str(path))
    for name in names:
        if kinds[name] != "VARCHAR":
            raise InputError(f"column `{name}` holds {kinds[name]}, expected strings", where=str(path))
    return [quote_identifier(name) for name in names]


def bad_line(error: Exception) -> InputError | None:
    """Return DuckDB's complaint about an unreadable line as an `InputError`; None for any other error."""
    text = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line is None:
        return None
    file = re.search(r"^\s*file = (.*)$", text, re.MULTILINE)
    column_count = re.search(r"Expected Number of Columns: 3 Found: (\d+)", text)
    message = "expected three columns, separated by tabs"
    if column_count:
        message += f", found {column_count[1]}"
    elif "unicode" in text:
        message += ", in UTF-8"
    return InputError(message, where=f"{file[1].strip() if file else 'input'}:{line[1]}")


def _texts(names: Iterable[str]) -> Any:
    import pyarrow as pa

    return pa.array(sorted(set(names)), type=pa.string())


def _vocabulary(session: DuckDBSession, table: str) -> Vocabulary:
    return vocabulary_of(session.arrow_column(f"SELECT name FROM {table} ORDER BY id"))


# Bytes for each triple of a slice, with the indexes that kernels build.
BYTES = 48

_UNITS = {"k": 1, "m": 2, "g": 3, "t": 4}


class SlicedEngine(SqlEngine):
    """Exact evaluation of rules over a graph in DuckDB, by compiled kernels where a slice fits into memory.

    Parameters
    ----------
    graph
        The graph K. One in memory has no slices: then all is left to SQL.
    session
        The database.
    max_conclusions
        As for `SqlEngine`.
    slice_rows
        How many triples a slice may have; 0 leaves all to SQL. By default what fits into the session's memory.
    """

    _session: DuckDBSession

    def __init__(
        self,
        graph: KnowledgeGraph,
        session: DuckDBSession,
        *,
        max_conclusions: int = MAX_CONCLUSIONS,
        slice_rows: int | None = None,
    ) -> None:
        super().__init__(graph, session, max_conclusions=max_conclusions)
        self.slice_rows = session.slice_rows if slice_rows is None else slice_rows
        self._slice: tuple[frozenset[int], NativeEngine] | None = None

    def sample_conclusions(self, rule: Rule, salt: int, count: int) -> tuple[int, Ints]:
        """Return |T_r(K) ∖ K|, and the keys of the first `count` of these triples in hash order."""
        engine = self._slice_engine([rule], heads=True)
        if engine is None:
            return super().sample_conclusions(rule, salt, count)
        return engine.sample_conclusions(rule, salt, count)

    def first_witnesses(self, rule: Rule, triples: Triples) -> Ids:
        """Return the first witness of each triple (see `interface.Engine`)."""
        engine = self._slice_engine([rule])
        if engine is None:
            return super().first_witnesses(rule, triples)
        return engine.first_witnesses(rule, triples)

    def derives(self, rules: Sequence[Rule], triples: Triples) -> Mask:
        """Return bool[n]: which of these triples are in T_R(K)."""
        derived = np.zeros(len(triples), dtype=bool)
        # The slice that is in memory already comes first.
        for group in sorted(self._groups(rules), key=lambda group: not self._is_loaded(group)):
            open_rows = np.flatnonzero(~derived)
            derived[open_rows[self._derived_by(group, group, triples[open_rows])]] = True
        return derived

    def _derived_by(self, group: Sequence[Rule], rules: Sequence[Rule], triples: Triples) -> Mask:
        """Return which triples some rules of a group derive."""
        engine = self._slice_engine(group)
        return super().derives(rules, triples) if engine is None else engine.derives(rules, triples)

    def derivations(self, rules: Sequence[Rule], triples: Triples) -> Derivations:
        """Return every pair of a triple and a rule that derives it in one step."""
        pairs, rule_offset = [], 0
        for group in self._groups(rules):
            engine = self._slice_engine(group)
            derivations = super().derivations(group, triples) if engine is None else engine.derivations(group, triples)
            pairs.append((derivations.triple, derivations.rule + rule_offset))
            rule_offset += len(group)
        return Derivations.of(pairs)

    def _derived_rows(self, rules: Sequence[Rule], graph: StoredGraph) -> Iterator[str]:
        """Yield queries for the triples of a graph in this database that rules derive; run each before the next."""
        if not self._sizes:
            yield from super()._derived_rows(rules, graph)
            return
        for group in self._groups(rules):
            by_head: dict[int, list[Rule]] = {}
            for rule in group:
                by_head.setdefault(relation_of(rule.head, self.graph), []).append(rule)
            for relation, rules_of_head in by_head.items():
                triples = graph.of_relations([relation])
                derived = triples[self._derived_by(group, rules_of_head, triples)]
                with self._table("found") as name:
                    self._session.load(name, {end: derived[:, i] for i, end in enumerate("sro")})
                    yield f"SELECT s, r, o FROM {name}"

    # -- slices ---------------------------------------------------------------------------------

    @cached_property
    def _sizes(self) -> dict[int, int]:
        """How many triples each relation has; none where there are no slices."""
        if not self.slice_rows or not isinstance(self.graph, StoredGraph):
            return {}
        relations, sizes = self._session.columns(f"SELECT r, count(*) FROM {self.graph.table} GROUP BY r ORDER BY r")
        return dict(zip(relations.tolist(), sizes.tolist(), strict=True))

    def _relations(self, rules: Sequence[Rule], heads: bool = False) -> frozenset[int]:
        """Return the relations of the graph that bodies mention; with `heads`, also those of the heads."""
        atoms = (atom for rule in rules for atom in _atoms(rule, heads))
        return frozenset({relation_named(str(atom.relation), self.graph) for atom in atoms} - {ABSENT})

    def _rows(self, relations: frozenset[int]) -> int:
        return sum(self._sizes.get(relation, 0) for relation in relations)

    def _groups(self, rules: Sequence[Rule]) -> Iterator[list[Rule]]:
        """Divide rules, in order, into groups whose slices fit into memory, as far as they can."""
        group: list[Rule] = []
        for rule in rules:
            if group and self._sizes and self._rows(self._relations([*group, rule])) > self.slice_rows:
                yield group
                group = []
            group.append(rule)
        if group:
            yield group

    def _is_loaded(self, rules: Sequence[Rule]) -> bool:
        return self._slice is not None and self._relations(rules) <= self._slice[0]

    def _slice_engine(self, rules: Sequence[Rule], heads: bool = False) -> NativeEngine | None:
        """Return an engine in memory over the slice of some rules; None where that does not fit into memory.

        What follows depends on bodies alone; `heads` is needed to tell which conclusions are new.
        """
        if not self._sizes or not isinstance(self.graph, StoredGraph):
            return None
        relations = self._relations(rules, heads)
        if self._rows(relations) > self.slice_rows:
            return None
        if self._slice is None or not relations <= self._slice[0]:
            self._slice = None  # free it before the next one is loaded
            triples = self.graph.of_relations(sorted(relations))
            self._slice = (relations, NativeEngine(self.graph.with_triples(triples)))
        return self._slice[1]


def _atoms(rule: Rule, head: bool) -> Iterator[Atom]:
    yield from rule.atoms
    yield from (negation.atom for negation in rule.negations)
    if head:
        yield rule.head


def divided(memory_limit: str) -> tuple[str, int]:
    """Divide memory between DuckDB and slices: return DuckDB's limit, and how many triples slices may have.

    Parameters
    ----------
    memory_limit
        What both may use together, such as `4GB`, or `50%` of the machine's memory.
    """
    match = re.fullmatch(r"\s*([0-9.]+)\s*(?:([kmgt])(i?)b|%)\s*", memory_limit, re.IGNORECASE)
    if match is None:  # the DuckDB session reports what is wrong with it
        return memory_limit, 0
    number, unit, binary = match.groups()
    if unit:
        size = float(number) * (1024 if binary else 1000) ** _UNITS[unit.lower()]
    else:
        try:
            size = float(number) / 100 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, ValueError, OSError):
            return memory_limit, 0
    half = int(size / 2)
    return f"{max(half // 1000, 1)}KB", half // BYTES


# Share of the machine's memory; the same as DuckDB's own default.
DEFAULT_MEMORY = "80%"


class DuckDBEngine(DatabaseEngine, SlicedEngine):
    """Exact evaluation of rules in DuckDB, which spills to disk what does not fit into memory.

    Where its graph is in a database, compiled kernels work on slices of it (see `SlicedEngine`). Options are
    those of `DuckDBOptions`.
    """

    name = "duckdb"
    Options = DuckDBOptions

    @classmethod
    def _connect(cls, options: DuckDBOptions, triples: int) -> tuple[DuckDBSession, Callable[[], None]]:
        session = DuckDBSession(memory_limit=options.memory_limit, threads=options.threads, directory=options.directory)
        return session, session.close

    def _load(self, triples: Triples) -> None:
        with self._session.arrow({name: triples[:, i] for i, name in enumerate("sro")}) as arrays:
            # Sorted by relation: a scan for one relation then skips the blocks of all others.
            self._session.create("triples", f"SELECT s, r, o FROM {arrays} ORDER BY r, s, o", keep=True)

    @classmethod
    def _read(cls, place: Path, options: DuckDBOptions) -> tuple[StoredGraph, DuckDBSession, Callable[[], None]]:
        if not place.is_file():
            raise InputError(f"no file `{place}`", hint="check the path")
        memory_limit, rows = divided(options.memory_limit or DEFAULT_MEMORY)
        session = DuckDBSession(
            place,
            memory_limit=memory_limit,
            threads=options.threads,
            directory=options.directory,
            read_only=True,
            slice_rows=rows,
        )
        try:
            return read_stored_graph(session, place), session, session.close
        except BaseException:
            session.close()
            raise

    @classmethod
    @contextlib.contextmanager
    def _written(
        cls, paths: Sequence[Path], place: Path, names: ExtraNames, force: bool, options: DuckDBOptions
    ) -> Iterator[None]:
        import duckdb

        refuse_to_overwrite(place, force)
        part = place.with_name(f".{place.name}.part")
        _remove_database(part)
        limit = divided(options.memory_limit)[0] if options.memory_limit else None
        session = DuckDBSession(part, memory_limit=limit, threads=options.threads, directory=options.directory)
        try:
            ingest(session, paths, names)
            session.close()
            part.replace(place)
        except duckdb.InvalidInputException as error:
            explained = bad_line(error)
            if explained is None:
                raise
            raise explained from error
        finally:
            session.close()
            _remove_database(part)
        yield


def _remove_database(path: Path) -> None:
    """Remove what an earlier attempt left, with its log; make the folder if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write `{path}`: {describe_os_error(error)}", hint="choose another place") from error
