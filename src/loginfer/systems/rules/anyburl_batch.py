"""The kernel of a batch: walk, generalise, skip what is trivial or known, count, keep what is good enough."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined, kernel
from loginfer.systems.embedding.sampling import random_bits
from loginfer.systems.rules.anyburl_counting import (
    BODY,
    END_CONSTANT,
    HEAD,
    HEAD_CONSTANT,
    LENGTH,
    RULE,
    VARIABLES,
    Limits,
    Scratch,
    count,
)
from loginfer.systems.rules.anyburl_known import Keys, add_key, key_of
from loginfer.systems.rules.values import BOTH, LONGEST, NONE, OBJECT, SUBJECT
from loginfer.systems.rules.walks import (
    NODES,
    PLACES,
    RELATION,
    STEPS,
    TURNED,
    closed_walk,
    open_walk,
)
from loginfer.systems.rules.walks_graph import Ids, Places, WalkGraph

__all__ = ["DONE", "FULL", "KNOWN", "MOST_OF_A_WALK", "ROWS", "Found", "Thresholds", "run_batch"]

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
            closed_walk(graph, length, found.random, walk)
            if closed
            else open_walk(graph, length, found.random, walk)
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
    graph: WalkGraph,
    rule: Places,
    salt: Any,
    thresholds: Thresholds,
    limits: Limits,
    room: Scratch,
    found: Found,
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
