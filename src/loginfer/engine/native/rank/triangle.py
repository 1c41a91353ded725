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
    keys, support = _count_triangles(start, high[order], code[order], edges.labels)
    n = max(edges.labels, 1)
    labels = np.stack([keys // (n * n), keys // n % n, keys % n], axis=1).astype(np.int32)
    return labels, support


@kernel
def _count_triangles(start: Longs, high: Ints, code: Ints, labels: int) -> tuple[Longs, Longs]:
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
                    a, a_against = code[i] >> 1, code[i] & 1
                    for j in range(first[m], first[m + 1]):
                        b, b_against = code[j] >> 1, code[j] & 1
                        for k in range(first[q], first[q + 1]):
                            c, c_against = code[k] >> 1, code[k] & 1
                            if a_against == c_against and a_against != b_against:
                                continue  # a cycle: no side leads from a source to a sink
                            # x is the vertex with two sides out, z the one with two in; R leads from x
                            # to y, S from x to z, T from y to z. S is the side that the other two bridge.
                            if a_against == c_against:
                                if a_against == 0:
                                    r, s, t = a, b, c  # u → v → w
                                else:
                                    r, s, t = c, b, a  # w → v → u
                            elif a_against == b_against:
                                if a_against == 0:
                                    r, s, t = b, a, c  # u → w → v
                                else:
                                    r, s, t = c, a, b  # v → w → u
                            elif a_against == 1:
                                r, s, t = a, c, b  # v → u → w
                            else:
                                r, s, t = b, c, a  # w → u → v
                            used += add(slots, (np.int64(r) * labels + s) * labels + t, 1)
                            if 4 * used >= slots.size:
                                slots = grown(slots)
        for p in range(pair_start[u], pair_start[u + 1]):
            mark[upper[p]] = -1
    return entries(slots)
