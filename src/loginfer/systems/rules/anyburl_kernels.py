"""Its batches.

Kernels that count the predictions of a rule, as AnyBURL does: cyclic rules by walks, others one by one.

Different variables always stand for different entities, which differ from the rule's constants.

The set of rules that were looked at already: open addressing over packed keys.

The kernel of a batch: walk, generalise, skip what is trivial or known, count, keep what is good enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.kernels import inlined, kernel, lower_bound, random_bits
from loginfer.systems.rules.mined import BOTH, LONGEST, NONE, OBJECT, SUBJECT
from loginfer.systems.rules.walks import (
    NODES,
    PLACES,
    RELATION,
    STEPS,
    TURNED,
    Ids,
    Places,
    WalkGraph,
    closed_walk,
    draw,
    met,
    open_walk,
    row_of,
)

# A rule in an array of int64, as in a row of a `RuleTable`.
HEAD, VARIABLES, HEAD_CONSTANT, END_CONSTANT, LENGTH, BODY = 0, 1, 2, 3, 4, 5
RULE = BODY + LONGEST

# Edges that are looked at for an acyclic rule, at most.
_EDGES = 100_000


class Limits(NamedTuple):
    """How far to count.

    Parameters
    ----------
    pairs
        Distinct pairs of a cyclic rule, from each end.
    repeats
        So many pairs in a row that were seen before end the sampling of a cyclic rule.
    starts
        Walks of a cyclic rule, from each end.
    predictions
        Predictions of an acyclic rule.
    """

    pairs: int = 1000
    repeats: int = 5
    starts: int = 100_000
    predictions: int = 2000


class Scratch(NamedTuple):
    """Memory for counting: a set of pairs, a set of entities, both emptied by a new stamp."""

    pairs: npt.NDArray[np.int64]
    pair_stamps: npt.NDArray[np.int64]
    stamps: npt.NDArray[np.int64]
    stamp: npt.NDArray[np.int64]
    random: npt.NDArray[np.uint64]


def scratch(entities: int, limits: Limits) -> Scratch:
    """Return memory for graphs of so many entities, and for these limits."""
    size = 4 << int(limits.pairs).bit_length()
    return Scratch(
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
        np.zeros(entities + 1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(2, dtype=np.uint64),
    )


@kernel
def count(graph: WalkGraph, rule: Places, limits: Limits, room: Scratch) -> Any:
    """Return a rule's predictions, its correct predictions, and how many edges were looked at."""
    if rule[LENGTH] == 0:
        row = _head_row(graph, rule)
        return graph.sizes[rule[HEAD]], _size(graph, row), np.int64(1)
    if rule[HEAD_CONSTANT] == NONE:
        return _count_cyclic(graph, rule, limits, room)
    if rule[END_CONSTANT] == NONE:
        return _count_ac2(graph, rule, limits, room)
    if rule[LENGTH] == 1:
        last = row_of(graph, rule[END_CONSTANT], rule[BODY] ^ 1)
        if _size(graph, last) <= limits.predictions:
            return _count_shared(graph, rule, last)
    return _count_ac1(graph, rule, limits, room)


@inlined
def _size(graph: WalkGraph, row: Any) -> Any:
    return graph.row_edge[row + 1] - graph.row_edge[row] if row >= 0 else np.int64(0)


@inlined
def _head_row(graph: WalkGraph, rule: Places) -> Any:
    """Return the row of those for which the head of an acyclic rule is true."""
    direction = 0 if rule[VARIABLES] == OBJECT else 1
    return row_of(graph, rule[HEAD_CONSTANT], 2 * rule[HEAD] + direction)


@inlined
def _holds(graph: WalkGraph, row: Any, constant: Any) -> Any:
    """Say whether a row has an edge to a constant."""
    if row < 0:
        return False
    stop = graph.row_edge[row + 1]
    place = lower_bound(graph.end, graph.row_edge[row], stop, constant)
    return place < stop and graph.end[place] == constant


# -- cyclic rules ----------------------------------------------------------------------------------


