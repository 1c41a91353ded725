"""Files of names as Spark reads them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from loginfer.engine.spark.database import SparkDatabase, quote
from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg.formats.parquet import COLUMN_NAMES

__all__ = ["address", "read_names", "readable"]

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
    database.create(
        table, "\nUNION ALL\n".join(queries) or "SELECT '' AS s, '' AS r, '' AS o, '' AS bad LIMIT 0"
    )
    for number in range(len(paths)):
        database.drop(f"file_{number}")
    wrong = database.arrow(f"SELECT bad FROM {table} WHERE bad IS NOT NULL LIMIT 1").to_pylist()
    if wrong and lines:
        raise _first_mistake(lines)
    if wrong:
        listed = ", ".join(f"`{path}`" for path in paths)
        raise InputError(f"triples in {listed} have an empty subject, relation or object")


def _parquet(database: SparkDatabase, path: Path, name: str) -> str:
    """Return a query for the triples of a Parquet file, by the names of columns that our own reader knows."""
    frame = database.spark.read.parquet(readable(path))
    found = {field.name.lower(): field for field in frame.schema.fields}
    for names in COLUMN_NAMES:
        if all(column in found for column in names):
            for column in names:
                kind = found[column].dataType.simpleString()
                if kind != "string":
                    raise InputError(f"column `{column}` holds {kind}, expected strings", where=str(path))
            s, r, o = (f"`{found[column].name.replace('`', '``')}`" for column in names)
            frame.createOrReplaceTempView(name)
            some = f"{s} = '' OR {r} = '' OR {o} = '' OR {s} IS NULL OR {r} IS NULL OR {o} IS NULL"
            return f"SELECT {s} AS s, {r} AS r, {o} AS o, if({some}, 'empty', NULL) AS bad FROM {name}"
    raise InputError("expected columns subject, relation, object", where=str(path))


def _lines(database: SparkDatabase, path: Path, name: str) -> str:
    """Return a query for the triples of a file of tab-separated columns; `bad` holds what is none."""
    frame = database.spark.read.option("lineSep", "\n").text(readable(path))
    frame.createOrReplaceTempView(name)
    first = _marked_line(path)
    line = "value" if first is None else f"if(value = {quote(first)}, substr(value, 2), value)"
    bare = f"SELECT {line} AS line FROM {name}"
    bare = f"SELECT if(endswith(line, '\\r'), left(line, length(line) - 1), line) AS line FROM ({bare}) AS a"
    split = f"SELECT line, split(line, '\\t', -1) AS parts FROM ({bare}) AS b WHERE trim(line) <> ''"
    good = "size(parts) = 3 AND NOT array_contains(parts, '') AND is_valid_utf8(line)"
    return (
        "SELECT get(parts, 0) AS s, get(parts, 1) AS r, get(parts, 2) AS o, "
        f"if({good}, NULL, 'line') AS bad FROM ({split}) AS c"
    )


def _open(path: Path) -> IO[bytes]:
    if path.name.lower().endswith(".gz"):
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")


def _marked_line(path: Path) -> str | None:
    """Return the first line of a file if it begins with a byte order mark, which is no part of a name."""
    with reading(path), _open(path) as stream:
        line = stream.readline().removesuffix(b"\n").decode(errors="replace")
    return line if line.startswith(BYTE_ORDER_MARK) else None


def _first_mistake(paths: Sequence[Path]) -> InputError:
    """Look for the line that Spark stumbled over: Spark does not count lines."""
    for path in paths:
        with reading(path), _open(path) as stream:
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
