"""The one decorator for compiled kernels, and the notice that a first call compiles them.

`@kernel` is `numba.njit` with the on-disk cache. Numba is imported when the first module with kernels is,
so the rest of the program starts without it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

# Numba makes a great many objects while it is imported, and no garbage: collecting in between is in vain.
_collecting = gc.isenabled()
gc.disable()
try:
    import numba
    from numba.core import event
finally:
    if _collecting:
        gc.enable()

__all__ = ["inlined", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function on its first call and keep the machine code on disk."""
    return _compiled(function)


def inlined(function: F) -> F:
    """Compile a function into each kernel that calls it.

    A call hands over every array field by field, some seventy words for a handful of arrays: for a small
    function in an inner loop that costs more than its work.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: F, forceinline: bool = False) -> F:
    try:
        return cast(F, numba.njit(cache=True, nogil=True, forceinline=forceinline)(function))
    except RuntimeError as error:
        # Neither the package's folder nor the user's cache can be written to, as in some containers.
        if "cannot cache" not in str(error):
            raise
        _announce.kept = False
        return cast(F, numba.njit(nogil=True, forceinline=forceinline)(function))


class _Announce(event.Listener):
    """Say once that kernels are being compiled: a first call takes seconds, later ones do not.

    `kept` says whether there is a place on disk to keep them.
    """

    def __init__(self) -> None:
        self.said = False
        self.kept = True

    def on_start(self, event: Any) -> None:
        if not self.said:
            self.said = True
            how = "once; this takes some seconds …"
            if not self.kept:
                how = "every time: no folder to keep them in can be written to; set NUMBA_CACHE_DIR to one …"
            print(f"loginfer: compiling kernels for this machine, {how}", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        pass


_announce = _Announce()
event.register("numba:compile", _announce)  # type: ignore[no-untyped-call]
