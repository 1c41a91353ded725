"""The compiled generic join: search over a plan (see `plan`), with an explicit stack."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine.native.plan import (
    ABSENT_END,
    CHILD,
    CONTEXT,
    DIFFERS,
    DIFFERS_END,
    LISTS,
    LOOPS,
    LOOPS_END,
    MEMO,
    NOTHING,
    PARENT,
    SIBLING,
    STAMP,
    STAMP_LEVEL,
    VARIABLE,
)
from loginfer.kernels import gallop, inlined, kernel, trailing_zeros

# A number: a Python int outside, an int64 inside.
Int: TypeAlias = Any
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Uint64 = npt.NDArray[np.uint64]

# A count that stands for itself and for all larger ones: a part beyond it may yet be multiplied by 0.
# Factors are at most this, so a sum of two fits into 64 bits without a sign.
TOO_MANY = 9_100_000_000_000_000_000
# Products are checked in floating point: this is a safe distance below.
_LARGEST = 9.0e18


class JoinArrays(NamedTuple):
    """What all kernels share: a plan with a body's ids in it, adjacency lists, and scratch memory.

    Parameters
    ----------
    nodes
        int64[n, NODE_FIELDS], the plan.
    constraints
        int64[m, 2]: row of `pointers`, and the term whose list is meant, or NOTHING.
    differs
        int64, terms.
    pointers
        int32[rows, E + 1], row pointers into `values`.
    values
        int32, adjacency lists.
    starts
        int32, domains, one after the other.
    terms
        int32, the value of each variable, then of each constant.
    memo
        int64[memos, E], results of subtrees by the value of their context, or -1.
    state
        int64[n, 2 · lists + 4]: a node's cursors (begin, end of each list), its domain's begin and end, its
        sum and its product.
    """

    nodes: Int64
    constraints: Int64
    differs: Int64
    pointers: Int32
    values: Int32
    starts: Int32
    terms: Int32
    memo: Int64
    state: Int64


@inlined
def _open(node: Int, join: JoinArrays) -> Int:
    """Set a node's cursors, the shortest list first; return that list's length."""
    nodes, constraints, pointers, terms, state = join.nodes, join.constraints, join.pointers, join.terms, join.state
    first = nodes[node, LISTS]
    count = nodes[node, LOOPS] - first
    width = state.shape[1]
    if count == 0:
        state[node, 0] = state[node, width - 4]
        state[node, 1] = state[node, width - 3]
        return state[node, 1] - state[node, 0]
    shortest = np.int64(0)
    for j in range(count):
        row = constraints[first + j, 0]
        value = terms[constraints[first + j, 1]]
        begin = np.int64(pointers[row, value])
        end = np.int64(pointers[row, value + 1])
        if j == 0:
            shortest = end - begin
        elif end - begin < shortest:
            shortest = end - begin
            state[node, 2 * j] = state[node, 0]
            state[node, 2 * j + 1] = state[node, 1]
            state[node, 0] = begin
            state[node, 1] = end
            continue
        state[node, 2 * j] = begin
        state[node, 2 * j + 1] = end
        if end == begin:
            return 0
    return shortest


@inlined
def _is_absent(node: Int, candidate: Int, join: JoinArrays) -> bool:
    """Say whether a candidate passes a node's negated atoms."""
    nodes, constraints, pointers, values, terms = join.nodes, join.constraints, join.pointers, join.values, join.terms
    for k in range(nodes[node, LOOPS_END], nodes[node, ABSENT_END]):
        row = constraints[k, 0]
        term = np.int64(constraints[k, 1])
        if term == NOTHING:
            if pointers[row, candidate] < pointers[row, candidate + 1]:
                return False
            continue
        owner = np.int64(candidate) if term == nodes[node, VARIABLE] else np.int64(terms[term])
        last = np.int64(pointers[row, owner + 1])
        position = gallop(values, np.int64(pointers[row, owner]), last, candidate)
        if position < last and values[position] == candidate:
            return False
    return True


