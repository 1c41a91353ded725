"""The share of R⁻ in query-guided negatives under `sound`: an equal share for each (rule, sub-rule) pair.

Drawn uniformly from T_{R⁻}(K), nearly all negatives would come from the few sub-rules that conclude most,
products above all, and most undesired rules would have no witness. So each pair gets as many negatives as
every other, and what one cannot fill goes equally to the rest.

As in the text, candidates are split by the recipe's ratio before anything is drawn, so that train does not
use up the witnesses of a rare sub-rule: all candidates (triples that a sub-rule concludes and that are truly
negative) are put into one random order, and of the m candidates of a pair the first ⌊0.8 m⌋ in that order
are for train, those up to ⌊0.9 m⌋ for valid and the rest for test, with a ratio of 8:1:1; but of one or more,
train has one. Since the order is the same for all, pairs that share candidates agree about them, but for a
few next to the cuts. Where m is so large that candidates are drawn from a base and not counted, train, valid
and test draw from the same ones.

Each draw for a pair is uniform over the candidates that it has left. A triple that several pairs draw at the
same time goes to the one with the fewest candidates. Where fewer are wanted than there are pairs, a
random order of the pairs decides who gets one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import places_of
from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.negatives.found import Found, made
from loginfer.benchmark.negatives.query_bases import Bases
from loginfer.benchmark.negatives.query_groups import Facts, Group, groups_of
from loginfer.benchmark.negatives.query_pools import DrawnPool, ListedPool, Source, Taken
from loginfer.benchmark.randomness import generator, hash_order, salt
from loginfer.benchmark.values import SPLITS, Split
from loginfer.kg.triples import distinct_keys

__all__ = ["sound_share"]

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.int64]

# All triples of a base with up to FEW of them are looked at, and of one with up to EASY times as many as will
# be drawn from it on average, for that would take as long; but never of one with more than MANY.
FEW, EASY, MANY = 2**15, 8, 2**22

# How many candidates a pair has for which they are not counted: no limit comes near.
_UNCOUNTED = np.iinfo(np.int64).max


def sound_share(
    context: Context, masks: Sequence[Sequence[int]], wanted: Mapping[Split, int]
) -> tuple[dict[Split, Found], list[str]]:
    """Draw truly negative conclusions of sub-rules, an equal share for each pair.

    Parameters
    ----------
    context
        What negatives are made from.
    masks
        For each rule its sub-rules in R⁻.
    wanted
        How many triples to draw for each split.
    """
    groups = [groups_of(place, rule, masks[place]) for place, rule in enumerate(context.rules)]
    few = min(max(FEW, EASY * sum(wanted.values()) // sum(map(len, groups))), MANY)
    sources = _sources(context, groups, few)
    rules = np.concatenate([np.full(len(s.group.masks), s.group.rule, dtype=np.int32) for s in sources])
    kept = np.concatenate([np.array(s.group.masks, dtype=np.int32) for s in sources])
    shares = _Shares(context, sources, len(rules), few)
    unpack = context.kg.keys.unpack
    found: dict[Split, Found] = {}
    witnessed: dict[Split, int] = {}
    for part, split in enumerate(SPLITS):
        rng = generator(context.recipe.seed, "negatives", "qg", "shares", split)
        pairs, keys = shares.share_out(part, wanted[split], rng)
        origins = made("sub-rule", len(pairs), rule=rules[pairs], kept=kept[pairs])
        found[split] = Found(unpack(keys), origins)
        witnessed[split] = shares.witnessed(pairs, keys)
    notes = [
        f"{len(found[split].triples):,} of the {wanted[split]:,} negatives of {split} that were to come "
        "from sub-rules do, all that could be found"
        for split in SPLITS
        if len(found[split].triples) < wanted[split]
    ]
    if shares.without:
        notes.append(
            f"{shares.without:,} of the {len(rules):,} sub-rules, counted for each rule, conclude "
            "nothing that is truly negative"
        )
    notes.append(
        f"of the {len(rules):,} sub-rules, counted for each rule, at least {witnessed['train']:,} have "
        f"a witness among the negatives of train, {witnessed['valid']:,} of valid, "
        f"{witnessed['test']:,} of test"
    )
    return found, notes


def _sources(context: Context, groups: Sequence[Sequence[Group]], few: int) -> list[Source]:
    """Return the groups of all rules with their bases; their pairs are numbered in this order."""
    rng = generator(context.recipe.seed, "negatives", "qg", "trials")
    sources: list[Source] = []
    first = 0
    for place, rule in enumerate(context.rules):
        if context.progress:
            context.progress("evaluating sub-rules", place, len(context.rules))
        bases = Bases(context.engine, rule, few, rng)
        for group in groups[place]:
            sources.append(Source(group, bases.of(group), first))
            first += len(group.masks)
    return sources


class _Shares:
    """Gives the pairs of all groups their shares, for one split after the other.

    Parameters
    ----------
    context
        What negatives are made from.
    sources
        The groups with their bases.
    pairs
        How many pairs they have.
    few
        Of bases with up to this many triples, all are looked at.
    """

    def __init__(self, context: Context, sources: Sequence[Source], pairs: int, few: int) -> None:
        packing, negative, facts = context.kg.keys, context.truth.negative, Facts(context.kg)
        small: dict[int, list[Source]] = {}  # groups of one rule share their bases
        for source in sources:
            if len(source.base) <= few:
                small.setdefault(id(source.base), []).append(source)
        packed = [packing.pack(same[0].base.every()) for same in small.values()]
        every = distinct_keys(np.concatenate([np.empty(0, dtype=np.int64), *packed]))
        every = every[negative(packing.unpack(every))]
        self._taken = Taken(every)
        order = hash_order(every, salt(context.recipe.seed, "negatives", "qg", "parts"))
        self._listed = ListedPool(pairs, facts, self._taken, order, context.recipe.cuts)
        for same, keys in zip(small.values(), packed, strict=True):
            self._listed.add(context.engine, same, _places(every, keys))
        self._drawn = DrawnPool(context.engine, pairs, facts, negative, self._taken)
        self._drawn.add([source for source in sources if len(source.base) > few])
        self.candidates = np.where(self._drawn.open, _UNCOUNTED, self._listed.finish())

    @property
    def without(self) -> int:
        """How many pairs have no candidate, or none was found."""
        in_vain = ~self._drawn.open & (self.candidates == _UNCOUNTED) & (self._drawn.found == 0)
        return int(((self.candidates == 0) | in_vain).sum())

    def witnessed(self, pairs: Ints, keys: Keys) -> int:
        """Return how many pairs have a witness among these triples, as far as that is known.

        A witness of a sub-rule is a negative that it concludes, whichever pair it was drawn for.
        """
        found = self._listed.witnessed(keys)
        found[pairs] = True
        return int(found.sum())

    def share_out(self, part: int, wanted: int, rng: np.random.Generator) -> tuple[Ints, Keys]:
        """Draw for one split, a place in `SPLITS`; return pairs and keys side by side.

        In each round every pair that is not done gets half of what would be its share if nobody ran out, at
        least one; in the last, some get one.
        """
        pairs = len(self.candidates)
        got = np.zeros(pairs, dtype=np.int64)
        order = rng.permutation(pairs)
        done: list[tuple[Ints, Keys]] = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
        self._counts = self._listed.refresh(part)
        while (left := wanted - int(got.sum())) > 0:
            chosen = order[(self._drawn.open | (self._counts > 0))[order]]
            if not len(chosen):
                break
            # What one could not fill goes to those that have least.
            chosen = chosen[np.argsort(got[chosen], kind="stable")]
            need = np.zeros(pairs, dtype=np.int64)
            need[chosen[:left]] = max(1, left // (2 * len(chosen)))
            asked = need.copy()
            done += self._fill(part, need, -(-left // len(chosen)), rng)
            got += asked - need
        return np.concatenate([pair for pair, _ in done]), np.concatenate([keys for _, keys in done])

    def _fill(self, part: int, need: Ints, ahead: int, rng: np.random.Generator) -> list[tuple[Ints, Keys]]:
        """Draw what pairs need; `need` is left with what could not be filled."""
        done: list[tuple[Ints, Keys]] = []
        while need.any():
            proposals = [self._listed.propose(need, self._counts, rng), self._drawn.propose(need, ahead, rng)]
            pairs, keys = (np.concatenate([p[i] for p in proposals]) for i in range(2))
            if not len(pairs):
                break
            scarce = np.where(self._drawn.open, _UNCOUNTED, self._counts)[pairs]
            first = np.lexsort((rng.random(len(pairs)), scarce, keys))
            first = first[np.concatenate([[True], keys[first[1:]] != keys[first[:-1]]])]
            pairs, keys = pairs[first], keys[first]
            self._taken.add(keys)
            need -= np.bincount(pairs, minlength=len(need))
            done.append((pairs, keys))
            self._counts = self._listed.refresh(part)
        return done


def _places(ascending: Keys, keys: Keys) -> Ints:
    """Return the places in a sorted list of those keys that are in it."""
    found, places = places_of(ascending, keys)
    return places[found]
