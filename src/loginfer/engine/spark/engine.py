"""The engine on Spark: on many machines, for graphs larger than one.

A graph that Spark works on is a folder of Parquet files:

    about.json        format, numbers of things, the type predicate; written last
    entities/         id and name
    relations/        id and name
    triples/r=7/      subject and object of the triples with relation 7

Ids are positions in the order of the names' UTF-8 bytes, as in a graph in memory. Neither names nor triples pass
through the machine that drives Spark while files become a store.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from loginfer.engine.registry import SparkOptions
from loginfer.engine.spark.session import (
    SHUFFLES,
    Application,
    SparkDatabase,
    check_arrived,
    is_local,
    make_folder,
    place_of,
    quote,
    translated_errors,
)
from loginfer.engine.sql.engine import DatabaseEngine, ExtraNames
from loginfer.engine.sql.session import StoredGraph, vocabulary_of
from loginfer.errors import InputError, LimitError, OutputError
from loginfer.files import atomic_folder, check_folder, reading
from loginfer.kg import Triples, Vocabulary
from loginfer.kg.formats.base import Source
from loginfer.kg.formats.parquet import parquet_errors, triple_columns

BYTE_ORDER_MARK = "\ufeff"


def address(path: Path) -> str:
    """Write a path of this machine as Spark wants it, whatever its own file system is."""
    return f"file://{path.absolute()}"


def readable(path: Path) -> str:
    """Write a path to be read, so that nothing in it stands for other names."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", address(path))


def read_names(database: SparkDatabase, paths: Sequence[Path], table: str) -> None:
    """Read files of names into a table s, r, o; the same triple may come several times.

    Raises
    ------
    InputError
        For a file that cannot be read, with the line of the first mistake.
    """
    lines: list[Path] = []
    queries = []
    for number, path in enumerate(paths):
        if not path.is_file():
            raise InputError(f"no file `{path}`", hint="check the path")
        name = f"file_{number}"
        plain = path.name.lower().removesuffix(".gz")
        if plain.endswith(".parquet"):
            queries.append(_parquet(database, path, name))
        elif plain.endswith((".tsv", ".txt")):
            queries.append(_lines(database, path, name))
            lines.append(path)
        else:
            raise InputError(
                f"Spark cannot read `{path}`: unknown file ending",
                hint="use .tsv, .txt (also with .gz) or .parquet; `loginfer kg convert` makes them",
            )
    database.create(table, "\nUNION ALL\n".join(queries) or "SELECT '' AS s, '' AS r, '' AS o, '' AS bad LIMIT 0")
    for number in range(len(paths)):
        database.drop(f"file_{number}")
    bad_rows = database.arrow(f"SELECT bad FROM {table} WHERE bad IS NOT NULL LIMIT 1").to_pylist()
    if bad_rows and lines:
        raise _first_mistake(lines)
    if bad_rows:
        file_list = ", ".join(f"`{path}`" for path in paths)
        raise InputError(f"triples in {file_list} have an empty subject, relation or object")


def _parquet(database: SparkDatabase, path: Path, name: str) -> str:
    """Return a query for the triples of a Parquet file, by the names of columns that our own reader knows."""
    frame = database.spark.read.parquet(readable(path))
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    names = triple_columns(list(kinds), str(path))
    for column in names:
        if kinds[column] != "string":
            raise InputError(f"column `{column}` holds {kinds[column]}, expected strings", where=str(path))
    s, r, o = (f"`{column.replace('`', '``')}`" for column in names)
    frame.createOrReplaceTempView(name)
    is_empty = f"{s} = '' OR {r} = '' OR {o} = '' OR {s} IS NULL OR {r} IS NULL OR {o} IS NULL"
    return f"SELECT {s} AS s, {r} AS r, {o} AS o, if({is_empty}, 'empty', NULL) AS bad FROM {name}"


def _lines(database: SparkDatabase, path: Path, name: str) -> str:
    """Return a query for the triples of a file of tab-separated columns; `bad` holds what is none."""
    frame = database.spark.read.option("lineSep", "\n").text(readable(path))
    frame.createOrReplaceTempView(name)
    first = _marked_line(path)
    line = "value" if first is None else f"if(value = {quote(first)}, substr(value, 2), value)"
    lines = f"SELECT {line} AS line FROM {name}"
    lines = f"SELECT if(endswith(line, '\\r'), left(line, length(line) - 1), line) AS line FROM ({lines}) AS a"
    split = f"SELECT line, split(line, '\\t', -1) AS parts FROM ({lines}) AS b WHERE trim(line) <> ''"
    good = "size(parts) = 3 AND NOT array_contains(parts, '') AND is_valid_utf8(line)"
    return (
        "SELECT get(parts, 0) AS s, get(parts, 1) AS r, get(parts, 2) AS o, "
        f"if({good}, NULL, 'line') AS bad FROM ({split}) AS c"
    )


