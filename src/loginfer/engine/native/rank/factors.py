"""Sparse tables of counts over variables and templates, and how to join them.

A factor maps values of some variables and labels of some templates to a count; what it leaves out has the
count 0. An atom is a factor of ones. The support of every body of a pattern is the product of the factors
of its atoms, summed over all variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.compiled import kernel
from loginfer.engine.native.rank.counter import EMPTY, HIGH, MULTIPLIER, add, entries, grown, new_counter
from loginfer.engine.native.rank.edges import stable_order
from loginfer.errors import LimitError

__all__ = ["Factor", "Sizes", "join", "pair_count", "total"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

# How many values each column can have, by its name.
Sizes = Mapping[int, int]

# Keys and counts stay below this, so that no sum of two overflows.
LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class Factor:
    """Rows of values with a count each, no row twice.

    Parameters
    ----------
    columns
        int32[n] for each variable and template, by its number; variables have the smaller numbers.
    count
        int64[n].
    """

    columns: dict[int, Ints]
    count: Longs

    def __len__(self) -> int:
        return len(self.count)

    def where(self, keep: npt.NDArray[np.bool_]) -> Factor:
        """Return the factor with these rows only."""
        return Factor({name: column[keep] for name, column in self.columns.items()}, self.count[keep])


@dataclass(frozen=True, slots=True)
class _Packed:
    """Rows of several columns as one int64 each, below `span`."""

    keys: Longs
    span: int
    # Undone from the last to the first: split off a digit, or look up what a rank stood for.
    steps: tuple[int | Longs, ...]

    def unpack(self, keys: Longs) -> list[Ints]:
        """Return the columns behind any keys of this packing."""
        columns: list[Ints] = []
        for step in reversed(self.steps):
            if isinstance(step, int):
                keys, digit = np.divmod(keys, step)
                columns.append(digit.astype(np.int32))
            else:
                keys = step[keys]
        return columns[::-1]

    def ranked(self) -> _Packed:
        """Return a packing whose span is the number of distinct rows."""
        distinct, ranks = np.unique(self.keys, return_inverse=True)
        return _Packed(ranks.ravel().astype(np.int64), max(len(distinct), 1), (*self.steps, distinct))


def _pack(columns: Sequence[Ints], sizes: Sequence[int], length: int) -> _Packed:
    packed = _Packed(np.zeros(length, dtype=np.int64), 1, ())
    for column, size in zip(columns, sizes, strict=True):
        if packed.span * size >= LARGEST:
            packed = packed.ranked()
        packed = _Packed(packed.keys * size + column, packed.span * size, (*packed.steps, size))
    return packed


def _pack_both(left: Factor, right: Factor, names: Sequence[int], sizes: Sizes) -> tuple[Longs, Longs, int]:
    """Return keys of the common columns that are equal where the rows are, and a bound on them."""
    columns = [np.concatenate([left.columns[n], right.columns[n]]) for n in names]
    packed = _pack(columns, [sizes[n] for n in names], len(left) + len(right))
    return packed.keys[: len(left)], packed.keys[len(left) :], packed.span


def pair_count(left: Factor, right: Factor, sizes: Sizes) -> float:
    """Return how many pairs of rows agree on the common columns."""
    names = [n for n in left.columns if n in right.columns]
    if not names:
        return float(len(left)) * len(right)
    a, b, span = _pack_both(left, right, names, sizes)
    if span > 4 * (len(a) + len(b)) + 2**20:
        ranks = np.unique(np.concatenate([a, b]), return_inverse=True)[1].ravel()
        a, b = ranks[: len(a)], ranks[len(a) :]
    size = int(max(a.max(initial=-1), b.max(initial=-1))) + 1
    return float(np.bincount(a, minlength=size).astype(np.float64) @ np.bincount(b, minlength=size))


def join(
    left: Factor,
    right: Factor,
    sizes: Sizes,
    *,
    drop: Sequence[int] = (),
    different: Sequence[tuple[int, int]] = (),
    within: Factor | None = None,
) -> Factor:
    """Multiply two factors and sum over some columns.

    Parameters
    ----------
    left, right
        The factors.
    sizes
        How many values each column can have.
    drop
        The columns to sum over.
    different
        Pairs of columns, the first of `left` and the second of `right`, that must differ in value.
    within
        Only rows whose values of this factor's variables occur in it; it may not have templates.

    Raises
    ------
    LimitError
        When the counts do not fit into 64 bits.
    """
    common = [n for n in left.columns if n in right.columns]
    left_key, right_key, span = _pack_both(left, right, common, sizes)
    left_order, right_order = _order(left_key, span), _order(right_key, span)
    left_names = [n for n in left.columns if n not in drop]
    right_names = [n for n in right.columns if n not in drop and n not in common]
    left_out, right_out = (
        _pack([f.columns[n] for n in names], [sizes[n] for n in names], len(f))
        for f, names in ((left, left_names), (right, right_names))
    )
    if left_out.span * right_out.span >= LARGEST:
        left_out, right_out = left_out.ranked(), right_out.ranked()
    left_filter, right_filter, allowed = _filter(left, right, within, sizes)
    keys, count, witnesses = _join(
        left_key[left_order],
        (left_out.keys * right_out.span)[left_order],
        left.count[left_order],
        _rows([left.columns[a] for a, _ in different], left_order),
        left_filter[left_order],
        right_key[right_order],
        right_out.keys[right_order],
        right.count[right_order],
        _rows([right.columns[b] for _, b in different], right_order),
        right_filter[right_order],
        allowed,
    )
    check_total(witnesses)
    left_keys, right_keys = np.divmod(keys, right_out.span)
    columns = dict(zip(left_names, left_out.unpack(left_keys), strict=True))
    columns |= dict(zip(right_names, right_out.unpack(right_keys), strict=True))
    return Factor(columns, count)


def total(factor: Factor, drop: Sequence[int], sizes: Sizes) -> Factor:
    """Sum a factor over some columns; rows with the count 0 vanish.

    Raises
    ------
    LimitError
        When the counts do not fit into 64 bits.
    """
    check_total(float(np.abs(factor.count.astype(np.float64)).sum()))
    names = [n for n in factor.columns if n not in drop]
    packed = _pack([factor.columns[n] for n in names], [sizes[n] for n in names], len(factor))
    order = _order(packed.keys, packed.span)
    keys = packed.keys[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else order
    count = np.add.reduceat(factor.count[order], first) if len(keys) else factor.count
    first, count = first[count != 0], count[count != 0]
    return Factor(dict(zip(names, packed.unpack(keys[first]), strict=True)), count)


def check_total(witnesses: float) -> None:
    """Raise `LimitError` if this many witnesses may be too many for an int64."""
    if witnesses >= LARGEST:
        raise LimitError(
            f"some bodies may have about {witnesses:.1e} witnesses, more than 64 bits can count",
            hint="use a pattern with fewer atoms, or one whose parts are connected",
        )


def _order(keys: Longs, span: int) -> Longs:
    if span < 4 * len(keys) + 2**16:
        return stable_order(keys.astype(np.int32), span)[1]
    return np.argsort(keys, kind="stable")


def _rows(columns: Sequence[Ints], order: Longs) -> npt.NDArray[np.int32]:
    rows = np.empty((len(columns), len(order)), dtype=np.int32)
    for i, column in enumerate(columns):
        rows[i] = column[order]
    return rows


def _filter(left: Factor, right: Factor, within: Factor | None, sizes: Sizes) -> tuple[Longs, Longs, Longs]:
    """Return keys whose sum for a pair of rows must be in the set returned with them (empty: any)."""
    left_keys, right_keys = np.zeros(len(left), dtype=np.int64), np.zeros(len(right), dtype=np.int64)
    if within is None:
        return left_keys, right_keys, np.empty(0, dtype=np.int64)
    names = list(within.columns)
    weight = 1
    for name in reversed(names):
        factor, keys = (left, left_keys) if name in left.columns else (right, right_keys)
        keys += factor.columns[name] * np.int64(weight)
        weight *= sizes[name]
    packed = _pack(list(within.columns.values()), [sizes[n] for n in names], len(within))
    return left_keys, right_keys, _key_set(packed.keys)


@kernel
def _key_set(keys: Longs) -> Longs:
    capacity = 16
    while capacity < 2 * len(keys):
        capacity *= 2
    slots = new_counter(capacity)
    for key in keys:
        add(slots, key, 1)
    return slots


@kernel
def _contains(slots: Longs, key: int) -> bool:
    mask = slots.size // 2 - 1
    place = np.int64((np.uint64(key) * MULTIPLIER) >> HIGH) & mask
    while slots[2 * place] != EMPTY:
        if slots[2 * place] == key:
            return True
        place = (place + 1) & mask
    return False


@kernel
def _join(
    left_key: Longs,
    left_out: Longs,
    left_count: Longs,
    left_different: npt.NDArray[np.int32],
    left_filter: Longs,
    right_key: Longs,
    right_out: Longs,
    right_count: Longs,
    right_different: npt.NDArray[np.int32],
    right_filter: Longs,
    allowed: Longs,
) -> tuple[Longs, Longs, float]:
    """Add left_count · right_count to the key left_out + right_out for all pairs with equal keys.

    Rows come sorted by key. Also returns the sum of all counts, roughly but without overflow.
    """
    slots = new_counter(1 << 12)
    used = 0
    witnesses = 0.0
    i = j = 0
    while i < len(left_key) and j < len(right_key):
        if left_key[i] < right_key[j]:
            i += 1
            continue
        if left_key[i] > right_key[j]:
            j += 1
            continue
        i_end, j_end = i, j
        while i_end < len(left_key) and left_key[i_end] == left_key[i]:
            i_end += 1
        while j_end < len(right_key) and right_key[j_end] == right_key[j]:
            j_end += 1
        for a in range(i, i_end):
            for b in range(j, j_end):
                if allowed.size and not _contains(allowed, left_filter[a] + right_filter[b]):
                    continue
                agree = False
                for k in range(len(left_different)):
                    agree |= left_different[k, a] == right_different[k, b]
                if agree:
                    continue
                witnesses += float(left_count[a]) * float(right_count[b])
                used += add(slots, left_out[a] + right_out[b], left_count[a] * right_count[b])
                if 4 * used >= slots.size:
                    slots = grown(slots)
        i, j = i_end, j_end
    keys, counts = entries(slots)
    return keys, counts, witnesses
