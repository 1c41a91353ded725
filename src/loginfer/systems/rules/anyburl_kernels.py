"""AnyBURL's kernels: count the predictions of a rule, and a batch of walks that finds rules.

Cyclic rules are counted by walks, others one prediction after the other. Different variables always stand for
different entities, which differ from the rule's constants. A batch walks, generalises, skips what is trivial
or was looked at before, counts, and keeps what is good enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.kernels import first_slot, inlined, kernel, random_bits
from loginfer.systems.rules.mined import BOTH, LONGEST, NONE, OBJECT, SUBJECT
from loginfer.systems.rules.walks import (
    NODES,
    RELATION,
    STEPS,
    TURNED,
    WALK_SIZE,
    Ids,
    Longs,
    Random,
    WalkGraph,
    begin_search,
    closed_walk,
    draw,
    find_ends,
    new_search,
    open_walk,
    read_steps,
    row_holds,
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
    """Memory for counting: a set of pairs, a set of entities, both emptied by a new stamp; and a list of ends."""

    pairs: Longs
    pair_stamps: Longs
    stamps: Longs
    ends: Longs
    stamp: Longs
    random: Random


def scratch(entities: int, limits: Limits) -> Scratch:
    """Return memory for graphs of so many entities, and for these limits."""
    size = 4 << int(limits.pairs).bit_length()
    return Scratch(
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
        np.zeros(entities + 1, dtype=np.int64),
        np.zeros(entities + 1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(2, dtype=np.uint64),
    )


@kernel
def count(graph: WalkGraph, rule: Longs, limits: Limits, scratch: Scratch) -> Any:
    """Return a rule's predictions, its correct predictions, and how many edges were looked at."""
    if rule[LENGTH] == 0:
        row = _head_row(graph, rule)
        return graph.sizes[rule[HEAD]], _size(graph, row), np.int64(1)
    if rule[HEAD_CONSTANT] == NONE:
        return _count_cyclic(graph, rule, limits, scratch)
    if rule[END_CONSTANT] == NONE:
        return _count_ac2(graph, rule, limits, scratch)
    if rule[LENGTH] == 1:
        last = row_of(graph, rule[END_CONSTANT], rule[BODY] ^ 1)
        if _size(graph, last) <= limits.predictions:
            return _count_shared(graph, rule, last)
    return _count_ac1(graph, rule, limits, scratch)


@inlined
def _size(graph: WalkGraph, row: Any) -> Any:
    return graph.row_edge[row + 1] - graph.row_edge[row] if row >= 0 else np.int64(0)


@inlined
def _head_row(graph: WalkGraph, rule: Longs) -> Any:
    """Return the row of those for which the head of an acyclic rule is true."""
    direction = 0 if rule[VARIABLES] == OBJECT else 1
    return row_of(graph, rule[HEAD_CONSTANT], 2 * rule[HEAD] + direction)


# -- cyclic rules ----------------------------------------------------------------------------------


@kernel
def _count_cyclic(graph: WalkGraph, rule: Longs, limits: Limits, scratch: Scratch) -> Any:
    """Sample the body from both ends, and add up what was found."""
    predictions, correct, edges_seen = np.int64(0), np.int64(0), np.int64(0)
    search = new_search()
    for side in range(2):
        read_steps(search, rule, BODY, rule[LENGTH], side == 1)
        scratch.stamp[0] += 1
        distinct, repeats = np.int64(0), np.int64(0)
        for _ in range(limits.starts):
            if distinct == limits.pairs or repeats == limits.repeats:
                break
            x, y, steps = _body_walk(graph, search.steps, rule[LENGTH], scratch.random)
            edges_seen += steps
            if x < 0:
                continue
            if not _is_new(scratch, x * np.int64(graph.itself) + y):
                repeats += 1
                continue
            repeats = np.int64(0)
            distinct += 1
            if side == 1:
                x, y = y, x
            correct += row_holds(graph, row_of(graph, x, 2 * rule[HEAD]), y)
        predictions += distinct
    return predictions, correct, edges_seen