@kernel
def _count_cyclic(graph: WalkGraph, rule: Places, limits: Limits, room: Scratch) -> Any:
    """Sample the body from both ends, and add up what was found."""
    predictions, correct, work = np.int64(0), np.int64(0), np.int64(0)
    for side in range(2):
        room.stamp[0] += 1
        distinct, repeats = np.int64(0), np.int64(0)
        for _ in range(limits.starts):
            if distinct == limits.pairs or repeats == limits.repeats:
                break
            x, y, steps = _body_walk(graph, rule, side, room.random)
            work += steps
            if x < 0:
                continue
            if not _is_new(room, x * np.int64(graph.itself) + y):
                repeats += 1
                continue
            repeats = np.int64(0)
            distinct += 1
            if side == 1:
                x, y = y, x
            correct += _holds(graph, row_of(graph, x, 2 * rule[HEAD]), y)
        predictions += distinct
    return predictions, correct, work


@inlined
def _body_walk(graph: WalkGraph, rule: Places, side: Any, random: npt.NDArray[np.uint64]) -> Any:
    """Walk along the body from one end; returns start and end, -1 where it leads nowhere, and the steps."""
    length = rule[LENGTH]
    step = rule[BODY + length - 1] ^ 1 if side else rule[BODY]
    first, stop = graph.step_first[step], graph.step_stop[step]
    if first == stop:
        return np.int64(-1), np.int64(-1), 1
    edge = first + draw(random, stop - first)
    start, constant = np.int64(graph.source[edge]), np.int64(graph.end[edge])
    before = start
    for place in range(1, length):
        step = rule[BODY + length - 1 - place] ^ 1 if side else rule[BODY + place]
        row = row_of(graph, constant, step)
        if row < 0:
            return np.int64(-1), np.int64(-1), place
        first, stop = graph.row_edge[row], graph.row_edge[row + 1]
        following = np.int64(graph.end[first + draw(random, stop - first)])
        # With up to three steps there are no more constants than these to meet again.
        if following in (start, before):
            return np.int64(-1), np.int64(-1), place
        before, constant = constant, following
    return start, constant, length


