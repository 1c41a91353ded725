"""TransE: a relation is a translation."""

from __future__ import annotations

from dataclasses import dataclass

from loginfer.settings import setting
from loginfer.systems.embedding.base import L1, L2, OBJECT, DistanceSystem, Floats, ModelFunctions


@dataclass(frozen=True, kw_only=True)
class TransE(DistanceSystem):
    """score(s, r, o) = γ − ‖s + r − o‖, where s, r, o are real vectors.

    Bordes and others, Translating Embeddings for Modeling Multi-relational Data (NeurIPS 2013).
    """

    relation_weight: float = setting(0.1, "weight of a negative with another relation", least=0)
    norm: int = setting(1, "1 for sums of absolute differences, 2 for Euclidean distances", least=1, most=2)

    @property
    def functions(self) -> ModelFunctions:
        """Translation, and the norm that was chosen."""
        return ModelFunctions(translate, backward_translate, *(L1 if self.norm == 1 else L2))


def translate(side: int, entity: Floats, relation: Floats, query: Floats) -> None:
    """Query: s + r for the object, o − r for the subject."""
    if side == OBJECT:
        for j in range(len(entity)):
            query[j] = entity[j] + relation[j]
    else:
        for j in range(len(entity)):
            query[j] = entity[j] - relation[j]


def backward_translate(
    side: int, entity: Floats, relation: Floats, g_query: Floats, g_entity: Floats, g_relation: Floats
) -> None:
    """Add the query's gradient to those of what it was made of."""
    if side == OBJECT:
        for j in range(len(g_entity)):
            g_entity[j] += g_query[j]
            g_relation[j] += g_query[j]
    else:
        for j in range(len(g_entity)):
            g_entity[j] += g_query[j]
            g_relation[j] -= g_query[j]
