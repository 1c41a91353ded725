"""Columns of subject, relation and object, one triple a line: TSV, and CSV with its quotes.

Also here is what other formats of lines share: reading text in chunks, writing lines of names, and refusing
names that columns cannot hold.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from loginfer.errors import OutputError
from loginfer.kg.formats import base
from loginfer.kg.graph import Triples
from loginfer.kg.vocabulary import Vocabulary
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder
    from loginfer.kg.graph import KnowledgeGraph


BATCH = 2**14  # triples put together at a time; more would be no faster, and cost memory
_BREAKS = re.compile(r"\r\n|[\t\r\n]")
_OTHER_DELIMITER = "if something else separates the columns, say so with --delimiter"
HEAD = 4096  # first bytes, by which text is told from binary files


def text_chunks(source: base.Source, progress: Progress | None) -> Iterator[tuple[npt.NDArray[np.uint8], int, int]]:
    """Yield a text file as chunks of whole lines, see `line_chunks`."""
    from loginfer.kg.formats.scan import line_chunks

    size = source.size() if progress else 0
    done = 0
    with source.open() as (stream, raw):
        first = True
        for data, begin, end in line_chunks(stream, source.name):
            if first:
                base.check_text(data[: min(end, HEAD)].tobytes(), source.name)
                first = False
            yield data, begin, end
            if progress:
                done = raw.tell() if raw.seekable() else done + end - begin
                progress(f"reading {source.name}", done, size or None)


def write_lines(stream: BinaryIO, triples: Triples, columns: Sequence[Any], between: bytes, behind: bytes) -> None:
    """Write one line a triple.

    Parameters
    ----------
    stream
        Where to.
    triples
        int32[n, 3].
    columns
        For subject, relation, object the texts of all names: a vocabulary, a list of bytes or an Arrow array.
    between, behind
        What stands between the columns, and what ends a line.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    def scalar(text: bytes) -> Any:
        return pa.scalar(text, pa.large_binary())

    def texts(names: Any) -> Any:
        if isinstance(names, Vocabulary):
            return names.to_arrow()
        return names if isinstance(names, pa.Array) else pa.array(names, pa.large_binary())

    first, second, third = map(texts, columns)
    third = pc.binary_join_element_wise(third, scalar(behind), scalar(b""))
    for start in range(0, len(triples), BATCH):
        ids = [pa.array(np.ascontiguousarray(column)) for column in triples[start : start + BATCH].T]
        cells = [names.take(column) for names, column in zip((first, second, third), ids, strict=True)]
        lines = pc.binary_join_element_wise(*cells, scalar(between))
        _, offsets, content = lines.buffers()
        stream.write(memoryview(content)[: np.frombuffer(offsets, dtype=np.int64)[len(lines)]])


def read(
    sources: Sequence[base.Source],
    builder: GraphBuilder,
    options: base.ReadOptions,
    progress: Progress | None = None,
    *,
    quoted: bool = False,
    header: bool = True,
) -> None:
    """Read files of columns.

    Parameters
    ----------
    sources, builder, options, progress
        As for every format.
    quoted
        Whether this is CSV, whose cells may stand between quotes.
    header
        Whether the first line of a file may be a header, which says which columns are which.
    """
    from loginfer.kg.formats.scan import EMPTY, scan_tsv

    separator = options.separator("," if quoted else "\t")
    separated = "tab" if separator == "\t" else f"`{separator}`"

    def report(bad: npt.NDArray[np.int64]) -> None:
        for line, what, info, _ in bad.tolist():
            if what == EMPTY:
                builder.bad(f"column {info} is empty", line)
                continue
            more, hint = info - len(columns), None
            if more > 0:
                hint = f"leave out what is too much with --columns {columns + '_' * more}: _ skips a column"
            elif info == 1:
                hint = _OTHER_DELIMITER
            builder.bad(f"expected {len(columns)} {separated}-separated columns, found {info}", line, hint=hint)

    for source in sources:
        builder.begin(source.name)
        columns = options.columns or "sro"
        plain = separator == "\t" and not quoted
        chunks = text_chunks(source, progress) if plain else _csv_chunks(source, builder, separator, quoted, progress)
        for number, (data, begin, end) in enumerate(chunks):
            if header and number == 0:
                first = data[begin : min(begin + HEAD, end)].tobytes().split(b"\n", 1)[0]
                cells = first.decode(errors="replace").split("\t")
                if (named := base.columns_of_header(cells)) is not None:
                    columns, begin = options.columns or named, begin + len(first) + 1
                    builder.line += 1
                    builder.notes.append(f"{source.name}: the first line is a header: {', '.join(cells).strip()}")
            order = [*(columns.index(c) for c in "sro"), len(columns)]
            builder.scan(scan_tsv, data, begin, end, report, columns=order)


