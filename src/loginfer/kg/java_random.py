"""The random numbers of `java.util.Random`, which the LUBM generator is defined by."""

from __future__ import annotations

__all__ = ["JavaRandom"]

MULTIPLIER = 0x5DEECE66D
INCREMENT = 11
MASK = 2**48 - 1


class JavaRandom:
    """A linear congruential generator with 48 bits of state, drawing as `nextInt(n)` does.

    Parameters
    ----------
    seed
        Any signed 64-bit integer.
    """

    __slots__ = ("state",)

    def __init__(self, seed: int) -> None:
        self.state = (seed ^ MULTIPLIER) & MASK

    @classmethod
    def at(cls, state: int) -> JavaRandom:
        """Return a generator that continues from a state seen before."""
        random = cls(0)
        random.state = state
        return random

    def below(self, n: int) -> int:
        """Draw one of 0 … n - 1. Also `below(1)`, which is always 0, takes a step."""
        state = (self.state * MULTIPLIER + INCREMENT) & MASK
        if n & (n - 1) == 0:
            self.state = state
            return (n * (state >> 17)) >> 31
        output = state >> 17
        value = output % n
        # The last, incomplete run of n outputs below 2^31 would favour small values: draw again.
        while output - value + n > 2**31:
            state = (state * MULTIPLIER + INCREMENT) & MASK
            output = state >> 17
            value = output % n
        self.state = state
        return value

    def between(self, low: int, high: int) -> int:
        """Draw one of low … high, both included."""
        return low + self.below(high - low + 1)

    def distinct(self, count: int, n: int) -> list[int]:
        """Draw `count` different ones of 0 … n - 1, in drawing order."""
        remaining = list(range(n))
        return [remaining.pop(self.below(size)) for size in range(n, n - count, -1)]
