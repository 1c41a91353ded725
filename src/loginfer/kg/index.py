"""Adjacency per relation, in both directions."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from loginfer.errors import LimitError

__all__ = ["FORWARD", "INVERSE", "RelationIndex"]

FORWARD: Literal[0] = 0
INVERSE: Literal[1] = 1

# Dense row pointers kept for reuse take at most this much; beyond it they are made anew.
POINTER_CACHE_BYTES = 256 * 2**20

BLOCK = 2**15


class RelationIndex:
    """For each relation its pairs sorted by subject and, once more, by object.

    `columns` is int32[2n]: first the objects of all triples in the order (relation, subject, object), then
    the subjects in the order (relation, object, subject). `offsets` says where a relation's part of the
    first half begins; its part of the second half is n further on. `pointers(r, direction)` are row
    pointers straight into `columns`:

        R-successors of x    = columns[p[x]:p[x + 1]] with p = pointers(R, FORWARD), ascending
        R-predecessors of y  = columns[p[y]:p[y + 1]] with p = pointers(R, INVERSE), ascending

    Kernels therefore take one array of values and a stack of row pointers, whatever relations a rule has.

    Parameters
    ----------
    triples
        int32[n, 3], sorted and unique.
    entities, relations
        Sizes of the vocabularies.
    """

    def __init__(self, triples: npt.NDArray[np.int32], entities: int, relations: int) -> None:
        self.entities = entities
        self.relations = relations
        self.size = len(triples)
        if 2 * self.size >= 2**31:
            raise LimitError(
                f"{self.size:,} triples are too many for 32-bit row pointers",
                hint="use the engine that works out of memory (--engine duckdb)",
            )
        counts = np.bincount(triples[:, 1], minlength=relations)
        self.offsets = np.zeros(relations + 1, dtype=np.int64)
        np.cumsum(counts, out=self.offsets[1:])
        # Triples come sorted by (s, r, o): one stable sort by r gives (r, s, o). Numbers of 16 bits are
        # sorted in linear time.
        narrow = np.uint16 if relations <= 2**16 else np.int32
        by_subject = np.argsort(triples[:, 1].astype(narrow), kind="stable")
        self.subjects = np.ascontiguousarray(triples[by_subject, 0])
        objects = np.ascontiguousarray(triples[by_subject, 2])
        # (r, o, s) packed into one number each: sorting numbers is faster than sorting places.
        key = np.repeat(np.arange(relations, dtype=np.int64), counts)
        key *= entities
        key += objects
        key *= entities
        key += self.subjects
        key.sort()
        self.inverse_objects = np.empty(self.size, dtype=np.int32)
        self.columns = np.empty(2 * self.size, dtype=np.int32)
        self.columns[: self.size] = objects
        for start in range(0, self.size, BLOCK):
            part = slice(start, min(start + BLOCK, self.size))
            pairs = key[part] // entities
            self.columns[self.size + part.start : self.size + part.stop] = key[part] - pairs * entities
            self.inverse_objects[part] = pairs - pairs // entities * entities
        for array in (self.offsets, self.subjects, self.inverse_objects, self.columns):
            array.setflags(write=False)
        self._pointers: dict[tuple[int, int], npt.NDArray[np.int32]] = {}

    @property
    def objects(self) -> npt.NDArray[np.int32]:
        """int32[n], objects in the order (relation, subject, object), beside `subjects`."""
        return self.columns[: self.size]

    @property
    def inverse_subjects(self) -> npt.NDArray[np.int32]:
        """int32[n], subjects in the order (relation, object, subject), beside `inverse_objects`."""
        return self.columns[self.size :]

    def pairs(self, relation: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return subjects and objects of one relation, sorted by subject, then object."""
        part = slice(int(self.offsets[relation]), int(self.offsets[relation + 1]))
        return self.subjects[part], self.objects[part]

    def inverse_pairs(self, relation: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return objects and subjects of one relation, sorted by object, then subject."""
        part = slice(int(self.offsets[relation]), int(self.offsets[relation + 1]))
        return self.inverse_objects[part], self.inverse_subjects[part]

    def pointers(self, relation: int, direction: int) -> npt.NDArray[np.int32]:
        """Return int32[entities + 1]: row pointers of one relation into `columns`."""
        found = self._pointers.get((relation, direction))
        if found is not None:
            return found
        start, end = int(self.offsets[relation]), int(self.offsets[relation + 1])
        rows = (self.subjects if direction == FORWARD else self.inverse_objects)[start:end]
        made = np.empty(self.entities + 1, dtype=np.int32)
        made[0] = 0
        np.cumsum(np.bincount(rows, minlength=self.entities), out=made[1:])
        made += start + (self.size if direction == INVERSE else 0)
        made.setflags(write=False)
        if (len(self._pointers) + 1) * made.nbytes <= POINTER_CACHE_BYTES:
            self._pointers[relation, direction] = made
        return made

    @cached_property
    def loops(self) -> npt.NDArray[np.int64]:
        """int64[m], places in `subjects` and `objects` of the triples (x, R, x)."""
        return np.flatnonzero(self.subjects == self.objects)
