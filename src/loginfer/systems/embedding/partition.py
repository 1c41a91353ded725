"""Parts of the entities, two of which are in memory at a time, and a tour of all pairs of parts.

Every triple has its ends in one part or in two, so it can be learned from while some pair of parts is in
memory. A *row* is an entity's place in the order of the parts: parts hold random entities, since neighbours
in the order of names are often of one kind.

After Lerer and others, PyTorch-BigGraph: A Large-scale Graph Embedding System (MLSys 2019), whose buckets are
worked on one after the other here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loginfer.benchmark.randomness import generator
from loginfer.systems.embedding.state import Ids
from loginfer.systems.embedding.system import EmbeddingSystem

__all__ = ["MEMORY", "Pair", "Partition", "row_bytes"]

# Weights and moments up to so many bytes are not split, and two parts of larger ones have no more.
MEMORY = 8 * 2**30

# The parts in memory, in the order of their places there; a single one if there is one part only.
Pair = tuple[int, ...]


def row_bytes(system: EmbeddingSystem) -> int:
    """Return the bytes of an entity's weights and both moments."""
    return 3 * 4 * system.entity_width


@dataclass(frozen=True)
class Partition:
    """How entities are split.

    Parameters
    ----------
    parts
        How many parts.
    size
        Rows of a part; the last one may have fewer.
    rows
        int32[entities], the row of each entity; None if it is the entity's id.
    entities
        How many entities.
    """

    parts: int
    size: int
    rows: Ids | None
    entities: int

    @classmethod
    def of(cls, system: EmbeddingSystem, entities: int) -> Partition:
        """Split entities as a system's settings say. What the machine has does not matter."""
        parts = system.partitions
        if not parts:
            size = entities * row_bytes(system)
            parts = 1 if size <= MEMORY else max(3, -(-2 * size // MEMORY))
        parts = max(1, min(parts, entities))
        if parts == 1:
            return cls(1, entities, None, entities)
        size = -(-entities // parts)
        rows = generator(system.seed, "embedding", "rows").permutation(entities).astype(np.int32)
        return cls(-(-entities // size), size, rows, entities)

    def bounds(self, part: int) -> tuple[int, int]:
        """Return the rows of a part, from and to."""
        return part * self.size, min((part + 1) * self.size, self.entities)

    @property
    def places(self) -> int:
        """How many rows are in memory at a time, at most."""
        return min(2, self.parts) * self.size

    def rows_of(self, entities: Ids) -> Ids:
        """Return the rows of entities."""
        return entities if self.rows is None else self.rows[entities]

    def tour(self, seed: int, epoch: int) -> list[Pair]:
        """Return all pairs of parts in the order of an epoch; from one to the next a single part changes."""
        if self.parts < 3:
            return [tuple(range(self.parts))]
        names = generator(seed, "embedding", "tour", epoch).permutation(self.parts).tolist()
        found: list[Pair] = []
        for first in range(self.parts - 1):
            others = range(first + 1, self.parts)
            for second in others if first % 2 == 0 else reversed(others):
                found.append(_after(found[-1] if found else None, names[first], names[second]))
        return found


def _after(last: Pair | None, one: int, two: int) -> Pair:
    """Return a pair with the part that it shares with the last one in the same place."""
    return (two, one) if last is not None and (last[0] == two or last[1] == one) else (one, two)
