"""Everything that can go wrong because of what a user gave us.

    LogInferError                 exit code 2 on the command line, never a traceback
    ├── InputError                a file or text that cannot be read as what it should be
    │   ├── ParseError            ... with the column where reading stopped
    │   └── UnknownNameError      ... a name nobody knows, with the nearest known ones
    ├── OutputError               a result that cannot be written, or must not be overwritten
    ├── DownloadError             a download that failed, or is not what it should be
    └── LimitError                work that would exceed a limit the user set

An error says what is wrong, where, and what to do about it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Up to so many known names are all offered where none is near an unknown one.
MANY = 20
# So many characters of a line are shown around the place where reading stopped.
SHOWN = 72


class LogInferError(Exception):
    """A problem that the user can mend.

    Parameters
    ----------
    message
        What is wrong, with the culprit in backticks.
    where
        File and line, or the argument it came from.
    hint
        What to do about it.
    """

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class InputError(LogInferError):
    """A file or text that cannot be read as what it should be."""


class ParseError(InputError):
    """A text that does not parse, with the place where reading stopped.

    Parameters
    ----------
    text
        The line that was read.
    column
        Where reading stopped, counted from 1.
    expected
        What would have been right there.
    """

    def __init__(
        self, text: str, column: int, expected: str, *, where: str | None = None, hint: str | None = None
    ) -> None:
        actual = repr(text[column - 1 : column + 19]) if column <= len(text) else "the end"
        # Of a long line that part is shown which fits a narrow terminal, so that the mark stays where it belongs.
        start = max(0, min(column - SHOWN // 2, len(text) + 1 - SHOWN))
        line = "".join(c if c.isprintable() else " " for c in text[start : start + SHOWN])
        shown = f"    {line}\n    {' ' * (column - 1 - start)}^"
        super().__init__(f"expected {expected} at column {column}, found {actual}\n{shown}", where=where, hint=hint)
        self.text = text
        self.column = column
        self.expected = expected


class UnknownNameError(InputError):
    """A name that is not known, with the nearest names that are.

    Parameters
    ----------
    kind
        What the name should be: "relation", "pattern", "constant", …
    name
        The unknown name.
    known_names
        The names that exist.
    """

    def __init__(self, kind: str, name: str, known_names: Iterable[str], *, where: str | None = None) -> None:
        self.kind = kind
        self.name = name
        names = list(known_names)
        self.nearest = nearest(name, names)
        hint = None
        if self.nearest:
            hint = "did you mean " + " or ".join(f"`{n}`" for n in self.nearest) + "?"
        elif 0 < len(names) <= MANY:
            hint = "choose one of " + ", ".join(f"`{n}`" for n in names)
        super().__init__(f"unknown {kind} `{name}`", where=where, hint=hint)


class OutputError(LogInferError):
    """A result that cannot be written, or must not be overwritten."""


class DownloadError(LogInferError):
    """A download that failed, or is not what it should be."""


class LimitError(LogInferError):
    """Work that would exceed a limit the user set."""


def caused_by_interruption(error: BaseException | None) -> bool:
    """Say whether Ctrl-C caused an error: while a compiled kernel runs, it comes as the cause of a SystemError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def nearest(name: str, known_names: Iterable[str], count: int = 3) -> list[str]:
    """Return the known names that look most like `name`, best first.

    Case does not count. A name that contains `name` counts as near: people remember the last part of
    `/people/person/nationality`.
    """
    target = name.casefold()
    folded: dict[str, str] = {}
    for candidate in known_names:
        folded.setdefault(candidate.casefold(), candidate)
    inside = sorted((f for f in folded if target and target in f), key=lambda f: (len(f), f))
    close = difflib.get_close_matches(target, list(folded), n=count, cutoff=0.6)
    tails = {f.rsplit("/", 1)[-1].rsplit("#", 1)[-1]: f for f in sorted(folded, reverse=True)}
    close_tails = difflib.get_close_matches(target, list(tails), n=count, cutoff=0.7)
    ordered = dict.fromkeys([*inside[:count], *close, *(tails[t] for t in close_tails)])
    return [folded[f] for f in list(ordered)[:count]]
