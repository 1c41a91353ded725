"""Where the weights of a training are kept: in memory, in its run's folder, or in a temporary one."""

from __future__ import annotations

import weakref

from loginfer.systems.embedding.mapped import MappedStore
from loginfer.systems.embedding.partition import Partition, row_bytes
from loginfer.systems.embedding.passing import PassingFolder
from loginfer.systems.embedding.store import MemoryStore, Store
from loginfer.systems.embedding.system import EmbeddingSystem
from loginfer.systems.interface import FolderWatch, Watch

__all__ = ["Place"]

# From so many bytes of weights and moments on, `auto` means files.
MAPPED_FROM = 2 * 2**30


class Place:
    """The place of one training's weights.

    Parameters
    ----------
    system
        Its settings.
    partition
        How entities are split.
    watch
        Who may have a folder that stays as long as the run is unfinished.
    """

    def __init__(self, system: EmbeddingSystem, partition: Partition, watch: Watch) -> None:
        large = partition.entities * row_bytes(system) > MAPPED_FROM
        self._temporary: PassingFolder | None = None
        self.store: Store
        if system.storage == "memory" or (system.storage == "auto" and not large):
            self.store = MemoryStore(system, partition)
            return
        folder = watch.folder() if isinstance(watch, FolderWatch) else None
        if folder is None:
            self._temporary = PassingFolder()
            folder = self._temporary.path
        self.store = MappedStore(system, partition, folder)

    def clear(self) -> None:
        """Remove what was only for the time being."""
        if self._temporary is not None:
            self._temporary.remove()

    def clear_after(self, scorer: object) -> None:
        """Remove it once a scorer is gone. The store is not held till then: it has moments in memory."""
        if self._temporary is not None:
            weakref.finalize(scorer, self._temporary.remove)
