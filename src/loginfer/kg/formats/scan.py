"""Names to ids while reading: pyarrow dictionaries for plain lines, our parser for the rest.

Compiled passes over the bytes of graph files; imported only when a file is read or written.

Eight bytes at a time: unaligned loads, searches within a word, and the hash of a name.

The functions take addresses (`array.ctypes.data` plus a place), because a call with an array hands over
seven values and counts references. Whoever calls them keeps the array alive, and leaves 8 readable bytes
behind the last place asked for; `chunks.py` and `names.py` see to that.

A growing table of names with provisional ids, and the vocabulary it becomes.

Names are copied once, when first seen, into one buffer; a name is found by its hash in a table of slots
with linear probing. Provisional ids follow the order of first appearance; `vocabulary` sorts the distinct
names and says which final id each provisional one has.

Triples of provisional ids become sorted keys; lines are put together from names.

One compiled pass over three tab-separated columns.

Where a graph grows while its files are read.

A stream of bytes as chunks of whole lines, ready for the compiled scanners.

One compiled pass over the plain lines of N-Triples, and a look at single terms.

The scanner knows the usual shape of a line: three terms, spaces or tabs between them, a full stop. It
takes terms as they stand, brackets included. Every other line it reports, and a full parser reads it. A
term that is lexically complete need not be valid: `plain_terms` says which distinct terms are beyond doubt,
and the full parser is asked about the others.

One compiled pass over lines of three whole numbers.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from loginfer.errors import InputError
from loginfer.kernels import kernel
from loginfer.kg.graph import KnowledgeGraph, TripleKeys
from loginfer.kg.vocabulary import Vocabulary

_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SEED = np.uint64(0x517CC1B727220A95)
_SHIFT = np.uint64(32)
_EIGHT = np.uint64(8)
_THREE = np.uint64(3)
_ZERO = np.uint64(0)


def repeated(byte: bytes) -> np.uint64:
    """Return the word that holds one byte eight times, for `find_two`."""
    return np.uint64(byte[0]) * _ONES


def _load(typingctx: Any, address: Any) -> Any:
    """uint64 of the 8 bytes from `address` on, lowest byte first."""
    return types.uint64(types.int64), _emit_load


def _load_big_endian(typingctx: Any, address: Any) -> Any:
    """uint64 of the 8 bytes from `address` on, highest byte first: ordered as the bytes are."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bswap(_emit_load(context, builder, signature, args))

    return types.uint64(types.int64), emit


