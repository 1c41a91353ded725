"""Triples of several files over one vocabulary: every line in its order, bad ones noted, not fatal."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.folder.manifest import GIVEN, Role
from loginfer.benchmark.folder.reading import TripleFile
from loginfer.files import reading
from loginfer.kg import Vocabulary
from loginfer.kg.formats.base import ReadOptions, Source, check_text
from loginfer.kg.formats.scan import GraphBuilder
from loginfer.kg.formats.tsv import TSV

# So many bad lines of a file are described; the others are counted.
EXAMPLES = 5

_TRUE = (b"1", b"+1", b"true", b"1.0")
_FALSE = (b"-1", b"0", b"false", b"-1.0", b"0.0")


@dataclass(slots=True)
class BadLines:
    """The lines of a file that cannot be read: how many, and the first few with their number and trouble."""

    count: int
    examples: list[tuple[int | None, str]]


@dataclass(slots=True)
class _Span:
    """The blocks from `first` to `last` are those of a file."""

    name: str
    role: Role
    first: int
    last: int = 0
    lines: int = 0


class Collector(GraphBuilder):
    """Reads files of triples one after the other; `finish_files` gives them over common vocabularies."""

    def __init__(self) -> None:
        super().__init__(skip=True)
        self.bad_lines: dict[str, BadLines] = {}
        self._spans: list[_Span] = []

    # -- reading --------------------------------------------------------------------------------

    def read(self, path: Path, role: Role, *, strict: bool) -> None:
        """Read a file of triples.

        Parameters
        ----------
        path
            The file.
        role
            What it holds.
        strict
            Three columns and nothing else; otherwise further columns are understood as labels, or left
            out where the file's name says already what its triples are.
        """
        source = Source.of(path)
        if not strict and (columns := _columns(source)) > 3:
            self._read_labelled(source, role, columns)
            return
        first_line = self._line
        self._open(path.name, role)
        try:
            TSV.read([source], self, ReadOptions(), None)
        finally:
            self._close(self._line - first_line)

    def begin(self, name: str) -> None:
        """Say that what follows comes from this file."""
        super().begin(Path(name).name)

    def bad(self, message: str, line: int | None = None, *, count: int = 1, hint: str | None = None) -> None:
        """Note a line that cannot be read."""
        file = -1 if line is None else bisect.bisect_right(self._first_lines, line) - 1
        number = None if line is None else line - self._first_lines[file] + 1
        found = self.bad_lines.setdefault(self.files[file], BadLines(0, []))
        found.count += count
        self.skipped += count
        if len(found.examples) < EXAMPLES:
            found.examples.append((number, message))

    def _open(self, name: str, role: Role) -> None:
        self._spans.append(_Span(name, role, len(self._blocks)))

    def _close(self, lines: int) -> None:
        # The rest of the buffer is for the next file, so that no block holds lines of two.
        self._blocks.append(self._rows[: self._row])
        self._rows, self._row = self._rows[self._row :], 0
        self._spans[-1].last, self._spans[-1].lines = len(self._blocks), lines

    def _read_labelled(self, source: Source, role: Role, columns: int) -> None:
        """Read lines of more than three columns; other people's files have some ten thousand of them."""
        with source.open() as (stream, _):
            lines = stream.read().removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if not lines[-1]:
            lines.pop()
        self.begin(source.name)
        told = role.method is not None or columns != 4
        kinds: dict[Role, list[tuple[bytes, ...]]] = {role: []}
        for number, line in enumerate(lines):
            cells = line.rstrip(b"\r").split(b"\t")
            if not line.strip():
                continue
            if len(cells) < 3 or not all(cells[:3]):
                self.bad(f"expected {columns} tab-separated columns, found {len(cells)}", self._line + number)
                continue
            label = b"" if told else b"\t".join(cells[3:]).strip().lower()
            if told or label in _TRUE:
                kinds[role].append(tuple(cells[:3]))
            elif label in _FALSE:
                kinds.setdefault(Role(role.split, GIVEN), []).append(tuple(cells[:3]))
            else:
                shown = label.decode(errors="replace")[:40]
                self.bad(f"expected the label 1 or -1 in column 4, found `{shown}`", self._line + number)
        self._line += len(lines)
        for kind, rows in kinds.items():
            self._open(self.files[-1], kind)
            subjects, relations, objects = zip(*rows, strict=True) if rows else ((), (), ())
            self.add_ids(
                self.entities.intern_texts(subjects),
                self.relations.intern_texts(relations),
                self.entities.intern_texts(objects),
            )
            self._close(len(lines))

    # -- the end --------------------------------------------------------------------------------

    def finish_files(
        self, entities: Sequence[str] = (), relations: Sequence[str] = ()
    ) -> tuple[Names, Names, list[TripleFile]]:
        """Return names and files; no more can be read afterwards.

        Parameters
        ----------
        entities, relations
            Names that the vocabularies must hold in any case.
        """
        e, e_bad = _names(self, 0, entities)
        r, r_bad = _names(self, 1, relations)
        troubles = [(int(self.entities.lines[i]), text) for i, text in e_bad.items()]
        troubles += [(int(self.relations.lines[i]), text) for i, text in r_bad.items()]
        for line, message in sorted(troubles):
            self.bad(message, line, count=0)
        files = []
        for span in self._spans:
            blocks = self._blocks[span.first : span.last]
            rows: Any = np.concatenate(blocks) if blocks else np.empty((0, 3), dtype=np.int32)
            self._blocks[span.first : span.last] = [rows[:0]] * len(blocks)  # let go of the memory
            triples = np.empty_like(rows)
            for column, names in enumerate((e, r, e)):
                np.take(names.ids, rows[:, column], out=triples[:, column])
            if e_bad or r_bad:
                fine = (triples >= 0).all(axis=1)
                if not fine.all():
                    noted = self.bad_lines.setdefault(span.name, BadLines(0, [(None, "not valid UTF-8")]))
                    noted.count += int(len(fine) - fine.sum())
                    triples = triples[fine]
            triples.setflags(write=False)
            files.append(TripleFile(span.name, span.role, triples, span.lines))
        return e, r, files


@dataclass(frozen=True, slots=True)
class Names:
    """A vocabulary, and int32[n]: the id in it of every provisional one, -1 for what is no UTF-8."""

    vocabulary: Vocabulary
    ids: npt.NDArray[np.int32]


def _names(builder: GraphBuilder, column: int, more: Sequence[str]) -> tuple[Names, dict[int, str]]:
    table = builder.relations if column == 1 else builder.entities
    found, ids, bad = builder._vocabulary(table, (1,) if column == 1 else (0, 2))
    whole = found.union(more)
    if whole is not found:
        kept = ids >= 0
        ids[kept] = found.positions_in(whole)[ids[kept]]
    return Names(whole, ids), bad


def _columns(source: Source) -> int:
    """Return how many columns the first line that is not blank has."""
    with reading(source.path), source.open() as (stream, _):
        head = stream.read(2**16)
    check_text(head[:4096], source.name)
    for line in head.split(b"\n"):
        if line.strip():
            return line.count(b"\t") + 1
    return 3
