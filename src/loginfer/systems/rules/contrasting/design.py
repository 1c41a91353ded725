"""Which bodies fire for which rows: a sparse 0/1 matrix, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import generator

__all__ = ["Design"]

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """Bodies and where they fire.

    Parameters
    ----------
    codes
        int64[m], the bodies.
    pointers, rows
        int64[m + 1], int32[k]: body j fires for `rows[pointers[j]:pointers[j + 1]]`, ascending.
    size
        How many rows there are.
    """

    codes: Ints
    pointers: Ints
    rows: npt.NDArray[np.int32]
    size: int

    @classmethod
    def of_pairs(cls, codes: Ints, pairs: npt.NDArray[np.int32], size: int) -> Design:
        """Make it of int32[k, 2], rows and columns, sorted by row."""
        order = np.argsort(pairs[:, 1].astype(np.uint16), kind="stable")
        pointers = np.zeros(len(codes) + 1, dtype=np.int64)
        np.cumsum(np.bincount(pairs[:, 1], minlength=len(codes)), out=pointers[1:])
        return cls(codes, pointers, np.ascontiguousarray(pairs[order, 0]), size)

    @classmethod
    def joined(cls, one: Design, two: Design) -> Design:
        """Return the bodies of both, over the same rows."""
        return cls(
            np.concatenate([one.codes, two.codes]),
            np.concatenate([one.pointers, two.pointers[1:] + one.pointers[-1]]),
            np.concatenate([one.rows, two.rows]),
            one.size,
        )

    def __len__(self) -> int:
        return len(self.codes)

    def column(self, j: int) -> npt.NDArray[np.int32]:
        """Return the rows for which body j fires."""
        return self.rows[self.pointers[j] : self.pointers[j + 1]]

    def take(self, places: Ints) -> Design:
        """Return some of the bodies."""
        lengths = np.diff(self.pointers)[places]
        pointers = np.zeros(len(places) + 1, dtype=np.int64)
        np.cumsum(lengths, out=pointers[1:])
        rows = [self.column(int(j)) for j in places]
        return Design(
            self.codes[places], pointers, np.concatenate([np.empty(0, dtype=np.int32), *rows]), self.size
        )

    def sums(self, values: Floats) -> Floats:
        """Return float64[m], the sum over the rows of each body."""
        total = np.concatenate([[0.0], np.cumsum(values[self.rows])])
        return np.asarray(total[self.pointers[1:]] - total[self.pointers[:-1]])

    def margins(self, weights: Floats, intercept: float) -> Floats:
        """Return float64[n], the intercept and the weights of the bodies that fire, row by row."""
        margins = np.full(self.size, intercept)
        for j in np.flatnonzero(weights):
            margins[self.column(int(j))] += weights[j]
        return margins

    def strongest(self, weights: Floats, intercept: float) -> Floats:
        """Return float64[n], the intercept and the largest weight of a body that fires, row by row."""
        found = np.zeros(self.size)
        for j in np.flatnonzero(weights):
            rows = self.column(int(j))
            found[rows] = np.maximum(found[rows], weights[j])
        return found + intercept

    def fires(self) -> npt.NDArray[np.bool_]:
        """Return bool[n], the rows for which any body fires."""
        found = np.zeros(self.size, dtype=bool)
        found[self.rows] = True
        return found

    def with_equal_rows_joined(self, signs: Floats) -> tuple[Design, Ints, Ints]:
        """Return the design with one row for all those with the same sign and the same bodies.

        Beside it, which of the new rows each row became, and a row that each new one stands for.
        """
        numbers = generator(0, "contrast rows joined").random(len(self))
        # Sums of the same numbers in the same order are the same to the last bit.
        sets = np.bincount(self.rows, weights=np.repeat(numbers, np.diff(self.pointers)), minlength=self.size)
        order = np.lexsort((sets, signs))
        new = np.ones(self.size, dtype=bool)
        new[1:] = (np.diff(sets[order]) != 0) | (np.diff(signs[order]) != 0)
        became = np.empty(self.size, dtype=np.int64)
        became[order] = np.cumsum(new) - 1
        first = order[new]
        stands = np.zeros(self.size, dtype=bool)
        stands[first] = True
        kept = stands[self.rows]
        pointers = np.concatenate([[0], np.cumsum(kept)])[self.pointers]
        rows = became[self.rows[kept]].astype(np.int32)
        return Design(self.codes, pointers, rows, len(first)), became, first

    def without_repetition(self, atoms: Ints) -> Design:
        """Return one body of those that fire for the same rows: the shortest, then the smallest code.

        They are the same evidence; nothing in the rows could choose between them.
        """
        if not len(self):
            return self
        # Sets of rows are compared by the sum of random numbers.
        numbers = generator(0, "contrast columns").integers(2**63, size=self.size, dtype=np.uint64)
        total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(numbers[self.rows])])
        sets = total[self.pointers[1:]] - total[self.pointers[:-1]]
        order = np.lexsort((self.codes, atoms))
        _, first = np.unique(sets[order], return_index=True)
        return self.take(np.sort(order[first]))
