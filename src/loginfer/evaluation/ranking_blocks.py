"""Scores of queries in blocks, within a limit of memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError, LimitError
from loginfer.evaluation.predictions import numbers
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.systems.interface import POSITIONS, CandidateScorer, Position, Scorer

__all__ = ["MEMORY_LIMIT", "BlockScorer", "Scores", "no_number", "slices"]

Ids = npt.NDArray[np.int32]
Scores = npt.NDArray[np.floating[Any]]

MEMORY_LIMIT = 256 * 2**20

# Scores at a time, whatever the limit. Blocks of this size are given back to the allocator and taken again
# without asking the system for fresh pages.
CELLS = 2**22
# Triples at a time for a scorer that gets triples: it may need some hundred numbers for each.
PLAIN_CELLS = 2**18
# Bytes for each score, at most, and for the triple that is built for it.
SCORE_BYTES, TRIPLE_BYTES = 8, 12
# A scorer of candidates prepares each candidate for each block: so many queries at least should share that.
ROWS = 32


class BlockScorer:
    """Asks a scorer for the scores of many candidates, as much at a time as the limit allows.

    Parameters
    ----------
    scorer
        A scorer of candidates, or of triples only.
    memory_limit
        Bytes for the scores of a block, and the triples that are built for it.
    """

    def __init__(self, scorer: Scorer, memory_limit: int = MEMORY_LIMIT) -> None:
        self._scorer = scorer
        self._by_candidates = scorer if isinstance(scorer, CandidateScorer) else None
        bytes_each = SCORE_BYTES if self._by_candidates else SCORE_BYTES + TRIPLE_BYTES
        self.cells = min(CELLS if self._by_candidates else PLAIN_CELLS, memory_limit // bytes_each)
        if self.cells < 1:
            raise LimitError(f"{memory_limit} bytes are too few to rank in", hint="allow some megabytes")

    def shape(self, queries: int, candidates: int) -> tuple[int, int]:
        """Return how many queries and how many candidates make a block.

        All candidates, if enough queries fit into a block then.
        """
        enough = min(queries, ROWS if self._by_candidates else 1)
        if candidates * enough <= self.cells:
            return max(1, min(queries, self.cells // max(candidates, 1))), max(candidates, 1)
        rows = min(enough, self.cells)
        return rows, self.cells // rows

    def scores(self, queries: Triples, position: Position, candidates: Ids) -> Scores:
        """Return float[n, c]: the scores of each query with each candidate in that position."""
        shape = (len(queries), len(candidates))
        if self._by_candidates is not None:
            found = self._by_candidates.score_candidates(queries, position, candidates)
            return self._checked(found, shape, f"{shape[0]} × {shape[1]} candidates")
        triples = np.empty((*shape, 3), dtype=np.int32)
        triples[:] = queries[:, None]
        triples[:, :, POSITIONS.index(position)] = candidates
        return self.of_triples(triples.reshape(-1, 3)).reshape(shape)

    def of_triples(self, triples: Triples) -> Scores:
        """Return float[n], the scores of triples."""
        return self._checked(self._scorer.score(triples), (len(triples),), f"{len(triples)} triples")

    def _checked(self, answer: Any, shape: tuple[int, ...], what: str) -> Scores:
        expected = f"one score for each is wanted: {shape}"
        found = numbers(answer, expected)  # of the two types that counting is compiled for
        if found.shape != shape:
            raise InputError(f"the scorer gave scores of the shape {found.shape} for {what}", hint=expected)
        return np.ascontiguousarray(found)


def no_number(graph: KnowledgeGraph, triple: npt.ArrayLike) -> InputError:
    """Return the error about a triple whose score is NaN."""
    names = ", ".join(graph.names(triple)[0])
    return InputError(
        f"the score of the triple ({names}) is NaN, so nothing can be ranked against it",
        hint="give a triple about which nothing is known a low score",
    )


def slices(total: int, size: int) -> Iterator[slice]:
    """Yield consecutive slices of at most `size`."""
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))
