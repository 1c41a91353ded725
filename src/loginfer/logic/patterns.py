"""Inference patterns by name: the seven of the paper's Table 1, and some of the literature that followed."""

from __future__ import annotations

from functools import cache

from loginfer.errors import UnknownNameError
from loginfer.logic.dialects import arrow
from loginfer.logic.rule import Pattern

__all__ = [
    "FURTHER_NAMES",
    "PATTERN_NAMES",
    "SHORT_NAMES",
    "all_patterns",
    "parse_pattern",
    "pattern_named",
    "patterns",
]

# Table 1, in its order.
_TEXTS = {
    "symmetry": "(x,_R,y) -> (y,_R,x)",
    "inversion": "(x,_R,y) -> (y,_S,x)",
    "hierarchy": "(x,_R,y) -> (x,_S,y)",
    "composition": "(x,_R,y), (y,_S,z) -> (x,_T,z)",
    "intersection": "(x,_R,y), (x,_S,y) -> (x,_T,y)",
    "triangle": "(x,_R,y), (x,_S,z), (y,_T,z), x != y, x != z, y != z -> (x,_P,y)",
    "diamond": (
        "(x,_R,y), (x,_S,z), (y,_T,w), (z,_P,w), x != y, x != z, x != w, y != z, y != w, z != w -> (x,_Q,y)"
    ),
}

# Beyond Table 1: a hierarchy with further premises around its two ends.
_FURTHER = {
    "super-hierarchy": "(x,_R,y), (y,_S,z) -> (x,_P,y)",
    "cup": "(x,_R,y), (y,_S,z), (w,_T,x) -> (x,_P,y)",
    # Without the inequality the second prong would be no premise wherever _S and _T are one relation.
    "fork": "(x,_R,y), (y,_S,z), (y,_T,w), z != w -> (x,_P,y)",
    # A hierarchy with exceptions: those whose object leads on by _S.
    "nonmonotonic-hierarchy": "(x,_R,y), not (y,_S,z) -> (x,_T,y)",
}

PATTERN_NAMES: tuple[str, ...] = tuple(_TEXTS)
FURTHER_NAMES: tuple[str, ...] = tuple(_FURTHER)

# What the paper's benchmarks call them: FB-sym, WN-inver, …
SHORT_NAMES: dict[str, str] = {
    "sym": "symmetry",
    "inver": "inversion",
    "hier": "hierarchy",
    "comp": "composition",
    "inter": "intersection",
    "trian": "triangle",
    "diam": "diamond",
}
_FURTHER_SHORT = {"shier": "super-hierarchy", "nmhier": "nonmonotonic-hierarchy"}


@cache
def _named(name: str) -> Pattern:
    return arrow.parse_pattern((_TEXTS | _FURTHER)[name], name=name)


def patterns() -> tuple[Pattern, ...]:
    """Return the seven patterns in the order of Table 1."""
    return tuple(_named(name) for name in PATTERN_NAMES)


def all_patterns() -> tuple[Pattern, ...]:
    """Return every pattern that has a name: the seven of Table 1, then the others."""
    return tuple(_named(name) for name in (*PATTERN_NAMES, *FURTHER_NAMES))


def pattern_named(name: str) -> Pattern:
    """Return a pattern by its long or short name; case does not count.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    wanted = name.strip().casefold()
    short = SHORT_NAMES | _FURTHER_SHORT
    wanted = short.get(wanted, wanted)
    if wanted not in (*PATTERN_NAMES, *FURTHER_NAMES):
        raise UnknownNameError("pattern", name.strip(), [*PATTERN_NAMES, *FURTHER_NAMES, *short])
    return _named(wanted)


def parse_pattern(text_or_name: str, *, where: str | None = None) -> Pattern:
    """Return a pattern given by its name or by its text.

    Parameters
    ----------
    text_or_name
        `diamond`, `diam`, or a text such as `(x,_R,y), (y,_S,z), x != z -> (x,_T,z)`.
    where
        Where the text came from, for error messages.

    Raises
    ------
    UnknownNameError
        For a word that is not the name of a pattern.
    ParseError
        For a text that does not parse.
    """
    if text_or_name.strip().replace("-", "").replace("_", "").isalnum():
        try:
            return pattern_named(text_or_name)
        except UnknownNameError as error:
            error.where = where
            raise
    return arrow.parse_pattern(text_or_name, where=where)
