"""In which order the atoms of a near miss are looked up, from one end of its conclusion to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import places_of
from loginfer.engine.binding import ABSENT, relation_of
from loginfer.kg import KnowledgeGraph
from loginfer.logic.near_misses import Edit
from loginfer.logic.rule import Atom, BodyAtom, Inequality, Rule
from loginfer.logic.terms import Constant, Term, Variable

__all__ = ["ANY", "NONE_OF", "RELATION", "Ends", "Index", "Plan", "ends_of", "plan"]

Ints = npt.NDArray[np.int64]

# What a step asks for: a relation, any relation but one, or that nothing fits.
RELATION, ANY, NONE_OF = 0, 1, 2
# A relation that is not left out of any: the graph does not have the one that was replaced.
NOWHERE = -2


@dataclass(frozen=True)
class Index:
    """A graph as the kernels see it: by relation, and whatever the relation."""

    graph: KnowledgeGraph

    @cached_property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The pairs of each relation, the edges of each entity, and the distinct pairs of all relations."""
        index = self.graph.index
        return (
            index.offsets,
            index.subjects,
            index.columns[: index.size],
            *self._edges(0, 2),
            *self._edges(2, 0),
            *self._pairs(0, 2),
            *self._pairs(2, 0),
        )

    def _edges(self, first: int, second: int) -> tuple[Ints, Ints]:
        """Return row pointers and the edges of each entity, by relation: it is the upper half of a key."""
        graph = self.graph
        triples = graph.triples.astype(np.int64)
        keys = (triples[:, 1] << 32) + triples[:, second]
        keys = keys[np.lexsort((keys, triples[:, first]))]
        return _pointers(triples[:, first], len(graph.entities)), keys

    @cached_property
    def _spreads(self) -> dict[int | None, tuple[float, float, float]]:
        return {}

    def spread(self, relation: int | None) -> tuple[float, float, float]:
        """Return how many objects a subject has, how many subjects an object has, and how many pairs exist.

        Of a relation, or of all with None. Those with many are met more often, so they count more.
        """
        if relation not in self._spreads:
            index = self.graph.index
            if relation is None:
                out, into = np.diff(self.arrays[7]), np.diff(self.arrays[10])
            else:
                part = slice(int(index.offsets[relation]), int(index.offsets[relation + 1]))
                out, into = np.bincount(index.subjects[part]), np.bincount(index.inverse_objects[part])
            pairs = float(out.sum())
            mean = [float((d.astype(np.float64) ** 2).sum() / max(pairs, 1.0)) for d in (out, into)]
            self._spreads[relation] = (mean[0], mean[1], pairs)
        return self._spreads[relation]

    def another(self, relation: int, subjects: Ints, objects: Ints) -> Ints:
        """Return for each pair the least relation but one that connects it; -1 for none."""
        found = np.full(len(subjects), -1, dtype=np.int64)
        pairs, first, count, relations = self._by_pair
        there, places = places_of(pairs, subjects * len(self.graph.entities) + objects)
        there &= (subjects >= 0) & (objects >= 0)
        for turn in (1, 0):
            asked = there & (count[places] > turn) if len(pairs) else there
            at = first[places[asked]] + turn
            found[asked] = np.where(relations[at] != relation, relations[at], found[asked])
        return found

    @cached_property
    def _by_pair(self) -> tuple[Ints, Ints, Ints, npt.NDArray[np.int32]]:
        return self._sorted(0, 2)

    def _sorted(self, first: int, second: int) -> tuple[Ints, Ints, Ints, npt.NDArray[np.int32]]:
        """Return the distinct pairs, where each begins in the list of relations, their numbers, the list."""
        graph = self.graph
        triples = graph.triples
        if graph.type_relation is not None:
            triples = triples[triples[:, 1] != graph.type_relation]
        keys = triples[:, first].astype(np.int64) * len(graph.entities) + triples[:, second]
        order = np.lexsort((triples[:, 1], keys))
        distinct, start, count = np.unique(keys[order], return_index=True, return_counts=True)
        return distinct, start, count, triples[order, 1]

    def _pairs(self, first: int, second: int) -> tuple[npt.NDArray[Any], ...]:
        """Return row pointers, the other ends, and the one relation of a pair, -1 where there are several."""
        entities = len(self.graph.entities)
        distinct, start, count, relations = self._sorted(first, second)
        only = np.where(count == 1, relations[start], -1).astype(np.int32)
        pointers = _pointers(distinct // max(entities, 1), entities)
        return pointers, (distinct % max(entities, 1)).astype(np.int32), only


def _pointers(rows: Ints, count: int) -> Ints:
    """Return where each row begins in a list that is sorted by row, and where the last one ends."""
    pointers = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=pointers[1:])
    return pointers


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of a rule's conclusions.

    Parameters
    ----------
    free
        The variables of the head, subject first: two, one or none.
    columns
        The position in a triple, 0 or 2, of each of them.
    """

    free: tuple[Variable, ...]
    columns: tuple[int, ...]


def ends_of(rule: Rule) -> Ends:
    """Return the ends of a rule's conclusions."""
    free = rule.head.variables
    return Ends(free, tuple(2 * rule.head.terms.index(variable) for variable in free))


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a search.

    Parameters
    ----------
    steps
        int64[k, 6], see `near_miss_kernels`.
    unequal
        int64[q, 2], the inequalities in the order in which steps complete them.
    size
        How many variables there are.
    numbers
        Of the rule's variables; two that were made equal have the same.
    wildcard
        The atom whose relation or type was replaced, as bound terms; None for other edits.
    """

    steps: Ints
    unequal: Ints
    size: int
    numbers: Mapping[Variable, int]
    wildcard: tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class _Step:
    what: int
    relation: int
    subject: int
    object: int


def plan(rule: Rule, edit: Edit, index: Index, bound: Sequence[Variable]) -> Plan | None:
    """Return the steps of a search for what a near miss concludes; None if it never concludes anything.

    Where an inequality between variables is dropped, they are made equal: a witness in which they differ is
    one of the rule itself.

    Parameters
    ----------
    rule, edit
        The near miss.
    index
        The graph in which it is evaluated.
    bound
        Variables that have a value from the start.
    """
    terms = _Terms(index.graph, rule.variables)
    if edit.kind == "drop-inequality":
        terms.merge(rule.body[edit.part])
    steps: list[_Step] = []
    unequal: list[tuple[int, int]] = []
    wildcard: tuple[int, int, int] | None = None
    for place, part in enumerate(rule.body):
        kind = edit.kind if place == edit.part else ""
        if kind.startswith("drop"):
            continue
        if isinstance(part, Inequality):
            pair = tuple(map(terms.number, part.terms))
            if None not in pair:  # a constant that the graph does not have differs from all others
                unequal.append(pair)  # type: ignore[arg-type]
            continue
        step = terms.step(part, kind, unequal)
        if step is None:
            return None
        if kind == "replace":
            wildcard = (step.subject, step.relation, step.object)
        if step.relation != ABSENT:  # nothing to forbid otherwise
            steps.append(step)
    if any(left == right for left, right in unequal):
        return None
    rows, pairs = _ordered(steps, unequal, {terms.numbers[v] for v in bound}, index)
    numbers = {v: terms.numbers[v] for v in rule.variables}
    return Plan(rows, pairs, terms.size, numbers, wildcard)


class _Terms:
    """Gives the terms of a rule numbers: variables 0, 1, …, constants the complement of their ids."""

    def __init__(self, graph: KnowledgeGraph, variables: Sequence[Variable]) -> None:
        self.graph = graph
        self.numbers: dict[Term, int] = {v: i for i, v in enumerate(variables)}
        self.size = len(variables)

    def merge(self, part: BodyAtom) -> None:
        """Make both sides of an inequality the same variable; one with a constant is just forgotten."""
        left, right = part.terms
        if isinstance(left, Variable) and isinstance(right, Variable):
            old, new = self.numbers[left], self.numbers[right]
            self.numbers = {term: new if number == old else number for term, number in self.numbers.items()}

    def number(self, term: Term) -> int | None:
        """Return the number of a term; None for a constant that the graph does not have."""
        if isinstance(term, Constant):
            place = self.graph.entities.get(term.name)
            return None if place is None else ~place
        if term not in self.numbers:
            self.numbers[term] = self.size
            self.size += 1
        return self.numbers[term]

    def _has_loop(self, relation: int) -> bool:
        """Say whether a relation connects something with itself."""
        own = self.graph.triples[self.graph.triples[:, 1] == relation]
        return bool((own[:, 0] == own[:, 2]).any())

    def step(self, part: Any, kind: str, unequal: list[tuple[int, int]]) -> _Step | None:
        """Return the step for an atom or a negated atom; None for an atom that never holds."""
        atom: Atom = part if isinstance(part, Atom) else part.atom
        relation = relation_of(atom, self.graph)
        if not isinstance(part, Atom) and atom.subject == atom.object and atom.subject not in self.numbers:
            # not (z,R,z): the same for all witnesses.
            return None if self._has_loop(relation) else _Step(NONE_OF, ABSENT, 0, 0)
        subject, object_ = map(self.number, atom.terms)
        if kind == "replace" and atom.is_type:
            # Any type but one: a further variable that must differ from it.
            fresh, self.size = self.size, self.size + 1
            if object_ is not None:
                unequal.append((fresh, object_))
            object_ = fresh
        if not isinstance(part, Atom):
            absent = relation == ABSENT or subject is None or object_ is None
            return _Step(NONE_OF, ABSENT if absent else relation, subject or 0, object_ or 0)
        if subject is None or object_ is None or (relation == ABSENT and (kind != "replace" or atom.is_type)):
            return None
        if kind == "replace" and not atom.is_type:
            return _Step(ANY, relation if relation != ABSENT else NOWHERE, subject, object_)
        if kind == "reverse":
            subject, object_ = object_, subject
        return _Step(RELATION, relation, subject, object_)


def _ordered(
    steps: Sequence[_Step], unequal: Sequence[tuple[int, int]], known: set[int], index: Index
) -> tuple[Ints, Ints]:
    """Put steps into an order: the next one is that which should give the fewest values."""
    pending, waiting = list(steps), list(unequal)
    rows: list[tuple[int, ...]] = []
    pairs: list[tuple[int, int]] = []
    known = set(known)
    while pending:
        # A negated atom waits for the values of the others; what is still open then stands for anything.
        givers = [s for s in pending if s.what != NONE_OF] or pending
        best = min(givers, key=lambda s: (_values(s, known, index), steps.index(s)))
        pending.remove(best)
        if best.what != NONE_OF:
            known |= {t for t in (best.subject, best.object) if t >= 0}
        done = [p for p in waiting if all(t < 0 or t in known for t in p)]
        waiting = [p for p in waiting if p not in done]
        rows.append((best.what, best.relation, best.subject, best.object, len(pairs), len(pairs) + len(done)))
        pairs += done
    return (
        np.array(rows, dtype=np.int64).reshape(-1, 6),
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
    )


def _values(step: _Step, known: set[int], index: Index) -> float:
    """Return how many values a step should give: none to speak of for a check, all pairs for an open one."""
    bound = [t < 0 or t in known for t in (step.subject, step.object)]
    if all(bound):
        return 0.0
    out, into, every = index.spread(step.relation if step.what == RELATION else None)
    if bound[0]:
        return out
    return into if bound[1] else every
