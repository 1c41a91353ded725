"""A table for a paper, as a value: what stands in it, before anybody decides how it is written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["Entry", "TableValue", "best_in_bold", "half_interval"]

# If a figure is distributed normally over all seeds, its mean lies within ± half with this probability.
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at one place of a table: a word, a number, or both.

    Parameters
    ----------
    text
        A word: a name, or why there is no number.
    value
        The number, in the unit in which it is shown.
    half
        Half the width of its interval.
    paper
        The paper's number, shown in brackets.
    digits
        Behind the decimal point.
    bold
        Whether it stands out.
    notes
        Numbers of the table's notes that are about it, from 1.
    """

    text: str = ""
    value: float | None = None
    half: float | None = None
    paper: float | None = None
    digits: int = 1
    bold: bool = False
    notes: tuple[int, ...] = ()

    @property
    def is_number(self) -> bool:
        """Whether there is a number."""
        return self.value is not None or self.paper is not None


@dataclass(frozen=True, slots=True)
class TableValue:
    """A table.

    Parameters
    ----------
    title
        What it shows, in one line.
    header
        The columns' names.
    rows
        One entry for each column in every row.
    notes
        Footnotes; entries refer to them by number, from 1. The others are about the whole table.
    blocks
        Numbers of the rows before which a new block begins.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()
    blocks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"a row of {len(row)} entries in a table of {len(self.header)} columns")

    @property
    def numbers(self) -> tuple[bool, ...]:
        """Which columns hold numbers."""
        return tuple(any(row[i].is_number for row in self.rows) for i in range(len(self.header)))


def best_in_bold(entries: Sequence[Entry], among: Sequence[bool] | None = None) -> list[Entry]:
    """Return entries with the largest numbers in bold, as they are shown; one alone is not the best of any.

    Parameters
    ----------
    entries
        The entries that are compared.
    among
        Which of them take part; by default all.
    """
    chosen = [True] * len(entries) if among is None else among
    numbers = [
        round(entry.value, entry.digits)
        for entry, takes_part in zip(entries, chosen, strict=True)
        if takes_part and entry.value is not None
    ]
    if len(numbers) < 2:
        return list(entries)
    best = max(numbers)
    return [
        replace(
            entry, bold=takes_part and entry.value is not None and round(entry.value, entry.digits) == best
        )
        for entry, takes_part in zip(entries, chosen, strict=True)
    ]


def half_interval(values: Sequence[float]) -> float | None:
    """Return half the width of the interval of a mean (Student's t); None for fewer than two values."""
    from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        return None
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance / count)