@inlined
def _body_walk(graph: WalkGraph, steps: Longs, length: Any, random: Random) -> Any:
    """Walk along a body; returns start and end, -1 where it leads nowhere, and how many steps were taken."""
    first, stop = graph.step_first[steps[0]], graph.step_stop[steps[0]]
    if first == stop:
        return np.int64(-1), np.int64(-1), 1
    edge = first + draw(random, stop - first)
    start, constant = np.int64(graph.source[edge]), np.int64(graph.end[edge])
    before = start
    for i in range(1, length):
        row = row_of(graph, constant, steps[i])
        if row < 0:
            return np.int64(-1), np.int64(-1), i
        first, stop = graph.row_edge[row], graph.row_edge[row + 1]
        following = np.int64(graph.end[first + draw(random, stop - first)])
        # With up to three steps there are no more constants than these to meet again.
        if following in (start, before):
            return np.int64(-1), np.int64(-1), i
        before, constant = constant, following
    return start, constant, length


@inlined
def _is_new(scratch: Scratch, pair: Any) -> Any:
    """Put a pair into the set; False if it was there."""
    mask = len(scratch.pairs) - 1
    slot = first_slot(pair, len(scratch.pairs))
    while scratch.pair_stamps[slot] == scratch.stamp[0]:
        if scratch.pairs[slot] == pair:
            return False
        slot = (slot + 1) & mask
    scratch.pairs[slot] = pair
    scratch.pair_stamps[slot] = scratch.stamp[0]
    return True


# -- acyclic rules ---------------------------------------------------------------------------------


@kernel
def _count_shared(graph: WalkGraph, rule: Longs, last: Any) -> Any:
    """Count h(X,c) ⇐ b(X,d): two sorted rows, the shorter of which is looked up in the longer."""
    head = _head_row(graph, rule)
    c, d = rule[HEAD_CONSTANT], rule[END_CONSTANT]
    predictions, correct = _size(graph, last), np.int64(0)
    few, many = (head, last) if _size(graph, head) < predictions else (last, head)
    edges_seen = _size(graph, few)
    if edges_seen > 0:
        for edge in range(graph.row_edge[few], graph.row_edge[few + 1]):
            constant = np.int64(graph.end[edge])
            correct += constant != c and constant != d and row_holds(graph, many, constant)
    predictions -= row_holds(graph, last, c)
    if c != d:
        predictions -= row_holds(graph, last, d)
    return predictions, correct, edges_seen + 1


@kernel
def _count_ac1(graph: WalkGraph, rule: Longs, limits: Limits, scratch: Scratch) -> Any:
    """Follow the body back from its end constant, and count the distinct X."""
    head = _head_row(graph, rule)
    search = new_search()
    read_steps(search, rule, BODY, rule[LENGTH], True)
    row = row_of(graph, rule[END_CONSTANT], search.steps[0])
    predictions, correct, edges_seen = np.int64(0), np.int64(0), np.int64(1)
    if row < 0:
        return predictions, correct, edges_seen
    # Too many to see all: begin anywhere, not with those whose names come first.
    first, stop = graph.row_edge[row], graph.row_edge[row + 1]
    middle = first + draw(scratch.random, stop - first)
    scratch.stamp[0] += 1
    for part in range(2):
        begin_search(search, rule[END_CONSTANT], first if part else middle, middle if part else stop)
        count, seen = find_ends(
            graph,
            search,
            rule[LENGTH],
            rule[HEAD_CONSTANT],
            limits.predictions - predictions,
            _EDGES - edges_seen,
            scratch.stamps,
            scratch.stamp[0],
            scratch.ends,
        )
        edges_seen += seen
        predictions += count
        if head >= 0:
            for number in range(count):
                correct += row_holds(graph, head, scratch.ends[number])
    return predictions, correct, edges_seen


@kernel
def _count_ac2(graph: WalkGraph, rule: Longs, limits: Limits, scratch: Scratch) -> Any:
    """Go through the X with which the body begins, and count those for which it goes on to its end."""
    head = _head_row(graph, rule)
    first, stop = graph.row_first[rule[BODY]], graph.row_first[rule[BODY] + 1]
    search = new_search()
    read_steps(search, rule, BODY, rule[LENGTH], False)
    size = stop - first
    predictions, correct, edges_seen = np.int64(0), np.int64(0), np.int64(1)
    if size == 0:
        return predictions, correct, edges_seen
    offset = draw(scratch.random, size)
    for i in range(size):
        if predictions == limits.predictions or edges_seen >= _EDGES:
            break
        row = first + (i + offset) % size
        x = np.int64(graph.source[graph.row_edge[row]])
        edges_seen += 1
        if x == rule[HEAD_CONSTANT] or x == graph.itself:
            continue
        begin_search(search, x, graph.row_edge[row], graph.row_edge[row + 1])
        scratch.stamp[0] += 1
        count, seen = find_ends(
            graph,
            search,
            rule[LENGTH],
            rule[HEAD_CONSTANT],
            1,
            _EDGES - edges_seen,
            scratch.stamps,
            scratch.stamp[0],
            scratch.ends,
        )
        edges_seen += seen
        predictions += count
        if count:
            correct += row_holds(graph, head, x)
    return predictions, correct, edges_seen


