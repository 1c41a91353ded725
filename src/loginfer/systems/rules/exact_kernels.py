"""Counting closed paths: which bodies connect the pairs of a head, and how many pairs a body connects.

Directed relations are 2·R + d, as in a `RuleTable`; turning one round is `d ^ 1`. Loops are not among the
edges, so that two neighbours always differ, and what remains to be checked is that entities two or three
steps apart do.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined, kernel
from loginfer.systems.rules.sorted_lists import gallop

__all__ = ["EMPTY", "Ints", "Longs", "closed_paths_of_two", "count_pairs", "grown", "slot_of"]

Ints: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]

# Of a table with open addressing: 2^64 divided by the golden ratio.
SPREAD = np.uint64(0x9E3779B97F4A7C15)
EMPTY = -1


# -- a table of codes ------------------------------------------------------------------------------


@inlined
def slot_of(keys: Longs, key: int, shift: int) -> Any:
    """Return where a key is, or where there is room for it."""
    mask = len(keys) - 1
    slot = np.int64((np.uint64(key) * SPREAD) >> np.uint64(shift))
    while keys[slot] != EMPTY and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def grown(keys: Longs, counts: Ints, stamps: Ints, shift: int) -> Any:
    """Return a table twice as large with the same codes."""
    size = 2 * len(keys)
    new_keys = np.full(size, EMPTY, dtype=np.int64)
    new_counts, new_stamps = np.zeros(size, dtype=np.int32), np.full(size, -1, dtype=np.int32)
    for old in range(len(keys)):
        if keys[old] != EMPTY:
            slot = slot_of(new_keys, keys[old], shift - 1)
            new_keys[slot], new_counts[slot], new_stamps[slot] = keys[old], counts[old], stamps[old]
    return new_keys, new_counts, new_stamps


# -- bodies between the ends of a head -------------------------------------------------------------


@kernel
def closed_paths_of_two(
    subjects: Ints, objects: Ints, starts: Longs, neighbours: Ints, steps: Ints, directed: int
) -> tuple[Longs, Longs]:
    """Return the bodies (b1, b2) between the pairs of a head, and for each how many pairs it connects.

    Parameters
    ----------
    subjects, objects
        int32[p], the pairs, without loops.
    starts, neighbours, steps
        For each entity its neighbours, ascending, and the directed relation that leads to each.
    directed
        How many directed relations there are.

    Returns
    -------
    tuple
        int64[k] codes b1 · directed + b2, and int64[k] counts.
    """
    shift, used = 54, 0
    keys = np.full(2**10, EMPTY, dtype=np.int64)
    counts, stamps = np.zeros(2**10, dtype=np.int32), np.full(2**10, -1, dtype=np.int32)
    for pair in range(len(subjects)):
        # The shorter list is walked through; in the longer one the next place is sought ahead.
        x, y = subjects[pair], objects[pair]
        turned = starts[x + 1] - starts[x] > starts[y + 1] - starts[y]
        few, many = (y, x) if turned else (x, y)
        i, stop = starts[few], starts[few + 1]
        j, end = starts[many], starts[many + 1]
        while i < stop and j < end:
            middle = neighbours[i]
            j = gallop(neighbours, j, end, middle)
            if j == end or neighbours[j] != middle:
                i += 1
                continue
            beyond = j
            while beyond < end and neighbours[beyond] == middle:
                beyond += 1
            while i < stop and neighbours[i] == middle:
                for k in range(j, beyond):
                    first, second = (steps[k], steps[i]) if turned else (steps[i], steps[k])
                    code = np.int64(first) * directed + (second ^ 1)
                    slot = slot_of(keys, code, shift)
                    if keys[slot] == EMPTY:
                        keys[slot] = code
                        used += 1
                    if stamps[slot] != pair:
                        stamps[slot] = pair
                        counts[slot] += 1
                    if 2 * used > len(keys):
                        keys, counts, stamps = grown(keys, counts, stamps, shift)
                        shift -= 1
                i += 1
            j = beyond
    found = np.flatnonzero(keys != EMPTY)
    return keys[found], counts[found].astype(np.int64)


# -- pairs that a body connects --------------------------------------------------------------------


@kernel
def count_pairs(
    sources: Ints,
    targets: Ints,
    spans: Longs,
    rows: Ints,
    firsts: Longs,
    limits: Longs,
    stamps: Ints,
) -> Longs:
    """Return for each b1 how many pairs (b1, b2) connects; more than its limit: some number above it.

    Parameters
    ----------
    sources, targets
        int32[2n], the edges; those of a directed relation stand together, by source, then target.
    spans
        int64[directed, 2], where the edges of a directed relation begin and end.
    rows
        int32[entities + 1], row pointers of b2 into `targets`.
    firsts, limits
        int64[k].
    stamps
        int32[entities], scratch.
    """
    counts = np.zeros(len(firsts), dtype=np.int64)
    stamps[:] = 0
    mark = 0
    for body in range(len(firsts)):
        counted, last = 0, -1
        for edge in range(spans[firsts[body], 0], spans[firsts[body], 1]):
            x, middle = sources[edge], targets[edge]
            if x != last:
                if counted > limits[body]:
                    break
                # A mark for each source of each body: nothing need be cleared in between.
                mark, last = mark + 1, x
                if mark == 2**31 - 1:
                    stamps[:] = 0
                    mark = 1
                stamps[x] = mark
            for place in range(rows[middle], rows[middle + 1]):
                y = targets[place]
                counted += stamps[y] != mark
                stamps[y] = mark
        counts[body] = counted
    return counts
