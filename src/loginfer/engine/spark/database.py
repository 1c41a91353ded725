"""A Spark session as an SQL engine's session.

Results that are kept are Parquet files in a folder that all workers see, never Spark's cache: a lost worker
takes nothing with it, and no query grows by the queries before it. Each is a table of a database of Spark's
own, so that whatever file system it is on, Spark removes it. To queries it is known as a temporary view.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
import warnings
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.engine.spark.failures import is_lost, translated_errors
from loginfer.engine.spark.hashing import hashed
from loginfer.engine.spark.watch import Watch
from loginfer.engine.sql.queries import Dialect
from loginfer.errors import OutputError

__all__ = ["SHUFFLES", "SparkDatabase", "check_arrived", "quote"]

# Arrays of up to so many rows travel with the queries; longer ones are written to files first, a part at
# a time, since Spark sends nothing larger than 128 MB.
SENT_ALONG, AT_A_TIME = 250_000, 1_000_000

# So many rows come at a time, where not all are fetched at once.
STREAMED = 2**20

# Rows of one partition have consecutive places from here on (monotonically_increasing_id).
PARTITION_BITS = 33

SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # an overflow is an error, not a null
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
}

# The number of parts that results are shuffled into: Spark's own choice, which is replaced by one for so
# many triples a part, but never more than that many parts.
SHUFFLES, SHUFFLED_BY_DEFAULT, A_PART, MOST_PARTS = "spark.sql.shuffle.partitions", "200", 50_000, 2_000


def quote(text: str) -> str:
    r"""Write a text as a literal of Spark's SQL, where a backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def check_arrived(found: int, written: int) -> None:
    """Raise `OutputError` if rows that workers wrote are missing: they wrote them to disks of their own."""
    if found != written:
        raise OutputError(
            f"of {written:,} rows that the workers of Spark wrote, {found:,} are there",
            hint="the directory must be one that all workers see under the same name",
        )


