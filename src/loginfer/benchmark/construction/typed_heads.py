"""Heads that look like their bodies (`head = "typed"`): `reportsTo, manages -> worksWith`, not `-> birthDate`.

The ends of a body are the distinct x and the distinct y of the pairs that it concludes. A relation fits where both its
subjects and its objects look like these.

by types
    The type that most of the ones have is a type that most of the others have; of several as frequent one is
    enough. Types of nine in ten typed constants, such as owl:Thing, tell nothing and do not count.
by overlap
    Where neither side has types: |A ∩ B| / min(|A|, |B|) is at least 1/2.

Where no relation fits, those remain that overlap most: by the smaller overlap of the two sides, then by the sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loginfer.engine import Engine
from loginfer.errors import LimitError
from loginfer.kg.graph import Ids, Mask
from loginfer.logic.rule import Rule

OVERLAP = 0.5
_TELLS_NOTHING = 0.9


class TypedHeads:
    """Says which relations of K fit a body.

    Parameters
    ----------
    engine
        An engine over K.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        graph = engine.graph
        kind = graph.type_relation
        self._typed, types = np.empty((2, 0), np.int32) if kind is None else graph.index.pairs(kind)
        self._types = np.unique(types, return_inverse=True)[1]
        self._telling = np.bincount(self._types) < _TELLS_NOTHING * len(np.unique(self._typed))
        self._sides = {name: graph.sides(graph.relation_id(name)) for name in graph.relations.names(graph.rels)}
        self._types_of = {name: [self._frequent(side) for side in sides] for name, sides in self._sides.items()}

    def fitting(self, rule: Rule, relations: Sequence[str]) -> tuple[list[str], bool]:
        """Return those relations that fit the body of a rule, and whether any does: else they are the best ones."""
        ends = self._ends(rule)
        types = [self._frequent(end) for end in ends]
        inside = [self._mask(end) for end in ends]
        overlaps: dict[str, list[float]] = {}
        fitting = []
        for name in relations:
            sides = self._sides[name]
            overlaps[name] = [float(inside[k][sides[k]].sum()) / min(len(ends[k]), len(sides[k])) for k in range(2)]
            likeness = zip(types, self._types_of[name], overlaps[name], strict=True)
            if all(bool(mine & others) if mine or others else share >= OVERLAP for mine, others, share in likeness):
                fitting.append(name)
        if fitting:
            return fitting, True
        score = {name: (min(shares), sum(shares)) for name, shares in overlaps.items()}
        return [name for name in relations if score[name] == max(score.values())], False

    def _ends(self, rule: Rule) -> tuple[Ids, Ids]:
        try:
            pairs = self._engine.projection(rule)
            return np.unique(pairs.left), np.unique(pairs.right)
        except LimitError:  # too many pairs to hold at a time
            ends = [(np.unique(part[:, 0]), np.unique(part[:, 2])) for part in self._engine.conclusions_in_parts(rule)]
            return np.unique(np.concatenate([x for x, _ in ends])), np.unique(np.concatenate([y for _, y in ends]))

    def _mask(self, constants: Ids) -> Mask:
        mask = np.zeros(len(self._engine.graph.entities), dtype=bool)
        mask[constants] = True
        return mask

    def _frequent(self, constants: Ids) -> frozenset[int]:
        """Return the types that most of these constants have, as far as they tell anything."""
        counts = np.bincount(self._types[self._mask(constants)[self._typed]], minlength=len(self._telling))
        counts = counts * self._telling
        return frozenset(np.flatnonzero(counts == counts.max()).tolist()) if counts.any() else frozenset()
