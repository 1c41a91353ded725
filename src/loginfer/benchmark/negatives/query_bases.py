"""From what the candidates of a group of sub-rules are taken: triples listed, or a product of two sets.

A base holds every triple that some sub-rule of the group concludes, and perhaps others: who draws from it
must test. It never leaves out a triple that could be a negative; what the rule itself concludes is
left out where that is easy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import member
from loginfer.benchmark.negatives.query_groups import Group
from loginfer.engine import Engine
from loginfer.engine.binding import relation_of
from loginfer.errors import LimitError
from loginfer.kg import Triples
from loginfer.kg.triples import TripleKeys
from loginfer.logic.rule import Atom, Rule

__all__ = ["ENOUGH", "TRIALS", "Base", "Bases", "rectangle_of"]

Ids = npt.NDArray[np.int32]
Keys = npt.NDArray[np.int64]

# With so many trial draws it is found out whether one in sixteen is of use; if not, the base is narrowed.
TRIALS = 512
ENOUGH = TRIALS // 16


@dataclass(frozen=True, slots=True)
class Base:
    """A set of triples of one relation to draw from.

    Parameters
    ----------
    left, right
        Subjects and objects: side by side, or, for a product, the two sets.
    relation
        The relation.
    product
        Whether every subject goes with every object.
    rate
        About which share of the triples is of use.
    """

    left: Ids
    right: Ids
    relation: int
    product: bool
    rate: float = 1.0

    def __len__(self) -> int:
        return len(self.left) * len(self.right) if self.product else len(self.left)

    def every(self) -> Triples:
        """Return all triples."""
        if self.product:
            return self._triples(np.repeat(self.left, len(self.right)), np.tile(self.right, len(self.left)))
        return self._triples(self.left, self.right)

    def draw(self, rng: np.random.Generator, count: int) -> Triples:
        """Return random triples, each equally likely each time."""
        if self.product:
            left = rng.integers(0, len(self.left), size=count)
            right = rng.integers(0, len(self.right), size=count)
            return self._triples(self.left[left], self.right[right])
        places = rng.integers(0, len(self.left), size=count)
        return self._triples(self.left[places], self.right[places])

    def _triples(self, left: Ids, right: Ids) -> Triples:
        triples = np.empty((len(left), 3), dtype=np.int32)
        triples[:, 0], triples[:, 1], triples[:, 2] = left, self.relation, right
        return triples


def rectangle_of(engine: Engine, rule: Rule) -> Base:
    """Return the product of a rule's subjects and objects; its head has two variables."""
    head = rule.head
    left, right = (
        engine.projection(Rule.known_safe(rule.body, Atom(term, head.relation, term))).left
        for term in (head.subject, head.object)
    )
    return Base(left, right, relation_of(head, engine.graph), True)


class Bases:
    """The bases of one rule's sub-rules.

    Parameters
    ----------
    engine
        Over K.
    rule
        The rule.
    few
        Up to this many triples need not be narrowed: all can be looked at.
    rng
        For trials.
    """

    def __init__(self, engine: Engine, rule: Rule, few: int, rng: np.random.Generator) -> None:
        self._engine = engine
        self._rule = rule
        self._few = few
        self._rng = rng
        self._relation = relation_of(rule.head, engine.graph)
        self._bindings = _bindings(rule)
        self._made: dict[int, Base] = {}

    def of(self, group: Group) -> Base:
        """Return a base of a group; a small one, if that is not much work."""
        found = [self._binding(mask) for mask in self._bindings if mask & group.atoms == mask]
        base = min(found, key=len)
        if len(base) <= self._few:
            return base
        useful = self._useful(group, base)
        if useful < ENOUGH:
            try:
                narrow = self._listed(group.base)
                if not narrow.product:
                    return narrow
            except LimitError:
                pass  # bounded effort on the wide base is all that is left
        return Base(base.left, base.right, base.relation, base.product, (useful + 1) / (TRIALS + 1))

    def _useful(self, group: Group, base: Base) -> int:
        """Return how many of some random triples of a base a group concludes, but not the whole rule."""
        triples = base.draw(self._rng, TRIALS)
        triples = triples[self._engine.derives([group.base], triples)]
        return len(triples) - int(self._engine.derives([self._rule], triples).sum())

    def _binding(self, mask: int) -> Base:
        """Return the base of as few atoms as bind the head's variables."""
        if mask not in self._made:
            atoms = tuple(part for i, part in enumerate(self._rule.body) if mask >> i & 1)
            head = self._rule.head
            if len(atoms) < 2:
                base = self._listed(Rule.known_safe(atoms, head))
            else:
                base = rectangle_of(self._engine, Rule.known_safe(atoms, head))
            self._made[mask] = base
        return self._made[mask]

    def _listed(self, rule: Rule) -> Base:
        """Return the conclusions of a rule, without those of the whole rule."""
        found = self._engine.projection(rule)
        left, right = found.left, found.right
        if found.product:
            return Base(left, right, self._relation, True)
        keys = self._packing.pack(Base(left, right, self._relation, False).every())
        fresh = ~member(self._own, keys)
        return Base(left[fresh], right[fresh], self._relation, False)

    @property
    def _packing(self) -> TripleKeys:
        return self._engine.graph.keys

    @cached_property
    def _own(self) -> Keys:
        """The keys of the rule's own conclusions, sorted; none where they would be too many to list."""
        try:
            found = self._engine.projection(self._rule)
        except LimitError:
            return np.empty(0, dtype=np.int64)
        if found.product:
            return np.empty(0, dtype=np.int64)
        return self._packing.pack(Base(found.left, found.right, self._relation, False).every())


def _bindings(rule: Rule) -> list[int]:
    """Return the smallest sets of atoms that bind the variables of a rule's head, as masks."""
    wanted = set(rule.head.variables)
    held = {i: wanted & set(part.variables) for i, part in enumerate(rule.body) if isinstance(part, Atom)}
    if not wanted:
        return [0]
    found = [1 << i for i, some in held.items() if some == wanted]
    for i, some in held.items():
        for j, other in held.items():
            if i < j and some and other and some != wanted != other and some | other == wanted:
                found.append(1 << i | 1 << j)
    return found
