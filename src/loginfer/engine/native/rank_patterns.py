"""Patterns with kernels of their own: which they are, and the kernels for paths, forks and triangles.

Kernels work on the union graph: an edge from s to o with the label R for each triple (s, R, o). Labels are
0, 1, …: the indices of the relations in `graph.rels`. Loop-free triangles are found by forward adjacency
intersection: vertices are ranked by degree, every pair of adjacent vertices points from the lower rank to the
higher, and each triangle is met once, at its lowest vertex, in O(n^1.5). Bodies without cycles, and two
relations over the same pair, get their supports from sums of products of degrees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.kernels import add_count, counter_items, grown_counter, kernel, new_counter
from loginfer.kg import KnowledgeGraph
from loginfer.kg.vocabulary import offsets_of
from loginfer.logic.rule import Pattern, Template, Variable

# For each shape its edges, between variables 0, 1, …, and whether all variables must differ (else none).
_SHAPES: dict[str, tuple[tuple[tuple[int, int], ...], bool]] = {
    "single": (((0, 1),), False),
    "composition": (((0, 1), (1, 2)), False),
    "fork out": (((1, 0), (1, 2)), False),
    "fork in": (((0, 1), (2, 1)), False),
    "intersection": (((0, 1), (0, 1)), False),
    "chain": (((0, 1), (1, 2), (2, 3)), False),
    "triangle": (((0, 1), (0, 2), (1, 2)), True),
    "diamond": (((0, 1), (0, 2), (1, 3), (2, 3)), True),
}


@dataclass(frozen=True, slots=True)
class KnownShape:
    """A known shape, and where its edges are in the pattern.

    Parameters
    ----------
    name
        What the shape is called.
    edges
        For each template of the pattern, in the order of `pattern.templates`, the edge of the shape that
        it labels.
    """

    name: str
    edges: tuple[int, ...]


def recognise(pattern: Pattern) -> KnownShape | None:
    """Return the shape of a pattern's body, if there is a kernel for it."""
    atoms = pattern.atoms
    edges = []
    for atom in atoms:
        if not (isinstance(atom.relation, Template) and isinstance(atom.subject, Variable)):
            return None
        if not isinstance(atom.object, Variable):
            return None
        edges.append((atom.subject, atom.object))
    if len(pattern.templates) != len(atoms):
        return None
    different = {frozenset(i.terms) for i in pattern.inequalities}
    for name, (shape, all_different) in _SHAPES.items():
        size = 1 + max(v for edge in shape for v in edge)
        if len(shape) != len(edges) or size != len(pattern.variables):
            continue
        required = {frozenset(pair) for pair in combinations(pattern.variables, 2)} if all_different else set()
        if different != required:
            continue
        for variables in permutations(pattern.variables):
            mapped = [(variables[a], variables[b]) for a, b in shape]
            if sorted(mapped) != sorted(edges):
                continue
            # Parallel edges are alike: the first free one will do.
            free = list(range(len(shape)))
            edge_indices = []
            for edge in edges:
                index = next(i for i in free if mapped[i] == edge)
                free.remove(index)
                edge_indices.append(index)
            return KnownShape(name, tuple(edge_indices))
    return None


Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LabelledEdges:
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


class LabelledLists(NamedTuple):
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


def edges_of(graph: KnowledgeGraph, *, loops: bool = True) -> LabelledEdges:
    """Return the edges of a graph, without those of the type predicate and, unless `loops`, without loops."""
    source, relation, target = (np.ascontiguousarray(graph.triples[:, i]) for i in range(3))
    keep = np.ones(len(graph), dtype=bool)
    if graph.type_relation is not None:
        keep &= relation != graph.type_relation
    if not loops:
        keep &= source != target
    if not keep.all():
        source, relation, target = source[keep], relation[keep], target[keep]
    label_of = np.zeros(max(len(graph.relations), 1), dtype=np.int32)
    label_of[graph.rels] = np.arange(len(graph.rels), dtype=np.int32)
    return LabelledEdges(source, label_of[relation], target, len(graph.entities), graph.rels)


def busiest_first(edges: LabelledEdges) -> LabelledEdges:
    """Renumber the vertices by the number of edges into them: what is used most lies close together."""
    degree = np.bincount(edges.target, minlength=edges.entities)
    number = np.empty(edges.entities, dtype=np.int32)
    number[np.argsort(-degree, kind="stable")] = np.arange(edges.entities, dtype=np.int32)
    source = number[edges.source]
    _, order = stable_order(source, edges.entities)
    return LabelledEdges(source[order], edges.label[order], number[edges.target][order], edges.entities, edges.rels)


