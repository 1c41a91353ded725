"""Compiled: whether bodies fire for pairs of constants, and for which ends they fire from a start."""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.compiled import inlined, kernel
from loginfer.systems.rules.contrasting.bodies import (
    BOTH,
    EDGE,
    EDGE_TYPE,
    PATH2,
    PATH3,
    TRIANGLE,
    TYPED,
)
from loginfer.systems.rules.sorted_lists import gallop

__all__ = ["add_where_fired", "fired", "steps_between"]


@inlined
def _range(graph: Any, x: Any, step: Any) -> Any:
    """Return where the ends of the steps of one kind from x begin and end."""
    pointers, _, steps, _, _ = graph
    first = gallop(steps, pointers[x], pointers[x + 1], step)
    return first, gallop(steps, first, pointers[x + 1], step + 1)


@inlined
def _blocked(start: Any, step: Any, end: Any, s: Any, o: Any, hide: Any) -> Any:
    return (step >> 1) == hide and (
        (start == s and end == o and (step & 1) == 0) or (start == o and end == s and (step & 1) == 1)
    )


@inlined
def _edge(graph: Any, s: Any, step: Any, o: Any, hide: Any) -> Any:
    """Whether there is a step of one kind from s to o."""
    first, last = _range(graph, s, step)
    place = gallop(graph[1], first, last, o)
    return place < last and graph[1][place] == o and not _blocked(s, step, o, s, o, hide)


@kernel
def _two(graph: Any, x: Any, a: Any, b: Any, y: Any, distinct: Any, s: Any, o: Any, hide: Any) -> Any:
    """Whether steps a, b lead from x to y; with `distinct` over something that is none of x, y, s, o."""
    ends = graph[1]
    i, i_end = _range(graph, x, a)
    j, j_end = _range(graph, y, b ^ 1)
    while i < i_end and j < j_end:
        if ends[i] < ends[j]:
            i = gallop(ends, i, i_end, ends[j])
        elif ends[j] < ends[i]:
            j = gallop(ends, j, j_end, ends[i])
        else:
            z = ends[i]
            near = z in (s, o)
            if distinct:
                if not near and z != x and z != y:
                    return True
            elif not _blocked(x, a, z, s, o, hide) and not _blocked(z, b, y, s, o, hide):
                return True
            i += 1
            j += 1
    return False


@kernel
def _three(graph: Any, s: Any, a: Any, b: Any, c: Any, o: Any, distinct: Any, hide: Any) -> Any:
    """Whether steps a, b, c lead from s to o; with `distinct` over different constants."""
    ends = graph[1]
    first, last = _range(graph, s, a)
    other, other_last = _range(graph, o, c ^ 1)
    # From the end with fewer ways to go.
    turned = other_last - other < last - first
    if turned:
        first, last = other, other_last
    start, goal = (o, s) if turned else (s, o)
    one, two, three = (c ^ 1, b ^ 1, a ^ 1) if turned else (a, b, c)
    for place in range(first, last):
        z = ends[place]
        if (distinct and z in (s, o)) or _blocked(start, one, z, s, o, hide):
            continue
        if _two(graph, z, two, three, goal, distinct, s, o, hide):
            return True
    return False


@inlined
def _has_type(graph: Any, x: Any, wanted: Any) -> Any:
    _, _, _, type_pointers, types = graph
    place = gallop(types, type_pointers[x], type_pointers[x + 1], wanted)
    return place < type_pointers[x + 1] and types[place] == wanted


@kernel
def _typed(graph: Any, s: Any, a: Any, b: Any, c: Any, absent: Any, hide: Any) -> Any:
    """Whether s has a type, and a step to something of another type, as far as they are not absent."""
    if a != absent and (a == hide or not _has_type(graph, s, a)):
        return False
    if b == absent:
        return True
    first, last = _range(graph, s, b)
    if c == absent:
        return first < last
    for place in range(first, last):
        z = graph[1][place]
        if _has_type(graph, z, c) and not (z == s and c == hide):
            return True
    return False