Keys = npt.NDArray[np.uint64]

# A key that no rule has: an empty slot.
_EMPTY = np.uint64(0)


@inlined
def key_of(rule: Longs, entities: Any, relations: Any) -> Any:
    """Pack a rule into 64 bits.

    The key is a number whose digits are the rule's parts, all of them above 0, so that different rules have
    different keys as long as it does not overflow; three atoms and two constants of a very large vocabulary
    do. Then it is a hash, and one rule in some 10¹³ may be taken for another one.
    """
    steps = np.uint64(2 * relations + 1)
    constants = np.uint64(entities + 2)
    key = np.uint64(rule[HEAD] + 1)
    for i in range(rule[LENGTH]):
        key = key * steps + np.uint64(rule[BODY + i] + 1)
    if rule[VARIABLES] != BOTH:
        key = key * constants + np.uint64(rule[HEAD_CONSTANT] + 1)
        key = key * constants + np.uint64(rule[END_CONSTANT] + 1)
    key = key * np.uint64(3) + np.uint64(rule[VARIABLES])
    return key if key != _EMPTY else np.uint64(1)


@inlined
def add_key(keys: Keys, key: Any) -> Any:
    """Put a key into the set, which must not be full; False if it was there."""
    mask = np.uint64(len(keys) - 1)
    slot = random_bits(key, 0) & mask
    while keys[slot] != _EMPTY:
        if keys[slot] == key:
            return False
        slot = (slot + np.uint64(1)) & mask
    keys[slot] = key
    return True


@kernel
def fill(keys: Keys, others: Keys) -> None:
    """Put all keys of another set, or list, into a set."""
    for key in others:
        if key != _EMPTY:
            add_key(keys, key)


# Rules that one walk yields, at most.
MOST_OF_A_WALK = 3

# How a call ends: the batch is done, or the `RuleStore` is full.
DONE, FULL = 0, 1

# Indices into `RuleStore.counters`: rules kept, rules looked at, and of this batch: edges seen, walks, and the last
# walk that led to a rule which was kept.
ROWS, KNOWN, WORK, WALKS, LAST_KEPT = 0, 1, 2, 3, 4
COUNTERS = 5

# Drawing a head costs as much as this many edges: it may be anywhere in memory.
_DRAWING = 10


class LeastCounts(NamedTuple):
    """What a rule must reach to be kept; a zero rule needs more correct predictions."""

    correct: int
    zero_correct: int
    confidence: float


class RuleStore(NamedTuple):
    """The rules that were kept, and the keys of all that were looked at.

    Parameters
    ----------
    keys
        uint64[power of 2], the set of all rules that were looked at.
    rules
        int32[capacity, RULE], the rules that were kept.
    counts
        int64[capacity, 2], their predictions and correct predictions.
    counters
        int64[COUNTERS]: see above.
    reward
        float64[1], what the batch has earned.
    random
        uint64[2], the batch's salt and counter.
    """

    keys: Keys
    rules: Ids
    counts: Longs
    counters: Longs
    reward: npt.NDArray[np.float64]
    random: Random


