"""Three tab-separated columns: subject, relation, object, one triple a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, OutputError
from loginfer.kg.formats.interface import Format, Progress, ReadOptions
from loginfer.kg.formats.lines import text_chunks, write_lines
from loginfer.kg.formats.source import Source
from loginfer.kg.vocabulary import Vocabulary

if TYPE_CHECKING:
    from loginfer.kg.graph import KnowledgeGraph
    from loginfer.kg.scan.builder import GraphBuilder

__all__ = ["TSV", "refuse_names"]


def read(
    sources: Sequence[Source], builder: GraphBuilder, options: ReadOptions, progress: Progress | None
) -> None:
    """Read files of tab-separated columns, in the order of `options.columns`."""
    from loginfer.kg.scan.tsv import EMPTY, scan_tsv

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
            f"{what} cannot hold the name {name!r}",
            hint="write N-Triples (.nt) or Parquet (.parquet) instead",
        )


TSV = Format(
    name="tsv",
    endings=(".tsv", ".txt"),
    description="three tab-separated columns: subject, relation, object",
    read=read,
    write=write,
)
