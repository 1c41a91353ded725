"""The set of rules that were looked at already: open addressing over packed keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.compiled import inlined, kernel
from loginfer.systems.embedding.sampling import random_bits
from loginfer.systems.rules.anyburl_counting import (
    BODY,
    END_CONSTANT,
    HEAD,
    HEAD_CONSTANT,
    LENGTH,
    VARIABLES,
)
from loginfer.systems.rules.values import BOTH
from loginfer.systems.rules.walks_graph import Places

__all__ = ["Keys", "add_key", "fill", "key_of"]

Keys = npt.NDArray[np.uint64]

# A key that no rule has: an empty place.
_EMPTY = np.uint64(0)


@inlined
def key_of(rule: Places, entities: Any, relations: Any) -> Any:
    """Pack a rule into 64 bits.

    The key is a number whose digits are the rule's parts, all of them above 0, so that different rules have
    different keys as long as it does not overflow; three atoms and two constants of a very large vocabulary
    do. Then it is a hash, and one rule in some 10¹³ may be taken for known.
    """
    steps = np.uint64(2 * relations + 1)
    constants = np.uint64(entities + 2)
    key = np.uint64(rule[HEAD] + 1)
    for place in range(rule[LENGTH]):
        key = key * steps + np.uint64(rule[BODY + place] + 1)
    if rule[VARIABLES] != BOTH:
        key = key * constants + np.uint64(rule[HEAD_CONSTANT] + 1)
        key = key * constants + np.uint64(rule[END_CONSTANT] + 1)
    key = key * np.uint64(3) + np.uint64(rule[VARIABLES])
    return key if key != _EMPTY else np.uint64(1)


@inlined
def add_key(keys: Keys, key: Any) -> Any:
    """Put a key into the set, which must have room; False if it was there."""
    mask = np.uint64(len(keys) - 1)
    place = random_bits(key, 0) & mask
    while keys[place] != _EMPTY:
        if keys[place] == key:
            return False
        place = (place + np.uint64(1)) & mask
    keys[place] = key
    return True


@kernel
def fill(keys: Keys, others: Keys) -> None:
    """Put all keys of another set, or list, into a set."""
    for key in others:
        if key != _EMPTY:
            add_key(keys, key)
