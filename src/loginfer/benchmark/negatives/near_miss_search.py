"""What near misses conclude: from one end of a conclusion, which constants could stand at the other.

A near miss is a rule with one edit in its body. `plan` says in which order the atoms of the edited body are
looked up; `NearMissSearch` answers many requests at once, each from an anchor: a value of one of the head's
variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.negatives.near_miss_kernels import ANY, NONE_OF, RELATION, every_end, first_witness, propose
from loginfer.benchmark.shortcuts import SimpBLScorer
from loginfer.engine.binding import ABSENT, relation_of
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Ints, Mask, distinct_keys, even_parts, grouped, member, places_of, run_starts
from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Rule, Term, Variable
from loginfer.logic.subrules import Edit, is_own_complement

# After this many values, the search for the other ends of an anchor is given up. What it
# has found by then was met in an order that is random at each step, but not uniform over all ends.
BUDGET = 2**11
# Leaves no relation out: the graph does not have the one that was replaced.
NOWHERE = -2


# -- the graph -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchIndex:
    """A graph as the kernels see it: by relation, by entity, and whatever the relation."""

    graph: KnowledgeGraph
    _spreads: dict[int | None, tuple[float, float, float]] = field(default_factory=dict)

    @cached_property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The pairs of each relation, the steps from each entity, and the distinct pairs of all relations."""
        index, steps = self.graph.index, self.graph.steps
        by_relation = (index.offsets, index.subjects, index.objects)
        return *by_relation, steps.pointers, steps.steps, steps.ends, *self._neighbours(0, 2), *self._neighbours(2, 0)

    def spread(self, relation: int | None) -> tuple[float, float, float]:
        """Return how many objects a subject has, how many subjects an object has, and how many pairs exist.

        Of a relation, or of all with None. Those with many are met more often, so they count more.
        """
        if relation not in self._spreads:
            if relation is None:
                out, into = np.diff(self.arrays[6]), np.diff(self.arrays[9])
            else:
                index = self.graph.index
                out, into = (np.bincount(ends[0]) for ends in (index.pairs(relation), index.inverse_pairs(relation)))
            pairs = float(out.sum())
            mean = [float((d.astype(np.float64) ** 2).sum() / max(pairs, 1.0)) for d in (out, into)]
            self._spreads[relation] = (mean[0], mean[1], pairs)
        return self._spreads[relation]

    def another(self, relation: int, subjects: Ints, objects: Ints) -> Ints:
        """Return for each pair the least relation but one that connects it; -1 for none."""
        other = np.full(len(subjects), -1, dtype=np.int64)
        pairs, first, count, relations = self._by_pair
        connected, indices = places_of(pairs, subjects * len(self.graph.entities) + objects)
        connected &= (subjects >= 0) & (objects >= 0)
        for turn in (1, 0):
            eligible = connected & (count[indices] > turn) if len(pairs) else connected
            at = first[indices[eligible]] + turn
            other[eligible] = np.where(relations[at] != relation, relations[at], other[eligible])
        return other

    @cached_property
    def _by_pair(self) -> tuple[Ints, Ints, Ints, Ids]:
        return self._distinct_pairs(0, 2)

    def _distinct_pairs(self, first: int, second: int) -> tuple[Ints, Ints, Ints, Ids]:
        """Return the distinct pairs, where each begins in the list of relations, their numbers, the list."""
        graph = self.graph
        triples = graph.triples
        if graph.type_relation is not None:
            triples = triples[triples[:, 1] != graph.type_relation]
        keys = triples[:, first].astype(np.int64) * len(graph.entities) + triples[:, second]
        order = np.lexsort((triples[:, 1], keys))
        distinct, start, count = np.unique(keys[order], return_index=True, return_counts=True)
        return distinct, start, count, triples[order, 1]

    def _neighbours(self, first: int, second: int) -> tuple[npt.NDArray[Any], ...]:
        """Return row pointers, the other ends, and the one relation of a pair, -1 where there are several."""
        entities = len(self.graph.entities)
        distinct, start, count, relations = self._by_pair if first == 0 else self._distinct_pairs(first, second)
        only = np.where(count == 1, relations[start], -1).astype(np.int32)
        pointers = np.searchsorted(distinct, np.arange(entities + 1, dtype=np.int64) * entities)
        return pointers, (distinct % max(entities, 1)).astype(np.int32), only


