"""Bodies without cycles, and two relations over the same pair: supports from sums of products of degrees."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.compiled import kernel
from loginfer.engine.native.rank.edges import Edges, lists, pointers, stable_order

__all__ = ["chain_table", "fork_table", "intersection_table", "single_table"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


def single_table(edges: Edges) -> tuple[Ints, Longs]:
    """Return int32[m, 1], labels R, and the number of R edges."""
    counts = np.bincount(edges.label, minlength=edges.labels).astype(np.int64)
    return np.flatnonzero(counts)[:, None].astype(np.int32), counts[counts > 0]


def fork_table(edges: Edges, left_out: bool, right_out: bool) -> tuple[Ints, Longs]:
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


def intersection_table(edges: Edges) -> tuple[Ints, Longs]:
    """Return int32[m, 2], labels R ≠ S in both orders, and the number of pairs (x, y) in both."""
    out, _ = lists(edges)
    return _nonzero(_parallel(out.start, out.neighbour, out.label, edges.labels))


def chain_table(edges: Edges) -> tuple[Ints, Longs]:
    """Return int32[m, 3], labels (R, S, T), and Σ over (y, z) in S of in_R(y) · out_T(z)."""
    (in_labels, out_labels), (in_start, out_start) = _labels_by_vertex(edges)
    by_label = np.argsort(edges.label, kind="stable")
    keys, support = _chain(
        pointers(edges.label, edges.labels),
        edges.source[by_label],
        edges.target[by_label],
        in_start,
        in_labels,
        out_start,
        out_labels,
        edges.labels,
    )
    n = max(edges.labels, 1)
    return np.stack([keys // n % n, keys // (n * n), keys % n], axis=1).astype(np.int32), support


def _labels_by_vertex(edges: Edges) -> tuple[tuple[Ints, Ints], tuple[Longs, Longs]]:
    """Return the labels of the edges into each vertex and out of it, and where each vertex's begin."""
    in_start, order = stable_order(edges.target, edges.entities)
    return (edges.label[order], edges.label), (in_start, pointers(edges.source, edges.entities))


def _nonzero(table: Longs) -> tuple[Ints, Longs]:
    places = np.nonzero(table)
    return np.stack(places, axis=1).astype(np.int32), table[places]


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
def degrees(low: int, high: int, label: Ints, degree: Longs, here: Ints) -> int:
    """Add up label[low:high] in `degree`, list the distinct ones in `here`, return how many."""
    count = 0
    for i in range(low, high):
        if degree[label[i]] == 0:
            here[count] = label[i]
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
