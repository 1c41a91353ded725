"""The seven inference patterns of the paper's Table 1, by name."""

from __future__ import annotations

from functools import cache

from loginfer.errors import UnknownNameError
from loginfer.logic.dialects import arrow
from loginfer.logic.rule import Pattern

__all__ = ["PATTERN_NAMES", "SHORT_NAMES", "parse_pattern", "pattern_named", "patterns"]

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

PATTERN_NAMES: tuple[str, ...] = tuple(_TEXTS)

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


@cache
def _named(name: str) -> Pattern:
    return arrow.parse_pattern(_TEXTS[name], name=name)


def patterns() -> tuple[Pattern, ...]:
    """Return the seven patterns in the order of Table 1."""
    return tuple(_named(name) for name in PATTERN_NAMES)


def pattern_named(name: str) -> Pattern:
    """Return one of the seven patterns by its long or short name; case does not count.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    wanted = name.strip().casefold()
    wanted = SHORT_NAMES.get(wanted, wanted)
    if wanted not in _TEXTS:
        raise UnknownNameError("pattern", name.strip(), [*PATTERN_NAMES, *SHORT_NAMES])
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
