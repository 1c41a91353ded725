"""Names that are not known, with those that are."""

from __future__ import annotations

from collections.abc import Sequence

from loginfer.errors import UnknownNameError

__all__ = ["unknown_name"]


def unknown_name(kind: str, name: str, known: Sequence[str], where: str) -> UnknownNameError:
    """Return the complaint about a name: with the nearest ones, or all if none is near.

    PyKEEN has no command that would list them.
    """
    error = UnknownNameError(kind, name, known, where=where)
    if error.hint is None:
        error.hint = "choose one of " + ", ".join(f"`{other}`" for other in known)
    return error
