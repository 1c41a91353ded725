"""Counting who scores higher, or the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.compiled import kernel

__all__ = ["count"]

Longs = npt.NDArray[np.int64]


@kernel
def count(
    scores: npt.NDArray[Any],
    begin: int,
    end: int,
    starts: Longs,
    own: npt.NDArray[np.int32],
    own_scores: npt.NDArray[Any],
    known_starts: Longs,
    known: npt.NDArray[np.int32],
    counts: Longs,
) -> int:
    """Add up the competitors of a block's test triples; return where a score is NaN, as a flat place, or -1.

    Parameters
    ----------
    scores
        float[n, ≥ end - begin]: row i has the candidates begin … end - 1 of query i; the rest is not read.
    begin, end
        Which candidates.
    starts, own, own_scores
        int64[n + 1], int32[m], float[m]: test triple t of query i, starts[i] ≤ t < starts[i + 1], is
        candidate own[t] itself and has the score own_scores[t].
    known_starts, known
        int64[n + 1], int32[k]: the candidates that make query i a positive, itself included.
    counts
        int64[2, 2, m], added to: competitors with a higher score (0) and with the same (1), among all
        candidates but itself (·, 0) and without the known positives (·, 1).
    """
    width = end - begin
    row_length: int = scores.shape[1]
    for i in range(len(starts) - 1):
        row = scores[i, :width]
        missing = 0
        for j in range(width):
            missing += row[j] != row[j]
        if missing:
            for j in range(width):
                if row[j] != row[j]:
                    return i * row_length + j
        for t in range(starts[i], starts[i + 1]):
            mine = own_scores[t]
            higher = 0
            same = 0
            for j in range(width):
                higher += row[j] > mine
                same += row[j] == mine
            # It is left out by its place: asked in another block, its score might differ in the last bit.
            if begin <= own[t] < end:
                counts[0, 0, t] -= row[own[t] - begin] > mine
                counts[1, 0, t] -= row[own[t] - begin] == mine
            counts[0, 0, t] += higher
            counts[1, 0, t] += same
            for p in range(known_starts[i], known_starts[i + 1]):
                if begin <= known[p] < end:
                    higher -= row[known[p] - begin] > mine
                    same -= row[known[p] - begin] == mine
            counts[0, 1, t] += higher
            counts[1, 1, t] += same
    return -1