# -- plans ---------------------------------------------------------------------------------------------


class Ends(NamedTuple):
    """The variables of a rule's head, subject first: two, one or none; and the column of each, 0 or 2."""

    free: tuple[Variable, ...]
    columns: tuple[int, ...]


def ends_of(rule: Rule) -> Ends:
    """Return the ends of a rule's conclusions."""
    free = rule.head.variables
    return Ends(free, tuple(2 * rule.head.terms.index(variable) for variable in free))


@dataclass(frozen=True, slots=True)
class SearchPlan:
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


class _Step(NamedTuple):
    what: int
    relation: int
    subject: int
    object: int


def plan(rule: Rule, edit: Edit, index: SearchIndex, bound: Sequence[Variable]) -> SearchPlan | None:
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
    for number, part in enumerate(rule.body):
        kind = edit.kind if number == edit.part else ""
        if kind.startswith("drop"):
            continue
        if isinstance(part, Inequality):
            left, right = map(terms.number, part.terms)
            if left is not None and right is not None:  # a constant that is not there differs from all others
                unequal.append((left, right))
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
    return SearchPlan(rows, pairs, terms.size, {v: terms.numbers[v] for v in rule.variables}, wildcard)


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
            entity = self.graph.entities.get(term.name)
            return None if entity is None else ~entity
        if term not in self.numbers:
            self.numbers[term] = self._fresh()
        return self.numbers[term]

    def _fresh(self) -> int:
        self.size += 1
        return self.size - 1

    def step(self, part: Any, kind: str, unequal: list[tuple[int, int]]) -> _Step | None:
        """Return the step for an atom or a negated atom; None for an atom that never holds."""
        atom: Atom = part if isinstance(part, Atom) else part.atom
        relation = relation_of(atom, self.graph)
        if not isinstance(part, Atom) and atom.subject == atom.object and atom.subject not in self.numbers:
            # not (z,R,z): the same for all witnesses.
            return None if relation in self.graph.looped else _Step(NONE_OF, ABSENT, 0, 0)
        subject, object_ = map(self.number, atom.terms)
        if kind == "replace" and atom.is_type:
            # Any type but one: a further variable that must differ from it.
            other = self._fresh()
            if object_ is not None:
                unequal.append((other, object_))
            object_ = other
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
    steps: Sequence[_Step], unequal: Sequence[tuple[int, int]], bound: set[int], index: SearchIndex
) -> tuple[Ints, Ints]:
    """Put steps into an order: the next one is that which should give the fewest values."""

    def has_value(term: int) -> bool:
        return term < 0 or term in bound

    def values(step: _Step) -> float:
        """Return how many values a step should give: none to speak of for a check, all pairs for an open one."""
        subject, object_ = has_value(step.subject), has_value(step.object)
        if subject and object_:
            return 0.0
        out, into, total = index.spread(step.relation if step.what == RELATION else None)
        return out if subject else into if object_ else total

    pending, waiting = list(steps), list(unequal)
    rows: list[tuple[int, ...]] = []
    pairs: list[tuple[int, int]] = []
    while pending:
        # A negated atom waits for the values of the others; what is still open then stands for anything.
        givers = [s for s in pending if s.what != NONE_OF] or pending
        best = min(givers, key=lambda s: (values(s), steps.index(s)))
        pending.remove(best)
        if best.what != NONE_OF:
            bound |= {t for t in (best.subject, best.object) if t >= 0}
        done = [pair for pair in waiting if all(map(has_value, pair))]
        waiting = [pair for pair in waiting if pair not in done]
        rows.append((*best, len(pairs), len(pairs) + len(done)))
        pairs += done
    return np.array(rows, dtype=np.int64).reshape(-1, 6), np.array(pairs, dtype=np.int64).reshape(-1, 2)


