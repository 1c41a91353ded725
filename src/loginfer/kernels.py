"""Compiled kernels: their decorators, their cache on disk, and what they all use.

`@kernel` is `numba.njit` with machine code kept on disk. Numba is imported when the first module with kernels
is, so the rest of the program starts without it. Below the decorators are helpers for kernels of all packages:
`lower_bound` and `gallop` search in ascending lists; `find_slot` looks a key up in a hash table,
and a counter is such a table with a count for each key; `mix64` and `random_bits` give random bits.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from loginfer.randomness import INCREMENT, MULTIPLIERS

try:
    import fcntl
except ImportError:  # Windows: what two processes need at the same time is compiled twice
    fcntl = None  # type: ignore[assignment]

# Importing Numba makes a great many objects and no garbage: collecting meanwhile is in vain.
_collecting = gc.isenabled()
gc.disable()
try:
    import numba
    from numba.core import config as _numba_config
    from numba.core import event
    from numba.np import linalg

    # `arraymath` asks for linear algebra when it is imported, and so for all of `scipy.linalg`: a tenth of the
    # time that a short command takes. Whoever uses linear algebra is asked again.
    _ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    import numba.np.arraymath

    linalg.ensure_blas = _ensure_blas
finally:
    if _collecting:
        gc.enable()


config: Any = _numba_config

# What learning may do with floats: add in another order, which sums in vector registers need, and fuse a
# product with a sum. Not among them: to assume that there are no infinities or NaNs, which must be noticed.
# Checks for division by 0 would keep loops out of vector registers, too. And without allocations no
# references to arrays need be counted, which costs an atomic instruction for each row.
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
    # Nobody calls what is inlined from Python, nor anything from C.
    options: dict[str, Any] = {"nogil": True, "forceinline": forceinline, "no_cfunc_wrapper": True}
    options["no_cpython_wrapper"] = forceinline
    if fast:
        options.update(_FAST_OPTIONS)
    if fast and forceinline:
        return cast(F, numba.njit(**options)(function))
    base = _cache_base() if _kept_on_disk else None
    if base is None and _kept_on_disk:
        # Neither the package's folder nor the user's cache can be written to, as in some containers.
        _announce.cached = False
    with _cached_in(_module_folder(base, function)) if base else contextlib.nullcontext():
        dispatcher: Any = numba.njit(cache=base is not None, **options)(function)
    # Kernels that call this one with constants share its machine code: Numba would compile for each constant.
    original, plain = dispatcher.get_call_template, cast(Any, types.unliteral)
    dispatcher.get_call_template = lambda args, kws: original(
        [plain(a) for a in args], {name: plain(a) for name, a in kws.items()}
    )
    if base is not None and fcntl is not None:
        _compile_in_one_process(dispatcher, base)
    return cast(F, dispatcher)


def _compile_in_one_process(dispatcher: Any, base: Path) -> None:
    """Let processes that need the same kernel at the same time wait for the first, and take what it kept."""
    name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
    # A byte of the file stands for the kernel.
    byte = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])
    compile_ = dispatcher.compile

    def compile_once(signature: Any) -> Any:
        try:
            # Locks of this kind belong to the process: a second one for a kernel within a kernel does not wait.
            fcntl.lockf(_lock_file(base), fcntl.LOCK_EX, 1, byte)
        except OSError:  # no locks on this file system, or a circle of waiting processes: compile it here, too
            return compile_(signature)
        try:
            return compile_(signature)
        finally:
            fcntl.lockf(_lock_file(base), fcntl.LOCK_UN, 1, byte)

    dispatcher.compile = compile_once


@cache
def _lock_file(base: Path) -> int:
    """Return the file whose bytes are locked; it stays open, since to close it would give all locks up."""
    return os.open(base / "lock", os.O_RDWR | os.O_CREAT, 0o666)


_kept_on_disk = True


@contextlib.contextmanager
def not_kept() -> Iterator[None]:
    """Keep no machine code of what is decorated meanwhile."""
    global _kept_on_disk
    before, _kept_on_disk = _kept_on_disk, False
    try:
        yield
    finally:
        _kept_on_disk = before


@contextlib.contextmanager
def _cached_in(folder: str) -> Iterator[None]:
    """Let Numba keep the machine code of what is decorated meanwhile in this folder."""
    before, config.CACHE_DIR = config.CACHE_DIR, folder
    try:
        yield
    finally:
        config.CACHE_DIR = before


@cache
def _cache_base() -> Path | None:
    """Return the first folder for machine code that can be written to."""
    from platformdirs import user_cache_path

    folders = (Path(__file__).parent / "__pycache__", user_cache_path("loginfer"))
    for folder in (Path(config.CACHE_DIR),) if config.CACHE_DIR else folders:
        base = folder / "kernels"
        try:
            base.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=base).close()
        except OSError:
            continue
        return base
    return None


_folders: dict[str, str] = {}


def _module_folder(base: Path, function: Callable[..., Any]) -> str:
    """Return where the kernels of a function's module are kept: another folder for other sources.

    Numba looks at a kernel's own file only, so a kernel that calls a changed one in another file would stay
    as it was. The folder's name holds a hash of the module, of all modules with kernels that it imports, and
    of the numbers that it imports from anywhere. Folders of other versions of the module are removed.
    """
    module = function.__module__
    if module not in _folders:
        numbers = sorted(
            (name, repr(value))
            for name, value in function.__globals__.items()
            if not name.startswith("__")
            and all(isinstance(v, int | float | np.generic) for v in (value if isinstance(value, tuple) else (value,)))
        )
        path = function.__code__.co_filename
        text = f"{sorted(_kernel_sources(path).items())}{numbers}"
        home = base / f"{module}-{hashlib.sha256(path.encode()).hexdigest()[:8]}"
        folder = home / hashlib.sha256(text.encode()).hexdigest()[:16]
        if not folder.exists() and home.exists():
            shutil.rmtree(home, ignore_errors=True)
        _folders[module] = os.fspath(folder)
    return _folders[module]


def _kernel_sources(path: str) -> dict[str, str]:
    """Return the hash of a source file, and of each file with kernels that it imports, directly or not."""
    package = Path(__file__).parent
    sums: dict[str, str] = {}
    waiting = [path]
    while waiting:
        path = waiting.pop()
        if path not in sums:
            sums[path], imported = _source(path)
            for name in imported:
                file = package.joinpath(*name.split(".")[1:]).with_suffix(".py")
                # The constants of random bits come from `randomness`, which has no kernels.
                if name in (__name__, "loginfer.randomness") or __name__ in _source(str(file))[1]:
                    waiting.append(str(file))
    return sums


@cache
def _source(path: str) -> tuple[str, list[str]]:
    """Return the hash of a source file, and the modules of this package that it imports."""
    try:
        text = Path(path).read_bytes()
    except OSError:  # typed in at a prompt
        return path, []
    imported = re.findall(rb"^from (loginfer[\w.]*) import (\w*)", text, re.MULTILINE)
    names = [name.decode() for package, first in imported for name in (package, package + b"." + first)]
    return hashlib.sha256(text).hexdigest(), names


class _Announce(event.Listener):
    """Say once that kernels are being compiled: a first call takes seconds, later ones do not.

    `cached` says whether they are kept on disk.
    """

    def __init__(self) -> None:
        self.announced = False
        self.cached = True
        self.depth = 0

    def on_start(self, event: Any) -> None:
        # Compiling, too, makes a great many objects and hardly any garbage.
        self.depth += 1
        gc.disable()
        if not self.announced:
            self.announced = True
            frequency = "once; this takes some seconds …"
            if not self.cached:
                frequency = "every time: no folder to keep them in can be written to; set NUMBA_CACHE_DIR to one …"
            logging.getLogger("loginfer").info("loginfer: compiling kernels for this machine, %s", frequency)

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and _collecting:
            gc.enable()


_announce = _Announce()
event.register("numba:compile", _announce)  # type: ignore[no-untyped-call]


def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Return the index of the lowest set bit of a uint64 that is not zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.uint64(types.uint64), generate


trailing_zeros: Any = intrinsic(_trailing_zeros)


# -- search in ascending lists ---------------------------------------------------------------------


@inlined
def lower_bound(values: Any, low: Any, high: Any, target: Any) -> Any:
    """Return the first index from `low` on with values[index] ≥ target, or `high`; values[low:high] ascends."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def gallop(values: Any, low: Any, high: Any, target: Any) -> Any:
    """Return the same as `lower_bound`, faster if the index is near `low`."""
    step = 1
    index = low
    while index < high and values[index] < target:
        low = index + 1
        index += step
        step *= 2
    return lower_bound(values, low, min(index, high), target)


