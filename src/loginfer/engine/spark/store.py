"""A graph in a folder of Parquet files that Spark works on.

    about.json        format, numbers of things, the type predicate; written last
    entities/         id and name
    relations/        id and name
    triples/r=7/      subject and object of the triples with relation 7

Ids are places in the order of the names' UTF-8 bytes, as in a graph in memory. Neither names nor triples pass
through the machine that drives Spark while files become a store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from loginfer.engine.spark.database import SHUFFLES, SparkDatabase, check_arrived
from loginfer.engine.spark.failures import translated_errors
from loginfer.engine.spark.reading import address, read_names, readable
from loginfer.engine.sql.stored import StoredGraph
from loginfer.engine.sql.vocabulary import vocabulary_of
from loginfer.errors import InputError, LimitError, OutputError
from loginfer.files import reading
from loginfer.kg import TYPE_NAMES, Vocabulary

__all__ = ["may_replace", "read_about", "read_store", "write_store"]

ABOUT = "about.json"
FORMAT = 1

# Ids are numbers of 32 bits.
MOST_NAMES = 2**31 - 1


def write_store(
    database: SparkDatabase,
    paths: Sequence[Path],
    folder: Path,
    *,
    type_predicate: str | None = None,
    entities: Iterable[str] = (),
    relations: Iterable[str] = (),
) -> None:
    """Read files of names into a folder.

    Parameters
    ----------
    database
        Where Spark works.
    paths
        TSV/TXT (also .gz) or Parquet files that all workers see; the graph is their union.
    folder
        An empty folder that all workers see.
    type_predicate
        As for `KnowledgeGraph`.
    entities, relations
        Names that the vocabularies shall hold besides, such as those of rules' heads.
    """
    read_names(database, paths, "names")
    if type_predicate is None:
        # As in a graph in memory: the data's own type predicate is not doubled by the rules' rdf:type.
        own = set(database.arrow("SELECT DISTINCT r FROM names").column(0).to_pylist())
        type_predicate = next((name for name in TYPE_NAMES if name in own), None)
    if type_predicate:
        relations = [name for name in relations if name not in TYPE_NAMES]
    ends = "SELECT s AS name FROM names UNION ALL SELECT o FROM names"
    counts = {
        "entities": _write_names(database, "entities", ends, entities, folder),
        "relations": _write_names(database, "relations", "SELECT r AS name FROM names", relations, folder),
    }
    _write_triples(database, folder)
    database.drop("names")
    counts["triples"] = _show_triples(database, folder)
    about = {"format": FORMAT, "type": type_predicate, **counts}
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
        distinct = spark.sql(
            f"SELECT DISTINCT name FROM ({query} UNION ALL SELECT name FROM more_names) AS n"
        )
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
        spark.read.schema("id INT, name STRING").parquet(readable(folder / table)).createOrReplaceTempView(
            table
        )
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
        raise InputError(
            f"`{folder}` has format {sizes[0]}, this version reads {FORMAT}", hint="make it anew"
        )
    return dict(about)


def may_replace(folder: Path) -> None:
    """Raise `OutputError` unless a folder is a store."""
    try:
        read_about(folder)
    except InputError as error:
        raise OutputError(
            f"`{folder}` holds other things than a graph for Spark, and is not replaced",
            hint="choose another name",
        ) from error


def read_store(database: SparkDatabase, folder: Path) -> StoredGraph:
    """Return the graph that `write_store` left in a folder; its vocabularies come into memory."""
    about = read_about(folder)
    vocabularies = [_read_vocabulary(folder, name, int(about[name])) for name in ("entities", "relations")]
    found = _show_triples(database, folder)
    if found != about["triples"]:
        raise _incomplete(folder, "triples", found, about["triples"])
    return StoredGraph(database, vocabularies[0], vocabularies[1], about["type"])


def _read_vocabulary(folder: Path, name: str, size: int) -> Vocabulary:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(folder / name, columns=["id", "name"]).sort_by("id")
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read `{folder / name}`: {str(error).splitlines()[0]}") from error
    if len(table) != size:
        raise _incomplete(folder, name, len(table), size)
    return vocabulary_of(table.column("name"))


def _incomplete(folder: Path, what: str, found: int, wanted: int) -> InputError:
    return InputError(
        f"`{folder}` is not complete: {found:,} of {wanted:,} {what} are there", hint="make it anew"
    )
