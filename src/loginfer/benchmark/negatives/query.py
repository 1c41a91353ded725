"""Query-guided sampling: conclusions of sub-rules, so that what is simpler than R is not learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.negatives.found import Found, Taken, assemble, in_turn, made
from loginfer.benchmark.negatives.position import draw_corruptions
from loginfer.benchmark.negatives.undesired import kept_masks
from loginfer.benchmark.randomness import generator
from loginfer.benchmark.values import SPLITS, NegativeSet, Origins, Split

__all__ = ["query_guided"]


def query_guided(context: Context) -> NegativeSet:
    """Draw from the conclusions of R⁻, and the rest by position-aware corruption.

    Of the negatives of each split, a fraction of |R_complex| / |R|, rounded down, comes from sub-rules, as
    far as they conclude enough: R_complex are the rules with a sub-rule in R⁻. How they are
    drawn depends on the protocol: see `query_paper` and `query_sound`.
    """
    masks = kept_masks(context.rules)
    complex_rules = sum(bool(own) for own in masks)
    wanted: dict[Split, int] = {
        split: size * complex_rules // len(context.rules) for split, size in context.positives.sizes.items()
    }
    found = {split: Found(np.empty((0, 3), dtype=np.int32), made("sub-rule", 0)) for split in SPLITS}
    notes: list[str] = []
    if complex_rules:
        if context.recipe.protocol == "paper":
            from loginfer.benchmark.negatives.query_paper import paper_share as share
        else:
            from loginfer.benchmark.negatives.query_sound import sound_share as share

        found, notes = share(context, masks, wanted)

    def draw_all(order: Sequence[Split]) -> dict[Split, Found]:
        filled = dict(found)
        for split in order:
            missing = context.positives.sizes[split] - len(found[split].triples)
            if missing:
                rng = generator(context.recipe.seed, "negatives", "qg", "position", split)
                before = Taken(context, (known.triples for known in filled.values()))
                rest = draw_corruptions(context, split, missing, rng, before)
                filled[split] = _together(found[split], rest)
        return filled

    negatives = assemble(context, "qg", in_turn(context, draw_all))
    return replace(negatives, notes=(*notes, *negatives.notes))


def _together(first: Found, second: Found) -> Found:
    columns = [column.name for column in fields(Origins)]
    origins = Origins(
        *(
            np.concatenate([getattr(first.origins, column), getattr(second.origins, column)])
            for column in columns
        )
    )
    return Found(np.vstack([first.triples, second.triples]), origins, second.why)
