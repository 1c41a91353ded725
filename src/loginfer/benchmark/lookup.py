"""Looking up many keys in a sorted list of keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["grouped", "member", "places_of"]

Keys = npt.NDArray[np.int64]


def member(known: Keys, wanted: Keys) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which of the wanted keys are among the known ones, which are sorted."""
    return places_of(known, wanted)[0]


def places_of(known: Keys, wanted: Keys) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return bool[n], int64[n]: which of the wanted keys are among the known ones, and where."""
    if not len(known):
        return np.zeros(len(wanted), dtype=bool), np.zeros(len(wanted), dtype=np.int64)
    places = np.searchsorted(known, wanted)
    places[places == len(known)] = 0
    return known[places] == wanted, places


def grouped(*columns: npt.NDArray[np.int64]) -> list[tuple[tuple[int, ...], npt.NDArray[np.int64]]]:
    """Return the places at which the columns have the same values, by these values, in ascending order."""
    if not len(columns[0]):
        return []
    order = np.lexsort(columns[::-1])
    rows = np.stack(columns, axis=1)[order]
    starts = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]))
    stops = [*starts[1:].tolist(), len(order)]
    return [
        (tuple(values), order[start:stop])
        for values, start, stop in zip(rows[starts].tolist(), starts.tolist(), stops, strict=True)
    ]
