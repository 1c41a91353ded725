"""The ways to write rules: one file a dialect, which registers itself; `register_dialect` adds others."""

from __future__ import annotations

import importlib
import pkgutil

from loginfer.errors import UnknownNameError
from loginfer.logic.dialects.base import Dialect, dialects, register_dialect

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

    The first line that is no comment and no declaration decides. Where it could be several dialects, the
    ending of the file's name does. What looks like none is our own syntax: its parser says what is wrong.
    """
    candidates = dialects()
    endings = [d for d in candidates if d.endings and file_name.casefold().endswith(d.endings)]
    for line in text.split("\n"):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "%", "@", "//")):
            continue
        if stripped.casefold().startswith(("prefix ", "base ")):
            continue
        fitting = [d for d in candidates if d.looks_like(stripped)]
        if fitting:
            return next((d for d in endings if d in fitting), fitting[0])
    return endings[0] if endings else candidates[0]
