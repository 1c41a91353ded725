"""Extensions that grow during a materialisation: pairs of a relation, members of a type."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine.native import materialise_kernels as kernels

__all__ = [
    "LOW",
    "NO_IDS",
    "NO_KEYS",
    "Adjacency",
    "Flags",
    "Ids",
    "Keys",
    "Members",
    "Pairs",
    "pack",
    "swap",
]

Keys: TypeAlias = npt.NDArray[np.int64]
Ids: TypeAlias = npt.NDArray[np.int32]
Flags: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]

LOW = np.int64(0xFFFFFFFF)

# A relation's latest pairs wait in a small array of their own until they are this part of all its pairs:
# thousands of rounds that add little must not copy what is known each time.
RECENT_PART = 8

NO_KEYS: Keys = np.empty(0, dtype=np.int64)
NO_WORDS: Words = np.empty((0, 0), dtype=np.uint64)
NO_IDS: Ids = np.empty(0, dtype=np.int32)


def pack(subjects: npt.ArrayLike, objects: npt.ArrayLike) -> Keys:
    """Return the keys `s << 32 | o` of pairs."""
    keys = np.asarray(subjects).astype(np.int64)
    keys <<= 32
    keys |= np.asarray(objects)
    return keys


def swap(keys: Keys, entities: int) -> Keys:
    """Return sorted pairs the other way round, sorted again."""
    if 8 * len(keys) >= entities:
        return kernels.swapped(keys, entities)
    turned = pack(keys & LOW, keys >> 32)
    turned.sort()
    return turned


class Adjacency:
    """The neighbours of each entity.

    Parameters
    ----------
    pointers, values
        The neighbours of x are `values[pointers[x]:pointers[x + 1]]`, ascending.
    """

    __slots__ = ("_longest", "long_rows", "long_words", "pointers", "values")

    def __init__(self, pointers: Ids, values: Ids) -> None:
        self.pointers = pointers
        self.values = values
        self.long_rows = NO_IDS
        self.long_words = NO_WORDS
        self._longest = int(np.diff(pointers).max(initial=0))

    def prepare(self, frontier: Keys) -> None:
        """Make bitmaps of long rows if a step from this frontier will use them often enough.

        A row is long if its bitmap takes no more memory than the row, so that adding up bitmaps is quicker,
        too.
        """
        least = max((len(self.pointers) - 1) // 32, 8)
        if len(self.long_rows) or self._longest < least:
            return
        if kernels.work(frontier, self.pointers) >= 4 * len(self.values):
            self.long_rows, self.long_words = kernels.bitmaps(self.pointers, self.values, least)


class Pairs:
    """The extension of one relation, with the round in which each pair appeared.

    Parameters
    ----------
    keys
        Sorted pairs of the graph itself.
    entities
        Size of the vocabulary.
    """

    def __init__(self, keys: Keys, entities: int) -> None:
        self.entities = entities
        self.base = keys
        self.base_depth: Ids = np.zeros(len(keys), dtype=np.int32)
        self.recent = NO_KEYS
        self.recent_depth = NO_IDS
        self.delta = keys
        self._adjacency: dict[bool, Adjacency] = {}
        self._delta_adjacency: dict[bool, Adjacency] = {}
        self._delta_swapped: Keys | None = None

    def __len__(self) -> int:
        return len(self.base) + len(self.recent)

    @property
    def keys(self) -> Keys:
        """All pairs, sorted."""
        self._settle()
        return self.base

    @property
    def old(self) -> int:
        """How many pairs are not in the delta."""
        return len(self) - len(self.delta)

    def _settle(self) -> None:
        if len(self.recent):
            self.base, self.base_depth = kernels.merge(
                self.base, self.base_depth, self.recent, self.recent_depth
            )
            self.recent, self.recent_depth = NO_KEYS, NO_IDS

    def advance(self, delta: Keys, depth: int) -> None:
        """Make these new, sorted pairs the delta."""
        self.delta = delta
        self._delta_adjacency.clear()
        self._delta_swapped = None
        if not len(delta):
            return
        self._adjacency.clear()
        depths = np.full(len(delta), depth, dtype=np.int32)
        if len(self.recent):
            self.recent, self.recent_depth = kernels.merge(self.recent, self.recent_depth, delta, depths)
        else:
            self.recent, self.recent_depth = delta, depths
        if len(self.recent) * RECENT_PART > len(self.base):
            self._settle()

    def adjacency(self, inverse: bool) -> Adjacency:
        """Return the successors of each entity; predecessors with `inverse`."""
        found = self._adjacency.get(inverse)
        if found is None:
            found = self._adjacency[inverse] = Adjacency(
                *kernels.adjacency(self.keys, self.entities, inverse)
            )
        return found

    def delta_adjacency(self, inverse: bool) -> Adjacency:
        """Return the same for the delta alone."""
        if not self.old:
            return self.adjacency(inverse)
        found = self._delta_adjacency.get(inverse)
        if found is None:
            found = Adjacency(*kernels.adjacency(self.delta, self.entities, inverse))
            self._delta_adjacency[inverse] = found
        return found

    def delta_keys(self, inverse: bool) -> Keys:
        """Return the pairs of the delta, sorted; (object, subject) with `inverse`."""
        if not inverse:
            return self.delta
        if self._delta_swapped is None:
            self._delta_swapped = swap(self.delta, self.entities)
        return self._delta_swapped


class Members:
    """A set of entities with the round in which each entered: the extension of (x, type, t) for one t.

    Parameters
    ----------
    members
        Distinct entities.
    entities
        Size of the vocabulary.
    """

    def __init__(self, members: Ids, entities: int) -> None:
        self.mask: Flags = np.zeros(entities, dtype=np.bool_)
        self.mask[members] = True
        self.size = len(members)
        self.delta = members
        self.history: list[tuple[int, Ids]] = []

    def __len__(self) -> int:
        return self.size

    @property
    def old(self) -> int:
        """How many members are not in the delta."""
        return self.size - len(self.delta)

    @property
    def members(self) -> Ids:
        """All members, ascending."""
        return np.flatnonzero(self.mask).astype(np.int32)

    def advance(self, candidates: Ids, depth: int) -> None:
        """Make those candidates that are not members yet the delta."""
        self.delta = kernels.absorb(self.mask, candidates) if len(candidates) else NO_IDS
        if len(self.delta):
            self.size += len(self.delta)
            self.history.append((depth, self.delta))
