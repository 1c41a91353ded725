"""The sub-rules of a rule that keep the same atoms, and which triples each of them concludes.

Negated atoms count as atoms here. Such sub-rules differ in the inequalities they keep: (A, I) with I ⊆ J,
where J are all inequalities over the variables of A. To ask for each I whether it concludes a triple would
take 2^|J| queries. But a witness of A violates some set V ⊆ J of inequalities, (A, I) concludes a triple iff
one of its witnesses has V ∩ I = ∅, and few sets V can occur: those that equalities of terms bring about. A
witness with exactly V is one of A with the equal terms merged and the rest of J kept, which is a rule again.
For a diamond these are at most 15 queries instead of 64; and a triple with a witness that violates nothing,
as most have, needs only one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from operator import or_

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.negatives.undesired import places, sub_rule
from loginfer.engine import Engine
from loginfer.engine.binding import relation_of
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Atom, BodyAtom, Inequality, Rule
from loginfer.logic.terms import Constant, Term

__all__ = ["Facts", "Group", "Members", "groups_of", "members"]


@dataclass(frozen=True)
class Group:
    """The sub-rules of one rule that keep the same atoms, negated ones included.

    Parameters
    ----------
    rule
        Place of the rule in R.
    whole
        The rule.
    atoms
        Mask of the atoms that are kept.
    inequalities
        Mask of J.
    masks
        Masks of the sub-rules, in the order of R⁻; atoms and inequalities.
    """

    rule: int
    whole: Rule
    atoms: int
    inequalities: int
    masks: tuple[int, ...]

    @cached_property
    def base(self) -> Rule:
        """The sub-rule without inequalities, which concludes all that the others do."""
        return sub_rule(self.whole, self.atoms)

    @cached_property
    def strict(self) -> Rule:
        """The sub-rule with all inequalities; what it concludes, all conclude. It need not be in R⁻."""
        return sub_rule(self.whole, self.atoms | self.inequalities)

    def tests(self, facts: Facts, *, loops: bool) -> list[tuple[int, Rule]]:
        """Return the sets V that a witness can violate, V = ∅ apart, with the rules that find out.

        Parameters
        ----------
        facts
            About the graph that will be asked.
        loops
            Whether triples with equal subject and object will be asked about.
        """
        numbers = places(self.inequalities)
        inequalities = tuple(part for i in numbers if isinstance(part := self.whole.body[i], Inequality))
        body, head = self.base.body, self.base.head
        found: list[tuple[int, Rule]] = []
        for broken, merged in _violations(inequalities):
            merged_head = head.rename(merged)
            if broken == 0 or (merged_head.subject == merged_head.object and not loops):
                continue
            parts = [part.rename(merged) for part in body]
            if not facts.allow(merged, parts):
                continue
            rest = [q.rename(merged) for i, q in enumerate(inequalities) if not broken >> i & 1]
            rule = Rule.known_safe((*parts, *rest), merged_head)
            found.append((sum(1 << numbers[i] for i in places(broken)), rule))
        return found


class Facts:
    """What a graph rules out at a glance.

    Parameters
    ----------
    graph
        The graph.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._looped = set(graph.looped.tolist())

    def allow(self, merged: Mapping[Term, Term], parts: Sequence[BodyAtom]) -> bool:
        """Say whether a body may have a witness after terms have been merged."""
        for name in merged.values():
            # Nothing equals a constant that the graph does not have.
            if isinstance(name, Constant) and self._graph.entities.get(name.name) is None:
                return False
        return all(
            relation_of(part, self._graph) in self._looped
            for part in parts
            if isinstance(part, Atom) and part.subject == part.object
        )


