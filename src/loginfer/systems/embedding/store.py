"""Where the rows of entities are kept: all of them in memory, or two parts of them and the rest elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from loginfer.systems.embedding.partition import Pair, Partition
from loginfer.systems.embedding.room import zeros
from loginfer.systems.embedding.state import Ids
from loginfer.systems.embedding.system import EmbeddingSystem, Floats
from loginfer.systems.interface import Arrays

__all__ = ["BLOCK", "MemoryStore", "Store", "blocks"]

# Rows that are worked on at a time where the whole would need memory for a copy.
BLOCK = 2**16


class Store(ABC):
    """The rows of entities, with the parts that are being learned in memory.

    Parameters
    ----------
    system
        Its settings.
    partition
        How rows are split into parts.
    entities, moments
        float32[places, width] and float32[places, 2, width], the rows in memory.
    """

    # Whether rows are kept in files, which a checkpoint then only names.
    in_files: ClassVar[bool] = False

    def __init__(
        self, system: EmbeddingSystem, partition: Partition, entities: Floats, moments: Floats
    ) -> None:
        self._system = system
        self._partition = partition
        self._loaded: list[int | None] = [None] * min(2, partition.parts)
        self.entities = entities
        self.moments = moments

    @abstractmethod
    def begin(self, random: np.random.Generator) -> None:
        """Draw the rows at the start."""

    @abstractmethod
    def resume(self, arrays: Arrays, facts: Any) -> None:
        """Take rows up from what `save` gave."""

    @abstractmethod
    def save(self) -> tuple[dict[str, npt.NDArray[Any]], Any]:
        """Return arrays and facts for a checkpoint; what is not in them is safe when this returns."""

    def saved(self) -> None:  # noqa: B027 - most have nothing to do
        """Take note that the checkpoint is kept: what only the last one needed may go."""

    def ready(self, within: bool) -> bool:
        """Say whether now is the time for a checkpoint; `within` an epoch, or between two."""
        return not within

    def changing(self) -> None:  # noqa: B027
        """Take note that rows in memory will be changed."""

    def expect(self, pair: Pair) -> None:  # noqa: B027
        """Take note of which pair will be next."""

    @abstractmethod
    def keep(self) -> None:
        """Keep the rows as they are now, as the best ones so far."""

    @abstractmethod
    def result(self, best: bool) -> Floats:
        """Return the rows that were kept as the best, or the last ones, in the order of entities."""

    @abstractmethod
    def _write(self, part: int, entities: Floats, moments: Floats) -> None:
        """Put a part back."""

    @abstractmethod
    def _read(self, part: int, entities: Floats, moments: Floats) -> None:
        """Fetch a part."""

    @abstractmethod
    def _kept(self, part: int) -> Floats:
        """Return a part that is not in memory, to be read only."""

    def load(self, pair: Pair) -> None:
        """Bring a pair of parts into memory, instead of those that are there."""
        wanted = [(place, part) for place, part in enumerate(pair) if self._loaded[place] != part]
        for place, _ in wanted:
            if (old := self._loaded[place]) is not None:
                self._write(old, *self._views(place, old))
                self._loaded[place] = None
        for place, part in wanted:
            self._read(part, *self._views(place, part))
            self._loaded[place] = part

    def rows(self, wanted: Ids) -> Floats:
        """Return copies of some rows, which are sorted."""
        found = np.empty((len(wanted), self._system.entity_width), dtype=np.float32)
        ends = np.searchsorted(wanted, [self._partition.bounds(p)[1] for p in range(self._partition.parts)])
        for part, start, end in zip(range(len(ends)), np.concatenate([[0], ends]), ends, strict=False):
            if start < end:
                found[start:end] = self._current(part)[wanted[start:end] - part * self._partition.size]
        return found

    def finite(self) -> bool:
        """Say whether all weights in memory are finite numbers."""
        return all(
            bool(np.isfinite(self._views(place, part)[0][block]).all())
            for place, part in enumerate(self._loaded)
            if part is not None
            for block in blocks(*self._partition.bounds(part))
        )

    def _current(self, part: int) -> Floats:
        """Return the weights of a part as they are now."""
        if part in self._loaded:
            return self._views(self._loaded.index(part), part)[0]
        return self._kept(part)

    def _views(self, place: int, part: int) -> tuple[Floats, Floats]:
        """Return the rows of a part in memory."""
        start, end = self._partition.bounds(part)
        here = slice(place * self._partition.size, place * self._partition.size + end - start)
        return self.entities[here], self.moments[here]

    def _drawn(self, random: np.random.Generator, part: int) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows of a part at the start, block by block: the same numbers as all at once."""
        for block in blocks(*self._partition.bounds(part)):
            yield block, self._system.initial_entities(block.stop - block.start, random)


def blocks(start: int, end: int) -> Iterator[slice]:
    """Yield slices from 0 that cover so many rows as there are from start to end."""
    for first in range(0, end - start, BLOCK):
        yield slice(first, min(first + BLOCK, end - start))


class MemoryStore(Store):
    """All rows in memory; where they are split, a pair of parts is copied to be learned from."""

    def __init__(self, system: EmbeddingSystem, partition: Partition) -> None:
        count, width = partition.entities, system.entity_width
        self._all, self._all_moments = zeros(count, width), zeros(count, 2, width)
        self._best: Floats | None = None
        places = partition.places
        if partition.parts == 1:
            super().__init__(system, partition, self._all, self._all_moments)
            self._loaded = [0]
        else:
            super().__init__(system, partition, zeros(places, width), zeros(places, 2, width))

    def begin(self, random: np.random.Generator) -> None:
        """Draw the rows at the start."""
        for part in range(self._partition.parts):
            mine = self._all[slice(*self._partition.bounds(part))]
            for block, drawn in self._drawn(random, part):
                mine[block] = drawn

    def resume(self, arrays: Arrays, facts: Any) -> None:
        """Take rows up from what `save` gave."""
        self._all[:] = arrays["entities"]
        self._all_moments[:] = arrays["entity_moments"]
        if "best_entities" in arrays:
            self._best = np.array(arrays["best_entities"], dtype=np.float32)

    def save(self) -> tuple[dict[str, npt.NDArray[Any]], Any]:
        """Return all rows, and the best ones."""
        self._put_back()
        best = {} if self._best is None else {"best_entities": self._best}
        return {"entities": self._all, "entity_moments": self._all_moments, **best}, None

    def keep(self) -> None:
        """Keep the rows as they are now, as the best ones so far."""
        self._put_back()
        if self._best is None:
            self._best = np.empty_like(self._all)
        np.copyto(self._best, self._all)

    def result(self, best: bool) -> Floats:
        """Return the rows that were kept as the best, or the last ones, in the order of entities."""
        self._put_back()
        found = self._best if best and self._best is not None else self._all
        return found if self._partition.rows is None else found[self._partition.rows]

    def _put_back(self) -> None:
        if self._partition.parts > 1:
            for place, part in enumerate(self._loaded):
                if part is not None:
                    self._write(part, *self._views(place, part))

    def _write(self, part: int, entities: Floats, moments: Floats) -> None:
        mine = slice(*self._partition.bounds(part))
        self._all[mine], self._all_moments[mine] = entities, moments

    def _read(self, part: int, entities: Floats, moments: Floats) -> None:
        entities[:], moments[:] = self._kept(part), self._all_moments[slice(*self._partition.bounds(part))]

    def _kept(self, part: int) -> Floats:
        return self._all[slice(*self._partition.bounds(part))]
