"""Compiled: which rules can predict a triple, or answer a query.

To choose from a list of rules, it and the steps of an entity are gone along side by side: both are sorted by
directed relation.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined, kernel
from loginfer.systems.rules.application_index import (
    END,
    END_CONSTANT,
    FIRST,
    NUMBER,
    SECOND,
    SINGLE,
    STEP,
    THIRD,
    TURN,
    VARIABLES,
    Bodies,
    Edges,
    RuleLists,
)
from loginfer.systems.rules.application_paths import joined, path_exists
from loginfer.systems.rules.other_shapes import Predicted
from loginfer.systems.rules.sorted_lists import position
from loginfer.systems.rules.values import BOTH, NONE, OBJECT

__all__ = [
    "earlier",
    "fires",
    "sort",
    "steps_of",
    "that_begin",
    "that_join",
    "that_lead",
    "with_constant",
]

# A number: a Python int outside, an int64 inside.
Int: TypeAlias = Any
Int64 = npt.NDArray[np.int64]

_NONE = np.int64(NONE)


@kernel
def fires(edges: Edges, rules: RuleLists, rule: Int, subject: Int, object_: Int, distinct: bool) -> bool:
    """Say whether a rule predicts a triple that its head matches."""
    kind = rules.rows[rule, VARIABLES]
    start, end, other = subject, rules.rows[rule, END_CONSTANT], object_
    if kind == BOTH:
        end, other = object_, _NONE
    elif kind == OBJECT:
        start, other = object_, subject
    if distinct and (subject == object_ or start == end):
        return False
    first, second, third = steps_of(rules, rule)
    return path_exists(edges, start, end, other, first, second, third, distinct)


@inlined
def steps_of(rules: RuleLists, rule: Int) -> tuple[Int, Int, Int]:
    """Return the steps of a rule's body, NONE behind the last."""
    return rules.rows[rule, FIRST], rules.rows[rule, SECOND], rules.rows[rule, THIRD]


@kernel
def with_constant(
    rules: RuleLists, kind: Int, relation: Int, constant: Int, entities: Int
) -> tuple[Int, Int]:
    """Return the bounds of the list of rules with a certain constant in the head."""
    relations = rules.by_head.shape[1] - 1
    key = ((kind - 1) * relations + relation) * entities + constant
    low, high = 0, len(rules.keys)
    while low < high:
        middle = (low + high) >> 1
        if rules.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < len(rules.keys) and rules.keys[low] == key:
        return rules.by_key[low], rules.by_key[low + 1]
    return np.int64(0), np.int64(0)


@kernel
def that_begin(
    edges: Edges, rules: RuleLists, low: Int, high: Int, entity: Int, chosen: Int64, size: Int
) -> Int:
    """Choose from a list the rules that can take their first step from an entity."""
    group, last = edges.groups[entity], edges.groups[entity + 1]
    for place in range(low, high):
        step = rules.entries[place, STEP]
        if step != NONE:
            while group < last and edges.group[group, 0] < step:
                group += 1
            if group == last:
                break
            if edges.group[group, 0] > step:
                continue
            if rules.entries[place, SINGLE]:
                end, behind = rules.entries[place, END], edges.group[group + 1, 1]
                found = position(edges.ends, edges.group[group, 1], behind, end)
                if found == behind or edges.ends[found] != end:
                    continue
        chosen[size] = rules.entries[place, NUMBER]
        size += 1
    return size


@kernel
def that_join(
    edges: Edges, rules: RuleLists, low: Int, high: Int, s: Int, o: Int, chosen: Int64, size: Int
) -> Int:
    """Choose from a list of cyclic rules those that can begin at s and end at o."""
    group, last = edges.groups[s], edges.groups[s + 1]
    to, to_last = edges.groups[o], edges.groups[o + 1]
    before = NONE
    for place in range(low, high):
        step, back = rules.entries[place, STEP], rules.entries[place, END]
        if step != before:
            before = step
            to = edges.groups[o]
        while group < last and edges.group[group, 0] < step:
            group += 1
        if group == last:
            break
        while to < to_last and edges.group[to, 0] < back:
            to += 1
        if edges.group[group, 0] == step and to < to_last and edges.group[to, 0] == back:
            chosen[size] = rules.entries[place, NUMBER]
            size += 1
    return size


@inlined
def earlier(others: Predicted, place: Int, end: Int, rules: RuleLists, rule: Int) -> bool:
    """Say whether it is a rule of another shape's turn before a path rule's; NONE if none is left."""
    return bool(place < end and (rule == NONE or others.found[place, 0] < rules.rows[rule, TURN]))


@kernel
def sort(numbers: Int64, size: Int) -> None:
    """Sort the first numbers, usually a few dozen: Shell's way, which is quick to compile, too."""
    gap: Int = np.int64(1)
    while gap < size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            number, j = numbers[i], i
            while j >= gap and numbers[j - gap] > number:
                numbers[j] = numbers[j - gap]
                j -= gap
            numbers[j] = number
        gap //= 3


@kernel
def that_lead(edges: Edges, bodies: Bodies, s: Int, o: Int, distinct: bool, chosen: Int64) -> Int:
    """Choose the cyclic rules whose body leads from s to o, of whatever head; return how many."""
    size = np.int64(0)
    to_end = edges.groups[o + 1]
    for group in range(edges.groups[s], edges.groups[s + 1]):
        first = edges.group[group, 0]
        low, high = edges.group[group, 1], edges.group[group + 1, 1]
        to = edges.groups[o]
        for place in range(bodies.starts[first], bodies.starts[first + 1]):
            back = bodies.bodies[place, 0]
            while to < to_end and edges.group[to, 0] < back:
                to += 1
            if to == to_end:
                break
            if edges.group[to, 0] != back:
                continue
            second, third = bodies.bodies[place, 1], bodies.bodies[place, 2]
            if second == NONE:
                holds = path_exists(edges, s, o, _NONE, first, second, third, distinct)
            else:
                to_low, to_high = edges.group[to, 1], edges.group[to + 1, 1]
                holds = joined(edges, low, high, to_low, to_high, s, o, _NONE, second, third, distinct)
            if holds:
                for number in range(bodies.rule_starts[place], bodies.rule_starts[place + 1]):
                    chosen[size] = bodies.rules[number]
                    size += 1
    return size
