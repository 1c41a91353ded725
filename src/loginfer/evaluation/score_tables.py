"""Reading the columns of a score file, TSV or Parquet, and saying on which line something stands."""

from __future__ import annotations

import io
import itertools
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.evaluation.values import Scores
from loginfer.kg.formats.source import Source, check_text, split_compression

__all__ = ["ScoreTable", "read_score_table"]

COLUMNS = ("subject", "relation", "object", "score")
# Other names that the columns may have, in a header line or a Parquet file.
ALSO = {
    "s": "subject", "head": "subject", "h": "subject",
    "r": "relation", "predicate": "relation", "p": "relation",
    "o": "object", "tail": "object", "t": "object",
    "confidence": "score",
}  # fmt: skip
SHOWN = 3


@dataclass(frozen=True)
class ScoreTable:
    """The columns of a score file.

    Parameters
    ----------
    path
        The file.
    names
        Subject, relation, object: dictionary columns.
    scores
        float64[n]; NaN where a score cannot be read.
    unreadable
        bool[n], which scores are no numbers.
    texts
        The scores as they were written, for messages.
    text, header
        Of a TSV file: its bytes, and whether its first line is a header.
    """

    path: Path
    names: tuple[Any, Any, Any]
    scores: Scores
    unreadable: npt.NDArray[np.bool_]
    texts: Any
    text: bytes | None = field(default=None, repr=False)
    header: bool = False

    @cached_property
    def _lines(self) -> list[int]:
        """The numbers of the lines that hold something; they are only needed for messages."""
        return _filled_lines(self.text or b"")

    def number(self, row: int) -> str:
        """Say where a row stands."""
        if self.text is None:
            return f"row {row + 1:,}"
        return f"line {self._lines[row + self.header]:,}"

    def line(self, row: int) -> str:
        """Say where a row stands and what it says."""
        cells = [*(column[row].as_py() for column in self.names), str(self.texts[row].as_py())]
        return f"{self.number(row)}: " + "\t".join(cells)


def read_score_table(path: Path) -> ScoreTable:
    """Read a score file; whatever is not four filled columns is an `InputError`."""
    with Source.of(path).open() as (stream, _):
        content = stream.read()
    if not content:
        raise InputError(f"`{path}` is empty", hint=_EXPECTED)
    if split_compression(path.name)[0].lower().endswith(".parquet"):
        return _from_parquet(path, content)
    return _from_text(path, content)


# -- TSV -----------------------------------------------------------------------------------------


