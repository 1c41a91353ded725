"""Looking up many keys in a sorted list of keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["member"]

Keys = npt.NDArray[np.int64]


def member(known: Keys, wanted: Keys) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which of the wanted keys are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(wanted), dtype=bool)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.asarray(known[places] == wanted)
