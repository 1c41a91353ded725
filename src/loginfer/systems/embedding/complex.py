"""ComplEx: a relation is a diagonal matrix of complex numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from loginfer.kernels import fast_inlined
from loginfer.systems.embedding.base import COMPLEX, OBJECT, Floats, ProductSystem

_ONE = np.float32(1)


@dataclass(frozen=True, kw_only=True)
class ComplEx(ProductSystem):
    """score(s, r, o) = Re Σ s·r·ō, where s, r, o are complex vectors and ō is the conjugate of o.

    Trouillon and others, Complex Embeddings for Simple Link Prediction (ICML 2016).

    A row holds the real parts, then the imaginary parts. As Re Σ q·c̄ is the dot product of such rows, a query
    is s·r for the object and o·r̄ for the subject.
    """

    code: ClassVar[int] = COMPLEX
    parts: ClassVar[int] = 2
    relation_parts: ClassVar[int] = 2


@fast_inlined
def multiply(side: int, entity: Floats, relation: Floats, query: Floats) -> None:
    """Query: s·r for the object, o·r̄ for the subject."""
    d = len(entity) // 2
    # Slices, not sums of indices: an index that might be negative would keep loops out of vector registers.
    imaginary, turn, query_imaginary = entity[d:], relation[d:], query[d:]
    sign = _ONE if side == OBJECT else -_ONE
    for j in range(d):
        turned = sign * turn[j]
        query[j] = entity[j] * relation[j] - imaginary[j] * turned
        query_imaginary[j] = entity[j] * turned + imaginary[j] * relation[j]


@fast_inlined
def pull_back_product(
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
