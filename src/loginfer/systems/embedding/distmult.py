"""DistMult: a relation is a diagonal matrix."""

from __future__ import annotations

from dataclasses import dataclass

from loginfer.systems.embedding.base import DOT, Floats, ModelFunctions, ProductSystem


@dataclass(frozen=True, kw_only=True)
class DistMult(ProductSystem):
    """score(s, r, o) = Σ s·r·o, where s, r, o are real vectors.

    Yang and others, Embedding Entities and Relations for Learning and Inference in Knowledge Bases (ICLR
    2015).
    """

    @property
    def functions(self) -> ModelFunctions:
        """Products of numbers, and the dot product."""
        return ModelFunctions(scale, backward_scale, *DOT)


def scale(side: int, entity: Floats, relation: Floats, query: Floats) -> None:
    """Query: s·r for the object, o·r for the subject."""
    for j in range(len(entity)):
        query[j] = entity[j] * relation[j]


def backward_scale(
    side: int, entity: Floats, relation: Floats, g_query: Floats, g_entity: Floats, g_relation: Floats
) -> None:
    """Add the query's gradient to those of what it was made of."""
    for j in range(len(entity)):
        g_entity[j] += g_query[j] * relation[j]
        g_relation[j] += g_query[j] * entity[j]
