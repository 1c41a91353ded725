"""Sets of triples as arrays: int32[n, 3], subject, relation, object, sorted and unique."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.errors import LimitError

__all__ = ["TripleKeys", "Triples", "sorted_unique"]

Triples: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TripleKeys:
    """Triples packed into one int64 each, in the order of subject, relation, object.

    key = (s · relations + r) · entities + o. Sorting, merging and look-ups on keys are several times
    faster than on rows.

    Parameters
    ----------
    entities, relations
        Sizes of the vocabularies.
    """

    entities: int
    relations: int

    def __post_init__(self) -> None:
        if self.entities * self.entities * self.relations >= 2**63 or self.entities >= 2**31:
            raise LimitError(
                f"a graph of {self.entities:,} entities and {self.relations:,} relations is too large "
                "for 64-bit keys",
                hint="this is over a hundred million entities; split the graph",
            )

    def pack(self, triples: Triples) -> npt.NDArray[np.int64]:
        """Return int64[n], one key a triple."""
        keys = triples[:, 0].astype(np.int64)
        keys *= self.relations
        keys += triples[:, 1]
        keys *= self.entities
        keys += triples[:, 2]
        return keys

    def unpack(self, keys: npt.NDArray[np.int64]) -> Triples:
        """Return int32[n, 3], the triples behind the keys."""
        triples = np.empty((len(keys), 3), dtype=np.int32)
        if len(keys):
            rest, triples[:, 2] = np.divmod(keys, self.entities)
            triples[:, 0], triples[:, 1] = np.divmod(rest, self.relations)
        return triples


def sorted_unique(triples: Triples, keys: TripleKeys) -> Triples:
    """Return the distinct triples in order; a new array unless they are in order already."""
    if triples.ndim != 2 or triples.shape[1] != 3:
        raise ValueError(f"triples must have the shape (n, 3), not {triples.shape}")
    if len(triples) == 0:
        return triples.copy()
    low, high = triples.min(axis=0), triples.max(axis=0)
    if (low < 0).any() or (high >= (keys.entities, keys.relations, keys.entities)).any():
        raise ValueError("triples hold ids outside the vocabularies")
    packed = keys.pack(triples)
    steps = np.diff(packed)
    if (steps > 0).all():
        return np.array(triples, dtype=np.int32, order="C")
    packed.sort()
    keep = np.empty(len(packed), dtype=bool)
    keep[0] = True
    np.not_equal(packed[1:], packed[:-1], out=keep[1:])
    return keys.unpack(packed[keep])