@dataclass(frozen=True, slots=True)
class Members:
    """Which sub-rules of a group conclude which triples.

    Parameters
    ----------
    every
        bool[n], triples that all of them conclude.
    loose
        int64[m], places of triples that some of them conclude, but not all.
    by
        bool[m, masks], which do.
    """

    every: npt.NDArray[np.bool_]
    loose: npt.NDArray[np.int64]
    by: npt.NDArray[np.bool_]

    def of(self, owners: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return bool[n]: whether the sub-rule that owns a triple concludes it."""
        found = self.every.copy()
        found[self.loose] = self.by[np.arange(len(self.loose)), owners[self.loose]]
        return found


def groups_of(place: int, rule: Rule, masks: Sequence[int]) -> list[Group]:
    """Return the sub-rules of a rule by the atoms they keep, fewest atoms first.

    Parameters
    ----------
    place
        Of the rule in R.
    rule
        The rule.
    masks
        Its sub-rules in R⁻.
    """
    atoms = sum(1 << i for i, part in enumerate(rule.body) if not isinstance(part, Inequality))
    return [
        Group(place, rule, kept, inequalities, group)
        for kept, inequalities, group in _by_atoms(atoms, tuple(masks))
    ]


@lru_cache(maxsize=64)
def _by_atoms(atoms: int, masks: tuple[int, ...]) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """Return atoms, all inequalities and masks of each group; rules of one shape share them."""
    found: dict[int, list[int]] = {}
    for mask in masks:
        found.setdefault(mask & atoms, []).append(mask)
    return tuple(
        (kept, reduce(or_, found[kept]) & ~atoms, tuple(found[kept]))
        for kept in sorted(found, key=lambda mask: (mask.bit_count(), mask))
    )


@lru_cache(maxsize=4096)
def _violations(inequalities: tuple[Inequality, ...]) -> tuple[tuple[int, dict[Term, Term]], ...]:
    """Return every set of inequalities that equalities of terms can violate, and nothing else.

    With each set, as a mask, come the terms to replace so that exactly these become equal.
    """
    found = []
    for mask in range(1 << len(inequalities)):
        names = _merge([inequalities[i] for i in places(mask)])
        if names is None:
            continue
        broken = 0
        for i, part in enumerate(inequalities):
            if names.get(part.left, part.left) == names.get(part.right, part.right):
                broken |= 1 << i
        if broken == mask:
            found.append((mask, names))
    return tuple(found)


def _merge(equalities: Sequence[Inequality]) -> dict[Term, Term] | None:
    """Return what to replace so that the terms on both sides are equal; None if two constants would be."""
    names: dict[Term, Term] = {}
    for part in equalities:
        left, right = names.get(part.left, part.left), names.get(part.right, part.right)
        if left == right:
            continue
        if isinstance(left, Constant):
            left, right = right, left
        if isinstance(left, Constant):
            return None
        names = {term: right if name == left else name for term, name in names.items()}
        names[left] = right
    return names


def members(engine: Engine, facts: Facts, groups: Sequence[Group], triples: Triples) -> list[Members]:
    """Say for groups of one rule which of their sub-rules conclude which triples.

    Parameters
    ----------
    engine
        Over K.
    facts
        About K.
    groups
        The groups, fewest atoms first.
    triples
        int32[n, 3].
    """
    every = _strict(engine, groups, triples)
    # What the base of a group does not conclude, no group with more atoms does.
    outside: list[tuple[int, npt.NDArray[np.bool_]]] = []
    found: list[Members] = []
    for group, known in zip(groups, every, strict=True):
        unknown = ~known
        for atoms, beyond in outside:
            if atoms & group.atoms == atoms:
                unknown &= ~beyond
        rest = np.flatnonzero(unknown)
        if len(rest) and group.inequalities:
            rest = rest[engine.derives([group.base], triples[rest])]
        elif not group.inequalities:
            rest = rest[:0]  # the base is the strict one
        inside = known.copy()
        inside[rest] = True
        outside.append((group.atoms, ~inside))
        found.append(_loose(engine, facts, group, triples, known, rest))
    return found


def _strict(engine: Engine, groups: Sequence[Group], triples: Triples) -> list[npt.NDArray[np.bool_]]:
    """Return for each group which triples its strictest sub-rule concludes."""
    found: list[npt.NDArray[np.bool_]] = []
    for group in reversed(groups):
        known = np.zeros(len(triples), dtype=bool)
        for more, concluded in zip(reversed(groups), found, strict=False):
            if (group.atoms | group.inequalities) & ~(more.atoms | more.inequalities) == 0:
                known |= concluded
        rest = np.flatnonzero(~known)
        known[rest] = engine.derives([group.strict], triples[rest])
        found.append(known)
    return found[::-1]


def _loose(
    engine: Engine,
    facts: Facts,
    group: Group,
    triples: Triples,
    every: npt.NDArray[np.bool_],
    rest: npt.NDArray[np.int64],
) -> Members:
    """Find out which sub-rules conclude the rest, which the base concludes and the strictest does not."""
    by = np.zeros((len(rest), len(group.masks)), dtype=bool)
    if len(rest):
        asked = triples[rest]
        tests = group.tests(facts, loops=bool((asked[:, 0] == asked[:, 2]).any()))
        found = engine.derivations([rule for _, rule in tests], asked)
        violates = np.zeros((len(rest), len(tests)), dtype=np.float32)
        violates[found.triple, found.rule] = 1
        broken = np.array([mask for mask, _ in tests], dtype=np.int64)[:, None]
        by = violates @ (broken & np.array(group.masks) == 0).astype(np.float32) > 0
    some = by.any(axis=1)
    return Members(every, rest[some], by[some])
