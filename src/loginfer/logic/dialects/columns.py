"""AnyBURL's three columns before a rule: predictions, correct predictions, confidence."""

from __future__ import annotations

import re

from loginfer.errors import InputError
from loginfer.logic.scored import ScoredRule

__all__ = ["Columns", "read_columns", "rule_start", "write_columns"]

Columns = tuple[int | None, int | None, float | None]

_COUNT = re.compile(r"\d{1,18}", re.ASCII)  # more digits count nothing that anybody has mined
_CONFIDENCE = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?", re.ASCII)


def read_columns(text: str, where: str | None = None) -> tuple[Columns, int]:
    """Return the columns, if there are any, and where the rule starts.

    Raises
    ------
    InputError
        If tabs before the rule set something apart that is not these columns.
    """
    start = rule_start(text)
    cells = [cell.strip() for cell in text[:start].strip().split("\t")] if start else []
    if not cells:
        return (None, None, None), 0
    if len(cells) != 3:
        raise InputError(
            f"{len(cells)} column{'' if len(cells) == 1 else 's'} before the rule, not three",
            where=where,
            hint="three or none: predictions, correct predictions, confidence",
        )
    for cell, name in zip(cells[:2], ("predictions", "correct predictions"), strict=True):
        if not _COUNT.fullmatch(cell):
            raise InputError(f"`{cell}` is no number of {name}", where=where)
    if not _CONFIDENCE.fullmatch(cells[2]) or float(cells[2]) > 1:
        raise InputError(f"`{cells[2]}` is no confidence, a number from 0 to 1", where=where)
    return (int(cells[0]), int(cells[1]), float(cells[2])), start


def rule_start(text: str) -> int:
    """Return where a rule starts behind columns, whatever stands in them; 0 without columns.

    Tabs before the first bracket can only be theirs; those at the very beginning are blanks.
    """
    bracket = re.search(r"[(<]", text)
    start = text.rfind("\t", 0, bracket.start()) + 1 if bracket else 0
    return start if text[:start].strip() else 0


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
