"""Who is next to whom: all steps from each constant, and the types it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.kg import KnowledgeGraph

__all__ = ["Neighbours"]

Ids: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Neighbours:
    """All steps of a graph by where they start, and all types.

    Parameters
    ----------
    pointers, ends, steps
        int64[e + 1], int32[m], int32[m]: the steps from constant x lead to
        `ends[pointers[x]:pointers[x + 1]]`, ascending, ties by step; every triple is there from both ends,
        type triples from none.
    step_ends, sorted_steps
        The same steps once more, sorted by step, ties by end: those of one kind from x stand together.
    type_pointers, types
        int64[e + 1], int32[k]: the types of x, as places in `graph.types`, ascending.
    """

    pointers: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int32]
    step_ends: npt.NDArray[np.int32]
    sorted_steps: npt.NDArray[np.int32]
    type_pointers: npt.NDArray[np.int64]
    types: npt.NDArray[np.int32]

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> Neighbours:
        """Sort the steps of a graph."""
        entities, triples = len(graph.entities), graph.triples
        typed = np.zeros(len(triples), dtype=bool)
        if graph.type_relation is not None:
            typed = triples[:, 1] == graph.type_relation
        s, r, o = triples[~typed].T.astype(np.int64)
        starts, ends = np.concatenate([s, o]), np.concatenate([o, s])
        steps = np.concatenate([2 * r, 2 * r + 1])
        order = np.lexsort((steps, ends, starts))
        by_step = np.lexsort((ends, steps, starts))
        types = np.searchsorted(graph.types, triples[typed, 2])
        # Triples are sorted by subject, and within the type predicate by object.
        return cls(
            _pointers(starts, entities),
            ends[order].astype(np.int32),
            steps[order].astype(np.int32),
            ends[by_step].astype(np.int32),
            steps[by_step].astype(np.int32),
            _pointers(triples[typed, 0], entities),
            types.astype(np.int32),
        )

    @property
    def by_end(self) -> tuple[npt.NDArray[np.int64], Ids, Ids, npt.NDArray[np.int64], Ids]:
        """What kernels that list bodies take."""
        return self.pointers, self.ends, self.steps, self.type_pointers, self.types

    @property
    def by_step(self) -> tuple[npt.NDArray[np.int64], Ids, Ids, npt.NDArray[np.int64], Ids]:
        """What kernels that follow bodies take."""
        return self.pointers, self.step_ends, self.sorted_steps, self.type_pointers, self.types

    @property
    def degree(self) -> npt.NDArray[np.int64]:
        """int64[e], steps from each constant."""
        return np.diff(self.pointers)


def _pointers(starts: npt.NDArray[np.integer], size: int) -> npt.NDArray[np.int64]:
    pointers = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(starts, minlength=size), out=pointers[1:])
    return pointers
