"""The kernel that estimates the confidences of cyclic rules from both sides, as RuleN does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined, kernel
from loginfer.systems.rules.sorted_lists import position
from loginfer.systems.rules.values import LONGEST, NONE
from loginfer.systems.rules.walks import draw, met, row_of
from loginfer.systems.rules.walks_graph import Ids, Places, WalkGraph

__all__ = ["HEAD_SIDE", "TAIL_SIDE", "count_sides"]

# Pairs that start from some Y, and pairs that start from some X.
HEAD_SIDE, TAIL_SIDE = 0, 1

# Edges to look at for one side of a rule, at most.
_EDGES = 2**22


@kernel
def count_sides(
    graph: WalkGraph,
    head: int,
    bodies: Ids,
    enough: int,
    shuffled: bool,
    random: npt.NDArray[np.uint64],
    stamps: Places,
    counts: npt.NDArray[np.int64],
) -> None:
    """Count pairs, and correct ones, of each body from both sides.

    Parameters
    ----------
    graph
        What the bodies lead through.
    head
        The head's relation.
    bodies
        int32[m, LONGEST], as in a `RuleTable`.
    enough
        So many pairs of a side, once some entities have been looked at with all their pairs.
    shuffled
        Whether to take entities in any order, or in that of their ids.
    random
        Salt and counter.
    stamps
        int64[entities + 1]: memory, 0 at first.
    counts
        int64[m, 2, 2], the result: for each side pairs and correct ones.
    """
    steps = np.zeros(LONGEST, dtype=np.int64)
    at, stop = np.zeros(LONGEST, dtype=np.int64), np.zeros(LONGEST, dtype=np.int64)
    nodes = np.zeros(LONGEST, dtype=np.int64)
    stamp = np.int64(0)
    for rule in range(len(bodies)):
        length = 0
        while length < LONGEST and bodies[rule, length] != NONE:
            length += 1
        for side in range(2):
            for place in range(length):
                steps[place] = (
                    bodies[rule, place] if side == TAIL_SIDE else bodies[rule, length - 1 - place] ^ 1
                )
            answer = 2 * head + (0 if side == TAIL_SIDE else 1)
            first, size = _starts(graph, steps[0])
            offset, stride = np.int64(0), np.int64(1)
            if shuffled and size > 1:
                offset, stride = draw(random, size), _stride(random, size)
            left = np.int64(_EDGES)
            for place in range(size):
                if counts[rule, side, 0] >= enough or left <= 0:
                    break
                row = first + (offset + place * stride) % size
                stamp += 1
                nodes[0] = graph.source[graph.row_edge[row]]
                at[0], stop[0] = graph.row_edge[row], graph.row_edge[row + 1]
                pairs, correct, seen = _expand(graph, steps, length, answer, nodes, at, stop, stamps, stamp)
                counts[rule, side, 0] += pairs
                counts[rule, side, 1] += correct
                left -= seen


@inlined
def _starts(graph: WalkGraph, step: Any) -> Any:
    """Return the first row of a step, and how many entities there are with such an edge."""
    first, stop = graph.row_first[step], graph.row_first[step + 1]
    if stop > first and graph.source[graph.row_edge[stop - 1]] == graph.itself:
        stop -= 1
    return first, stop - first


@inlined
def _stride(random: npt.NDArray[np.uint64], size: Any) -> Any:
    """Return a random number that has no divisor in common with a size."""
    while True:
        stride = 1 + draw(random, size - 1)
        a, b = stride, size
        while b > 0:
            a, b = b, a % b
        if a == 1:
            return stride


@inlined
def _expand(
    graph: WalkGraph,
    steps: Places,
    length: Any,
    answer: Any,
    nodes: Places,
    at: Places,
    stop: Places,
    stamps: Places,
    stamp: Any,
) -> Any:
    """Follow the body from an entity to all its ends; returns these, the correct ones, and edges seen."""
    pairs, correct, seen = np.int64(0), np.int64(0), np.int64(0)
    right = row_of(graph, nodes[0], answer)
    depth = 0
    while depth >= 0:
        if at[depth] == stop[depth]:
            depth -= 1
            continue
        constant = np.int64(graph.end[at[depth]])
        at[depth] += 1
        seen += 1
        if met(nodes, 0, depth + 1, constant):
            continue
        if depth < length - 1:
            row = row_of(graph, constant, steps[depth + 1])
            if row >= 0:
                depth += 1
                nodes[depth] = constant
                at[depth], stop[depth] = graph.row_edge[row], graph.row_edge[row + 1]
        elif stamps[constant] != stamp:
            stamps[constant] = stamp
            pairs += 1
            if right >= 0:
                last = graph.row_edge[right + 1]
                found = position(graph.end, graph.row_edge[right], last, constant)
                correct += found < last and graph.end[found] == constant
    return pairs, correct, seen
