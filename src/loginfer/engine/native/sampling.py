"""Sampling the conclusions of a rule, whatever their number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined, kernel
from loginfer.hashing import INCREMENT, MULTIPLIERS, hash_order, hashes
from loginfer.kg import Triples
from loginfer.kg.triples import TripleKeys

__all__ = ["first_of_parts"]

_INCREMENT = np.uint64(INCREMENT)
_FIRST, _SECOND = (np.uint64(multiplier) for multiplier in MULTIPLIERS)
_30, _27, _31 = (np.uint64(shift) for shift in (30, 27, 31))


def first_of_parts(
    parts: Iterable[Triples], packing: TripleKeys, salt: int, count: int
) -> tuple[int, npt.NDArray[np.int64]]:
    """Return how many triples there are, and the keys of the first `count` in hash order.

    Parameters
    ----------
    parts
        Disjoint parts of a set of triples; one is in memory at a time.
    packing
        What makes keys of them.
    salt
        Chooses the order.
    count
        How many keys to return at most.
    """
    total, first = 0, np.empty(0, dtype=np.int64)
    if count == 0:
        return sum(map(len, parts)), first
    for part in parts:
        total += len(part)
        # Once there are enough, few of the others come before the last of them.
        last = hashes(first[-1:], salt)[0] if len(first) == count else np.uint64(2**64 - 1)
        keys = np.empty(len(part), dtype=np.int64)
        found = _up_to(part, packing.relations, packing.entities, np.uint64(salt), last, keys)
        keys = np.concatenate([first, keys[:found]])
        first = keys[hash_order(keys, salt, count)]
    return total, first


@inlined
def _mixed(value: Any) -> Any:
    value += _INCREMENT
    value = (value ^ (value >> _30)) * _FIRST
    value = (value ^ (value >> _27)) * _SECOND
    return value ^ (value >> _31)


@kernel
def _up_to(triples: Any, relations: Any, entities: Any, salt: Any, last: Any, keys: Any) -> int:
    """Write down the keys of the triples whose hash is at most `last`; return how many they are."""
    found = 0
    for i in range(len(triples)):
        key = (np.int64(triples[i, 0]) * relations + triples[i, 1]) * entities + triples[i, 2]
        if _mixed(_mixed(np.uint64(key)) ^ salt) <= last:
            keys[found] = key
            found += 1
    return found
