"""A hash table that counts int64 keys, for use inside kernels.

`slots` is int64[2 · capacity], key and count side by side, so that one cache line serves a look-up; the
capacity is a power of two and an empty slot has the key -1. A table in use is the pair `slots`, `used`:

    used += add(slots, key, amount)
    if 2 * used >= slots.size // 2: slots = grown(slots)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined, kernel

__all__ = ["add", "entries", "grown", "new_counter"]

Longs = npt.NDArray[np.int64]

EMPTY = -1
# 2⁶⁴ divided by the golden ratio: multiplication by it spreads neighbouring keys over the high bits.
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
HIGH = np.uint64(32)


@kernel
def new_counter(capacity: int) -> Longs:
    """Return an empty table of `capacity` slots, a power of two up to 2³¹."""
    slots = np.zeros(2 * capacity, dtype=np.int64)
    slots[::2] = EMPTY
    return slots


@inlined
def add(slots: Longs, key: int, amount: int) -> int:
    """Add to the count of a key; return 1 if the key is new, else 0."""
    mask = slots.size // 2 - 1
    place = np.int64((np.uint64(key) * MULTIPLIER) >> HIGH) & mask
    while True:
        found = slots[2 * place]
        if found == key:
            slots[2 * place + 1] += amount
            return 0
        if found == EMPTY:
            slots[2 * place] = key
            slots[2 * place + 1] = amount
            return 1
        place = (place + 1) & mask


@kernel
def grown(slots: Longs) -> Longs:
    """Return a table of twice the size with the same counts."""
    larger = new_counter(slots.size)
    for i in range(0, slots.size, 2):
        if slots[i] != EMPTY:
            add(larger, slots[i], slots[i + 1])
    return larger


@kernel
def entries(slots: Longs) -> tuple[Longs, Longs]:
    """Return the keys and counts, in no particular order."""
    count = 0
    for i in range(0, slots.size, 2):
        count += slots[i] != EMPTY
    keys = np.empty(count, dtype=np.int64)
    amounts = np.empty(count, dtype=np.int64)
    count = 0
    for i in range(0, slots.size, 2):
        if slots[i] != EMPTY:
            keys[count] = slots[i]
            amounts[count] = slots[i + 1]
            count += 1
    return keys, amounts
