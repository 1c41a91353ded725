"""RotatE: a relation is a rotation in each of d complex planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from loginfer.settings import setting
from loginfer.systems.embedding.base import L2, TILE, ComparisonFunctions, DistanceSystem, Floats, ModelFunctions
from loginfer.systems.embedding.complex import backward_multiply, multiply

_ZERO = np.float32(0)
_TINY = np.float32(1e-24)


@dataclass(frozen=True, kw_only=True)
class RotatE(DistanceSystem):
    """score(s, r, o) = γ − ‖s ∘ r − o‖, where s, o are complex vectors and r = cos θ + i·sin θ.

    Sun and others, RotatE: Knowledge Graph Embedding by Relational Rotation in Complex Space (ICLR 2019).
    Their norm is the sum of the moduli (`norm` 1); PyKEEN's is the Euclidean one (`norm` 2).

    A row holds the real parts, then the imaginary parts; a relation's row its angles θ. As a rotation keeps
    lengths, ‖s ∘ r − o‖ = ‖s − o ∘ r̄‖: a query is s ∘ r for the object and o ∘ r̄ for the subject.
    """

    norm: int = setting(1, "1 for sums of moduli, 2 for Euclidean distances", least=1, most=2)

    entity_parts: ClassVar[int] = 2
    derived_parts: ClassVar[int] = 2  # cosines and sines

    @property
    def functions(self) -> ModelFunctions:
        """Products of complex numbers, the norm that was chosen, and rotations from angles."""
        norm = MODULI if self.norm == 1 else L2
        return ModelFunctions(multiply, backward_multiply, *norm, derive_rotation, backward_rotation)

    def initial_relations(self, relations: int, random: np.random.Generator) -> Floats:
        """Draw angles from the whole circle."""
        return random.uniform(-np.pi, np.pi, (relations, self.dimension)).astype(np.float32)


def derive_rotation(angles: Floats, rotation: Floats) -> None:
    """Derive cosines, then sines, from angles."""
    sines = rotation[len(angles) :]
    for j in range(len(angles)):
        rotation[j] = np.cos(angles[j])
        sines[j] = np.sin(angles[j])


def backward_rotation(rotation: Floats, g_rotation: Floats, g_angles: Floats) -> None:
    """Set the angles' gradient from that of cosines and sines."""
    sines, g_sines = rotation[len(g_angles) :], g_rotation[len(g_angles) :]
    for j in range(len(g_angles)):
        g_angles[j] = g_sines[j] * rotation[j] - g_rotation[j] * sines[j]


def _compare_moduli(query: Floats, candidate: Floats) -> Any:
    d = len(candidate) // 2
    query_imaginary, candidate_imaginary = query[d:], candidate[d:]
    total = _ZERO
    for j in range(d):
        real = query[j] - candidate[j]
        imaginary = query_imaginary[j] - candidate_imaginary[j]
        total += np.sqrt(real * real + imaginary * imaginary)
    return -total


def _backward_moduli(
    weight: Any, comparison: Any, query: Floats, candidate: Floats, g_query: Floats, g_candidate: Floats
) -> None:
    # The derivative of |0| is 0.
    d = len(candidate) // 2
    query_imaginary, candidate_imaginary = query[d:], candidate[d:]
    g_query_imaginary, g_candidate_imaginary = g_query[d:], g_candidate[d:]
    for j in range(d):
        real = query[j] - candidate[j]
        imaginary = query_imaginary[j] - candidate_imaginary[j]
        scale = weight / np.sqrt(max(real * real + imaginary * imaginary, _TINY))
        g_query[j] -= scale * real
        g_query_imaginary[j] -= scale * imaginary
        g_candidate[j] += scale * real
        g_candidate_imaginary[j] += scale * imaginary


def _compare_tile_moduli(query: Floats, tile: Floats, sums: Floats) -> None:
    d = len(tile) // 2
    for j in range(d):
        for c in range(TILE):
            real, imaginary = query[j] - tile[j, c], query[d + j] - tile[d + j, c]
            sums[c] -= np.sqrt(real * real + imaginary * imaginary)


def _backward_tile_moduli(
    weights: Floats, query: Floats, tile: Floats, sums: Floats, g_query: Floats, g_tile: Floats
) -> None:
    d = len(tile) // 2
    for j in range(d):
        q_real, q_imaginary, g_real, g_imaginary = query[j], query[d + j], _ZERO, _ZERO
        for c in range(TILE):
            real, imaginary = q_real - tile[j, c], q_imaginary - tile[d + j, c]
            scale = weights[c] / np.sqrt(max(real * real + imaginary * imaginary, _TINY))
            g_real += scale * real
            g_imaginary += scale * imaginary
            g_tile[j, c] += scale * real
            g_tile[d + j, c] += scale * imaginary
        g_query[j] -= g_real
        g_query[d + j] -= g_imaginary


# −Σ|q − c| of complex numbers.
MODULI = ComparisonFunctions(_compare_moduli, _backward_moduli, _compare_tile_moduli, _backward_tile_moduli)
