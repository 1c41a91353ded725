"""Triangles (x R y), (x S z), (y T z) with x, y, z different: all supports in one enumeration.

The triangles of the loop-free graph are found by forward adjacency intersection: vertices are ranked by
degree, every pair of adjacent vertices points from the lower rank to the higher, and each triangle is met
once, at its lowest vertex, in O(n^1.5). The labels of its three sides then give the bodies.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.compiled import kernel
from loginfer.engine.native.rank.counter import add, entries, grown, new_counter
from loginfer.engine.native.rank.edges import Edges, stable_order

__all__ = ["triangle_table"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


def triangle_table(edges: Edges) -> tuple[Ints, Longs]:
    """Return int32[m, 3], labels (R, S, T), and int64[m], their supports. Edges must have no loops."""
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
                            used += add(slots, key, 1)
                            if 4 * used >= slots.size:
                                slots = grown(slots)
        for p in range(pair_start[u], pair_start[u + 1]):
            mark[upper[p]] = -1
    return entries(slots)
