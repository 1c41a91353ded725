"""How long the rest will take: what was expected, corrected by what was observed."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Pace", "in_words"]

# So many expected seconds must have passed before observations count as much as expectations.
_TRUST = 60.0


class Pace:
    """The time that is left.

    Parameters
    ----------
    jobs
        How many things are done at a time.
    expected
        The expected seconds of everything that is to be done.
    """

    def __init__(self, jobs: int, expected: Iterable[float]) -> None:
        self._jobs = jobs
        self._left = list(expected)
        self._expected = self._taken = _TRUST

    def finished(self, expected: float, taken: float, *, counts: bool = True) -> None:
        """Take note of something that is finished; what failed says nothing about the pace."""
        self._left.remove(expected)
        if counts:
            self._expected += expected
            self._taken += taken

    def remaining(self) -> float:
        """Return how many seconds the rest should take."""
        if not self._left:
            return 0.0
        # With several jobs the last one decides, if it is long.
        work = max(sum(self._left) / self._jobs, max(self._left))
        return work * self._taken / self._expected


def in_words(seconds: float) -> str:
    """Say how long something takes: `40 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02} min"