@inlined
def _advance(node: Int, join: JoinArrays) -> Int:
    """Return a node's next candidate, or -1 when there are no more."""
    nodes, constraints, differs, pointers, values, starts, terms, _, state = join
    position = state[node, 0]
    end = state[node, 1]
    lists = nodes[node, LOOPS] - nodes[node, LISTS]
    while position < end:
        candidate = starts[position] if lists == 0 else values[position]
        position += 1
        passes = True
        for j in range(1, lists):
            match = gallop(values, state[node, 2 * j], state[node, 2 * j + 1], candidate)
            state[node, 2 * j] = match
            if match == state[node, 2 * j + 1]:
                state[node, 0] = end
                return -1
            if values[match] != candidate:
                passes = False
                break
        if not passes:
            continue
        for k in range(nodes[node, DIFFERS], nodes[node, DIFFERS_END]):
            if terms[differs[k]] == candidate:
                passes = False
        for k in range(nodes[node, LOOPS], nodes[node, LOOPS_END]):
            row = constraints[k, 0]
            last = np.int64(pointers[row, candidate + 1])
            match = gallop(values, np.int64(pointers[row, candidate]), last, candidate)
            if match == last or values[match] != candidate:
                passes = False
        if passes and _is_absent(node, candidate, join):
            state[node, 0] = position
            return candidate
    state[node, 0] = end
    return -1


@inlined
def _list_count(node: Int, join: JoinArrays) -> Int:
    """Return the number of candidates of a node with one list and nothing to check but inequalities."""
    nodes, differs, values, terms, state = join.nodes, join.differs, join.values, join.terms, join.state
    begin = state[node, 0]
    end = state[node, 1]
    total = end - begin
    for k in range(nodes[node, DIFFERS], nodes[node, DIFFERS_END]):
        other = terms[differs[k]]
        repeated = False
        for m in range(nodes[node, DIFFERS], k):
            if terms[differs[m]] == other:
                repeated = True
        if not repeated:
            position = gallop(values, begin, end, other)
            if position < end and values[position] == other:
                total -= 1
    return total


@inlined
def _evaluate(root: Int, exists: Any, join: JoinArrays) -> Int:
    """Return the number of witnesses of a subtree given what is bound above it; with `exists`, 0 or 1."""
    nodes, terms, memo, state = join.nodes, join.terms, join.memo, join.state
    width = state.shape[1]
    total = width - 2
    product = width - 1
    node = root
    entering = True
    while True:
        result: Int = np.int64(-1)
        child = nodes[node, CHILD]
        if entering:
            row = nodes[node, MEMO]
            if row >= 0:
                result = memo[row, terms[nodes[node, CONTEXT]]]
            if result < 0:
                lists = nodes[node, LOOPS] - nodes[node, LISTS]
                if _open(node, join) == 0:
                    result = np.int64(0)
                elif child < 0 and lists == 1 and nodes[node, LOOPS] == nodes[node, ABSENT_END]:
                    result = _list_count(node, join)
                else:
                    state[node, total] = 0
        if result < 0:
            while True:
                candidate = _advance(node, join)
                if child >= 0 or candidate < 0:
                    break
                state[node, total] += 1
                if exists:
                    break
            if candidate < 0 or child < 0:
                result = state[node, total]
            else:
                terms[nodes[node, VARIABLE]] = candidate
                state[node, product] = 1
                node = child
                entering = True
                continue
        # The result of this node is known: hand it upwards.
        while True:
            if exists and result > 1:
                result = np.int64(1)
            row = nodes[node, MEMO]
            if row >= 0:
                memo[row, terms[nodes[node, CONTEXT]]] = result
            if node == root:
                return result
            above = nodes[node, PARENT]
            if result == 0:
                node = above
                entering = False
                break
            if np.float64(state[above, product]) * np.float64(result) > _LARGEST:
                state[above, product] = TOO_MANY
            else:
                state[above, product] *= result
            if nodes[node, SIBLING] >= 0:
                node = nodes[node, SIBLING]
                entering = True
                break
            node = above
            state[node, total] += state[node, product]
            if state[node, total] < 0 or state[node, total] > TOO_MANY:
                state[node, total] = TOO_MANY
            if not exists:
                entering = False
                break
            result = np.int64(1)


@kernel
def _all_exist(first: Int, join: JoinArrays) -> bool:
    """Say whether this subtree and its siblings all have a witness."""
    nodes = join.nodes
    exists = np.bool_(True)  # a literal would cause one more compilation
    while first >= 0:
        witnesses = _evaluate(first, exists, join)
        if witnesses == 0:
            return False
        first = nodes[first, SIBLING]
    return True


@kernel
def count(first: Int, exists: Any, join: JoinArrays) -> Int:
    """Return the number of witnesses of one free subtree, or `TOO_MANY`."""
    return _evaluate(first, exists, join)


