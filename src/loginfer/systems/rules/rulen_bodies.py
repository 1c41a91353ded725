"""Kernels that collect the bodies of all paths between the two entities of some triples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined, kernel
from loginfer.systems.rules.sorted_lists import position
from loginfer.systems.rules.walks import draw, edges_between
from loginfer.systems.rules.walks_graph import Ids, Places, WalkGraph

__all__ = ["Bodies", "bodies_of", "find_bodies"]

_EMPTY = -1


class Bodies(NamedTuple):
    """A table of bodies by open addressing.

    Parameters
    ----------
    keys
        int64[power of 2], bodies as numbers with a digit for each step; -1 for an empty place.
    triples
        int64[…], how many triples each body explains.
    last
        int64[…], the last of them.
    size
        int64[1], how many bodies there are.
    """

    keys: npt.NDArray[np.int64]
    triples: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]


def bodies_of(places: int) -> Bodies:
    """Return an empty table."""
    empty = np.full(places, _EMPTY, dtype=np.int64)
    return Bodies(empty, np.zeros_like(empty), empty.copy(), np.zeros(1, dtype=np.int64))


@kernel
def find_bodies(
    graph: WalkGraph,
    head: int,
    pairs: Ids,
    length: int,
    edges: int,
    random: npt.NDArray[np.uint64],
    bodies: Bodies,
) -> None:
    """Count for each body of a length how many pairs of the head it leads from X to Y.

    Paths do not visit an entity twice. For each pair at most so many edges are looked at; where there are
    more, it is random which ones.
    """
    left = np.zeros(1, dtype=np.int64)
    for pair in range(len(pairs)):
        x, y = np.int64(pairs[pair, 0]), np.int64(pairs[pair, 1])
        left[0] = edges
        if length == 1:
            _one_step(graph, head, x, y, pair, bodies)
        elif length == 2:
            _two_steps(graph, x, y, np.int64(-1), np.int64(0), pair, left, bodies)
        else:
            _three_steps(graph, x, y, pair, left, random, bodies)


@inlined
def _one_step(graph: WalkGraph, head: Any, x: Any, y: Any, pair: Any, bodies: Bodies) -> None:
    for direction in range(2):
        first, stop = edges_between(graph, x, y, direction)
        for link in range(first, stop):
            step = 2 * np.int64(graph.link_relation[link]) + direction
            if step != 2 * head:
                _found(bodies, step, pair)


@kernel
def _two_steps(
    graph: WalkGraph, x: Any, y: Any, apart: Any, prefix: Any, pair: Any, left: Places, bodies: Bodies
) -> None:
    """Find all entities between x and y: those of the one with fewer edges are looked up in the other's."""
    steps = 2 * len(graph.sizes)
    for out in range(2):
        for back in range(2):
            first, stop = graph.link_first[out, x], graph.link_middle[out, x]
            place, last = graph.link_first[back, y], graph.link_middle[back, y]
            turned = stop - first > last - place
            if turned:
                first, stop, place, last = place, last, first, stop
            while first < stop and place < last and left[0] > 0:
                left[0] -= 1
                between = graph.link_end[first]
                place = position(graph.link_end, place, last, between)
                link = place
                while link < last and graph.link_end[link] == between:
                    left[0] -= 1
                    here, there = np.int64(graph.link_relation[first]), np.int64(graph.link_relation[link])
                    if turned:
                        here, there = there, here
                    if between != x and between != y and between != apart:
                        # The edge of y leads away from it, the body's last step towards it.
                        body = (prefix * steps + 2 * here + out) * steps + 2 * there + (1 - back)
                        _found(bodies, body, pair)
                    link += 1
                first += 1


@inlined
def _three_steps(
    graph: WalkGraph,
    x: Any,
    y: Any,
    pair: Any,
    left: Places,
    random: npt.NDArray[np.uint64],
    bodies: Bodies,
) -> None:
    for direction in range(2):
        first = graph.link_first[direction, x]
        size = graph.link_middle[direction, x] - first
        if size == 0:
            continue
        offset = draw(random, size)
        for place in range(size):
            link = first + (place + offset) % size
            between = np.int64(graph.link_end[link])
            if between != y and left[0] > 0:
                left[0] -= 1
                prefix = 2 * np.int64(graph.link_relation[link]) + direction
                _two_steps(graph, between, y, x, prefix, pair, left, bodies)


@inlined
def _found(bodies: Bodies, body: Any, pair: Any) -> None:
    """Count a body once for each pair; one for which there is no room is left out."""
    mask = len(bodies.keys) - 1
    place = np.int64((np.uint64(body) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while bodies.keys[place] != _EMPTY and bodies.keys[place] != body:
        place = (place + 1) & mask
    if bodies.keys[place] == _EMPTY:
        if 2 * bodies.size[0] > mask:
            return
        bodies.size[0] += 1
        bodies.keys[place] = body
    if bodies.last[place] != pair:
        bodies.last[place] = pair
        bodies.triples[place] += 1
