"""Compiled loops of the materialisation.

A pair (s, o) is one int64 key, `s << 32 | o`; the extension of a relation is a sorted array of distinct keys.
An adjacency is (pointers, values): the neighbours of x are `values[pointers[x]:pointers[x + 1]]`.
A frontier is an array of keys (start, reached), grouped by ascending start, distinct but in any order within
one start.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.compiled import kernel
from loginfer.engine.native.bits import trailing_zeros

__all__ = [
    "absorb",
    "adjacency",
    "bitmaps",
    "expand",
    "fresh",
    "merge",
    "place",
    "semijoin",
    "split",
    "swapped",
    "work",
]

Keys = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

LOW = np.int64(0xFFFFFFFF)
PATIENCE = 1 << 30


@kernel
def split(triples: Ids, offsets: Keys, size: int) -> Keys:
    """Return the pairs of some relations, one relation after the other, each sorted.

    Parameters
    ----------
    triples
        int32[n, 3], sorted by subject, relation, object.
    offsets
        int64[relations], where each relation's pairs shall begin; -1 for those that are not wanted.
        Advanced in place to where they end.
    size
        How many pairs there are in all.
    """
    keys = np.empty(size, dtype=np.int64)
    for i in range(len(triples)):
        relation = triples[i, 1]
        place = offsets[relation]
        if place >= 0:
            keys[place] = (np.int64(triples[i, 0]) << 32) | np.int64(triples[i, 2])
            offsets[relation] = place + 1
    return keys


@kernel
def adjacency(keys: Keys, entities: int, inverse: bool) -> tuple[Ids, Ids]:
    """Return row pointers int32[entities + 1] and values of a relation or of its inverse, rows ascending."""
    shift = 0 if inverse else 32
    pointers = np.zeros(entities + 1, dtype=np.int32)
    for key in keys:
        pointers[((key >> shift) & LOW) + 1] += 1
    for x in range(entities):
        pointers[x + 1] += pointers[x]
    values = np.empty(len(keys), dtype=np.int32)
    if inverse:
        # A stable counting sort: subjects stay ascending within each object.
        for key in keys:
            o = key & LOW
            values[pointers[o]] = key >> 32
            pointers[o] += 1
        for x in range(entities, 0, -1):
            pointers[x] = pointers[x - 1]
        pointers[0] = 0
    else:
        for i in range(len(keys)):
            values[i] = keys[i] & LOW
    return pointers, values


@kernel
def swapped(keys: Keys, entities: int) -> Keys:
    """Return the pairs (o, s), sorted, of sorted pairs (s, o)."""
    ends = np.zeros(entities + 1, dtype=np.int64)
    for key in keys:
        ends[(key & LOW) + 1] += 1
    for x in range(entities):
        ends[x + 1] += ends[x]
    made = np.empty(len(keys), dtype=np.int64)
    for key in keys:
        o = key & LOW
        made[ends[o]] = (o << 32) | (key >> 32)
        ends[o] += 1
    return made


@kernel
def _first_at_least(keys: Keys, wanted: int, low: int) -> int:
    """Return the first place ≥ low whose key is ≥ wanted; cheap if it is near `low`."""
    step = 1
    high = low
    while high < len(keys) and keys[high] < wanted:
        low = high + 1
        high += step
        step *= 2
    high = min(high, len(keys))
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def fresh(candidates: Keys, base: Keys, recent: Keys) -> Keys:
    """Return the distinct ones of sorted candidates that are in neither of two sorted arrays."""
    out = np.empty(len(candidates), dtype=np.int64)
    n = a = b = 0
    last = np.int64(-1)
    for key in candidates:
        if key == last:
            continue
        last = key
        a = _first_at_least(base, key, a)
        if a < len(base) and base[a] == key:
            continue
        b = _first_at_least(recent, key, b)
        if b < len(recent) and recent[b] == key:
            continue
        out[n] = key
        n += 1
    return out[:n].copy()


@kernel
def merge(left: Keys, left_depth: Ids, right: Keys, right_depth: Ids) -> tuple[Keys, Ids]:
    """Merge two disjoint sorted arrays of keys with the depths that go with them."""
    keys = np.empty(len(left) + len(right), dtype=np.int64)
    depth = np.empty(len(keys), dtype=np.int32)
    i = j = 0
    for n in range(len(keys)):
        if j == len(right) or (i < len(left) and left[i] < right[j]):
            keys[n] = left[i]
            depth[n] = left_depth[i]
            i += 1
        else:
            keys[n] = right[j]
            depth[n] = right_depth[j]
            j += 1
    return keys, depth


@kernel
def absorb(member: Flags, candidates: Ids) -> Ids:
    """Add candidates to a set of entities, `member`; return those that were not in it."""
    out = np.empty(len(candidates), dtype=np.int32)
    n = 0
    for x in candidates:
        if not member[x]:
            member[x] = True
            out[n] = x
            n += 1
    return out[:n].copy()


@kernel
def semijoin(nodes: Ids, pointers: Ids, values: Ids, allowed: Flags) -> Ids:
    """Return the nodes that have an allowed neighbour."""
    out = np.empty(len(nodes), dtype=np.int32)
    n = 0
    for x in nodes:
        for k in range(pointers[x], pointers[x + 1]):
            if allowed[values[k]]:
                out[n] = x
                n += 1
                break
    return out[:n].copy()


@kernel
def work(frontier: Keys, pointers: Ids) -> int:
    """Return how many neighbours the nodes of a frontier have, repetitions counted."""
    total = 0
    for key in frontier:
        y = key & LOW
        total += pointers[y + 1] - pointers[y]
    return total


@kernel
def bitmaps(pointers: Ids, values: Ids, least: int) -> tuple[Ids, Words]:
    """Return the long rows of an adjacency as bitmaps.

    Parameters
    ----------
    pointers, values
        The adjacency.
    least
        How many neighbours make a row long.

    Returns
    -------
        int32[entities], the place of each entity's bitmap or -1, and uint64[long rows, words].
    """
    entities = len(pointers) - 1
    places = np.full(entities, -1, dtype=np.int32)
    n = 0
    for x in range(entities):
        if pointers[x + 1] - pointers[x] >= least:
            places[x] = n
            n += 1
    words = np.zeros((n, (entities + 63) >> 6), dtype=np.uint64)
    for x in range(entities):
        row = places[x]
        if row >= 0:
            for k in range(pointers[x], pointers[x + 1]):
                z = values[k]
                words[row, z >> 6] |= np.uint64(1) << np.uint64(z & 63)
    return places, words


@kernel
def expand(
    frontier: Keys,
    first: int,
    room: int,
    pointers: Ids,
    values: Ids,
    long_rows: Ids,
    long_words: Words,
    allowed: Flags,
    seen: Ids,
    stamp: int,
    base: Keys,
    recent: Keys,
) -> tuple[Keys, int, int]:
    """Go one step from every node of a frontier and keep each node once per start.

    Two sorted arrays of known pairs are subtracted: by marking a start's known row before the step where
    that costs less than the step itself, else by looking up what was reached. So the result of a closure
    is never written down twice, and a start with one new neighbour does not pay for its whole row. A start
    with much to go through adds up bitmaps of long rows: a closure of n nodes then costs n³ / 64, not n³.

    Parameters
    ----------
    frontier
        Keys (start, reached).
    first, room
        Begin with the key at `first`; stop before the next start once more than `room` keys are made, or
        `PATIENCE` steps: nothing can interrupt a kernel.
    pointers, values
        Where a step leads.
    long_rows, long_words
        The same for entities with many neighbours, as bitmaps; both empty if there are none.
    allowed
        bool[entities], which nodes may be reached.
    seen, stamp
        int32[entities], scratch: nodes marked with a number above `stamp` count as reached.
    base, recent
        Known pairs (start, reached), sorted.

    Returns
    -------
        The keys (start, reached), the place in the frontier where to continue, the last stamp used.
    """
    out = np.empty(max(1024, min(room, len(frontier))), dtype=np.int64)
    words = np.zeros(long_words.shape[1], dtype=np.uint64)
    one = np.uint64(1)
    n = a = b = 0
    i = first
    done = 0
    while i < len(frontier) and n <= room and done <= PATIENCE:
        start = frontier[i] >> 32
        begin = i
        steps = 0
        while i < len(frontier) and frontier[i] >> 32 == start:
            y = frontier[i] & LOW
            steps += pointers[y + 1] - pointers[y]
            i += 1
        if steps == 0:
            continue
        done += steps
        needed = n + min(steps, len(allowed))
        if needed > len(out):
            grown = np.empty(max(needed, 2 * len(out)), dtype=np.int64)
            grown[:n] = out[:n]
            out = grown
        a = _first_at_least(base, start << 32, a)
        a_end = _first_at_least(base, (start + 1) << 32, a)
        b = _first_at_least(recent, start << 32, b)
        b_end = _first_at_least(recent, (start + 1) << 32, b)
        known = (a_end - a) + (b_end - b)
        if len(words) and steps >= 4 * len(words) + known:
            for j in range(begin, i):
                y = frontier[j] & LOW
                row = long_rows[y]
                if row >= 0:
                    for w in range(len(words)):
                        words[w] |= long_words[row, w]
                else:
                    for k in range(pointers[y], pointers[y + 1]):
                        z = values[k]
                        words[z >> 6] |= one << np.uint64(z & 63)
            for k in range(a, a_end):
                z = base[k] & LOW
                words[z >> 6] &= ~(one << np.uint64(z & 63))
            for k in range(b, b_end):
                z = recent[k] & LOW
                words[z >> 6] &= ~(one << np.uint64(z & 63))
            for w in range(len(words)):
                word = words[w]
                while word:
                    z = (w << 6) + np.int64(trailing_zeros(word))
                    word &= word - one
                    if allowed[z]:
                        out[n] = (start << 32) | z
                        n += 1
                words[w] = 0
            a, b = a_end, b_end
            continue
        stamp += 1
        marking = 8 * steps >= known
        if marking:
            for k in range(a, a_end):
                seen[base[k] & LOW] = stamp
            for k in range(b, b_end):
                seen[recent[k] & LOW] = stamp
        for j in range(begin, i):
            y = frontier[j] & LOW
            for k in range(pointers[y], pointers[y + 1]):
                z = values[k]
                if seen[z] == stamp or not allowed[z]:
                    continue
                seen[z] = stamp
                key = (start << 32) | np.int64(z)
                if not marking:
                    p = _first_at_least(base[a:a_end], key, 0)
                    if p < a_end - a and base[a + p] == key:
                        continue
                    p = _first_at_least(recent[b:b_end], key, 0)
                    if p < b_end - b and recent[b + p] == key:
                        continue
                out[n] = key
                n += 1
        a, b = a_end, b_end
    return out[:n].copy(), i, stamp


@kernel
def place(keys: Keys, depth: Ids, relation: int, ends: Keys, triples: Ids, depths: Ids) -> None:
    """Write a relation's derived pairs (depth > 0) into the places of their subjects.

    Called for one relation after the other, in ascending order, with `ends` saying where each subject's
    next triple goes: a counting sort by subject that leaves subject, relation, object in order.
    """
    for i in range(len(keys)):
        if depth[i] > 0:
            s = keys[i] >> 32
            at = ends[s]
            triples[at, 0] = s
            triples[at, 1] = relation
            triples[at, 2] = keys[i] & LOW
            depths[at] = depth[i]
            ends[s] = at + 1
