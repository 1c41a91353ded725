"""The table in which bodies are counted, and what the kernels fill it with."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.systems.rules.contrasting.enumeration import insert_all

__all__ = ["GROUPS", "TRAIN_NEGATIVE", "TRAIN_POSITIVE", "VALID_NEGATIVE", "VALID_POSITIVE", "BodyTable"]

Counts: TypeAlias = npt.NDArray[np.int32]

# Which rows are counted separately.
TRAIN_POSITIVE, TRAIN_NEGATIVE, VALID_POSITIVE, VALID_NEGATIVE = range(4)
GROUPS = 4


class BodyTable:
    """A hash table from the codes of bodies to numbers, with counts.

    Parameters
    ----------
    limit
        How many bodies fit; further ones are not taken in.
    """

    def __init__(self, limit: int) -> None:
        slots = 1 << int(2 * limit - 1).bit_length()
        self._keys = np.full(slots, -1, dtype=np.int64)
        self._numbers = np.zeros(slots, dtype=np.int32)
        self._codes = np.zeros(limit, dtype=np.int64)
        self._slots = np.zeros(limit, dtype=np.int64)
        self._stamps = np.full((limit, 2), -1, dtype=np.int32)
        self._counts = np.zeros((limit, GROUPS), dtype=np.int32)
        # Bodies in the table; rows of `out` that are filled.
        self._used = np.zeros(2, dtype=np.int64)

    def __len__(self) -> int:
        return int(self._used[0])

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """int64[m], the bodies by number."""
        return self._codes[: len(self)]

    @property
    def counts(self) -> Counts:
        """int32[m, GROUPS], for how many rows of each group a body fires."""
        return self._counts[: len(self)]

    def clear(self) -> None:
        """Forget all bodies, in time proportional to their number."""
        self._keys[self._slots[: len(self)]] = -1
        self._counts[: len(self)] = 0
        self._stamps[: len(self)] = -1
        self._used[:] = 0

    @classmethod
    def holding(cls, codes: npt.NDArray[np.int64]) -> BodyTable:
        """Return a table that holds these bodies, numbered in their order, and has no room for more.

        A small table stays in the processor's cache.
        """
        made = cls(max(len(codes), 1))
        insert_all(codes, *made._arrays)
        return made

    def for_kernel(self) -> tuple[Any, ...]:
        """Return the arrays, ready for rows that are numbered from 0."""
        self._stamps[: len(self)] = -1
        self._used[1] = 0
        return (*self._arrays[:4], self._stamps, self._counts, self._used)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return (self._keys, self._numbers, self._codes, self._slots, self._used)

    def written(self) -> int:
        """How many rows of `out` the last kernel has filled."""
        return int(self._used[1])
