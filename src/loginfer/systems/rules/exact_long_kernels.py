"""Closed paths of three steps: which bodies there are between the pairs of a head, and what they predict."""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.compiled import inlined, kernel
from loginfer.systems.rules.exact_kernels import EMPTY, Ints, Longs, grown, slot_of
from loginfer.systems.rules.sorted_lists import gallop

__all__ = ["closed_paths_of_three", "count_predictions", "steps_between", "walks_of_three"]


@inlined
def _mixed(value: Any) -> Any:
    """Return 64 random bits that depend on the value: the finaliser of SplitMix64."""
    bits = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@inlined
def _drawn(salt: Any, number: int, below: int) -> Any:
    """Return the number-th random number from 0 up to, not including, `below`."""
    return np.int64((_mixed(_mixed(np.uint64(number)) ^ salt) >> np.uint64(11)) % np.uint64(below))


@kernel
def walks_of_three(starts: Longs, neighbours: Ints) -> float:
    """Return how many walks of three steps there are, all directions and starts counted."""
    total = 0.0
    for entity in range(len(starts) - 1):
        ways = 0
        for place in range(starts[entity], starts[entity + 1]):
            ways += starts[neighbours[place] + 1] - starts[neighbours[place]]
        total += float(ways) * (starts[entity + 1] - starts[entity])
    return total


@kernel
def steps_between(subjects: Ints, objects: Ints, starts: Longs, neighbours: Ints) -> Longs:
    """Return int64[p]: how many steps it takes to look for all closed paths between each pair."""
    steps = np.zeros(len(subjects), dtype=np.int64)
    for pair in range(len(subjects)):
        x, y = subjects[pair], objects[pair]
        size = starts[y + 1] - starts[y]
        for place in range(starts[x], starts[x + 1]):
            a = neighbours[place]
            steps[pair] += 1 + min(size, starts[a + 1] - starts[a])
    return steps


@kernel
def closed_paths_of_three(
    subjects: Ints,
    objects: Ints,
    starts: Longs,
    neighbours: Ints,
    steps: Ints,
    directed: int,
    share: int,
    salt: np.uint64,
) -> tuple[Longs, Longs]:
    """Return bodies (b1, b2, b3) between the pairs of a head, and for each how many pairs it connects.

    Parameters
    ----------
    subjects, objects
        int32[p], the pairs, without loops.
    starts, neighbours, steps
        For each entity its neighbours, ascending, and the directed relation that leads to each.
    directed
        How many directed relations there are.
    share
        0: all paths, and the counts are exact. Otherwise pairs and first steps are drawn at random until so
        many paths and comparisons have been made, and a pair that is drawn again counts again.
    salt
        Chooses what is drawn.

    Returns
    -------
    tuple
        int64[k] codes (b1 · directed + b2) · directed + b3, and int64[k] counts.
    """
    shift, used, work, draws = 54, 0, 0, 0
    keys = np.full(2**10, EMPTY, dtype=np.int64)
    counts, stamps = np.zeros(2**10, dtype=np.int32), np.full(2**10, -1, dtype=np.int32)
    pair = 0
    first = starts[subjects[0]]
    while pair < len(subjects):
        if share:
            if work >= share:
                break
            pair = _drawn(salt, 2 * draws, len(subjects))
            x = subjects[pair]
            first = starts[x] + _drawn(salt, 2 * draws + 1, starts[x + 1] - starts[x])
            draws += 1
        x, y, a = subjects[pair], objects[pair], neighbours[first]
        if a != y:
            turned = starts[a + 1] - starts[a] > starts[y + 1] - starts[y]
            few, many = (y, a) if turned else (a, y)
            i, stop = starts[few], starts[few + 1]
            j, end = starts[many], starts[many + 1]
            while i < stop and j < end:
                b = neighbours[i]
                work += 1
                j = gallop(neighbours, j, end, b)
                if b == x or j == end or neighbours[j] != b:
                    i += 1
                    continue
                beyond = j
                while beyond < end and neighbours[beyond] == b:
                    beyond += 1
                while i < stop and neighbours[i] == b:
                    work += beyond - j
                    for k in range(j, beyond):
                        second, third = (steps[k], steps[i]) if turned else (steps[i], steps[k])
                        code = (np.int64(steps[first]) * directed + second) * directed + (third ^ 1)
                        slot = slot_of(keys, code, shift)
                        if keys[slot] == EMPTY:
                            keys[slot] = code
                            used += 1
                        if share or stamps[slot] != pair:
                            stamps[slot] = pair
                            counts[slot] += 1
                        if 2 * used > len(keys):
                            keys, counts, stamps = grown(keys, counts, stamps, shift)
                            shift -= 1
                    i += 1
                j = beyond
        if share:
            work += 1
        else:
            first += 1
            if first == starts[x + 1]:
                pair += 1
                if pair < len(subjects):
                    first = starts[subjects[pair]]
    found = np.flatnonzero(keys != EMPTY)
    return keys[found], counts[found].astype(np.int64)


