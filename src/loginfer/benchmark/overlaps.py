"""Rectangles of one relation that may overlap, rewritten as rectangles that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Grid", "Rectangle", "disjoint", "distinct", "join", "lower", "merged", "upper"]

Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
N = TypeVar("N", npt.NDArray[np.int32], npt.NDArray[np.int64])

# Subjects and objects, both sorted and unique, neither empty.
Rectangle: TypeAlias = tuple[Ids, Ids]

# Rectangles that overlap in every way would need an entry for each of their triples; this many take 1 GB.
MOST_COLUMNS = 2**27
# So many entries are collected before repeated ones are dropped.
_WAITING = 2**22


@dataclass(frozen=True, slots=True)
class Grid:
    """Disjoint rectangles of one relation, called blocks.

    Parameters
    ----------
    turned
        Whether rows are objects and columns subjects.
    rows
        int32, the rows of all blocks, block after block, ascending within each. No row is in two blocks.
    row_counts
        int64[b], how many rows each block has.
    columns
        int32, the columns of all blocks, block after block, ascending within each.
    column_counts
        int64[b], how many columns each block has.
    """

    turned: bool
    rows: Ids
    row_counts: Ints
    columns: Ids
    column_counts: Ints

    @classmethod
    def around(cls, rows: Ids, columns: Ids) -> Grid:
        """Return a grid of one block."""
        counts = (np.array([len(side)], dtype=np.int64) for side in (rows, columns))
        return cls(False, rows, next(counts), columns, next(counts))


def disjoint(rectangles: Sequence[Rectangle]) -> Grid | None:
    """Return the union of rectangles as blocks: rows that lie in the same rectangles share a block.

    There are never more blocks than rows, however many rectangles there are. A block's columns are the union
    of its rectangles' columns. Rows are subjects or objects, whatever takes less. None if there would be too
    many columns to write down.
    """
    if len(rectangles) == 1:
        return Grid.around(*rectangles[0])
    if len(rectangles) == 2:
        return _of_two(*rectangles)
    divided = min((_Divided(rectangles, turned) for turned in (False, True)), key=lambda side: side.cost)
    if divided.cost[0] > MOST_COLUMNS:
        return None
    columns = divided.columns()
    return Grid(
        divided.turned,
        divided.names[np.argsort(divided.classes, kind="stable")],
        np.bincount(divided.classes, minlength=divided.count),
        lower(columns),
        np.bincount(upper(columns), minlength=divided.count),
    )


def _of_two(first: Rectangle, second: Rectangle) -> Grid:
    """Return the union of two rectangles: by far the most frequent case, done without classes."""
    common = np.intersect1d(first[0], second[0], assume_unique=True)
    blocks = [
        (np.setdiff1d(first[0], common, assume_unique=True), first[1]),
        (np.setdiff1d(second[0], common, assume_unique=True), second[1]),
        (common, distinct(np.concatenate([first[1], second[1]]))),
    ]
    blocks = [(rows, columns) for rows, columns in blocks if len(rows)]
    return Grid(
        False,
        np.concatenate([rows for rows, _ in blocks]),
        np.array([len(rows) for rows, _ in blocks], dtype=np.int64),
        np.concatenate([columns for _, columns in blocks]),
        np.array([len(columns) for _, columns in blocks], dtype=np.int64),
    )


def merged(rectangles: list[Rectangle]) -> list[Rectangle]:
    """Return fewer rectangles with the same union: those that agree in one side become one."""
    if len(rectangles) == 1:
        return rectangles
    while True:
        before = len(rectangles)
        for same in (1, 0):
            groups: dict[bytes, list[Rectangle]] = {}
            for sides in rectangles:
                groups.setdefault(sides[same].tobytes(), []).append(sides)
            rectangles = []
            for group in groups.values():
                shared, other = group[0][same], group[0][1 - same]
                if len(group) > 1:
                    other = distinct(np.concatenate([sides[1 - same] for sides in group]))
                rectangles.append((other, shared) if same == 1 else (shared, other))
        if len(rectangles) == before:
            return rectangles


class _Divided:
    """The rows of rectangles, divided into classes of those that lie in the same ones.

    Parameters
    ----------
    rectangles
        The rectangles.
    turned
        Whether rows are objects and columns subjects.
    """

    def __init__(self, rectangles: Sequence[Rectangle], turned: bool) -> None:
        self.turned = turned
        rows = [objects if turned else subjects for subjects, objects in rectangles]
        self._columns = [subjects if turned else objects for subjects, objects in rectangles]
        self.names, self.classes = _classes(rows)
        self.count = int(self.classes.max()) + 1
        # For each rectangle the classes that its rows make up.
        self._members = [distinct(self.classes[np.searchsorted(self.names, found)]) for found in rows]

    @property
    def cost(self) -> tuple[int, int]:
        """How many columns will be written down at most, and how many classes there are."""
        written = sum(len(m) * len(c) for m, c in zip(self._members, self._columns, strict=True))
        different = len(distinct(np.concatenate(self._columns)))
        return min(written, self.count * different), self.count

    def columns(self) -> Ints:
        """Return the columns of all classes, each joined to its class, sorted."""
        found = np.empty(0, dtype=np.int64)
        waiting: list[Ints] = []
        for members, columns in zip(self._members, self._columns, strict=True):
            waiting.append(join(np.repeat(members, len(columns)), np.tile(columns, len(members))))
            if sum(map(len, waiting)) > len(found) + _WAITING:
                found, waiting = distinct(np.concatenate([found, *waiting])), []
        return distinct(np.concatenate([found, *waiting]))


def _classes(sets: Sequence[Ids]) -> tuple[Ids, Ints]:
    """Return the members of all sets, and numbers that tell apart those which lie in different sets."""
    names = distinct(np.concatenate(sets))
    classes = np.zeros(len(names), dtype=np.int64)
    fresh = 1
    for members in sets:
        places = np.searchsorted(names, members)
        # Of each class, the part that lies in this set becomes a new one.
        divided, part = np.unique(classes[places], return_inverse=True)
        classes[places] = fresh + part
        fresh += len(divided)
    return names, np.unique(classes, return_inverse=True)[1]


def distinct(values: N) -> N:
    """Return the distinct values, ascending; they are sorted in place, which is faster than `np.unique`."""
    values.sort()
    first = np.ones(len(values), dtype=bool)
    first[1:] = values[1:] != values[:-1]
    return values if first.all() else values[first]


def join(first: npt.NDArray[np.integer[Any]], second: npt.NDArray[np.integer[Any]]) -> Ints:
    """Return int64: two ids in one number, ordered by the first, then the second."""
    joined = first.astype(np.int64)
    joined <<= 32
    joined |= second
    return joined


def upper(joined: Ints) -> Ids:
    """Return the first of two joined ids."""
    return (joined >> 32).astype(np.int32)


def lower(joined: Ints) -> Ids:
    """Return the second of two joined ids."""
    return (joined & 0xFFFFFFFF).astype(np.int32)