def pointers(sorted_values: Ints, size: int) -> Longs:
    """Return int64[size + 1]: where each value's run begins in an ascending array."""
    return offsets_of(np.bincount(sorted_values, minlength=size))


def lists(edges: LabelledEdges) -> tuple[LabelledLists, LabelledLists]:
    """Return the outgoing and the incoming lists of every vertex."""
    into_start, into_order = stable_order(edges.target, edges.entities)
    # Edges come by (source, label): a stable sort by target gives (target, source, label) …
    sources, labels = edges.source[into_order], edges.label[into_order]
    # … and one more by source gives (source, target, label).
    out_start, out_order = stable_order(sources, edges.entities)
    targets = edges.target[into_order[out_order]]
    return LabelledLists(out_start, targets, labels[out_order]), LabelledLists(into_start, sources, labels)


@kernel
def stable_order(values: Ints, size: int) -> tuple[Longs, Longs]:
    """Sort small integers by counting: where each value's run begins, and the sorting order."""
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


def triangle_table(edges: LabelledEdges) -> tuple[Ints, Longs]:
    """Return int32[m, 3], labels (R, S, T), and int64[m], their supports. The graph must have no loops."""
    degree = np.bincount(edges.source, minlength=edges.entities)
    degree += np.bincount(edges.target, minlength=edges.entities)
    rank = np.empty(edges.entities, dtype=np.int32)
    rank[np.argsort(degree, kind="stable")] = np.arange(edges.entities, dtype=np.int32)
    source, target = rank[edges.source], rank[edges.target]
    # Twice the label, plus one for an edge that runs against the ranks.
    code = 2 * edges.label + (source > target)
    low, high = np.minimum(source, target), np.maximum(source, target)
    _, order = stable_order(high, edges.entities)
    low, high, code = low[order], high[order], code[order]
    start, order = stable_order(low, edges.entities)
    n = max(edges.labels, 1)
    keys, support = _count_triangles(start, high[order], code[order], _weights(n))
    labels = np.stack([keys // (n * n), keys // n % n, keys % n], axis=1).astype(np.int32)
    return labels, support


# For a triangle u < v < w, which of R, S, T its sides uv, uw, vw are, by the sides that run against the
# ranks (bits 4, 2, 1). x is the vertex with two sides out, z the one with two in: R leads from x to y, S from
# x to z, T from y to z. In a cycle (2, 5) there are no such vertices.
ROLES = ("RST", "SRT", "", "TRS", "RTS", "", "STR", "TSR")


def _weights(labels: int) -> Longs:
    """Return int64[8, 3]: what to multiply the labels of uv, uw, vw by to get the key (R, S, T)."""
    weight = {"R": labels * labels, "S": labels, "T": 1}
    return np.array([[weight[role] for role in roles] or [0, 0, 0] for roles in ROLES], dtype=np.int64)


@kernel
def _count_triangles(start: Longs, high: Ints, code: Ints, weights: Longs) -> tuple[Longs, Longs]:
    """Count triangles by labels, given each vertex's edges to higher vertices, sorted by those."""
    entities = len(start) - 1
    # One entry per adjacent pair of vertices: the higher one, and where the codes of its edges begin.
    pairs = 0
    for u in range(entities):
        for i in range(start[u], start[u + 1]):
            pairs += i == start[u] or high[i] != high[i - 1]
    pair_start = np.empty(entities + 1, dtype=np.int64)
    upper = np.empty(pairs, dtype=np.int32)
    first = np.empty(pairs + 1, dtype=np.int64)
    pairs = 0
    for u in range(entities):
        pair_start[u] = pairs
        for i in range(start[u], start[u + 1]):
            if i == start[u] or high[i] != high[i - 1]:
                upper[pairs] = high[i]
                first[pairs] = i
                pairs += 1
    pair_start[entities] = pairs
    first[pairs] = len(high)

    slots = new_counter(1 << 12)
    used = 0
    mark = np.full(entities, -1, dtype=np.int64)
    for u in range(entities):
        if pair_start[u + 1] - pair_start[u] < 2:
            continue
        for p in range(pair_start[u], pair_start[u + 1]):
            mark[upper[p]] = p
        for p in range(pair_start[u], pair_start[u + 1]):
            v = upper[p]
            for q in range(pair_start[v], pair_start[v + 1]):
                m = mark[upper[q]]
                if m < 0:
                    continue
                # The triangle u < v < w with the sides p = uv, m = uw, q = vw.
                for i in range(first[p], first[p + 1]):
                    for j in range(first[m], first[m + 1]):
                        ways = 4 * (code[i] & 1) + 2 * (code[j] & 1)
                        for k in range(first[q], first[q + 1]):
                            way = ways + (code[k] & 1)
                            if way == 2 or way == 5:
                                continue  # a cycle: no vertex has two sides out
                            key = (
                                weights[way, 0] * (code[i] >> 1)
                                + weights[way, 1] * (code[j] >> 1)
                                + weights[way, 2] * (code[k] >> 1)
                            )
                            used += add_count(slots, key, 1)
                            if 4 * used >= slots.size:
                                slots = grown_counter(slots)
        for p in range(pair_start[u], pair_start[u + 1]):
            mark[upper[p]] = -1
    return counter_items(slots)


def single_table(edges: LabelledEdges) -> tuple[Ints, Longs]:
    """Return int32[m, 1], labels R, and the number of R edges."""
    counts = np.bincount(edges.label, minlength=edges.labels).astype(np.int64)
    return np.flatnonzero(counts)[:, None].astype(np.int32), counts[counts > 0]


def fork_table(edges: LabelledEdges, left_out: bool, right_out: bool) -> tuple[Ints, Longs]:
    """Return int32[m, 2], labels (R, S) of two edges that share a vertex y, and Σ_y deg_R(y) · deg_S(y).

    Parameters
    ----------
    edges
        The graph.
    left_out, right_out
        Whether R and S lead away from y or towards it; composition is False, True.
    """
    labels, start = _labels_by_vertex(edges)
    left, right = int(left_out), int(right_out)
    table = _fork(start[left], labels[left], start[right], labels[right], edges.labels)
    return _nonzero(table)


def intersection_table(edges: LabelledEdges) -> tuple[Ints, Longs]:
    """Return int32[m, 2], labels R ≠ S in both orders, and the number of pairs (x, y) in both."""
    out, _ = lists(edges)
    return _nonzero(_parallel(out.start, out.neighbour, out.label, edges.labels))


def chain_table(edges: LabelledEdges) -> tuple[Ints, Longs]:
    """Return int32[m, 3], labels (R, S, T), and Σ over (y, z) in S of in_R(y) · out_T(z)."""
    (in_labels, out_labels), (in_start, out_start) = _labels_by_vertex(edges)
    start, by_label = pointers(edges.label, edges.labels), np.argsort(edges.label, kind="stable")
    source, target = edges.source[by_label], edges.target[by_label]
    keys, support = _chain(start, source, target, in_start, in_labels, out_start, out_labels, edges.labels)
    n = max(edges.labels, 1)
    return np.stack([keys // n % n, keys // (n * n), keys % n], axis=1).astype(np.int32), support


def _labels_by_vertex(edges: LabelledEdges) -> tuple[tuple[Ints, Ints], tuple[Longs, Longs]]:
    """Return the labels of the edges into each vertex and out of it, and where each vertex's begin."""
    in_start, order = stable_order(edges.target, edges.entities)
    return (edges.label[order], edges.label), (in_start, pointers(edges.source, edges.entities))


def _nonzero(table: Longs) -> tuple[Ints, Longs]:
    cells = np.nonzero(table)
    return np.stack(cells, axis=1).astype(np.int32), table[cells]


@kernel
def _fork(
    left_start: Longs, left_label: Ints, right_start: Longs, right_label: Ints, labels: int
) -> npt.NDArray[np.int64]:
    """Return int64[labels, labels]: Σ_y left_R(y) · right_S(y)."""
    table = np.zeros((labels, labels), dtype=np.int64)
    left_here = np.empty(labels, dtype=np.int32)
    right_here = np.empty(labels, dtype=np.int32)
    left_degree = np.zeros(labels, dtype=np.int64)
    right_degree = np.zeros(labels, dtype=np.int64)
    for y in range(len(left_start) - 1):
        if left_start[y] == left_start[y + 1] or right_start[y] == right_start[y + 1]:
            continue
        lefts = degrees(left_start[y], left_start[y + 1], left_label, left_degree, left_here)
        rights = degrees(right_start[y], right_start[y + 1], right_label, right_degree, right_here)
        for i in range(lefts):
            r = left_here[i]
            for j in range(rights):
                s = right_here[j]
                table[r, s] += left_degree[r] * right_degree[s]
        for i in range(lefts):
            left_degree[left_here[i]] = 0
        for j in range(rights):
            right_degree[right_here[j]] = 0
    return table


@kernel
def degrees(low: int, high: int, label: Ints, degree: Longs, distinct: Ints) -> int:
    """Add up label[low:high] in `degree`, list the distinct ones in `distinct`, return how many."""
    count = 0
    for i in range(low, high):
        if degree[label[i]] == 0:
            distinct[count] = label[i]
            count += 1
        degree[label[i]] += 1
    return count


@kernel
def _parallel(start: Longs, neighbour: Ints, label: Ints, labels: int) -> npt.NDArray[np.int64]:
    """Return int64[labels, labels]: for R ≠ S the number of pairs of vertices with both."""
    table = np.zeros((labels, labels), dtype=np.int64)
    for x in range(len(start) - 1):
        for i in range(start[x], start[x + 1]):
            j = i + 1
            while j < start[x + 1] and neighbour[j] == neighbour[i]:
                table[label[i], label[j]] += 1
                table[label[j], label[i]] += 1
                j += 1
    return table


@kernel
def _chain(
    by_label: Longs,
    source: Ints,
    target: Ints,
    in_start: Longs,
    in_label: Ints,
    out_start: Longs,
    out_label: Ints,
    labels: int,
) -> tuple[Longs, Longs]:
    """Take S by S: for each y add Σ_z out_T(z) over its S-successors, then the product with in_R(y).

    Returns keys (S · labels + R) · labels + T with their supports.
    """
    keys = np.empty(1024, dtype=np.int64)
    support = np.empty(1024, dtype=np.int64)
    size = 0
    table = np.zeros((labels, labels), dtype=np.int64)
    r_here = np.empty(labels, dtype=np.int32)
    t_here = np.empty(labels, dtype=np.int32)
    r_degree = np.zeros(labels, dtype=np.int64)
    t_degree = np.zeros(labels, dtype=np.int64)
    r_used = np.zeros(labels, dtype=np.bool_)
    for s in range(labels):
        i = by_label[s]
        while i < by_label[s + 1]:
            y = source[i]
            rs = degrees(in_start[y], in_start[y + 1], in_label, r_degree, r_here)
            ts = 0
            while i < by_label[s + 1] and source[i] == y:
                z = target[i]
                for j in range(out_start[z], out_start[z + 1]) if rs else range(0):
                    t = out_label[j]
                    if t_degree[t] == 0:
                        t_here[ts] = t
                        ts += 1
                    t_degree[t] += 1
                i += 1
            for a in range(rs):
                r = r_here[a]
                r_used[r] |= ts > 0
                for b in range(ts):
                    table[r, t_here[b]] += r_degree[r] * t_degree[t_here[b]]
            for a in range(rs):
                r_degree[r_here[a]] = 0
            for b in range(ts):
                t_degree[t_here[b]] = 0
        for r in range(labels):
            if not r_used[r]:
                continue
            r_used[r] = False
            for t in range(labels):
                if table[r, t] == 0:
                    continue
                if size == len(keys):
                    keys, fewer_keys = np.empty(2 * size, dtype=np.int64), keys
                    support, fewer = np.empty(2 * size, dtype=np.int64), support
                    keys[:size], support[:size] = fewer_keys, fewer
                keys[size] = (s * labels + r) * labels + t
                support[size] = table[r, t]
                table[r, t] = 0
                size += 1
    return keys[:size], support[:size]


# For each shape but the diamond its table of labels and supports.
TABLES: dict[str, Callable[[LabelledEdges], tuple[Ints, Longs]]] = {
    "single": single_table,
    "composition": lambda edges: fork_table(edges, False, True),
    "fork out": lambda edges: fork_table(edges, True, True),
    "fork in": lambda edges: fork_table(edges, False, False),
    "intersection": intersection_table,
    "chain": chain_table,
    "triangle": triangle_table,
}
