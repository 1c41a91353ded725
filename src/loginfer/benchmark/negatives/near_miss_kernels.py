"""Which constants it reaches (target: 250, with any-but atoms in the native join).

In which order the atoms of a near miss are looked up, from one end of its conclusion to the other.

Compiled kernels: which constants stand at the other end of a near miss.

A plan is a list of steps. Each step is an atom of the edited body: either of its own relation, or with *any*
relation but one (the replaced atom). When a step's turn comes, its terms are bound (a check), one of them is
(its neighbours are tried in turn), or none (all pairs are). The search goes on to the next step for every
value, and back when there is none left. As soon as all steps hold, the value of the wanted variable is
noted, and the search goes on where that variable was bound: further witnesses of the same value say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import ABSENT, relation_of
from loginfer.kernels import inlined, kernel
from loginfer.kg import KnowledgeGraph
from loginfer.kg.graph import places_of
from loginfer.logic.rule import Atom, BodyAtom, Constant, Inequality, Rule, Term, Variable
from loginfer.logic.subrules import Edit

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
    return (np.array(rows, dtype=np.int64).reshape(-1, 6), np.array(pairs, dtype=np.int64).reshape(-1, 2))


def _values(step: _Step, known: set[int], index: Index) -> float:
    """Return how many values a step should give: none to speak of for a check, all pairs for an open one."""
    bound = [t < 0 or t in known for t in (step.subject, step.object)]
    if all(bound):
        return 0.0
    out, into, every = index.spread(step.relation if step.what == RELATION else None)
    if bound[0]:
        return out
    return into if bound[1] else every


# Columns of a step: what, relation (or the one that is left out), subject, object, inequalities from, to.
_WHAT, _REL, _SUB, _OBJ, _FROM, _TO = range(6)

# The lower half of a key of an edge at an entity; the upper one is its relation.
_ENTITY = 2**32 - 1


@inlined
def _mixed(value: np.uint64) -> np.uint64:
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@inlined
def _below(values: Any, low: Any, high: Any, wanted: Any) -> Any:
    """Return the first place from `low` on with a value of at least `wanted`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _range(kg: Any, what: Any, relation: Any, subject: Any, object_: Any) -> Any:
    """Return where the values that fit a step lie: which column, from, to.

    Columns: 0 objects of a subject and a relation, 1 subjects of an object and a relation, 2 objects by any
    relation, 3 subjects by any, 4 pairs of a relation. A check (both ends bound) gives the place of the one
    value that fits, or none.
    """
    offsets, _, _, out_by, out_keys, into_by, into_keys = kg[:7]
    out, out_objects, _, into, _, _ = kg[7:]
    if what == ANY:
        if subject >= 0:
            low, high = out[subject], out[subject + 1]
            if object_ >= 0:
                low = _below(out_objects, low, high, object_)
                high = low + 1 if low < high and out_objects[low] == object_ else low
            return 2, low, high
        if object_ >= 0:
            return 3, into[object_], into[object_ + 1]
        return 2, 0, len(out_objects)
    if subject >= 0:
        low, high = out_by[subject], out_by[subject + 1]
        if object_ >= 0:
            wanted = (relation << 32) + object_
            low = _below(out_keys, low, high, wanted)
            return 0, low, low + 1 if low < high and out_keys[low] == wanted else low
        low = _below(out_keys, low, high, relation << 32)
        return 0, low, _below(out_keys, low, high, (relation + 1) << 32)
    if object_ >= 0:
        low, high = into_by[object_], into_by[object_ + 1]
        low = _below(into_keys, low, high, relation << 32)
        return 1, low, _below(into_keys, low, high, (relation + 1) << 32)
    return 4, offsets[relation], offsets[relation + 1]


@inlined
def _differ(values: Any, unequal: Any, start: Any, stop: Any) -> Any:
    """Say whether the inequalities hold that a step completes."""
    for i in range(start, stop):
        left, right = unequal[i, 0], unequal[i, 1]
        a = values[left] if left >= 0 else ~left
        b = values[right] if right >= 0 else ~right
        if a == b:
            return False
    return True


