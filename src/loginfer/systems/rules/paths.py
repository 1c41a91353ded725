"""Is there a path: kernels over the one adjacency.

Path rules and the graph in the order in which they are applied.

Compiled: whether a path leads from one entity to another, and where paths lead to.

A path's entities are start, those in between, end. With `distinct` they all differ from one another and from
a further entity, the `other` constant of an acyclic rule's head; without, they may be anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.kernels import inlined, kernel, lower_bound
from loginfer.kg import KnowledgeGraph
from loginfer.systems.rules.mined import BOTH, NONE, OBJECT, SUBJECT, RuleTable

# The columns of a rule, and those of its entry in a list.
TURN, RANK, HEAD, VARIABLES, HEAD_CONSTANT, END_CONSTANT, FIRST, SECOND, THIRD = range(9)
NUMBER, STEP, END, SINGLE = range(4)

# Lists of rules by head: besides SUBJECT and OBJECT, cyclic rules from either end.
FORWARD, BACKWARD = 0, 3

Ids = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class Edges(NamedTuple):
    """The steps from each entity, sorted by entity, directed relation, where they lead.

    An entity has few relations in a graph with many: to look a step up, one searches among its own. That
    takes memory for each triple only, not for each entity and relation.

    Parameters
    ----------
    groups
        int64[entities + 1], where the groups of an entity begin: its steps along one directed relation each.
    group
        int64[g + 1, 2], the directed relation of each group, and where it begins in `ends`; the last row
        says where all end.
    ends
        int32[2n], where steps lead.
    offsets, steps
        int64[2·relations + 1], int32[2n, 2]: the steps once more, as entity and where it leads, sorted by
        directed relation, entity and that; the offsets say where a directed relation's begin.
    """

    groups: Longs
    group: Longs
    ends: Ids
    offsets: Longs
    steps: Ids


def edges_of(graph: KnowledgeGraph) -> Edges:
    """Return the steps of a graph."""
    index, size = graph.index, len(graph)
    entities, relations = len(graph.entities), len(graph.relations)
    counts = np.diff(index.offsets)
    offsets = np.zeros(2 * relations + 1, dtype=np.int64)
    np.cumsum(np.repeat(counts, 2), out=offsets[1:])
    # From all forward steps, then all inverse ones, to forward and inverse steps relation by relation.
    shift = np.repeat(offsets[:-1].reshape(-1, 2) - index.offsets[:-1, None], counts, axis=0)
    place = np.concatenate([shift[:, 0], shift[:, 1]]) + np.tile(np.arange(size), 2)
    steps = np.empty((2 * size, 2), dtype=np.int32)
    steps[place, 0] = np.concatenate([index.subjects, index.inverse_objects])
    steps[place, 1] = index.columns
    directed = np.repeat(np.arange(2 * relations, dtype=np.int32), np.diff(offsets))
    order = np.argsort(steps[:, 0], kind="stable")
    by_entity, by_relation = steps[order, 0], directed[order]
    first = np.ones(2 * size, dtype=bool)
    first[1:] = (by_entity[1:] != by_entity[:-1]) | (by_relation[1:] != by_relation[:-1])
    starts = np.flatnonzero(first)
    groups = np.zeros(entities + 1, dtype=np.int64)
    np.cumsum(np.bincount(by_entity[starts], minlength=entities), out=groups[1:])
    group = np.full((len(starts) + 1, 2), (2 * relations, 2 * size), dtype=np.int64)
    group[:-1] = np.column_stack([by_relation[starts], starts])
    return Edges(groups, group, steps[order, 1], offsets, steps)


class RuleLists(NamedTuple):
    """Path rules with worth, numbered best first, and lists of those that matter for a triple or query.

    A list is sorted by the step that a rule takes first from an entity that is known, so that going along
    the list and the steps of that entity side by side finds the few rules which can fire at all.

    Few arrays of several columns: functions that hand a dozen arrays to one another take long to compile.

    Parameters
    ----------
    rows
        int64[m, 9], a rule a row: TURN (its turn among all rules, those of other shapes included; ascending),
        RANK (of its confidence), and HEAD to THIRD as in a `RuleTable`.
    entries
        int64[l, 4], the lists one after the other. NUMBER of the rule; its first STEP, NONE for an empty
        body; END, the end constant or, for a cyclic rule, the step that it takes from its other end; SINGLE,
        whether that first step must lead to the end constant, as in an acyclic rule of length 1.
    by_head
        int64[4, relations + 1], where the lists for a relation in the head begin: FORWARD and BACKWARD for
        cyclic rules, from the subject or the object on, SUBJECT and OBJECT for those with a variable there.
    keys, by_key
        int64[k], int64[k + 1], where the lists for a constant in the head begin; with the variables - 1, the
        relation and the constant packed in one number.
    by_constant
        int64[2·entities + 1], the same for any relation; those with the variables SUBJECT come first.
    """

    rows: Longs
    entries: Longs
    by_head: Longs
    keys: Longs
    by_key: Longs
    by_constant: Longs


def rule_lists(paths: RuleTable, turn: Longs, rank: Ids, relations: int, entities: int) -> RuleLists:
    """Sort path rules into lists.

    Parameters
    ----------
    paths
        The rules.
    turn, rank
        int64[m], int32[m]: for each its turn among all rules and the rank of its confidence, -1 for rules
        to leave out.
    relations, entities
        Sizes of the vocabularies.
    """
    used = np.flatnonzero(rank >= 0)
    used = used[np.argsort(turn[used])]
    table = paths.take(used)
    back = _back(table.body)
    head, constant, end, first = (
        column.astype(np.int64) for column in (table.head, table.head_constant, table.end_constant, table.body[:, 0])
    )
    lists = _Lists()
    by_head = np.empty((4, relations + 1), dtype=np.int64)
    for kind in (FORWARD, BACKWARD, SUBJECT, OBJECT):
        rules = np.flatnonzero(table.variables == (BOTH if kind in (FORWARD, BACKWARD) else kind))
        steps, ends = (back, first) if kind == BACKWARD else (first, back)
        ends = ends if kind in (FORWARD, BACKWARD) else end
        by_head[kind] = lists.add(rules, head, steps, ends).bounds(relations)
    rules = np.flatnonzero(table.variables != BOTH)
    side = table.variables.astype(np.int64) - 1
    keys = (side * relations + head) * entities + constant
    by_key = lists.add(rules, keys, first, end)
    different, starts = np.unique(by_key.keys, return_index=True)
    by_constant = lists.add(rules, side * entities + constant, first, end)
    single = (table.variables != BOTH) & (table.end_constant != NONE) & (table.length == 1)
    return RuleLists(
        np.column_stack(
            [turn[used], rank[used], table.head, table.variables, table.head_constant, table.end_constant, table.body]
        ).astype(np.int64),
        lists.entries(single),
        by_head,
        different,
        by_key.start + np.append(starts, len(rules)),
        by_constant.bounds(2 * entities),
    )


class _List(NamedTuple):
    """Where lists stand, and the sorted keys of their rules."""

    start: int
    keys: Longs

    def bounds(self, size: int) -> Longs:
        """Return int64[size + 1], where the list of each key begins."""
        return self.start + np.searchsorted(self.keys, np.arange(size + 1))


class _Lists:
    """Lists, one after the other."""

    def __init__(self) -> None:
        self._parts: list[tuple[Longs, Longs, Longs]] = []
        self._size = 0

    def add(self, rules: Longs, keys: Longs, steps: Longs, ends: Longs) -> _List:
        """Add the lists of some rules, by key, then step, then end."""
        rules = rules[np.lexsort((ends[rules], steps[rules], keys[rules]))]
        made = _List(self._size, keys[rules])
        self._parts.append((rules, steps[rules], ends[rules]))
        self._size += len(rules)
        return made

    def entries(self, single: npt.NDArray[np.bool_]) -> Longs:
        """Return int64[l, 4]: rules, steps, ends, and what `single` says of the rule."""
        numbers, steps, ends = (np.concatenate(columns) for columns in zip(*self._parts, strict=True))
        return np.column_stack([numbers, steps, ends, single[numbers]]).astype(np.int64)


def _back(body: Ids | Longs) -> Longs:
    """Return int64[m]: the last step of each body, taken back; NONE for an empty body."""
    length = np.count_nonzero(body != NONE, axis=1)
    last = body[np.arange(len(body)), np.maximum(length - 1, 0)]
    return np.where(length > 0, last ^ 1, NONE).astype(np.int64)


class Bodies(NamedTuple):
    """The different bodies of cyclic rules, for when the head's relation is asked for.

    Parameters
    ----------
    bodies
        int64[b, 3], sorted by first step: the last step taken back, then the second and third step.
    starts
        int64[2·relations + 1], where the bodies with a certain first step begin.
    rules, rule_starts
        int64[m], int64[b + 1]: the rules with each body, by their numbers.
    """

    bodies: Longs
    starts: Longs
    rules: Longs
    rule_starts: Longs


def bodies_of(rules: RuleLists, relations: int) -> Bodies:
    """Sort cyclic rules by their bodies."""
    cyclic = np.flatnonzero(rules.rows[:, VARIABLES] == BOTH)
    body = rules.rows[cyclic, FIRST:]
    keys = np.column_stack([body[:, 0], _back(body), body[:, 1:]])
    order = np.lexsort(keys.T[::-1])
    keys = keys[order]
    first = np.ones(len(keys), dtype=bool)
    first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    different = keys[first]
    return Bodies(
        np.ascontiguousarray(different[:, 1:]),
        np.searchsorted(different[:, 0], np.arange(2 * relations + 1)).astype(np.int64),
        cyclic[order],
        np.append(np.flatnonzero(first), len(keys)).astype(np.int64),
    )


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
def _meet(ends: Int32, low: Int, high: Int, to_low: Int, to_high: Int, a: Int, b: Int, c: Int, d: Int) -> bool:
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
        place = lower_bound(edges.ends, low, high, end)
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
def _middles(edges: Edges, low: Int, high: Int, s: Int, o: Int, second: Int, distinct: bool, scratch: Int32) -> Int:
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
def _behind_middles(edges: Edges, count: Int, s: Int, o: Int, third: Int, distinct: bool, scratch: Int32) -> Int:
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
def bearers(edges: Edges, other: Int, first: Int, second: Int, third: Int, distinct: bool, scratch: Int32) -> Int:
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
