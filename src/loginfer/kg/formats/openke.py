"""OpenKE's files of numbers: `entity2id.txt`, `relation2id.txt`, and `train2id.txt` and its like.

The first line of each is the number of lines that follow. Triples are head, tail, relation: in this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.kg.formats.base import Format, ReadOptions, Source
from loginfer.kg.formats.tsv import refuse_names, text_chunks
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder, NameTable
    from loginfer.kg.graph import KnowledgeGraph


ENTITIES, RELATIONS = "entity2id.txt", "relation2id.txt"


def with_names(source: Source) -> list[Source]:
    """Return a file of triples together with the files of names beside it."""
    beside = {path.name.lower(): path for path in source.path.parent.iterdir() if path.is_file()}
    missing = [name for name in (ENTITIES, RELATIONS) if name not in beside]
    if missing:
        raise InputError(
            f"`{source.path}` needs `{missing[0]}` beside it", hint="OpenKE's files belong together in one folder"
        )
    return [Source.of(beside[ENTITIES]), Source.of(beside[RELATIONS]), source]


def read(sources: Sequence[Source], builder: GraphBuilder, options: ReadOptions, progress: Progress | None) -> None:
    """Read files of triples; the files of names must be among the sources."""
    by_name = {source.file_name: source for source in sources}
    for wanted in (ENTITIES, RELATIONS):
        if wanted not in by_name:
            raise InputError(f"no `{wanted}` beside `{sources[0].name}`", hint="OpenKE's files belong together")
    entities = _read_names(by_name[ENTITIES], builder.entities)
    relations = _read_names(by_name[RELATIONS], builder.relations)
    for source in sources:
        if source.file_name not in (ENTITIES, RELATIONS):
            _read_triples(source, builder, entities, relations, progress)


def _read_names(source: Source, table: NameTable) -> npt.NDArray[np.int32]:
    """Return int32[n]: the provisional id of each number."""
    with source.open() as (stream, _):
        content = stream.read().removeprefix(b"\xef\xbb\xbf")
    lines = content.replace(b"\r\n", b"\n").split(b"\n")
    count = _count(lines[0], source.name)
    names: list[bytes | None] = [None] * count
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        parts = line.rsplit(b"\t", 1) if b"\t" in line else line.rsplit(b" ", 1)
        where = f"{source.name}, line {number}"
        if len(parts) != 2 or not parts[1].strip().isdigit():
            raise InputError("expected a name and a number", where=where)
        i = int(parts[1])
        if i >= count:
            raise InputError(f"number {i} is not below {count}, the count in the first line", where=where)
        if names[i] is not None:
            raise InputError(f"number {i} is given twice", where=where)
        try:
            parts[0].decode()
        except UnicodeDecodeError as error:
            raise InputError("the name is not valid UTF-8", where=where) from error
        names[i] = parts[0]
    given = [name for name in names if name is not None]
    if len(given) != count:
        raise InputError(f"the first line says {count} names, found {len(given)}", where=source.name)
    return table.intern_texts(given)


def _count(line: bytes, name: str) -> int:
    text = line.strip()
    if not text.isdigit() or len(text) > 10:
        raise InputError("expected the number of lines that follow", where=f"{name}, line 1")
    return int(text)


def _read_triples(
    source: Source,
    builder: GraphBuilder,
    entities: npt.NDArray[np.int32],
    relations: npt.NDArray[np.int32],
    progress: Progress | None,
) -> None:
    from loginfer.kg.formats.scan import scan_numbers

    builder.begin(source.name)
    line, total, promised = 0, 0, -1
    for data, begin, end in text_chunks(source, progress):
        place = begin
        if promised < 0:
            head = data[begin : begin + 64].tobytes().split(b"\n", 1)[0]
            promised = _count(head, source.name)
            place = begin + len(head) + 1
            line = 1
        lines = int(np.count_nonzero(data[:end] == 10)) + 1
        rows = np.empty((lines, 3), dtype=np.int32)
        bad = np.empty(lines, dtype=np.int64)
        count, wrong, line = scan_numbers(data, place, end, line, rows, bad)
        # head, tail, relation
        heads, tails, kinds = rows[:count].T
        known = (heads < len(entities)) & (tails < len(entities)) & (kinds < len(relations))
        for number in bad[:wrong].tolist():
            builder.bad(f"line {number + 1}: expected three numbers: head, tail, relation")
        for row in np.flatnonzero(~known).tolist():
            h, t, r = rows[row].tolist()
            builder.bad(
                f"triple {total + row + 1}, `{h} {t} {r}`, has a number without a name in "
                f"`{ENTITIES}` or `{RELATIONS}`",
                hint="the order is head, tail, relation",
            )
        builder.add_ids(entities[heads[known]], relations[kinds[known]], entities[tails[known]])
        total += count + wrong
    if total != max(promised, 0):
        builder.bad(f"the first line says {promised} triples, found {total}", count=0)


def write_folder(graph: KnowledgeGraph, folder: Path) -> None:
    """Write all triples to `train2id.txt`, with the files of names."""
    from loginfer.kg.formats.scan import joined
    from loginfer.kg.formats.tsv import write_lines

    for name, vocabulary in ((ENTITIES, graph.entities), (RELATIONS, graph.relations)):
        refuse_names(vocabulary, b"\t\n\r\0", "OpenKE's files")
        lines = "".join(f"{word}\t{i}\n" for i, word in enumerate(vocabulary))
        (folder / name).write_text(f"{len(vocabulary)}\n{lines}", encoding="utf-8", newline="\n")
    digits = joined([b"%d" % i for i in range(max(len(graph.entities), len(graph.relations)))])
    with (folder / "train2id.txt").open("wb") as stream:
        stream.write(f"{len(graph)}\n".encode())
        write_lines(stream, graph.triples[:, [0, 2, 1]], (digits, digits, digits), b" ", b"\n")


OPENKE = Format(
    name="openke",
    endings=("2id.txt",),
    description="a folder with entity2id.txt, relation2id.txt, train2id.txt (head tail relation)",
    read=read,
    write_folder=write_folder,
)
