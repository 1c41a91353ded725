"""The ways to write rules: one file a dialect, which registers itself; `register_dialect` adds others."""

from __future__ import annotations

import importlib
import pkgutil
import re

from loginfer.errors import InputError, UnknownNameError
from loginfer.logic.dialects.base import Dialect, dialects, register_dialect

# How the file of a benchmark's rules begins, which are in our own syntax.
HEADING = "# The rules of "

__all__ = ["Dialect", "detect", "dialect_named", "dialects", "register_dialect"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def dialect_named(name: str) -> Dialect:
    """Return a dialect by its name; case does not count.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    by_name = {dialect.name: dialect for dialect in dialects()}
    if name.strip().casefold() not in by_name:
        raise UnknownNameError("dialect", name, by_name)
    return by_name[name.strip().casefold()]


def detect(text: str, file_name: str = "") -> Dialect:
    """Return the dialect in which a rule, or a file of rules, is written.

    The heading of our own files decides, else the first line that is no comment and no declaration: it looks like a
    dialect, and can be read in it. Where it could be several dialects, the ending of the file's name does. What looks
    like none is our own syntax: its parser says what is wrong.
    """
    candidates = dialects()
    if text.startswith(HEADING):
        return candidates[0]
    endings = [d for d in candidates if d.endings and file_name.casefold().endswith(d.endings)]
    lines = [stripped for line in text.split("\n") if (stripped := line.strip())]
    comments = [line for line in lines if line.startswith(("#", "%", "@", "//")) or _DECLARATION.match(line)]
    # Dialects without comments have names that begin like one: if there is nothing else, these are rules.
    for line in [line for line in lines if line not in comments] or comments:
        fitting = [d for d in candidates if d.looks_like(line)]
        readable = [d for d in fitting if _reads(d, line)] or [d for d in candidates if _reads(d, line)] or fitting
        if readable:
            return next((d for d in endings if d in readable), readable[0])
    return endings[0] if endings else candidates[0]


_DECLARATION = re.compile(r"(?:prefix|base)\s", re.IGNORECASE)


def _reads(dialect: Dialect, line: str) -> bool:
    if dialect.read_statement is None:
        return False
    try:
        dialect.read_any(line, None, {})
    except InputError:
        return False
    return True
