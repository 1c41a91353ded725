"""A growing table of names with provisional ids, and the vocabulary it becomes.

Names are copied once, when first seen, into one buffer; a name is found by its hash in a table of slots
with linear probing. Provisional ids follow the order of first appearance; `vocabulary` sorts the distinct
names and says which final id each provisional one has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from loginfer.compiled import kernel
from loginfer.kg.scan.words import hash_bytes, load_big_endian, load_word, same_bytes
from loginfer.kg.vocabulary import Vocabulary

__all__ = ["PADDING", "NameTable", "add", "find", "name_order", "padded", "vocabulary"]

T = TypeVar("T", bound=np.generic)

PADDING = 16  # bytes readable behind every buffer, for loads of whole words
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_UPPER = np.uint64(0xFFFFFFFF00000000)
_LOWER = np.uint64(0x00000000FFFFFFFF)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_THREE = np.uint64(3)


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
    data: Any,
    bounds: Any,
    slots: Any,
    hashes: Any,
    offsets: Any,
    lines: Any,
    names: Any,
    count: Any,
    ids: Any,
) -> Any:
    """Find or add the names data[bounds[i]:bounds[i + 1]]; return the new count of names."""
    mask = np.uint64(len(slots) - 1)
    text, slots_at, offsets_at, names_at = (
        data.ctypes.data,
        slots.ctypes.data,
        offsets.ctypes.data,
        names.ctypes.data,
    )
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
