"""The ways to write rules: one file a dialect."""

from __future__ import annotations

from loginfer.errors import UnknownNameError
from loginfer.logic.dialects.amie import AMIE
from loginfer.logic.dialects.anyburl import ANYBURL
from loginfer.logic.dialects.arrow import ARROW
from loginfer.logic.dialects.base import Dialect
from loginfer.logic.dialects.datalog import DATALOG
from loginfer.logic.dialects.nemo import NEMO
from loginfer.logic.dialects.queries import SPARQL, SQL
from loginfer.logic.dialects.rdfox import RDFOX

__all__ = ["Dialect", "detect", "dialect_named", "dialects"]


# In the order in which a statement is tried on them.
_DIALECTS = (ARROW, RDFOX, ANYBURL, AMIE, NEMO, DATALOG, SPARQL, SQL)


def dialects() -> tuple[Dialect, ...]:
    """Return all dialects, each with an example."""
    return _DIALECTS


def dialect_named(name: str) -> Dialect:
    """Return a dialect by its name; case does not count.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    for dialect in _DIALECTS:
        if dialect.name == name.strip().casefold():
            return dialect
    raise UnknownNameError("dialect", name, [d.name for d in _DIALECTS])


def detect(text: str, file_name: str = "") -> Dialect:
    """Return the dialect in which a rule, or a file of rules, is written.

    The first line that is no comment and no declaration decides. Where it could be several dialects, the
    ending of the file's name does. What looks like none is our own syntax: its parser says what is wrong.
    """
    endings = [d for d in _DIALECTS if d.endings and file_name.casefold().endswith(d.endings)]
    for line in text.split("\n"):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "%", "@", "//")):
            continue
        if stripped.casefold().startswith(("prefix ", "base ")):
            continue
        fitting = [d for d in _DIALECTS if d.looks_like(stripped)]
        for dialect in endings:
            if dialect in fitting:
                return dialect
        if fitting:
            return fitting[0]
    return endings[0] if endings else ARROW
