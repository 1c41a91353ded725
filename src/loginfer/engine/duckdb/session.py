"""A DuckDB connection as an SQL engine's session."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.engine.duckdb.hashing import hashed
from loginfer.engine.sql.queries import Dialect
from loginfer.errors import InputError, LimitError, OutputError
from loginfer.files import describe_os_error

__all__ = ["DuckDBSession"]

# So many rows come at a time, where not all are fetched at once.
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

    dialect = Dialect(number="HUGEINT", materialised="MATERIALIZED")

    def __init__(
        self,
        database: Path | None = None,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        directory: Path | None = None,
        read_only: bool = False,
        slice_rows: int = 0,
    ) -> None:
        import duckdb

        if memory_limit is not None:
            _check_memory_limit(memory_limit)
        self.slice_rows = slice_rows
        self.folder = _make_folder(directory)
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
        (found,) = self.rows(query)
        return found

    def columns(self, query: str) -> list[npt.NDArray[Any]]:
        """Return the columns of a query as arrays of numbers."""
        with translated_errors():
            found = self.connection.execute(query).fetchnumpy()
        return [np.asarray(column) for column in found.values()]

    def stream(self, query: str) -> Iterator[list[npt.NDArray[Any]]]:
        """Yield the columns of a query some rows at a time, in order.

        Nothing else may be asked until it is finished or let go.
        """
        # Without it, blocks of an ordered result come in any order.
        self.rows("SET preserve_insertion_order = true")
        try:
            with translated_errors():
                found: Any = self.connection.sql(query)
                # Its name in older versions is `fetch_arrow_reader`.
                read = getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader
                for batch in read(STREAMED):
                    yield [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        finally:
            self.rows("SET preserve_insertion_order = false")

    def hashed(self, query: str, key: str, salt: int) -> str:
        """Return a query for the rows of another one with a column h, by which `hash_order` orders them."""
        return hashed(query, key, salt)

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
        raise InputError(
            f"`{limit}` is no amount of memory", hint="give a number and its unit, such as 500MB or 4GB"
        )


def _make_folder(directory: Path | None) -> Path:
    try:
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="loginfer-duckdb-", dir=directory))
    except OSError as error:
        raise OutputError(
            f"cannot make a folder for DuckDB in `{directory or tempfile.gettempdir()}`: "
            f"{describe_os_error(error)}",
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
