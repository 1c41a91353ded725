"""Which pairs of a large rectangle lie in one of many smaller ones that overlap in too many ways.

Each subject and each object has a bit for every small rectangle that it lies in. A pair lies in one of them
if its subject and its object have a bit in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.overlaps import Rectangle, distinct

__all__ = ["Sieve"]

Ids = npt.NDArray[np.int32]
Bits: TypeAlias = npt.NDArray[np.uint64]

# So many pairs of classes are compared in one go.
_MOST = 2**24


class Sieve:
    """The union of rectangles of one relation, as a part of subjects × objects.

    Parameters
    ----------
    rectangles
        Subjects and objects of each.
    """

    def __init__(self, rectangles: Sequence[Rectangle]) -> None:
        self.rectangles = tuple(rectangles)
        self.subjects, self._subject_bits = _bits([subjects for subjects, _ in rectangles])
        self.objects, self._object_bits = _bits([objects for _, objects in rectangles])

    def surrounds(self, subjects: Ids, objects: Ids) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which of these pairs are among subjects × objects."""
        return _known(self.subjects, subjects) & _known(self.objects, objects)

    def passes(self, subjects: Ids, objects: Ids) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which of these pairs, all among subjects × objects, lie in a rectangle."""
        left = np.searchsorted(self.subjects, subjects)
        right = np.searchsorted(self.objects, objects)
        found = np.zeros(len(subjects), dtype=bool)
        for word in range(self._subject_bits.shape[1]):
            found |= (self._subject_bits[left, word] & self._object_bits[right, word]) != 0
        return found

    @cached_property
    def size(self) -> int:
        """How many pairs lie in a rectangle."""
        lefts, left_counts = np.unique(self._subject_bits, axis=0, return_counts=True)
        rights, right_counts = np.unique(self._object_bits, axis=0, return_counts=True)
        step = max(_MOST // len(rights), 1)
        total = 0
        for start in range(0, len(lefts), step):
            part = lefts[start : start + step]
            meet = np.zeros((len(part), len(rights)), dtype=bool)
            for word in range(part.shape[1]):
                meet |= (part[:, word, None] & rights[None, :, word]) != 0
            widths = (meet * right_counts).sum(axis=1)
            total += int(widths @ left_counts[start : start + step])
        return total


def _known(names: Ids, wanted: Ids) -> npt.NDArray[np.bool_]:
    places = np.searchsorted(names, wanted)
    places[places == len(names)] = 0
    return np.asarray(names[places] == wanted)


def _bits(sets: Sequence[Ids]) -> tuple[Ids, Bits]:
    """Return the members of all sets, and for each member one bit for each set, in words of 64."""
    names = distinct(np.concatenate(sets))
    bits = np.zeros((len(names), (len(sets) + 63) // 64), dtype=np.uint64)
    for place, members in enumerate(sets):
        bits[np.searchsorted(names, members), place // 64] |= np.uint64(1 << (place % 64))
    return names, bits
