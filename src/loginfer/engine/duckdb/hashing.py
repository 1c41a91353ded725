"""The hash of `loginfer.hashing` in DuckDB's SQL."""

from __future__ import annotations

from loginfer.hashing import INCREMENT, MULTIPLIERS

__all__ = ["hashed"]

_LOW = 2**32 - 1


def hashed(query: str, key: str, salt: int) -> str:
    """Return a query for the rows of another one and the hash of a key of theirs, UBIGINT, as `h`.

    Every step of the hash is a query of its own, so that each of its values is written down once.

    Parameters
    ----------
    query
        The rows.
    key
        An expression over them, not negative.
    salt
        Chooses the order.
    """
    query = f"SELECT *, CAST({key} AS UBIGINT) AS h FROM ({query})"
    query = _step(_mixed(query), f"xor(h, CAST({salt} AS UBIGINT))")
    return _mixed(query)


def _mixed(query: str) -> str:
    """Apply the finaliser of SplitMix64 to h."""
    query = _halves(query, INCREMENT & _LOW, INCREMENT >> 32, "+")
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        query = _step(query, f"xor(h, h >> {shift})")
        query = _halves(query, multiplier & _LOW, multiplier >> 32, "*")
    return _step(query, "xor(h, h >> 31)")


def _step(query: str, value: str) -> str:
    return f"SELECT * REPLACE ({value} AS h) FROM ({query})"


def _halves(query: str, low: int, high: int, operation: str) -> str:
    """Add or multiply h by a constant modulo 2^64; UBIGINT refuses to overflow, so by halves of 32 bits."""
    if operation == "+":
        first = f"(h & {_LOW}) + {low}"
        second = f"(h >> 32) + {high}"
    else:
        first = f"(h & {_LOW}) * {low}"
        second = f"(((h >> 32) * {low}) & {_LOW}) + (((h & {_LOW}) * {high}) & {_LOW})"
    query = f"SELECT *, {first} AS h_low, {second} AS h_high FROM ({query})"
    joined = f"((((h_low >> 32) + h_high) & {_LOW}) << 32) | (h_low & {_LOW})"
    return f"SELECT * EXCLUDE (h_low, h_high) REPLACE ({joined} AS h) FROM ({query})"