@kernel
def run_batch(
    graph: WalkGraph,
    closed: bool,
    length: int,
    edge_budget: int,
    idle: int,
    salt: Any,
    thresholds: LeastCounts,
    limits: Limits,
    scratch: Scratch,
    store: RuleStore,
) -> int:
    """Walk until so many edges were looked at, or so many walks in a row have led to no new rule.

    Parameters
    ----------
    graph
        Where to walk.
    closed, length
        The class of walk.
    edge_budget
        Edges to look at. So a batch ends at the same walk everywhere, after about the same time.
    idle
        Walks without a new rule that is kept after which the batch ends.
    salt
        What the sampling of predictions depends on, besides the rule.
    thresholds, limits, scratch, store
        See there.
    """
    walk = np.zeros(WALK_SIZE, dtype=np.int64)
    rule = np.zeros(RULE, dtype=np.int64)
    counters = store.counters
    while counters[WORK] < edge_budget and counters[WALKS] - counters[LAST_KEPT] < idle:
        fewest = min(len(store.rules) - counters[ROWS], len(store.keys) // 2 - counters[KNOWN])
        if fewest < MOST_OF_A_WALK:
            return FULL
        counters[WALKS] += 1
        counters[WORK] += length + _DRAWING
        ended = (
            closed_walk(graph, length, store.random, walk) if closed else open_walk(graph, length, store.random, walk)
        )
        if not ended:
            continue
        for which in range(MOST_OF_A_WALK):
            is_rule = (
                generalise_closed(graph, walk, length, which, rule)
                if closed
                else generalise_open(graph, walk, length, which, rule)
            )
            if is_rule and not _is_trivial(rule):
                _consider(graph, rule, salt, thresholds, limits, scratch, store)
    return DONE


@inlined
def _consider(
    graph: WalkGraph,
    rule: Longs,
    salt: Any,
    thresholds: LeastCounts,
    limits: Limits,
    scratch: Scratch,
    store: RuleStore,
) -> None:
    """Count a rule that was not looked at before, and keep it if it is good enough."""
    key = key_of(rule, graph.itself, len(graph.sizes))
    if not add_key(store.keys, key):
        return
    store.counters[KNOWN] += 1
    # The same rule is counted alike whenever and however it is found.
    scratch.random[0] = random_bits(salt, key)
    scratch.random[1] = 0
    predictions, correct, edges_seen = count(graph, rule, limits, scratch)
    store.counters[WORK] += edges_seen
    least = thresholds.correct if rule[LENGTH] else thresholds.zero_correct
    if correct < least or correct < thresholds.confidence * predictions:
        return
    row = store.counters[ROWS]
    for i in range(RULE):
        store.rules[row, i] = rule[i]
    store.counts[row, 0] = predictions
    store.counts[row, 1] = correct
    store.counters[ROWS] += 1
    store.counters[LAST_KEPT] = store.counters[WALKS]
    store.reward[0] += correct * (correct / predictions) / 2.0 ** (rule[LENGTH] - 1)


# -- generalisation --------------------------------------------------------------------------------


@kernel
def generalise_closed(graph: WalkGraph, walk: Longs, length: int, which: int, rule: Longs) -> bool:
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
        for i in range(length):
            # The body leads from the head's second constant to its first: if the head was not turned,
            # from Y to X.
            rule[BODY + i] = walk[STEPS + i] if turned else walk[STEPS + length - 1 - i] ^ 1
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
def generalise_open(graph: WalkGraph, walk: Longs, length: int, which: int, rule: Longs) -> bool:
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
    for i in range(length):
        rule[BODY + i] = walk[STEPS + i]
    if which == 0 and length > 0:
        rule[END_CONSTANT] = last
    _straighten(graph, rule)
    return True


@inlined
def _clear(rule: Longs, head: Any, length: Any) -> None:
    rule[HEAD] = head
    rule[HEAD_CONSTANT] = NONE
    rule[END_CONSTANT] = NONE
    rule[LENGTH] = length
    for i in range(LONGEST):
        rule[BODY + i] = NONE


@inlined
def _straighten(graph: WalkGraph, rule: Longs) -> None:
    """Write a loop one way: h(X,i) and h(i,X) are both h(X,X)."""
    if rule[HEAD_CONSTANT] == graph.itself:
        rule[VARIABLES] = SUBJECT
    if rule[END_CONSTANT] == graph.itself:
        rule[BODY + rule[LENGTH] - 1] &= -2


@inlined
def _is_trivial(rule: Longs) -> Any:
    """Say whether the head is in the body."""
    if rule[LENGTH] != 1 or rule[HEAD_CONSTANT] != rule[END_CONSTANT]:
        return False
    return rule[BODY] == 2 * rule[HEAD] + (1 if rule[VARIABLES] == OBJECT else 0)
