"""Position-aware negatives with given heads, for slots that no near miss fills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import grouped
from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.negatives.near_miss_slots import Slots, heads_of
from loginfer.benchmark.randomness import generator
from loginfer.benchmark.spaces import Space, draw, listed, rectangle, union
from loginfer.benchmark.values import POSITIONS, SPLITS
from loginfer.kg import Triples
from loginfer.kg.triples import distinct_keys, merged_keys

__all__ = ["Spare", "draw_spare", "replaced_positions", "shuffled_candidates"]

Ints = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Spare:
    """Negatives for slots.

    Parameters
    ----------
    slot, key
        int64[n]: slots and the keys of their triples.
    """

    slot: Ints
    key: Ints


def draw_spare(context: Context, slots: Slots, open_: Ints, taken: Ints) -> Spare:
    """Draw position-aware negatives for open slots: of the same split, with the same head.

    For train, then valid, then test; but under `sound`, where candidates are so few that valid or test would
    be left with less, the other way round (see `found.in_turn`).

    Parameters
    ----------
    context
        What negatives are made from.
    slots, open_
        The slots, and which of them need something.
    taken
        Sorted keys of negatives that there are already.
    """
    groups = grouped(slots.split[open_].astype(np.int64), slots.head[open_])
    spare = _draw_groups(context, groups, open_, taken)
    short = (slots.split[open_] > 0).sum() > (slots.split[spare.slot] > 0).sum()
    if short and context.recipe.protocol == "sound":
        spare = _draw_groups(context, sorted(groups, key=lambda group: -group[0][0]), open_, taken)
    return spare


def _draw_groups(
    context: Context, groups: Sequence[tuple[tuple[int, ...], Ints]], open_: Ints, taken: Ints
) -> Spare:
    """Draw for the slots of one split and head after the other."""
    keys = context.kg.keys
    slot, key = [open_[:0]], [open_[:0]]
    for (place, head), where in groups:
        rng = generator(context.recipe.seed, "negatives", "nm", "spare", SPLITS[place], head)
        of_subject, of_object = _corruptions(context, place, head)
        space = union([*of_subject, *of_object])
        found = draw(
            space, len(where), rng, context.truth.negative, taken=listed(keys.unpack(taken), keys)
        ).triples
        mine = keys.pack(found)
        taken = merged_keys(taken, np.sort(mine))
        slot.append(open_[where[: len(mine)]])
        key.append(mine)
    return Spare(np.concatenate(slot), np.concatenate(key))


def replaced_positions(context: Context, slots: Slots, where: Ints, triples: Triples) -> Positions:
    """Return int8[n], places in `POSITIONS`: in what the position-aware negatives of slots were replaced.

    Parameters
    ----------
    context
        What negatives are made from.
    slots, where
        The slots, and places of those with position-aware negatives.
    triples
        int32[n, 3], these negatives.
    """
    names = np.array([POSITIONS.index(name) for name in ("", "subject", "object", "either")], dtype=np.int8)
    position = np.zeros(len(where), dtype=np.int8)
    for (place, head), own in grouped(slots.split[where].astype(np.int64), slots.head[where]):
        of_subject, of_object = (union(spaces) for spaces in _corruptions(context, place, head))
        found = triples[own]
        position[own] = names[of_subject.contains(found) + 2 * of_object.contains(found)]
    return position


def shuffled_candidates(context: Context, place: int, head: int, rounds: int) -> Ints:
    """Return the keys of truly negative triples that give the conclusions of a head each other's objects.

    They are position-aware, and subjects and objects are as popular as those of the conclusions.

    Parameters
    ----------
    context
        What negatives are made from.
    place, head
        The split and the head.
    rounds
        How often all objects change places.
    """
    rng = generator(context.recipe.seed, "negatives", "nm", "shuffled", SPLITS[place], head)
    conclusions = context.conclusions[SPLITS[place]]
    own = conclusions[heads_of(context.kg, conclusions) == head]
    found = np.tile(own, (rounds, 1))
    column = 0 if own[0, 1] == context.kg.type_relation else 2
    for turn in range(rounds):
        part = slice(turn * len(own), (turn + 1) * len(own))
        found[part, column] = own[rng.permutation(len(own)), column]
    if column == 0:  # of a type triple only the constant can be replaced, by one of another type
        typed = context.everything.triples[context.everything.triples[:, 1] == own[0, 1], 0]
        found[:, 0] = typed[rng.integers(0, len(typed), size=len(found))]
    keys = distinct_keys(context.kg.keys.pack(found))
    return keys[context.truth.negative(context.kg.keys.unpack(keys))]


def _corruptions(context: Context, place: int, head: int) -> tuple[list[Space], list[Space]]:
    """Return what replacing subjects, and what replacing objects of conclusions with this head gives."""
    everything, conclusions = context.everything, context.conclusions[SPLITS[place]]
    own = conclusions[heads_of(context.kg, conclusions) == head]
    subjects, objects = np.unique(own[:, 0]), np.unique(own[:, 2])
    relation = int(own[0, 1])
    known = everything.sides(relation)
    of_subject = [rectangle(known[0], relation, objects)]
    if relation == everything.type_relation:
        return of_subject, []
    return of_subject, [rectangle(subjects, relation, known[1])]
