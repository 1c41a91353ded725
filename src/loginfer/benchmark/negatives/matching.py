"""Matched near misses: of many candidates those that look like the conclusions to whoever takes shortcuts.

For each split and head, slots first gather candidates from all edits of their rules. What a shortcut sees of
a triple are its covariates: how popular subject and object are, whether and in which direction K connects
them, whether they occur with the head's relation elsewhere. Then every conclusion, in random order, gets the
nearest candidate that is left. All of that stays within a split and head; a candidate that several splits
have gathered is for one of them, chosen at random.

Matching on a propensity, the probability of being a conclusion that a logistic model sees in the covariates,
balanced them less well than matching on the covariates themselves: where a model tells the two apart, it
goes to extremes, and candidates that are alike in that one number differ in popularity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.negatives.near_miss_search import Search, first_served, heads_of
from loginfer.benchmark.negatives.near_misses import WAYS, Drawn, Looking, shuffled_candidates
from loginfer.benchmark.shortcuts import Adjacent, OtherRelation, Popularity, ShortcutScorer, SimpBL
from loginfer.kg import Triples
from loginfer.kg.graph import grouped, member, merged_keys
from loginfer.randomness import generator, mixed_numbers

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# How many candidates a slot gathers in each way of looking, and in how many ways with its own anchor at most;
# those with other anchors, and with edits that disconnect the ends, are all taken.
_EACH, _LOOKS = 6, 16
# How often conclusions exchange their objects to make position-aware candidates.
_SPARE = 8
# How much a difference in adjacency or involvement weighs against one in popularity, a factor of e.
_APART = 2.0
# How much each step further away from a slot's own near miss weighs (see `WAYS`).
_FAR = 0.05
# How many times as likely as train others get a candidate that both have, where train stands back.
_BEFORE = 2**20
# How many of the nearest candidates a conclusion looks at in a round.
_NEAREST = 64


@dataclass(frozen=True)
class _Pool:
    """Candidates, each once for a split and head.

    Parameters
    ----------
    split, head, key, rule, edit, way
        Side by side, sorted; `rule` and `edit` are -1 for position-aware candidates.
    """

    split: Ints
    head: Ints
    key: Ints
    rule: Ints
    edit: Ints
    way: Ints


def draw_matched(search: Search) -> Drawn:
    """Fill slots with candidates that match their conclusions; some may be left open.

    Where a head's negatives are position-aware in part, by design, those match the conclusions for which the
    nearest near misses are furthest away.
    """
    slots = search.slots
    drawn = Drawn.nothing(len(slots))
    matching = Matching(search)
    for by_design in (False, True):
        pool = _spare_pool(search) if by_design else _gathered(search)
        groups = dict(grouped(pool.split, pool.head))
        wanted = np.flatnonzero((slots.rule < 0) == by_design)
        for (split, head), where in grouped(slots.split[wanted].astype(np.int64), slots.head[wanted]):
            if (split, head) not in groups:
                continue
            candidates = groups[split, head]
            candidates = candidates[~member(drawn.taken, pool.key[candidates])]
            near = matching.chosen((split, head), len(where), pool.key[candidates], pool.way[candidates])
            chosen = candidates[near]
            got = wanted[where[: len(chosen)]]
            drawn.key[got], drawn.rule[got] = pool.key[chosen], pool.rule[chosen]
            drawn.edit[got], drawn.way[got] = pool.edit[chosen], pool.way[chosen].astype(np.int8)
            drawn.taken = merged_keys(drawn.taken, np.sort(pool.key[chosen]))
    return drawn


# -- candidates ---------------------------------------------------------------------------------------


def _gathered(search: Search) -> _Pool:
    """Return what the near misses of all slots conclude about their anchors, if it is truly negative."""
    slots = search.slots
    wanted = np.flatnonzero(slots.rule >= 0)
    looking = Looking(search)
    columns: list[tuple[Ints, ...]] = []
    for turn, (way, further) in enumerate(looking.ways()):
        if turn >= _LOOKS and way == "moved":
            continue
        asked = looking.asked(way, further, wanted)
        keys, _ = search.propose(asked, _EACH)
        row, column = np.nonzero(keys >= 0)
        slot = asked.slot[row]
        columns.append(
            (
                slots.split[slot].astype(np.int64),
                slots.head[slot],
                keys[row, column],
                asked.rule[row],
                asked.edit[row],
                np.full(len(row), WAYS.index(way), dtype=np.int64),
            )
        )
        if search.context.progress:
            search.context.progress("gathering near misses", turn, None)
    return _pool(search, [np.concatenate(column) for column in zip(*columns, strict=True)])


def _spare_pool(search: Search) -> _Pool:
    """Return position-aware candidates for the slots that have no near miss by design."""
    slots = search.slots
    wanted = np.flatnonzero(slots.rule < 0)
    parts: list[tuple[Ints, ...]] = []
    for (split, head), _ in grouped(slots.split[wanted].astype(np.int64), slots.head[wanted]):
        keys = shuffled_candidates(search.context, split, head, _SPARE)
        none = np.full(len(keys), -1, dtype=np.int64)
        way = np.full(len(keys), WAYS.index("position"), dtype=np.int64)
        parts.append((np.full(len(keys), split), np.full(len(keys), head), keys, none, none, way))
    if not parts:
        parts = [tuple(np.empty(0, dtype=np.int64) for _ in range(6))]
    return _pool(search, [np.concatenate(column) for column in zip(*parts, strict=True)])


def _pool(search: Search, columns: list[Ints]) -> _Pool:
    """Return each candidate once for a split and head, in the first way it was found, if truly negative."""
    split, head, key, rule, edit, way = columns
    order = np.lexsort((np.arange(len(key)), key, head, split))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (key[order[1:]] != key[order[:-1]]) | (split[order[1:]] != split[order[:-1]])
    order = order[first]
    order = order[search.negative(key[order])]
    order = order[_allotted(search, split[order], head[order], key[order])]
    return _Pool(*(column[order] for column in (split, head, key, rule, edit, way)))


def _allotted(search: Search, split: Ints, head: Ints, key: Ints) -> Ints:
    """Return the places of candidates, each in one split only.

    One that several splits have gathered goes to any of them at random, as likely as the split has slots for
    the head: whichever chose first would have the best matches. But train stands back where it has to (see
    `first_served`).
    """
    slots = search.slots
    size = {group: len(where) for group, where in grouped(slots.split.astype(np.int64), slots.head)}
    first = np.unique(slots.head[first_served(search.context, slots)])
    weight = np.empty(len(key), dtype=np.int64)
    for group, where in grouped(split, head):
        weight[where] = size[int(group[0]), int(group[1])]
    weight[member(first, head) & (split > 0)] *= _BEFORE
    order = np.lexsort((split, key))
    ends = np.cumsum(weight[order])
    same = np.flatnonzero(np.diff(key[order], append=-1) != 0)  # the last place of each key
    starts = np.zeros(len(same), dtype=np.int64)
    starts[1:] = ends[same[:-1]]
    numbers = mixed_numbers(key[order[same]].astype(np.uint64), search.context.recipe.seed)
    drawn = starts + numbers % np.maximum(ends[same] - starts, 1)
    return np.sort(order[np.searchsorted(ends, drawn, side="right")])


# -- matching -----------------------------------------------------------------------------------------


class Covariates:
    """What shortcuts see of triples."""

    def __init__(self, context: Context) -> None:
        match = context.recipe.match
        self._popular: list[ShortcutScorer] = []
        self._yes_or_no: list[ShortcutScorer] = []
        if "popularity" in match:
            self._popular = [Popularity(context.seen, column) for column in (0, 2)]
        if "adjacency" in match:
            self._yes_or_no += [Adjacent(context.base), OtherRelation(context.base)]
        if "simpbl" in match:
            known = SimpBL(context.seen.triples, len(context.kg.relations))
            self._yes_or_no += [Involved(known, 0), Involved(known, 2)]

    def of(self, triples: Triples) -> Floats:
        """Return float64[n, f]: popularity on a logarithmic scale, adjacency as 0 or its weight."""
        popular = [np.log1p(scorer.score(triples)) for scorer in self._popular]
        others = [_APART * scorer.score(triples) for scorer in self._yes_or_no]
        return np.stack(popular + others, axis=1)


class Involved:
    """1 if P_train has a triple that involves the triple's relation and its subject (or object)."""

    def __init__(self, known: SimpBL, column: int) -> None:
        self._known = known
        self._column = column

    def score(self, triples: Triples) -> Floats:
        """Return 1 for triples whose constant is involved, 0 for others."""
        return self._known.involves(triples[:, self._column], triples[:, 1]).astype(np.float64)


