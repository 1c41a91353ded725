"""Compiled: list the bodies that fire for pairs of constants, count them, and write down where they fire."""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.compiled import inlined, kernel
from loginfer.systems.rules.contrasting.bodies import (
    BOTH,
    DIAMOND,
    EDGE,
    EDGE_TYPE,
    PATH2,
    PATH3,
    SUBJECT_SIDE,
    TRIANGLE,
    TYPED,
)
from loginfer.systems.rules.sorted_lists import gallop

__all__ = ["enumerate_pairs", "enumerate_threes", "enumerate_types", "insert_all"]

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


# -- the table of bodies: open addressing, bodies numbered as they come ----------------------------


@inlined
def _find(keys: Any, numbers: Any, codes: Any, slots: Any, used: Any, code: Any, insert: Any) -> Any:
    """Return the number of a body, a new one if it may be inserted; -1 if it is not there."""
    bits = np.uint64(code)
    bits = (bits ^ (bits >> _30)) * _FIRST
    bits = (bits ^ (bits >> _27)) * _SECOND
    mask = len(keys) - 1
    slot = np.int64(bits ^ (bits >> _31)) & mask
    while keys[slot] != code:
        if keys[slot] == -1:
            if not insert or used[0] >= len(codes):
                return np.int64(-1)
            number = used[0]
            used[0] += 1
            keys[slot] = code
            numbers[slot] = number
            codes[number] = code
            slots[number] = slot
            return number
        slot = (slot + 1) & mask
    return np.int64(numbers[slot])


@kernel
def insert_all(codes: Any, keys: Any, numbers: Any, known: Any, slots: Any, used: Any) -> None:
    """Put bodies into the table."""
    for place in range(len(codes)):
        _find(keys, numbers, known, slots, used, codes[place], True)


@inlined
def _note(
    number: Any, row: Any, group: Any, stamps: Any, counts: Any, wanted: Any, out: Any, used: Any
) -> None:
    """Count a body that fires for a row, once; or write both down if it is wanted."""
    if stamps[number, 0] == row:
        return
    stamps[number, 0] = row
    if len(out) == 0:
        counts[number, group] += 1
    elif wanted[number] >= 0:
        out[used[1], 0] = row
        out[used[1], 1] = wanted[number]
        used[1] += 1


