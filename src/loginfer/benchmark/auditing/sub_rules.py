"""Which sub-rules conclude which triples, for many sub-rules at once.

Sub-rules of a rule that keep the same atoms A, negated ones included, differ in the inequalities they keep,
out of all J that A binds. A witness of A violates some set V ⊆ J; a sub-rule that keeps I concludes a triple
iff one of the triple's witnesses has V ∩ I = ∅. Only few sets V are possible, since x = y and y = z bring
x = z about. Whether a triple has a witness with exactly V is a question to one rule: A with the equal terms
made one, and J ∖ V.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.negatives.undesired import places, sub_rule
from loginfer.engine import Engine
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Inequality, Rule
from loginfer.logic.terms import Constant, Term, Variable

__all__ = ["Concluded", "SubRules", "by_atoms", "concluded"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SubRules:
    """Sub-rules of one rule that keep the same atoms, negated ones included.

    Parameters
    ----------
    rule
        The rule.
    atoms
        Mask of the atoms that are kept.
    bound
        Mask of all inequalities over variables of these atoms.
    masks
        Masks of the sub-rules: atoms and inequalities.
    """

    rule: Rule
    atoms: int
    bound: int
    masks: tuple[int, ...]

    @cached_property
    def weakest(self) -> Rule:
        """The atoms without inequalities: concludes all that any of the sub-rules does."""
        return sub_rule(self.rule, self.atoms)

    @cached_property
    def strictest(self) -> Rule:
        """The atoms with all inequalities: what it concludes, all of the sub-rules do."""
        return sub_rule(self.rule, self.atoms | self.bound)

    def violations(self, graph: KnowledgeGraph, *, loops: bool) -> list[tuple[int, Rule]]:
        """Return each possible V but ∅, as a mask, with the rule whose witnesses violate exactly V.

        Without `loops`, those are left out that conclude only triples whose subject is their object.
        """
        numbers = places(self.bound)
        parts = [self.rule.body[i] for i in numbers]
        pairs = tuple(part.terms for part in parts if isinstance(part, Inequality))
        found = []
        for broken, names in _equalities(pairs):
            if any(isinstance(t, Constant) and graph.entities.get(t.name) is None for _, t in names):
                continue  # no constant of the graph equals one that it does not have
            renamed = dict(names)
            head = self.rule.head.rename(renamed)
            if head.subject == head.object and not loops:
                continue
            kept = [parts[i] for i in range(len(parts)) if not broken >> i & 1]
            body = tuple(part.rename(renamed) for part in (*self.weakest.body, *kept))
            mask = sum(1 << numbers[i] for i in places(broken))
            found.append((mask, Rule.known_safe(body, head)))
        return found


@lru_cache(maxsize=1024)
def _equalities(
    pairs: tuple[tuple[Term, Term], ...],
) -> tuple[tuple[int, tuple[tuple[Term, Term], ...]], ...]:
    """Return every non-empty set of pairs that can be equal while the others differ, with what to rename."""
    found: dict[int, tuple[tuple[Term, Term], ...]] = {}
    for size in range(1, len(pairs) + 1):
        for chosen in combinations(range(len(pairs)), size):
            names = _made_equal([pairs[i] for i in chosen])
            if names is None:
                continue
            equal = sum(1 << i for i, (a, b) in enumerate(pairs) if names.get(a, a) == names.get(b, b))
            found.setdefault(equal, tuple(names.items()))
    return tuple(found.items())


def _made_equal(pairs: Sequence[tuple[Term, Term]]) -> dict[Term, Term] | None:
    """Return what to rename so that the terms of each pair are one; None if two constants had to be."""
    classes: list[set[Term]] = []
    for pair in pairs:
        touched = [known for known in classes if known & set(pair)]
        classes = [known for known in classes if not known & set(pair)]
        classes.append(set(pair).union(*touched))
    names: dict[Term, Term] = {}
    for together in classes:
        constants = [term for term in together if isinstance(term, Constant)]
        if len(constants) > 1:
            return None
        chosen = constants[0] if constants else min(t for t in together if isinstance(t, Variable))
        names.update(dict.fromkeys(together, chosen))
    return names


@dataclass(frozen=True, slots=True)
class Concluded:
    """Which sub-rules conclude which triples.

    Parameters
    ----------
    every
        bool[n], triples that all of them conclude.
    others
        int64[m], places of triples that the strictest does not conclude, but the weakest does.
    by
        bool[m, masks], which of the sub-rules do.
    """

    every: Mask
    others: npt.NDArray[np.int64]
    by: Mask

    def any_of(self) -> Mask:
        """Return bool[masks]: which sub-rules conclude some triple."""
        return np.asarray(self.by.any(axis=0) | bool(self.every.any()))

    def by_owner(self, owners: npt.NDArray[np.int64]) -> Mask:
        """Return bool[n]: whether each triple is concluded by the sub-rule at its owner's place."""
        found = self.every.copy()
        found[self.others] = self.by[np.arange(len(self.others)), owners[self.others]]
        return found


def by_atoms(rule: Rule, masks: Sequence[int]) -> list[SubRules]:
    """Return sub-rules of a rule by the atoms they keep, fewest first."""
    atoms = sum(1 << i for i, part in enumerate(rule.body) if not isinstance(part, Inequality))
    found: dict[int, list[int]] = {}
    for mask in masks:
        found.setdefault(mask & atoms, []).append(mask)
    made = []
    for kept in sorted(found, key=lambda mask: (mask.bit_count(), mask)):
        variables = {v for i in places(kept) for v in rule.body[i].variables}
        bound = sum(
            1 << i
            for i, part in enumerate(rule.body)
            if isinstance(part, Inequality) and variables.issuperset(part.variables)
        )
        made.append(SubRules(rule, kept, bound, tuple(found[kept])))
    return made


def concluded(engine: Engine, sub_rules: SubRules, triples: Triples, *, within: bool = False) -> Concluded:
    """Say which of these sub-rules conclude which triples.

    Parameters
    ----------
    engine
        An engine over K.
    sub_rules
        The sub-rules.
    triples
        int32[n, 3].
    within
        Whether it is known that the weakest concludes all of them.
    """
    every = engine.derives([sub_rules.strictest], triples)
    others = np.flatnonzero(~every)
    if not sub_rules.bound:
        others = others[:0]
    if len(others) and not within:
        others = others[engine.derives([sub_rules.weakest], triples[others])]
    by = np.zeros((len(others), len(sub_rules.masks)), dtype=bool)
    if len(others):
        asked = triples[others]
        loops = bool((asked[:, 0] == asked[:, 2]).any())
        violations = sub_rules.violations(engine.graph, loops=loops)
        found = engine.derivations([rule for _, rule in violations], asked)
        sets = np.array([mask for mask, _ in violations], dtype=np.int64)
        fits = sets[:, None] & np.array(sub_rules.masks, dtype=np.int64) == 0
        np.logical_or.at(by, found.triple, fits[found.rule])
    return Concluded(every, others, by)
