"""AnyBURL's three columns before a rule: predictions, correct predictions, confidence."""

from __future__ import annotations

import re

from loginfer.errors import InputError
from loginfer.logic.scored import ScoredRule

__all__ = ["Columns", "read_columns", "write_columns"]

Columns = tuple[int | None, int | None, float | None]

_COLUMNS = re.compile(r"\s*(\d+)\t\s*(\d+)\t\s*([0-9.]+(?:[eE][+-]?\d+)?|nan|NaN)\t")


def read_columns(text: str) -> tuple[Columns, int]:
    """Return the columns, if there are any, and where the rule starts."""
    match = _COLUMNS.match(text)
    if not match:
        return (None, None, None), 0
    try:
        confidence = float(match.group(3))
    except ValueError:
        return (None, None, None), 0
    return (int(match.group(1)), int(match.group(2)), confidence), match.end()


def write_columns(scored: ScoredRule) -> str:
    """Write the columns, or nothing for a rule that nobody has scored.

    Raises
    ------
    InputError
        If only some of the columns are known.
    """
    values = (scored.predictions, scored.correct, scored.confidence)
    if all(v is None for v in values):
        return ""
    if any(v is None for v in values):
        raise InputError(
            f"the columns need predictions, correct predictions and confidence: `{scored.rule}` lacks one",
            hint="give all three or none",
        )
    return f"{scored.predictions}\t{scored.correct}\t{scored.confidence!r}\t"
