"""TSV.

What formats with one triple a line have in common: reading chunks, writing joined names.

Three tab-separated columns: subject, relation, object, one triple a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, OutputError
from loginfer.kg.formats.base import Format, ReadOptions, Source, check_text
from loginfer.kg.graph import Triples
from loginfer.kg.vocabulary import Vocabulary
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder
    from loginfer.kg.graph import KnowledgeGraph


BATCH = 2**17  # triples put together at a time
HEAD = 4096  # bytes that tell text from other things


def text_chunks(source: Source, progress: Progress | None) -> Iterator[tuple[npt.NDArray[np.uint8], int, int]]:
    """Yield a text file as chunks of whole lines, see `line_chunks`."""
    from loginfer.kg.formats.scan import line_chunks

    size = source.size() if progress else 0
    done = 0
    with source.open() as (stream, raw):
        first = True
        for data, begin, end in line_chunks(stream, source.name):
            if first:
                check_text(data[: min(end, HEAD)].tobytes(), source.name)
                first = False
            yield data, begin, end
            if progress:
                done = raw.tell() if raw.seekable() else done + end - begin
                progress(f"reading {source.name}", done, size or None)


def write_lines(
    stream: BinaryIO,
    triples: Triples,
    columns: tuple[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]], ...],
    between: bytes,
    behind: bytes,
) -> None:
    """Write one line a triple.

    Parameters
    ----------
    stream
        Where to.
    triples
        int32[n, 3].
    columns
        For subject, relation, object: the bytes of all names and the offsets between them.
    between, behind
        One byte between the columns, and what ends a line.
    """
    from loginfer.kg.formats.scan import join_lines

    ending = np.frombuffer(bytearray(behind), dtype=np.uint8)
    arrays = [array for data, offsets in columns for array in (_writable(data), _writable(offsets))]
    s, s_at, r, r_at, o, o_at = arrays
    for start in range(0, len(triples), BATCH):
        part = np.array(triples[start : start + BATCH], order="C")
        size = len(part) * (2 + len(behind))
        for column, (_, offsets) in enumerate(columns):
            size += int((offsets[part[:, column] + 1] - offsets[part[:, column]]).sum())
        out = np.empty(size, dtype=np.uint8)
        join_lines(part, s, s_at, r, r_at, o, o_at, between[0], ending, out)
        stream.write(out.data)


def _writable(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    # Kernels are compiled once, for writable arrays; vocabularies are read-only.
    return array if array.flags.writeable else array.copy()


def read(sources: Sequence[Source], builder: GraphBuilder, options: ReadOptions, progress: Progress | None) -> None:
    """Read files of tab-separated columns, in the order of `options.columns`."""
    from loginfer.kg.formats.scan import EMPTY, scan_tsv

    if sorted(options.columns) != ["o", "r", "s"]:
        raise InputError(
            f"`{options.columns}` is no order of columns", hint="give the letters s, r, o in the file's order"
        )
    columns = np.array([options.columns.index(c) for c in "sro"], dtype=np.int64)

    def report(bad: npt.NDArray[np.int64]) -> None:
        for line, what, info, _ in bad.tolist():
            if what == EMPTY:
                builder.bad(f"column {info} is empty", line)
            else:
                builder.bad(f"expected 3 tab-separated columns, found {info}", line)

    for source in sources:
        builder.begin(source.name)
        for data, begin, end in text_chunks(source, progress):
            builder.scan(scan_tsv, data, begin, end, columns, report)


def write(graph: KnowledgeGraph, stream: BinaryIO) -> None:
    """Write a graph in the order of its triples, which is that of the names' bytes."""
    for vocabulary in (graph.entities, graph.relations):
        refuse_names(vocabulary, b"\t\n\r\0", "tab-separated columns")
    names = ((graph.entities.data, graph.entities.offsets), (graph.relations.data, graph.relations.offsets))
    write_lines(stream, graph.triples, (names[0], names[1], names[0]), b"\t", b"\n")


def refuse_names(vocabulary: Vocabulary, forbidden: bytes, what: str) -> None:
    """Raise an `OutputError` for a name that text in columns cannot hold: better none than a wrong file."""
    data, offsets = vocabulary.data, vocabulary.offsets
    starts = offsets[:-1]
    wrong = np.diff(offsets) == 0
    places = np.flatnonzero(np.isin(data, np.frombuffer(forbidden, dtype=np.uint8)))
    wrong[np.searchsorted(offsets, places, side="right") - 1] = True
    # A byte order mark at the start of a file is not part of its first name.
    for i in np.flatnonzero(data[starts[starts < len(data)]] == 0xEF).tolist():
        wrong[i] |= vocabulary[i].startswith("\ufeff")
    if wrong.any():
        name = vocabulary[int(np.flatnonzero(wrong)[0])]
        raise OutputError(
            f"{what} cannot hold the name {name!r}", hint="write N-Triples (.nt) or Parquet (.parquet) instead"
        )


TSV = Format(
    name="tsv",
    endings=(".tsv", ".txt"),
    description="three tab-separated columns: subject, relation, object",
    read=read,
    write=write,
)
