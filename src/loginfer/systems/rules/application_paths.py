"""Compiled: whether a path leads from one entity to another, and where paths lead to.

A path's entities are start, those in between, end. With `distinct` they all differ from one another and from
a further entity, the `other` constant of an acyclic rule's head; without, they may be anything.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined, kernel
from loginfer.systems.rules.application_index import Edges
from loginfer.systems.rules.sorted_lists import position
from loginfer.systems.rules.values import NONE

__all__ = ["bearers", "joined", "new_scratch", "path_ends", "path_exists"]

# A number: a Python int outside, an int64 inside.
Int: TypeAlias = Any
Int32 = npt.NDArray[np.int32]

# All numbers that functions hand to one another are int64, so that each function is compiled once.
_NONE = np.int64(NONE)

# From so many times as long a list on, looking numbers up in it is quicker than going along it.
_LONGER = 8


@inlined
def _steps(edges: Edges, entity: Int, directed: Int) -> tuple[Int, Int]:
    """Return where the steps from an entity along a directed relation begin and end in `edges.ends`."""
    low, high = edges.groups[entity], edges.groups[entity + 1]
    last = high
    while low < high:
        middle = (low + high) >> 1
        if edges.group[middle, 0] < directed:
            low = middle + 1
        else:
            high = middle
    if low < last and edges.group[low, 0] == directed:
        return edges.group[low, 1], edges.group[low + 1, 1]
    return np.int64(0), np.int64(0)


@kernel
def _meet(
    ends: Int32, low: Int, high: Int, to_low: Int, to_high: Int, a: Int, b: Int, c: Int, d: Int
) -> bool:
    """Say whether two ascending lists have a number in common that is none of four."""
    if high - low > to_high - to_low:
        low, high, to_low, to_high = to_low, to_high, low, high
    look_up = to_high - to_low > _LONGER * (high - low)
    while low < high and to_low < to_high:
        value = ends[low]
        if look_up:
            to_low = position(ends, to_low, to_high, value)
            if to_low == to_high:
                return False
        if ends[to_low] < value:
            to_low += 1
            continue
        if ends[to_low] == value and not (value == a) | (value == b) | (value == c) | (value == d):
            return True
        low += 1
    return False


@inlined
def _any_step(edges: Edges, start: Int, directed: Int, a: Int, b: Int, c: Int, d: Int) -> bool:
    """Say whether a step leads to an entity that is none of four."""
    low, high = _steps(edges, start, directed)
    for place in range(low, high):
        end = edges.ends[place]
        if not (end == a) | (end == b) | (end == c) | (end == d):
            return True
    return False


@kernel
def path_exists(
    edges: Edges, start: Int, end: Int, other: Int, first: Int, second: Int, third: Int, distinct: bool
) -> bool:
    """Say whether a path along up to three directed relations leads from start to end, NONE for anywhere.

    That start, end and other differ where they must is for the caller to check.
    """
    if first == NONE:
        return True
    low, high = _steps(edges, start, first)
    if low == high:
        return False
    if end == NONE:
        return _leads_anywhere(edges, low, high, start, other, second, third, distinct)
    if second == NONE:
        place = position(edges.ends, low, high, end)
        return bool(place < high and edges.ends[place] == end)
    to_low, to_high = _steps(edges, end, (second if third == NONE else third) ^ 1)
    return joined(edges, low, high, to_low, to_high, start, end, other, second, third, distinct)


@kernel
def joined(
    edges: Edges,
    low: Int,
    high: Int,
    to_low: Int,
    to_high: Int,
    start: Int,
    end: Int,
    other: Int,
    second: Int,
    third: Int,
    distinct: bool,
) -> bool:
    """Say whether first steps and, from the end, last steps taken back belong to a path of two or three."""
    s = e = o = _NONE
    if distinct:
        s, e, o = start, end, other
    if third == NONE:
        return _meet(edges.ends, low, high, to_low, to_high, s, e, o, _NONE)
    middle = second
    if to_high - to_low < high - low:
        low, high, to_low, to_high = to_low, to_high, low, high
        middle = second ^ 1
    if low == high:
        return False
    for place in range(low, high):
        here = np.int64(edges.ends[place])
        if (here == s) | (here == e) | (here == o):
            continue
        next_low, next_high = _steps(edges, here, middle)
        if next_low < next_high and _meet(
            edges.ends, next_low, next_high, to_low, to_high, s, e, o, here if distinct else _NONE
        ):
            return True
    return False


@kernel
def _leads_anywhere(
    edges: Edges, low: Int, high: Int, start: Int, other: Int, second: Int, third: Int, distinct: bool
) -> bool:
    """Say whether one of these first steps can be followed by what is left of the path."""
    s = o = _NONE
    if distinct:
        s, o = start, other
    for place in range(low, high):
        here = np.int64(edges.ends[place])
        if (here == s) | (here == o):
            continue
        if second == NONE:
            return True
        h = here if distinct else _NONE
        if third == NONE:
            if _any_step(edges, here, second, s, o, h, _NONE):
                return True
            continue
        next_low, next_high = _steps(edges, here, second)
        for behind in range(next_low, next_high):
            there = np.int64(edges.ends[behind])
            if (there == s) | (there == o) | (there == h):
                continue
            if _any_step(edges, there, third, s, o, h, there if distinct else _NONE):
                return True
    return False


def new_scratch(entities: int) -> Int32:
    """Return int32[6, entities + 1], what `path_ends` needs.

    Rows: marks on ends, with the last mark behind them; marks on middle entities; the middle entities; two
    entities before each of them; and the ends that are found.
    """
    return np.zeros((6, entities + 1), dtype=np.int32)


@kernel
def path_ends(
    edges: Edges, start: Int, other: Int, first: Int, second: Int, third: Int, distinct: bool, scratch: Int32
) -> Int:
    """Write the distinct entities to which paths from start lead into the last row of `scratch`.

    Returns
    -------
    int
        How many there are.
    """
    marks, found = scratch[0], scratch[5]
    marks[-1] += 1
    mark = marks[-1]
    s = o = _NONE
    if distinct:
        s, o = start, other
    low, high = _steps(edges, start, first)
    size = 0
    if third != NONE:
        count = _middles(edges, low, high, s, o, second, distinct, scratch)
        return _behind_middles(edges, count, s, o, third, distinct, scratch)
    for place in range(low, high):
        here = np.int64(edges.ends[place])
        if (here == s) | (here == o):
            continue
        if second == NONE:
            found[size] = here
            size += 1
            continue
        h = here if distinct else _NONE
        next_low, next_high = _steps(edges, here, second)
        for behind in range(next_low, next_high):
            end = edges.ends[behind]
            if not (marks[end] == mark) | (end == s) | (end == o) | (end == h):
                marks[end] = mark
                found[size] = end
                size += 1
    return size


# A path of three steps could be found once for each pair of entities in between. So each middle entity, the
# second of the two, is met once: an end is reached through it if one of the entities before it differs from
# the end, and of these two are enough to know that.


@kernel
def _middles(
    edges: Edges, low: Int, high: Int, s: Int, o: Int, second: Int, distinct: bool, scratch: Int32
) -> Int:
    """Write the middle entities, and up to two entities before each; return how many."""
    marks, middles, before, before_too = scratch[1], scratch[2], scratch[3], scratch[4]
    mark = scratch[0, -1]
    count = 0
    for place in range(low, high):
        here = np.int64(edges.ends[place])
        if (here == s) | (here == o):
            continue
        h = here if distinct else _NONE
        next_low, next_high = _steps(edges, here, second)
        for behind in range(next_low, next_high):
            middle = edges.ends[behind]
            if (middle == s) | (middle == o) | (middle == h):
                continue
            if marks[middle] != mark:
                marks[middle] = mark
                middles[count] = middle
                count += 1
                before[middle] = here
                before_too[middle] = NONE
            elif before_too[middle] == NONE:
                before_too[middle] = here
    return count


@kernel
def _behind_middles(
    edges: Edges, count: Int, s: Int, o: Int, third: Int, distinct: bool, scratch: Int32
) -> Int:
    """Write the ends behind the middle entities; return how many."""
    marks, middles, before, before_too, found = scratch[0], scratch[2], scratch[3], scratch[4], scratch[5]
    mark = marks[-1]
    size = 0
    for number in range(count):
        middle = np.int64(middles[number])
        m = only = _NONE
        if distinct:
            m = middle
            only = np.int64(before[middle]) if before_too[middle] == NONE else _NONE
        low, high = _steps(edges, middle, third)
        for place in range(low, high):
            end = edges.ends[place]
            if not (marks[end] == mark) | (end == s) | (end == o) | (end == m) | (end == only):
                marks[end] = mark
                found[size] = end
                size += 1
    return size


@kernel
def bearers(
    edges: Edges, other: Int, first: Int, second: Int, third: Int, distinct: bool, scratch: Int32
) -> Int:
    """Write the entities from which a path leads anywhere into the last row of `scratch`.

    Returns
    -------
    int
        How many there are.
    """
    found = scratch[5]
    begin, size = edges.offsets[first], 0
    for place in range(begin, edges.offsets[first + 1]):
        entity = np.int64(edges.steps[place, 0])
        if (size > 0 and found[size - 1] == entity) or (distinct and entity == other):
            continue
        if second == NONE:
            end = edges.steps[place, 1]
            bears = not (distinct and (end == entity) | (end == other))
        else:
            # The first of its steps asks for all of them.
            seen = place > begin and edges.steps[place - 1, 0] == entity
            bears = not seen and path_exists(edges, entity, _NONE, other, first, second, third, distinct)
        if bears:
            found[size] = entity
            size += 1
    return size
