"""What a method finds for each split, and how that becomes a set of negatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.sampler import LIMIT
from loginfer.benchmark.spaces import Draw, Space, listed
from loginfer.benchmark.values import SOURCES, SPLITS, NegativeSet, Origins, Split, Splits
from loginfer.kg import Triples

__all__ = ["ALL", "Found", "assemble", "in_turn", "made", "reason", "taken"]

# Why there are fewer negatives than asked for.
ALL = "all candidates that there are"


@dataclass(frozen=True, slots=True)
class Found:
    """The negatives of one split.

    Parameters
    ----------
    triples
        int32[n, 3], distinct, in any order.
    origins
        Where each came from.
    why
        Should there be fewer than asked for: what these are.
    """

    triples: Triples
    origins: Origins
    why: str = ALL


def made(
    source: str,
    count: int,
    *,
    position: npt.NDArray[np.int8] | int = 0,
    rule: npt.NDArray[np.int32] | int = -1,
    kept: npt.NDArray[np.int32] | int = 0,
) -> Origins:
    """Return the origins of triples from one source.

    Parameters
    ----------
    source
        A name in `SOURCES`.
    count
        How many triples there are.
    position, rule, kept
        See `Origins`; one value for all, or one for each.
    """
    return Origins(
        np.full(count, SOURCES.index(source), dtype=np.int8),
        np.full(count, position, dtype=np.int8),
        np.full(count, rule, dtype=np.int32),
        np.full(count, kept, dtype=np.int32),
        np.zeros(count, dtype=np.int8),
        np.full(count, -1, dtype=np.int32),
        np.full(count, -1, dtype=np.int32),
    )


def reason(draw: Draw) -> str:
    """Return what the triples of a draw that fell short are."""
    return ALL if draw.exhausted else f"what the first {LIMIT:,} candidates that were looked at had"


def taken(context: Context, sets: Iterable[Triples]) -> Space:
    """Return the negatives that other splits have already, as a space."""
    return listed(np.vstack([np.empty((0, 3), dtype=np.int32), *sets]), context.kg.keys)


def in_turn(
    context: Context, draw_all: Callable[[Sequence[Split]], dict[Split, Found]]
) -> dict[Split, Found]:
    """Draw for train, then valid, then test, as the text does.

    Where candidates are few, train may use up those of the others, and nothing could be evaluated. Under
    `sound` it then has to stand back: test is drawn first, then valid, and train gets what is left.

    Parameters
    ----------
    context
        What negatives are made from.
    draw_all
        Draws for splits one after the other, in the order given.
    """
    found = draw_all(SPLITS)
    short = any(len(found[split].triples) < len(context.positives[split]) for split in SPLITS[1:])
    if short and context.recipe.protocol == "sound":
        found = draw_all(SPLITS[::-1])
    return found


def assemble(
    context: Context, method: str, found: Mapping[Split, Found], wanted: Mapping[Split, int] | None = None
) -> NegativeSet:
    """Return the negatives of the three splits, sorted, with a note on each that fell short.

    As many as positives are wanted, unless `wanted` says otherwise.
    """
    sizes = context.positives.sizes if wanted is None else wanted
    asked = {str(split): size for split, size in sizes.items()}
    triples: dict[Split, Triples] = {}
    origins: dict[str, Origins] = {}
    notes: list[str] = []
    for split in SPLITS:
        order = np.argsort(context.kg.keys.pack(found[split].triples))
        triples[split] = found[split].triples[order]
        origins[split] = found[split].origins[order]
        if len(order) < asked[split]:
            notes.append(
                f"{split} has {len(order):,} negatives instead of {asked[split]:,}, {found[split].why}"
            )
    splits = Splits(triples["train"], triples["valid"], triples["test"])
    return NegativeSet(method, splits, origins, asked, tuple(notes))