def _trailing_zeros(typingctx: Any, word: Any) -> Any:
    """Count the zero bits below the lowest one of a uint64; 64 for zero."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), emit


def _emit_load(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)


# Single machine instructions that Numba has no function for.
load_word: Any = intrinsic(_load)
load_big_endian: Any = intrinsic(_load_big_endian)
trailing_zeros: Any = intrinsic(_trailing_zeros)


@kernel
def find_two(address: Any, first: Any, second: Any) -> Any:
    """Return the next address of either of two bytes, given as words that repeat them eight times.

    A byte of `word ^ first` is zero where the first byte stands. `(x - 0x01…) & ~x & 0x80…` marks zero
    bytes; marks above the lowest may be wrong, the lowest never is.
    """
    while True:
        word = load_word(address)
        x = word ^ first
        y = word ^ second
        marks = (((x - _ONES) & ~x) | ((y - _ONES) & ~y)) & _HIGHS
        if marks != _ZERO:
            return address + np.int64(trailing_zeros(marks) >> _THREE)
        address += 8


@kernel
def find_and_hash(start: Any, first: Any, second: Any) -> Any:
    """Return the next address of either of two bytes (see `find_two`) and the hash of what is before it."""
    value = _SEED
    address = start
    while True:
        word = load_word(address)
        x = word ^ first
        y = word ^ second
        marks = (((x - _ONES) & ~x) | ((y - _ONES) & ~y)) & _HIGHS
        if marks != _ZERO:
            break
        value = (value ^ word) * _MIX
        value ^= value >> _SHIFT
        address += 8
    rest = trailing_zeros(marks) >> _THREE
    if rest != _ZERO:
        value = (value ^ (word & (_ALL >> ((_EIGHT - rest) * _EIGHT)))) * _MIX
        value ^= value >> _SHIFT
    end = address + np.int64(rest)
    value = (value ^ np.uint64(end - start)) * _MIX
    return end, value ^ (value >> _SHIFT)


@kernel
def hash_bytes(address: Any, end: Any) -> Any:
    """Return the hash of the bytes up to `end`, never depending on the bytes around them."""
    value = _SEED
    length = np.uint64(end - address)
    while address + 8 <= end:
        value = (value ^ load_word(address)) * _MIX
        value ^= value >> _SHIFT
        address += 8
    if address < end:
        rest = np.uint64(end - address)
        word = load_word(address) & (_ALL >> ((_EIGHT - rest) * _EIGHT))
        value = (value ^ word) * _MIX
        value ^= value >> _SHIFT
    value = (value ^ length) * _MIX
    return value ^ (value >> _SHIFT)


@kernel
def same_bytes(address: Any, other: Any, length: Any) -> Any:
    """Say whether `length` bytes are equal."""
    while length >= 8:
        if load_word(address) != load_word(other):
            return False
        address += 8
        other += 8
        length -= 8
    if length > 0:
        difference = load_word(address) ^ load_word(other)
        return difference << ((_EIGHT - np.uint64(length)) * _EIGHT) == _ZERO
    return True


T = TypeVar("T", bound=np.generic)

PADDING = 16  # bytes readable behind every buffer, for loads of whole words
_UPPER = np.uint64(0xFFFFFFFF00000000)
_LOWER = np.uint64(0x00000000FFFFFFFF)
_ONE = np.uint64(1)


class NameTable:
    """Names in the order of their first appearance.

    Name i is `data[offsets[i]:offsets[i + 1]]`, first seen on line `lines[i]`, with the hash `hashes[i]`.
    A slot holds the upper half of a hash and, in the lower half, id + 1, or zero if it is free; at most half
    of the slots are taken. Kernels fill the arrays; `grow` makes room.
    """

    def __init__(self) -> None:
        self.count = 0
        self.slots: npt.NDArray[np.uint64] = np.zeros(1 << 12, dtype=np.uint64)
        self.hashes: npt.NDArray[np.uint64] = np.empty(1 << 11, dtype=np.uint64)
        self.offsets: npt.NDArray[np.int64] = np.zeros((1 << 11) + 1, dtype=np.int64)
        self.lines: npt.NDArray[np.int64] = np.empty(1 << 11, dtype=np.int64)
        self.data: npt.NDArray[np.uint8] = np.zeros((1 << 16) + PADDING, dtype=np.uint8)

    @property
    def used(self) -> int:
        """Bytes of all names together."""
        return int(self.offsets[self.count])

    def grow(self, names: int, size: int) -> None:
        """Make room for more names with so many bytes together."""
        if self.count + names > len(self.hashes):
            room = max(2 * len(self.hashes), 1 << (self.count + names).bit_length())
            self.hashes = _enlarged(self.hashes, room)
            self.offsets = _enlarged(self.offsets, room + 1)
            self.lines = _enlarged(self.lines, room)
            self.slots = np.zeros(2 * room, dtype=np.uint64)
            fill_slots(self.slots, self.hashes, self.count)
        if self.used + size + PADDING > len(self.data):
            self.data = _enlarged(self.data, max(2 * len(self.data), self.used + size + PADDING))

    def intern(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return int32[n]: the ids of the names data[offsets[i]:offsets[i + 1]], adding new ones."""
        self.grow(len(offsets) - 1, int(offsets[-1] - offsets[0]))
        ids = np.empty(len(offsets) - 1, dtype=np.int32)
        self.count = intern_all(
            padded(data, int(offsets[-1])),
            np.ascontiguousarray(offsets, dtype=np.int64),
            self.slots,
            self.hashes,
            self.offsets,
            self.lines,
            self.data,
            self.count,
            ids,
        )
        return ids

    def intern_texts(self, names: Iterable[bytes]) -> npt.NDArray[np.int32]:
        """Return the ids of names given as UTF-8 bytes."""
        return self.intern(*joined(list(names)))

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where each name starts in `data`."""
        return self.offsets[: self.count].copy()

    @property
    def ends(self) -> npt.NDArray[np.int64]:
        """Where each name ends in `data`."""
        return self.offsets[1 : self.count + 1].copy()

    def name(self, i: int) -> bytes:
        """Return the bytes of one name."""
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()

    def not_utf8(self) -> npt.NDArray[np.int64]:
        """Return the ids of the names that are not valid UTF-8."""
        whole = self.data[: self.used].tobytes()
        starts = self.offsets[: self.count]
        try:
            whole.isascii() or whole.decode()
            inside = np.zeros(0) if not whole else self.data[starts[starts < self.used]] & 0xC0
            if not (inside == 0x80).any():  # no name starts in the middle of a character
                return np.zeros(0, dtype=np.int64)
        except UnicodeDecodeError:
            pass
        bounds = self.offsets[: self.count + 1].tolist()
        return np.array(
            [i for i in range(self.count) if not _is_utf8(whole[bounds[i] : bounds[i + 1]])], dtype=np.int64
        )


def vocabulary(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    keep: npt.NDArray[np.bool_] | None = None,
) -> tuple[Vocabulary, npt.NDArray[np.int32]]:
    """Sort names and give each its final id.

    Parameters
    ----------
    data, starts, ends
        The names data[starts[i]:ends[i]]; equal ones are merged.
    keep
        bool[n], which names to keep; the others get the id -1.

    Returns
    -------
    The vocabulary and int32[n], the id of each name in it.
    """
    order = name_order(data, starts, ends, keep)
    ids = np.full(len(starts), -1, dtype=np.int32)
    sorted_data = np.empty(int((ends[order] - starts[order]).sum()), dtype=np.uint8)
    offsets = np.zeros(len(order) + 1, dtype=np.int64)
    distinct = gather_sorted(data, starts, ends, order, ids, sorted_data, offsets)
    offsets = offsets[: distinct + 1]
    return Vocabulary(sorted_data[: offsets[-1]], offsets), ids


def name_order(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    keep: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.int32]:
    """Return the numbers of the names, or of those to keep, in the order of their bytes.

    The arrays are contiguous and `data` is padded.
    """
    if len(data) < PADDING or (len(ends) and int(ends.max()) > len(data) - 8):
        raise ValueError("the bytes of names must be padded")
    count = len(starts)
    order = np.arange(count, dtype=np.int32) if keep is None else np.flatnonzero(keep).astype(np.int32)
    sort_names(data, starts, ends, order, np.empty(len(order), dtype=np.uint64))
    return order


def joined(names: list[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return names as one buffer and its offsets."""
    offsets = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, names), dtype=np.int64, count=len(names)), out=offsets[1:])
    return np.frombuffer(bytearray(b"".join(names)) + bytes(PADDING), dtype=np.uint8), offsets


