"""What a method finds for each split, and how that becomes a set of negatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import member
from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.sampler import Draw
from loginfer.benchmark.values import SOURCES, SPLITS, NegativeSet, Origins, Split, Splits
from loginfer.kg import Triples
from loginfer.kg.triples import TripleKeys, distinct_keys

__all__ = ["ALL", "Found", "Taken", "assemble", "in_turn", "made", "reason"]

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

    # One value for all takes no memory, however many there are.
    def column(value: npt.ArrayLike, kind: type[np.integer[Any]]) -> npt.NDArray[Any]:
        return np.broadcast_to(np.asarray(value, dtype=kind), (count,))

    return Origins(
        column(SOURCES.index(source), np.int8),
        column(position, np.int8),
        column(rule, np.int32),
        column(kept, np.int32),
        column(0, np.int8),
        column(-1, np.int32),
        column(-1, np.int32),
    )


def reason(draw: Draw) -> str:
    """Return what the triples of a draw that fell short are."""
    return ALL if draw.exhausted else f"what the first {draw.examined:,} candidates that were looked at had"


class Taken:
    """The negatives that other splits have already.

    Parameters
    ----------
    context
        What negatives are made from.
    sets
        The negatives of each split, in any order.
    """

    def __init__(self, context: Context, sets: Iterable[Triples]) -> None:
        self._keys = context.kg.keys
        # One sorted list a split, not one of all: joining them would need all of them a second time.
        self._packed = [distinct_keys(self._keys.pack(triples)) for triples in sets]

    def contains(self, triples: Triples) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which of these triples are taken."""
        wanted = self._keys.pack(triples)
        found = np.zeros(len(wanted), dtype=bool)
        for packed in self._packed:
            found |= member(packed, wanted)
        return found


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
    short = any(len(found[split].triples) < context.positives.sizes[split] for split in SPLITS[1:])
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
        one = found[split]
        triples[split], origins[split] = _in_order(one.triples, one.origins, context.kg.keys)
        if len(one.triples) < asked[split]:
            notes.append(f"{split} has {len(one.triples):,} negatives instead of {asked[split]:,}, {one.why}")
    splits = Splits(triples["train"], triples["valid"], triples["test"])
    return NegativeSet(method, splits, origins, asked, tuple(notes))


def _in_order(triples: Triples, origins: Origins, keys: TripleKeys) -> tuple[Triples, Origins]:
    """Return triples sorted, with their origins; those that are sorted already are not copied."""
    packed = keys.pack(triples)
    if (packed[1:] > packed[:-1]).all():
        return triples, origins
    order = np.argsort(packed)
    return triples[order], origins[order]