@kernel
def _search(
    kg: Any,
    steps: Any,
    unequal: Any,
    values: Any,
    target: Any,
    salt: Any,
    budget: Any,
    seen: Any,
    stamp: Any,
    found: Any,
) -> Any:
    """Enumerate the values of the target; return how many were noted and the work that was done.

    With `target` below 0 the search ends at the first witness; `values` holds it, and 1 is returned.
    A negative amount of work means that the budget was spent before the search was over.
    """
    # Everything about a depth in arrays of numbers: views of arrays cost more than the search itself.
    _, subjects, objects, _, out_keys, _, into_keys = kg[:7]
    out, out_objects, out_only, _, into_subjects, into_only = kg[7:]
    depth = 0
    total = len(steps)
    low = np.empty(total + 1, dtype=np.int64)
    tried = np.empty(total + 1, dtype=np.int64)
    turn = np.empty(total + 1, dtype=np.int64)  # where a round through a range began
    size = np.empty(total + 1, dtype=np.int64)
    column = np.empty(total + 1, dtype=np.int64)
    binds = np.zeros((total + 1, 2), dtype=np.bool_)
    at_target = -1  # the depth at which the target was bound; -1: before the search
    count = 0
    work = 0
    entering = True
    while True:
        if entering:
            if depth == total:
                if target < 0:
                    return 1, work
                end = values[target]
                if seen[end] != stamp:
                    seen[end] = stamp
                    found[count] = end
                    count += 1
                if at_target < 0:
                    return count, work
                for d in range(at_target + 1, total):
                    _unbind(steps, values, binds, d)
                    binds[d, 0] = binds[d, 1] = False
                depth = at_target
                entering = False
                continue
            subject, object_ = steps[depth, _SUB], steps[depth, _OBJ]
            s = values[subject] if subject >= 0 else ~subject
            o = values[object_] if object_ >= 0 else ~object_
            work += 1
            low[depth] = tried[depth] = turn[depth] = 0
            if steps[depth, _WHAT] == NONE_OF:
                _, first, last = _range(kg, RELATION, steps[depth, _REL], s, o)
                holds = first == last and _differ(values, unequal, steps[depth, _FROM], steps[depth, _TO])
                size[depth] = 1 if holds else 0
                column[depth] = -1
            else:
                column[depth], low[depth], last = _range(kg, steps[depth, _WHAT], steps[depth, _REL], s, o)
                size[depth] = last - low[depth]
                if size[depth] > 1:
                    turn[depth] = np.int64(
                        _mixed(salt ^ np.uint64(s + 3) ^ (np.uint64(o + 3) << np.uint64(32))) % np.uint64(size[depth])
                    )
            binds[depth, 0] = column[depth] >= 0 and s < 0
            binds[depth, 1] = column[depth] >= 0 and o < 0 and subject != object_
            if (binds[depth, 0] and subject == target) or (binds[depth, 1] and object_ == target):
                at_target = depth
            entering = False
        # Try the next value at this depth.
        moved = False
        subject, object_, where = steps[depth, _SUB], steps[depth, _OBJ], column[depth]
        any_but = steps[depth, _REL] if steps[depth, _WHAT] == ANY else -3
        start, stop = steps[depth, _FROM], steps[depth, _TO]
        while tried[depth] < size[depth]:
            offset = turn[depth] + tried[depth]
            if offset >= size[depth]:
                offset -= size[depth]
            tried[depth] += 1
            work += 1
            if work > budget:
                return count, -work
            if where < 0:
                moved = True
                break
            place = low[depth] + offset
            # Connected by another relation than the one that is left out?
            if any_but != -3 and (out_only[place] if where == 2 else into_only[place]) == any_but:
                continue
            if binds[depth, 0] and (binds[depth, 1] or subject == object_):
                first = np.int64(subjects[place]) if where == 4 else _owner(out, place)
                second = np.int64(objects[place] if where == 4 else out_objects[place])
                if subject == object_ and first != second:
                    continue
                values[subject], values[object_] = first, second
            elif binds[depth, 0]:
                values[subject] = into_keys[place] & _ENTITY if where == 1 else into_subjects[place]
            elif binds[depth, 1]:
                values[object_] = out_keys[place] & _ENTITY if where == 0 else out_objects[place]
            if at_target == depth and seen[values[target]] == stamp:
                continue
            if start == stop or _differ(values, unequal, start, stop):
                moved = True
                break
        if moved:
            depth += 1
            entering = True
            continue
        _unbind(steps, values, binds, depth)
        if at_target == depth:
            at_target = -1
        depth -= 1
        if depth < 0:
            return count, work
        _unbind(steps, values, binds, depth)


@inlined
def _owner(pointers: Any, place: Any) -> Any:
    """Return the row that a place lies in."""
    return _below(pointers, 0, len(pointers), place + 1) - 1


@inlined
def _unbind(steps: Any, values: Any, binds: Any, depth: Any) -> Any:
    """Take the values back that a step gave."""
    for side in range(2):
        if binds[depth, side]:
            values[steps[depth, _SUB + side]] = -1


# Columns of a plan: steps from, to, inequalities from, to, variables, the bound one, the wanted one, and the
# numbers that make a key of an end: the key is form + by_anchor * anchor + by_end * end.
_STEPS, _STEPS_TO, _PAIRS, _PAIRS_TO, _SIZE, _ANCHOR, _TARGET, _FORM, _BY_ANCHOR, _BY_END = range(10)


