"""Eight bytes at a time: unaligned loads, searches within a word, and the hash of a name.

The functions take addresses (`array.ctypes.data` plus a place), because a call with an array hands over
seven values and counts references. Whoever calls them keeps the array alive, and leaves 8 readable bytes
behind the last place asked for; `chunks.py` and `names.py` see to that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from loginfer.compiled import kernel

__all__ = [
    "find_and_hash",
    "find_two",
    "hash_bytes",
    "load_big_endian",
    "load_word",
    "repeated",
    "same_bytes",
]

_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SEED = np.uint64(0x517CC1B727220A95)
_SHIFT = np.uint64(32)
_EIGHT = np.uint64(8)
_THREE = np.uint64(3)
_ZERO = np.uint64(0)


def repeated(byte: bytes) -> np.uint64:
    """Return the word that holds one byte eight times, for `find_two`."""
    return np.uint64(byte[0]) * _ONES


def _load(typingctx: Any, address: Any) -> Any:
    """uint64 of the 8 bytes from `address` on, lowest byte first."""
    return types.uint64(types.int64), _emit_load


def _load_big_endian(typingctx: Any, address: Any) -> Any:
    """uint64 of the 8 bytes from `address` on, highest byte first: ordered as the bytes are."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bswap(_emit_load(context, builder, signature, args))

    return types.uint64(types.int64), emit


def _trailing_zeros(typingctx: Any, word: Any) -> Any:
    """Count the zero bits below the lowest one of a uint64; 64 for zero."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), emit


def _emit_load(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)


# Single machine instructions that Numba has no function for.
load_word: Any = intrinsic(_load)
load_big_endian: Any = intrinsic(_load_big_endian)
trailing_zeros: Any = intrinsic(_trailing_zeros)


@kernel
def find_two(address: Any, first: Any, second: Any) -> Any:
    """Return the next address of either of two bytes, given as words that repeat them eight times.

    A byte of `word ^ first` is zero where the first byte stands. `(x - 0x01…) & ~x & 0x80…` marks zero
    bytes; marks above the lowest may be wrong, the lowest never is.
    """
    while True:
        word = load_word(address)
        x = word ^ first
        y = word ^ second
        marks = (((x - _ONES) & ~x) | ((y - _ONES) & ~y)) & _HIGHS
        if marks != _ZERO:
            return address + np.int64(trailing_zeros(marks) >> _THREE)
        address += 8


@kernel
def find_and_hash(start: Any, first: Any, second: Any) -> Any:
    """Return the next address of either of two bytes (see `find_two`) and the hash of what is before it."""
    value = _SEED
    address = start
    while True:
        word = load_word(address)
        x = word ^ first
        y = word ^ second
        marks = (((x - _ONES) & ~x) | ((y - _ONES) & ~y)) & _HIGHS
        if marks != _ZERO:
            break
        value = (value ^ word) * _MIX
        value ^= value >> _SHIFT
        address += 8
    rest = trailing_zeros(marks) >> _THREE
    if rest != _ZERO:
        value = (value ^ (word & (_ALL >> ((_EIGHT - rest) * _EIGHT)))) * _MIX
        value ^= value >> _SHIFT
    end = address + np.int64(rest)
    value = (value ^ np.uint64(end - start)) * _MIX
    return end, value ^ (value >> _SHIFT)


@kernel
def hash_bytes(address: Any, end: Any) -> Any:
    """Return the hash of the bytes up to `end`, never depending on the bytes around them."""
    value = _SEED
    length = np.uint64(end - address)
    while address + 8 <= end:
        value = (value ^ load_word(address)) * _MIX
        value ^= value >> _SHIFT
        address += 8
    if address < end:
        rest = np.uint64(end - address)
        word = load_word(address) & (_ALL >> ((_EIGHT - rest) * _EIGHT))
        value = (value ^ word) * _MIX
        value ^= value >> _SHIFT
    value = (value ^ length) * _MIX
    return value ^ (value >> _SHIFT)


@kernel
def same_bytes(address: Any, other: Any, length: Any) -> Any:
    """Say whether `length` bytes are equal."""
    while length >= 8:
        if load_word(address) != load_word(other):
            return False
        address += 8
        other += 8
        length -= 8
    if length > 0:
        difference = load_word(address) ^ load_word(other)
        return difference << ((_EIGHT - np.uint64(length)) * _EIGHT) == _ZERO
    return True
