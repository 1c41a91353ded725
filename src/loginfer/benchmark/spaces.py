"""Candidate spaces: sets of triples that are never written down.

A space is a value with an exact size, a membership test and places: each place is a triple, and a random
place is a random triple. It is made of rectangles, subjects × objects of one relation, and of listed
triples. A union of spaces is brought into a form in which no triple has two places, so that its size is a
sum and a uniform place a uniform triple. Some places may not count, such as the diagonal of a product whose
two values must differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import places_of
from loginfer.benchmark.overlaps import (
    Grid,
    Rectangle,
    disjoint,
    distinct,
    join,
    lower,
    merged,
    upper,
)
from loginfer.benchmark.sampler import Draw, Sampler, draw
from loginfer.benchmark.sieves import Sieve
from loginfer.engine import Projection
from loginfer.errors import LimitError
from loginfer.kg import Triples
from loginfer.kg.triples import TripleKeys, distinct_keys

__all__ = ["Draw", "Sampler", "Space", "draw", "listed", "of_projection", "rectangle", "union"]

Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Space:
    """A set of triples: disjoint blocks, and listed triples outside of them.

    A block is a rectangle. In the normal form of several rectangles of one relation a row lies in one block
    only, where rows are either its subjects or, where that is shorter to write, its objects.

    Parameters
    ----------
    relation
        int32[b], the relation of each block, ascending.
    turned
        bool[b], whether the rows of a block are objects and its columns subjects.
    rows
        int32, the rows of all blocks, block after block, ascending within each.
    row_starts
        int64[b + 1], where the rows of each block start.
    columns
        int64, sorted: the columns of all blocks, each with its block in the upper 32 bits.
    column_starts
        int64[b + 1], where the columns of each block start.
    holes
        int64, sorted: places on the diagonal that do not count, x with its relation in the upper 32 bits.
    triples
        int32[n, 3], sorted and unique: triples outside the blocks.
    sieves
        By relation: where rectangles overlap in too many ways, one block around them all, of which only what
        passes the sieve counts.
    """

    relation: Ids
    turned: Mask
    rows: Ids
    row_starts: Ints
    columns: Ints
    column_starts: Ints
    holes: Ints
    triples: Triples
    sieves: Mapping[int, Sieve] = field(default_factory=dict)

    @cached_property
    def _place_starts(self) -> Ints:
        sizes = np.diff(self.row_starts) * np.diff(self.column_starts)
        if sum(sizes.tolist()) + len(self.triples) >= 2**63:
            raise LimitError("a space of candidates has more than 2^63 triples")
        starts = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=starts[1:])
        return starts

    @property
    def places(self) -> int:
        """How many places there are; what `leaves_out` says among them holds no triple of the space."""
        return int(self._place_starts[-1]) + len(self.triples)

    @property
    def size(self) -> int:
        """The exact number of triples. It takes a while to count what passes a sieve; draws do not do it."""
        around = sum(len(sieve.subjects) * len(sieve.objects) - sieve.size for sieve in self.sieves.values())
        return self.places - len(self.holes) - around

    def at(self, places: Ints) -> Triples:
        """Return int32[n, 3]: the triples at these places, which must be below `places`."""
        found = np.empty((len(places), 3), dtype=np.int32)
        in_blocks = places < self._place_starts[-1]
        every = bool(in_blocks.all())
        wanted = places if every else places[in_blocks]
        block = np.searchsorted(self._place_starts, wanted, side="right") - 1
        local = wanted - self._place_starts[block]
        width = np.diff(self.column_starts)[block]
        row = local // width if len(local) else local
        column = local - row * width
        rows = self.rows[self.row_starts[block] + row]
        columns = lower(self.columns[self.column_starts[block] + column])
        turned = self.turned[block]
        target = slice(None) if every else in_blocks
        found[target, 0] = np.where(turned, columns, rows)
        found[target, 1] = self.relation[block]
        found[target, 2] = np.where(turned, rows, columns)
        if not every:
            found[~in_blocks] = self.triples[places[~in_blocks] - self._place_starts[-1]]
        return found

    def contains(self, triples: Triples) -> Mask:
        """Return bool[n]: which of these triples are in the space."""
        if not len(triples):
            return np.zeros(0, dtype=bool)
        found = self._in_blocks(triples)
        rest = np.flatnonzero(found)
        found[rest] = ~self._in_holes(triples[rest])
        if len(self.triples):
            found |= self._listed.contains(triples)
        return found

    def leaves_out(self, places: Ints, triples: Triples) -> Mask:
        """Return bool[n]: which of these places do not count.

        Parameters
        ----------
        places
            int64[n].
        triples
            What is there, `at(places)`.
        """
        if not len(self.holes) and not self.sieves:
            return np.zeros(len(places), dtype=bool)
        return np.asarray(self._in_holes(triples) & (places < self._place_starts[-1]))

    def _in_holes(self, triples: Triples) -> Mask:
        """Return which of these triples, all in blocks, those leave out."""
        found = np.zeros(len(triples), dtype=bool)
        if len(self.holes):
            diagonal = np.flatnonzero(triples[:, 0] == triples[:, 2])
            found[diagonal] = places_of(self.holes, join(triples[diagonal, 1], triples[diagonal, 0]))[0]
        for relation, sieve in self.sieves.items():
            own = np.flatnonzero(triples[:, 1] == relation)
            own = own[sieve.surrounds(triples[own, 0], triples[own, 2])]
            found[own] |= ~sieve.passes(triples[own, 0], triples[own, 2])
        return found

    def _in_blocks(self, triples: Triples) -> Mask:
        if not len(self.relation):
            return np.zeros(len(triples), dtype=bool)
        keys, blocks, turned = self._rows
        in_range = (triples[:, 1] >= 0) & (triples[:, 1] < len(turned))
        is_turned = np.zeros(len(triples), dtype=bool)
        is_turned[in_range] = turned[triples[in_range, 1]]
        row = np.where(is_turned, triples[:, 2], triples[:, 0])
        column = np.where(is_turned, triples[:, 0], triples[:, 2])
        found, place = places_of(keys, join(triples[:, 1], row))
        found &= in_range
        rest = np.flatnonzero(found)
        found[rest] = places_of(self.columns, join(blocks[place[rest]], column[rest]))[0]
        return found

    @cached_property
    def _rows(self) -> tuple[Ints, Ints, Mask]:
        """Rows with their relation in the upper bits, sorted; their blocks; which relations are turned."""
        block = np.repeat(np.arange(len(self.relation)), np.diff(self.row_starts))
        keys = join(self.relation[block], self.rows)
        order = np.argsort(keys, kind="stable")
        turned = np.zeros(int(self.relation.max()) + 1, dtype=bool)
        turned[self.relation] = self.turned
        return keys[order], block[order], turned

    @cached_property
    def _listed(self) -> _Listed:
        return _Listed(self.triples)

    def __repr__(self) -> str:
        return f"Space({self.places:,} places, {len(self.relation):,} blocks, {len(self.triples):,} listed)"


class _Listed:
    """Membership in a sorted list of triples."""

    def __init__(self, triples: Triples) -> None:
        self._sizes = tuple(int(column.max()) + 1 for column in triples.T)
        self._keys = TripleKeys(max(self._sizes[0], self._sizes[2]), self._sizes[1])
        self._packed = self._keys.pack(triples)

    def contains(self, triples: Triples) -> Mask:
        found, _ = places_of(self._packed, self._keys.pack(triples))
        for column, size in enumerate(self._sizes):
            found &= (triples[:, column] >= 0) & (triples[:, column] < size)
        return found


def rectangle(
    subjects: npt.ArrayLike, relation: int, objects: npt.ArrayLike, *, unequal: bool = False
) -> Space:
    """Return the triples (s, R, o) with s among the subjects and o among the objects.

    Parameters
    ----------
    subjects, objects
        Ids, in any order.
    relation
        The relation's id.
    unequal
        Whether s and o must differ.
    """
    rows = distinct(np.array(subjects, dtype=np.int32))
    columns = distinct(np.array(objects, dtype=np.int32))
    blocks = min(len(rows), len(columns), 1)
    rows, columns = rows[: blocks * len(rows)], columns[: blocks * len(columns)]
    holes = np.intersect1d(rows, columns, assume_unique=True) if unequal else rows[:0]
    return Space(
        relation=np.full(blocks, relation, dtype=np.int32),
        turned=np.zeros(blocks, dtype=bool),
        rows=rows,
        row_starts=np.array([0, len(rows)][: blocks + 1], dtype=np.int64),
        columns=columns.astype(np.int64),
        column_starts=np.array([0, len(columns)][: blocks + 1], dtype=np.int64),
        holes=join(np.full(len(holes), relation, dtype=np.int32), holes),
        triples=np.empty((0, 3), dtype=np.int32),
    )


def listed(triples: Triples, keys: TripleKeys) -> Space:
    """Return a space of triples that are written down.

    Parameters
    ----------
    triples
        int32[n, 3], in any order; repeated ones count once.
    keys
        The graph's keys.
    """
    packed = keys.pack(triples)
    if not (packed[1:] > packed[:-1]).all():
        triples = keys.unpack(distinct_keys(packed))
    nothing, start = np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    ids = np.empty(0, dtype=np.int32)
    return Space(ids, np.empty(0, dtype=bool), ids, start, nothing, start, nothing, triples)


def of_projection(projection: Projection, relation: int) -> Space:
    """Return the triples of a relation whose subjects and objects an engine has found.

    Parameters
    ----------
    projection
        Of a rule: a product of two sets, or pairs side by side, sorted.
    relation
        The relation of the rule's head.
    """
    if projection.product:
        return rectangle(projection.left, relation, projection.right, unequal=projection.unequal)
    triples = np.empty((len(projection.left), 3), dtype=np.int32)
    triples[:, 0], triples[:, 1], triples[:, 2] = projection.left, relation, projection.right
    return listed(triples, _keys_of(triples))


# -- unions -----------------------------------------------------------------------------------------


def union(spaces: Iterable[Space]) -> Space:
    """Return the union of spaces: no triple has two places in it.

    Rectangles become disjoint ones, as long as those can be written down.
    """
    parts = list(spaces)
    if len(parts) == 1:
        return parts[0]
    blocks = _disjoint_blocks(parts)
    triples = np.vstack([np.empty((0, 3), dtype=np.int32), *(part.triples for part in parts)])
    whole = listed(triples, _keys_of(triples)).triples
    outside = whole[~blocks.contains(whole)]
    return Space(
        blocks.relation,
        blocks.turned,
        blocks.rows,
        blocks.row_starts,
        blocks.columns,
        blocks.column_starts,
        _common_holes(parts),
        outside,
        blocks.sieves,
    )


def _common_holes(spaces: Sequence[Space]) -> Ints:
    """Return the holes of spaces that no other one fills."""
    holes: Ints = distinct(_concatenated([space.holes for space in spaces], np.int64))
    if not len(holes):
        return holes
    diagonal = lower(holes)
    triples = np.column_stack([diagonal, upper(holes), diagonal])
    filled = np.zeros(len(holes), dtype=bool)
    for space in spaces:
        rest = np.flatnonzero(~filled)
        filled[rest] = space.contains(triples[rest])
    return np.asarray(holes[~filled])


def _disjoint_blocks(spaces: Sequence[Space]) -> Space:
    """Return the blocks of all spaces in normal form, without holes and listed triples."""
    by_relation: dict[int, list[Rectangle]] = {}
    for space in spaces:
        for place, relation in enumerate(space.relation.tolist()):
            known = space.sieves.get(relation)
            rectangles = known.rectangles if known else [_sides(space, place)]
            by_relation.setdefault(relation, []).extend(rectangles)
    grids: list[tuple[int, Grid]] = []
    sieves: dict[int, Sieve] = {}
    for relation in sorted(by_relation):
        rectangles = merged(by_relation[relation])
        grid = disjoint(rectangles)
        if grid is None:
            sieves[relation] = sieve = Sieve(rectangles)
            grid = Grid.around(sieve.subjects, sieve.objects)
        grids.append((relation, grid))
    relations = [np.full(len(grid.row_counts), relation, dtype=np.int32) for relation, grid in grids]
    turned = [np.full(len(grid.row_counts), grid.turned, dtype=bool) for _, grid in grids]
    row_starts = _starts([grid.row_counts for _, grid in grids])
    column_counts = [grid.column_counts for _, grid in grids]
    column_starts = _starts(column_counts)
    columns = _concatenated([grid.columns for _, grid in grids], np.int32)
    block = np.repeat(np.arange(len(row_starts) - 1), np.diff(column_starts))
    return Space(
        _concatenated(relations, np.int32),
        _concatenated(turned, np.bool_),
        _concatenated([grid.rows for _, grid in grids], np.int32),
        row_starts,
        join(block, columns),
        column_starts,
        np.empty(0, dtype=np.int64),
        np.empty((0, 3), dtype=np.int32),
        sieves,
    )


def _sides(space: Space, block: int) -> Rectangle:
    """Return the subjects and the objects of a block."""
    rows = space.rows[space.row_starts[block] : space.row_starts[block + 1]]
    columns = space.columns[space.column_starts[block] : space.column_starts[block + 1]]
    names = lower(columns)
    return (names, rows) if space.turned[block] else (rows, names)


# -- arrays -----------------------------------------------------------------------------------------


def _starts(counts: Sequence[Ints]) -> Ints:
    every = _concatenated(counts, np.int64)
    starts = np.zeros(len(every) + 1, dtype=np.int64)
    np.cumsum(every, out=starts[1:])
    return starts


def _concatenated(arrays: Sequence[npt.NDArray[Any]], dtype: type) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=dtype), *arrays])


def _keys_of(triples: Triples) -> TripleKeys:
    """Return keys that are wide enough for some triples."""
    if not len(triples):
        return TripleKeys(1, 1)
    return TripleKeys(int(triples[:, ::2].max()) + 1, int(triples[:, 1].max()) + 1)
