"""Compiled kernels: which constants stand at the other end of a near miss.

A plan is a list of steps. Each step is an atom of the edited body: either of its own relation, or with *any*
relation but one (the replaced atom). When a step's turn comes, its terms are bound (a check), one of them is
(its neighbours are tried in turn), or none (all pairs are). The search goes on to the next step for every
value, and back when there is none left. As soon as all steps hold, the value of the target variable is
noted, and the search goes on where that variable was bound: further witnesses of the same value say nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.kernels import inlined, kernel, lower_bound, mix64

# What a step asks for: a relation, any relation but one, or that nothing fits.
RELATION, ANY, NONE_OF = 0, 1, 2

# Columns of a step: what, relation (or the one that is left out), subject, object, inequalities from, to.
# Terms are the numbers of variables, or the complements of entities.
_WHAT, _REL, _SUB, _OBJ, _FROM, _TO = range(6)

# Columns of a plan: steps from, to, inequalities from, to, variables, the bound one, the target, and the
# numbers that make a key of an end: the key is form + by_anchor * anchor + by_end * end.
_STEPS, _STEPS_TO, _PAIRS, _PAIRS_TO, _SIZE, _ANCHOR, _TARGET, _FORM, _BY_ANCHOR, _BY_END = range(10)

# Where the values of a step lie: ends of one relation's steps, objects or subjects by any relation, pairs of
# a relation; or there are no values, since the step is a check that nothing fits.
_ENDS, _OBJECTS, _SUBJECTS, _PAIRS_OF, _CHECK = 0, 1, 2, 3, 4


@inlined
def _range(kg: Any, what: Any, relation: Any, subject: Any, object_: Any) -> Any:
    """Return where the values that fit a step lie: in what, from, to.

    A check (both ends bound) gives the index of the one value that fits, or none.
    """
    offsets, _, _, pointers, steps, ends = kg[:6]
    out, out_objects, _, into, _, _ = kg[6:]
    if what == ANY:
        if subject < 0 and object_ < 0:
            return _OBJECTS, 0, len(out_objects)
        if subject < 0:
            return _SUBJECTS, into[object_], into[object_ + 1]
        low, high = out[subject], out[subject + 1]
        if object_ >= 0:
            low = lower_bound(out_objects, low, high, object_)
            high = low + 1 if low < high and out_objects[low] == object_ else low
        return _OBJECTS, low, high
    if subject < 0 and object_ < 0:
        return _PAIRS_OF, offsets[relation], offsets[relation + 1]
    entity = subject if subject >= 0 else object_
    step = 2 * relation + (subject < 0)
    low = lower_bound(steps, pointers[entity], pointers[entity + 1], step)
    high = lower_bound(steps, low, pointers[entity + 1], step + 1)
    if subject >= 0 and object_ >= 0:
        low = lower_bound(ends, low, high, object_)
        high = low + 1 if low < high and ends[low] == object_ else low
    return _ENDS, low, high


@inlined
def _differ(values: Any, unequal: Any, start: Any, stop: Any) -> Any:
    """Say whether the inequalities hold that a step completes."""
    for i in range(start, stop):
        left, right = unequal[i, 0], unequal[i, 1]
        a = values[left] if left >= 0 else ~left
        b = values[right] if right >= 0 else ~right
        if a == b:
            return False
    return True


@inlined
def _unbind(steps: Any, values: Any, binds: Any, depth: Any) -> Any:
    """Take the values back that a step gave."""
    for side in range(2):
        if binds[depth, side]:
            values[steps[depth, _SUB + side]] = -1


@kernel
def _search(
    kg: Any,
    steps: Any,
    unequal: Any,
    values: Any,
    target: Any,
    salt: Any,
    budget: Any,
    seen: Any,
    stamp: Any,
    found_ends: Any,
) -> Any:
    """Enumerate the values of the target; return how many were noted and what the search cost.

    With `target` below 0 the search ends at the first witness; `values` holds it, and 1 is returned.
    A negative cost means that the budget was spent before the search was over.
    """
    # Everything about a depth in arrays of numbers: views of arrays cost more than the search itself.
    _, subjects, objects, _, _, ends = kg[:6]
    out, out_objects, out_only, _, into_subjects, into_only = kg[6:]
    depth = 0
    total = len(steps)
    low = np.empty(total + 1, dtype=np.int64)
    tried = np.empty(total + 1, dtype=np.int64)
    turn = np.empty(total + 1, dtype=np.int64)  # where a round through a range began
    size = np.empty(total + 1, dtype=np.int64)
    column = np.empty(total + 1, dtype=np.int64)
    binds = np.zeros((total + 1, 2), dtype=np.bool_)
    at_target = -1  # the depth at which the target was bound; -1: before the search
    count = 0
    cost = 0
    entering = True
    while True:
        if entering:
            entering = False
            if depth == total:
                if target < 0:
                    return 1, cost
                end = values[target]
                if seen[end] != stamp:
                    seen[end] = stamp
                    found_ends[count] = end
                    count += 1
                if at_target < 0:
                    return count, cost
                for d in range(at_target + 1, total):
                    _unbind(steps, values, binds, d)
                    binds[d, 0] = binds[d, 1] = False
                depth = at_target
                continue
            subject, object_ = steps[depth, _SUB], steps[depth, _OBJ]
            s = values[subject] if subject >= 0 else ~subject
            o = values[object_] if object_ >= 0 else ~object_
            cost += 1
            low[depth] = tried[depth] = turn[depth] = 0
            if steps[depth, _WHAT] == NONE_OF:
                _, first, last = _range(kg, RELATION, steps[depth, _REL], s, o)
                holds = first == last and _differ(values, unequal, steps[depth, _FROM], steps[depth, _TO])
                size[depth] = 1 if holds else 0
                column[depth] = _CHECK
            else:
                column[depth], low[depth], last = _range(kg, steps[depth, _WHAT], steps[depth, _REL], s, o)
                size[depth] = last - low[depth]
                if size[depth] > 1:
                    bits = mix64(salt ^ np.uint64(s + 3) ^ (np.uint64(o + 3) << np.uint64(32)))
                    turn[depth] = np.int64(bits % np.uint64(size[depth]))
            binds[depth, 0] = column[depth] != _CHECK and s < 0
            binds[depth, 1] = column[depth] != _CHECK and o < 0 and subject != object_
            if (binds[depth, 0] and subject == target) or (binds[depth, 1] and object_ == target):
                at_target = depth
        # Try the next value at this depth.
        moved = False
        subject, object_, source = steps[depth, _SUB], steps[depth, _OBJ], column[depth]
        any_but = steps[depth, _REL] if steps[depth, _WHAT] == ANY else -3
        start, stop = steps[depth, _FROM], steps[depth, _TO]
        while tried[depth] < size[depth]:
            offset = turn[depth] + tried[depth]
            if offset >= size[depth]:
                offset -= size[depth]
            tried[depth] += 1
            cost += 1
            if cost > budget:
                return count, -cost
            if source == _CHECK:
                moved = True
                break
            index = low[depth] + offset
            # Connected by another relation than the one that is left out?
            if any_but != -3 and (out_only[index] if source == _OBJECTS else into_only[index]) == any_but:
                continue
            if binds[depth, 0] and (binds[depth, 1] or subject == object_):
                if source == _PAIRS_OF:
                    first, second = np.int64(subjects[index]), np.int64(objects[index])
                else:
                    first, second = lower_bound(out, 0, len(out), index + 1) - 1, np.int64(out_objects[index])
                if subject == object_ and first != second:
                    continue
                values[subject], values[object_] = first, second
            elif binds[depth, 0]:
                values[subject] = ends[index] if source == _ENDS else into_subjects[index]
            elif binds[depth, 1]:
                values[object_] = ends[index] if source == _ENDS else out_objects[index]
            if at_target == depth and seen[values[target]] == stamp:
                continue
            if start == stop or _differ(values, unequal, start, stop):
                moved = True
                break
        if moved:
            depth += 1
            entering = True
            continue
        _unbind(steps, values, binds, depth)
        if at_target == depth:
            at_target = -1
        depth -= 1
        if depth < 0:
            return count, cost
        _unbind(steps, values, binds, depth)


@kernel
def propose(
    kg: Any,
    steps: Any,
    unequal: Any,
    plans: Any,
    plan_numbers: Any,
    anchors: Any,
    salts: Any,
    excluded: Any,
    budget: Any,
    seen: Any,
    stamps: Any,
    most: Any,
) -> Any:
    """Return for each anchor up to `most` other ends, in a random order, and what the search cost.

    Parameters
    ----------
    kg
        The graph (see `near_miss_search.SearchIndex.arrays`).
    steps, unequal
        int64[k, 6], int64[q, 2], those of all plans one after the other.
    plans
        int64[p, 10], see the columns above.
    plan_numbers, anchors, salts
        int64[n], int64[n], ascending, and uint64[n]: the plan, the value of its bound variable, the salt of
        the order.
    excluded
        Sorted keys of triples that are no candidates.
    budget
        The cost after which a search is given up.
    seen, stamps
        int64[entities], and the first stamp that was not used yet.
    most
        How many ends to return at most.

    Returns
    -------
    tuple
        int64[n, most] ends in the order of their hashes, -1 beyond the last; int64[n] how many candidates
        were found, or any number above `most` if there are more; bool[n] whether the budget was spent.
    """
    ends = np.full((len(anchors), most), -1, dtype=np.int64)
    counts = np.zeros(len(anchors), dtype=np.int64)
    spent = np.zeros(len(anchors), dtype=np.bool_)
    values = np.empty(plans[:, _SIZE].max() if len(plans) else 0, dtype=np.int64)
    found_ends = np.empty(len(seen), dtype=np.int64)
    hashes = np.empty(most, dtype=np.uint64)
    number = 0
    for i in range(len(anchors)):
        plan = plans[plan_numbers[i]]
        # The ends of the same anchor are still there, unless its search was cut short.
        if i == 0 or plan_numbers[i] != plan_numbers[i - 1] or anchors[i] != anchors[i - 1] or spent[i - 1]:
            values[:] = -1
            values[plan[_ANCHOR]] = anchors[i]
            number, cost = _search(
                kg, steps[plan[_STEPS] : plan[_STEPS_TO]], unequal[plan[_PAIRS] : plan[_PAIRS_TO]], values,
                plan[_TARGET], salts[i], budget, seen, stamps + i, found_ends,
            )  # fmt: skip
            spent[i] = cost < 0
        kept = 0
        for j in range(number):
            key = plan[_FORM] + plan[_BY_ANCHOR] * anchors[i] + plan[_BY_END] * found_ends[j]
            mixed = mix64(mix64(key) ^ salts[i])
            late = kept == most and mixed >= hashes[most - 1]
            if late and counts[i] > most:
                continue  # it changes nothing whether this one is a candidate
            index = lower_bound(excluded, 0, len(excluded), key)
            if index < len(excluded) and excluded[index] == key:
                continue
            counts[i] += 1
            if late:
                continue
            spot = kept if kept < most else most - 1
            while spot > 0 and hashes[spot - 1] > mixed:
                hashes[spot] = hashes[spot - 1]
                ends[i, spot] = ends[i, spot - 1]
                spot -= 1
            hashes[spot] = mixed
            ends[i, spot] = found_ends[j]
            if kept < most:
                kept += 1
    return ends, counts, spent


@kernel
def first_witness(
    kg: Any, steps: Any, unequal: Any, variables: Any, first: Any, second: Any, pairs: Any, budget: Any, seen: Any
) -> Any:
    """Return for each pair of ends the values of all variables in a witness; -1s without one."""
    rows = np.full((len(pairs), variables), -1, dtype=np.int64)
    values = np.empty(variables, dtype=np.int64)
    found_ends = np.empty(1, dtype=np.int64)
    for i in range(len(pairs)):
        values[:] = -1
        if first >= 0:
            values[first] = pairs[i, 0]
        if second >= 0:
            values[second] = pairs[i, 1]
        number, cost = _search(kg, steps, unequal, values, -1, np.uint64(0), budget, seen, np.int64(-1), found_ends)
        if number == 1 and cost >= 0:
            for j in range(variables):
                rows[i, j] = values[j]
    return rows


@kernel
def every_end(kg: Any, steps: Any, unequal: Any, variables: Any, target: Any, seen: Any, stamp: Any) -> Any:
    """Return all values of the target, where nothing is bound from the start."""
    values = np.full(variables, -1, dtype=np.int64)
    found_ends = np.empty(len(seen), dtype=np.int64)
    limit = np.int64(2**62)
    number, _ = _search(kg, steps, unequal, values, target, np.uint64(0), limit, seen, stamp, found_ends)
    return found_ends[:number].copy()


@kernel
def first_free(near: Any, free: Any) -> Any:
    """Give each row in turn the first of its candidates that is free, and take it; -1 for none.

    Parameters
    ----------
    near
        int64[n, k], candidates by number.
    free
        bool[m], which candidates are free; changed.
    """
    chosen = np.full(len(near), -1, dtype=np.int64)
    for i in range(len(near)):
        for candidate in near[i]:
            if free[candidate]:
                free[candidate] = False
                chosen[i] = candidate
                break
    return chosen
