"""Where the candidates of (rule, sub-rule) pairs come from: pools that propose random ones.

Both pools keep one promise: whatever has been taken, what they propose next for a pair is equally likely to
be any of the pair's remaining candidates, and does not depend on what they propose for others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import member, places_of
from loginfer.benchmark.negatives.query_bases import Base
from loginfer.benchmark.negatives.query_groups import Facts, Group, members
from loginfer.engine import Engine
from loginfer.kg import Triples
from loginfer.kg.triples import TripleKeys

__all__ = ["DrawnPool", "ListedPool", "Source", "Taken"]

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# In a search, so many draws at most are made at a time for a group of sub-rules.
_MOST = 2**20
# For a pair, it is given up after so many draws, if fewer than one in so many was a candidate.
_EFFORT = 2**14
_RARE = 1000


@dataclass(frozen=True, slots=True)
class Source:
    """A group of sub-rules with its base; its pairs are numbered from `first` on, as its masks are."""

    group: Group
    base: Base
    first: int


class Taken:
    """The triples that have been taken.

    Parameters
    ----------
    listed
        Sorted keys of triples for which that is looked up often.
    """

    def __init__(self, listed: Keys) -> None:
        self.keys = listed
        self.marks = np.zeros(len(listed), dtype=bool)
        self._others = np.empty(0, dtype=np.int64)

    def add(self, keys: Keys) -> None:
        """Take triples, which must not be taken yet."""
        known, place = places_of(self.keys, keys)
        self.marks[place[known]] = True
        self._others = np.sort(np.concatenate([self._others, keys[~known]]), kind="stable")

    def contains(self, keys: Keys) -> Mask:
        """Return bool[n]: which triples are taken."""
        found, place = places_of(self.keys, keys)
        found[found] = self.marks[place[found]]
        return np.asarray(found | member(self._others, keys))


class ListedPool:
    """Pairs whose candidates are written down.

    The candidates of a group are stored once, in segments of triples that the same sub-rules conclude. Within
    a segment they are in random order, the same for all segments. So train's part of a pair's candidates,
    the first in that order, is a range of each of the pair's segments; valid's and test's parts are the next.

    Parameters
    ----------
    pairs
        How many pairs there are; those of other pools have no candidates here.
    facts
        About K.
    taken
        What has been taken; its listed keys are those of this pool.
    order
        int64, places of the listed keys in random order.
    cuts
        Says where a list of a given size is cut into the three parts.
    """

    def __init__(
        self,
        pairs: int,
        facts: Facts,
        taken: Taken,
        order: Ints,
        cuts: Callable[[int], tuple[int, int]],
    ) -> None:
        self._pairs = pairs
        self._facts = facts
        self._taken = taken
        self._order = order
        self._rank = np.empty_like(order)
        self._rank[order] = np.arange(len(order))
        self._cuts = cuts
        self._size = 0
        self._segments: list[Ints] = []
        self._entries: list[tuple[Ints, Ints]] = []

    def add(self, engine: Engine, sources: Sequence[Source], places: Ints) -> None:
        """Add the pairs of groups of one rule that have the same base.

        Parameters
        ----------
        engine
            Over K.
        sources
            The groups, fewest atoms first.
        places
            The base's triples that may be negative, as places in the listed keys.
        """
        ranks = np.sort(self._rank[places])
        triples = engine.graph.keys.unpack(self._taken.keys[self._order[ranks]])
        found = members(engine, self._facts, [source.group for source in sources], triples)
        for source, known in zip(sources, found, strict=True):
            segments = [ranks[known.every]]
            concluded = [np.ones(len(source.group.masks), dtype=bool)]
            kind = _kinds(known.by)
            by_kind = np.argsort(kind, kind="stable")
            for same in np.split(by_kind, np.cumsum(np.bincount(kind))[:-1]):
                if len(same):
                    segments.append(ranks[known.loose[same]])
                    concluded.append(known.by[same[0]])
            self._add_segments(source.first, segments, np.array(concluded))

    def _add_segments(self, first: int, segments: list[Ints], concluded: Mask) -> None:
        """Store the segments of a group; `concluded` says which of them each of its pairs has."""
        begins = self._size + _starts(np.array([len(segment) for segment in segments]))
        self._segments += segments
        self._size = int(begins[-1])
        kind = _kinds(concluded.T)
        for number in range(int(kind.max()) + 1):
            pairs = np.flatnonzero(kind == number)
            own = np.flatnonzero(concluded[:, pairs[0]]).tolist()
            every = np.sort(np.concatenate([segments[i] for i in own])) if own else segments[0][:0]
            cuts = _parts(self._cuts, len(every))
            last = np.array([every[cut - 1] if cut else -1 for cut in cuts])
            bounds = np.array([begins[i] + np.searchsorted(segments[i], last, side="right") for i in own])
            if len(every):
                self._entries.append((first + pairs, bounds))

    def finish(self) -> Ints:
        """Say that all groups have been added; return how many candidates each pair has."""
        nothing = np.empty(0, dtype=np.int64)
        self._members = self._order[np.concatenate([nothing, *self._segments])]
        pairs = np.concatenate([nothing, *(np.repeat(pairs, len(own)) for pairs, own in self._entries)])
        bounds = [np.empty((0, 4), dtype=np.int64)]
        bounds += [np.tile(own, (len(pairs), 1)) for pairs, own in self._entries]
        order = np.argsort(pairs, kind="stable")
        self._bounds = np.concatenate(bounds)[order]
        self._first_entry = _starts(np.bincount(pairs, minlength=self._pairs))
        self._segments, self._entries = [], []
        self._at_first = self._members, self._bounds
        sizes = self._bounds[:, 3] - self._bounds[:, 0]
        return np.diff(_starts(sizes)[self._first_entry])

    def witnessed(self, keys: Keys) -> Mask:
        """Return bool[pairs]: which pairs have one of these triples among their candidates, taken or not."""
        members, bounds = self._at_first
        known, place = places_of(self._taken.keys, keys)
        marks = np.zeros(len(self._taken.keys), dtype=bool)
        marks[place[known]] = True
        before = _starts(marks[members])
        return np.diff(_starts(before[bounds[:, 3]] - before[bounds[:, 0]])[self._first_entry]) > 0

    def refresh(self, part: int) -> Ints:
        """Forget what has been taken meanwhile; return how many candidates each pair has left in a part."""
        left = ~self._taken.marks[self._members]
        if not left.all():
            self._bounds = _starts(left)[self._bounds]
            self._members = self._members[left]
        self._part = part
        self._entry_starts = _starts(self._bounds[:, part + 1] - self._bounds[:, part])
        return np.diff(self._entry_starts[self._first_entry])

    def propose(self, need: Ints, left: Ints, rng: np.random.Generator) -> tuple[Ints, Keys]:
        """Propose up to as many candidates as each pair needs.

        Parameters
        ----------
        need
            int64[pairs].
        left
            What `refresh` returned.
        rng
            The randomness.

        Returns
        -------
        Pairs and keys, side by side; a pair may be given a candidate twice.
        """
        many = np.flatnonzero((need > 0) & (left > 2 * need))
        pair = np.repeat(many, need[many])
        rank = rng.integers(0, left[pair]) if len(pair) else pair
        few = np.flatnonzero((need > 0) & (left > 0) & (left <= 2 * need))
        if len(few):
            all_pairs, all_ranks = _shuffled(few, left[few], need[few], rng)
            pair, rank = np.concatenate([pair, all_pairs]), np.concatenate([rank, all_ranks])
        position = self._entry_starts[self._first_entry[pair]] + rank
        entry = np.searchsorted(self._entry_starts, position, side="right") - 1
        member = self._bounds[entry, self._part] + position - self._entry_starts[entry]
        return pair, self._taken.keys[self._members[member]]


class DrawnPool:
    """Pairs whose candidates are drawn from a base that is too large to look at.

    Draws for a pair are independent and uniform over the base; what its sub-rule does not conclude, what is
    true, and what is taken is dropped. So the next that stays is a uniform one of the remaining candidates.

    Parameters
    ----------
    engine
        Over K.
    pairs
        How many pairs there are; those of other pools have no candidates here.
    facts
        About K.
    negative
        Says which triples are truly negative.
    taken
        What has been taken.
    """

    def __init__(
        self, engine: Engine, pairs: int, facts: Facts, negative: Callable[[Triples], Mask], taken: Taken
    ) -> None:
        self._engine = engine
        self._facts = facts
        self._negative = negative
        self._taken = taken
        self._sources: list[Source] = []
        self._tried = np.zeros(0)
        self._hits = np.zeros(0)
        self.open = np.zeros(pairs, dtype=bool)
        self.found = np.zeros(pairs, dtype=np.int64)
        self._queue = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def add(self, sources: Sequence[Source]) -> None:
        """Add the pairs of groups."""
        self._sources += sources
        self._tried = np.ones(len(self._sources))
        self._hits = np.array([source.base.rate for source in self._sources])
        for source in sources:
            self.open[source.first : source.first + len(source.group.masks)] = True

    def propose(self, need: Ints, ahead: int, rng: np.random.Generator) -> tuple[Ints, Keys]:
        """Propose as many candidates as each pair needs, or fewer where the search for more was given up.

        Parameters
        ----------
        need
            int64[pairs].
        ahead
            How many a pair will probably need before long; if a search must be made, then for these.
        rng
            The randomness.
        """
        need = np.where(self.open, need, 0)
        if not need.any():
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._drop_taken()
        before, tried = self.found.copy(), np.zeros_like(need)
        times = 1
        while True:
            lack = need - np.bincount(self._queue[0], minlength=len(need))
            self.open &= (lack <= 0) | (tried < _EFFORT) | (_RARE * (self.found - before) >= tried)
            lack[~self.open] = 0
            if (lack <= 0).all():
                return self._from_queue(need)
            tried += self._search(np.where(lack > 0, np.maximum(lack, ahead), 0), times, rng)
            times *= 2  # a pair may have fewer candidates than its group has on average

    def _drop_taken(self) -> None:
        pairs, keys = self._queue
        left = ~self._taken.contains(keys)
        self._queue = pairs[left], keys[left]

    def _search(self, lack: Ints, times: int, rng: np.random.Generator) -> Ints:
        """Draw for pairs that lack candidates, and queue what is found.

        Parameters
        ----------
        lack
            int64[pairs], how many each lacks.
        times
            So many times as many draws are made as should do.
        rng
            The randomness.

        Returns
        -------
        int64[pairs], how many draws were made for each.
        """
        found_pairs, found_triples, numbers = [], [], []
        tried = np.zeros_like(lack)
        for number, source in enumerate(self._sources):
            own = lack[source.first : source.first + len(source.group.masks)]
            if not own.any():
                continue
            # Some more than will do on average: a further pass costs more than draws.
            draws = np.where(own > 0, 1.3 * own + 3, 0) * times * self._tried[number] / self._hits[number]
            draws = np.ceil(draws * min(1, _MOST / draws.sum())).astype(np.int64)
            tried[source.first : source.first + len(own)] = draws
            owners = np.repeat(np.arange(len(own)), draws)
            triples = source.base.draw(rng, len(owners))
            good = members(self._engine, self._facts, [source.group], triples)[0].of(owners)
            self._tried[number] += len(owners)
            found_pairs.append(source.first + owners[good])
            found_triples.append(triples[good])
            numbers.append(np.full(int(good.sum()), number))
        pairs, triples = np.concatenate(found_pairs), np.concatenate(found_triples)
        keys = self._keys.pack(triples)
        good = ~self._taken.contains(keys)
        places = np.flatnonzero(good)
        good[places] = self._negative(triples[places])
        self._hits += np.bincount(np.concatenate(numbers)[good], minlength=len(self._sources))
        self.found += np.bincount(pairs[good], minlength=len(lack))
        self._queue = (
            np.concatenate([self._queue[0], pairs[good]]),
            np.concatenate([self._queue[1], keys[good]]),
        )
        return tried

    @property
    def _keys(self) -> TripleKeys:
        return self._engine.graph.keys

    def _from_queue(self, need: Ints) -> tuple[Ints, Keys]:
        """Take the first ones of each pair from the queue."""
        pairs, keys = self._queue
        order = np.argsort(pairs, kind="stable")
        pairs, keys = pairs[order], keys[order]
        rank = np.arange(len(pairs)) - _starts(np.bincount(pairs, minlength=len(need)))[pairs]
        now = rank < need[pairs]
        self._queue = pairs[~now], keys[~now]
        return pairs[now], keys[now]


def _parts(cuts: Callable[[int], tuple[int, int]], size: int) -> tuple[int, int, int, int]:
    """Return the bounds of train's, valid's and test's parts of a list; if there is one, train has one."""
    first, second = cuts(size)
    first = max(first, min(size, 1))
    return 0, first, max(first, second), size


def _shuffled(pairs: Ints, sizes: Ints, need: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the first few of each pair's ranks in random order."""
    owner = np.repeat(np.arange(len(pairs)), sizes)
    starts = _starts(sizes)
    order = np.lexsort((rng.random(len(owner)), owner))
    rank = order - starts[owner]
    first = np.arange(len(owner)) - starts[owner] < need[owner]
    return pairs[owner[first]], rank[first]


def _kinds(rows: Mask) -> Ints:
    """Return numbers 0, 1, … for the rows, equal ones for equal rows."""
    kind = np.zeros(len(rows), dtype=np.int64)
    for byte in np.packbits(rows, axis=1).T:
        kind = np.unique(kind << 8 | byte, return_inverse=True)[1]
    return kind


def _starts(sizes: npt.NDArray[Any]) -> Ints:
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts
