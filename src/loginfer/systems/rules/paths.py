"""Is there a path: the steps of a graph, and kernels that follow paths of up to three of them.

A step is a directed relation 2·R + d: with d = 0 it goes from subject to object, with d = 1 back; so `^ 1`
turns it round. A path's entities are start, those in between, end. With `distinct` they all differ from one
another and from a further entity, the `other` constant of an acyclic rule's head; without, they may be
anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.kernels import EMPTY, find_slot, inlined, kernel, lower_bound
from loginfer.kg import KnowledgeGraph
from loginfer.kg.graph import RelationIndex, run_starts
from loginfer.kg.vocabulary import offsets_of
from loginfer.systems.rules.mined import NONE

Ids = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
# A number: a Python int outside, an int64 inside. All numbers that functions hand to one another are int64, so
# that each function is compiled once.
Int: TypeAlias = Any

_NONE = np.int64(NONE)
# If a list is this many times as long, looking numbers up in it is quicker than going along it.
_LONGER = 8


# -- the steps of a graph ---------------------------------------------------------------------------


class Edges(NamedTuple):
    """The steps of a graph by entity, and once more by step.

    An entity has few relations in a graph with many: to look a step up, one searches among its own. That
    takes memory for each triple only, not for each entity and relation.

    Parameters
    ----------
    groups
        int64[entities + 1], where the groups of an entity begin: its steps along one directed relation each.
    group_step, group_start
        int64[g + 1], the directed relation of each group, ascending for an entity, and where it begins in
        `ends`; the last row says where all end.
    ends
        int32[2n], where steps lead, ascending in each group.
    spans, sources, targets
        See `steps_by_relation`.
    """

    groups: Longs
    group_step: Longs
    group_start: Longs
    ends: Ids
    spans: Longs
    sources: Ids
    targets: Ids


def edges_of(graph: KnowledgeGraph) -> Edges:
    """Return the steps of a graph."""
    steps, pointers = graph.steps.steps, graph.steps.pointers
    first = run_starts(steps)
    first[pointers[:-1][np.diff(pointers) > 0]] = True
    starts = np.flatnonzero(first)
    return Edges(
        np.searchsorted(starts, pointers).astype(np.int64),
        np.append(steps[starts], 2 * len(graph.relations)).astype(np.int64),
        np.append(starts, len(steps)).astype(np.int64),
        graph.steps.ends,
        *steps_by_relation(graph.index),
    )


def steps_by_relation(index: RelationIndex) -> tuple[Longs, Ids, Ids]:
    """Return all steps sorted by directed relation, source and target.

    Returns
    -------
    tuple
        int64[2·relations, 2], where those of a directed relation begin and end in int32[2n] sources and
        int32[2n] targets.
    """
    bounds = index.offsets[:, None] + np.array([0, index.size])
    spans = np.stack([bounds[:-1], bounds[1:]], axis=2).reshape(-1, 2)
    return spans, np.concatenate([index.subjects, index.inverse_objects]), index.columns


class NeighbourLists(NamedTuple):
    """The neighbours of each entity, ascending, and the step that leads to each; ties by step.

    Parameters
    ----------
    pointers
        int64[entities + 1], where an entity's neighbours begin.
    ends, steps
        int32[m]. Every triple is there from both ends.
    """

    pointers: Longs
    ends: Ids
    steps: Ids


def neighbours_of(graph: KnowledgeGraph, *, loops: bool) -> NeighbourLists:
    """Return the neighbours of each entity, without types; `loops` says whether (x, R, x) makes x its own neighbour."""
    entities, by_entity = len(graph.entities), graph.steps
    starts = np.repeat(np.arange(entities), np.diff(by_entity.pointers))
    kept = by_entity.steps >> 1 != (-1 if graph.type_relation is None else graph.type_relation)
    if not loops:
        kept &= by_entity.ends != starts
    starts, ends, steps = starts[kept], by_entity.ends[kept], by_entity.steps[kept]
    # Start, end and step in one number might not fit into 64 bits; but steps ascend already.
    order = np.argsort(starts * entities + ends, kind="stable")
    return NeighbourLists(offsets_of(np.bincount(starts, minlength=entities)), ends[order], steps[order])


# -- whether a path exists --------------------------------------------------------------------------


@inlined
def steps_from(edges: Edges, entity: Int, step: Int) -> tuple[Int, Int]:
    """Return where the steps of one kind from an entity begin and end in `edges.ends`."""
    last = edges.groups[entity + 1]
    group = lower_bound(edges.group_step, edges.groups[entity], last, step)
    if group < last and edges.group_step[group] == step:
        return edges.group_start[group], edges.group_start[group + 1]
    return np.int64(0), np.int64(0)


@inlined
def _hidden_end(entity: Int, step: Int, start: Int, end: Int, hidden: Int) -> Int:
    """Return where a step from an entity must not lead: along the triple (start, hidden, end)."""
    if step >> 1 == hidden:
        if step & 1 == 0 and entity == start:
            return end
        if step & 1 == 1 and entity == end:
            return start
    return _NONE


@kernel
def _meet(ends: Ids, low: Int, high: Int, to_low: Int, to_high: Int, a: Int, b: Int, c: Int, d: Int) -> bool:
    """Say whether two ascending lists have a number in common that is none of four."""
    if high - low > to_high - to_low:
        low, high, to_low, to_high = to_low, to_high, low, high
    look_up = to_high - to_low > _LONGER * (high - low)
    while low < high and to_low < to_high:
        value = ends[low]
        if look_up:
            to_low = lower_bound(ends, to_low, to_high, value)
            if to_low == to_high:
                return False
        if ends[to_low] < value:
            to_low += 1
            continue
        if ends[to_low] == value and not (value == a) | (value == b) | (value == c) | (value == d):
            return True
        low += 1
    return False


@kernel
def path_exists(
    edges: Edges, start: Int, end: Int, other: Int, first: Int, second: Int, third: Int, distinct: bool, hidden: Int
) -> bool:
    """Say whether a path along up to three directed relations leads from start to end, NONE for anywhere.

    That start, end and other differ where they must is for the caller to check. The path must not use the
    triple (start, hidden, end); NONE for no such triple.
    """
    if first == NONE:
        return True
    low, high = steps_from(edges, start, first)
    if low == high:
        return False
    if end == NONE:
        return _leads_anywhere(edges, low, high, start, other, second, third, distinct)
    if second == NONE:
        position = lower_bound(edges.ends, low, high, end)
        leads_there = position < high and edges.ends[position] == end
        return bool(leads_there and _hidden_end(start, first, start, end, hidden) != end)
    to_low, to_high = steps_from(edges, end, (second if third == NONE else third) ^ 1)
    return joined(edges, low, high, to_low, to_high, start, end, other, first, second, third, distinct, hidden)


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
    first: Int,
    second: Int,
    third: Int,
    distinct: bool,
    hidden: Int,
) -> bool:
    """Say whether first steps and, from the end, last steps taken back belong to a path of two or three."""
    # Where the steps from either end must not lead.
    near = _hidden_end(start, first, start, end, hidden)
    far = _hidden_end(end, (second if third == NONE else third) ^ 1, start, end, hidden)
    if third == NONE:
        if distinct:
            return _meet(edges.ends, low, high, to_low, to_high, start, end, other, _NONE)
        return _meet(edges.ends, low, high, to_low, to_high, near, far, _NONE, _NONE)
    middle = second
    if to_high - to_low < high - low:
        low, high, to_low, to_high = to_low, to_high, low, high
        near, far = far, near
        middle = second ^ 1
    for position in range(low, high):
        entity = np.int64(edges.ends[position])
        if (entity == start) | (entity == end) | (entity == other) if distinct else entity == near:
            continue
        next_low, next_high = steps_from(edges, entity, middle)
        if next_low == next_high:
            continue
        a, b, c, d = start, end, other, entity
        if not distinct:
            a, b, c, d = _hidden_end(entity, middle, start, end, hidden), far, _NONE, _NONE
        if _meet(edges.ends, next_low, next_high, to_low, to_high, a, b, c, d):
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
    for position in range(low, high):
        entity = np.int64(edges.ends[position])
        if (entity == s) | (entity == o):
            continue
        if second == NONE:
            return True
        h = entity if distinct else _NONE
        if third == NONE:
            if _any_step(edges, entity, second, s, o, h, _NONE):
                return True
            continue
        next_low, next_high = steps_from(edges, entity, second)
        for behind in range(next_low, next_high):
            second_entity = np.int64(edges.ends[behind])
            if (second_entity == s) | (second_entity == o) | (second_entity == h):
                continue
            if _any_step(edges, second_entity, third, s, o, h, second_entity if distinct else _NONE):
                return True
    return False


@inlined
def _any_step(edges: Edges, start: Int, step: Int, a: Int, b: Int, c: Int, d: Int) -> bool:
    """Say whether a step leads to an entity that is none of four."""
    low, high = steps_from(edges, start, step)
    for position in range(low, high):
        end = edges.ends[position]
        if not (end == a) | (end == b) | (end == c) | (end == d):
            return True
    return False


# -- where paths lead -------------------------------------------------------------------------------


def new_scratch(entities: int) -> Ids:
    """Return int32[6, entities + 1], what `path_ends` needs.

    Rows: marks on ends, with the last mark behind them; marks on middle entities; the middle entities; two
    entities before each of them; and the ends that are found.
    """
    return np.zeros((6, entities + 1), dtype=np.int32)


@kernel
def path_ends(
    edges: Edges, start: Int, other: Int, first: Int, second: Int, third: Int, distinct: bool, scratch: Ids
) -> Int:
    """Write the distinct entities to which paths from start lead into the last row of `scratch`.

    Returns
    -------
    int
        How many there are.
    """
    marks, ends = scratch[0], scratch[5]
    marks[-1] += 1
    mark = marks[-1]
    s = o = _NONE
    if distinct:
        s, o = start, other
    low, high = steps_from(edges, start, first)
    size = 0
    if third != NONE:
        count = _middles(edges, low, high, s, o, second, distinct, scratch)
        return _behind_middles(edges, count, s, o, third, distinct, scratch)
    for position in range(low, high):
        entity = np.int64(edges.ends[position])
        if (entity == s) | (entity == o):
            continue
        if second == NONE:
            ends[size] = entity
            size += 1
            continue
        h = entity if distinct else _NONE
        next_low, next_high = steps_from(edges, entity, second)
        for behind in range(next_low, next_high):
            end = edges.ends[behind]
            if not (marks[end] == mark) | (end == s) | (end == o) | (end == h):
                marks[end] = mark
                ends[size] = end
                size += 1
    return size


# A path of three steps could be found once for each pair of entities in between. So each middle entity, the
# second of the two, is met once: an end is reached through it if one of the entities before it differs from
# the end, and of these two are enough to know that.


@kernel
def _middles(edges: Edges, low: Int, high: Int, s: Int, o: Int, second: Int, distinct: bool, scratch: Ids) -> Int:
    """Write the middle entities, and up to two entities before each; return how many."""
    marks, middles, before, before_too = scratch[1], scratch[2], scratch[3], scratch[4]
    mark = scratch[0, -1]
    count = 0
    for position in range(low, high):
        entity = np.int64(edges.ends[position])
        if (entity == s) | (entity == o):
            continue
        h = entity if distinct else _NONE
        next_low, next_high = steps_from(edges, entity, second)
        for behind in range(next_low, next_high):
            middle = edges.ends[behind]
            if (middle == s) | (middle == o) | (middle == h):
                continue
            if marks[middle] != mark:
                marks[middle] = mark
                middles[count] = middle
                count += 1
                before[middle] = entity
                before_too[middle] = NONE
            elif before_too[middle] == NONE:
                before_too[middle] = entity
    return count


@kernel
def _behind_middles(edges: Edges, count: Int, s: Int, o: Int, third: Int, distinct: bool, scratch: Ids) -> Int:
    """Write the ends behind the middle entities; return how many."""
    marks, middles, before, before_too, ends = scratch[0], scratch[2], scratch[3], scratch[4], scratch[5]
    mark = marks[-1]
    size = 0
    for number in range(count):
        middle = np.int64(middles[number])
        m = only = _NONE
        if distinct:
            m = middle
            only = np.int64(before[middle]) if before_too[middle] == NONE else _NONE
        low, high = steps_from(edges, middle, third)
        for position in range(low, high):
            end = edges.ends[position]
            if not (marks[end] == mark) | (end == s) | (end == o) | (end == m) | (end == only):
                marks[end] = mark
                ends[size] = end
                size += 1
    return size


@kernel
def path_starts(edges: Edges, other: Int, first: Int, second: Int, third: Int, distinct: bool, scratch: Ids) -> Int:
    """Write the entities from which a path leads anywhere into the last row of `scratch`.

    Returns
    -------
    int
        How many there are.
    """
    starts = scratch[5]
    begin, size = edges.spans[first, 0], 0
    for position in range(begin, edges.spans[first, 1]):
        entity = np.int64(edges.sources[position])
        if (size > 0 and starts[size - 1] == entity) or (distinct and entity == other):
            continue
        if second == NONE:
            end = edges.targets[position]
            bears = not (distinct and (end == entity) | (end == other))
        else:
            # The first of its steps asks for all of them.
            seen = position > begin and edges.sources[position - 1] == entity
            bears = not seen and path_exists(edges, entity, _NONE, other, first, second, third, distinct, _NONE)
        if bears:
            starts[size] = entity
            size += 1
    return size


# -- which bodies lead from pair to pair ------------------------------------------------------------


class BodyCounts(NamedTuple):
    """A hash table of bodies, and for how many pairs of entities each was found.

    Parameters
    ----------
    keys
        int64[power of 2], bodies as numbers with a digit for each step; EMPTY for an empty slot.
    counts, last
        int32[…], how many pairs each body has, and the last of them.
    size
        int64[1], how many bodies there are; up to half of the slots are used.
    """

    keys: Longs
    counts: Ids
    last: Ids
    size: Longs


@kernel
def body_counts(slots: int) -> BodyCounts:
    """Return an empty table."""
    return BodyCounts(
        np.full(slots, EMPTY, dtype=np.int64),
        np.zeros(slots, dtype=np.int32),
        np.full(slots, NONE, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
    )


@inlined
def count_body(bodies: BodyCounts, body: Int, pair: Int, always: bool) -> None:
    """Count a body once for a pair, or `always`; it is left out if the table is full."""
    slot = find_slot(bodies.keys, body)
    if bodies.keys[slot] == EMPTY:
        if 2 * bodies.size[0] >= len(bodies.keys):
            return
        bodies.size[0] += 1
        bodies.keys[slot] = body
    if always or bodies.last[slot] != pair:
        bodies.last[slot] = pair
        bodies.counts[slot] += 1


@kernel
def with_more_slots(bodies: BodyCounts) -> BodyCounts:
    """Return a table twice as large with the same bodies."""
    larger = body_counts(2 * len(bodies.keys))
    larger.size[0] = bodies.size[0]
    for old in range(len(bodies.keys)):
        if bodies.keys[old] != EMPTY:
            slot = find_slot(larger.keys, bodies.keys[old])
            larger.keys[slot] = bodies.keys[old]
            larger.counts[slot], larger.last[slot] = bodies.counts[old], bodies.last[old]
    return larger


def counted_bodies(bodies: BodyCounts) -> tuple[Longs, Longs]:
    """Return the bodies of a table, ascending, and for how many pairs each was found."""
    used = np.flatnonzero(bodies.keys != EMPTY)
    used = used[np.argsort(bodies.keys[used])]
    return bodies.keys[used], bodies.counts[used].astype(np.int64)
