"""TransE: a relation is a translation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from loginfer.kernels import fast_inlined
from loginfer.settings import setting
from loginfer.systems.embedding.base import L1, L2, OBJECT, TRANSE, DistanceSystem, Floats

_ZERO = np.float32(0)
_TINY = np.float32(1e-12)


@dataclass(frozen=True, kw_only=True)
class TransE(DistanceSystem):
    """score(s, r, o) = γ − ‖s + r − o‖, where s, r, o are real vectors.

    Bordes and others, Translating Embeddings for Modeling Multi-relational Data (NeurIPS 2013).
    """

    relation_weight: float = setting(0.1, "weight of a negative with another relation", least=0)
    norm: int = setting(1, "1 for sums of absolute differences, 2 for Euclidean distances", least=1, most=2)

    code: ClassVar[int] = TRANSE

    @property
    def comparison(self) -> int:
        """How queries and candidates are compared."""
        return L1 if self.norm == 1 else L2


@fast_inlined
def translate(side: int, entity: Floats, relation: Floats, query: Floats) -> None:
    """Query: s + r for the object, o − r for the subject."""
    if side == OBJECT:
        for j in range(len(entity)):
            query[j] = entity[j] + relation[j]
    else:
        for j in range(len(entity)):
            query[j] = entity[j] - relation[j]


@fast_inlined
def pull_back_translation(side: int, g_query: Floats, g_entity: Floats, g_relation: Floats) -> None:
    """Add the query's gradient to those of what it was made of."""
    if side == OBJECT:
        for j in range(len(g_entity)):
            g_entity[j] += g_query[j]
            g_relation[j] += g_query[j]
    else:
        for j in range(len(g_entity)):
            g_entity[j] += g_query[j]
            g_relation[j] -= g_query[j]


@fast_inlined
def l1_distance(query: Floats, candidate: Floats) -> Any:
    """Σ|q − c|."""
    total = _ZERO
    for j in range(len(candidate)):
        total += abs(query[j] - candidate[j])
    return total


@fast_inlined
def add_l1_gradient(weight: Any, query: Floats, candidate: Floats, g_query: Floats, g_candidate: Floats) -> None:
    """Add weight · ∂(−Σ|q − c|); the derivative of |0| is 0."""
    for j in range(len(candidate)):
        difference = query[j] - candidate[j]
        up = (weight if difference > _ZERO else _ZERO) - (weight if difference < _ZERO else _ZERO)
        g_query[j] -= up
        g_candidate[j] += up


@fast_inlined
def l2_distance(query: Floats, candidate: Floats) -> Any:
    """√Σ(q − c)²."""
    total = _ZERO
    for j in range(len(candidate)):
        difference = query[j] - candidate[j]
        total += difference * difference
    return np.sqrt(total)


@fast_inlined
def add_l2_gradient(
    weight: Any, distance: Any, query: Floats, candidate: Floats, g_query: Floats, g_candidate: Floats
) -> None:
    """Add weight · ∂(−√Σ(q − c)²); the derivative at 0 is 0."""
    scale = weight / max(distance, _TINY)
    for j in range(len(candidate)):
        up = scale * (query[j] - candidate[j])
        g_query[j] -= up
        g_candidate[j] += up