@contextlib.contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    with Source.of(path).open() as (stream, _), io.BufferedReader(cast(Any, stream)) as lines:
        yield cast(BinaryIO, lines)


def _marked_line(path: Path) -> str | None:
    """Return the first line of a file if it begins with a byte order mark, which is no part of a name."""
    with _open(path) as stream:
        line = stream.readline().removesuffix(b"\n").decode(errors="replace")
    return line if line.startswith(BYTE_ORDER_MARK) else None


def _first_mistake(paths: Sequence[Path]) -> InputError:
    """Look for the line that Spark stumbled over: Spark does not count lines."""
    for path in paths:
        with _open(path) as stream:
            for number, line in enumerate(stream, 1):
                try:
                    text = line.removesuffix(b"\n").removesuffix(b"\r").decode()
                except UnicodeDecodeError:
                    return InputError("expected UTF-8", where=f"{path}:{number}")
                columns = text.split("\t")
                if text.strip(" ") and len(columns) != 3:
                    message = f"expected three columns, separated by tabs, found {len(columns)}"
                    return InputError(message, where=f"{path}:{number}")
                if text.strip(" ") and "" in columns:
                    return InputError(f"column {columns.index('') + 1} is empty", where=f"{path}:{number}")
    return InputError("a file changed while it was read", where=str(paths[0]))


ABOUT = "about.json"
FORMAT = 1

# Ids are numbers of 32 bits.
MOST_NAMES = 2**31 - 1


