"""The share of R⁻ in query-guided negatives, to the letter of the text: uniform over T_{R⁻}(K) ∖ P_all.

Dropping parts of a body only adds conclusions, so T_{R⁻}(K) is the union of what the minimal sub-rules of
each rule conclude. Each of those is a product of two sets, or a list of triples; or, where the list would be
long, a product with a test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.negatives.found import Found, made, reason
from loginfer.benchmark.negatives.query_bases import ENOUGH, TRIALS, rectangle_of
from loginfer.benchmark.negatives.undesired import kept_masks, minimal, sub_rule
from loginfer.benchmark.randomness import generator
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.sampler import Sampler
from loginfer.benchmark.spaces import Draw, Space, of_projection, rectangle, union
from loginfer.benchmark.values import SPLITS, Split
from loginfer.engine import Engine
from loginfer.engine.binding import bind, relation_of
from loginfer.engine.parts import separate
from loginfer.errors import LimitError
from loginfer.kg import Triples
from loginfer.logic.rule import Rule

__all__ = ["Part", "concluded", "paper_share", "undesired_parts"]

# Where the subjects and objects of a sub-rule make more pairs than this, its conclusions are not listed if
# they can be found among those pairs.
LARGE = 2**20

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Part:
    """The conclusions of one minimal sub-rule.

    Parameters
    ----------
    rule
        Place in R of the rule it came from.
    kept
        The parts of that rule's body that it keeps, as a mask.
    relation
        Of its head.
    space
        T(K), or a set that contains it.
    test
        The sub-rule, if the space holds other triples, too.
    """

    rule: int
    kept: int
    relation: int
    space: Space
    test: Rule | None = None

    def contains(self, engine: Engine, triples: Triples) -> Mask:
        """Return bool[n]: which of these triples the sub-rule concludes."""
        found = self.space.contains(triples)
        if self.test is not None:
            places = np.flatnonzero(found)
            found[places] = engine.derives([self.test], triples[places])
        return found


def paper_share(
    context: Context, masks: Sequence[Sequence[int]], wanted: Mapping[Split, int]
) -> tuple[dict[Split, Found], list[str]]:
    """Draw from C⁻_train, C⁻_valid and C⁻_test, and say where that fell short.

    C⁻ = T_{R⁻}(K) ∖ P_all is split by the recipe's ratio; from each part up to the wanted number of triples
    is drawn. That is the same as to draw for one split after the other, without repetition, from all of
    C⁻, but never more than the size of the part.

    Parameters
    ----------
    context
        What negatives are made from.
    masks
        For each rule its sub-rules in R⁻.
    wanted
        How many triples to draw for each split.
    """
    parts = undesired_parts(context, masks)
    drawn, size = _drawn(context, parts, wanted)
    limits = _part_sizes(context.recipe, size)
    found: dict[Split, Found] = {}
    notes: list[str] = []
    begin = 0
    for split in SPLITS:
        end = begin + min(wanted[split], limits[split])
        triples = drawn.triples[begin:end]
        begin = end
        rule, kept = _origins(context.engine, parts, triples)
        found[split] = Found(triples, made("sub-rule", len(triples), rule=rule, kept=kept))
        if len(triples) < wanted[split]:
            what = f"its part of all {size:,}" if drawn.exhausted else reason(drawn)
            notes.append(
                f"{len(triples):,} of the {wanted[split]:,} negatives of {split} that were to come from "
                f"sub-rules do, {what}"
            )
    return found, notes


def _drawn(context: Context, parts: Sequence[Part], wanted: Mapping[Split, int]) -> tuple[Draw, int]:
    """Draw from C⁻, and return its size as well, or any number that is large enough to limit nothing."""
    space = union([part.space for part in parts])
    engine, negative = context.engine, context.truth.negative

    def accept(triples: Triples) -> Mask:
        found = concluded(engine, parts, triples)
        found[found] = negative(triples[found])
        return found

    enough = _enough(context.recipe, wanted)
    rng = generator(context.recipe.seed, "negatives", "qg", "sub-rules")
    tested = any(part.test is not None for part in parts)
    drawn = Sampler(space, rng, accept if tested else negative).take(enough)
    # If that many could not be drawn, there are no more, and they have all been counted.
    return drawn, len(drawn.triples)


def _enough(recipe: Recipe, wanted: Mapping[Split, int]) -> int:
    """Return a size from which on each part is as large as what is wanted from it."""
    shares = zip(SPLITS, recipe.shares, strict=True)
    return max(int((wanted[split] + 1) / share) + 1 for split, share in shares)


def _part_sizes(recipe: Recipe, size: int) -> dict[Split, int]:
    first, second = recipe.cuts(size)
    return dict(zip(SPLITS, (first, second - first, size - second), strict=True))


# -- T_{R⁻}(K) --------------------------------------------------------------------------------------


def undesired_parts(context: Context, masks: Sequence[Sequence[int]] | None = None) -> list[Part]:
    """Return what the minimal sub-rules of each rule conclude; together that is T_{R⁻}(K)."""
    masks = kept_masks(context.rules) if masks is None else masks
    rng = generator(context.recipe.seed, "negatives", "qg", "trials")
    chosen: dict[tuple[int, ...], list[int]] = {}  # rules of one shape share their sub-rules
    parts: list[Part] = []
    for place, rule in enumerate(context.rules):
        if context.progress:
            context.progress("evaluating sub-rules", place, len(context.rules))
        own = tuple(masks[place])
        if own not in chosen:
            chosen[own] = minimal(own)
        relation = relation_of(rule.head, context.kg)
        for kept in chosen[own]:
            smaller = sub_rule(rule, kept)
            space, exact = _conclusions(context.engine, smaller, rng)
            parts.append(Part(place, kept, relation, space, None if exact else smaller))
    return parts


def concluded(engine: Engine, parts: Sequence[Part], triples: Triples) -> Mask:
    """Return bool[n]: which triples are in T_{R⁻}(K)."""
    found = np.zeros(len(triples), dtype=bool)
    for part, places in _by_relation(parts, triples):
        places = places[~found[places]]
        found[places] = part.contains(engine, triples[places])
    return found


def _conclusions(engine: Engine, rule: Rule, rng: np.random.Generator) -> tuple[Space, bool]:
    """Return the conclusions of a rule, or a product that contains them, and which of the two."""
    relation = relation_of(rule.head, engine.graph)
    if len(rule.atoms) < 2 or len(rule.head.variables) < 2 or not _connected(engine, rule):
        return of_projection(engine.projection(rule), relation), True
    wide = rectangle_of(engine, rule)
    if len(wide) > LARGE:
        space = rectangle(wide.left, relation, wide.right)
        if engine.derives([rule], wide.draw(rng, TRIALS)).sum() >= ENOUGH:
            return space, False
        try:
            return of_projection(engine.projection(rule), relation), True
        except LimitError:
            return space, False
    return of_projection(engine.projection(rule), relation), True


def _connected(engine: Engine, rule: Rule) -> bool:
    """Say whether anything but an inequality of the two connects the variables of a head."""
    bound = bind(rule, engine.graph)
    return separate(bound, (bound.head.subject, bound.head.object)) is None


def _origins(
    engine: Engine, parts: Sequence[Part], triples: Triples
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return for each triple the first sub-rule that concludes it: the rule's place and the mask."""
    rule = np.full(len(triples), -1, dtype=np.int32)
    kept = np.zeros(len(triples), dtype=np.int32)
    for part, places in _by_relation(parts, triples):
        places = places[rule[places] < 0]
        places = places[part.contains(engine, triples[places])]
        rule[places], kept[places] = part.rule, part.kept
    return rule, kept


def _by_relation(parts: Sequence[Part], triples: Triples) -> list[tuple[Part, npt.NDArray[np.int64]]]:
    """Return with each part the places of the triples that have its relation."""
    order = np.argsort(triples[:, 1], kind="stable")
    relations = triples[order, 1]
    begins = np.searchsorted(relations, [part.relation for part in parts])
    ends = np.searchsorted(relations, [part.relation for part in parts], side="right")
    return [(part, order[begin:end]) for part, begin, end in zip(parts, begins, ends, strict=True)]
