"""The compiled part of scoring, where every score has the same bits however it was asked for.

Unlike in training, numbers are added strictly one after the other: candidates are scored side by side, a
vector register of them at a time, and each sum goes along the dimensions. So blocks, positions in a block and
the width of the registers make no difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.compiled import inlined, kernel
from loginfer.systems.embedding.codes import DOT, L1, L2, MODULI
from loginfer.systems.embedding.kernels import make_query
from loginfer.systems.embedding.state import Ids, Model
from loginfer.systems.embedding.system import Floats

__all__ = ["make_queries", "score_ends", "score_pairs"]

# Candidates that are scored side by side.
_TILE = 64

_ZERO = np.float32(0)
_ONE = np.float32(1)
_HALF = np.float32(0.5)


@kernel
def make_queries(
    model: Model,
    side: np.int32,
    known: Ids,
    relations: Ids,
    entities: Floats,
    derived: Floats,
    queries: Floats,
) -> None:
    """Make float32[n, width], the queries of known ends and relations."""
    for i in range(len(known)):
        make_query(model.code, side, entities[known[i]], derived[relations[i]], queries[i])


@kernel
def score_pairs(model: Model, queries: Floats, candidates: Ids, entities: Floats, scores: Floats) -> None:
    """Score each query with its own candidate."""
    for i in range(len(queries)):
        query, candidate = queries[i], entities[candidates[i]]
        d = len(candidate)
        total = _ZERO
        if model.comparison == DOT:
            for j in range(d):
                total += query[j] * candidate[j]
            scores[i] = model.offset + total
            continue
        if model.comparison == L1:
            for j in range(d):
                total += abs(query[j] - candidate[j])
        elif model.comparison == L2:
            for j in range(d):
                total += _square(query[j] - candidate[j])
            total = np.sqrt(total)
        elif model.comparison == MODULI:
            for j in range(d // 2):
                total += _modulus(query[j] - candidate[j], query[d // 2 + j] - candidate[d // 2 + j])
        else:
            for j in range(d):
                box = _box(query[d + j])
                total += _to_box(abs(candidate[j] - query[j]), *box)
        scores[i] = model.offset - total


@kernel
def score_ends(model: Model, queries: Floats, candidates: Ids, entities: Floats, scores: Floats) -> None:
    """Score each query with each candidate: float32[n, c]."""
    width = entities.shape[1]
    tile = np.zeros((width, _TILE), dtype=np.float32)
    sums = np.zeros(_TILE, dtype=np.float32)
    for start in range(0, len(candidates), _TILE):
        count = min(_TILE, len(candidates) - start)
        for c in range(count):
            row = entities[candidates[start + c]]
            for j in range(width):
                tile[j, c] = row[j]
        for i in range(len(queries)):
            sums[:] = _ZERO
            _compare(model.comparison, queries[i], tile, sums)
            target = scores[i, start : start + count]
            if model.comparison == DOT:
                for c in range(count):
                    target[c] = model.offset + sums[c]
            else:
                for c in range(count):
                    target[c] = model.offset - sums[c]


@inlined
def _compare(comparison: int, query: Floats, tile: Floats, sums: Floats) -> None:
    """Add up the terms of a comparison for a tile of candidates, float32[width, _TILE]."""
    d = len(tile)
    if comparison == DOT:
        whole = d - d % 4
        for j in range(0, whole, 4):
            q0, q1, q2, q3 = query[j], query[j + 1], query[j + 2], query[j + 3]
            for c in range(_TILE):
                sums[c] = (
                    sums[c]
                    + q0 * tile[j, c]
                    + q1 * tile[j + 1, c]
                    + q2 * tile[j + 2, c]
                    + q3 * tile[j + 3, c]
                )
        for j in range(whole, d):
            for c in range(_TILE):
                sums[c] += query[j] * tile[j, c]
    elif comparison == L1:
        whole = d - d % 4
        for j in range(0, whole, 4):
            q0, q1, q2, q3 = query[j], query[j + 1], query[j + 2], query[j + 3]
            for c in range(_TILE):
                sums[c] = (
                    sums[c]
                    + abs(q0 - tile[j, c])
                    + abs(q1 - tile[j + 1, c])
                    + abs(q2 - tile[j + 2, c])
                    + abs(q3 - tile[j + 3, c])
                )
        for j in range(whole, d):
            for c in range(_TILE):
                sums[c] += abs(query[j] - tile[j, c])
    elif comparison == L2:
        for j in range(d):
            for c in range(_TILE):
                sums[c] += _square(query[j] - tile[j, c])
        for c in range(_TILE):
            sums[c] = np.sqrt(sums[c])
    elif comparison == MODULI:
        half = d // 2
        for j in range(half):
            for c in range(_TILE):
                sums[c] += _modulus(query[j] - tile[j, c], query[half + j] - tile[half + j, c])
    else:
        for j in range(d):
            half, narrower, wider, beyond = _box(query[d + j])
            for c in range(_TILE):
                sums[c] += _to_box(abs(tile[j, c] - query[j]), half, narrower, wider, beyond)


@inlined
def _square(x: Any) -> Any:
    return x * x


@inlined
def _modulus(real: Any, imaginary: Any) -> Any:
    return np.sqrt(real * real + imaginary * imaginary)


@inlined
def _box(width: Any) -> Any:
    """Return what BoxE's distance needs of a width: its half, both slopes, and what is taken off outside."""
    wider = width + _ONE
    narrower = _ONE / wider
    half = _HALF * width
    return half, narrower, wider, half * (wider - narrower)


@inlined
def _to_box(u: Any, half: Any, narrower: Any, wider: Any, beyond: Any) -> Any:
    """Return BoxE's distance of a number from an interval, u from its centre."""
    inside, outside = u * narrower, u * wider - beyond
    return inside if u <= half else outside
