"""How a file is cut into statements: at line ends, or at full stops."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

__all__ = ["Statements", "full_stops", "lines"]

# From a text to its statements, each with the place where it starts.
Statements: TypeAlias = Callable[[str], Iterator[tuple[int, str]]]

# SPARQL's PREFIX has no full stop: it ends with its line.
_DECLARATION = re.compile(r"\s*(?:prefix|base)\s[^\n]*", re.IGNORECASE)


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Cut a text into lines."""
    start = 0
    for line in text.split("\n"):
        yield start, line.removesuffix("\r")
        start += len(line) + 1


def full_stops(comment: str, quotes: str) -> Statements:
    """Return a function that cuts a text at full stops that a space or the end follows.

    Parameters
    ----------
    comment
        The character that starts a comment, up to the end of the line.
    quotes
        The characters that enclose text in which nothing counts.
    """
    quiet = "|".join([r"<[^<>\s]*>", *(rf"{q}(?:[^{q}\\\n]|\\.)*{q}" for q in quotes)])
    # A comment starts where a word could: names may hold its character.
    comments = re.compile(rf"{quiet}|(?:(?<=[\s.,;\])])|\A)(?P<comment>{comment}[^\n]*)")
    stops = re.compile(rf"{quiet}|(?P<stop>\.(?=\s|\Z))")

    def blank(match: re.Match[str]) -> str:
        # As long as the comment, so that columns stay right.
        return " " * len(match.group()) if match.group("comment") else match.group()

    def end_of_statement(text: str, start: int) -> int:
        declaration = _DECLARATION.match(text, start)
        if declaration:
            return declaration.end()
        return next((m.end() for m in stops.finditer(text, start) if m.group("stop")), len(text))

    def cut(text: str) -> Iterator[tuple[int, str]]:
        text = comments.sub(blank, text)
        start = 0
        while start < len(text):
            end = end_of_statement(text, start)
            if text[start:end].strip():
                yield start, text[start:end]
            start = end

    return cut
