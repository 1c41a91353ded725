"""Random orders that depend on a salt and on the things themselves, and on nothing else.

Each key gets a number of 64 bits, and the smallest come first. That order does not depend on where or in
which order keys are found, and can be computed anywhere: databases have the same function (`hashed` of an SQL
engine's session).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["INCREMENT", "MULTIPLIERS", "hash_order", "hashes", "mixed"]

# The constants of SplitMix64.
INCREMENT = 0x9E3779B97F4A7C15
MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def hash_order(keys: npt.NDArray[np.int64], salt: int, count: int | None = None) -> npt.NDArray[np.int64]:
    """Return the places of the keys with the smallest hashes, smallest first.

    Parameters
    ----------
    keys
        int64[n], distinct.
    salt
        Chooses the order.
    count
        How many places to return; all by default.
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