# -- hash tables -----------------------------------------------------------------------------------

Longs = npt.NDArray[np.int64]

# A slot without a key. Keys are not negative.
EMPTY = -1

_INCREMENT = np.uint64(INCREMENT)
_FIRST, _SECOND = np.uint64(MULTIPLIERS[0]), np.uint64(MULTIPLIERS[1])
_27, _30, _31, _32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@inlined
def first_slot(key: Any, capacity: Any) -> Any:
    """Return where to look for a key first in a table of `capacity` slots, a power of two up to 2³².

    Multiplication by 2⁶⁴ divided by the golden ratio spreads neighbouring keys over the high bits.
    """
    return np.int64((np.uint64(key) * _INCREMENT) >> _32) & (capacity - 1)


@inlined
def find_slot(table: Any, key: Any, width: Any = 1) -> Any:
    """Return the slot of a key, or the empty one where it belongs.

    Slot i holds table[i * width : (i + 1) * width], its key in front. Some slots must be empty.
    """
    capacity = table.size // width
    slot = first_slot(key, capacity)
    while table[slot * width] != key and table[slot * width] != EMPTY:
        slot = (slot + 1) & (capacity - 1)
    return slot


@kernel
def new_counter(capacity: int) -> Longs:
    """Return a hash table for counts by key, with `capacity` slots, a power of two up to 2³¹."""
    counter = np.zeros(2 * capacity, dtype=np.int64)
    counter[::2] = EMPTY
    return counter


