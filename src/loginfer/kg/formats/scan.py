"""How the bytes of graph files become a graph: names get ids while they are read, in one compiled pass.

A file is cut into chunks of whole lines (`line_chunks`). A compiled scanner goes over a chunk and looks each
name up in a growing `NameTable`, which gives it a provisional id. A `GraphBuilder` collects the rows of
provisional ids and the trouble with lines that cannot be read. In the end the distinct names are sorted, and
provisional ids become those of the vocabulary.

The N-Triples scanner reads lines of the usual shape: three terms, spaces or tabs between them, a full stop. It
keeps terms as they are, brackets included, and reports every other line for a full parser to read. A term of that
shape need not be valid: `term_kinds` says which distinct terms certainly are, and the full parser checks the others.

This module loads Numba: import it when a file is read.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.kernels import inlined, kernel
from loginfer.kg.graph import KnowledgeGraph, TripleKeys
from loginfer.kg.name_table import (
    KEY,
    PADDING,
    NameTable,
    add,
    addresses,
    eight_times,
    find,
    find_and_hash,
    find_two,
    hash_bytes,
    sorted_names,
)
from loginfer.kg.vocabulary import Vocabulary

_TABS, _NEWLINES, _RETURNS, _GREATERS, _QUOTES = map(eight_times, (b"\t", b"\n", b"\r", b">", b'"'))

# -- lines of three columns ---------------------------------------------------------------------

# Why a scanner stopped: at the end, or because a buffer must be emptied or enlarged first.
DONE, FULL = 0, 1
# What is wrong with a line: it has `info` columns, or its column `info` is empty.
COLUMNS, EMPTY = 0, 1
# The numbers that a scanner keeps between calls: its position, lines before it, and how much is filled.
POSITION, LINE, ROW, ENTITIES, RELATIONS, WRONG = range(6)

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32


@kernel
def scan_tsv(
    data: Any, end: Any, state: Any, columns: Any, rows: Any, bad: Any, entities: Any, relations: Any, key: Any
) -> Any:
    """Scan whole lines of tab-separated columns up to `end`, where `data` holds a line end.

    state
        int64[6], see `POSITION` and those after it; kept between calls.
    columns
        int64[4]: the columns of subject, relation, object, and how many columns there are.
    rows
        int32[n, 3], filled with provisional ids.
    bad
        int64[m, 4], filled with line, what is wrong, info, position of the line.
    entities, relations
        `NameTable.arrays`.
    key
        The secrets of their hashes.
    """
    text, e_at, r_at = data.ctypes.data, addresses(entities), addresses(relations)
    seed, factor = key[0], key[1]
    e_offsets, r_offsets = entities[2], relations[2]
    e_names, r_names = len(entities[1]), len(relations[1])
    e_bytes, r_bytes = len(entities[4]) - 8, len(relations[4]) - 8
    s, r, o, width = columns
    starts = np.empty(width, dtype=np.int64)
    ends = np.empty(width, dtype=np.int64)
    hashes = np.empty(width, dtype=np.uint64)
    position, line, row, entity_count, relation_count, wrong = state
    status = DONE
    while position < end:
        column = 0
        start = position
        while True:
            stop, value = find_and_hash(text + start, _TABS, _NEWLINES, seed, factor)
            stop -= text
            if column < width:
                starts[column] = start
                ends[column] = stop
                hashes[column] = value
            column += 1
            if data[stop] == NEWLINE:
                break
            start = stop + 1
        if (
            row == len(rows)
            or wrong == len(bad)
            or entity_count + 2 > e_names
            or relation_count + 1 > r_names
            or e_offsets[entity_count] + stop - position > e_bytes
            or r_offsets[relation_count] + stop - position > r_bytes
        ):
            status = FULL
            break
        if column <= width and stop > starts[column - 1] and data[stop - 1] == RETURN:
            ends[column - 1] = stop - 1
            hashes[column - 1] = hash_bytes(text + starts[column - 1], text + stop - 1, seed, factor)
        if column != width:
            blank = column == 1
            for k in range(starts[0], ends[0]):
                blank &= data[k] == SPACE
            if not blank:
                bad[wrong, 0], bad[wrong, 1], bad[wrong, 2], bad[wrong, 3] = line, COLUMNS, column, position
                wrong += 1
        elif ends[s] > starts[s] and ends[r] > starts[r] and ends[o] > starts[o]:
            for column in range(3):
                k = columns[column]
                begin, finish, value = starts[k], ends[k], hashes[k]
                if column == 1:
                    i = find(text + begin, finish - begin, value, *r_at)
                    if i < 0:
                        i = add(data, begin, finish, value, i, relations, relation_count, line)
                        relation_count += 1
                else:
                    i = find(text + begin, finish - begin, value, *e_at)
                    if i < 0:
                        i = add(data, begin, finish, value, i, entities, entity_count, line)
                        entity_count += 1
                rows[row, column] = i
            row += 1
        else:
            empty = 1 + (s if ends[s] == starts[s] else r if ends[r] == starts[r] else o)
            bad[wrong, 0], bad[wrong, 1], bad[wrong, 2], bad[wrong, 3] = line, EMPTY, empty, position
            wrong += 1
        line += 1
        position = stop + 1
    state[0], state[1], state[2] = position, line, row
    state[3], state[4], state[5] = entity_count, relation_count, wrong
    return status


# -- plain lines of N-Triples -------------------------------------------------------------------

QUOTE, HASH, FULL_STOP, COLON, LESS, GREATER = 34, 35, 46, 58, 60, 62
AT, BACKSLASH, CARET, UNDERSCORE, MINUS, SLASH, QUESTION = 64, 92, 94, 95, 45, 47, 63

# What a byte may be: a letter; a letter or digit; in a scheme; in a host; anywhere in an IRI; a lower-case
# letter; never in a blank node's label.
LETTER, ALNUM, SCHEME, HOST, ANYWHERE, LOWER, OUTSIDE = 1, 2, 4, 8, 16, 32, 64


def _byte_classes() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    classes = np.zeros(256, dtype=np.uint8)
    letters = b"abcdefghijklmnopqrstuvwxyz"
    digits = b"0123456789"
    for kind, members in (
        (LOWER, letters),
        (OUTSIDE, b' \t\n\r<>"#\\'),
        (LETTER, letters + letters.upper()),
        (ALNUM, letters + letters.upper() + digits),
        (SCHEME, letters + letters.upper() + digits + b"+-."),
        (HOST, letters + letters.upper() + digits + b"-._~"),
        (ANYWHERE, letters + letters.upper() + digits + b"-._~!$&'()*+,;=:@/?"),
    ):
        classes[list(members)] |= kind
    return classes


CLASSES = _byte_classes()

# What a term turns out to be: the name is between the first and the last byte; the whole term is the
# name; or the full parser must decide.
BRACKETED, AS_IT_STANDS, ASK = 0, 1, 2


@inlined
def skip_blanks(data: Any, position: Any) -> Any:
    """Return the next position without a space or tab."""
    while data[position] == SPACE or data[position] == TAB:
        position += 1
    return position


@kernel
def term_end(data: Any, position: Any, text: Any) -> Any:
    """Return where the term that starts at `position` ends, or -1 if it is not of a plain shape."""
    first = data[position]
    if first == LESS:
        if data[position + 1] == LESS:
            return np.int64(-1)
        stop = find_two(text + position, _GREATERS, _NEWLINES) - text
        return stop + 1 if data[stop] == GREATER else np.int64(-1)
    if first == UNDERSCORE:
        if data[position + 1] != COLON:
            return np.int64(-1)
        position += 2
        while not CLASSES[data[position]] & OUTSIDE:
            position += 1
        return position if data[position] == SPACE or data[position] == TAB else np.int64(-1)
    if first != QUOTE:
        return np.int64(-1)
    position += 1
    while True:
        # A quote behind an odd number of backslashes does not end the literal.
        stop = find_two(text + position, _QUOTES, _NEWLINES) - text
        if data[stop] == NEWLINE:
            return np.int64(-1)
        escaped = False
        k = stop - 1
        while k >= position and data[k] == BACKSLASH:
            escaped = not escaped
            k -= 1
        position = stop + 1
        if not escaped:
            break
    if data[position] == AT:
        position += 1
        while CLASSES[data[position]] & ALNUM or data[position] == MINUS:
            position += 1
        return position if data[position] == SPACE or data[position] == TAB else np.int64(-1)
    if data[position] == CARET and data[position + 1] == CARET and data[position + 2] == LESS:
        stop = find_two(text + position, _GREATERS, _NEWLINES) - text
        return stop + 1 if data[stop] == GREATER else np.int64(-1)
    return position


@kernel
def scan_ntriples(
    data: Any, end: Any, state: Any, columns: Any, rows: Any, bad: Any, entities: Any, relations: Any, key: Any
) -> Any:
    """Scan whole lines up to `end`, where `data` holds a line end; see `scan_tsv` for the arguments.

    Lines of another shape than the plain one go to `bad` as line, 0, end of the line, position of the line.
    """
    text, e_at, r_at = data.ctypes.data, addresses(entities), addresses(relations)
    seed, factor = key[0], key[1]
    e_offsets, r_offsets = entities[2], relations[2]
    e_names, r_names = len(entities[1]), len(relations[1])
    e_bytes, r_bytes = len(entities[4]) - 8, len(relations[4]) - 8
    starts = np.empty(3, dtype=np.int64)
    ends = np.empty(3, dtype=np.int64)
    position, line, row, entity_count, relation_count, wrong = state
    status = DONE
    while position < end:
        cursor = position
        terms = 0
        plain = True
        while terms < 3:
            before = cursor
            cursor = skip_blanks(data, cursor)
            if terms == 0 and data[cursor] == NEWLINE:
                break
            if terms == 0 and data[cursor] == HASH:
                cursor = find_two(text + cursor, _RETURNS, _NEWLINES) - text
                # A comment ends at a line end of the old kind too, and something may follow it.
                plain = data[cursor] == NEWLINE or data[cursor + 1] == NEWLINE
                break
            if (
                (terms and cursor == before)
                or (terms == 0 and data[cursor] == QUOTE)
                or (terms == 1 and data[cursor] != LESS)
            ):
                plain = False
                break
            stop = term_end(data, cursor, text)
            if stop < 0:
                plain = False
                break
            starts[terms] = cursor
            ends[terms] = stop
            terms += 1
            cursor = stop
        if terms == 3:
            cursor = skip_blanks(data, cursor)
            plain = data[cursor] == FULL_STOP
            if plain:
                cursor = skip_blanks(data, cursor + 1)
                if data[cursor] == RETURN:
                    cursor += 1
                plain = data[cursor] == NEWLINE
        cursor = find_two(text + cursor, _NEWLINES, _NEWLINES) - text
        if (
            row == len(rows)
            or wrong == len(bad)
            or entity_count + 2 > e_names
            or relation_count + 1 > r_names
            or e_offsets[entity_count] + cursor - position > e_bytes
            or r_offsets[relation_count] + cursor - position > r_bytes
        ):
            status = FULL
            break
        if not plain:
            bad[wrong, 0], bad[wrong, 1], bad[wrong, 2], bad[wrong, 3] = line, 0, cursor, position
            wrong += 1
        elif terms == 3:
            for column in range(3):
                start, stop = starts[column], ends[column]
                value = hash_bytes(text + start, text + stop, seed, factor)
                if column == 1:
                    i = find(text + start, stop - start, value, *r_at)
                    if i < 0:
                        i = add(data, start, stop, value, i, relations, relation_count, line)
                        relation_count += 1
                else:
                    i = find(text + start, stop - start, value, *e_at)
                    if i < 0:
                        i = add(data, start, stop, value, i, entities, entity_count, line)
                        entity_count += 1
                rows[row, column] = i
            row += 1
        line += 1
        position = cursor + 1
    state[0], state[1], state[2] = position, line, row
    state[3], state[4], state[5] = entity_count, relation_count, wrong
    return status


@kernel
def is_plain_iri(data: Any, start: Any, end: Any) -> Any:
    """Say whether these bytes are beyond doubt an absolute IRI: no escapes, no port, plain characters."""
    if start == end or not CLASSES[data[start]] & LETTER:
        return False
    k = start
    while k < end and CLASSES[data[k]] & SCHEME:
        k += 1
    if k == end or data[k] != COLON:
        return False
    k += 1
    if k + 1 < end and data[k] == SLASH and data[k + 1] == SLASH:
        k += 2
        while k < end and CLASSES[data[k]] & HOST:
            k += 1
        if k < end and data[k] != SLASH and data[k] != QUESTION and data[k] != HASH:
            return False
    fragment = False
    while k < end:
        if data[k] == HASH:
            if fragment:
                return False
            fragment = True
        elif not CLASSES[data[k]] & ANYWHERE:
            return False
        k += 1
    return True


@kernel
def is_plain_literal(data: Any, start: Any, end: Any) -> Any:
    """Say whether this is beyond doubt a literal in its canonical form: printable ASCII, no escapes.

    A language is two or three lower-case letters; a datatype is a plain IRI.
    """
    k = start + 1
    while k < end and data[k] != QUOTE:
        if data[k] < SPACE or data[k] >= 127 or data[k] == BACKSLASH:
            return False
        k += 1
    if k >= end:
        return False
    k += 1
    if k == end:
        return True
    if data[k] == AT:
        if end - k < 3 or end - k > 4:
            return False
        lower = True
        for i in range(k + 1, end):
            lower &= CLASSES[data[i]] & LOWER != 0
        return lower
    if end - k < 5 or data[k] != CARET or data[k + 1] != CARET or data[k + 2] != LESS or data[end - 1] != GREATER:
        return False
    # xsd:string, rdf:langString and rdf:dirLangString have forms of their own; all end in "tring".
    if data[end - 2] == 103 and data[end - 3] == 110 and data[end - 4] == 105:
        return False
    return is_plain_iri(data, k + 3, end - 1)


@kernel
def is_plain_blank(data: Any, start: Any, end: Any) -> Any:
    """Say whether this is `_:` and a label of ASCII letters, digits and underscores."""
    if end - start < 3 or data[start] != UNDERSCORE or data[start + 1] != COLON:
        return False
    plain = True
    for k in range(start + 2, end):
        plain &= CLASSES[data[k]] & ALNUM != 0 or data[k] == UNDERSCORE
    return plain


@kernel
def term_kinds(data: Any, offsets: Any, bracketed: Any, kinds: Any) -> Any:
    """Fill `kinds` with what the terms data[offsets[i]:offsets[i + 1]] turn out to be.

    They are terms as N-Triples writes them, with IRIs in angle brackets, or, if `bracketed` is false, names of a
    graph: then BRACKETED means that the name is written in brackets.
    """
    for i in range(len(kinds)):
        start, end = offsets[i], offsets[i + 1]
        kinds[i] = ASK
        if end - start < 2:
            continue
        if data[start] == QUOTE:
            if is_plain_literal(data, start, end):
                kinds[i] = AS_IT_STANDS
        elif is_plain_blank(data, start, end):
            kinds[i] = AS_IT_STANDS
        elif bracketed:
            if data[start] == LESS and data[end - 1] == GREATER and is_plain_iri(data, start + 1, end - 1):
                kinds[i] = BRACKETED
        elif is_plain_iri(data, start, end):
            kinds[i] = BRACKETED


# -- a graph that grows -------------------------------------------------------------------------

BLOCK_ROWS = 2**18
BAD_LINES = 256
EXAMPLES = 5

# Takes the names in a table; returns those of the graph (an Arrow array), and what is wrong with some of them, by id.
Meaning: TypeAlias = Callable[[NameTable], tuple[Any, dict[int, str]]]


def plain_names(table: NameTable) -> tuple[Any, dict[int, str]]:
    """Take names as they are; they must be UTF-8."""
    return table.names, {i: f"`{shown(table.name(i))}` is not valid UTF-8" for i in table.not_utf8()}


class GraphBuilder:
    """Collects triples of provisional ids and the trouble with those that cannot be read.

    Parameters
    ----------
    skip
        Count bad lines instead of failing at the first.
    meaning
        How names in the tables become names of the graph; by default they are the same.
    """

    def __init__(self, *, skip: bool = False, meaning: Meaning = plain_names) -> None:
        self.skip = skip
        self.meaning = meaning
        self.entities = NameTable()
        self.relations = NameTable()
        self.statements = 0
        self.skipped = 0
        self.examples: list[str] = []
        self.files: list[str] = []
        self.notes: list[str] = []
        self.quads = 0  # statements with the name of a graph
        self.line = 0  # lines of all files so far
        self._first_lines: list[int] = []
        self._rows = np.empty((BLOCK_ROWS, 3), dtype=np.int32)
        self._row = 0
        self._blocks: list[npt.NDArray[np.int32]] = []

    # -- what readers call ----------------------------------------------------------------------

    def begin(self, name: str) -> None:
        """Say that what follows comes from this file."""
        self.files.append(name)
        self._first_lines.append(self.line)

    def where(self, line: int | None = None) -> str:
        """Return file and line of a line counted over all files; by default the current file."""
        if line is None:
            return self.files[-1]
        file = bisect.bisect_right(self._first_lines, line) - 1
        return f"{self.files[file]}, line {line - self._first_lines[file] + 1}"

    def bad(self, message: str, line: int | None = None, *, count: int = 1, hint: str | None = None) -> None:
        """Report statements that cannot be read: fail, or count them."""
        if not self.skip:
            hint = hint or "mend the line, or leave bad lines out with --on-error skip"
            raise InputError(message, where=self.where(line), hint=hint)
        self.skipped += count
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{self.where(line)}: {message}")

    def add_ids(
        self, subjects: npt.NDArray[np.int32], relations: npt.NDArray[np.int32], objects: npt.NDArray[np.int32]
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
        report: Callable[[npt.NDArray[np.int64]], None],
        *,
        columns: Sequence[int] = (0, 1, 2, 3),
        counted: bool = True,
    ) -> None:
        """Run a compiled scanner over whole lines.

        Parameters
        ----------
        scanner
            `scan_tsv` or `scan_ntriples`.
        data, begin, end
            A chunk, see `line_chunks`.
        report
            Called with the rows of `bad` that the scanner filled.
        columns
            The columns of subject, relation and object, and how many columns there are.
        counted
            Whether the lines are those of the file, not made from some of them.
        """
        bad = np.empty((BAD_LINES, 4), dtype=np.int64)
        order = np.array(columns, dtype=np.int64)
        e, r = self.entities, self.relations
        state = np.array([begin, self.line, self._row, e.count, r.count, 0], dtype=np.int64)
        while True:
            status = scanner(data, end, state, order, self._rows, bad, e.arrays, r.arrays, KEY)
            position, line, row, e.count, r.count, wrong = map(int, state)
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
            longest = _line_length(data, position)
            e.grow(2, longest)
            r.grow(1, longest)
            state[ROW], state[WRONG] = self._row, 0
        if counted:
            self.line = line

    # -- what `read_graph` calls ----------------------------------------------------------------

    def finish(self, type_predicate: str | None = None) -> KnowledgeGraph:
        """Return the graph of all triples, over the names that the files gave."""
        return KnowledgeGraph.from_keys(*self.finish_keys(), type_predicate=type_predicate)

    def finish_keys(self) -> tuple[Vocabulary, Vocabulary, npt.NDArray[np.int64]]:
        """Return the names that the files gave, and int64[n], all triples in the files' order as keys."""
        self._blocks.append(self._rows[: self._row])
        entities, entity_ids, e_bad = self._vocabulary(self.entities, (0, 2))
        relations, relation_ids, r_bad = self._vocabulary(self.relations, (1,))
        if e_bad or r_bad:
            self._report_names(entity_ids, relation_ids, e_bad, r_bad)
            entities, entity_ids, _ = self._vocabulary(self.entities, (0, 2), e_bad)
            relations, relation_ids, _ = self._vocabulary(self.relations, (1,), r_bad)
        packing = TripleKeys(len(entities), len(relations))  # refuses graphs that are too large
        keys = np.empty(sum(map(len, self._blocks)), dtype=np.int64)
        done = 0
        for block in self._blocks:
            for column, ids in enumerate((entity_ids, relation_ids, entity_ids)):
                block[:, column] = ids[block[:, column]]
            keys[done : done + len(block)] = packing.pack(block)
            done += len(block)
        self._blocks = []
        return entities, relations, keys

    def _vocabulary(
        self, table: NameTable, columns: tuple[int, ...], bad: dict[int, str] | None = None
    ) -> tuple[Vocabulary, npt.NDArray[np.int32], dict[int, str]]:
        names, problems = self.meaning(table)
        keep = None
        if bad is not None:  # names that occur only in dropped lines are not names of the graph
            keep = np.zeros(table.count, dtype=bool)
            for block in self._blocks:
                for column in columns:
                    keep[block[:, column]] = True
        elif problems:
            keep = np.ones(table.count, dtype=bool)
        if keep is not None:
            keep[list(problems)] = False
        return (*sorted_names(names, keep), problems)

    def _report_names(
        self,
        entity_ids: npt.NDArray[np.int32],
        relation_ids: npt.NDArray[np.int32],
        e_bad: dict[int, str],
        r_bad: dict[int, str],
    ) -> None:
        """Fail at the first line with a bad name, or drop the lines with one."""
        problems = [(int(self.entities.lines[i]), text) for i, text in e_bad.items()]
        problems += [(int(self.relations.lines[i]), text) for i, text in r_bad.items()]
        for line, message in sorted(problems):
            self.bad(message, line, count=0)
        for k, block in enumerate(self._blocks):
            fine = (entity_ids[block[:, 0]] >= 0) & (relation_ids[block[:, 1]] >= 0) & (entity_ids[block[:, 2]] >= 0)
            dropped = int(len(block) - fine.sum())
            self.skipped += dropped
            self.statements -= dropped
            self._blocks[k] = block[fine]


