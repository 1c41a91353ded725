"""Three tab-separated columns: subject, relation, object, one triple a line.

Also here is what other formats of lines share: reading text in chunks, writing lines of names, and refusing
names that columns cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, OutputError
from loginfer.kg.formats.base import Format, ReadOptions, Source, check_text, register_format
from loginfer.kg.graph import Triples
from loginfer.kg.vocabulary import Vocabulary
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder
    from loginfer.kg.graph import KnowledgeGraph


BATCH = 2**14  # triples put together at a time; more would be no faster, and cost memory
HEAD = 4096  # first bytes, by which text is told from binary files


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


def read(sources: Sequence[Source], builder: GraphBuilder, options: ReadOptions, progress: Progress | None) -> None:
    """Read files of tab-separated columns, in the order of `options.columns`."""
    from loginfer.kg.formats.scan import EMPTY, scan_tsv

    if sorted(options.columns) != ["o", "r", "s"]:
        raise InputError(
            f"`{options.columns}` is no order of columns", hint="give the letters s, r, o in the file's order"
        )
    columns = [options.columns.index(c) for c in "sro"]

    def report(bad: npt.NDArray[np.int64]) -> None:
        for line, what, info, _ in bad.tolist():
            if what == EMPTY:
                builder.bad(f"column {info} is empty", line)
            else:
                builder.bad(f"expected 3 tab-separated columns, found {info}", line)

    for source in sources:
        builder.begin(source.name)
        for data, begin, end in text_chunks(source, progress):
            builder.scan(scan_tsv, data, begin, end, report, columns=columns)


def write(graph: KnowledgeGraph, stream: BinaryIO) -> None:
    """Write a graph in the order of its triples, which is that of the names' bytes."""
    for vocabulary in (graph.entities, graph.relations):
        refuse_names(vocabulary, b"\t\n\r\0", "tab-separated columns")
    write_lines(stream, graph.triples, (graph.entities, graph.relations, graph.entities), b"\t", b"\n")


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
        raise OutputError(
            f"{what} cannot hold the name {name!r}", hint="write N-Triples (.nt) or Parquet (.parquet) instead"
        )


FORMAT = register_format(
    Format(
        name="tsv",
        endings=(".tsv", ".txt"),
        description="three tab-separated columns: subject, relation, object",
        read=read,
        write=write,
        looks_like=lambda head, line: line.count("\t") == 2,
        rank=1,
    )
)
