"""Sets of triples as arrays: int32[n, 3], subject, relation, object, sorted and unique."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.errors import LimitError

__all__ = ["TripleKeys", "Triples", "distinct_keys", "keys_without", "merged_keys", "sorted_unique"]

Triples: TypeAlias = npt.NDArray[np.int32]

_BLOCK = 2**15


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
        for start in range(0, len(keys), _BLOCK):  # temporaries stay in the cache
            part = keys[start : start + _BLOCK]
            out = triples[start : start + _BLOCK]
            # Division by one number is vectorised, divmod is not.
            rest = part // self.entities
            out[:, 2] = part - rest * self.entities
            subjects = rest // self.relations
            out[:, 0] = subjects
            out[:, 1] = rest - subjects * self.relations
        return triples


def sorted_unique(triples: Triples, keys: TripleKeys) -> Triples:
    """Return the distinct triples in order, always as a new array."""
    if triples.ndim != 2 or triples.shape[1] != 3:
        raise ValueError(f"triples must have the shape (n, 3), not {triples.shape}")
    if len(triples) == 0:
        return triples.copy()
    for column, size in enumerate((keys.entities, keys.relations, keys.entities)):
        if triples[:, column].min() < 0 or triples[:, column].max() >= size:
            raise ValueError("triples hold ids outside the vocabularies")
    packed = keys.pack(triples)
    if (packed[1:] > packed[:-1]).all():
        return np.array(triples, dtype=np.int32, order="C")
    return keys.unpack(distinct_keys(packed))


def distinct_keys(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the distinct keys in ascending order; `keys` is sorted in place."""
    keys.sort()
    fresh = keys[1:] != keys[:-1]
    if fresh.all():
        return keys
    return np.concatenate([keys[:1], keys[1:][fresh]])


def keys_without(keys: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the keys that are not among others; both ascending and distinct."""
    if not len(keys) or not len(others):
        return keys
    few, many = (keys, others) if len(keys) <= len(others) else (others, keys)
    places = np.searchsorted(many, few)
    places[places == len(many)] = 0
    common = many[places] == few
    if few is keys:
        return np.asarray(keys[~common])
    return np.delete(keys, places[common])


def merged_keys(*parts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the distinct keys of several arrays in ascending order."""
    keys = np.concatenate(parts)
    keys.sort(kind="stable")  # ascending runs are merged, not sorted again
    fresh = np.ones(len(keys), dtype=bool)
    fresh[1:] = keys[1:] != keys[:-1]
    return keys if fresh.all() else keys[fresh]