@kernel
def _fires(graph: Any, body: Any, s: Any, o: Any, absent: Any, hide: Any) -> Any:
    shape, a, b, c, d = body[0], body[1], body[2], body[3], body[4]
    if shape == TYPED:
        return _typed(graph, s, a, b, c, absent, hide)
    if shape == PATH2:
        return _two(graph, s, a, b, o, False, s, o, hide)
    if shape == PATH3:
        return _three(graph, s, a, b, c, o, False, hide)
    if not _edge(graph, s, a, o, hide):
        return False
    if shape == EDGE:
        return True
    if shape == BOTH:
        return _edge(graph, s, b, o, hide)
    if shape == EDGE_TYPE:
        return _has_type(graph, s if b == 0 else o, c)
    if s == o:
        return False
    if shape == TRIANGLE:
        return _two(graph, s, b, c, o, True, s, o, hide)
    return _three(graph, s, b, c, d, o, True, hide)


@kernel
def fired(rows: Any, bodies: Any, hide: int, absent: int, graph: Any, out: Any) -> None:
    """Set out[r, b] where body b fires for row r; bodies of other shapes than ours are left alone.

    `hide` is the relation whose triple between subject and object does not count (for types: the type's
    place); -1 for none.
    """
    for row in range(len(rows)):
        for body in range(len(bodies)):
            if bodies[body, 0] <= TYPED:
                out[row, body] = _fires(graph, bodies[body], rows[row, 0], rows[row, 1], absent, hide)


@kernel
def steps_between(rows: Any, hide: int, graph: Any, steps: int) -> Any:
    """Return bool[n, steps]: the steps from subject to object of each row."""
    found = np.zeros((len(rows), steps), dtype=np.bool_)
    pointers, ends, kinds, _, _ = graph
    for row in range(len(rows)):
        s, o = rows[row, 0], rows[row, 1]
        place = gallop(ends, pointers[s], pointers[s + 1], o)
        while place < pointers[s + 1] and ends[place] == o:
            if not _blocked(s, kinds[place], o, s, o, hide):
                found[row, kinds[place]] = True
            place += 1
    return found


@inlined
def _spread(graph: Any, x: Any, step: Any, reached: Any, size: Any, stamps: Any, stamp: Any) -> Any:
    """Add the ends of the steps of one kind from x that have not been reached yet; return their number."""
    first, last = _range(graph, x, step)
    for place in range(first, last):
        y = graph[1][place]
        if stamps[y] != stamp:
            stamps[y] = stamp
            reached[size] = y
            size += 1
    return size


@inlined
def _reach(graph: Any, body: Any, s: Any, reached: Any, stamps: Any, clock: Any) -> Any:
    """List the ends for which a body fires from s; return where they begin and end in `reached`."""
    shape, a, b, c, d = body[0], body[1], body[2], body[3], body[4]
    clock[0] += 1
    size = _spread(graph, s, a, reached, 0, stamps, clock[0])
    begin = 0
    if shape in (PATH2, PATH3):
        for hop in range(2 if shape == PATH3 else 1):
            clock[0] += 1
            end = size
            for place in range(begin, end):
                step = b if hop == 0 else c
                size = _spread(graph, reached[place], step, reached, size, stamps, clock[0])
            begin = end
    if shape in (PATH2, PATH3, EDGE):
        return begin, size
    kept = begin
    for place in range(begin, size):
        y = reached[place]
        if shape == EDGE_TYPE:
            holds = _has_type(graph, s if b == 0 else y, c)
        elif shape == BOTH:
            holds = _edge(graph, s, b, y, -1)
        elif s == y:
            holds = False
        elif shape == TRIANGLE:
            holds = _two(graph, s, b, c, y, True, s, y, -1)
        else:
            holds = _three(graph, s, b, c, d, y, True, -1)
        if holds:
            reached[kept] = y
            kept += 1
    return begin, kept


@kernel
def add_where_fired(starts: Any, bodies: Any, weights: Any, graph: Any, out: Any) -> None:
    """Add the weight of each body, in order, to out[r, y] for all ends y that it reaches from starts[r]."""
    entities = out.shape[1]
    reached = np.empty(3 * entities, dtype=np.int32)
    stamps = np.zeros(entities, dtype=np.int64)
    clock = np.zeros(1, dtype=np.int64)
    for row in range(len(starts)):
        for body in range(len(bodies)):
            if bodies[body, 0] > EDGE_TYPE:
                continue
            begin, end = _reach(graph, bodies[body], starts[row], reached, stamps, clock)
            for place in range(begin, end):
                out[row, reached[place]] += weights[body]