def shown(text: bytes) -> str:
    """Return bytes as text for a message, cut to a length that fits a line."""
    decoded = text.decode(errors="replace")
    return decoded if len(decoded) <= 60 else decoded[:59] + "…"


def _line_length(data: npt.NDArray[np.uint8], position: int) -> int:
    rest: Any = data[position:]
    stop = 1024
    while stop < len(rest) and not (rest[:stop] == 10).any():
        stop *= 4
    return min(stop, len(rest)) + 16


CHUNK_BYTES = 2**21
LONGEST_LINE = 2**28


def line_chunks(stream: BinaryIO, where: str) -> Iterator[tuple[npt.NDArray[np.uint8], int, int]]:
    """Yield buffers with the positions where whole lines begin and end in them.

    A line end follows the last line even where the stream has none, and a UTF-8 byte order mark at the
    beginning is left out. A buffer is used again for the next chunk.
    """
    size = CHUNK_BYTES
    buffer = bytearray(size + PADDING)
    filled, first = 0, True
    while True:
        with memoryview(buffer) as view:
            read = stream.readinto(view[filled:size])  # type: ignore[attr-defined]
        filled += read
        if read and filled < size:
            continue
        end = filled if not read else buffer.rfind(b"\n", 0, filled) + 1
        if not read:
            buffer[filled : filled + PADDING] = b"\n" * PADDING
        elif end == 0:
            if size >= LONGEST_LINE:
                hint = "is this a text file?"
                raise InputError(f"a line is longer than {LONGEST_LINE // 2**20} MB", where=where, hint=hint)
            buffer = buffer[:filled] + bytearray(size + PADDING)
            size *= 2
            continue
        begin = 3 if first and buffer.startswith(b"\xef\xbb\xbf") else 0
        first = False
        yield np.frombuffer(buffer, dtype=np.uint8), begin, end
        if not read:
            return
        rest = bytes(buffer[end:filled])
        filled = len(rest)
        buffer[:filled] = rest
