"""What the join kernels read: relations as sorted adjacency lists in one array of values.

A kernel sees three things: `values` (int32), where all adjacency lists lie; `pointers` (int32[rows,
entities + 1]), where row r says that the list of x is `values[pointers[r, x]:pointers[r, x + 1]]`,
ascending and without duplicates; and the numbers of the rows a rule needs. Relations may be a graph's
(`GraphStore`) or any sets of pairs under any ids (`PairStore`), such as what the last round of a
materialisation added.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from loginfer.kg.graph import FORWARD, INVERSE, RelationIndex

Ids = npt.NDArray[np.int32]

# Row pointers are dense: they are kept for reuse up to this much memory.
POINTER_BYTES = 512 * 2**20
# Pairs that a projection can write before it needs fresh memory, which is slow to come by.
ROOM = 2**22


class Store(ABC):
    """Adjacency lists of relations in both directions, with row pointers made when first asked for.

    Parameters
    ----------
    entities
        Number of ids.
    values
        int32, all adjacency lists, those of one relation and direction side by side.
    """

    def __init__(self, entities: int, values: Ids) -> None:
        self.entities = entities
        # Kernels are compiled for read-only values, as a graph's index has them.
        self.values = values.view()
        self.values.setflags(write=False)
        self.pointers: npt.NDArray[np.int32] = np.empty((0, entities + 1), dtype=np.int32)
        self._rows: dict[tuple[int, int], int] = {}
        self._starts: dict[tuple[int, int], Ids] = {}
        self._room = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)
        self._scales: dict[int, tuple[int, int, int]] = {}

    def room(self, size: int) -> tuple[Ids, Ids]:
        """Return two arrays of at least this size; they hold what was written to them since `leave`."""
        if size > len(self._room[0]):
            grown = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
            for new, old in zip(grown, self._room, strict=True):
                new[: len(old)] = old
            self._room = grown
        return self._room

    def leave(self) -> None:
        """Say that the room is not needed for now; only a modest one is kept."""
        if len(self._room[0]) > ROOM:
            self._room = np.empty(ROOM, dtype=np.int32), np.empty(ROOM, dtype=np.int32)

    @abstractmethod
    def _sources(self, relation: int, direction: int) -> tuple[Ids, int]:
        """Return whose list each value belongs to (ascending), and where in `values` they begin."""

    def rows(self, slots: Sequence[tuple[int, int]]) -> list[int]:
        """Return the rows of `pointers` for pairs of relation and direction.

        Rows and `pointers` hold until the next call: what is cached may be dropped to make room.
        """
        missing = [slot for slot in slots if slot not in self._rows]
        if missing:
            self._make(missing, slots)
        return [self._rows[slot] for slot in slots]

    def _make(self, missing: Sequence[tuple[int, int]], slots: Sequence[tuple[int, int]]) -> None:
        most = max(POINTER_BYTES // (4 * (self.entities + 1)), len(slots))
        if len(self._rows) + len(missing) > most:
            self._rows.clear()
            missing = slots
        needed = len(self._rows) + len(set(missing))
        if needed > len(self.pointers):
            grown = np.empty((min(max(2 * needed, 8), most), self.entities + 1), dtype=np.int32)
            grown[: len(self._rows)] = self.pointers[: len(self._rows)]
            self.pointers = grown
        for slot in missing:
            if slot not in self._rows:
                sources, begin = self._sources(*slot)
                row = self.pointers[len(self._rows)]
                row[0] = 0
                np.cumsum(np.bincount(sources, minlength=self.entities), out=row[1:])
                row += begin
                self._rows[slot] = len(self._rows)

    def starts(self, relation: int, direction: int) -> Ids:
        """Return the ids whose list is not empty, ascending."""
        found = self._starts.get((relation, direction))
        if found is None:
            sources, _ = self._sources(relation, direction)
            first = np.ones(len(sources), dtype=bool)
            np.not_equal(sources[1:], sources[:-1], out=first[1:])
            found = self._starts[relation, direction] = sources[first]
        return found

    def size(self, relation: int) -> int:
        """Return the number of pairs of a relation."""
        return len(self._sources(relation, FORWARD)[0])

    def scale(self, relation: int) -> tuple[int, int, int]:
        """Return binary orders of magnitude: pairs, distinct subjects, distinct objects."""
        found = self._scales.get(relation)
        if found is None:
            found = self._scales[relation] = (
                self.size(relation).bit_length(),
                len(self.starts(relation, FORWARD)).bit_length(),
                len(self.starts(relation, INVERSE)).bit_length(),
            )
        return found

    def holds(self, subject: int, relation: int, object_: int) -> bool:
        """Say whether a relation holds of two ids."""
        part = self.list_of(relation, FORWARD, subject)
        place = int(np.searchsorted(part, object_))
        return place < len(part) and int(part[place]) == object_

    def list_of(self, relation: int, direction: int, of: int) -> Ids:
        """Return the list of one id."""
        sources, begin = self._sources(relation, direction)
        low, high = np.searchsorted(sources, np.array([of, of + 1], dtype=sources.dtype))
        return self.values[begin + low : begin + high]


class GraphStore(Store):
    """The relations of a graph, without a copy of its index."""

    def __init__(self, index: RelationIndex) -> None:
        super().__init__(index.entities, index.columns)
        self._index = index

    def _sources(self, relation: int, direction: int) -> tuple[Ids, int]:
        index = self._index
        begin = int(index.offsets[relation])
        if direction == FORWARD:
            return index.pairs(relation)[0], begin
        return index.inverse_pairs(relation)[0], begin + index.size


class PairStore(Store):
    """Relations given as arrays of pairs.

    Parameters
    ----------
    entities
        Number of ids.
    pairs
        For each relation (any ids) its subjects and objects, int32, sorted by subject, then object,
        without duplicates.
    """

    def __init__(self, entities: int, pairs: Mapping[int, tuple[Ids, Ids]]) -> None:
        self._parts: dict[tuple[int, int], tuple[Ids, int]] = {}
        values: list[Ids] = [np.empty(0, dtype=np.int32)]
        begin = 0
        for relation, (subjects, objects) in pairs.items():
            by_object = np.argsort(objects, kind="stable")
            self._parts[relation, 0] = (subjects, begin)
            self._parts[relation, 1] = (objects[by_object], begin + len(subjects))
            values += [objects, subjects[by_object]]
            begin += 2 * len(subjects)
        super().__init__(entities, np.concatenate(values).astype(np.int32, copy=False))

    def _sources(self, relation: int, direction: int) -> tuple[Ids, int]:
        return self._parts[relation, direction]