@kernel
def propose(
    kg: Any,
    steps: Any,
    unequal: Any,
    plans: Any,
    asked: Any,
    anchors: Any,
    salts: Any,
    known: Any,
    budget: Any,
    seen: Any,
    stamps: Any,
    most: Any,
) -> Any:
    """Return for each anchor up to `most` other ends, in a random order, and what the search cost.

    Parameters
    ----------
    kg
        The index of the graph (see `near_miss_plans.Index.arrays`).
    steps, unequal
        int64[k, 6], int64[q, 2], those of all plans one after the other.
    plans
        int64[p, 10], see the columns above.
    asked, anchors, salts
        int64[n], int64[n], ascending, and uint64[n]: the plan, the value of its bound variable, the salt of
        the order.
    known
        Sorted keys of triples that are no candidates.
    budget
        The work after which a search is given up.
    seen, stamps
        int64[entities], and the first stamp that was not used yet.
    most
        How many ends to return at most.

    Returns
    -------
    tuple
        int64[n, most] ends in the order of their hashes, -1 beyond the last; int64[n] how many candidates
        were found, or any number above `most` if there are more; bool[n] whether the budget was spent.
    """
    ends = np.full((len(anchors), most), -1, dtype=np.int64)
    counts = np.zeros(len(anchors), dtype=np.int64)
    spent = np.zeros(len(anchors), dtype=np.bool_)
    values = np.empty(plans[:, _SIZE].max() if len(plans) else 0, dtype=np.int64)
    found = np.empty(len(seen), dtype=np.int64)
    hashes = np.empty(most, dtype=np.uint64)
    number = 0
    for i in range(len(anchors)):
        plan = plans[asked[i]]
        # What was found for the anchor before is still there, unless it is not everything.
        if i == 0 or asked[i] != asked[i - 1] or anchors[i] != anchors[i - 1] or spent[i - 1]:
            values[:] = -1
            values[plan[_ANCHOR]] = anchors[i]
            number, work = _search(
                kg, steps[plan[_STEPS] : plan[_STEPS_TO]], unequal[plan[_PAIRS] : plan[_PAIRS_TO]], values,
                plan[_TARGET], salts[i], budget, seen, stamps + i, found,
            )  # fmt: skip
            spent[i] = work < 0
        have = 0
        for j in range(number):
            key = plan[_FORM] + plan[_BY_ANCHOR] * anchors[i] + plan[_BY_END] * found[j]
            mixed = _mixed(_mixed(np.uint64(key)) ^ salts[i])
            late = have == most and mixed >= hashes[most - 1]
            if late and counts[i] > most:
                continue  # it changes nothing whether this one is a candidate
            place = _below(known, 0, len(known), key)
            if place < len(known) and known[place] == key:
                continue
            counts[i] += 1
            if late:
                continue
            spot = have if have < most else most - 1
            while spot > 0 and hashes[spot - 1] > mixed:
                hashes[spot] = hashes[spot - 1]
                ends[i, spot] = ends[i, spot - 1]
                spot -= 1
            hashes[spot] = mixed
            ends[i, spot] = found[j]
            if have < most:
                have += 1
    return ends, counts, spent


@kernel
def first_witness(
    kg: Any, steps: Any, unequal: Any, variables: Any, first: Any, second: Any, pairs: Any, budget: Any, seen: Any
) -> Any:
    """Return for each pair of ends the values of all variables in a witness; -1s without one."""
    rows = np.full((len(pairs), variables), -1, dtype=np.int64)
    values = np.empty(variables, dtype=np.int64)
    found = np.empty(1, dtype=np.int64)
    for i in range(len(pairs)):
        values[:] = -1
        if first >= 0:
            values[first] = pairs[i, 0]
        if second >= 0:
            values[second] = pairs[i, 1]
        number, work = _search(kg, steps, unequal, values, -1, np.uint64(0), budget, seen, np.int64(-1), found)
        if number == 1 and work >= 0:
            rows[i] = values
    return rows


@kernel
def every_end(kg: Any, steps: Any, unequal: Any, variables: Any, target: Any, seen: Any, stamp: Any) -> Any:
    """Return all values of the target, where nothing is bound from the start."""
    values = np.full(variables, -1, dtype=np.int64)
    found = np.empty(len(seen), dtype=np.int64)
    limit = np.int64(2**62)
    number, _ = _search(kg, steps, unequal, values, target, np.uint64(0), limit, seen, stamp, found)
    return found[:number].copy()


@kernel
def first_free(near: Any, free: Any) -> Any:
    """Give each row in turn the first of its places that is free, and take it; -1 for none.

    Parameters
    ----------
    near
        int64[n, k], places.
    free
        bool[m], which places are free; changed.
    """
    chosen = np.full(len(near), -1, dtype=np.int64)
    for i in range(len(near)):
        for place in near[i]:
            if free[place]:
                free[place] = False
                chosen[i] = place
                break
    return chosen
