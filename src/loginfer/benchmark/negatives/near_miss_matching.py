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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.negatives.near_miss_kernels import first_free
from loginfer.benchmark.negatives.near_miss_search import NearMissSearch
from loginfer.benchmark.negatives.near_misses import (
    WAY_NUMBER,
    Filled,
    SearchWays,
    Slots,
    conclusions_with,
    first_served,
    shuffled_candidates,
)
from loginfer.benchmark.shortcuts import Adjacent, OtherRelation, Popularity, ShortcutScorer, SimpBLScorer
from loginfer.kg import Triples
from loginfer.kg.graph import grouped, member
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
class CandidatePool:
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


def draw_matched(search: NearMissSearch, slots: Slots) -> Filled:
    """Fill slots with candidates that match their conclusions; some may be left open.

    Where a head's negatives are position-aware in part, by design, those match the conclusions for which the
    nearest near misses are furthest away.
    """
    filled = Filled.nothing(len(slots))
    matching = Matching(search.context)
    for by_design in (False, True):
        some = np.flatnonzero((slots.rule < 0) == by_design)
        rows = _by_position(search, slots, some) if by_design else _by_near_misses(search, slots, some)
        pool = _pool(search, slots, rows)
        groups = dict(grouped(pool.split, pool.head))
        for group, where in grouped(slots.split[some], slots.head[some]):
            if group not in groups:
                continue
            candidates = groups[group]
            candidates = candidates[~member(filled.taken, pool.key[candidates])]
            near = matching.chosen(group, len(where), pool.key[candidates], pool.way[candidates])
            chosen = candidates[near]
            served = some[where[: len(chosen)]]
            filled.put(served, pool.key[chosen], pool.rule[chosen], pool.edit[chosen], pool.way[chosen])
    return filled


# -- candidates ---------------------------------------------------------------------------------------


def _by_near_misses(search: NearMissSearch, slots: Slots, some: Ints) -> list[Ints]:
    """Return what the near misses of some slots conclude about their anchors: int64[6, n] for each way."""
    ways = SearchWays(search, slots)
    rows = [np.empty((6, 0), dtype=np.int64)]
    for turn, (way, further) in enumerate(ways):
        if turn >= _LOOKS and way == "moved":
            continue
        requests = ways.requests(way, further, some)
        keys, _ = search.propose(requests, _EACH)
        row, column = np.nonzero(keys >= 0)
        slot, number = requests.slot[row], np.full(len(row), WAY_NUMBER[way])
        key, rule, edit = keys[row, column], requests.rule[row], requests.edit[row]
        rows.append(np.stack([slots.split[slot], slots.head[slot], key, rule, edit, number]))
        if search.context.progress:
            search.context.progress("gathering near misses", turn, None)
    return rows


def _by_position(search: NearMissSearch, slots: Slots, some: Ints) -> list[Ints]:
    """Return position-aware candidates for slots that have no near miss by design: int64[6, n] for each head."""
    rows = [np.empty((6, 0), dtype=np.int64)]
    for (split, head), _ in grouped(slots.split[some], slots.head[some]):
        key = shuffled_candidates(search.context, split, head, _SPARE)
        constant = np.array([split, head, 0, -1, -1, WAY_NUMBER["position"]])
        rows.append(np.repeat(constant[:, None], len(key), axis=1))
        rows[-1][2] = key
    return rows


def _pool(search: NearMissSearch, slots: Slots, rows: Sequence[Ints]) -> CandidatePool:
    """Return each candidate once for a split and head, in the first way it was found, if truly negative."""
    columns = np.concatenate(rows, axis=1)
    split, head, key = columns[:3]
    order = np.lexsort((np.arange(len(key)), key, head, split))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (key[order[1:]] != key[order[:-1]]) | (split[order[1:]] != split[order[:-1]])
    order = order[first]
    order = order[search.negative(key[order])]
    order = order[_allotted(search.context, slots, split[order], head[order], key[order])]
    return CandidatePool(*columns[:, order])


def _allotted(context: Context, slots: Slots, split: Ints, head: Ints, key: Ints) -> Ints:
    """Return the places of candidates, each in one split only.

    One that several splits have gathered goes to any of them at random, as likely as the split has slots for
    the head: whichever chose first would have the best matches. But train stands back where it has to (see
    `first_served`).
    """
    size = {group: len(where) for group, where in grouped(slots.split, slots.head)}
    weight = np.empty(len(key), dtype=np.int64)
    for group, where in grouped(split, head):
        weight[where] = size[group]
    first = np.unique(slots.head[first_served(context, slots)])
    weight[member(first, head) & (split > 0)] *= _BEFORE
    order = np.lexsort((split, key))
    ends = np.cumsum(weight[order])
    last = np.flatnonzero(np.diff(key[order], append=-1) != 0)  # the last place of each key
    starts = np.zeros(len(last), dtype=np.int64)
    starts[1:] = ends[last[:-1]]
    numbers = mixed_numbers(key[order[last]].astype(np.uint64), context.recipe.seed)
    drawn = starts + numbers % np.maximum(ends[last] - starts, 1)
    return np.sort(order[np.searchsorted(ends, drawn, side="right")])


# -- matching -----------------------------------------------------------------------------------------


class Matching:
    """Chooses candidates; remembers which conclusions have their match already."""

    def __init__(self, context: Context) -> None:
        match = context.recipe.match
        self._context = context
        self._popular = [Popularity(context.seen, column) for column in (0, 2) if "popularity" in match]
        self._adjacent: list[ShortcutScorer] = []
        if "adjacency" in match:
            self._adjacent = [Adjacent(context.base), OtherRelation(context.base)]
        self._simpbl = SimpBLScorer(context.seen.triples, len(context.kg.relations)) if "simpbl" in match else None
        self._unmatched: dict[tuple[int, ...], Triples] = {}

    def chosen(self, group: tuple[int, ...], count: int, keys: Ints, way: Ints) -> Ints:
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
        context = self._context
        if group not in self._unmatched:
            own = conclusions_with(context, *group)
            order = generator(context.recipe.seed, "negatives", "nm", "match", *group).permutation(len(own))
            self._unmatched[group] = own[order]
        own = self._unmatched[group]
        if not len(keys) or not len(own):
            return keys[:0]
        positive = self._covariates(own, np.zeros(len(own)))
        candidate = self._covariates(context.kg.keys.unpack(keys), _FAR * way)
        matched, near = _nearest(positive, candidate, count)
        self._unmatched[group] = np.delete(own, matched, axis=0)
        return near

    def _covariates(self, triples: Triples, far: npt.NDArray[np.floating[Any]]) -> Floats:
        """Return float64[n, f]: popularity on a logarithmic scale, adjacency as 0 or its weight, and `far`."""
        columns = [np.log1p(scorer.score(triples)) for scorer in self._popular]
        columns += [_APART * scorer.score(triples) for scorer in self._adjacent]
        if self._simpbl is not None:
            involved = (self._simpbl.involves(triples[:, column], triples[:, 1]) for column in (0, 2))
            columns += [_APART * found.astype(np.float64) for found in involved]
        return np.column_stack([*columns, far])


def _nearest(positive: Floats, candidate: Floats, count: int) -> tuple[Ints, Ints]:
    """Give `count` conclusions the nearest candidate that is left; return both places side by side.

    The conclusions that are nearest to any candidate have one chosen.
    """
    from scipy.spatial import cKDTree

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
