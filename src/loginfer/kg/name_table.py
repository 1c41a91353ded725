"""Names while a graph is read: a growing table that gives each name its id; Arrow sorts them at the end.

Kernels read eight bytes at a time and take addresses (`array.ctypes.data` plus an offset). Callers keep the array
alive and leave `PADDING` readable bytes behind its end.

This module loads Numba: import it when a file is read.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from loginfer.kernels import inlined, kernel, trailing_zeros
from loginfer.kg.vocabulary import MANY, Vocabulary, offsets_of

PADDING = 16  # bytes readable behind every buffer, for loads of whole words

# -- eight bytes at a time ----------------------------------------------------------------------

_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_UPPER = np.uint64(0xFFFFFFFF00000000)
_LOWER = np.uint64(0x00000000FFFFFFFF)
_EIGHT = np.uint64(8)
_THREE = np.uint64(3)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


def eight_times(byte: bytes) -> np.uint64:
    """Return the word that holds one byte eight times, for `find_two`."""
    return np.uint64(byte[0]) * _ONES


def _load(typingctx: Any, address: Any) -> Any:
    """uint64 of the 8 bytes from `address` on, lowest byte first."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)

    return types.uint64(types.int64), emit


def _fold(typingctx: Any, a: Any, b: Any) -> Any:
    """Both halves of the product of two uint64, 128 bits, xor-ed."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, b = (builder.zext(word, ir.IntType(128)) for word in args)
        product = builder.mul(a, b)
        high = builder.lshr(product, ir.Constant(ir.IntType(128), 64))
        return builder.trunc(builder.xor(product, high), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), emit


# Single machine instructions that Numba has no function for.
fold: Any = intrinsic(_fold)
load_word: Any = intrinsic(_load)


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


# -- the hash of a name ---------------------------------------------------------------------------

# A hash begins with the first secret and takes eight bytes at a time: value = fold(value ^ word, second secret).
# Whoever makes up names cannot know which have the same hash: the secrets are drawn for each process, and nothing
# that is written depends on them.
KEY = np.array([secrets.randbits(64), secrets.randbits(64) | 1], dtype=np.uint64)


@kernel
def find_and_hash(start: Any, first: Any, second: Any, value: Any, factor: Any) -> Any:
    """Return the next address of either of two bytes (see `find_two`) and the hash of what is before it."""
    address = start
    while True:
        word = load_word(address)
        x = word ^ first
        y = word ^ second
        marks = (((x - _ONES) & ~x) | ((y - _ONES) & ~y)) & _HIGHS
        if marks != _ZERO:
            break
        value = fold(value ^ word, factor)
        address += 8
    rest = trailing_zeros(marks) >> _THREE
    if rest != _ZERO:
        value = fold(value ^ (word & (_ALL >> ((_EIGHT - rest) * _EIGHT))), factor)
    end = address + np.int64(rest)
    return end, fold(value ^ np.uint64(end - start), factor)


@kernel
def hash_bytes(address: Any, end: Any, value: Any, factor: Any) -> Any:
    """Return the hash of the bytes up to `end`, never depending on the bytes around them."""
    length = np.uint64(end - address)
    while address + 8 <= end:
        value = fold(value ^ load_word(address), factor)
        address += 8
    if address < end:
        rest = np.uint64(end - address)
        value = fold(value ^ (load_word(address) & (_ALL >> ((_EIGHT - rest) * _EIGHT))), factor)
    return fold(value ^ length, factor)


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


# -- names and their ids ------------------------------------------------------------------------

T = TypeVar("T", bound=np.generic)
Ids: TypeAlias = npt.NDArray[np.int32]


class NameTable:
    """Names in the order of their first appearance, which are their provisional ids.

    Name i is `data[offsets[i]:offsets[i + 1]]`, first seen on line `lines[i]`, with the hash `hashes[i]`.
    A slot holds the upper half of a hash and, in the lower half, id + 1, or zero if it is free. At most half
    of the slots are in use. Kernels fill the arrays; `grow` enlarges them.
    """

    def __init__(self) -> None:
        self.count = 0
        self.slots: npt.NDArray[np.uint64] = np.zeros(1 << 12, dtype=np.uint64)
        self.hashes: npt.NDArray[np.uint64] = np.empty(1 << 11, dtype=np.uint64)
        self.offsets: npt.NDArray[np.int64] = np.zeros((1 << 11) + 1, dtype=np.int64)
        self.lines: npt.NDArray[np.int64] = np.empty(1 << 11, dtype=np.int64)
        self.data: npt.NDArray[np.uint8] = np.zeros((1 << 16) + PADDING, dtype=np.uint8)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The table as kernels take it."""
        return self.slots, self.hashes, self.offsets, self.lines, self.data

    def grow(self, names: int, size: int) -> None:
        """Make room for more names with so many bytes together."""
        if self.count + names > len(self.hashes):
            capacity = max(2 * len(self.hashes), 1 << (self.count + names).bit_length())
            self.hashes = _enlarged(self.hashes, capacity)
            self.offsets = _enlarged(self.offsets, capacity + 1)
            self.lines = _enlarged(self.lines, capacity)
            self.slots = np.zeros(2 * capacity, dtype=np.uint64)
            fill_slots(self.slots, self.hashes, self.count)
        needed = int(self.offsets[self.count]) + size + PADDING
        if needed > len(self.data):
            self.data = _enlarged(self.data, max(2 * len(self.data), needed))

    def intern(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Ids:
        """Return int32[n]: the ids of the names data[offsets[i]:offsets[i + 1]], adding new ones."""
        self.grow(len(offsets) - 1, int(offsets[-1] - offsets[0]))
        ids = np.empty(len(offsets) - 1, dtype=np.int32)
        bounds = np.ascontiguousarray(offsets, dtype=np.int64)
        self.count = intern_all(padded(data, int(offsets[-1])), bounds, self.arrays, self.count, ids, KEY)
        return ids

    def intern_texts(self, names: Iterable[bytes]) -> Ids:
        """Return the ids of names given as UTF-8 bytes."""
        words = list(names)
        offsets = offsets_of(np.fromiter(map(len, words), dtype=np.int64, count=len(words)))
        return self.intern(np.frombuffer(b"".join(words), dtype=np.uint8), offsets)

    def name(self, i: int) -> bytes:
        """Return the bytes of one name."""
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()

    @property
    def names(self) -> Any:
        """The names as an Arrow array of bytes over the same memory."""
        return Vocabulary(self.data[:], self.offsets[: self.count + 1]).to_arrow()

    def not_utf8(self) -> list[int]:
        """Return the ids of the names that are not valid UTF-8."""
        wrong: list[int] = []
        for first in range(0, self.count, MANY):
            bounds = self.offsets[first : min(first + MANY, self.count) + 1]
            torn = (self.data[bounds[:-1]] & 0xC0 == 0x80).any()  # a name begins within a character
            if torn or not _is_utf8(self.data[bounds[0] : bounds[-1]].tobytes()):
                wrong += [first + i for i in range(len(bounds) - 1) if not _is_utf8(self.name(first + i))]
        return wrong


def sorted_names(names: Any, keep: npt.NDArray[np.bool_] | None = None) -> tuple[Vocabulary, Ids]:
    """Sort names and give each its final id; equal ones are merged.

    Parameters
    ----------
    names
        An Arrow array of bytes.
    keep
        bool[n], which names to keep; the others get the id -1.

    Returns
    -------
    The vocabulary and int32[n], the id of each name in it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    # `pa.array` imports pandas where that is installed, so it is for rare cases.
    kept = np.arange(len(names)) if keep is None else np.flatnonzero(keep)
    kept_names = names if keep is None else names.filter(pa.array(keep))
    order = pc.array_sort_indices(kept_names)
    ordered = kept_names.take(order)
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = np.from_dlpack(pc.not_equal(ordered[1:], ordered[:-1]).cast("int8"))
    ids = np.full(len(names), -1, dtype=np.int32)
    ids[kept[np.from_dlpack(order)]] = np.cumsum(is_new) - 1
    return Vocabulary.of_arrow(ordered if is_new.all() else ordered.filter(pa.array(is_new))), ids


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


@inlined
def addresses(table: Any) -> Any:
    """Return a table as `find` takes it: passing its arrays for each name would take longer than the search."""
    slots, _, offsets, _, names = table
    return slots.ctypes.data, np.uint64(len(slots) - 1), offsets.ctypes.data, names.ctypes.data


@kernel
def add(data: Any, start: Any, end: Any, value: Any, slot: Any, table: Any, count: Any, line: Any) -> Any:
    """Give data[start:end] the id `count` and return it; `slot` is what `find` returned."""
    slots, hashes, offsets, lines, names = table
    slots[-1 - slot] = (value & _UPPER) | np.uint64(count + 1)
    hashes[count] = value
    lines[count] = line
    begin = offsets[count]
    for k in range(end - start):
        names[begin + k] = data[start + k]
    offsets[count + 1] = begin + end - start
    return count


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
def intern_all(data: Any, bounds: Any, table: Any, count: Any, ids: Any, key: Any) -> Any:
    """Find or add the names data[bounds[i]:bounds[i + 1]]; return the new count of names."""
    text, at, seed, factor = data.ctypes.data, addresses(table), key[0], key[1]
    for i in range(len(bounds) - 1):
        start, end = bounds[i], bounds[i + 1]
        value = hash_bytes(text + start, text + end, seed, factor)
        name_id = find(text + start, end - start, value, *at)
        if name_id < 0:
            name_id = add(data, start, end, value, name_id, table, count, 0)
            count += 1
        ids[i] = name_id
    return count