def padded(data: npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.uint8]:
    """Return an array that starts with data[:size] and has room behind for loads of whole words."""
    if len(data) >= size + PADDING and data.flags.writeable and data.flags.c_contiguous:
        return data
    copy = np.zeros(size + PADDING, dtype=np.uint8)
    copy[:size] = data[:size]
    return copy


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _enlarged(array: npt.NDArray[T], size: int) -> npt.NDArray[T]:
    larger = np.zeros(size, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def find(text: Any, length: Any, value: Any, slots: Any, mask: Any, offsets: Any, names: Any) -> Any:
    """Return the id of a name, or -1 - slot with the free slot where it belongs.

    All are numbers: `text`, `slots`, `offsets` and `names` are addresses, `value` is the hash.
    """
    slot = value & mask
    tag = value & _UPPER
    while True:
        entry = load_word(slots + np.int64(slot << _THREE))
        if entry == _ZERO:
            return np.int64(-1) - np.int64(slot)
        if entry & _UPPER == tag:
            i = np.int64(entry & _LOWER) - 1
            begin = np.int64(load_word(offsets + 8 * i))
            end = np.int64(load_word(offsets + 8 * i + 8))
            if end - begin == length and same_bytes(text, names + begin, length):
                return i
        slot = (slot + _ONE) & mask


@kernel
def add(
    data: Any,
    start: Any,
    end: Any,
    value: Any,
    slot: Any,
    slots: Any,
    hashes: Any,
    offsets: Any,
    lines: Any,
    names: Any,
    count: Any,
    line: Any,
) -> Any:
    """Give data[start:end] the id `count`; `slot` is what `find` returned."""
    slots[-1 - slot] = (value & _UPPER) | np.uint64(count + 1)
    hashes[count] = value
    lines[count] = line
    begin = offsets[count]
    for k in range(end - start):
        names[begin + k] = data[start + k]
    offsets[count + 1] = begin + end - start


@kernel
def fill_slots(slots: Any, hashes: Any, count: Any) -> Any:
    """Enter all names into a larger, empty table of slots."""
    mask = np.uint64(len(slots) - 1)
    for i in range(count):
        slot = hashes[i] & mask
        while slots[slot] != _ZERO:
            slot = (slot + _ONE) & mask
        slots[slot] = (hashes[i] & _UPPER) | np.uint64(i + 1)


@kernel
def intern_all(
    data: Any, bounds: Any, slots: Any, hashes: Any, offsets: Any, lines: Any, names: Any, count: Any, ids: Any
) -> Any:
    """Find or add the names data[bounds[i]:bounds[i + 1]]; return the new count of names."""
    mask = np.uint64(len(slots) - 1)
    text, slots_at, offsets_at, names_at = (data.ctypes.data, slots.ctypes.data, offsets.ctypes.data, names.ctypes.data)
    for i in range(len(bounds) - 1):
        start, end = bounds[i], bounds[i + 1]
        value = hash_bytes(text + start, text + end)
        found = find(text + start, end - start, value, slots_at, mask, offsets_at, names_at)
        if found < 0:
            add(data, start, end, value, found, slots, hashes, offsets, lines, names, count, 0)
            found = count
            count += 1
        ids[i] = found
    return count


@kernel
def word_at(start: Any, end: Any, depth: Any) -> Any:
    """Return the 8 bytes of a name from `depth` on, highest first, zeros behind its end."""
    rest = end - start - depth
    if rest <= 0:
        return _ZERO
    word = load_big_endian(start + depth)
    if rest < 8:
        word &= ~(_ALL >> np.uint64(8 * rest))
    return word


@kernel
def sort_names(data: Any, starts: Any, ends: Any, order: Any, words: Any) -> Any:
    """Sort `order` by the bytes of the names: quicksort on words of 8 bytes, three ways.

    A range on the stack holds names that agree on their first `depth` bytes. Names equal to the pivot in
    the next word are sorted further at depth + 8, those that end within it first, by length: they differ
    by zero bytes at most.
    """
    text = data.ctypes.data
    stack = [(0, len(order), 0, True)]
    while len(stack):
        low, high, depth, fresh = stack.pop()
        if high - low < 2:
            continue
        if fresh:
            for i in range(low, high):
                words[i] = word_at(text + starts[order[i]], text + ends[order[i]], depth)
        a, b, c = words[low], words[(low + high) // 2], words[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        less, i, more = low, low, high
        while i < more:
            if words[i] < pivot:
                words[i], words[less] = words[less], words[i]
                order[i], order[less] = order[less], order[i]
                less += 1
                i += 1
            elif words[i] > pivot:
                more -= 1
                words[i], words[more] = words[more], words[i]
                order[i], order[more] = order[more], order[i]
            else:
                i += 1
        stack.append((low, less, depth, False))
        stack.append((more, high, depth, False))
        ended = less
        for i in range(less, more):
            length = ends[order[i]] - starts[order[i]]
            if length <= depth + 8:
                order[i], order[ended] = order[ended], order[i]
                j = ended
                while j > less and ends[order[j - 1]] - starts[order[j - 1]] > length:
                    order[j], order[j - 1] = order[j - 1], order[j]
                    j -= 1
                ended += 1
        stack.append((ended, more, depth + 8, True))


@kernel
def gather_sorted(data: Any, starts: Any, ends: Any, order: Any, ids: Any, out: Any, offsets: Any) -> Any:
    """Copy names in order, equal ones once; fill `ids` and `offsets`; return how many there are."""
    count = 0
    for i in order:
        start, length = starts[i], ends[i] - starts[i]
        begin = offsets[count]
        if count and begin - offsets[count - 1] == length:
            same = True
            for k in range(length):
                if out[begin - length + k] != data[start + k]:
                    same = False
                    break
            if same:
                ids[i] = count - 1
                continue
        for k in range(length):
            out[begin + k] = data[start + k]
        ids[i] = count
        count += 1
        offsets[count] = begin + length
    return count


@kernel
def pack_rows(rows: Any, entity_ids: Any, relation_ids: Any, entities: Any, relations: Any, keys: Any) -> Any:
    """Fill `keys` with the packed triples (see `TripleKeys`) of rows of provisional ids; return how many.

    Rows with a name that was dropped (id -1) are left out.
    """
    count = 0
    for i in range(len(rows)):
        s, r, o = entity_ids[rows[i, 0]], relation_ids[rows[i, 1]], entity_ids[rows[i, 2]]
        if s >= 0 and r >= 0 and o >= 0:
            keys[count] = (np.int64(s) * relations + r) * entities + o
            count += 1
    return count


@kernel
def join_lines(
    triples: Any,
    s_data: Any,
    s_offsets: Any,
    r_data: Any,
    r_offsets: Any,
    o_data: Any,
    o_offsets: Any,
    between: Any,
    behind: Any,
    out: Any,
) -> Any:
    """Write one line a triple: the three names with `between` between them and `behind` at the end.

    Returns
    -------
    The number of bytes written; `out` must have room for them.
    """
    place = 0
    for i in range(len(triples)):
        for column in range(3):
            x = triples[i, column]
            if column == 0:
                for k in range(s_offsets[x], s_offsets[x + 1]):
                    out[place] = s_data[k]
                    place += 1
            elif column == 1:
                for k in range(r_offsets[x], r_offsets[x + 1]):
                    out[place] = r_data[k]
                    place += 1
            else:
                for k in range(o_offsets[x], o_offsets[x + 1]):
                    out[place] = o_data[k]
                    place += 1
            if column < 2:
                out[place] = between
                place += 1
        for k in range(len(behind)):
            out[place] = behind[k]
            place += 1
    return place


@kernel
def wrap_names(data: Any, starts: Any, ends: Any, brackets: Any, out: Any) -> Any:
    """Write names one after the other, in angle brackets where `brackets` says so."""
    place = 0
    for i in range(len(starts)):
        if brackets[i]:
            out[place] = 60
            place += 1
        for k in range(starts[i], ends[i]):
            out[place] = data[k]
            place += 1
        if brackets[i]:
            out[place] = 62
            place += 1


# Why the scanner stopped: at the end, or because a buffer must be emptied or enlarged first.
DONE, FULL = 0, 1
# What is wrong with a line: it has `info` columns, or its column `info` is empty.
COLUMNS, EMPTY = 0, 1

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32
_TABS = repeated(b"\t")
_NEWLINES = repeated(b"\n")


@kernel
def scan_tsv(
    data: Any,
    end: Any,
    state: Any,
    columns: Any,
    rows: Any,
    bad: Any,
    e_slots: Any,
    e_hashes: Any,
    e_offsets: Any,
    e_lines: Any,
    e_names: Any,
    r_slots: Any,
    r_hashes: Any,
    r_offsets: Any,
    r_lines: Any,
    r_names: Any,
) -> Any:
    """Scan whole lines up to `end`, where `data` holds a line end.

    state
        int64[6]: place, lines before it, rows filled, entities, relations, bad lines filled; kept between
        calls.
    columns
        int64[3]: the columns of subject, relation, object.
    rows
        int32[n, 3], filled with provisional ids.
    bad
        int64[m, 4], filled with line, what is wrong, info, place of the line.
    """
    place, line, row, entities, relations, wrong = state
    text = data.ctypes.data
    e_slots_at, e_offsets_at, e_names_at = e_slots.ctypes.data, e_offsets.ctypes.data, e_names.ctypes.data
    r_slots_at, r_offsets_at, r_names_at = r_slots.ctypes.data, r_offsets.ctypes.data, r_names.ctypes.data
    e_mask, r_mask = np.uint64(len(e_slots) - 1), np.uint64(len(r_slots) - 1)
    starts = np.empty(3, dtype=np.int64)
    ends = np.empty(3, dtype=np.int64)
    hashes = np.empty(3, dtype=np.uint64)
    s, r, o = columns
    status = DONE
    while place < end:
        if row == len(rows) or wrong == len(bad) or entities + 2 > len(e_hashes) or relations + 1 > len(r_hashes):
            status = FULL
            break
        column = 0
        start = place
        while True:
            stop, value = find_and_hash(text + start, _TABS, _NEWLINES)
            stop -= text
            if column < 3:
                starts[column] = start
                ends[column] = stop
                hashes[column] = value
            column += 1
            if data[stop] == NEWLINE:
                break
            start = stop + 1
        if column <= 3 and stop > starts[column - 1] and data[stop - 1] == RETURN:
            ends[column - 1] = stop - 1
            hashes[column - 1] = hash_bytes(text + starts[column - 1], text + stop - 1)
        if column == 3 and ends[0] > starts[0] and ends[1] > starts[1] and ends[2] > starts[2]:
            size = stop - place
            if e_offsets[entities] + size + 8 > len(e_names) or r_offsets[relations] + size + 8 > len(r_names):
                status = FULL
                break
            start, finish = starts[s], ends[s]
            i = find(text + start, finish - start, hashes[s], e_slots_at, e_mask, e_offsets_at, e_names_at)
            if i < 0:
                add(
                    data, start, finish, hashes[s], i,
                    e_slots, e_hashes, e_offsets, e_lines, e_names, entities, line,
                )  # fmt: skip
                i = entities
                entities += 1
            rows[row, 0] = i
            start, finish = starts[r], ends[r]
            i = find(text + start, finish - start, hashes[r], r_slots_at, r_mask, r_offsets_at, r_names_at)
            if i < 0:
                add(
                    data, start, finish, hashes[r], i,
                    r_slots, r_hashes, r_offsets, r_lines, r_names, relations, line,
                )  # fmt: skip
                i = relations
                relations += 1
            rows[row, 1] = i
            start, finish = starts[o], ends[o]
            i = find(text + start, finish - start, hashes[o], e_slots_at, e_mask, e_offsets_at, e_names_at)
            if i < 0:
                add(
                    data, start, finish, hashes[o], i,
                    e_slots, e_hashes, e_offsets, e_lines, e_names, entities, line,
                )  # fmt: skip
                i = entities
                entities += 1
            rows[row, 2] = i
            row += 1
        else:
            blank = column == 1
            if blank:
                for k in range(starts[0], ends[0]):
                    if data[k] != SPACE:
                        blank = False
                        break
            if not blank:
                bad[wrong, 0] = line
                bad[wrong, 1] = EMPTY if column == 3 else COLUMNS
                bad[wrong, 2] = column
                bad[wrong, 3] = place
                if column == 3:
                    for k in range(3):
                        if ends[k] == starts[k]:
                            bad[wrong, 2] = k + 1
                            break
                wrong += 1
        line += 1
        place = stop + 1
    state[0], state[1], state[2], state[3], state[4], state[5] = place, line, row, entities, relations, wrong
    return status


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

    def __init__(self, *, skip: bool = False, meaning: Callable[[NameTable], NameSpans] = plain_names) -> None:
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
            fine = (entity_ids[block[:, 0]] >= 0) & (relation_ids[block[:, 1]] >= 0) & (entity_ids[block[:, 2]] >= 0)
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


CHUNK_BYTES = 2**21
LONGEST_LINE = 2**28


def line_chunks(stream: BinaryIO, where: str) -> Iterator[tuple[npt.NDArray[np.uint8], int, int]]:
    """Yield buffers with the places where whole lines begin and end in them.

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
                raise InputError(
                    f"a line is longer than {LONGEST_LINE // 2**20} MB", where=where, hint="is this a text file?"
                )
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


QUOTE, HASH, FULL_STOP, COLON, LESS, GREATER = 34, 35, 46, 58, 60, 62
AT, BACKSLASH, CARET, UNDERSCORE, MINUS, SLASH, QUESTION = 64, 92, 94, 95, 45, 47, 63

_RETURNS = repeated(b"\r")
_GREATERS = repeated(b">")
_QUOTES = repeated(b'"')

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

# What a term turns out to be: the name stands between the first and the last byte; the whole term is the
# name; or the full parser must say.
BRACKETED, AS_IT_STANDS, ASK = 0, 1, 2


@kernel
def term_end(data: Any, place: Any, text: Any) -> Any:
    """Return where the term that starts at `place` ends, or -1 if it is not of a plain shape."""
    first = data[place]
    if first == LESS:
        if data[place + 1] == LESS:
            return np.int64(-1)
        stop = find_two(text + place, _GREATERS, _NEWLINES) - text
        return stop + 1 if data[stop] == GREATER else np.int64(-1)
    if first == UNDERSCORE:
        if data[place + 1] != COLON:
            return np.int64(-1)
        place += 2
        while not CLASSES[data[place]] & OUTSIDE:
            place += 1
        return place if data[place] == SPACE or data[place] == TAB else np.int64(-1)
    if first != QUOTE:
        return np.int64(-1)
    place += 1
    while True:
        # A quote behind an odd number of backslashes does not end the literal.
        stop = find_two(text + place, _QUOTES, _NEWLINES) - text
        if data[stop] == NEWLINE:
            return np.int64(-1)
        escaped = False
        k = stop - 1
        while k >= place and data[k] == BACKSLASH:
            escaped = not escaped
            k -= 1
        place = stop + 1
        if not escaped:
            break
    if data[place] == AT:
        place += 1
        while CLASSES[data[place]] & ALNUM or data[place] == MINUS:
            place += 1
        return place if data[place] == SPACE or data[place] == TAB else np.int64(-1)
    if data[place] == CARET and data[place + 1] == CARET and data[place + 2] == LESS:
        stop = find_two(text + place, _GREATERS, _NEWLINES) - text
        return stop + 1 if data[stop] == GREATER else np.int64(-1)
    return place


@kernel
def scan_ntriples(
    data: Any,
    end: Any,
    state: Any,
    extra: Any,
    rows: Any,
    bad: Any,
    e_slots: Any,
    e_hashes: Any,
    e_offsets: Any,
    e_lines: Any,
    e_names: Any,
    r_slots: Any,
    r_hashes: Any,
    r_offsets: Any,
    r_lines: Any,
    r_names: Any,
) -> Any:
    """Scan whole lines up to `end`, where `data` holds a line end; see `scan_tsv` for the arguments.

    Lines of another shape than the plain one go to `bad` as line, 0, end of the line, place of the line.
    `extra` is not used.
    """
    place, line, row, entities, relations, wrong = state
    text = data.ctypes.data
    e_slots_at, e_offsets_at, e_names_at = e_slots.ctypes.data, e_offsets.ctypes.data, e_names.ctypes.data
    r_slots_at, r_offsets_at, r_names_at = r_slots.ctypes.data, r_offsets.ctypes.data, r_names.ctypes.data
    e_mask, r_mask = np.uint64(len(e_slots) - 1), np.uint64(len(r_slots) - 1)
    starts = np.empty(3, dtype=np.int64)
    ends = np.empty(3, dtype=np.int64)
    status = DONE
    while place < end:
        if row == len(rows) or wrong == len(bad) or entities + 2 > len(e_hashes) or relations + 1 > len(r_hashes):
            status = FULL
            break
        at = place
        terms = 0
        plain = True
        while terms < 3:
            before = at
            while data[at] == SPACE or data[at] == TAB:
                at += 1
            if terms == 0 and data[at] == NEWLINE:
                break
            if terms == 0 and data[at] == HASH:
                at = find_two(text + at, _RETURNS, _NEWLINES) - text
                # A comment ends at a line end of the old kind too, and something may follow it.
                plain = data[at] == NEWLINE or data[at + 1] == NEWLINE
                break
            if (terms and at == before) or (terms == 0 and data[at] == QUOTE) or (terms == 1 and data[at] != LESS):
                plain = False
                break
            stop = term_end(data, at, text)
            if stop < 0:
                plain = False
                break
            starts[terms] = at
            ends[terms] = stop
            terms += 1
            at = stop
        if plain and terms == 3:
            while data[at] == SPACE or data[at] == TAB:
                at += 1
            plain = data[at] == FULL_STOP
            if plain:
                at += 1
                while data[at] == SPACE or data[at] == TAB:
                    at += 1
                if data[at] == RETURN:
                    at += 1
                plain = data[at] == NEWLINE
        else:
            at = find_two(text + at, _NEWLINES, _NEWLINES) - text
        if plain and terms == 3:
            size = at - place
            if e_offsets[entities] + size + 8 > len(e_names) or r_offsets[relations] + size + 8 > len(r_names):
                status = FULL
                break
            for column in range(3):
                start, stop = starts[column], ends[column]
                value = hash_bytes(text + start, text + stop)
                if column == 1:
                    i = find(text + start, stop - start, value, r_slots_at, r_mask, r_offsets_at, r_names_at)
                    if i < 0:
                        add(
                            data, start, stop, value, i,
                            r_slots, r_hashes, r_offsets, r_lines, r_names, relations, line,
                        )  # fmt: skip
                        i = relations
                        relations += 1
                else:
                    i = find(text + start, stop - start, value, e_slots_at, e_mask, e_offsets_at, e_names_at)
                    if i < 0:
                        add(
                            data, start, stop, value, i,
                            e_slots, e_hashes, e_offsets, e_lines, e_names, entities, line,
                        )  # fmt: skip
                        i = entities
                        entities += 1
                rows[row, column] = i
            row += 1
        elif not plain:
            at = find_two(text + at, _NEWLINES, _NEWLINES) - text
            bad[wrong, 0] = line
            bad[wrong, 1] = 0
            bad[wrong, 2] = at
            bad[wrong, 3] = place
            wrong += 1
        line += 1
        place = at + 1
    state[0], state[1], state[2], state[3], state[4], state[5] = place, line, row, entities, relations, wrong
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
def plain_terms(data: Any, starts: Any, ends: Any, kinds: Any) -> Any:
    """Fill `kinds` with what each term, written as N-Triples writes it, turns out to be."""
    for i in range(len(starts)):
        start, end = starts[i], ends[i]
        kinds[i] = ASK
        if end - start < 2:
            continue
        if data[start] == LESS:
            if data[end - 1] == GREATER and is_plain_iri(data, start + 1, end - 1):
                kinds[i] = BRACKETED
        elif data[start] == QUOTE:
            if is_plain_literal(data, start, end):
                kinds[i] = AS_IT_STANDS
        elif is_plain_blank(data, start, end):
            kinds[i] = AS_IT_STANDS


@kernel
def ntriples_plain_names(data: Any, starts: Any, ends: Any, kinds: Any) -> Any:
    """Fill `kinds` with how each name of a graph is written: in brackets, as it stands, or ask."""
    for i in range(len(starts)):
        start, end = starts[i], ends[i]
        kinds[i] = ASK
        if end - start < 2:
            continue
        if data[start] == QUOTE:
            if is_plain_literal(data, start, end):
                kinds[i] = AS_IT_STANDS
        elif is_plain_blank(data, start, end):
            kinds[i] = AS_IT_STANDS
        elif is_plain_iri(data, start, end):
            kinds[i] = BRACKETED


NUMBERS_TAB, NUMBERS_NEWLINE, NUMBERS_RETURN, NUMBERS_SPACE, ZERO, NINE = 9, 10, 13, 32, 48, 57
LARGEST = 2**31 - 1


@kernel
def scan_numbers(data: Any, place: Any, end: Any, line: Any, rows: Any, bad: Any) -> Any:
    """Scan whole lines of three numbers with spaces or tabs between them; blank lines count as nothing.

    Parameters
    ----------
    data, place, end
        The bytes and the part to scan; data[end - 1] or data[end] is a line end.
    line
        Lines before `place`.
    rows
        int32[n, 3], to be filled; n is at least the number of lines.
    bad
        int64[n], to be filled with the lines that are not three numbers below 2³¹.

    Returns
    -------
    Rows filled, bad lines, lines up to the end.
    """
    row, wrong = 0, 0
    while place < end:
        count, fine = 0, True
        while data[place] != NUMBERS_NEWLINE:
            if data[place] in (NUMBERS_SPACE, NUMBERS_TAB, NUMBERS_RETURN):
                place += 1
                continue
            number = 0
            while data[place] >= ZERO and data[place] <= NINE and number <= LARGEST:
                number = number * 10 + (data[place] - ZERO)
                place += 1
            if data[place] not in (NUMBERS_SPACE, NUMBERS_TAB, NUMBERS_RETURN, NUMBERS_NEWLINE) or number > LARGEST:
                fine = False
                while data[place] != NUMBERS_NEWLINE:
                    place += 1
            elif count < 3:
                rows[row, count] = number
            count += 1
        if fine and count == 3:
            row += 1
        elif count:
            bad[wrong] = line
            wrong += 1
        line += 1
        place += 1
    return row, wrong, line
