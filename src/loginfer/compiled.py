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

__all__ = ["fast_inlined", "fast_kernel", "fast_spliced", "inlined", "kernel"]

# What learning may do with floats: add in another order, which sums in vector registers need, and fuse a
# product with a sum. Not among them: to assume that there are no infinities or NaNs, which must be noticed.
# Looking for a division by 0 before each one would keep loops out of vector registers, too. And without
# allocations nobody need count who uses an array, which costs an atomic instruction for each row.
_FAST_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz"},
    "error_model": "numpy",
    "_nrt": False,
}

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


def fast_kernel(function: F) -> F:
    """Compile as `kernel` does, with sums of floats in any order, divisions by 0 and no new arrays.

    The order is the machine code's: the same on every call, perhaps another on another kind of processor.
    """
    return _compiled(function, fast=True)


def fast_inlined(function: F) -> F:
    """Compile as `inlined` does, for a `fast_kernel`."""
    return _compiled(function, forceinline=True, fast=True)


def fast_spliced(function: F) -> F:
    """Make a function part of each `fast_kernel` that calls it before that is compiled.

    For functions that call others: one that is compiled by itself and then inlined is optimised once more at
    every level, which makes deep kernels take long to compile.
    """
    return cast(F, numba.njit(inline="always", **_FAST_OPTIONS)(function))


def _compiled(function: F, forceinline: bool = False, fast: bool = False) -> F:
    options: dict[str, Any] = {"nogil": True, "forceinline": forceinline}
    if fast:
        # Nobody calls what is inlined from Python.
        options.update(_FAST_OPTIONS, no_cpython_wrapper=forceinline, no_cfunc_wrapper=forceinline)
    try:
        return cast(F, numba.njit(cache=not (fast and forceinline), **options)(function))
    except RuntimeError as error:
        # Neither the package's folder nor the user's cache can be written to, as in some containers.
        if "cannot cache" not in str(error):
            raise
        _announce.kept = False
        return cast(F, numba.njit(**options)(function))


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
