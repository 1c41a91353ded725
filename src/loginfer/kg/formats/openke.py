"""OpenKE's files of numbers: `entity2id.txt`, `relation2id.txt`, and `train2id.txt` and its like.

The first line of each is the number of lines that follow. Triples are head, tail, relation: in this order.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.kg.formats.base import PARTS, Format, ReadOptions, Source, register_format
from loginfer.kg.formats.tsv import refuse_names, text_chunks, write_lines
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder
    from loginfer.kg.graph import KnowledgeGraph
    from loginfer.kg.name_table import NameTable


ENTITIES, RELATIONS, TRAIN = "entity2id.txt", "relation2id.txt", "train2id.txt"
NEWLINE = 10
LARGEST = 2**31 - 1
DIGITS = 10  # of LARGEST


def files_with(source: Source) -> list[Source]:
    """Return a file of triples together with the files of names beside it."""
    if source.file_name in (ENTITIES, RELATIONS):
        hint = f"give `{source.path.parent}`, or a file such as {TRAIN}"
        raise InputError(f"`{source.path}` holds names, not triples", hint=hint)
    beside = {path.name.lower(): path for path in source.path.parent.iterdir() if path.is_file()}
    missing = [name for name in (ENTITIES, RELATIONS) if name not in beside]
    if missing:
        hint = "OpenKE's files belong together in one folder"
        raise InputError(f"`{source.path}` needs `{missing[0]}` beside it", hint=hint)
    return [Source.of(beside[ENTITIES]), Source.of(beside[RELATIONS]), source]


def files_in(files: Mapping[str, Source]) -> list[Source] | None:
    """Return the files of names and those of triples, in the order of their parts."""
    if not all(name in files for name in (ENTITIES, RELATIONS, TRAIN)):
        return None
    return [files[ENTITIES], files[RELATIONS], *(files[f"{p}2id.txt"] for p in PARTS if f"{p}2id.txt" in files)]


def read(sources: Sequence[Source], builder: GraphBuilder, options: ReadOptions, progress: Progress | None) -> None:
    """Read files of triples; the files of names must be among the sources."""
    by_name = {source.file_name: source for source in sources}
    for name in (ENTITIES, RELATIONS):
        if name not in by_name:
            raise InputError(f"no `{name}` beside `{sources[0].name}`", hint="OpenKE's files belong together")
    entities = _read_names(by_name[ENTITIES], builder.entities)
    relations = _read_names(by_name[RELATIONS], builder.relations)
    for source in sources:
        if source.file_name not in (ENTITIES, RELATIONS):
            _read_triples(source, builder, entities, relations, progress)


def _read_names(source: Source, table: NameTable) -> npt.NDArray[np.int32]:
    """Return int32[n]: the provisional id of each number."""
    from loginfer.kg.formats.scan import shown

    names: dict[int, bytes] = {}
    count, lines = -1, 0
    for data, begin, end in text_chunks(source, None):
        for number, line in enumerate(io.BytesIO(data[begin:end].tobytes()), start=lines + 1):
            if number == 1:
                count = _count(line, source.name)
                continue
            if not line.strip():
                continue
            parts = line.rsplit(b"\t", 1) if b"\t" in line else line.rsplit(b" ", 1)
            where = f"{source.name}, line {number}"
            if len(parts) != 2 or not parts[0] or not (digits := parts[1].strip()).isdigit():
                raise InputError("expected a name and a number", where=where)
            if len(digits) > DIGITS or int(digits) >= count:
                message = f"number {shown(digits)} is not below {count}, the count in the first line"
                raise InputError(message, where=where)
            if int(digits) in names:
                raise InputError(f"number {int(digits)} is given twice", where=where)
            try:
                parts[0].decode()
            except UnicodeDecodeError as error:
                raise InputError("the name is not valid UTF-8", where=where) from error
            names[int(digits)] = parts[0]
        lines += int(np.count_nonzero(data[begin:end] == NEWLINE))
    if len(names) != (count if count >= 0 else _count(b"", source.name)):
        raise InputError(f"the first line says {count} names, found {len(names)}", where=source.name)
    return table.intern_texts(names[i] for i in range(count))


def _count(line: bytes, name: str) -> int:
    text = line.strip()
    if not text.isdigit() or len(text) > DIGITS:
        raise InputError("expected the number of lines that follow", where=f"{name}, line 1")
    return int(text)


def _read_triples(
    source: Source,
    builder: GraphBuilder,
    entities: npt.NDArray[np.int32],
    relations: npt.NDArray[np.int32],
    progress: Progress | None,
) -> None:
    from loginfer.kg.formats.scan import CHUNK_BYTES

    builder.begin(source.name)
    line, total, expected = 0, 0, -1
    for data, begin, end in text_chunks(source, progress):
        if len(data) > 2 * CHUNK_BYTES:  # `numbers_in_lines` takes many times its size
            raise InputError(f"a line is longer than {CHUNK_BYTES:,} bytes", where=source.name)
        start = begin
        if expected < 0:
            head = data[begin : begin + 64].tobytes().split(b"\n", 1)[0]
            expected = _count(head, source.name)
            start = begin + len(head) + 1
            line = 1
        rows, bad = numbers_in_lines(data[start:end].tobytes())
        heads, tails, kinds = rows.T
        has_names = (heads < len(entities)) & (tails < len(entities)) & (kinds < len(relations))
        for number in bad.tolist():
            builder.bad(f"line {line + number + 1}: expected three numbers: head, tail, relation")
        line += int(np.count_nonzero(data[start:end] == NEWLINE))
        for row in np.flatnonzero(~has_names).tolist():
            h, t, r = rows[row].tolist()
            builder.bad(
                f"triple {total + row + 1}, `{h} {t} {r}`, has a number without a name in "
                f"`{ENTITIES}` or `{RELATIONS}`",
                hint="the order is head, tail, relation",
            )
        builder.add_ids(entities[heads[has_names]], relations[kinds[has_names]], entities[tails[has_names]])
        total += len(rows) + len(bad)
    if total != max(expected, 0):
        builder.bad(f"the first line says {expected} triples, found {total}", count=0)


def numbers_in_lines(text: bytes) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Read lines of three numbers below 2³¹ with spaces or tabs between them; blank lines count as nothing.

    Returns
    -------
    int32[n, 3], the numbers, and int64[m], the other lines, counted from 0.
    """
    data = np.frombuffer(text + b"\n", dtype=np.uint8)
    line_of = np.cumsum(data == NEWLINE) - (data == NEWLINE)
    blank = (data == NEWLINE) | (data == 32) | (data == 9) | (data == 13)
    starts = np.flatnonzero(~blank & np.append(True, blank[:-1]))
    ends = np.flatnonzero(blank[1:] & ~blank[:-1])
    counts = np.bincount(line_of[starts], minlength=line_of[-1] + 1)
    fine = counts == 3
    fine[line_of[~blank & ((data < ord("0")) | (data > ord("9")))]] = False
    fine[line_of[starts[ends - starts >= 18]]] = False  # more digits than a number of 64 bits is sure to hold
    kept = data[fine[line_of]].tobytes()
    rows = np.fromstring(kept, dtype=np.int64, sep=" ").reshape(-1, 3) if kept else np.empty((0, 3), dtype=np.int64)
    small = (rows <= LARGEST).all(axis=1)
    fine[np.flatnonzero(fine)[~small]] = False
    return rows[small].astype(np.int32), np.flatnonzero((counts > 0) & ~fine)


def write_folder(graph: KnowledgeGraph, folder: Path) -> None:
    """Write all triples to `train2id.txt`, with the files of names."""
    for name, vocabulary in ((ENTITIES, graph.entities), (RELATIONS, graph.relations)):
        refuse_names(vocabulary, b"\t\n\r\0", "OpenKE's files")
        lines = "".join(f"{word}\t{i}\n" for i, word in enumerate(vocabulary))
        (folder / name).write_text(f"{len(vocabulary)}\n{lines}", encoding="utf-8", newline="\n")
    digits = [b"%d" % i for i in range(max(len(graph.entities), len(graph.relations)))]
    with (folder / TRAIN).open("wb") as stream:
        stream.write(f"{len(graph)}\n".encode())
        write_lines(stream, graph.triples[:, [0, 2, 1]], (digits, digits, digits), b" ", b"\n")


FORMAT = Format(
    name="openke",
    endings=("2id.txt",),
    description="a folder with entity2id.txt, relation2id.txt, train2id.txt (head tail relation)",
    read=read,
    write_folder=write_folder,
    files_with=files_with,
    files_in=files_in,
    files=f"{ENTITIES}, {RELATIONS} and {TRAIN}",
    rank=0,
)
register_format(FORMAT)
