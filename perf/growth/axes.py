"""The sizes of graphs to measure on: three axes through one point."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["AXES", "BASE", "Size", "sizes_on"]


@dataclass(frozen=True, order=True)
class Size:
    """The size of a synthetic graph.

    Parameters
    ----------
    triples, relations
        How many the graph has.
    entities
        How many names its constants are drawn from; those that no triple has are not in the graph.
    """

    triples: int
    relations: int
    entities: int

    @property
    def name(self) -> str:
        """What the graph's folder is called."""
        return f"{self.triples}-{self.relations}-{self.entities}"


BASE = Size(1_000_000, 500, 100_000)

# Along `triples` there is a constant for ten of them, as in the base; along the others the rest stays.
AXES: dict[str, tuple[Size, ...]] = {
    "triples": tuple(
        Size(triples, BASE.relations, triples // 10) for triples in (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
    ),
    "relations": tuple(
        # With 10 relations there are no 20 rules to build a benchmark of.
        replace(BASE, relations=relations)
        for relations in (50, BASE.relations, 2_000, 10_000)
    ),
    "constants": tuple(replace(BASE, entities=entities) for entities in (10_000, BASE.entities, 1_000_000, 3_000_000)),
}


def sizes_on(axes: list[str]) -> list[Size]:
    """Return the sizes on some axes, each once, small graphs first."""
    return sorted({size for axis in axes for size in AXES[axis]})