class Matching:
    """Chooses candidates; remembers which conclusions have their match already."""

    def __init__(self, search: Search) -> None:
        self._context = search.context
        self._covariates = Covariates(search.context)
        self._left: dict[tuple[int, int], Triples] = {}

    def chosen(self, group: tuple[int, int], count: int, keys: Ints, way: Ints) -> Ints:
        """Return the places of up to `count` candidates that match conclusions of a split and head.

        Parameters
        ----------
        group
            Split and head.
        count
            How many to choose.
        keys, way
            The candidates, and how they were found.
        """
        own = self._unmatched(group)
        if not len(keys) or not len(own):
            return keys[:0]
        unpack = self._context.kg.keys.unpack
        positive, candidate = self._covariates.of(own), self._covariates.of(unpack(keys))
        positive = np.column_stack([positive, np.zeros(len(positive))])
        matched, near = _nearest(positive, np.column_stack([candidate, _FAR * way]), count)
        self._left[group] = np.delete(own, matched, axis=0)
        return near

    def _unmatched(self, group: tuple[int, int]) -> Triples:
        """Return the conclusions of a split and head that have no match, in a random order."""
        if group not in self._left:
            split, head = group
            conclusions = self._context.conclusions[SPLITS[split]]
            own = conclusions[heads_of(self._context.kg, conclusions) == head]
            rng = generator(self._context.recipe.seed, "negatives", "nm", "match", split, head)
            self._left[group] = own[rng.permutation(len(own))]
        return self._left[group]


def _nearest(positive: Floats, candidate: Floats, count: int) -> tuple[Ints, Ints]:
    """Give `count` conclusions the nearest candidate that is left; return both places side by side.

    The conclusions that are nearest to any candidate have one chosen.
    """
    from scipy.spatial import cKDTree

    from loginfer.benchmark.negatives.near_miss_kernels import first_free

    free = np.ones(len(candidate), dtype=bool)
    pending = np.arange(len(positive))
    if count < len(positive):
        nearest, _ = cKDTree(candidate).query(positive, k=1)
        pending = np.sort(np.argsort(nearest, kind="stable")[:count])
    matched, chosen = [pending[:0]], [pending[:0]]
    while len(pending) and free.any():
        left = np.flatnonzero(free)
        _, near = cKDTree(candidate[left]).query(positive[pending], k=min(_NEAREST, len(left)))
        got = first_free(left[np.asarray(near).reshape(len(pending), -1)], free)
        matched.append(pending[got >= 0])
        chosen.append(got[got >= 0])
        pending = pending[got < 0]
    return np.concatenate(matched), np.concatenate(chosen)
