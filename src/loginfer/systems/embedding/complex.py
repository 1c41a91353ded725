"""ComplEx: a relation is a diagonal matrix of complex numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from loginfer.systems.embedding.base import DOT, OBJECT, Floats, ModelFunctions, ProductSystem

_ONE = np.float32(1)
_THREE = np.float32(3)


@dataclass(frozen=True, kw_only=True)
class ComplEx(ProductSystem):
    """score(s, r, o) = Re Σ s·r·ō, where s, r, o are complex vectors and ō is the conjugate of o.

    Trouillon and others, Complex Embeddings for Simple Link Prediction (ICML 2016).

    A row holds the real parts, then the imaginary parts. As Re Σ q·c̄ is the dot product of such rows, a query
    is s·r for the object and o·r̄ for the subject.
    """

    entity_parts: ClassVar[int] = 2
    relation_parts: ClassVar[int] = 2

    @property
    def functions(self) -> ModelFunctions:
        """Products of complex numbers, and the dot product."""
        return ModelFunctions(multiply, backward_multiply, *DOT, backward_cubic=backward_cubic_moduli)


def multiply(side: int, entity: Floats, relation: Floats, query: Floats) -> None:
    """Query: s·r for the object, o·r̄ for the subject."""
    d = len(entity) // 2
    imaginary, turn, query_imaginary = entity[d:], relation[d:], query[d:]
    sign = _ONE if side == OBJECT else -_ONE
    for j in range(d):
        turned = sign * turn[j]
        query[j] = entity[j] * relation[j] - imaginary[j] * turned
        query_imaginary[j] = entity[j] * turned + imaginary[j] * relation[j]


def backward_multiply(
    side: int, entity: Floats, relation: Floats, g_query: Floats, g_entity: Floats, g_relation: Floats
) -> None:
    """Add the query's gradient to those of what it was made of."""
    d = len(entity) // 2
    imaginary, turn, g_query_imaginary = entity[d:], relation[d:], g_query[d:]
    g_imaginary, g_turn = g_entity[d:], g_relation[d:]
    sign = _ONE if side == OBJECT else -_ONE
    for j in range(d):
        turned = sign * turn[j]
        g_entity[j] += g_query[j] * relation[j] + g_query_imaginary[j] * turned
        g_imaginary[j] += g_query_imaginary[j] * relation[j] - g_query[j] * turned
    for j in range(d):
        g_relation[j] += g_query[j] * entity[j] + g_query_imaginary[j] * imaginary[j]
        g_turn[j] += sign * (g_query_imaginary[j] * entity[j] - g_query[j] * imaginary[j])


def backward_cubic_moduli(weight: Any, row: Floats, gradient: Floats) -> None:
    """Add weight · ∂Σ|x|³ of complex numbers."""
    d = len(row) // 2
    imaginary, g_imaginary = row[d:], gradient[d:]
    for j in range(d):
        modulus = np.sqrt(row[j] * row[j] + imaginary[j] * imaginary[j])
        gradient[j] += _THREE * weight * modulus * row[j]
        g_imaginary[j] += _THREE * weight * modulus * imaginary[j]