def _csv_chunks(
    source: base.Source, builder: GraphBuilder, separator: str, quoted: bool, progress: Progress | None
) -> Iterator[tuple[npt.NDArray[np.uint8], int, int]]:
    """Yield rows as lines with tabs between the cells, as many lines as the file has.

    Tabs and line ends within a cell become spaces.
    """
    from loginfer.kg.name_table import PADDING

    lines_in = (
        line.decode(errors="surrogateescape")
        for data, begin, end in text_chunks(source, progress)
        for line in io.BytesIO(data[begin:end].tobytes())
    )
    quotes: Any = {} if quoted else {"quoting": csv.QUOTE_NONE}
    rows = csv.reader(lines_in, delimiter=separator, strict=True, **quotes)
    lines = [""]
    while lines:
        lines, first = [], rows.line_num
        while len(lines) < BATCH:
            before, cells = rows.line_num, [""]
            try:
                cells = next(rows)
            except StopIteration:
                break
            except csv.Error as error:
                hint = _OTHER_DELIMITER if "expected after" in str(error) else None
                builder.bad(f"this is no CSV: {error}", builder.line + before - first, hint=hint)
            lines.append("\t".join(_BREAKS.sub(" ", cell) for cell in cells) + "\n" * (rows.line_num - before))
        text = bytearray("".join(lines).encode(errors="surrogateescape"))
        yield np.frombuffer(text + b"\n" * PADDING, dtype=np.uint8), 0, len(text)


def has_header(path: Path) -> bool:
    """Say whether a TSV file begins with a header."""
    if not path.is_file() or not base.split_compression(path.name)[0].lower().endswith(FORMAT.endings):
        return False
    with base.Source.of(path).open() as (stream, _):
        first = stream.read(HEAD).removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    return base.columns_of_header(first.decode(errors="replace").split("\t")) is not None


def write(graph: KnowledgeGraph, stream: BinaryIO) -> None:
    """Write a graph in the order of its triples, which is that of the names' bytes."""
    for vocabulary in (graph.entities, graph.relations):
        refuse_names(vocabulary, b"\t\n\r\0", "tab-separated columns")
    if len(graph) and base.columns_of_header(graph.names(graph.triples[:1])[0]):
        stream.write(b"subject\trelation\tobject\n")  # so that the first triple is not taken for a header
    write_lines(stream, graph.triples, (graph.entities, graph.relations, graph.entities), b"\t", b"\n")


def write_csv(graph: KnowledgeGraph, stream: BinaryIO) -> None:
    """Write a graph with a header, in the order of its triples."""
    for vocabulary in (graph.entities, graph.relations):
        refuse_names(vocabulary, b"\t\n\r\0", "CSV")
    for start in range(-BATCH, len(graph), BATCH):
        text = io.StringIO(newline="")
        rows = graph.names(graph.triples[start : start + BATCH]) if start >= 0 else [("subject", "relation", "object")]
        csv.writer(text, lineterminator="\n").writerows(rows)
        stream.write(text.getvalue().encode())


def refuse_names(vocabulary: Vocabulary, forbidden: bytes, what: str) -> None:
    """Raise an `OutputError` for a name that text in columns cannot hold: better no file than a wrong one."""
    data, offsets = vocabulary.data, vocabulary.offsets
    starts = offsets[:-1]
    wrong = np.diff(offsets) == 0
    positions = np.flatnonzero(np.isin(data, np.frombuffer(forbidden, dtype=np.uint8)))
    wrong[np.searchsorted(offsets, positions, side="right") - 1] = True
    # A byte order mark at the start of a file is not part of its first name.
    for i in np.flatnonzero(data[starts[starts < len(data)]] == 0xEF).tolist():
        wrong[i] |= vocabulary[i].startswith("\ufeff")
    if wrong.any():
        name = vocabulary[int(np.flatnonzero(wrong)[0])]
        hint = "write N-Triples (.nt) or Parquet (.parquet) instead"
        raise OutputError(f"{what} cannot hold the name {name!r}", hint=hint)


FORMAT = base.Format(
    name="tsv",
    endings=(".tsv", ".txt"),
    description="tab-separated columns: subject, relation, object",
    read=read,
    write=write,
    looks_like=lambda head, line: line.count("\t") >= 2,
    rank=1,
    has_columns=True,
)
base.register_format(FORMAT)
CSV = replace(
    FORMAT,
    name="csv",
    endings=(".csv",),
    description="comma-separated columns, quoted or not; another --delimiter if need be",
    read=partial(read, quoted=True),
    write=write_csv,
    looks_like=lambda head, line: line.count(",") >= 2,
)
base.register_format(CSV)
