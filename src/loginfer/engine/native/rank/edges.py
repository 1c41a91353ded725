"""The relation triples of a graph as labelled edges, and their orders.

Kernels work on the union graph: an edge from s to o with the label R for each triple (s, R, o). Labels are
0, 1, …: the places of the relations in `graph.rels`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.compiled import kernel
from loginfer.kg import KnowledgeGraph

__all__ = ["Edges", "Lists", "busiest_first", "edges_of", "lists", "pointers"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Edges:
    """Labelled edges in the order (source, label, target).

    Parameters
    ----------
    source, label, target
        int32[n] each.
    entities
        Number of vertices.
    rels
        int32[labels], the relation behind each label.
    """

    source: Ints
    label: Ints
    target: Ints
    entities: int
    rels: Ints

    @property
    def labels(self) -> int:
        """Number of labels."""
        return len(self.rels)


@dataclass(frozen=True, slots=True)
class Lists:
    """For each vertex its neighbours and the labels of the edges to them, sorted by (neighbour, label).

    Parameters
    ----------
    start
        int64[entities + 1], the list of v is start[v]:start[v + 1].
    neighbour, label
        int32[n] each.
    """

    start: Longs
    neighbour: Ints
    label: Ints


def edges_of(graph: KnowledgeGraph, *, loops: bool = True) -> Edges:
    """Return the edges of a graph, those of the type predicate left out; on demand also the loops."""
    source, relation, target = (np.ascontiguousarray(graph.triples[:, i]) for i in range(3))
    keep = np.ones(len(graph), dtype=bool)
    if graph.type_relation is not None:
        keep &= relation != graph.type_relation
    if not loops:
        keep &= source != target
    if not keep.all():
        source, relation, target = source[keep], relation[keep], target[keep]
    places = np.zeros(max(len(graph.relations), 1), dtype=np.int32)
    places[graph.rels] = np.arange(len(graph.rels), dtype=np.int32)
    return Edges(source, places[relation], target, len(graph.entities), graph.rels)


def busiest_first(edges: Edges) -> Edges:
    """Renumber the vertices by the number of edges into them: what is used most lies close together."""
    degree = np.bincount(edges.target, minlength=edges.entities)
    number = np.empty(edges.entities, dtype=np.int32)
    number[np.argsort(-degree, kind="stable")] = np.arange(edges.entities, dtype=np.int32)
    source = number[edges.source]
    _, order = stable_order(source, edges.entities)
    return Edges(source[order], edges.label[order], number[edges.target][order], edges.entities, edges.rels)


def pointers(sorted_values: Ints, size: int) -> Longs:
    """Return int64[size + 1]: where each value's run begins in an ascending array."""
    start = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(sorted_values, minlength=size), out=start[1:])
    return start


def lists(edges: Edges) -> tuple[Lists, Lists]:
    """Return the outgoing and the incoming lists of every vertex."""
    into_start, into_order = stable_order(edges.target, edges.entities)
    # Edges come by (source, label): a stable sort by target gives (target, source, label) …
    sources, labels = edges.source[into_order], edges.label[into_order]
    # … and one more by source gives (source, target, label).
    out_start, out_order = stable_order(sources, edges.entities)
    targets = edges.target[into_order[out_order]]
    return Lists(out_start, targets, labels[out_order]), Lists(into_start, sources, labels)


@kernel
def stable_order(values: Ints, size: int) -> tuple[Longs, Longs]:
    """Sort small integers by counting: where each value's run begins, and the order of the places."""
    start = np.zeros(size + 1, dtype=np.int64)
    for v in values:
        start[v + 1] += 1
    for v in range(size):
        start[v + 1] += start[v]
    following = start[:-1].copy()
    order = np.empty(len(values), dtype=np.int64)
    for i in range(len(values)):
        v = values[i]
        order[following[v]] = i
        following[v] += 1
    return start, order
