"""Randomness that depends on the recipe's seed and the name of a stage, and on nothing else.

Two kinds are needed. A set that an engine has written down is sampled by *seeded hash order*: each triple
gets 64 bits from its key and a salt, and the smallest come first. That order does not depend on the order in
which an engine finds the triples and can be computed anywhere: compiled (`kernels.mix64`), and in SQL
(`hashed` of `engine.sql.queries`). Sets that are never written down are sampled with a
`numpy.random.Generator` of their own.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

# The constants of SplitMix64.
INCREMENT = 0x9E3779B97F4A7C15
MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def hash_order(keys: npt.NDArray[np.int64], salt: int, count: int | None = None) -> npt.NDArray[np.int64]:
    """Return the indices of the keys with the smallest hashes, smallest first.

    Parameters
    ----------
    keys
        int64[n], distinct.
    salt
        Chooses the order.
    count
        How many indices to return; all by default.
    """
    hashed = hashes(keys, salt)
    if count is None or count >= len(keys):
        return np.argsort(hashed)
    if count == 0:
        return np.empty(0, dtype=np.int64)
    smallest = np.argpartition(hashed, count - 1)[:count]
    return np.asarray(smallest[np.argsort(hashed[smallest])])


def hashes(keys: npt.NDArray[np.int64], salt: int) -> npt.NDArray[np.uint64]:
    """Return the hash of each key: the finaliser of SplitMix64 applied twice, with the salt in between.

    It is a bijection of 64 bits, so that distinct keys never tie.
    """
    return mixed(mixed(keys.astype(np.uint64)) ^ np.uint64(salt))


def mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the finaliser of SplitMix64 of each value: a bijection of 64 bits that scatters them."""
    values = values + np.uint64(INCREMENT)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(MULTIPLIERS[0])
    values = (values ^ (values >> np.uint64(27))) * np.uint64(MULTIPLIERS[1])
    return np.asarray(values ^ (values >> np.uint64(31)))


def salt(seed: int, *stage: object) -> int:
    """Return 64 random bits for a stage."""
    return int.from_bytes(_digest(seed, *stage)[:8], "big")


def generator(seed: int, *stage: object) -> np.random.Generator:
    """Return the generator of random numbers of a stage."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(_digest(seed, *stage), "big")))


def _digest(*parts: object) -> bytes:
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()


def mixed_numbers(salts: npt.NDArray[np.uint64], stage: int) -> npt.NDArray[np.int64]:
    """Return a random number from 0 to 2^62 for each salt and a stage."""
    bits = mixed(mixed(salts) ^ np.uint64(stage))
    return np.asarray((bits >> np.uint64(2)).astype(np.int64))
