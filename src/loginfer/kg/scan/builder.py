"""Where a graph grows while its files are read."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.kg.graph import KnowledgeGraph
from loginfer.kg.scan.names import NameTable, vocabulary
from loginfer.kg.scan.rows import pack_rows
from loginfer.kg.scan.tsv import DONE
from loginfer.kg.triples import TripleKeys
from loginfer.kg.vocabulary import Vocabulary

__all__ = ["GraphBuilder", "NameSpans", "Progress", "plain_names"]

# Called with what is being done, how much of it is done, and how much there is (None: unknown).
Progress = Callable[[str, int, int | None], None]

BLOCK_ROWS = 2**18
BAD_LINES = 256
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class NameSpans:
    """What the names in a table mean: name i is `data[starts[i]:ends[i]]`, unless it has a problem.

    Parameters
    ----------
    data
        uint8, padded.
    starts, ends
        int64[n].
    problems
        What is wrong with a name, by its provisional id.
    """

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    problems: dict[int, str] = field(default_factory=dict)


def plain_names(table: NameTable) -> NameSpans:
    """Take names as they stand; they must be UTF-8."""
    problems = {int(i): f"`{shown(table.name(int(i)))}` is not valid UTF-8" for i in table.not_utf8()}
    return NameSpans(table.data, table.starts, table.ends, problems)


class GraphBuilder:
    """Collects triples of provisional ids and the trouble with those that cannot be read.

    Parameters
    ----------
    skip
        Count bad lines instead of failing at the first.
    meaning
        How names in the tables become names of the graph: as they stand by default.
    """

    def __init__(
        self, *, skip: bool = False, meaning: Callable[[NameTable], NameSpans] = plain_names
    ) -> None:
        self.skip = skip
        self.meaning = meaning
        self.entities = NameTable()
        self.relations = NameTable()
        self.statements = 0
        self.skipped = 0
        self.examples: list[str] = []
        self.files: list[str] = []
        self._first_lines: list[int] = []
        self._line = 0  # lines of all files so far
        self._rows = np.empty((BLOCK_ROWS, 3), dtype=np.int32)
        self._row = 0
        self._blocks: list[npt.NDArray[np.int32]] = []

    # -- what readers call ----------------------------------------------------------------------

    def begin(self, name: str) -> None:
        """Say that what follows comes from this file."""
        self.files.append(name)
        self._first_lines.append(self._line)

    def where(self, line: int | None = None) -> str:
        """Return file and line of a line counted over all files; by default the current file."""
        if line is None:
            return self.files[-1]
        file = bisect.bisect_right(self._first_lines, line) - 1
        return f"{self.files[file]}, line {line - self._first_lines[file] + 1}"

    def bad(self, message: str, line: int | None = None, *, count: int = 1, hint: str | None = None) -> None:
        """Report statements that cannot be read: fail, or count them."""
        if not self.skip:
            raise InputError(
                message,
                where=self.where(line),
                hint=hint or "mend the line, or leave bad lines out: `loginfer kg convert --on-error skip`",
            )
        self.skipped += count
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{self.where(line)}: {message}")

    def add_ids(
        self,
        subjects: npt.NDArray[np.int32],
        relations: npt.NDArray[np.int32],
        objects: npt.NDArray[np.int32],
    ) -> None:
        """Add triples of provisional ids, from `entities.intern` and `relations.intern`."""
        self._blocks.append(np.stack([subjects, relations, objects], axis=1).astype(np.int32, copy=False))
        self.statements += len(subjects)

    def scan(
        self,
        scanner: Callable[..., int],
        data: npt.NDArray[np.uint8],
        begin: int,
        end: int,
        extra: npt.NDArray[np.int64],
        report: Callable[[npt.NDArray[np.int64]], None],
        *,
        counted: bool = True,
    ) -> None:
        """Run a compiled scanner over whole lines.

        Parameters
        ----------
        scanner
            `scan_tsv` or one with the same arguments.
        data, begin, end
            A chunk, see `line_chunks`.
        extra
            The scanner's own argument.
        report
            Called with the rows of `bad` that the scanner filled.
        counted
            Whether the lines are lines of the file, or made from some of its lines.
        """
        bad = np.empty((BAD_LINES, 4), dtype=np.int64)
        e, r = self.entities, self.relations
        state = np.array([begin, self._line, self._row, e.count, r.count, 0], dtype=np.int64)
        while True:
            status = scanner(
                data, end, state, extra, self._rows, bad,
                e.slots, e.hashes, e.offsets, e.lines, e.data,
                r.slots, r.hashes, r.offsets, r.lines, r.data,
            )  # fmt: skip
            place, line, row, e.count, r.count, wrong = map(int, state)
            self.statements += row - self._row
            self._row = row
            if row == len(self._rows):
                self._blocks.append(self._rows)
                self._rows = np.empty((BLOCK_ROWS, 3), dtype=np.int32)
                self._row = 0
            if wrong:
                report(bad[:wrong])
            if status == DONE:
                break
            # One more line must fit; growing doubles, so this happens rarely.
            longest = _line_length(data, place)
            e.grow(2, longest)
            r.grow(1, longest)
            state[2], state[5] = self._row, 0
        if counted:
            self._line = line

    # -- what `read_graph` calls ----------------------------------------------------------------

    def finish(self, type_predicate: str | None = None) -> KnowledgeGraph:
        """Return the graph of all triples, over the names that the files gave."""
        self._blocks.append(self._rows[: self._row])
        entities, entity_ids, e_bad = self._vocabulary(self.entities, (0, 2))
        relations, relation_ids, r_bad = self._vocabulary(self.relations, (1,))
        if e_bad or r_bad:
            self._report_names(entity_ids, relation_ids, e_bad, r_bad)
            entities, entity_ids, _ = self._vocabulary(self.entities, (0, 2), e_bad)
            relations, relation_ids, _ = self._vocabulary(self.relations, (1,), r_bad)
        TripleKeys(len(entities), len(relations))  # refuses graphs that are too large
        keys = np.empty(sum(map(len, self._blocks)), dtype=np.int64)
        count = 0
        for block in self._blocks:
            count += pack_rows(block, entity_ids, relation_ids, len(entities), len(relations), keys[count:])
        self._blocks = []
        return KnowledgeGraph.from_keys(entities, relations, keys[:count], type_predicate=type_predicate)

    def _vocabulary(
        self, table: NameTable, columns: tuple[int, ...], bad: dict[int, str] | None = None
    ) -> tuple[Vocabulary, npt.NDArray[np.int32], dict[int, str]]:
        spans = self.meaning(table)
        keep = None
        if bad is not None or spans.problems:
            keep = np.ones(len(spans.starts), dtype=bool)
            keep[list(spans.problems)] = False
        if bad is not None:  # names that only stand in dropped lines are no names of the graph
            used = np.zeros(len(spans.starts), dtype=bool)
            for block in self._blocks:
                for column in columns:
                    used[block[:, column]] = True
            keep = used if keep is None else keep & used
        return (*vocabulary(spans.data, spans.starts, spans.ends, keep), spans.problems)

    def _report_names(
        self,
        entity_ids: npt.NDArray[np.int32],
        relation_ids: npt.NDArray[np.int32],
        e_bad: dict[int, str],
        r_bad: dict[int, str],
    ) -> None:
        """Fail at the first line with a bad name, or drop the lines with one."""
        found = [(int(self.entities.lines[i]), text) for i, text in e_bad.items()]
        found += [(int(self.relations.lines[i]), text) for i, text in r_bad.items()]
        for line, message in sorted(found):
            self.bad(message, line, count=0)
        for k, block in enumerate(self._blocks):
            fine = (
                (entity_ids[block[:, 0]] >= 0)
                & (relation_ids[block[:, 1]] >= 0)
                & (entity_ids[block[:, 2]] >= 0)
            )
            self.skipped += int(len(block) - fine.sum())
            self.statements -= int(len(block) - fine.sum())
            self._blocks[k] = block[fine]


def shown(text: bytes) -> str:
    """Return bytes as text for a message, cut to a length that fits a line."""
    decoded = text.decode(errors="replace")
    return decoded if len(decoded) <= 60 else decoded[:59] + "…"


def _line_length(data: npt.NDArray[np.uint8], place: int) -> int:
    rest: Any = data[place:]
    stop = 1024
    while stop < len(rest) and not (rest[:stop] == 10).any():
        stop *= 4
    return min(stop, len(rest)) + 16