# -- searches ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Requests:
    """Near misses that slots ask for.

    Parameters
    ----------
    slot
        int64[n], indices of slots.
    rule, edit
        int64[n], the near miss.
    side
        int64[n], which of the head's variables is the anchor: 0 or 1.
    anchor
        int64[n], its value.
    """

    slot: Ints
    rule: Ints
    edit: Ints
    side: Ints
    anchor: Ints

    def __getitem__(self, rows: npt.NDArray[Any]) -> Requests:
        return Requests(*(getattr(self, column.name)[rows] for column in fields(self)))

    def __len__(self) -> int:
        return len(self.slot)


@dataclass
class NearMissSearch:
    """Finds candidates; plans and whole sets of ends are computed once.

    Parameters
    ----------
    context
        What negatives are made from.
    edits
        For each rule of R its edits.
    salts
        uint64[slots], which decide the order of each slot's candidates.
    budget
        See `BUDGET`.
    """

    context: Context
    edits: Sequence[Sequence[Edit]]
    salts: npt.NDArray[np.uint64]
    budget: int = BUDGET
    spent: int = 0
    searched: int = 0
    _plans: dict[tuple[int, int, int], SearchPlan | None] = field(default_factory=dict)
    _forms: dict[tuple[int, int, int], tuple[int, ...]] = field(default_factory=dict)
    _every: dict[tuple[int, int], Ints] = field(default_factory=dict)
    _stamp: int = 0
    _marks: list[Ints] = field(default_factory=list)

    @cached_property
    def index(self) -> SearchIndex:
        """The graph K as the kernels see it."""
        return SearchIndex(self.context.kg)

    @cached_property
    def ends(self) -> tuple[Ends, ...]:
        """The ends of each rule's conclusions."""
        return tuple(map(ends_of, self.context.rules))

    def anchored(self, rule: int) -> bool:
        """Say whether the conclusions of a rule have two ends that can be told apart."""
        return len(self.ends[rule].free) == 2

    def plan(self, rule: int, edit: int, side: int) -> SearchPlan | None:
        """Return the plan from one end; side 2 is from both, side -1 from none."""
        key = (rule, edit, side)
        if key not in self._plans:
            free = self.ends[rule].free
            bound = {-1: (), 2: free}.get(side, free[side : side + 1])
            self._plans[key] = plan(self.context.rules[rule], self.edits[rule][edit], self.index, bound)
        return self._plans[key]

    def negative(self, keys: Ints) -> Mask:
        """Return for each key, -1 for none, whether its triple is truly negative."""
        distinct = distinct_keys(keys[keys >= 0])
        triples = self.context.kg.keys.unpack(distinct)
        is_negative = self.context.truth.negative(triples)
        # A conclusion of (x,R,y) -> (y,R,x) has ends that occur with R elsewhere: so must its negatives.
        complement = self.is_complement(triples)
        is_negative[complement] &= self._simpbl.score(triples[complement]) > 0
        return np.asarray(member(distinct[is_negative], keys.ravel()).reshape(keys.shape))

    def is_complement(self, triples: Triples) -> Mask:
        """Return bool[n]: whether only rules that are their own complement have the triple's head."""
        return np.asarray(self._complements[triples[:, 1]])

    @cached_property
    def _simpbl(self) -> SimpBLScorer:
        return SimpBLScorer(self.context.seen.triples, len(self.context.kg.relations))

    @cached_property
    def _complements(self) -> Mask:
        """Of each relation, whether only rules that are their own complement have it in the head."""
        graph = self.context.kg
        is_complement = np.zeros(len(graph.relations), dtype=bool)
        for own_complement in (True, False):
            heads = [rule.head for rule in self.context.rules if is_own_complement(rule) == own_complement]
            is_complement[[relation_of(head, graph) for head in heads]] = own_complement
        return is_complement

    def propose(self, requests: Requests, most: int) -> tuple[Ints, Ints]:
        """Return int64[n, most] keys of candidates in a random order, -1 beyond the last, and how many exist.

        Nothing of P_all is among them; whether one is derivable is left to the caller.
        """
        keys = np.full((len(requests), most), -1, dtype=np.int64)
        counts = np.zeros(len(requests), dtype=np.int64)
        has_plan = np.zeros(len(requests), dtype=bool)
        for (rule, edit, side), rows in grouped(requests.rule, requests.edit, requests.side):
            if not self.anchored(rule):
                keys[rows], counts[rows] = self._from_all(rule, edit, requests.slot[rows], most)
            else:
                has_plan[rows] = self.plan(rule, edit, side) is not None
        anchored = np.flatnonzero(has_plan)
        if len(anchored):
            keys[anchored], counts[anchored] = self._from_anchors(requests[anchored], most)
        return keys, counts

    def _from_anchors(self, requests: Requests, most: int) -> tuple[Ints, Ints]:
        """Give slots candidates from their anchors; all at once, since there are many small searches."""
        order = np.lexsort((requests.anchor, requests.side, requests.edit, requests.rule))
        requests = requests[order]
        steps, unequal, plans, number = self._joined_plans(requests)
        excluded, salts = self.context.everything.packed, self.salts[requests.slot]

        def of_part(part: slice, seen: Ints) -> tuple[Ints, Ints, Mask]:
            proposals: tuple[Ints, Ints, Mask] = propose(
                self.index.arrays, steps, unequal, plans, number[part], requests.anchor[part], salts[part],
                excluded, self.budget, seen, self._stamp, most,
            )  # fmt: skip
            return proposals

        # Searches from one anchor stay together, so that results do not depend on the number of threads.
        parts = even_parts(os.cpu_count() or 1, number, requests.anchor)
        with ThreadPoolExecutor(len(parts)) as threads:
            results = list(threads.map(of_part, parts, self._seen(len(parts))))
        ends, counts, spent = (np.concatenate(column) for column in zip(*results, strict=True))
        self._stamp += len(requests)
        self.searched += len(requests)
        self.spent += int(spent.sum())
        form = plans[number][:, None, -3:]
        triples = form[..., 0] + form[..., 1] * requests.anchor[:, None] + form[..., 2] * ends
        keys, candidate_counts = np.empty_like(ends), np.empty_like(counts)
        keys[order], candidate_counts[order] = np.where(ends >= 0, triples, -1), counts
        return keys, candidate_counts

    def _seen(self, count: int) -> list[Ints]:
        """Return arrays in which searches mark what they have seen, one for each thread."""
        while len(self._marks) < count:
            self._marks.append(np.full(len(self.context.kg.entities), -1, dtype=np.int64))
        return self._marks[:count]

    def _joined_plans(self, requests: Requests) -> tuple[Ints, Ints, Ints, Ints]:
        """Return steps and inequalities of all plans that are asked for, the plans, and which is whose.

        Requests must be sorted by rule, edit and side, and have a plan.
        """
        columns = np.stack([requests.rule, requests.edit, requests.side], axis=1)
        is_first = run_starts(*columns.T)
        keys = [(rule, edit, side) for rule, edit, side in columns[is_first].tolist()]
        plans = [search_plan for key in keys if (search_plan := self.plan(*key)) is not None]
        steps, unequal = [search_plan.steps for search_plan in plans], [search_plan.unequal for search_plan in plans]
        rows = np.zeros((len(keys), 10), dtype=np.int64)
        for column, parts in ((0, steps), (2, unequal)):
            rows[:, column + 1] = np.cumsum([len(part) for part in parts])
            rows[1:, column] = rows[:-1, column + 1]
        for key, search_plan in zip(keys, plans, strict=True):
            if key not in self._forms:
                self._forms[key] = self._form(key[0], key[2], search_plan)
        rows[:, 4:] = [self._forms[key] for key in keys]
        return np.concatenate(steps), np.concatenate(unequal), rows, np.cumsum(is_first) - 1

    def _form(self, rule: int, side: int, search_plan: SearchPlan) -> tuple[int, ...]:
        """Return a plan's size, its bound and its target variable, and what makes keys of their values."""
        graph, ends = self.context.kg, self.ends[rule]
        # A key is a + b * anchor + c * end.
        probe = np.zeros((3, 3), dtype=np.int32)
        probe[:, 1] = graph.relation_id(str(self.context.rules[rule].head.relation))
        probe[1, ends.columns[side]] = 1
        probe[2, ends.columns[1 - side]] = 1
        base, anchor, end = graph.keys.pack(probe).tolist()
        numbers = (search_plan.numbers[ends.free[side]], search_plan.numbers[ends.free[1 - side]])
        return search_plan.size, *numbers, base, anchor - base, end - base

    def _from_all(self, rule: int, edit: int, slots: Ints, most: int) -> tuple[Ints, Ints]:
        """Give slots candidates of a near miss whose conclusions have one end at most."""
        if (rule, edit) not in self._every:
            self._every[rule, edit] = self._all(rule, edit)
        keys = self._every[rule, edit]
        proposals = np.full((len(slots), most), -1, dtype=np.int64)
        if len(keys):
            rng = np.random.Generator(np.random.PCG64(int(self.salts[slots[0]])))
            order = keys[rng.permutation(len(keys))]
            # One after the other, each slot from another candidate on: they rarely want the same.
            start = np.arange(len(slots)) * max(len(order) // max(len(slots), 1), 1)
            width = min(most, len(order))
            proposals[:, :width] = order[(start[:, None] + np.arange(width)) % len(order)]
        return proposals, np.full(len(slots), len(keys), dtype=np.int64)

    def _all(self, rule: int, edit: int) -> Ints:
        """Return the sorted keys of all conclusions of a near miss with one end at most, without those of P_all."""
        search_plan, ends = self.plan(rule, edit, -1), self.ends[rule]
        if search_plan is None or not ends.free:
            return np.empty(0, dtype=np.int64)
        target = search_plan.numbers[ends.free[0]]
        seen = self._seen(1)[0]
        values = every_end(
            self.index.arrays, search_plan.steps, search_plan.unequal, search_plan.size, target, seen, self._stamp
        )
        self._stamp += 1
        graph, head = self.context.kg, self.context.rules[rule].head
        triples = np.empty((len(values), 3), dtype=np.int32)
        triples[:, 1] = graph.relation_id(str(head.relation))
        for column, term in ((0, head.subject), (2, head.object)):
            triples[:, column] = values if term == ends.free[0] else graph.entity_id(term.name)
        return np.sort(graph.keys.pack(triples[~self.context.everything.contains(triples)]))

    def replaced_by(self, rule: int, edit: int, triples: Triples) -> Ints:
        """Return for each triple the relation (or type) with which the near miss concludes it; -1 for none.

        Of several, the first witness has the one with the smallest id.
        """
        search_plan, ends = self.plan(rule, edit, 2), self.ends[rule]
        if search_plan is None or search_plan.wildcard is None:
            return np.full(len(triples), -1, dtype=np.int64)
        first, second = (*(search_plan.numbers[variable] for variable in ends.free), -1, -1)[:2]
        pairs = np.zeros((len(triples), 2), dtype=np.int64)
        pairs[:, : len(ends.columns)] = triples[:, list(ends.columns)]
        rows = first_witness(
            self.index.arrays, search_plan.steps, search_plan.unequal, search_plan.size, first, second, pairs,
            np.int64(2**40), self._seen(1)[0],
        )  # fmt: skip
        subject, relation, object_ = search_plan.wildcard
        s, o = (rows[:, t] if t >= 0 else np.full(len(rows), ~t) for t in (subject, object_))
        return np.asarray(o) if relation == self.context.kg.type_relation else self.index.another(relation, s, o)
