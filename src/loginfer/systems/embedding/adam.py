"""Lazy Adam: only the rows that a batch touched are updated, with their moments."""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.compiled import fast_inlined
from loginfer.systems.embedding.system import Floats

__all__ = ["add_cubic_gradient", "bias_corrections", "update_row"]

# The decay rates of both moments, and what keeps the denominator from 0: the values of Kingma and Ba.
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8
_KEEP_FIRST, _TAKE_FIRST = np.float32(_FIRST), np.float32(1 - _FIRST)
_KEEP_SECOND, _TAKE_SECOND = np.float32(_SECOND), np.float32(1 - _SECOND)
_THREE = np.float32(3)


@fast_inlined
def bias_corrections(rate: float, step: int) -> Any:
    """Return the rate and the tiny number of a step, counted from 1, with the moments' bias corrected."""
    second = np.sqrt(1.0 - _SECOND**step)
    return np.float32(rate * second / (1.0 - _FIRST**step)), np.float32(_TINY * second)


@fast_inlined
def update_row(share: Any, rate: Any, tiny: Any, row: Floats, moments: Any, gradient: Floats) -> None:
    """Take a step of Adam with share · gradient for one row, and clear it; `moments` is float32[2, width]."""
    first, second = moments[0], moments[1]
    for j in range(len(row)):
        g = share * gradient[j]
        first[j] = _KEEP_FIRST * first[j] + _TAKE_FIRST * g
        second[j] = _KEEP_SECOND * second[j] + _TAKE_SECOND * g * g
        row[j] -= rate * first[j] / (np.sqrt(second[j]) + tiny)
        gradient[j] = np.float32(0)


@fast_inlined
def add_cubic_gradient(weight: Any, is_complex: bool, row: Floats, gradient: Floats) -> None:
    """Add weight · ∂Σ|x|³, of real or complex numbers."""
    if is_complex:
        imaginary, g_imaginary = row[len(row) // 2 :], gradient[len(row) // 2 :]
        for j in range(len(row) // 2):
            modulus = np.sqrt(row[j] * row[j] + imaginary[j] * imaginary[j])
            gradient[j] += _THREE * weight * modulus * row[j]
            g_imaginary[j] += _THREE * weight * modulus * imaginary[j]
    else:
        for j in range(len(row)):
            gradient[j] += _THREE * weight * abs(row[j]) * row[j]
