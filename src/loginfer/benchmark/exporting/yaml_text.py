"""Texts as YAML writes them between double quotes, so that no reader takes one for something else."""

from __future__ import annotations

__all__ = ["quoted"]


def quoted(text: str) -> str:
    """Return a text as a double-quoted scalar; what cannot be printed is escaped."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08X}"