class SparkDatabase:
    """A database of Spark with temporary tables.

    Parameters
    ----------
    spark
        A session of our own.
    folder
        A path or URL that all workers see; the database is made in it and removed at the end.
    context
        The SparkContext, to look after its workers; None for Spark Connect.
    triples
        How many triples the graph has.
    """

    dialect = Dialect(number="DECIMAL(38, 0)", costly=True)

    def __init__(self, spark: Any, folder: str, context: Any = None, triples: int = 0) -> None:
        self.spark = spark
        self.context = context
        self.watch = Watch(context)
        self.lost = False
        self.name = f"loginfer_{uuid.uuid4().hex}"
        self._place = f"{folder}/{self.name}"
        self._tables: dict[str, str] = {}
        self._rows: dict[str, int] = {}
        self._made = 0
        try:
            self._prepare(triples)
        except BaseException:
            self.close()
            raise

    def _prepare(self, triples: int) -> None:
        spark = self.spark
        with self.working():
            for name, value in SETTINGS.items():
                spark.conf.set(name, value)
            if spark.conf.get(SHUFFLES) == SHUFFLED_BY_DEFAULT:
                cores = 8 if self.context is None else int(self.context.defaultParallelism)
                spark.conf.set(SHUFFLES, str(max(cores, min(triples // A_PART, MOST_PARTS))))
            spark.sql(f"CREATE DATABASE {self.name} LOCATION {quote(self._place)}")

    def close(self) -> None:
        """Remove the tables, and let a client of Spark Connect go."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(Exception):
                if not self.lost:
                    self.spark.sql(f"DROP DATABASE IF EXISTS {self.name} CASCADE")
            with contextlib.suppress(Exception):
                if self.context is None:
                    (self.spark.client.close if self.lost else self.spark.stop)()
        # A Spark that is gone removes nothing; where its files are in our reach, we do.
        if self.files is not None:
            shutil.rmtree(self.files, ignore_errors=True)

    @property
    def files(self) -> Path | None:
        """Where its files are, if that is in the reach of this machine."""
        scheme, _, path = self._place.partition("://")
        return Path(path) if scheme == "file" else None

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Look after Spark while it works, and say in our words what goes wrong."""
        with translated_errors(self.watch.reasons()), self.watch.watching(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"pyspark\.")  # what goes wrong is raised as well
            try:
                yield
            except BaseException as error:
                self.lost = is_lost(error)
                raise

    # -- what an SQL engine asks for --------------------------------------------------------------

    def arrow(self, query: str) -> Any:
        """Return the result of a query as an Arrow table."""
        with self.working():
            return self.spark.sql(query).toArrow()

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a query, with whole numbers of any size as they are."""
        (found,) = self.arrow(query).to_pylist()
        return tuple(int(v) if isinstance(v, Decimal) else v for v in found.values())

    def columns(self, query: str) -> list[npt.NDArray[Any]]:
        """Return the columns of a query as arrays of numbers."""
        return [column.to_numpy() for column in self.arrow(query).columns]

    def stream(self, query: str) -> Iterator[list[npt.NDArray[Any]]]:
        """Yield the columns of a query some rows at a time, in order."""
        with self._temporary("streamed") as table:
            # The sorted partitions of a query's result are numbered in order, and the rows in them.
            rows = self.create(
                table, f"SELECT *, monotonically_increasing_id() AS place FROM (\n{query}\n) AS q"
            )
            if rows <= STREAMED:
                if rows:
                    yield self.columns(f"SELECT * EXCEPT (place) FROM {table} ORDER BY place")
                return
            shift = f"shiftright(place, {PARTITION_BITS})"
            parts, sizes = self.columns(
                f"SELECT {shift}, count(*) FROM {table} GROUP BY {shift} ORDER BY {shift}"
            )
            for part, size in zip(parts.tolist(), sizes.tolist(), strict=True):
                first = part << PARTITION_BITS
                for start in range(first, first + size, STREAMED):
                    here = f"place >= {start} AND place < {min(start + STREAMED, first + size)}"
                    yield self.columns(f"SELECT * EXCEPT (place) FROM {table} WHERE {here} ORDER BY place")

    def hashed(self, query: str, key: str, salt: int) -> str:
        """Return a query for the rows of another one with a column h, in the order of `hash_order`."""
        return hashed(query, key, salt)

    def load(self, table: str, columns: Mapping[str, npt.NDArray[np.integer[Any]]]) -> None:
        """Make a table of some arrays."""
        import pyarrow as pa

        whole = pa.table({name: pa.array(np.ascontiguousarray(column)) for name, column in columns.items()})
        with self.working():
            if len(whole) <= SENT_ALONG:
                self.spark.createDataFrame(whole).createOrReplaceTempView(table)
                return
        for start in range(0, len(whole), AT_A_TIME):
            with self._temporary("loaded") as part:
                with self.working():
                    self.spark.createDataFrame(whole.slice(start, AT_A_TIME)).createOrReplaceTempView(part)
                fill = self.append if start else self.create
                fill(table, f"SELECT * FROM {part}")

    def create(self, table: str, query: str) -> int:
        """Make a table of a query's result; return the number of its rows."""
        kept = self._fresh(table)
        with self.working():
            self.spark.sql(f"CREATE TABLE {kept} USING parquet AS\n{query}")
        return self._show(table, kept)

    def view(self, name: str, query: str) -> None:
        """Give a query a name, under which it can be read like a table."""
        with self.working():
            self.spark.sql(query).createOrReplaceTempView(name)

    def append(self, table: str, query: str) -> int:
        """Add a query's result to a table; return how many rows came."""
        kept, before = self._tables[table], self._rows[table]
        with self.working():
            self.spark.sql(f"INSERT INTO {kept}\n{query}")
        return self._show(table, kept) - before

    def drop(self, table: str) -> None:
        """Drop a table or view if it exists."""
        with self.working():
            self.spark.catalog.dropTempView(table)
            kept = self._tables.pop(table, None)
            if kept is not None:
                self.spark.sql(f"DROP TABLE IF EXISTS {kept}")

    # -- more than that -------------------------------------------------------------------------

    def create_partitioned(self, table: str, query: str) -> int:
        """Make a table of triples of ids, one folder a relation; return the number of its rows."""
        kept = self._fresh(table)
        with self.working():
            self.spark.sql(f"CREATE TABLE {kept} (s INT, o INT, r INT) USING parquet PARTITIONED BY (r)")
            self.spark.sql(f"INSERT INTO {kept}\nSELECT /*+ REBALANCE(r) */ s, o, r FROM (\n{query}\n) AS t")
        return self._show(table, kept)

    def _fresh(self, table: str) -> str:
        """Return a name for the files of a table that none had before, so that nothing stale is read."""
        self._made += 1
        self._tables[table] = f"{self.name}.t{self._made}"
        return self._tables[table]

    def _show(self, table: str, kept: str) -> int:
        """Show the files to queries; return how many rows there are, which Parquet knows."""
        with self.working():
            self.spark.table(kept).createOrReplaceTempView(table)
        self._rows[table] = int(self.row(f"SELECT count(*) AS n FROM {kept}")[0])
        return self._rows[table]

    @contextlib.contextmanager
    def _temporary(self, name: str) -> Iterator[str]:
        try:
            yield name
        finally:
            self.drop(name)
