"""Random numbers inside kernels: a hash of what they are for, so that nothing but the seed matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined

__all__ = ["draw_other", "random_bits"]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@inlined
def random_bits(salt: Any, counter: Any) -> Any:
    """Return 64 random bits for a counter: SplitMix64, whose states are salt, salt + step, …."""
    z = salt + np.uint64(counter) * _STEP
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@inlined
def draw_other(bits: Any, pool: npt.NDArray[np.int32], not_this: int) -> Any:
    """Return an element of a pool other than this one, if there is any; the next one instead of this one."""
    place = np.int64(((bits >> _32) * np.uint64(len(pool))) >> _32)
    if pool[place] == not_this:
        place = (place + 1) % len(pool)
    return pool[place]