@kernel
def check(rows: Int32, extends: Bools, join: JoinArrays) -> None:
    """Of the `rows` (int32[n, trunk]) that `extends` marks, unmark those that extend to no witness."""
    nodes, constraints, differs, pointers, values, _, terms, _, _ = join
    for i in range(len(rows)):
        if not extends[i]:
            continue
        holds = True
        for level in range(rows.shape[1]):
            value = rows[i, level]
            terms[nodes[level, VARIABLE]] = value
            for k in range(nodes[level, LISTS], nodes[level, LOOPS_END]):
                row = constraints[k, 0]
                term = terms[constraints[k, 1]]
                end = np.int64(pointers[row, term + 1])
                position = gallop(values, np.int64(pointers[row, term]), end, np.int64(value))
                if position == end or values[position] != value:
                    holds = False
                    break
            for k in range(nodes[level, DIFFERS], nodes[level, DIFFERS_END]):
                if terms[differs[k]] == value:
                    holds = False
            if holds:
                holds = _is_absent(level, np.int64(value), join)
            if not holds:
                break
        level = 0
        while holds and level < rows.shape[1]:
            if nodes[level, CHILD] >= 0:
                holds = _all_exist(nodes[level, CHILD], join)
            level += 1
        extends[i] = holds


@kernel
def _flush(first: Int, marks: Uint64, blocks: Uint64, left: Int32, right: Int32, size: Int) -> Int:
    """Write `first` beside each marked value, ascending, clear the marks, return the new size.

    Marks are bytes, here eight at a time; `blocks` has a byte for each 256 of them.
    """
    one = np.uint64(1)
    for i in range(len(blocks)):
        marked = blocks[i]
        blocks[i] = 0
        while marked != 0:
            block = 8 * i + (np.int64(trailing_zeros(marked)) >> 3)
            marked &= marked - one
            for word_index in range(32 * block, 32 * block + 32):
                word = marks[word_index]
                if word == 0:
                    continue
                marks[word_index] = 0
                while word != 0:
                    left[size] = first
                    right[size] = 8 * word_index + (np.int64(trailing_zeros(word)) >> 3)
                    size += 1
                    word &= word - one
    return size


class Marks(NamedTuple):
    """Which values a projection has met.

    Parameters
    ----------
    values
        uint8, 0: a byte for each value met beside the current first one. (Plain stores are faster than
        setting bits.)
    blocks
        uint8, 0: a byte for each 256 of these.
    serial
        int64[trunk], 0: how many values each level has taken.
    stamps
        int64[stamps, E], 0: the serial number under which a value was tried last.
    """

    values: Bytes
    blocks: Bytes
    serial: Int64
    stamps: Int64


@kernel
def project(trunk: Int, size: Int, left: Int32, right: Int32, marked: Marks, join: JoinArrays) -> tuple[int, bool]:
    """Write the distinct values of the first and last trunk variable, sorted, beside each other.

    A trunk of one node gives its values in `left`. Returns how many there are, and whether these are all:
    if there may be no room for the pairs of one more first value, the search stops and is resumed by the
    next call with a size above zero.

    Parameters
    ----------
    trunk
        Number of trunk nodes.
    size
        How much of `left` and `right` is taken; 0 begins the search.
    left, right
        Where to write.
    marked, join
        What was marked so far, and what to search.
    """
    marks, blocks, serial, stamps = marked
    nodes, constraints, _, pointers, values, _, terms, _, state = join
    last = trunk - 1
    # Nothing to check but the list itself.
    plain = np.empty(trunk, dtype=np.bool_)
    for i in range(trunk):
        plain[i] = (
            nodes[i, LOOPS] - nodes[i, LISTS] == 1
            and nodes[i, ABSENT_END] == nodes[i, LOOPS]
            and nodes[i, DIFFERS_END] == nodes[i, DIFFERS]
        )
    # Then the innermost loop only sets marks: the boolean product of a chain.
    bare = last > 0 and plain[last] and nodes[last, CHILD] < 0
    capacity = len(left) - (len(marks) if last > 0 else 1)
    wide_marks = marks.view(np.uint64)
    wide_blocks = blocks.view(np.uint64)
    level: Int = np.int64(0)
    if size == 0:
        _open(level, join)
    while True:
        if level == 0 and size > capacity:
            return size, False
        candidate = np.int64(-1)
        if plain[level]:
            position = state[level, 0]
            if position < state[level, 1]:
                candidate = np.int64(values[position])
                state[level, 0] = position + 1
        else:
            candidate = np.int64(_advance(level, join))
        if candidate < 0:
            level -= 1
            if level < 0:
                return size, True
            if level == 0:
                size = _flush(np.int64(terms[nodes[0, VARIABLE]]), wide_marks, wide_blocks, left, right, size)
            continue
        if level == last and last > 0 and marks[candidate] != 0:
            continue
        row = nodes[level, STAMP]
        if row >= 0:
            current_serial = serial[nodes[level, STAMP_LEVEL]]
            if stamps[row, candidate] == current_serial:
                continue
            stamps[row, candidate] = current_serial
        terms[nodes[level, VARIABLE]] = candidate
        serial[level] += 1
        if nodes[level, CHILD] >= 0 and not _all_exist(nodes[level, CHILD], join):
            continue
        if level == last:
            if last == 0:
                left[size] = candidate
                size += 1
            else:
                marks[candidate] = 1
                blocks[candidate >> 8] = 1
            continue
        first = nodes[level + 1, LISTS]
        if bare and level + 1 == last:
            row = constraints[first, 0]
            term = terms[constraints[first, 1]]
            for position in range(pointers[row, term], pointers[row, term + 1]):
                value = values[position]
                marks[value] = 1
                blocks[value >> 8] = 1
            if level == 0:
                size = _flush(candidate, wide_marks, wide_blocks, left, right, size)
            continue
        level += 1
        if plain[level]:
            row = constraints[first, 0]
            term = terms[constraints[first, 1]]
            state[level, 0] = pointers[row, term]
            state[level, 1] = pointers[row, term + 1]
        else:
            _open(level, join)


