"""The one decorator for compiled kernels, and the notice that a first call compiles them.

`@kernel` is `numba.njit` with the on-disk cache. Numba is imported when the first module with kernels is,
so the rest of the program starts without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

__all__ = ["inlined", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function on its first call and keep the machine code on disk."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def inlined(function: F) -> F:
    """Compile a function into each kernel that calls it.

    A call hands over every array field by field, some seventy words for a handful of arrays: for a small
    function in an inner loop that costs more than its work.
    """
    return cast(F, numba.njit(cache=True, nogil=True, forceinline=True)(function))


class _Announce(event.Listener):
    """Say once that kernels are being compiled: a first call takes seconds, later ones do not."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        if not self.said:
            self.said = True
            print(
                "loginfer: compiling kernels for this machine, once; this takes some seconds …",
                file=sys.stderr,
                flush=True,
            )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announce())  # type: ignore[no-untyped-call]
