"""Candidate spaces: sets of triples that are never written down, and exactly uniform draws from them.

A space has an exact size, a membership test and indices: each index stands for a triple, so a random index
gives a random triple. It consists of rectangles, subjects × objects of one relation, and of listed triples.
A union of spaces is rewritten such that no triple has two indices: then its size is a sum, and a uniform
index gives a uniform triple. Some indices may not count, such as the diagonal of a product whose two values
must differ. Where rectangles overlap in too many ways to be rewritten as rectangles that do not, a sieve says
what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine import Projection
from loginfer.errors import LimitError
from loginfer.kg import Triples
from loginfer.kg.graph import Ids, Ints, Mask, TripleKeys, distinct_keys, member, merged_keys, places_of
from loginfer.kg.vocabulary import offsets_of

Bits: TypeAlias = npt.NDArray[np.uint64]
Accept = Callable[[Triples], Mask]

# Subjects and objects, both sorted and unique, neither empty.
Rectangle: TypeAlias = tuple[Ids, Ids]

# Rectangles that overlap in every way would need an entry for each of their triples; this many take 1 GB.
MOST_COLUMNS = 2**27
# So many entries are collected before repeated ones are dropped.
_WAITING = 2**22
# So many pairs of classes are compared in one go.
_COMPARED = 2**24
# Up to this many indices, all of them are put into a random order, unless few triples are wanted.
_FEW = 2**22
_MANY = 16
# Once half of a larger space has been looked at and no more than this is left, the rest is put into order.
_REST = 2**26
# At least and at most so many indices are looked at in one go.
_LEAST, _MOST = 2**10, 2**22
# A search ends after this many indices, or this many for each triple wanted, whichever is more: where one
# triple in a million is accepted, it would never end.
LIMIT, FOR_EACH = 200_000_000, 4


# -- draws -------------------------------------------------------------------------------------------


class TripleSet(Protocol):
    """A set of triples of which only membership is asked."""

    def contains(self, triples: Triples) -> Mask:
        """Return bool[n]: which of these triples are in it."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Triples that were drawn.

    Parameters
    ----------
    triples
        int32[n, 3], distinct, in random order.
    exhausted
        Whether fewer than asked were drawn because there are no more. Where fewer were drawn and this is
        false, the search was given up.
    examined
        How many indices the sampler has looked at so far.
    """

    triples: Triples
    exhausted: bool
    examined: int


class Sampler:
    """Draws from a space without repetition; each `take` goes on where the last one stopped.

    Indices are looked at in a random order, and those accepted are returned in that order. Whatever has been
    drawn, each remaining candidate is equally likely to be next.

    Parameters
    ----------
    space
        What to draw from.
    rng
        The randomness.
    accept
        Says which of some triples are candidates; called with many at a time.
    taken
        Triples that are no candidates, whatever `accept` says.
    limit
        After this many indices the search is given up.
    """

    def __init__(
        self,
        space: Space,
        rng: np.random.Generator,
        accept: Accept,
        *,
        taken: TripleSet | None = None,
        limit: int = LIMIT,
    ) -> None:
        self._space = space
        self._rng = rng
        self._accept = accept
        self._taken = taken
        self._limit = limit
        self._accepted = 0
        self._examined = 0
        self._ready = np.empty((0, 3), dtype=np.int32)  # accepted, not yet taken
        self._seen = np.empty(0, dtype=np.int64)  # sorted indices, while the rest is not in order
        self._rest: Ints | None = None  # indices that have not been seen, in random order

    def take(self, count: int) -> Draw:
        """Return up to `count` more triples."""
        left = len(self._ready) + self._space.capacity - self._examined
        triples = np.empty((max(min(count, left), 0), 3), dtype=np.int32)
        filled, candidates = 0, self._ready
        while True:
            part = candidates[: len(triples) - filled]
            triples[filled : filled + len(part)] = part
            filled += len(part)
            self._ready = candidates[len(part) :]
            if filled >= count or self._examined >= min(self._limit, self._space.capacity):
                break
            candidates = self._look(count - filled)
        exhausted = filled < count and self._examined == self._space.capacity
        return Draw(triples[:filled], exhausted, self._examined)

    def _look(self, missing: int) -> Triples:
        """Look at indices that should hold about as many candidates as are missing."""
        rate = (self._accepted + 1) / (self._examined + 1)
        count = int(missing / rate * 1.02) + 16
        indices = self._next(min(max(count, _LEAST), _MOST, self._limit - self._examined))
        triples = self._space.at(indices)
        self._examined += len(indices)
        good = ~self._space.leaves_out(indices, triples)
        if self._taken is not None:
            good &= ~self._taken.contains(triples)
        if not good.all():
            triples = triples[good]
        triples = triples[self._accept(triples)]
        self._accepted += len(triples)
        if self._rest is None:  # in the order of indices so far
            triples = triples[self._rng.permutation(len(triples))]
        return triples

    def _next(self, count: int) -> Ints:
        """Return indices that have not been seen: the next ones in order, or a random set, sorted."""
        size = self._space.capacity
        left = size - self._examined
        few = size <= _FEW and count > left // _MANY
        if self._rest is None and (few or (left <= _REST and left <= size // 2)):
            self._rest = self._in_order(size)
        if self._rest is not None:
            indices, self._rest = self._rest[:count], self._rest[count:]
            return indices
        indices = distinct_keys(self._rng.integers(0, size, size=count))
        indices = indices[~member(self._seen, indices)]
        self._seen = merged_keys(self._seen, indices)
        return indices

    def _in_order(self, size: int) -> Ints:
        unseen = np.ones(size, dtype=bool)
        unseen[self._seen] = False
        self._seen = self._seen[:0]
        return self._rng.permutation(np.flatnonzero(unseen))


def draw(space: Space, count: int, rng: np.random.Generator, accept: Accept, *, taken: TripleSet | None = None) -> Draw:
    """Draw once: up to `count` of the triples that are accepted, each set of that size equally likely."""
    limit = max(LIMIT, FOR_EACH * count)
    return Sampler(space, rng, accept, taken=taken, limit=limit).take(count)


# -- rectangles that overlap, rewritten as rectangles that do not ------------------------------------


@dataclass(frozen=True, slots=True)
class DisjointBlocks:
    """Disjoint rectangles of one relation, called blocks.

    Parameters
    ----------
    turned
        Whether rows are objects and columns subjects.
    rows
        int32, the rows of all blocks, block after block, ascending within each. No row is in two blocks.
    row_counts
        int64[b], how many rows each block has.
    columns
        int32, the columns of all blocks, block after block, ascending within each.
    column_counts
        int64[b], how many columns each block has.
    """

    turned: bool
    rows: Ids
    row_counts: Ints
    columns: Ids
    column_counts: Ints

    @classmethod
    def of(cls, *blocks: Rectangle) -> DisjointBlocks:
        """Return a few rectangles that do not overlap as blocks."""
        rows, columns = ([block[side] for block in blocks] for side in (0, 1))
        counts = [np.array([len(side) for side in sides], dtype=np.int64) for sides in (rows, columns)]
        return cls(False, np.concatenate(rows), counts[0], np.concatenate(columns), counts[1])


def disjoint(rectangles: Sequence[Rectangle]) -> DisjointBlocks | None:
    """Return the union of rectangles as blocks: rows that lie in the same rectangles share a block.

    There are never more blocks than rows, however many rectangles there are. A block's columns are the union
    of its rectangles' columns. Rows are subjects or objects, whatever takes less. None if there would be too
    many columns to write down.
    """
    if len(rectangles) == 1:
        return DisjointBlocks.of(rectangles[0])
    if len(rectangles) == 2:
        return _of_two(*rectangles)
    rows = min((_Classes(rectangles, turned) for turned in (False, True)), key=lambda side: side.cost)
    if rows.cost[0] > MOST_COLUMNS:
        return None
    columns = rows.columns()
    ids = rows.ids[np.argsort(rows.classes, kind="stable")]
    row_counts, column_counts = (np.bincount(of, minlength=rows.count) for of in (rows.classes, upper(columns)))
    return DisjointBlocks(rows.turned, ids, row_counts, lower(columns), column_counts)


def _of_two(first: Rectangle, second: Rectangle) -> DisjointBlocks:
    """Return the union of two rectangles: by far the most frequent case, done without classes."""
    common = np.intersect1d(first[0], second[0], assume_unique=True)
    blocks = [
        (np.setdiff1d(first[0], common, assume_unique=True), first[1]),
        (np.setdiff1d(second[0], common, assume_unique=True), second[1]),
        (common, distinct_keys(np.concatenate([first[1], second[1]]))),
    ]
    return DisjointBlocks.of(*((rows, columns) for rows, columns in blocks if len(rows)))


def merged(rectangles: list[Rectangle]) -> list[Rectangle]:
    """Return fewer rectangles with the same union: those that agree in one side become one."""
    if len(rectangles) == 1:
        return rectangles
    while True:
        before = len(rectangles)
        for same in (1, 0):
            groups: dict[bytes, list[Rectangle]] = {}
            for sides in rectangles:
                groups.setdefault(sides[same].tobytes(), []).append(sides)
            rectangles = []
            for group in groups.values():
                shared, other = group[0][same], group[0][1 - same]
                if len(group) > 1:
                    other = distinct_keys(np.concatenate([sides[1 - same] for sides in group]))
                rectangles.append((other, shared) if same == 1 else (shared, other))
        if len(rectangles) == before:
            return rectangles


class _Classes:
    """The rows of rectangles, divided into classes of those that lie in the same ones.

    Parameters
    ----------
    rectangles
        The rectangles.
    turned
        Whether rows are objects and columns subjects.
    """

    def __init__(self, rectangles: Sequence[Rectangle], turned: bool) -> None:
        self.turned = turned
        rows = [sides[turned] for sides in rectangles]
        self._columns = [sides[not turned] for sides in rectangles]
        self.ids, self.classes = _classes(rows)
        self.count = int(self.classes.max()) + 1
        # For each rectangle the classes that its rows make up.
        self._members = [distinct_keys(self.classes[np.searchsorted(self.ids, ids)]) for ids in rows]
        written = sum(len(m) * len(c) for m, c in zip(self._members, self._columns, strict=True))
        different = len(distinct_keys(np.concatenate(self._columns)))
        # How many columns will be written down at most, and how many classes there are.
        self.cost = min(written, self.count * different), self.count

    def columns(self) -> Ints:
        """Return the columns of all classes, each joined to its class, sorted."""
        merged_columns = np.empty(0, dtype=np.int64)
        waiting: list[Ints] = []
        for members, columns in zip(self._members, self._columns, strict=True):
            waiting.append(join(np.repeat(members, len(columns)), np.tile(columns, len(members))))
            if sum(map(len, waiting)) > len(merged_columns) + _WAITING:
                merged_columns, waiting = distinct_keys(np.concatenate([merged_columns, *waiting])), []
        return distinct_keys(np.concatenate([merged_columns, *waiting]))


def _classes(sets: Sequence[Ids]) -> tuple[Ids, Ints]:
    """Return the members of all sets, and numbers that tell apart those which lie in different sets."""
    ids = distinct_keys(np.concatenate(sets))
    classes = np.zeros(len(ids), dtype=np.int64)
    next_class = 1
    for members in sets:
        indices = np.searchsorted(ids, members)
        # Of each class, the part that lies in this set becomes a new one.
        divided, part = np.unique(classes[indices], return_inverse=True)
        classes[indices] = next_class + part
        next_class += len(divided)
    return ids, np.unique(classes, return_inverse=True)[1]


def join(first: npt.NDArray[np.integer[Any]], second: npt.NDArray[np.integer[Any]]) -> Ints:
    """Return int64: two ids in one number, ordered by the first, then the second."""
    joined = first.astype(np.int64)
    joined <<= 32
    joined |= second
    return joined


def upper(joined: Ints) -> Ids:
    """Return the first of two joined ids."""
    return (joined >> 32).astype(np.int32)


def lower(joined: Ints) -> Ids:
    """Return the second of two joined ids."""
    return (joined & 0xFFFFFFFF).astype(np.int32)


class Sieve:
    """The union of rectangles of one relation, as a part of subjects × objects.

    Each subject and each object has a bit for every rectangle that it lies in. A pair lies in one of them if
    its subject and its object have a bit in common.

    Parameters
    ----------
    rectangles
        Subjects and objects of each.
    """

    def __init__(self, rectangles: Sequence[Rectangle]) -> None:
        self.rectangles = tuple(rectangles)
        self.subjects, self._subject_bits = _bits([subjects for subjects, _ in rectangles])
        self.objects, self._object_bits = _bits([objects for _, objects in rectangles])

    def surrounds(self, subjects: Ids, objects: Ids) -> Mask:
        """Return bool[n]: which of these pairs are among subjects × objects."""
        return _among(self.subjects, subjects) & _among(self.objects, objects)

    def passes(self, subjects: Ids, objects: Ids) -> Mask:
        """Return bool[n]: which of these pairs, all among subjects × objects, lie in a rectangle."""
        left = np.searchsorted(self.subjects, subjects)
        right = np.searchsorted(self.objects, objects)
        is_inside = np.zeros(len(subjects), dtype=bool)
        for word in range(self._subject_bits.shape[1]):
            is_inside |= (self._subject_bits[left, word] & self._object_bits[right, word]) != 0
        return is_inside

    @cached_property
    def size(self) -> int:
        """How many pairs lie in a rectangle."""
        lefts, left_counts = np.unique(self._subject_bits, axis=0, return_counts=True)
        rights, right_counts = np.unique(self._object_bits, axis=0, return_counts=True)
        step = max(_COMPARED // len(rights), 1)
        total = 0
        for start in range(0, len(lefts), step):
            part = lefts[start : start + step]
            meet = np.zeros((len(part), len(rights)), dtype=bool)
            for word in range(part.shape[1]):
                meet |= (part[:, word, None] & rights[None, :, word]) != 0
            widths = (meet * right_counts).sum(axis=1)
            total += int(widths @ left_counts[start : start + step])
        return total


def _among(sorted_ids: Ids, ids: Ids) -> Mask:
    indices = np.searchsorted(sorted_ids, ids)
    indices[indices == len(sorted_ids)] = 0
    return np.asarray(sorted_ids[indices] == ids)


def _bits(sets: Sequence[Ids]) -> tuple[Ids, Bits]:
    """Return the members of all sets, and for each member one bit for each set, in words of 64."""
    ids = distinct_keys(np.concatenate(sets))
    bits = np.zeros((len(ids), (len(sets) + 63) // 64), dtype=np.uint64)
    for number, members in enumerate(sets):
        bits[np.searchsorted(ids, members), number // 64] |= np.uint64(1 << (number % 64))
    return ids, bits


# -- spaces ------------------------------------------------------------------------------------------


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
        int64, sorted: values on the diagonal that do not count, x with its relation in the upper 32 bits.
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
    def _index_starts(self) -> Ints:
        sizes = np.diff(self.row_starts) * np.diff(self.column_starts)
        if sum(sizes.tolist()) + len(self.triples) >= 2**63:
            raise LimitError("a space of candidates has more than 2^63 triples")
        return offsets_of(sizes)

    @property
    def capacity(self) -> int:
        """How many indices there are; those that `leaves_out` names hold no triple of the space."""
        return int(self._index_starts[-1]) + len(self.triples)

    @property
    def size(self) -> int:
        """The exact number of triples. It takes a while to count what passes a sieve; draws do not do it."""
        around = sum(len(sieve.subjects) * len(sieve.objects) - sieve.size for sieve in self.sieves.values())
        return self.capacity - len(self.holes) - around

    def at(self, indices: Ints) -> Triples:
        """Return int32[n, 3]: the triples at these indices, which must be below `capacity`."""
        triples = np.empty((len(indices), 3), dtype=np.int32)
        in_blocks = indices < self._index_starts[-1]
        all_in_blocks = bool(in_blocks.all())
        block_indices = indices if all_in_blocks else indices[in_blocks]
        block = np.searchsorted(self._index_starts, block_indices, side="right") - 1
        local = block_indices - self._index_starts[block]
        width = np.diff(self.column_starts)[block]
        row = local // width if len(local) else local
        column = local - row * width
        rows = self.rows[self.row_starts[block] + row]
        columns = lower(self.columns[self.column_starts[block] + column])
        turned = self.turned[block]
        target = slice(None) if all_in_blocks else in_blocks
        triples[target, 0] = np.where(turned, columns, rows)
        triples[target, 1] = self.relation[block]
        triples[target, 2] = np.where(turned, rows, columns)
        if not all_in_blocks:
            triples[~in_blocks] = self.triples[indices[~in_blocks] - self._index_starts[-1]]
        return triples

    def contains(self, triples: Triples) -> Mask:
        """Return bool[n]: which of these triples are in the space."""
        if not len(triples):
            return np.zeros(0, dtype=bool)
        is_inside = self._in_blocks(triples)
        rest = np.flatnonzero(is_inside)
        is_inside[rest] = ~self._in_holes(triples[rest])
        if len(self.triples):
            keys, packed = self._listed
            sizes = (keys.entities, keys.relations, keys.entities)
            is_inside |= member(packed, keys.pack(triples)) & ((triples >= 0) & (triples < sizes)).all(axis=1)
        return is_inside

    def leaves_out(self, indices: Ints, triples: Triples) -> Mask:
        """Return bool[n]: which of these indices do not count.

        Parameters
        ----------
        indices
            int64[n].
        triples
            What is there, `at(indices)`.
        """
        if not len(self.holes) and not self.sieves:
            return np.zeros(len(indices), dtype=bool)
        return np.asarray(self._in_holes(triples) & (indices < self._index_starts[-1]))

    def _in_holes(self, triples: Triples) -> Mask:
        """Return which of these triples, all in blocks, holes and sieves leave out."""
        is_left_out = np.zeros(len(triples), dtype=bool)
        if len(self.holes):
            diagonal = np.flatnonzero(triples[:, 0] == triples[:, 2])
            is_left_out[diagonal] = places_of(self.holes, join(triples[diagonal, 1], triples[diagonal, 0]))[0]
        for relation, sieve in self.sieves.items():
            rows = np.flatnonzero(triples[:, 1] == relation)
            rows = rows[sieve.surrounds(triples[rows, 0], triples[rows, 2])]
            is_left_out[rows] |= ~sieve.passes(triples[rows, 0], triples[rows, 2])
        return is_left_out

    def _in_blocks(self, triples: Triples) -> Mask:
        if not len(self.relation):
            return np.zeros(len(triples), dtype=bool)
        keys, blocks, turned = self._rows
        in_range = (triples[:, 1] >= 0) & (triples[:, 1] < len(turned))
        is_turned = np.zeros(len(triples), dtype=bool)
        is_turned[in_range] = turned[triples[in_range, 1]]
        row = np.where(is_turned, triples[:, 2], triples[:, 0])
        column = np.where(is_turned, triples[:, 0], triples[:, 2])
        is_inside, index = places_of(keys, join(triples[:, 1], row))
        is_inside &= in_range
        rest = np.flatnonzero(is_inside)
        is_inside[rest] = places_of(self.columns, join(blocks[index[rest]], column[rest]))[0]
        return is_inside

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
    def _listed(self) -> tuple[TripleKeys, Ints]:
        """Keys that are wide enough for the listed triples, and these packed."""
        keys = _keys_of(self.triples)
        return keys, keys.pack(self.triples)

    def __repr__(self) -> str:
        return f"Space({self.capacity:,} places, {len(self.relation):,} blocks, {len(self.triples):,} listed)"


def _space(
    grids: Sequence[tuple[int, DisjointBlocks]],
    holes: Ints | None = None,
    triples: Triples | None = None,
    sieves: Mapping[int, Sieve] | None = None,
) -> Space:
    """Return the space of blocks, by relation, and of listed triples."""
    blocks = [len(grid.row_counts) for _, grid in grids]
    column_starts = offsets_of(_concatenated([grid.column_counts for _, grid in grids], np.int64))
    columns = _concatenated([grid.columns for _, grid in grids], np.int32)
    return Space(
        relation=np.repeat(np.array([relation for relation, _ in grids], dtype=np.int32), blocks),
        turned=np.repeat(np.array([grid.turned for _, grid in grids], dtype=bool), blocks),
        rows=_concatenated([grid.rows for _, grid in grids], np.int32),
        row_starts=offsets_of(_concatenated([grid.row_counts for _, grid in grids], np.int64)),
        columns=join(np.repeat(np.arange(len(column_starts) - 1), np.diff(column_starts)), columns),
        column_starts=column_starts,
        holes=np.empty(0, dtype=np.int64) if holes is None else holes,
        triples=np.empty((0, 3), dtype=np.int32) if triples is None else triples,
        sieves=sieves or {},
    )


def rectangle(subjects: npt.ArrayLike, relation: int, objects: npt.ArrayLike, *, unequal: bool = False) -> Space:
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
    rows = distinct_keys(np.array(subjects, dtype=np.int32))
    columns = distinct_keys(np.array(objects, dtype=np.int32))
    if not len(rows) or not len(columns):
        return _space([])
    holes = np.intersect1d(rows, columns, assume_unique=True) if unequal else rows[:0]
    joined = join(np.full(len(holes), relation, dtype=np.int32), holes)
    return _space([(relation, DisjointBlocks.of((rows, columns)))], joined)


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
    return _space([], triples=triples)


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
    """Return the union of spaces: no triple has two indices in it.

    Rectangles become disjoint ones, as long as those can be written down.
    """
    parts = list(spaces)
    if len(parts) == 1:
        return parts[0]
    blocks = _disjoint_blocks(parts)
    triples = np.vstack([np.empty((0, 3), dtype=np.int32), *(part.triples for part in parts)])
    listed_triples = listed(triples, _keys_of(triples)).triples
    return replace(blocks, holes=_common_holes(parts), triples=listed_triples[~blocks.contains(listed_triples)])


def _common_holes(spaces: Sequence[Space]) -> Ints:
    """Return the holes of spaces that no other one fills."""
    holes: Ints = distinct_keys(_concatenated([space.holes for space in spaces], np.int64))
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
        for block, relation in enumerate(space.relation.tolist()):
            sieve = space.sieves.get(relation)
            rectangles = sieve.rectangles if sieve else [_sides(space, block)]
            by_relation.setdefault(relation, []).extend(rectangles)
    grids: list[tuple[int, DisjointBlocks]] = []
    sieves: dict[int, Sieve] = {}
    for relation in sorted(by_relation):
        rectangles = merged(by_relation[relation])
        grid = disjoint(rectangles)
        if grid is None:
            sieves[relation] = sieve = Sieve(rectangles)
            grid = DisjointBlocks.of((sieve.subjects, sieve.objects))
        grids.append((relation, grid))
    return _space(grids, sieves=sieves)


def _sides(space: Space, block: int) -> Rectangle:
    """Return the subjects and the objects of a block."""
    rows = space.rows[space.row_starts[block] : space.row_starts[block + 1]]
    columns = space.columns[space.column_starts[block] : space.column_starts[block + 1]]
    ids = lower(columns)
    return (ids, rows) if space.turned[block] else (rows, ids)


# -- arrays -----------------------------------------------------------------------------------------


def _concatenated(arrays: Sequence[npt.NDArray[Any]], dtype: type) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=dtype), *arrays])


def _keys_of(triples: Triples) -> TripleKeys:
    """Return keys that are wide enough for some triples."""
    if not len(triples):
        return TripleKeys(1, 1)
    return TripleKeys(int(triples[:, ::2].max()) + 1, int(triples[:, 1].max()) + 1)
