"""Names as people read them: the last part of an IRI or a path, as long as that is no other name's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["LONGEST", "middle", "short_names", "shortened"]

# Longer ones get a gap in the middle.
LONGEST = 48

# An IRI, or a path as Freebase has them; other names with a slash in them (AC/DC) are what they are.
_PATH = re.compile(r"(?:(?:https?|ftp|file)://|urn:|/)[^\s<>\"]+")
_BEFORE_A_PART = re.compile(r"[/#]+|(?<=urn):")
_IN_TEXT = re.compile(r"<?https?://[^\s,()<>\"`]*[#/]([\w.-]+)>?")


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return a short form for each name; different names have different ones.

    Parameters
    ----------
    names
        The names that are shown together.
    """
    forms = {name: _forms(name) for name in names}
    chosen = dict.fromkeys(forms, 0)
    while True:
        shown = {name: forms[name][chosen[name]] for name in forms}
        taken = Counter(shown.values())
        unclear = [n for n in forms if taken[shown[n]] > 1 and chosen[n] + 1 < len(forms[n])]
        if not unclear:
            return shown
        for name in unclear:
            chosen[name] += 1


def _forms(name: str) -> list[str]:
    """Return what may stand for a name: its last part, its last two parts, …, itself; shortest first."""
    found = []
    if _PATH.fullmatch(name):
        starts = [match.end() for match in _BEFORE_A_PART.finditer(name.rstrip("/#"))]
        found = [name[start:] for start in reversed(starts)]
    whole = [*found, name]
    return list(dict.fromkeys([middle(form, LONGEST) for form in whole] + [name]))


def middle(name: str, length: int) -> str:
    """Return a name with at most so many characters: of a longer one the beginning and the end."""
    if len(name) <= length:
        return name
    kept = max(length - 1, 2)
    end = (kept + 1) // 2
    return f"{name[: kept - end]}…{name[-end:]}"


def shortened(text: str) -> str:
    """Return a text with the last parts of the IRIs in it."""
    return _IN_TEXT.sub(r"\1", text)