@inlined
def add_count(counter: Longs, key: int, amount: int) -> int:
    """Add to the count of a key; return 1 if the key is new, else 0."""
    slot = 2 * find_slot(counter, key, 2)
    if counter[slot] == key:
        counter[slot + 1] += amount
        return 0
    counter[slot] = key
    counter[slot + 1] = amount
    return 1


@kernel
def grown_counter(counter: Longs) -> Longs:
    """Return a counter with twice as many slots and the same counts."""
    larger = new_counter(counter.size)
    for i in range(0, counter.size, 2):
        if counter[i] != EMPTY:
            add_count(larger, counter[i], counter[i + 1])
    return larger


@kernel
def counter_items(counter: Longs) -> tuple[Longs, Longs]:
    """Return the keys and their counts, in no particular order."""
    slots = np.flatnonzero(counter[::2] != EMPTY)
    return counter[2 * slots], counter[2 * slots + 1]


# -- random bits -----------------------------------------------------------------------------------


@inlined
def _scatter(bits: Any) -> Any:
    """Return the finaliser of SplitMix64 without the increment."""
    bits = (bits ^ (bits >> _30)) * _FIRST
    bits = (bits ^ (bits >> _27)) * _SECOND
    return bits ^ (bits >> _31)


@inlined
def mix64(value: Any) -> Any:
    """Return 64 bits that depend on all bits of a value, as `mixed` of `loginfer.randomness`: a bijection."""
    return _scatter(np.uint64(value) + _INCREMENT)


@inlined
def random_bits(salt: Any, counter: Any) -> Any:
    """Return 64 random bits for a counter: SplitMix64, whose states are salt, salt + increment, …."""
    return _scatter(salt + np.uint64(counter) * _INCREMENT)