@inlined
def _code(base: Any, shape: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return (((np.int64(shape) * base + a) * base + b) * base + c) * base + d


# -- walking ----------------------------------------------------------------------------------------


@inlined
def _hidden(start: Any, step: Any, end: Any, s: Any, o: Any, hide: Any) -> Any:
    """Whether a step is the triple (s, hide, o) itself, read from either end."""
    return (step >> 1) == hide and (
        (start == s and end == o and (step & 1) == 0) or (start == o and end == s and (step & 1) == 1)
    )


@inlined
def _edges(ends: Any, steps: Any, first: Any, last: Any, s: Any, o: Any, hide: Any, found: Any) -> Any:
    """Put the steps from s to o into `found`, ascending; return how many there are."""
    size = 0
    place = gallop(ends, first, last, o)
    while place < last and ends[place] == o:
        if not _hidden(s, steps[place], o, s, o, hide):
            found[size] = steps[place]
            size += 1
        place += 1
    return size


@kernel
def enumerate_pairs(
    rows: Any,
    groups: Any,
    proposers: int,
    hide: int,
    relevant: Any,
    typed: bool,
    graph: Any,
    base: int,
    table: Any,
    wanted: Any,
    out: Any,
) -> None:
    """List edges, intersections, two-step paths, with `typed` edges with a type, and triangles.

    Triangles are sought for the edges that are `relevant` only (bool[steps]).

    `rows` is int32[n, 2], subject and object, whose triple with the relation `hide` does not count. The first
    `proposers` rows put all their bodies into the table. Bodies in the table are counted for all rows, group
    by group, or, if `out` has rows, written into it with the rows where they fire.
    """
    pointers, ends, steps, type_pointers, types = graph
    keys, numbers, codes, slots, stamps, counts, used = table
    found = np.empty(base + 1, dtype=np.int64)
    for row in range(len(rows)):
        s, o, group = rows[row, 0], rows[row, 1], groups[row]
        insert = row < proposers
        i, i_end, j, j_end = pointers[s], pointers[s + 1], pointers[o], pointers[o + 1]
        edges = _edges(ends, steps, i, i_end, s, o, hide, found)
        for e in range(edges):
            code = _code(base, EDGE, found[e], 0, 0, 0)
            number = _find(keys, numbers, codes, slots, used, code, insert)
            if number < 0:
                found[e] = -1
                continue
            _note(number, row, group, stamps, counts, wanted, out, used)
            for f in range(e + 1, edges):
                code = _code(base, BOTH, found[e], found[f], 0, 0)
                number = _find(keys, numbers, codes, slots, used, code, insert)
                if number >= 0:
                    _note(number, row, group, stamps, counts, wanted, out, used)
            if typed:
                for side in range(2):
                    at = s if side == SUBJECT_SIDE else o
                    for t in range(type_pointers[at], type_pointers[at + 1]):
                        code = _code(base, EDGE_TYPE, found[e], side, types[t], 0)
                        number = _find(keys, numbers, codes, slots, used, code, insert)
                        if number >= 0:
                            _note(number, row, group, stamps, counts, wanted, out, used)
        # Triangles with an edge that nobody proposed are not in the table either.
        known = 0
        for e in range(edges):
            if found[e] >= 0 and relevant[found[e]]:
                found[known] = found[e]
                known += 1
        edges = known
        while i < i_end and j < j_end:
            if ends[i] < ends[j]:
                i = gallop(ends, i, i_end, ends[j])
                continue
            if ends[j] < ends[i]:
                j = gallop(ends, j, j_end, ends[i])
                continue
            z = ends[i]
            j_next = j
            while j_next < j_end and ends[j_next] == z:
                j_next += 1
            apart = s != o and z != s and z != o
            while i < i_end and ends[i] == z:
                if not apart and _hidden(s, steps[i], z, s, o, hide):
                    i += 1
                    continue
                for k in range(j, j_next):
                    last = steps[k] ^ 1
                    if not apart and _hidden(z, last, o, s, o, hide):
                        continue
                    code = _code(base, PATH2, steps[i], last, 0, 0)
                    number = _find(keys, numbers, codes, slots, used, code, insert)
                    if number < 0:
                        continue
                    _note(number, row, group, stamps, counts, wanted, out, used)
                    if edges == 0 or not apart or stamps[number, 1] == row:
                        continue
                    stamps[number, 1] = row
                    for e in range(edges):
                        code = _code(base, TRIANGLE, found[e], steps[i], last, 0)
                        more = _find(keys, numbers, codes, slots, used, code, insert)
                        if more >= 0:
                            _note(more, row, group, stamps, counts, wanted, out, used)
                i += 1
            j = j_next


@kernel
def enumerate_threes(
    rows: Any,
    groups: Any,
    proposers: int,
    hide: int,
    relevant: Any,
    paths: bool,
    budget: int,
    graph: Any,
    base: int,
    table: Any,
    wanted: Any,
    out: Any,
) -> None:
    """List diamonds whose edge is `relevant`, and with `paths` three-step paths, as `enumerate_pairs` does.

    No row takes more than `budget` steps: what it would have found beyond them is not counted.
    """
    pointers, ends, steps, _, _ = graph
    keys, numbers, codes, slots, stamps, counts, used = table
    found = np.empty(base + 1, dtype=np.int64)
    for row in range(len(rows)):
        s, o, group = rows[row, 0], rows[row, 1], groups[row]
        insert = row < proposers
        all_edges = _edges(ends, steps, pointers[s], pointers[s + 1], s, o, hide, found)
        edges = 0
        for e in range(all_edges):
            if relevant[found[e]]:
                found[edges] = found[e]
                edges += 1
        if edges == 0 and not paths:
            continue
        spent = 0
        for first in range(pointers[s], pointers[s + 1]):
            z = ends[first]
            if (not paths and z in (s, o)) or _hidden(s, steps[first], z, s, o, hide):
                continue
            apart = s != o and z != s and z != o
            i, i_end, j, j_end = pointers[z], pointers[z + 1], pointers[o], pointers[o + 1]
            while i < i_end and j < j_end and spent < budget:
                spent += 1
                if ends[i] < ends[j]:
                    i = gallop(ends, i, i_end, ends[j])
                    continue
                if ends[j] < ends[i]:
                    j = gallop(ends, j, j_end, ends[i])
                    continue
                w = ends[i]
                j_next = j
                while j_next < j_end and ends[j_next] == w:
                    j_next += 1
                distinct = apart and w != s and w != o and w != z
                while i < i_end and ends[i] == w:
                    if (not paths and not distinct) or _hidden(z, steps[i], w, s, o, hide):
                        i += 1
                        continue
                    for k in range(j, j_next):
                        last = steps[k] ^ 1
                        if _hidden(w, last, o, s, o, hide):
                            continue
                        spent += 1
                        code = _code(base, PATH3, steps[first], steps[i], last, 0)
                        number = _find(keys, numbers, codes, slots, used, code, insert)
                        if number < 0:
                            continue
                        if paths:
                            _note(number, row, group, stamps, counts, wanted, out, used)
                        if not distinct or stamps[number, 1] == row:
                            continue
                        stamps[number, 1] = row
                        for e in range(edges):
                            code = _code(base, DIAMOND, found[e], steps[first], steps[i], last)
                            more = _find(keys, numbers, codes, slots, used, code, insert)
                            if more >= 0:
                                _note(more, row, group, stamps, counts, wanted, out, used)
                    i += 1
                j = j_next


@kernel
def enumerate_types(
    rows: Any,
    groups: Any,
    proposers: int,
    hide: int,
    graph: Any,
    base: int,
    table: Any,
    wanted: Any,
    out: Any,
) -> None:
    """List the bodies of heads (x, type, C), C being the type at the place `hide`; see `enumerate_pairs`."""
    pointers, ends, steps, type_pointers, types = graph
    keys, numbers, codes, slots, stamps, counts, used = table
    absent = base - 1
    for row in range(len(rows)):
        s, group = rows[row, 0], groups[row]
        insert = row < proposers
        # The place before the first type stands for no type at all.
        for t in range(type_pointers[s] - 1, type_pointers[s + 1]):
            own = absent if t < type_pointers[s] else types[t]
            if own == hide:
                continue
            if own != absent:
                code = _code(base, TYPED, own, absent, absent, 0)
                number = _find(keys, numbers, codes, slots, used, code, insert)
                if number >= 0:
                    _note(number, row, group, stamps, counts, wanted, out, used)
            for place in range(pointers[s], pointers[s + 1]):
                z = ends[place]
                code = _code(base, TYPED, own, steps[place], absent, 0)
                number = _find(keys, numbers, codes, slots, used, code, insert)
                if number < 0:
                    continue
                _note(number, row, group, stamps, counts, wanted, out, used)
                for u in range(type_pointers[z], type_pointers[z + 1]):
                    if z == s and types[u] == hide:
                        continue
                    code = _code(base, TYPED, own, steps[place], types[u], 0)
                    number = _find(keys, numbers, codes, slots, used, code, insert)
                    if number >= 0:
                        _note(number, row, group, stamps, counts, wanted, out, used)