def write_store(database: SparkDatabase, paths: Sequence[Path], folder: Path, names: ExtraNames) -> None:
    """Read files of names into a folder.

    Parameters
    ----------
    database
        Where Spark works.
    paths
        TSV/TXT (also .gz) or Parquet files that all workers see; the graph is their union.
    folder
        An empty folder that all workers see.
    names
        Names besides those in the files.
    """
    read_names(database, paths, "names")
    names = names.settled(database.arrow("SELECT DISTINCT r FROM names").column(0).to_pylist())
    ends = "SELECT s AS name FROM names UNION ALL SELECT o FROM names"
    counts = {
        "entities": _write_names(database, "entities", ends, names.entities, folder),
        "relations": _write_names(database, "relations", "SELECT r AS name FROM names", names.relations, folder),
    }
    _write_triples(database, folder)
    database.drop("names")
    counts["triples"] = _show_triples(database, folder)
    about = {"format": FORMAT, "type": names.type_predicate, **counts}
    (folder / ABOUT).write_text(json.dumps(about, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _write_names(database: SparkDatabase, table: str, query: str, more: Iterable[str], folder: Path) -> int:
    """Write the distinct names of a query, numbered in their order; return how many there are.

    They are divided into ranges, whose numbers are in order too; an id is the number of names in earlier
    ranges and the place in its own one. The ranges are written down first: computed again, for a worker that
    was lost, they might be others.
    """
    import pyarrow as pa

    spark = database.spark
    with translated_errors():
        extra = pa.table({"name": pa.array(sorted(set(more)), pa.string())})
        spark.createDataFrame(extra).createOrReplaceTempView("more_names")
        distinct = spark.sql(f"SELECT DISTINCT name FROM ({query} UNION ALL SELECT name FROM more_names) AS n")
        ranges = distinct.repartitionByRange(int(spark.conf.get(SHUFFLES)), "name")
        ranges.selectExpr("name", "spark_partition_id() AS part").createOrReplaceTempView("ranges")
    total = database.create("ranged", "SELECT name, part FROM ranges")
    if total > MOST_NAMES:
        raise LimitError(f"the graph has {total:,} {table}, more than {MOST_NAMES:,}")
    part, size = database.columns("SELECT part, count(*) AS n FROM ranged GROUP BY part ORDER BY part")
    database.load("before", {"part": part, "names": np.cumsum(size) - size})
    numbered = (
        "SELECT CAST(b.names + row_number() OVER (PARTITION BY a.part ORDER BY a.name) - 1 AS INT) AS id, "
        "a.name FROM ranged AS a, before AS b WHERE a.part = b.part"
    )
    with database.working():
        spark.sql(numbered).write.parquet(address(folder / table))
        # Now as the files have them.
        spark.read.schema("id INT, name STRING").parquet(readable(folder / table)).createOrReplaceTempView(table)
    check_arrived(int(database.row(f"SELECT count(*) AS n FROM {table}")[0]), total)
    for name in ("ranged", "ranges", "before", "more_names"):
        database.drop(name)
    return total


def _write_triples(database: SparkDatabase, folder: Path) -> None:
    joined = (
        "SELECT DISTINCT s.id AS s, o.id AS o, r.id AS r "
        "FROM names AS n, entities AS s, relations AS r, entities AS o "
        "WHERE n.s = s.name AND n.r = r.name AND n.o = o.name"
    )
    with database.working():
        rows = database.spark.sql(f"SELECT /*+ REBALANCE(r) */ s, o, r FROM (\n{joined}\n) AS t")
        rows.write.partitionBy("r").parquet(address(folder / "triples"))
    for name in ("entities", "relations"):
        database.drop(name)


def _show_triples(database: SparkDatabase, folder: Path) -> int:
    """Show the triples to queries; return how many there are."""
    with database.working():
        frame = database.spark.read.schema("s INT, o INT, r INT").parquet(readable(folder / "triples"))
        frame.createOrReplaceTempView("triples")
    return int(database.row("SELECT count(*) AS n FROM triples")[0])


# -- opening ----------------------------------------------------------------------------------------------


def read_about(folder: Path) -> dict[str, Any]:
    """Return what a store says of itself; an unfinished one says nothing and is refused."""
    if not folder.is_dir():
        raise InputError(f"no folder `{folder}`", hint="make one from files with SparkEngine.from_files")
    try:
        with reading(folder / ABOUT):
            about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        sizes = [int(about[name]) for name in ("format", "entities", "relations", "triples")]
    except (InputError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"`{folder}` holds no graph for Spark, or an unfinished one",
            hint="make it from files with SparkEngine.from_files",
        ) from error
    if sizes[0] != FORMAT:
        raise InputError(f"`{folder}` has format {sizes[0]}, this version reads {FORMAT}", hint="make it anew")
    return dict(about)


def may_replace(folder: Path) -> None:
    """Raise `OutputError` unless a folder is a store."""
    try:
        read_about(folder)
    except InputError as error:
        raise OutputError(
            f"`{folder}` holds other things than a graph for Spark, and is not replaced", hint="choose another name"
        ) from error


def read_store(database: SparkDatabase, folder: Path) -> StoredGraph:
    """Return the graph that `write_store` left in a folder; its vocabularies come into memory."""
    about = read_about(folder)
    vocabularies = [_read_vocabulary(folder, name, int(about[name])) for name in ("entities", "relations")]
    rows = _show_triples(database, folder)
    if rows != about["triples"]:
        raise _incomplete(folder, "triples", rows, about["triples"])
    return StoredGraph(database, vocabularies[0], vocabularies[1], about["type"])


def _read_vocabulary(folder: Path, name: str, size: int) -> Vocabulary:
    import pyarrow.parquet as pq

    with parquet_errors(folder / name):
        table = pq.read_table(folder / name, columns=["id", "name"]).sort_by("id")
    if len(table) != size:
        raise _incomplete(folder, name, len(table), size)
    return vocabulary_of(table.column("name"))


def _incomplete(folder: Path, what: str, rows: int, expected: int) -> InputError:
    return InputError(f"`{folder}` is not complete: {rows:,} of {expected:,} {what} are there", hint="make it anew")


# About what a triple of names takes in a file; only to choose a number of partitions.
BYTES_A_TRIPLE = 30


class SparkEngine(DatabaseEngine):
    """Exact evaluation of rules in Spark, on one machine or many.

    Files and what is made of them must be where all workers see them. Engines that are open at the same time
    share one Spark application, which stops when the last one is closed. Options are those of `SparkOptions`.
    """

    name = "spark"
    Options = SparkOptions
    _session: SparkDatabase

    @classmethod
    def _connect(cls, options: SparkOptions, triples: int) -> tuple[SparkDatabase, Callable[[], None]]:
        return open_database(options, triples)

    def _load(self, triples: Triples) -> None:
        database = self._session
        database.load("given", {name: triples[:, i] for i, name in enumerate("sro")})
        check_arrived(database.create_partitioned("triples", "SELECT s, r, o FROM given"), len(triples))
        database.drop("given")

    @classmethod
    def _read(cls, place: Path, options: SparkOptions) -> tuple[StoredGraph, SparkDatabase, Callable[[], None]]:
        folder = place.absolute()
        database, close = open_database(options, int(read_about(folder)["triples"]))
        try:
            return read_store(database, folder), database, close
        except BaseException:
            close()
            raise

    @classmethod
    @contextlib.contextmanager
    def _written(
        cls, paths: Sequence[Path], place: Path, names: ExtraNames, force: bool, options: SparkOptions
    ) -> Iterator[None]:
        files, target = [path.absolute() for path in paths], place.absolute()
        check_folder(target, force=force, may_replace=may_replace)
        size = sum(path.stat().st_size for path in files if path.is_file()) // BYTES_A_TRIPLE
        database, close = open_database(options, size)
        # What follows uses the same Spark, so that it need not start a second time.
        with contextlib.ExitStack() as stack:
            stack.callback(close)
            with atomic_folder(target, force=force, may_replace=may_replace) as part:
                write_store(database, files, part, names)
            yield


def open_database(options: SparkOptions, triples: int) -> tuple[SparkDatabase, Callable[[], None]]:
    """Return a database of Spark's for so many triples, and what closes it."""
    directory = options.directory
    with contextlib.ExitStack() as stack:
        application = Application.use(options.master, options.settings, directory, options.spark)
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
