"""Randomness that depends on the recipe's seed and the name of a stage, and on nothing else.

Two kinds are needed. A set that an engine has written down is sampled by *seeded hash order*: each triple
gets a number from its key and a salt, and the smallest come first. That order does not depend on the order
in which an engine finds the triples and can be computed anywhere, in SQL as well as here. Sets that are
never written down are sampled with a `numpy.random.Generator` of their own.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from loginfer.hashing import hash_order, mixed

__all__ = ["generator", "hash_order", "mixed_numbers", "salt"]


def salt(seed: int, *stage: object) -> int:
    """Return 64 random bits for a stage."""
    text = "\0".join([str(seed), *map(str, stage)])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def generator(seed: int, *stage: object) -> np.random.Generator:
    """Return the generator of random numbers of a stage."""
    text = "\0".join([str(seed), *map(str, stage)])
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


def mixed_numbers(salts: npt.NDArray[np.uint64], stage: int) -> npt.NDArray[np.int64]:
    """Return a random number from 0 to 2^62 for each salt and a stage."""
    both = mixed(mixed(salts) ^ np.uint64(stage))
    return np.asarray((both >> np.uint64(2)).astype(np.int64))
