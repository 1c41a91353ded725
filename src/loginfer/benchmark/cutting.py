"""Dividing the constants of a graph into two sides, in regions, so that few triples lie across.

A random division of the constants cuts nearly every region of a graph: of a triple's two constants both must
fall on the same side. Here the test side grows in regions instead. Each starts at a random constant, and in
turn takes the constant most of whose triples lead into the region. Few regions keep most triples, but may
miss whole subjects of a graph; with one region a constant the division is random again.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import hash_order, salt
from loginfer.kg import KnowledgeGraph

__all__ = ["grown"]

Mask = npt.NDArray[np.bool_]


def grown(graph: KnowledgeGraph, count: int, regions: int, seed: int) -> Mask:
    """Return bool[entities]: the constants of the test side.

    Parameters
    ----------
    graph
        The graph.
    count
        How many constants to take.
    regions
        How many regions to grow; with `count` of them every constant is one.
    seed
        Decides where they start, and between constants that are equally near.
    """
    constants = graph.consts
    order = constants[hash_order(constants.astype(np.int64), salt(seed, "division"))]
    taken = np.zeros(len(graph.entities), dtype=bool)
    if regions >= count:
        taken[order[:count]] = True
        return taken
    offsets, neighbours = _neighbours(graph)
    turn = np.zeros(len(graph.entities), dtype=np.int64)
    turn[order] = np.arange(len(order))
    growing = [_Region(offsets, neighbours, turn) for _ in range(regions)]
    starts = iter(order.tolist())
    for number in range(count):
        region = growing[number % regions]
        constant = region.nearest(taken)
        if constant is None:  # it has just begun, or nothing is left around it
            constant = next(start for start in starts if not taken[start])
        taken[constant] = True
        region.add(constant)
    return taken


class _Region:
    """A region of a graph that grows.

    Parameters
    ----------
    offsets, neighbours
        The constants next to constant i are `neighbours[offsets[i]:offsets[i + 1]]`, once for each triple.
    turn
        Who comes first of those that are equally near.
    """

    def __init__(
        self, offsets: npt.NDArray[np.int64], neighbours: npt.NDArray[np.int32], turn: npt.NDArray[np.int64]
    ) -> None:
        self._offsets = offsets
        self._neighbours = neighbours
        self._turn = turn
        self._inside: dict[int, int] = {}
        self._heap: list[tuple[float, int, int, int]] = []

    def add(self, constant: int) -> None:
        """Add a constant; those next to it come nearer."""
        near, times = np.unique(
            self._neighbours[self._offsets[constant] : self._offsets[constant + 1]], return_counts=True
        )
        degrees = (self._offsets[near + 1] - self._offsets[near]).tolist()
        turns = self._turn[near].tolist()
        for other, more, degree, turn in zip(near.tolist(), times.tolist(), degrees, turns, strict=True):
            inside = self._inside[other] = self._inside.get(other, 0) + more
            heapq.heappush(self._heap, (-inside / degree, turn, inside, other))

    def nearest(self, taken: Mask) -> int | None:
        """Return the constant with the largest share of triples into the region; None if there is none."""
        while self._heap:
            _, _, inside, constant = heapq.heappop(self._heap)
            # What was pushed before the constant came nearer is out of date.
            if not taken[constant] and inside == self._inside[constant]:
                return constant
        return None


def _neighbours(graph: KnowledgeGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    triples = graph.triples
    if graph.type_relation is not None:
        triples = triples[triples[:, 1] != graph.type_relation]
    ends = np.concatenate([triples[:, 0], triples[:, 2]])
    others = np.concatenate([triples[:, 2], triples[:, 0]])
    order = np.argsort(ends, kind="stable")
    offsets = np.searchsorted(ends[order], np.arange(len(graph.entities) + 1))
    return offsets, others[order]
