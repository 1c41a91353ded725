"""What PyKEEN and torch complain about, in one line."""

from __future__ import annotations

__all__ = ["reason"]


def reason(error: BaseException) -> str:
    """Return the kind of an error and the first line of its message.

    Below that line torch writes where in its own code the error was raised.
    """
    # The text of a KeyError is its message in quotation marks.
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    first = text.strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