@kernel
def listing(out: Int32, join: JoinArrays) -> Int:
    """Write witnesses in the order of the search until `out`, int32[m, trunk], is full; return how many."""
    nodes, terms = join.nodes, join.terms
    limit, trunk = out.shape
    size = 0
    level: Int = np.int64(0)
    _open(level, join)
    while level >= 0 and size < limit:
        candidate = _advance(level, join)
        if candidate < 0:
            level -= 1
            continue
        terms[nodes[level, VARIABLE]] = candidate
        # Looking ahead binds variables, but none of this level or above.
        if nodes[level, CHILD] >= 0 and not _all_exist(nodes[level, CHILD], join):
            continue
        if level < trunk - 1:
            level += 1
            _open(level, join)
            continue
        for variable in range(trunk):
            out[size, variable] = terms[variable]
        size += 1
    return size


@kernel
def first(contexts: Int32, out: Int32, join: JoinArrays) -> None:
    """Write the smallest witness of each row of `contexts` to `out`; there must be one.

    The trunk begins with the variables of `contexts`, int32[n, g]; the others are those of `out`,
    int32[n, trunk - g]. As every level looks ahead, the first value that passes has a witness below it.
    """
    nodes, terms = join.nodes, join.terms
    width = contexts.shape[1]
    for i in range(len(contexts)):
        for level in range(width):
            terms[nodes[level, VARIABLE]] = contexts[i, level]
        for level in range(width, width + out.shape[1]):
            _open(level, join)
            while True:
                candidate = _advance(level, join)
                out[i, level - width] = candidate
                if candidate < 0:
                    break
                terms[nodes[level, VARIABLE]] = candidate
                # Looking ahead binds variables, but none of this level or above.
                if nodes[level, CHILD] < 0 or _all_exist(nodes[level, CHILD], join):
                    break


@kernel
def transpose(left: Int32, right: Int32, entities: Int, new_left: Int32, new_right: Int32) -> None:
    """Exchange the sides of sorted pairs and sort them again."""
    ends = np.zeros(entities + 1, dtype=np.int64)
    for value in right:
        ends[value + 1] += 1
    for e in range(entities):
        ends[e + 1] += ends[e]
    for i in range(len(left)):
        position = ends[right[i]]
        ends[right[i]] += 1
        new_left[position] = right[i]
        new_right[position] = left[i]


@kernel
def assemble(left: Int32, right: Int32, relation: Int, subjects: Int32, objects: Int32, out: Int32) -> Int:
    """Write sorted pairs as triples, leaving out the (sorted) pairs of `subjects` and `objects`; return how many."""
    size = 0
    k = 0
    for i in range(len(left)):
        s = left[i]
        o = right[i]
        while k < len(subjects) and (subjects[k] < s or (subjects[k] == s and objects[k] < o)):
            k += 1
        if k < len(subjects) and subjects[k] == s and objects[k] == o:
            continue
        out[size, 0] = s
        out[size, 1] = relation
        out[size, 2] = o
        size += 1
    return size
