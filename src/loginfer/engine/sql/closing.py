"""Engines that own something which is to be given back: a database, temporary files, an application."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

__all__ = ["Closing"]


class Closing:
    """Closes once: by `close`, at the end of a `with` statement, or when it is collected."""

    _finalizer: weakref.finalize[..., Any]

    def _close_by(self, close: Callable[[], None]) -> None:
        """Say what closes it."""
        self._finalizer = weakref.finalize(self, close)

    def close(self) -> None:
        """Give back what it owns, and remove its temporary files. Closing twice is fine."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
