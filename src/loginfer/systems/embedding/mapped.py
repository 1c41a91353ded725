"""Rows of entities in files, with the parts that are being learned in memory.

To let the system write back what changes in a mapped file does not work here: every batch changes rows all
over it, so nearly all of it would have to be written all the time. Parts are read and written as wholes
instead, and files are mapped where they are only read: while rows are looked up, and once learning has ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.systems.embedding.partition import Partition, row_bytes
from loginfer.systems.embedding.room import zeros
from loginfer.systems.embedding.shelf import Shelf, mapped
from loginfer.systems.embedding.store import Store, blocks
from loginfer.systems.embedding.system import EmbeddingSystem, Floats
from loginfer.systems.interface import Arrays

__all__ = ["MappedStore"]

_ENTITIES, _MOMENTS, _RESULT = "entities", "moments", "result"

# What is written down besides rows of the last checkpoint and of the next one, in weights of all entities:
# the best rows of each, and a part that is being written. The result and the run's own files with it come
# when the rows of the next one are gone.
_MORE = 3

# Between two checkpoints lies at least so many times what the last one took.
PATIENCE = 10.0


class MappedStore(Store):
    """Parts in files; two of them are in memory.

    Parameters
    ----------
    system, partition
        Its settings, and how rows are split.
    folder
        Where the files are.
    """

    in_files: ClassVar[bool] = True

    def __init__(self, system: EmbeddingSystem, partition: Partition, folder: Path) -> None:
        places, width = partition.places, system.entity_width
        super().__init__(system, partition, zeros(places, width), zeros(places, 2, width))
        about = {"entities": partition.entities, "width": width, "parts": partition.parts}
        self._shelf = Shelf(folder, {**about, "model": type(system).__name__, "seed": system.seed})
        # The file of each part's weights and moments, those of the best weights, and all that the last
        # checkpoint names.
        self._files: list[tuple[str, str]] = []
        self._best: list[str] = []
        self._saved: set[str] = set()
        # Whether what is in memory differs from the files: weights, moments.
        self._changed = [[False, False] for _ in self._loaded]
        self._cost, self._last = 0.0, time.monotonic()

    def begin(self, random: np.random.Generator) -> None:
        """Draw the rows at the start."""
        partition, width = self._partition, self._system.entity_width
        self._shelf.clear(partition.entities * (2 * row_bytes(self._system) + _MORE * 4 * width))
        for part in range(partition.parts):
            entities = self.entities[: np.diff(partition.bounds(part))[0]]
            for block, drawn in self._drawn(random, part):
                entities[block] = drawn
            name = self._shelf.write(_ENTITIES, part, [entities])
            self._files.append((name, self._shelf.zeros(_MOMENTS, part, 2 * entities.nbytes)))
        if partition.parts == 1:
            self._loaded = [0]  # it was drawn in its place

    def resume(self, arrays: Arrays, facts: Any) -> None:
        """Take up the files of a checkpoint."""
        if facts is None:
            raise InputError(
                "the unfinished run kept its weights in memory, not in files",
                hint="go on with --set storage=memory, or start over",
            )
        self._files = [(str(one), str(two)) for one, two in facts["files"]]
        self._best = [str(name) for name in facts["best"]]
        self._saved = {*_flat(self._files), *self._best}
        self._shelf.take_up(str(facts["key"]), self._saved, self._bytes())

    def save(self) -> tuple[dict[str, npt.NDArray[Any]], Any]:
        """Write what has changed; the checkpoint itself only names files."""
        start = time.monotonic()
        for place, part in enumerate(self._loaded):
            if part is not None:
                self._write(part, *self._views(place, part))
        facts = {"key": self._shelf.key, "files": [list(names) for names in self._files], "best": self._best}
        self._shelf.sync([*_flat(self._files), *self._best])
        self._last = time.monotonic()
        self._cost = self._last - start
        return {}, facts

    def saved(self) -> None:
        """Remove what only the checkpoint before needed."""
        self._saved = {*_flat(self._files), *self._best}
        self._shelf.forget(self._needed())

    def ready(self, within: bool) -> bool:
        """Say whether a checkpoint now would leave most of the time for learning."""
        return time.monotonic() - self._last >= PATIENCE * self._cost

    def changing(self) -> None:
        """Take note that what is in memory will differ from the files."""
        self._changed = [[True, True] for _ in self._loaded]

    def expect(self, pair: tuple[int, ...]) -> None:
        """Say which pair will be next."""
        for part in pair:
            if part not in self._loaded:
                for name in self._files[part]:
                    self._shelf.announce(name)

    def keep(self) -> None:
        """Keep the rows as they are now, as the best ones so far."""
        for place, part in enumerate(self._loaded):
            if part is not None and self._changed[place][0]:
                self._write_entities(place, part, self._views(place, part)[0])
        self._best = [names[0] for names in self._files]
        self._shelf.forget(self._needed())

    def result(self, best: bool) -> Floats:
        """Return the best rows, or the last ones, in the order of entities, as a mapped file."""
        if not (best and self._best):
            self.keep()
        # The run's own files come on top of the result: whatever can go goes now.
        self._files = []
        self._shelf.forget(self._needed())
        width, rows = self._system.entity_width, self._partition.rows
        parts = [mapped(self._shelf.folder / name, *self._shape(p)) for p, name in enumerate(self._best)]
        if rows is None:
            return parts[0]
        gathered = (_gather(parts, rows[block], self._partition.size) for block in blocks(0, len(rows)))
        name = self._shelf.write(_RESULT, 0, gathered)
        return mapped(self._shelf.folder / name, len(rows), width)

    def _shape(self, part: int) -> tuple[int, int]:
        start, end = self._partition.bounds(part)
        return end - start, self._system.entity_width

    def _needed(self) -> set[str]:
        return {*_flat(self._files), *self._best, *self._saved}

    def _bytes(self) -> dict[str, int]:
        """Return how many bytes each file must have."""
        found: dict[str, int] = {}
        for part, (entities, moments) in enumerate(self._files):
            rows, width = self._shape(part)
            found[entities], found[moments] = 4 * rows * width, 8 * rows * width
        for part, name in enumerate(self._best):
            found[name] = 4 * int(np.prod(self._shape(part)))
        return found

    def _write(self, part: int, entities: Floats, moments: Floats) -> None:
        place = self._loaded.index(part)
        if self._changed[place][0]:
            self._write_entities(place, part, entities)
        if self._changed[place][1]:
            self._files[part] = (self._files[part][0], self._shelf.write(_MOMENTS, part, [moments]))
            self._changed[place][1] = False
        self._shelf.forget(self._needed())

    def _write_entities(self, place: int, part: int, entities: Floats) -> None:
        self._files[part] = (self._shelf.write(_ENTITIES, part, [entities]), self._files[part][1])
        self._changed[place][0] = False

    def _read(self, part: int, entities: Floats, moments: Floats) -> None:
        self._shelf.read(self._files[part][0], entities)
        self._shelf.read(self._files[part][1], moments)

    def _kept(self, part: int) -> Floats:
        return mapped(self._shelf.folder / self._files[part][0], *self._shape(part))


def _flat(files: Iterable[tuple[str, str]]) -> list[str]:
    return [name for names in files for name in names]


def _gather(parts: list[Floats], rows: npt.NDArray[np.int32], size: int) -> Floats:
    """Return rows from wherever they are."""
    found = np.empty((len(rows), parts[0].shape[1]), dtype=np.float32)
    for part, entities in enumerate(parts):
        mine = np.flatnonzero(rows // size == part)
        found[mine] = entities[rows[mine] - part * size]
    return found
