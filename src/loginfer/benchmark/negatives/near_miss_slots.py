"""Which near misses are wanted: for each split and head as many as it has conclusions, in equal shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.complements import complement_share, connected_otherwise
from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.randomness import generator, hash_order, salt
from loginfer.benchmark.values import SPLITS
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.near_misses import Edit, edits_of, is_own_complement
from loginfer.logic.rule import Rule
from loginfer.logic.terms import Constant

__all__ = ["Slots", "heads_of", "slots_of"]

Ints = npt.NDArray[np.int64]

# A head, a rule and an edit (-1 for none), and conclusions, one for each slot.
_Share: TypeAlias = tuple[int, int, int, Triples]


@dataclass(frozen=True, slots=True)
class Slots:
    """Places for negatives, each beside a conclusion of its split with the same head.

    Parameters
    ----------
    split
        int8[n], places in `SPLITS`.
    head
        int64[n], the predicate of the head (see `heads_of`).
    rule, edit
        int64[n]: the rule of R, and which of its edits; -1 where a near miss is not wanted.
    conclusion
        int32[n, 3], a conclusion of that rule; of any rule with that head where `rule` is -1.
    salt
        uint64[n], for all that is random about a slot.
    edits
        For each rule of R its edits.
    """

    split: npt.NDArray[np.int8]
    head: Ints
    rule: Ints
    edit: Ints
    conclusion: Triples
    salt: npt.NDArray[np.uint64]
    edits: tuple[tuple[Edit, ...], ...]

    def __len__(self) -> int:
        return len(self.split)


def heads_of(graph: KnowledgeGraph, triples: Triples) -> Ints:
    """Return int64[n], a number for each triple's predicate: its relation, or for a type triple its type."""
    relations = triples[:, 1].astype(np.int64)
    if graph.type_relation is None:
        return relations
    types = len(graph.relations) + triples[:, 2].astype(np.int64)
    return np.where(relations == graph.type_relation, types, relations)


def slots_of(context: Context) -> Slots:
    """Return the slots of all splits.

    Each split has as many slots for a head as it has conclusions with it, so that the head says nothing. The
    pairs (rule, edit) of the rules with that head, as far as they have conclusions in the split, get equal
    numbers of slots, and go through the rule's conclusions in a random order, from the beginning again
    where there are fewer. Near misses of a rule whose only near miss is its complement get a part only, see
    `complement_share`; the other slots are without one. So are all those of a head whose rules have no near
    misses.
    """
    edits = tuple(_edits(rule) for rule in context.rules)
    rows = [(place, *row) for place in range(len(SPLITS)) for row in _of_split(context, place, edits)]
    counts = [len(row[4]) for row in rows]
    split, head, rule, edit = (
        np.repeat(np.array([row[i] for row in rows], dtype=np.int64), counts) for i in range(4)
    )
    conclusion = np.concatenate([np.empty((0, 3), dtype=np.int32), *(row[4] for row in rows)])
    return Slots(split.astype(np.int8), head, rule, edit, conclusion, _salts(context, len(split)), edits)


def _edits(rule: Rule) -> tuple[Edit, ...]:
    """Return the edits of a rule; none where conclusions of one rule have several types as heads."""
    one = not rule.head.is_type or isinstance(rule.head.object, Constant)
    return edits_of(rule) if one else ()


def first_served(context: Context, slots: Slots) -> npt.NDArray[np.bool_]:
    """Return bool[n]: the slots of valid and test for rules whose only near miss is their complement.

    There are few of those, and train has most of the slots. What is evaluated has to be as it should be.
    """
    complement = np.array([*map(is_own_complement, context.rules), False], dtype=bool)  # -1 is the last one
    return np.asarray((slots.split > 0) & complement[slots.rule])


def _salts(context: Context, count: int) -> npt.NDArray[np.uint64]:
    rng = generator(context.recipe.seed, "negatives", "nm", "salts")
    return rng.integers(0, 2**63, size=count, dtype=np.int64).astype(np.uint64)


def _of_split(context: Context, place: int, edits: Sequence[Sequence[Edit]]) -> list[_Share]:
    """Return the shares of one split."""
    split = SPLITS[place]
    triples = context.conclusions[split]
    heads = heads_of(context.kg, triples)
    found = context.engine.derivations(context.rules, triples)
    own = {rule: triples[found.triple[found.rule == rule]] for rule in np.unique(found.rule).tolist()}
    rows: list[_Share] = []
    by_head: dict[int, list[int]] = {}
    for rule, concluded in own.items():
        if edits[rule]:
            by_head.setdefault(int(heads_of(context.kg, concluded[:1])[0]), []).append(rule)
    numbers, sizes = np.unique(heads, return_counts=True)
    for head, size in zip(numbers.tolist(), sizes.tolist(), strict=True):
        rules = by_head.get(head, [])
        wanted = _wanted(context, rules, own, size)
        rows += _shares(context, split, head, rules, own, edits, wanted)
        if size > wanted:
            spare = triples[heads == head]
            rows.append((head, -1, -1, _cycled(context, spare, size - wanted, split, head, "spare")))
    return rows


def _wanted(context: Context, rules: Sequence[int], own: Mapping[int, Triples], size: int) -> int:
    """Return how many near misses are wanted among a head's negatives."""
    if not rules:
        return 0
    if not all(is_own_complement(context.rules[rule]) for rule in rules):
        return size
    found = [connected_otherwise(context.base, own[rule], context.rules[rule]) for rule in rules]
    return min(ceil(size * complement_share(float(np.concatenate(found).mean()))), size)


def _shares(
    context: Context,
    split: str,
    head: int,
    rules: Sequence[int],
    own: Mapping[int, Triples],
    edits: Sequence[Sequence[Edit]],
    wanted: int,
) -> list[_Share]:
    """Return the shares of the pairs (rule, edit) of a head."""
    pairs = [(rule, edit) for rule in sorted(rules) for edit in range(len(edits[rule]))]
    if not pairs:
        return []
    each, rest = divmod(wanted, len(pairs))
    names = np.array([rule * 64 + edit for rule, edit in pairs], dtype=np.int64)
    order = hash_order(names, salt(context.recipe.seed, "negatives", "nm", "shares", split, head))
    more = np.zeros(len(pairs), dtype=np.int64)
    more[order[:rest]] = 1
    return [
        (head, rule, edit, _cycled(context, own[rule], each + int(one), split, rule, edit))
        for (rule, edit), one in zip(pairs, more, strict=True)
        if each + one
    ]


def _cycled(context: Context, triples: Triples, count: int, *stage: object) -> Triples:
    """Return `count` of these triples in a random order, again and again where there are fewer."""
    order = hash_order(
        context.kg.keys.pack(triples), salt(context.recipe.seed, "negatives", "nm", "anchors", *stage)
    )
    return triples[np.resize(order, count)]
