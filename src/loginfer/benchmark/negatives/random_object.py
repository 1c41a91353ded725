"""Random object corruption: each positive once more, with any other object."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import member
from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.negatives.found import ALL, Found, assemble, in_turn, made
from loginfer.benchmark.randomness import generator
from loginfer.benchmark.values import POSITIONS, NegativeSet, Split
from loginfer.kg import Triples

__all__ = ["random_object"]

Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# How many objects each positive that has none yet tries, round after round; then all are tried.
_TRIES = (1, 1, 2, 4, 8, 16)
# So many triples are tested in one go.
_MOST = 2**22


def random_object(context: Context) -> NegativeSet:
    """Give each positive (s, R, o) one (s, R, o′) of its own, o′ from Consts(K).

    Of (e, type, t) the type is replaced, by one of Types(K). What a positive gets is uniform over the
    candidates that are left to it.
    """
    return assemble(context, "rc", in_turn(context, lambda order: _draw_all(context, order)))


def _draw_all(context: Context, order: Sequence[Split]) -> dict[Split, Found]:
    graph = context.kg
    found: dict[Split, Found] = {}
    claims = _Claims()
    for split in order:
        rng = generator(context.recipe.seed, "negatives", "rc", split)
        before = claims.keys
        is_type = context.positives[split][:, 1] == (
            -1 if graph.type_relation is None else graph.type_relation
        )
        for positives, domain in (
            (context.positives[split][is_type], graph.types),
            (context.positives[split][~is_type], graph.consts),
        ):
            _corrupt(context, positives, domain, rng, claims)
        own = claims.keys[~member(before, claims.keys)]
        origins = made("object", len(own), position=POSITIONS.index("object"))
        found[split] = Found(graph.keys.unpack(own), origins, f"{ALL} for these positives")
    return found


class _Claims:
    """The keys of all negatives so far, sorted: nobody may claim one of them again."""

    def __init__(self) -> None:
        self.keys = np.empty(0, dtype=np.int64)

    def claim(self, keys: Ints) -> npt.NDArray[np.int64]:
        """Claim keys that nobody has; of equal ones the first. Return the places of those claimed."""
        order = np.argsort(keys, kind="stable")
        ascending = keys[order]
        fresh = ~member(self.keys, ascending)
        fresh[1:] &= ascending[1:] != ascending[:-1]
        merged = np.concatenate([self.keys, ascending[fresh]])
        merged.sort(kind="stable")  # two ascending runs: one merge
        self.keys = merged
        return order[fresh]


def _corrupt(
    context: Context, positives: Triples, domain: Ids, rng: np.random.Generator, claims: _Claims
) -> None:
    """Let each positive claim a triple with another object, as long as there is one for it."""
    pending = positives
    spent = 0
    for tries in _TRIES:
        # Once a positive has tried as often as there are objects, trying each of them once is cheaper.
        if not len(pending) or spent >= len(domain):
            break
        step = _MOST // tries
        parts = [pending[start : start + step] for start in range(0, len(pending), step)]
        pending = np.concatenate([_try(context, part, domain, tries, rng, claims) for part in parts])
        spent += tries
    if len(pending) and len(domain):
        _try_all(context, pending, domain, rng, claims)


def _try(
    context: Context, positives: Triples, domain: Ids, tries: int, rng: np.random.Generator, claims: _Claims
) -> Triples:
    """Let each positive claim the first good one of some random objects; return those without."""
    proposals = np.repeat(positives, tries, axis=0)
    proposals[:, 2] = domain[rng.integers(0, len(domain), size=len(proposals))]
    keys = context.kg.keys.pack(proposals).reshape(-1, tries)
    good = context.truth.negative(proposals).reshape(-1, tries)
    pending = np.ones(len(positives), dtype=bool)
    for turn in range(tries):
        able = np.flatnonzero(pending & good[:, turn])
        pending[able[claims.claim(keys[able, turn])]] = False
    return positives[pending]


def _try_all(
    context: Context, positives: Triples, domain: Ids, rng: np.random.Generator, claims: _Claims
) -> None:
    """Let positives with the same subject and relation share all that is left to them, at random."""
    relations = len(context.kg.relations)
    groups, sharing = np.unique(
        positives[:, 0].astype(np.int64) * relations + positives[:, 1], return_counts=True
    )
    step = max(_MOST // len(domain), 1)
    for start in range(0, len(groups), step):
        part, shares = groups[start : start + step], sharing[start : start + step]
        proposals = np.empty((len(part) * len(domain), 3), dtype=np.int32)
        proposals[:, 0] = np.repeat(part // relations, len(domain))
        proposals[:, 1] = np.repeat(part % relations, len(domain))
        proposals[:, 2] = np.tile(domain, len(part))
        keys = context.kg.keys.pack(proposals)
        places = np.flatnonzero(context.truth.negative(proposals) & ~member(claims.keys, keys))
        places = places[rng.permutation(len(places))]
        # By group, in random order within each: the first ones are taken.
        places = places[np.argsort(places // len(domain), kind="stable")]
        group = places // len(domain)
        rank = np.arange(len(group)) - np.searchsorted(group, group)
        claims.claim(keys[places[rank < shares[group]]])
