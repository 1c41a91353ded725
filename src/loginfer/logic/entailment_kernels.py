"""Compiled materialisation of many rules on an instance of at most 62 elements.

A directed relation 2·R + d is a bit matrix: bit j of `rows[2·R + d, i]` says that element i is joined to
element j. A path of relations is a product of such matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.kernels import inlined, kernel
from loginfer.kg.graph import run_starts

Ids = npt.NDArray[np.int32]
Bits = npt.NDArray[np.int64]


def index_paths(
    head: Ids, body: Ids, selected: Ids, relations: int
) -> tuple[npt.NDArray[np.int64], Ids, npt.NDArray[np.int64], Ids, Ids]:
    """List some rules under every relation of their bodies, by head within a relation.

    Returns
    -------
    group_offsets, group_head
        int64[relations + 1], int32[g]: the groups of a relation, one for each head.
    offsets, rules, bodies
        int64[g + 1], int32[e], int32[e, length]: the rules of a group, and their bodies.
    """
    used, is_first = body[selected] >> 1, body[selected] >= 0
    for step in range(1, body.shape[1]):
        is_first[:, step] &= (used[:, :step] != used[:, step : step + 1]).all(axis=1)
    rows, steps = np.nonzero(is_first)
    rules, relation = selected[rows], used[rows, steps]
    order = np.argsort(relation * np.int64(relations) + head[rules], kind="stable")
    rules, relation = rules[order], relation[order]
    first = np.flatnonzero(run_starts(relation, head[rules]))
    group_offsets = np.searchsorted(relation[first], np.arange(relations + 1))
    return group_offsets, head[rules[first]], np.append(first, len(rules)), rules, body[rules]


@inlined
def _path(rows: Bits, derived: Bits, head: Any, body: Ids, e: int, n: int, conclusions: Bits) -> bool:
    """Write where the path of a body leads from each element; say whether that gives the head new facts."""
    new = np.int64(0)
    for i in range(n):
        row = rows[body[e, 0], i]
        for step in range(1, body.shape[1]):
            if body[e, step] < 0 or row == 0:
                break
            reached = np.int64(0)
            for k in range(n):
                reached |= rows[body[e, step], k] & -((row >> k) & 1)
            row = reached
        conclusions[i] = row
        new |= row & ~derived[2 * head, i]
    return bool(new != 0)


@inlined
def _starts(rows: Bits, body: Ids, e: int, n: int, ends: Any) -> Any:
    """Return the elements from which the path of a body leads to one of `ends`."""
    for step in range(body.shape[1] - 1, -1, -1):
        if body[e, step] < 0:
            continue
        starts = np.int64(0)
        for i in range(n):
            starts |= np.int64((rows[body[e, step], i] & ends) != 0) << i
        ends = starts
    return ends


@inlined
def _value(term: Any, values: Ids, element_of: Ids, star: int) -> Any:
    """Return the element that a term of a general rule stands for; -1 for none."""
    if term >= 0:
        return values[term]
    element = element_of[~term]
    return star if element < 0 else element


@inlined
def _holds_at(
    level: int, parts: Ids, begin: int, end: int, rows: Bits, values: Ids, element_of: Ids, star: int
) -> bool:
    """Say whether those parts of a body hold whose last variable has this number."""
    for p in range(begin, end):
        if parts[p, 3] != level:
            continue
        left = _value(parts[p, 1], values, element_of, star)
        right = _value(parts[p, 2], values, element_of, star)
        if parts[p, 0] < 0:
            if left == right and left >= 0 and left != star:
                return False
        elif left < 0 or right < 0 or (rows[2 * parts[p, 0], left] >> right) & 1 == 0:
            return False
    return True


@kernel
def _general(
    rule: int,
    heads: Ids,
    offsets: Ids,
    parts: Ids,
    rows: Bits,
    values: Ids,
    element_of: Ids,
    star: int,
    n: int,
    conclusions: Bits,
) -> bool:
    """Write what a rule of any shape concludes; say whether it concludes anything."""
    conclusions[:n] = 0
    begin, end, variables = offsets[rule], offsets[rule + 1], heads[rule, 3]
    concludes = False
    if not _holds_at(-1, parts, begin, end, rows, values, element_of, star):
        return False
    depth = 0
    if variables > 0:
        values[0] = -1
    while depth >= 0:
        if variables > 0:
            values[depth] += 1
            if values[depth] == n:
                depth -= 1
                continue
            if not _holds_at(depth, parts, begin, end, rows, values, element_of, star):
                continue
            if depth < variables - 1:
                depth += 1
                values[depth] = -1
                continue
        left = _value(heads[rule, 1], values, element_of, star)
        right = _value(heads[rule, 2], values, element_of, star)
        if left >= 0 and right >= 0:
            conclusions[left] |= np.int64(1) << right
            concludes = True
        if variables == 0:
            break
    return concludes


@kernel
def _add(
    head: int, conclusions: Bits, n: int, rule: int, clock: int, rows: Bits, size: Ids, why: Ids, when: Ids
) -> bool:
    """Add the new conclusions to a relation; say whether there were any."""
    added = False
    for i in range(n):
        fresh = conclusions[i] & ~rows[2 * head, i]
        if fresh == 0:
            continue
        added = True
        rows[2 * head, i] |= fresh
        for j in range(n):
            if (fresh >> j) & 1:
                rows[2 * head + 1, j] |= np.int64(1) << i
                size[head] += 1
                why[head, i, j] = rule
                when[head, i, j] = clock
    return added


@inlined
def _enqueue(relation: int, queue: Ids, queued: Any, first: int, length: int) -> int:
    """Put a relation into the queue unless it is there; return the new length."""
    if queued[relation]:
        return length
    queued[relation] = True
    queue[(first + length) % len(queue)] = relation
    return length + 1


@kernel
def _missing(goals: Ids, rows: Bits) -> int:
    missing = 0
    for g in range(len(goals)):
        missing += 1 - ((rows[2 * goals[g, 0], goals[g, 1]] >> goals[g, 2]) & 1)
    return missing


@kernel
def _is_goal(goals: Ids, conclusions: Bits, rule: int, clock: int, why: Ids, when: Ids) -> bool:
    """Say whether the first goal is among the conclusions, and note by which rule."""
    relation, i, j = goals[0]
    if (conclusions[i] >> j) & 1 == 0:
        return False
    why[relation, i, j] = rule
    when[relation, i, j] = clock
    return True


@kernel
def close(
    cyclic: tuple[npt.NDArray[np.int64], Ids, npt.NDArray[np.int64], Ids, Ids],
    open_: tuple[npt.NDArray[np.int64], Ids, npt.NDArray[np.int64], Ids, Ids],
    ends: tuple[npt.NDArray[np.int8], Ids, Ids],
    general: tuple[Ids, Ids, Ids, Ids, Ids],
    first_general: int,
    element_of: Ids,
    star: int,
    n: int,
    facts: Ids,
    goals: Ids,
    rows: Bits,
    derived: Bits,
    why: Ids,
    when: Ids,
    with_open: bool,
    starts_only: bool,
    single: bool,
    layered: bool,
) -> int:
    """Apply rules until all goals are derived or nothing new follows; return how many goals are missing.

    Parameters
    ----------
    cyclic, open_
        What `index_paths` returns for cyclic and for acyclic rules.
    ends
        Of acyclic rules, in the order of `open_`: which term of the head is a variable, the constant that is the
        other term, and the constant at the end.
    general
        Rules of other shapes: heads (relation, terms, number of variables), offsets of parts, parts (relation
        or -1, terms, number of the last variable), and offsets and rules by relation, those without atoms
        under a last relation of their own.
    first_general
        The number of the first of them.
    element_of
        The element of each constant, -1 for one that is no element.
    star
        The element that stands for all other constants; -1 if facts about them are left out.
    n
        Number of elements.
    facts, goals
        Relation, subject, object.
    rows, derived, why, when
        Cleared matrices: what rules are applied to, what is derived (the same array, unless `layered`), and
        for each fact by which rule and when.
    with_open
        Whether acyclic rules can conclude anything.
    starts_only
        Whether acyclic rules have one atom in their bodies and no constant but ★: what they conclude from
        a relation depends only on which elements have an edge of it, and which have one to ★.
    single
        Look for one application that concludes the only goal from the facts; conclusions are not added.
    layered
        Apply rules layer by layer, so that derivations are not deeper than necessary; otherwise conclusions count
        at once.
    """
    group_offsets, group_head, offsets, rules, bodies = cyclic
    open_offsets, open_head, open_ends, open_rules, open_bodies = open_
    variables, head_constant, end_constant = ends
    general_heads, part_offsets, parts, by_relation, general_rules = general
    relations = len(group_offsets) - 1
    all_pairs = n * n
    all_elements = (np.int64(1) << n) - 1
    size = np.zeros(relations, dtype=np.int32)
    seen = np.zeros((relations, 2, 2), dtype=np.int64)
    conclusions = np.zeros(64, dtype=np.int64)
    values = np.zeros(64, dtype=np.int32)
    queue = np.empty(2 * relations + 2, dtype=np.int32)
    queued = np.zeros(relations + 1, dtype=np.bool_)
    first, queue_length = 0, 0
    for f in range(len(facts)):
        relation = facts[f, 0]
        conclusions[:n] = 0
        conclusions[facts[f, 1]] = np.int64(1) << facts[f, 2]
        _add(relation, conclusions, n, -1, 0, derived, size, why, when)
        queue_length = _enqueue(relation, queue, queued, first, queue_length)
    # The rules without atoms.
    queue[queue_length] = relations
    queue_length += 1
    clock = 0
    missing = _missing(goals, derived)
    left_in_layer = 0
    while queue_length > 0 and missing > 0:
        if layered and left_in_layer == 0:
            # What is derived from now on counts in the next layer, for which relations are queued again.
            left_in_layer = queue_length
            for i in range(len(rows)):
                for j in range(n):
                    rows[i, j] = derived[i, j]
            queued[:] = False
        left_in_layer -= 1
        relation = queue[first]
        first = (first + 1) % len(queue)
        queue_length -= 1
        if not layered:
            queued[relation] = False
        if relation < relations:
            for g in range(group_offsets[relation], group_offsets[relation + 1]):
                head = group_head[g]
                if size[head] == all_pairs or (single and head != goals[0, 0]):
                    continue
                for e in range(offsets[g], offsets[g + 1]):
                    clock += 1
                    if not _path(rows, derived, head, bodies, e, n, conclusions):
                        continue
                    if single:
                        if _is_goal(goals, conclusions, rules[e], clock, why, when):
                            return 0
                        continue
                    if _add(head, conclusions, n, rules[e], clock, derived, size, why, when):
                        queue_length = _enqueue(head, queue, queued, first, queue_length)
                        missing = _missing(goals, derived)
                        if missing == 0:
                            return 0
                        if size[head] == all_pairs:
                            break
        has_changed = True
        if starts_only and relation < relations:
            has_changed = False
            for d in range(2):
                starts, to_star = np.int64(0), np.int64(0)
                for i in range(n):
                    row = rows[2 * relation + d, i]
                    starts |= np.int64(row != 0) << i
                    to_star |= ((row >> star) & 1) << i
                if starts != seen[relation, d, 0] or to_star != seen[relation, d, 1]:
                    has_changed = True
                seen[relation, d, 0] = starts
                seen[relation, d, 1] = to_star
        if with_open and has_changed and relation < relations:
            for g in range(open_offsets[relation], open_offsets[relation + 1]):
                head = open_head[g]
                if size[head] == all_pairs or (single and head != goals[0, 0]):
                    continue
                for e in range(open_ends[g], open_ends[g + 1]):
                    rule = open_rules[e]
                    constant = element_of[head_constant[e]]
                    if constant < 0:
                        constant = star
                    if constant < 0:
                        continue
                    # What is derived already: the column or row of the head's constant.
                    side = 1 if variables[e] == 1 else 0
                    present = derived[2 * head + side, constant]
                    if present == all_elements:
                        continue
                    reached = all_elements
                    if end_constant[e] >= 0:
                        end = element_of[end_constant[e]]
                        if end < 0:
                            end = star
                        if end < 0:
                            continue
                        reached = np.int64(1) << end
                    clock += 1
                    if starts_only:
                        ended = 1 if end_constant[e] >= 0 else 0
                        reached = seen[relation, open_bodies[e, 0] & 1, ended]
                    else:
                        reached = _starts(rows, open_bodies, e, n, reached)
                    if reached & ~present == 0:
                        continue
                    for i in range(n):
                        if side == 1:
                            conclusions[i] = ((reached >> i) & 1) << constant
                        else:
                            conclusions[i] = reached if i == constant else 0
                    if single:
                        if _is_goal(goals, conclusions, rule, clock, why, when):
                            return 0
                        continue
                    _add(head, conclusions, n, rule, clock, derived, size, why, when)
                    queue_length = _enqueue(head, queue, queued, first, queue_length)
                    missing = _missing(goals, derived)
                    if missing == 0:
                        return 0
        for k in range(by_relation[relation], by_relation[relation + 1]):
            rule = general_rules[k]
            head = general_heads[rule, 0]
            if size[head] == all_pairs or (single and head != goals[0, 0]):
                continue
            clock += 1
            if not _general(rule, general_heads, part_offsets, parts, rows, values, element_of, star, n, conclusions):
                continue
            if single:
                if _is_goal(goals, conclusions, first_general + rule, clock, why, when):
                    return 0
                continue
            if _add(head, conclusions, n, first_general + rule, clock, derived, size, why, when):
                queue_length = _enqueue(head, queue, queued, first, queue_length)
                missing = _missing(goals, derived)
    return missing
