"""Position-aware corruption: conclusions with a constant replaced by one seen in the same position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.negatives.found import Found, Taken, assemble, in_turn, made, reason
from loginfer.benchmark.randomness import generator
from loginfer.benchmark.sampler import Known
from loginfer.benchmark.spaces import Space, draw, rectangle, union
from loginfer.benchmark.values import POSITIONS, NegativeSet, Split
from loginfer.kg import Triples
from loginfer.kg.triples import sorted_unique

__all__ = [
    "Corruptions",
    "corruptions",
    "draw_corruptions",
    "position_aware",
    "position_of",
    "position_space",
]

Ids = npt.NDArray[np.int32]

# By whether corrupting a subject gives a triple, plus 2 if corrupting an object does.
_POSITION = np.array([POSITIONS.index(p) for p in ("", "subject", "object", "either")], dtype=np.int8)

# So many triples are looked up in one go.
_AT_A_TIME = 2**22


@dataclass(frozen=True)
class Corruptions:
    """C′ of one split, before true triples are excluded.

    Parameters
    ----------
    of_subject
        All (s′, R, o) with a conclusion (s, R, o), where s′ is a subject of R in P_all; for types all
        (e′, type, t) with a conclusion (e, type, t), where e′ has a type in P_all.
    of_object
        All (s, R, o′) with a conclusion (s, R, o), where o′ is an object of R in P_all.
    """

    of_subject: Space
    of_object: Space

    @cached_property
    def space(self) -> Space:
        """Both together."""
        return union([self.of_subject, self.of_object])

    def positions(self, triples: Triples) -> npt.NDArray[np.int8]:
        """Return int8[n], places in `POSITIONS`: which position was replaced."""
        found = np.empty(len(triples), dtype=np.int8)
        for start in range(0, len(triples), _AT_A_TIME):
            part = triples[start : start + _AT_A_TIME]
            subject, object_ = self.of_subject.contains(part), self.of_object.contains(part)
            found[start : start + _AT_A_TIME] = _POSITION[
                subject.astype(np.int8) + 2 * object_.astype(np.int8)
            ]
        return found


def position_aware(context: Context) -> NegativeSet:
    """Draw from C′_train, C′_valid ∖ N_train and C′_test ∖ (N_train ∪ N_valid)."""

    def draw_all(order: Sequence[Split]) -> dict[Split, Found]:
        found: dict[Split, Found] = {}
        for split in order:
            rng = generator(context.recipe.seed, "negatives", "pa", split)
            before = Taken(context, (known.triples for known in found.values()))
            found[split] = draw_corruptions(context, split, context.positives.sizes[split], rng, before)
        return found

    return assemble(context, "pa", in_turn(context, draw_all))


def draw_corruptions(
    context: Context, split: Split, count: int, rng: np.random.Generator, before: Known
) -> Found:
    """Draw negatives for a split by position-aware corruption.

    Parameters
    ----------
    context
        What negatives are made from.
    split
        Whose conclusions are corrupted.
    count
        How many to draw, at most.
    rng
        The randomness.
    before
        What has been taken already.
    """
    candidates = corruptions(context, split)
    drawn = draw(candidates.space, count, rng, context.truth.negative, taken=before)
    why = reason(drawn)
    # Looking up neighbours one after the other is much faster.
    triples = sorted_unique(drawn.triples, context.kg.keys)
    del drawn  # there may be a hundred million of them
    origins = made("position", len(triples), position=candidates.positions(triples))
    return Found(triples, origins, why)


def position_space(context: Context, split: Split) -> Space:
    """Return C′ of a split, before true triples are excluded."""
    return corruptions(context, split).space


def position_of(context: Context, split: Split, triples: Triples) -> npt.NDArray[np.int8]:
    """Return int8[n], places in `POSITIONS`: how corruption makes these triples; 0 where it does not."""
    return corruptions(context, split).positions(triples)


def corruptions(context: Context, split: Split) -> Corruptions:
    """Return C′ of a split as two rectangles for each relation R of its conclusions C.

    They are (subjects of R in P_all × objects of R in C) and (subjects of R in C × objects of R in P_all).
    """
    everything, concluded = context.everything, context.concluded(split)
    of_subject, of_object = [], []
    for relation in concluded.preds.tolist():
        known, own = everything.sides(relation), concluded.sides(relation)
        of_subject.append(rectangle(known[0], relation, own[1]))
        if relation != everything.type_relation:  # of a type triple only the constant is corrupted
            of_object.append(rectangle(own[0], relation, known[1]))
    return Corruptions(union(of_subject), union(of_object))