@inlined
def _is_new(room: Scratch, pair: Any) -> Any:
    """Put a pair into the set; False if it was there."""
    mask = len(room.pairs) - 1
    place = np.int64((np.uint64(pair) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while room.pair_stamps[place] == room.stamp[0]:
        if room.pairs[place] == pair:
            return False
        place = (place + 1) & mask
    room.pairs[place] = pair
    room.pair_stamps[place] = room.stamp[0]
    return True


# -- acyclic rules ---------------------------------------------------------------------------------


@kernel
def _count_shared(graph: WalkGraph, rule: Places, last: Any) -> Any:
    """Count h(X,c) ⇐ b(X,d): two sorted rows, the shorter of which is looked up in the longer."""
    head = _head_row(graph, rule)
    c, d = rule[HEAD_CONSTANT], rule[END_CONSTANT]
    predictions, correct = _size(graph, last), np.int64(0)
    few, many = (head, last) if _size(graph, head) < predictions else (last, head)
    work = _size(graph, few)
    if work > 0:
        for edge in range(graph.row_edge[few], graph.row_edge[few + 1]):
            constant = np.int64(graph.end[edge])
            correct += constant != c and constant != d and _holds(graph, many, constant)
    predictions -= _holds(graph, last, c)
    if c != d:
        predictions -= _holds(graph, last, d)
    return predictions, correct, work + 1


@kernel
def _count_ac1(graph: WalkGraph, rule: Places, limits: Limits, room: Scratch) -> Any:
    """Follow the body back from its end constant, and count the distinct X."""
    length, apart = rule[LENGTH], rule[HEAD_CONSTANT]
    head = _head_row(graph, rule)
    at, stop = np.zeros(LONGEST, dtype=np.int64), np.zeros(LONGEST, dtype=np.int64)
    nodes = np.zeros(LONGEST, dtype=np.int64)
    first = row_of(graph, rule[END_CONSTANT], rule[BODY + length - 1] ^ 1)
    size = _size(graph, first)
    predictions, correct, work = np.int64(0), np.int64(0), np.int64(1)
    if size == 0:
        return predictions, correct, work
    # Too many to see all: begin anywhere, not with those whose names come first.
    offset = draw(room.random, size)
    room.stamp[0] += 1
    nodes[0], stop[0] = rule[END_CONSTANT], size
    depth = 0
    while depth >= 0 and predictions < limits.predictions and work < _EDGES:
        if at[depth] == stop[depth]:
            depth -= 1
            continue
        edge = at[depth]
        if depth == 0:
            edge = graph.row_edge[first] + (edge + offset) % size
        at[depth] += 1
        work += 1
        constant = np.int64(graph.end[edge])
        if constant == apart or met(nodes, 0, depth + 1, constant):
            continue
        if depth < length - 1:
            row = row_of(graph, constant, rule[BODY + length - 2 - depth] ^ 1)
            if row >= 0:
                depth += 1
                nodes[depth] = constant
                at[depth], stop[depth] = graph.row_edge[row], graph.row_edge[row + 1]
        elif room.stamps[constant] != room.stamp[0]:
            room.stamps[constant] = room.stamp[0]
            predictions += 1
            correct += _holds(graph, head, constant)
    return predictions, correct, work


@kernel
def _count_ac2(graph: WalkGraph, rule: Places, limits: Limits, room: Scratch) -> Any:
    """Go through the X with which the body begins, and count those for which it goes on to its end."""
    step, apart = rule[BODY], rule[HEAD_CONSTANT]
    head = _head_row(graph, rule)
    first, stop = graph.row_first[step], graph.row_first[step + 1]
    at, stops = np.zeros(LONGEST, dtype=np.int64), np.zeros(LONGEST, dtype=np.int64)
    nodes = np.zeros(LONGEST, dtype=np.int64)
    size = stop - first
    predictions, correct, work = np.int64(0), np.int64(0), np.int64(1)
    if size == 0:
        return predictions, correct, work
    offset = draw(room.random, size)
    for place in range(size):
        if predictions == limits.predictions or work >= _EDGES:
            break
        row = first + (place + offset) % size
        constant = np.int64(graph.source[graph.row_edge[row]])
        work += 1
        if constant == apart or constant == graph.itself:
            continue
        nodes[0] = constant
        at[0], stops[0] = graph.row_edge[row], graph.row_edge[row + 1]
        found, seen = _reaches_an_end(graph, rule, nodes, at, stops, _EDGES - work)
        work += seen
        if found:
            predictions += 1
            correct += _holds(graph, head, constant)
    return predictions, correct, work


@inlined
def _reaches_an_end(graph: WalkGraph, rule: Places, nodes: Places, at: Places, stop: Places, most: Any) -> Any:
    """Say whether the body leads anywhere from the first of the nodes, and how many edges were looked at."""
    depth, work = 0, np.int64(0)
    while depth >= 0 and work < most:
        if at[depth] == stop[depth]:
            depth -= 1
            continue
        constant = np.int64(graph.end[at[depth]])
        at[depth] += 1
        work += 1
        if constant == rule[HEAD_CONSTANT] or met(nodes, 0, depth + 1, constant):
            continue
        if depth == rule[LENGTH] - 1:
            return True, work
        row = row_of(graph, constant, rule[BODY + depth + 1])
        if row >= 0:
            depth += 1
            nodes[depth] = constant
            at[depth], stop[depth] = graph.row_edge[row], graph.row_edge[row + 1]
    return False, work


Keys = npt.NDArray[np.uint64]

# A key that no rule has: an empty place.
_EMPTY = np.uint64(0)


@inlined
def key_of(rule: Places, entities: Any, relations: Any) -> Any:
    """Pack a rule into 64 bits.

    The key is a number whose digits are the rule's parts, all of them above 0, so that different rules have
    different keys as long as it does not overflow; three atoms and two constants of a very large vocabulary
    do. Then it is a hash, and one rule in some 10¹³ may be taken for known.
    """
    steps = np.uint64(2 * relations + 1)
    constants = np.uint64(entities + 2)
    key = np.uint64(rule[HEAD] + 1)
    for place in range(rule[LENGTH]):
        key = key * steps + np.uint64(rule[BODY + place] + 1)
    if rule[VARIABLES] != BOTH:
        key = key * constants + np.uint64(rule[HEAD_CONSTANT] + 1)
        key = key * constants + np.uint64(rule[END_CONSTANT] + 1)
    key = key * np.uint64(3) + np.uint64(rule[VARIABLES])
    return key if key != _EMPTY else np.uint64(1)


@inlined
def add_key(keys: Keys, key: Any) -> Any:
    """Put a key into the set, which must have room; False if it was there."""
    mask = np.uint64(len(keys) - 1)
    place = random_bits(key, 0) & mask
    while keys[place] != _EMPTY:
        if keys[place] == key:
            return False
        place = (place + np.uint64(1)) & mask
    keys[place] = key
    return True


@kernel
def fill(keys: Keys, others: Keys) -> None:
    """Put all keys of another set, or list, into a set."""
    for key in others:
        if key != _EMPTY:
            add_key(keys, key)


# Rules that one walk yields, at most.
MOST_OF_A_WALK = 3

# How a call ends: the batch is done, or `Found` has no room left.
DONE, FULL = 0, 1

# Places of `Found.counters`: rules kept, rules looked at, and of this batch: work done, walks, and the last
# walk that led to a rule which was kept.
ROWS, KNOWN, WORK, WALKS, LAST_KEPT = 0, 1, 2, 3, 4
COUNTERS = 5

# A head costs as much as so many edges: it may be anywhere.
_DRAWING = 10


class Thresholds(NamedTuple):
    """What a rule must reach to be kept; a zero rule needs more correct predictions."""

    correct: int
    zero_correct: int
    confidence: float


class Found(NamedTuple):
    """What has been found.

    Parameters
    ----------
    keys
        uint64[power of 2], the set of all rules that were looked at.
    rules
        int32[room, RULE], the rules that were kept.
    counts
        int64[room, 2], their predictions and correct predictions.
    counters
        int64[COUNTERS]: see above.
    reward
        float64[1], what the batch has earned.
    random
        uint64[2], the batch's salt and counter.
    """

    keys: Keys
    rules: Ids
    counts: npt.NDArray[np.int64]
    counters: npt.NDArray[np.int64]
    reward: npt.NDArray[np.float64]
    random: npt.NDArray[np.uint64]


@kernel
def run_batch(
    graph: WalkGraph,
    closed: bool,
    length: int,
    work: int,
    idle: int,
    salt: Any,
    thresholds: Thresholds,
    limits: Limits,
    room: Scratch,
    found: Found,
) -> int:
    """Walk until so much work is done, or so many walks in a row have led to no new rule.

    Parameters
    ----------
    graph
        Where to walk.
    closed, length
        The class of walk.
    work
        Edges to look at. A batch so takes about the same time everywhere, and ends at the same walk.
    idle
        Walks without a new rule that is kept after which the batch ends.
    salt
        What the sampling of predictions depends on, besides the rule.
    thresholds, limits, room, found
        See there.
    """
    walk = np.zeros(PLACES, dtype=np.int64)
    rule = np.zeros(RULE, dtype=np.int64)
    counters = found.counters
    while counters[WORK] < work and counters[WALKS] - counters[LAST_KEPT] < idle:
        fewest = min(len(found.rules) - counters[ROWS], len(found.keys) // 2 - counters[KNOWN])
        if fewest < MOST_OF_A_WALK:
            return FULL
        counters[WALKS] += 1
        counters[WORK] += length + _DRAWING
        ended = (
            closed_walk(graph, length, found.random, walk) if closed else open_walk(graph, length, found.random, walk)
        )
        if not ended:
            continue
        for which in range(MOST_OF_A_WALK):
            made = (
                generalise_closed(graph, walk, length, which, rule)
                if closed
                else generalise_open(graph, walk, length, which, rule)
            )
            if made and not _is_trivial(rule):
                _consider(graph, rule, salt, thresholds, limits, room, found)
    return DONE


@inlined
def _consider(
    graph: WalkGraph, rule: Places, salt: Any, thresholds: Thresholds, limits: Limits, room: Scratch, found: Found
) -> None:
    """Count a rule that is not known yet, and keep it if it is good enough."""
    key = key_of(rule, graph.itself, len(graph.sizes))
    if not add_key(found.keys, key):
        return
    found.counters[KNOWN] += 1
    # The same rule is counted alike whenever and however it is found.
    room.random[0] = random_bits(salt, key)
    room.random[1] = 0
    predictions, correct, work = count(graph, rule, limits, room)
    found.counters[WORK] += work
    least = thresholds.correct if rule[LENGTH] else thresholds.zero_correct
    if correct < least or correct < thresholds.confidence * predictions:
        return
    row = found.counters[ROWS]
    for place in range(RULE):
        found.rules[row, place] = rule[place]
    found.counts[row, 0] = predictions
    found.counts[row, 1] = correct
    found.counters[ROWS] += 1
    found.counters[LAST_KEPT] = found.counters[WALKS]
    found.reward[0] += correct * (correct / predictions) / 2.0 ** (rule[LENGTH] - 1)


# -- generalisation --------------------------------------------------------------------------------


@kernel
def generalise_closed(graph: WalkGraph, walk: Places, length: int, which: int, rule: Places) -> bool:
    """Make a rule of a closed walk: 0 the cyclic one; of length 1 also 1: h(X,c) ⇐ b(X,c), 2: its mirror."""
    loop = walk[NODES] == graph.itself
    if which > 0 and length > 1:
        return False
    if loop and which != 1:
        return False
    _clear(rule, walk[RELATION], length)
    turned = walk[TURNED]
    if which == 0:
        rule[VARIABLES] = BOTH
        for place in range(length):
            # The body leads from the head's second constant to its first: if the head was not turned,
            # from Y to X.
            rule[BODY + place] = walk[STEPS + place] if turned else walk[STEPS + length - 1 - place] ^ 1
        return True
    # Either constant of the head stays. The walk's step leads from the second to the first.
    kept = NODES if which == 1 else NODES + 1
    subject_stays = (kept == NODES) != (turned == 1)
    rule[VARIABLES] = OBJECT if subject_stays else SUBJECT
    rule[HEAD_CONSTANT] = walk[kept]
    rule[END_CONSTANT] = walk[kept]
    rule[BODY] = walk[STEPS] if which == 1 else walk[STEPS] ^ 1
    _straighten(graph, rule)
    return True


@kernel
def generalise_open(graph: WalkGraph, walk: Places, length: int, which: int, rule: Places) -> bool:
    """Make a rule of an open walk: 0 AC1, or the zero rule of a walk without steps; 1 AC2."""
    last = walk[NODES + length + 1]
    if which > 1 or (which == 1 and length == 0):
        return False
    if length == 0 and walk[NODES] == graph.itself:
        return False
    if which == 1 and (last == graph.itself or walk[STEPS + length - 1] >> 1 == graph.type_relation):
        # Whether there is any type, or any loop, is no atom of a rule.
        return False
    _clear(rule, walk[RELATION], length)
    rule[VARIABLES] = SUBJECT if walk[TURNED] else OBJECT
    rule[HEAD_CONSTANT] = walk[NODES]
    for place in range(length):
        rule[BODY + place] = walk[STEPS + place]
    if which == 0 and length > 0:
        rule[END_CONSTANT] = last
    _straighten(graph, rule)
    return True


@inlined
def _clear(rule: Places, head: Any, length: Any) -> None:
    rule[HEAD] = head
    rule[HEAD_CONSTANT] = NONE
    rule[END_CONSTANT] = NONE
    rule[LENGTH] = length
    for place in range(LONGEST):
        rule[BODY + place] = NONE


@inlined
def _straighten(graph: WalkGraph, rule: Places) -> None:
    """Write a loop one way: h(X,i) and h(i,X) are both h(X,X)."""
    if rule[HEAD_CONSTANT] == graph.itself:
        rule[VARIABLES] = SUBJECT
    if rule[END_CONSTANT] == graph.itself:
        rule[BODY + rule[LENGTH] - 1] &= -2


@inlined
def _is_trivial(rule: Places) -> Any:
    """Say whether the head is in the body."""
    if rule[LENGTH] != 1 or rule[HEAD_CONSTANT] != rule[END_CONSTANT]:
        return False
    return rule[BODY] == 2 * rule[HEAD] + (1 if rule[VARIABLES] == OBJECT else 0)
