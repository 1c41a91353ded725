"""The hash of `loginfer.hashing` in Spark's SQL."""

from __future__ import annotations

from loginfer.hashing import INCREMENT, MULTIPLIERS

__all__ = ["hashed"]

_LOW = 2**32 - 1


def hashed(query: str, key: str, salt: int) -> str:
    """Return a query for the rows of another one and a column h in the order of the hash of a key.

    Spark's BIGINT has a sign and refuses to overflow, so sums and products are made of halves. What is
    returned as h has the highest bit turned, which makes the order of numbers without a sign that of
    numbers with one.

    Each step reads h several times, so it is a query of its own; to take them apart costs Spark more than to
    do them, hence few.

    Parameters
    ----------
    query
        The rows.
    key
        An expression over them, not negative.
    salt
        Chooses the order.
    """
    query = f"SELECT *, CAST({key} AS BIGINT) AS h FROM ({query}) AS q"
    query = _mixed(_step(query, _sum("h", INCREMENT)))
    query = _mixed(_step(query, _sum(f"({_folded('h', 31)} ^ {_signed(salt)})", INCREMENT)))
    return _step(query, f"{_folded('h', 31)} ^ {_signed(2**63)}")


def _step(query: str, value: str) -> str:
    """Return the rows with another h."""
    return f"SELECT * EXCEPT (h), {value} AS h FROM ({query}) AS q"


def _mixed(query: str) -> str:
    """Apply the two products of the finaliser of SplitMix64 to h."""
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        query = _step(query, _product(_folded("h", shift), multiplier))
    return query


def _signed(number: int) -> str:
    """Write 64 bits as a number with a sign."""
    return f"CAST({number - 2**64 if number >= 2**63 else number} AS BIGINT)"


def _folded(value: str, shift: int) -> str:
    return f"({value} ^ shiftrightunsigned({value}, {shift}))"


def _low(value: str) -> str:
    return f"({value} & {_LOW})"


def _high(value: str) -> str:
    return f"shiftrightunsigned({value}, 32)"


def _joined(low: str, high: str) -> str:
    """Make 64 bits of two halves, the lower of which may carry."""
    return f"shiftleft({_low(f'({high} + {_high(low)})')}, 32) | {_low(low)}"


def _sum(value: str, number: int) -> str:
    """Add modulo 2^64."""
    return _joined(f"({_low(value)} + {number & _LOW})", f"({_high(value)} + {number >> 32})")


def _product(value: str, multiplier: int) -> str:
    """Multiply modulo 2^64; 16 bits of the multiplier at a time, so that nothing exceeds 63 bits."""
    low, high = _low(value), _high(value)
    one, two, upper = multiplier & 0xFFFF, multiplier >> 16 & 0xFFFF, multiplier >> 32

    def lower(half: str, number: int) -> str:
        """Write the lower 32 bits of a product of 32 bits with 32 bits."""
        first = f"{half} * {number & 0xFFFF}"
        second = f"shiftleft(({half} * {number >> 16}) & 65535, 16)"
        return f"(({first} + {second}) & {_LOW})"

    below = f"({low} * {one} + shiftleft(({low} * {two}) & 65535, 16))"
    carried = f"shiftrightunsigned({low} * {two}, 16)"
    above = f"({carried} + {lower(low, upper)} + {lower(high, multiplier & _LOW)})"
    return _joined(below, above)