def _from_text(path: Path, content: bytes) -> ScoreTable:
    import pyarrow as pa
    import pyarrow.csv

    content = content.removeprefix(b"\xef\xbb\xbf")
    check_text(content[:4096], str(path))
    order, header = _header(content)
    bad: list[Any] = []

    def skip(row: Any) -> Literal["skip"]:
        bad.append(row)
        return "skip"

    try:
        table = pa.csv.read_csv(
            io.BytesIO(content),
            # Rows that do not fit are only numbered when one thread reads.
            read_options=pa.csv.ReadOptions(column_names=order, use_threads=False, skip_rows=0),
            parse_options=pa.csv.ParseOptions(
                delimiter="\t", quote_char=False, escape_char=False, invalid_row_handler=skip
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types={name: pa.string() for name in COLUMNS}, strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            raise InputError(f"`{path}` is empty", hint=_EXPECTED) from error
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"no readable text in columns: {reason}", where=str(path), hint=_EXPECTED) from error
    if bad:
        _refuse_lines(path, content, bad)
    table = table.slice(1) if header else table
    if not len(table):
        raise InputError(f"`{path}` holds no scores", hint=_EXPECTED)
    return _finished(path, {name: table.column(name) for name in COLUMNS}, content, header)


def _header(content: bytes) -> tuple[list[str], bool]:
    """Return the order of the columns, and whether the first filled line tells it."""
    first = next((line for line in content[: 2**16].splitlines() if line.strip()), b"")
    cells = [_plain(cell.decode("utf-8", "replace")) for cell in first.split(b"\t")]
    if sorted(cells) == sorted(COLUMNS):
        return cells, True
    return list(COLUMNS), False


def _plain(name: str) -> str:
    word = name.strip().strip("\"'").casefold()
    return ALSO.get(word, word)


def _refuse_lines(path: Path, content: bytes, bad: list[Any]) -> None:
    lines = _filled_lines(content)
    numbered = all(row.number is not None for row in bad)
    first = f":{lines[bad[0].number - 1]}" if numbered else ""
    told = "".join(
        f"\n    {f'line {lines[row.number - 1]:,}: ' if numbered else ''}{row.text[:200]}"
        for row in bad[:SHOWN]
    )
    more = f"\n    and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
    count = "1 line has" if len(bad) == 1 else f"{len(bad):,} lines have"
    columns = sorted({row.actual_columns for row in bad})
    wrong = " or ".join(map(str, columns[:3]))
    raise InputError(
        f"{count} {wrong} columns instead of 4:{told}{more}", where=f"{path}{first}", hint=_EXPECTED
    )


def _filled_lines(content: bytes) -> list[int]:
    return [n for n, line in enumerate(content.split(b"\n"), start=1) if line.strip(b"\r")]


# -- Parquet -------------------------------------------------------------------------------------


def _from_parquet(path: Path, content: bytes) -> ScoreTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"no readable Parquet file: {reason}", where=str(path)) from error
    named = {_plain(name): name for name in reversed(table.column_names)}
    missing = [name for name in COLUMNS if name not in named]
    if missing:
        there = ", ".join(f"`{name}`" for name in table.column_names[:10]) or "none"
        raise InputError(f"there is no column `{missing[0]}`, only {there}", where=str(path), hint=_EXPECTED)
    columns = {name: table.column(named[name]) for name in COLUMNS}
    for name, column in columns.items():
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy())[0]) + 1
            raise InputError(
                f"column `{name}` has {column.null_count:,} empty cell{'s'[: column.null_count - 1]} (null), "
                f"the first in row {row:,}",
                where=str(path),
            )
    if not len(table):
        raise InputError(f"`{path}` holds no scores", hint=_EXPECTED)
    return _finished(path, columns, None, False)


# -- both ----------------------------------------------------------------------------------------


def _finished(path: Path, columns: dict[str, Any], content: bytes | None, header: bool) -> ScoreTable:
    import pyarrow as pa

    names = []
    for name in COLUMNS[:3]:
        column = columns[name]
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise InputError(f"column `{name}` holds {kind}, expected names", where=str(path))
        # Chunks that are encoded one by one would have dictionaries of their own.
        names.append(_combined(column.cast(pa.large_string())).dictionary_encode())
    scores, unreadable = _numbers(columns["score"])
    texts = _combined(columns["score"])
    return ScoreTable(path, (names[0], names[1], names[2]), scores, unreadable, texts, content, header)


def _combined(column: Any) -> Any:
    import pyarrow as pa

    column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks else pa.array([], column.type)
    return column


def _numbers(column: Any) -> tuple[Scores, npt.NDArray[np.bool_]]:
    """Return the scores, and which of them cannot be read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        try:
            column = column.cast(pa.float64(), safe=False)  # whole numbers from 2^53 on are rounded
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return np.full(len(column), np.nan), np.ones(len(column), dtype=bool)
        values = np.asarray(column.to_numpy(), dtype=np.float64)
        return values, np.zeros(len(values), dtype=bool)
    texts = pc.utf8_trim_whitespace(column)
    try:
        values = np.asarray(texts.cast(pa.float64()).to_numpy(), dtype=np.float64)
        return values, np.zeros(len(values), dtype=bool)
    except pa.ArrowInvalid:
        read = [_number(text) for text in itertools.chain.from_iterable(c.to_pylist() for c in texts.chunks)]
        values = np.array([np.nan if value is None else value for value in read], dtype=np.float64)
        return values, np.array([value is None for value in read], dtype=bool)


def _number(text: str) -> float | None:
    if "_" in text or not text.isascii():  # Python would read 1_0 and ٣
        return None
    try:
        return float(text)
    except ValueError:
        return None


_EXPECTED = "expected four columns, in text separated by tabs: subject, relation, object, score"
