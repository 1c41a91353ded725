"""Kernels that walk: draws, look-ups of edges, closed and open random walks (see `WalkGraph`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined, kernel
from loginfer.systems.embedding.sampling import random_bits
from loginfer.systems.rules.sorted_lists import position
from loginfer.systems.rules.walks_graph import Places, WalkGraph

__all__ = [
    "NODES",
    "PLACES",
    "RELATION",
    "STEPS",
    "TURNED",
    "closed_walk",
    "draw",
    "edges_between",
    "met",
    "open_walk",
    "row_of",
]

# What a walk of up to three steps leaves in an array: the head's relation, whether it was taken from object
# to subject, the constants in order (those of the head first), and the steps.
RELATION, TURNED, NODES, STEPS = 0, 1, 2, 7
PLACES = 10

_32 = np.uint64(32)


@inlined
def draw(random: npt.NDArray[np.uint64], bound: Any) -> Any:
    """Return a random number below a bound; `random` holds a salt and a counter, which goes on."""
    random[1] += np.uint64(1)
    bits = random_bits(random[0], random[1])
    return np.int64(((bits >> _32) * np.uint64(bound)) >> _32)


@inlined
def row_of(graph: WalkGraph, constant: Any, step: Any) -> Any:
    """Return the row of a constant's edges for a step; -1 if it has none."""
    stop = graph.group_first[constant + 1]
    place = position(graph.group_step, graph.group_first[constant], stop, step)
    if place == stop or graph.group_step[place] != step:
        return np.int64(-1)
    return graph.group_row[place]


@inlined
def edges_between(graph: WalkGraph, constant: Any, other: Any, direction: Any) -> Any:
    """Return the first and the stop of the links from a constant to another one in a direction."""
    first, stop = graph.link_first[direction, constant], graph.link_middle[direction, constant]
    if other == graph.itself:
        first, stop = stop, graph.link_first[direction, constant + 1]
    first = position(graph.link_end, first, stop, other)
    return first, position(graph.link_end, first, stop, other + 1)


@inlined
def _draw_head(graph: WalkGraph, random: npt.NDArray[np.uint64], walk: Places) -> None:
    """Draw a triple for the head, in a random orientation: the walk goes on from the second constant."""
    triple = draw(random, len(graph.triples))
    turned = draw(random, 2)
    walk[RELATION] = graph.triples[triple, 1]
    walk[TURNED] = turned
    walk[NODES] = graph.triples[triple, 2 * turned]
    walk[NODES + 1] = graph.triples[triple, 2 - 2 * turned]


@inlined
def met(constants: Places, first: Any, stop: Any, constant: Any) -> Any:
    """Say whether a constant is among some others."""
    found = False
    for place in range(first, stop):
        found |= constants[place] == constant
    return found


@kernel
def closed_walk(graph: WalkGraph, length: int, random: npt.NDArray[np.uint64], walk: Places) -> bool:
    """Draw a head, and walk from its second constant back to its first; False if that leads nowhere."""
    _draw_head(graph, random, walk)
    start, constant = walk[NODES], walk[NODES + 1]
    if walk[RELATION] == graph.type_relation or constant == graph.itself:
        return False
    if start == graph.itself and length > 1:
        return False
    for step in range(length):
        direction = draw(random, 2)
        if step < length - 1:
            first, stop = graph.link_first[direction, constant], graph.link_middle[direction, constant]
        else:
            first, stop = edges_between(graph, constant, start, direction)
        if first == stop:
            return False
        link = first + draw(random, stop - first)
        walk[STEPS + step] = 2 * graph.link_relation[link] + direction
        constant = np.int64(graph.link_end[link])
        if step < length - 1:
            if met(walk, NODES, NODES + step + 2, constant):
                return False
            walk[NODES + step + 2] = constant
    return True


@kernel
def open_walk(graph: WalkGraph, length: int, random: npt.NDArray[np.uint64], walk: Places) -> bool:
    """Draw a head, and walk on from its second constant; False if that leads nowhere or back.

    The head's second constant is the one that becomes a variable; a type is none, nor is the special
    constant. With length 0 there is only the head.
    """
    _draw_head(graph, random, walk)
    constant = walk[NODES + 1]
    if constant == graph.itself or constant == walk[NODES]:
        return False
    if walk[RELATION] == graph.type_relation and walk[TURNED] == 0:
        return False
    for step in range(length):
        direction = draw(random, 2)
        first, stop = graph.link_first[direction, constant], graph.link_middle[direction, constant]
        if step == length - 1:
            stop = graph.link_first[direction, constant + 1]
        if first == stop:
            return False
        link = first + draw(random, stop - first)
        walk[STEPS + step] = 2 * graph.link_relation[link] + direction
        constant = np.int64(graph.link_end[link])
        if met(walk, NODES, NODES + step + 2, constant):
            return False
        walk[NODES + step + 2] = constant
    return True
