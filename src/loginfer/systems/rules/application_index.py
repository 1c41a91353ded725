"""Path rules and the graph in the order in which they are applied."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.kg import KnowledgeGraph
from loginfer.systems.rules.values import BOTH, NONE, OBJECT, SUBJECT, RuleTable

__all__ = ["BACKWARD", "FORWARD", "Bodies", "Edges", "RuleLists", "bodies_of", "edges_of", "rule_lists"]

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
        column.astype(np.int64)
        for column in (table.head, table.head_constant, table.end_constant, table.body[:, 0])
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
            [
                turn[used],
                rank[used],
                table.head,
                table.variables,
                table.head_constant,
                table.end_constant,
                table.body,
            ]
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
