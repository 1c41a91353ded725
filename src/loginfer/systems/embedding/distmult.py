"""DistMult: a relation is a diagonal matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from loginfer.kernels import fast_inlined
from loginfer.systems.embedding.base import DISTMULT, Floats, ProductSystem

_ZERO = np.float32(0)


@dataclass(frozen=True, kw_only=True)
class DistMult(ProductSystem):
    """score(s, r, o) = Σ s·r·o, where s, r, o are real vectors.

    Yang and others, Embedding Entities and Relations for Learning and Inference in Knowledge Bases (ICLR
    2015).
    """

    code: ClassVar[int] = DISTMULT


@fast_inlined
def scale(entity: Floats, relation: Floats, query: Floats) -> None:
    """Query: s·r for the object, o·r for the subject."""
    for j in range(len(entity)):
        query[j] = entity[j] * relation[j]


@fast_inlined
def pull_back_scaling(entity: Floats, relation: Floats, g_query: Floats, g_entity: Floats, g_relation: Floats) -> None:
    """Add the query's gradient to those of what it was made of."""
    for j in range(len(entity)):
        g_entity[j] += g_query[j] * relation[j]
        g_relation[j] += g_query[j] * entity[j]


@fast_inlined
def dot(query: Floats, candidate: Floats) -> Any:
    """Σ q·c."""
    total = _ZERO
    for j in range(len(candidate)):
        total += query[j] * candidate[j]
    return total


@fast_inlined
def add_dot_gradient(weight: Any, query: Floats, candidate: Floats, g_query: Floats, g_candidate: Floats) -> None:
    """Add weight · ∂(Σ q·c)."""
    for j in range(len(candidate)):
        g_query[j] += weight * candidate[j]
        g_candidate[j] += weight * query[j]