@kernel
def count_predictions(
    sources: Ints,
    targets: Ints,
    spans: Longs,
    pointers: Ints,
    bodies: Longs,
    heads: Longs,
    starts: Longs,
    limits: Longs,
    share: int,
    salt: np.uint64,
    stamps: Ints,
) -> tuple[Longs, Longs]:
    """Return for each body how many pairs it connects, and how many of them each of its heads has.

    Parameters
    ----------
    sources, targets
        int32[2n], the edges; those of a directed relation stand together, by source, then target.
    spans
        int64[directed, 2], where the edges of a directed relation begin and end.
    pointers
        int32[directed, entities + 1], row pointers into `targets`.
    bodies
        int64[k, 3], directed relations.
    heads, starts
        int64[m], the directed relations of the heads; those of body i are starts[i] up to starts[i + 1].
    limits
        int64[k]: a body that connects more pairs is not counted to its end.
    share
        0: all pairs. Otherwise a body with more walks than that is counted from some of its sources only, so
        many that about this many walks are made.
    salt
        Chooses the sources.
    stamps
        int32[entities], scratch.
    """
    predictions, correct = np.zeros(len(bodies), dtype=np.int64), np.zeros(len(heads), dtype=np.int64)
    ways = np.zeros(len(stamps), dtype=np.int64)
    stamps[:] = 0
    mark = 0
    for body in range(len(bodies)):
        begin, end = spans[bodies[body, 0], 0], spans[bodies[body, 0], 1]
        second, third = pointers[bodies[body, 1]], pointers[bodies[body, 2]]
        if share:
            if body == 0 or bodies[body, 1] != bodies[body - 1, 1] or bodies[body, 2] != bodies[body - 1, 2]:
                _ways_of_two(sources, targets, spans, bodies[body, 1], third, ways)
            walks = 0
            for edge in range(begin, end):
                walks += ways[targets[edge]]
            chance = share / max(walks, share)
        counted = 0
        edge = begin
        while edge < end and counted <= limits[body]:
            x = sources[edge]
            stop = edge + 1
            while stop < end and sources[stop] == x:
                stop += 1
            if share and (_mixed(np.uint64(x) ^ salt) >> np.uint64(11)) * 2.0**-53 >= chance:
                edge = stop
                continue
            mark += 1
            if mark == 2**31 - 1:
                stamps[:] = 0
                mark = 1
            stamps[x] = mark
            for first in range(edge, stop):
                a = targets[first]
                for place in range(second[a], second[a + 1]):
                    b = targets[place]
                    if b == x:
                        continue
                    for last in range(third[b], third[b + 1]):
                        y = targets[last]
                        if y != a:
                            counted += stamps[y] != mark
                            stamps[y] = mark
            for place in range(starts[body], starts[body + 1]):
                rows = pointers[heads[place]]
                for there in range(rows[x], rows[x + 1]):
                    correct[place] += stamps[targets[there]] == mark
            edge = stop
        predictions[body] = counted
    return predictions, correct


@inlined
def _ways_of_two(sources: Ints, targets: Ints, spans: Longs, second: int, third: Ints, ways: Longs) -> None:
    """Fill in how many walks with these two steps start at each entity."""
    ways[:] = 0
    for edge in range(spans[second, 0], spans[second, 1]):
        b = targets[edge]
        ways[sources[edge]] += third[b + 1] - third[b]
