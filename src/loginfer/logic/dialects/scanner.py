"""A cursor over a text, shared by the parsers of all dialects."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import NoReturn

from loginfer.errors import InputError, ParseError

__all__ = ["Scanner", "located", "unescape"]

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class Scanner:
    """Reads a text from left to right and says where and why it cannot go on.

    Parameters
    ----------
    text
        What is read.
    where
        File and line it came from, for error messages.
    comment
        The character that starts a comment, at the start or after a space, to the end of the line.
    """

    def __init__(self, text: str, where: str | None = None, *, comment: str | None = "#") -> None:
        self.text = text
        self.where = where
        self.comment = comment
        self.position = 0

    def skip(self) -> None:
        """Step over spaces and comments."""
        text = self.text
        while self.position < len(text):
            character = text[self.position]
            if character.isspace():
                self.position += 1
            elif character == self.comment and (self.position == 0 or text[self.position - 1].isspace()):
                stop = text.find("\n", self.position)
                self.position = len(text) if stop < 0 else stop
            else:
                return

    def at_end(self) -> bool:
        """Say whether only spaces and comments are left."""
        self.skip()
        return self.position == len(self.text)

    def at(self, *tokens: str) -> bool:
        """Say whether one of these comes next."""
        self.skip()
        return self.text.startswith(tokens, self.position)

    def take(self, *tokens: str) -> str | None:
        """Step over the first of these that comes next and return it, or None."""
        self.skip()
        for token in tokens:
            if self.text.startswith(token, self.position):
                self.position += len(token)
                return token
        return None

    def expect(self, token: str, expected: str | None = None) -> None:
        """Step over a token that must come next."""
        if self.take(token) is None:
            self.fail(expected or f"`{token}`")

    def match(self, regex: re.Pattern[str]) -> re.Match[str] | None:
        """Step over what a regular expression matches here, and return the match, or None."""
        self.skip()
        match = regex.match(self.text, self.position)
        if match:
            self.position = match.end()
        return match

    def fail(self, expected: str, *, at: int | None = None, hint: str | None = None) -> NoReturn:
        """Raise a `ParseError` at the cursor, or at another position."""
        position = self.position if at is None else at
        raise ParseError(self.text, position + 1, expected, where=self.where, hint=hint)


def unescape(text: str) -> str:
    r"""Undo backslash escapes: `\n`, `\t`, `\u00e9` and so on; any other `\c` stands for c.

    Raises
    ------
    InputError
        For a code point that does not exist.
    """
    if "\\" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        short, long, plain = match.groups()
        if plain is not None:
            return _PLAIN.get(plain, plain)
        code = int(short or long, 16)
        if code > 0x10FFFF:
            raise InputError(f"`{match.group()}` is not a character", hint="the last one is \\U0010FFFF")
        return chr(code)

    return _ESCAPE.sub(one, text)


@contextlib.contextmanager
def located(where: str | None) -> Iterator[None]:
    """Add the place to errors that do not know it: values check themselves, files know the line."""
    try:
        yield
    except InputError as error:
        error.where = error.where or where
        raise
