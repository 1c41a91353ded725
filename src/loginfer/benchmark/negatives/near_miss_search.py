"""Who asks for which near miss.

Which near misses are wanted: for each split and head as many as it has conclusions, in equal shares.

Candidates for slots: what a near miss concludes about an anchor, and is truly negative.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import ceil
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.negatives.near_miss_kernels import Ends, Index, Plan, ends_of, plan
from loginfer.benchmark.program import complement_share, connected_otherwise
from loginfer.benchmark.shortcuts import SimpBL
from loginfer.engine.binding import relation_of
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import distinct_keys, grouped, member
from loginfer.logic.rule import Constant, Rule
from loginfer.logic.subrules import Edit, edits_of, is_own_complement
from loginfer.randomness import generator, hash_order, salt

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
    split, head, rule, edit = (np.repeat(np.array([row[i] for row in rows], dtype=np.int64), counts) for i in range(4))
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
    order = hash_order(context.kg.keys.pack(triples), salt(context.recipe.seed, "negatives", "nm", "anchors", *stage))
    return triples[np.resize(order, count)]


Mask = npt.NDArray[np.bool_]

# After this much work, in values looked at, the search for the other ends of an anchor is given up. What it
# has found by then was met in an order that is random at each step, but not uniform over all ends.
BUDGET = 2**11


@dataclass(frozen=True, slots=True)
class Asked:
    """Near misses that are asked for.

    Parameters
    ----------
    slot
        int64[n], places of slots.
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

    def __getitem__(self, places: npt.NDArray[Any]) -> Asked:
        columns = (self.slot, self.rule, self.edit, self.side, self.anchor)
        return Asked(*(column[places] for column in columns))

    def __len__(self) -> int:
        return len(self.slot)


@dataclass
class Search:
    """Finds candidates; plans and whole sets of ends are made once.

    Parameters
    ----------
    context
        What negatives are made from.
    slots
        Where they go; their salts decide the order of candidates.
    budget
        See `BUDGET`.
    """

    context: Context
    slots: Slots
    budget: int = BUDGET
    spent: int = 0
    searched: int = 0
    _plans: dict[tuple[int, int, int], Plan | None] = field(default_factory=dict)
    _forms: dict[tuple[int, int, int], tuple[int, ...]] = field(default_factory=dict)
    _every: dict[tuple[int, int], Triples] = field(default_factory=dict)
    _stamp: int = 0
    _seen_by: list[Ints] = field(default_factory=list)

    @cached_property
    def index(self) -> Index:
        """The graph K as the kernels see it."""
        return Index(self.context.kg)

    @property
    def _seen(self) -> Ints:
        return self._marks(1)[0]

    def _marks(self, count: int) -> list[Ints]:
        """Return arrays in which searches mark what they have seen, one for each thread."""
        while len(self._seen_by) < count:
            self._seen_by.append(np.full(len(self.context.kg.entities), -1, dtype=np.int64))
        return self._seen_by[:count]

    def rule(self, number: int) -> Rule:
        """Return a rule of R."""
        return self.context.rules[number]

    def edit(self, rule: int, number: int) -> Edit:
        """Return an edit of a rule."""
        return self.slots.edits[rule][number]

    @cached_property
    def ends(self) -> tuple[Ends, ...]:
        """The ends of each rule's conclusions."""
        return tuple(map(ends_of, self.context.rules))

    def anchored(self, rule: int) -> bool:
        """Say whether the conclusions of a rule have two ends that can be told apart."""
        return len(self.ends[rule].free) == 2

    def plan(self, rule: int, edit: int, side: int) -> Plan | None:
        """Return the plan from one end; side 2 is from both, side -1 from none."""
        key = (rule, edit, side)
        if key not in self._plans:
            free = self.ends[rule].free
            bound = {-1: (), 2: free}.get(side, free[side : side + 1])
            self._plans[key] = plan(self.rule(rule), self.edit(rule, edit), self.index, bound)
        return self._plans[key]

    def propose(self, asked: Asked, most: int) -> tuple[Ints, Ints]:
        """Return int64[n, most] keys of candidates in a random order, -1 beyond the last, and how many exist.

        Nothing of P_all is among them; whether one is derivable has to be seen.
        """
        keys = np.full((len(asked), most), -1, dtype=np.int64)
        counts = np.zeros(len(asked), dtype=np.int64)
        able = np.zeros(len(asked), dtype=bool)
        for (rule, edit, side), places in grouped(asked.rule, asked.edit, asked.side):
            if not self.anchored(rule):
                keys[places], counts[places] = self._from_all(rule, edit, asked.slot[places], most)
            else:
                able[places] = self.plan(rule, edit, side) is not None
        mine = np.flatnonzero(able)
        if len(mine):
            keys[mine], counts[mine] = self._from_anchors(asked[mine], most)
        return keys, counts

    def negative(self, keys: Ints) -> Mask:
        """Return for each key, -1 for none, whether its triple is truly negative."""
        distinct = distinct_keys(keys[keys >= 0])
        triples = self.context.kg.keys.unpack(distinct)
        fine = self.context.truth.negative(triples)
        # A conclusion of (x,R,y) -> (y,R,x) has ends that occur with R elsewhere: so must its negatives.
        own = self.is_complement(triples)
        fine[own] &= self._simpbl.score(triples[own]) > 0
        return np.asarray(member(distinct[fine], keys.ravel()).reshape(keys.shape))

    def is_complement(self, triples: Triples) -> Mask:
        """Return bool[n]: whether only rules that are their own complement have the triple's head."""
        return np.asarray(self._complements[triples[:, 1]])

    @cached_property
    def _simpbl(self) -> SimpBL:
        return SimpBL(self.context.seen.triples, len(self.context.kg.relations))

    @cached_property
    def _complements(self) -> Mask:
        """Of each relation, whether only rules that are their own complement have it in the head."""
        graph = self.context.kg
        found = np.zeros(len(graph.relations), dtype=bool)
        for wanted in (True, False):
            heads = [rule.head for rule in self.context.rules if is_own_complement(rule) == wanted]
            found[[relation_of(head, graph) for head in heads]] = wanted
        return found

    def _from_anchors(self, asked: Asked, most: int) -> tuple[Ints, Ints]:
        """Give slots candidates from their anchors; all at once, since there are many small searches."""
        from loginfer.benchmark.negatives.near_miss_kernels import propose

        order = np.lexsort((asked.anchor, asked.side, asked.edit, asked.rule))
        asked = asked[order]
        steps, unequal, plans, number = self._joined(asked)
        known, salts = self.context.everything.packed, self.slots.salt[asked.slot]

        def of_part(part: slice, seen: Ints) -> tuple[Ints, Ints, Mask]:
            result: tuple[Ints, Ints, Mask] = propose(
                self.index.arrays, steps, unequal, plans, number[part], asked.anchor[part], salts[part],
                known, self.budget, seen, self._stamp, most,
            )  # fmt: skip
            return result

        parts = _parts(number, asked.anchor)
        with ThreadPoolExecutor(len(parts)) as threads:
            results = list(threads.map(of_part, parts, self._marks(len(parts))))
        ends, counts, spent = (np.concatenate(column) for column in zip(*results, strict=True))
        self._stamp += len(asked)
        self.searched += len(asked)
        self.spent += int(spent.sum())
        form = plans[number][:, None, -3:]
        made = form[..., 0] + form[..., 1] * asked.anchor[:, None] + form[..., 2] * ends
        keys, found = np.empty_like(ends), np.empty_like(counts)
        keys[order], found[order] = np.where(ends >= 0, made, -1), counts
        return keys, found

    def _joined(self, asked: Asked) -> tuple[Ints, Ints, Ints, Ints]:
        """Return steps and inequalities of all plans that are asked for, the plans, and which is whose.

        What is asked must be sorted by rule, edit and side.
        """
        columns = np.stack([asked.rule, asked.edit, asked.side], axis=1)
        fresh = np.ones(len(asked), dtype=bool)
        fresh[1:] = (columns[1:] != columns[:-1]).any(axis=1)
        steps, unequal = [np.empty((0, 6), dtype=np.int64)], [np.empty((0, 2), dtype=np.int64)]
        rows: list[tuple[int, ...]] = []
        begin = [0, 0]
        for rule, edit, side in columns[fresh].tolist():
            made = self.plan(rule, edit, side)
            if made is None:
                raise ValueError(f"rule {rule} with its edit {edit} never concludes anything")
            end = [begin[0] + len(made.steps), begin[1] + len(made.unequal)]
            rows.append((begin[0], end[0], begin[1], end[1], *self._form(rule, edit, side)))
            steps.append(made.steps)
            unequal.append(made.unequal)
            begin = end
        plans = np.array(rows, dtype=np.int64).reshape(-1, 10)
        return np.concatenate(steps), np.concatenate(unequal), plans, np.cumsum(fresh) - 1

    def _form(self, rule: int, edit: int, side: int) -> tuple[int, ...]:
        """Return what kernels need of a plan beside its steps (see `near_miss_kernels`), made once."""
        key = (rule, edit, side)
        if key not in self._forms:
            self._forms[key] = self._made_form(key)
        return self._forms[key]

    def _made_form(self, key: tuple[int, int, int]) -> tuple[int, ...]:
        """Return a plan's size, its bound and wanted variable, and what makes keys of their values."""
        rule, _, side = key
        graph, made, ends = self.context.kg, self._plans[key], self.ends[rule]
        if made is None:
            raise ValueError(f"{key} has no plan")
        # A key is a + b * anchor + c * end.
        probe = np.zeros((3, 3), dtype=np.int32)
        probe[:, 1] = graph.relation_id(str(self.rule(rule).head.relation))
        probe[1, ends.columns[side]] = 1
        probe[2, ends.columns[1 - side]] = 1
        base, anchor, end = graph.keys.pack(probe).tolist()
        numbers = (made.numbers[ends.free[side]], made.numbers[ends.free[1 - side]])
        return made.size, *numbers, base, anchor - base, end - base

    def _from_all(self, rule: int, edit: int, slots: Ints, most: int) -> tuple[Ints, Ints]:
        """Give slots candidates of a near miss whose conclusions have one end at most."""
        every = self.every(rule, edit)
        keys = self.context.kg.keys.pack(every)
        found = np.full((len(slots), most), -1, dtype=np.int64)
        if len(keys):
            rng = np.random.Generator(np.random.PCG64(int(self.slots.salt[slots[0]])))
            order = keys[rng.permutation(len(keys))]
            # One after the other, each slot from another place on: they rarely want the same.
            start = np.arange(len(slots)) * max(len(order) // max(len(slots), 1), 1)
            width = min(most, len(order))
            found[:, :width] = order[(start[:, None] + np.arange(width)) % len(order)]
        return found, np.full(len(slots), len(keys), dtype=np.int64)

    def every(self, rule: int, edit: int) -> Triples:
        """Return all conclusions of a near miss with one end at most, without those of P_all."""
        key = (rule, edit)
        if key not in self._every:
            self._every[key] = self._all(rule, edit)
        return self._every[key]

    def _all(self, rule: int, edit: int) -> Triples:
        from loginfer.benchmark.negatives.near_miss_kernels import every_end

        made = self.plan(rule, edit, -1)
        ends = self.ends[rule]
        if made is None or not ends.free:
            return np.empty((0, 3), dtype=np.int32)
        target = made.numbers[ends.free[0]]
        values = every_end(self.index.arrays, made.steps, made.unequal, made.size, target, self._seen, self._stamp)
        self._stamp += 1
        graph, head = self.context.kg, self.rule(rule).head
        triples = np.empty((len(values), 3), dtype=np.int32)
        triples[:, 1] = graph.relation_id(str(head.relation))
        for column, term in ((0, head.subject), (2, head.object)):
            triples[:, column] = values if term == ends.free[0] else graph.entity_id(term.name)
        triples = triples[~self.context.everything.contains(triples)]
        return triples[np.argsort(graph.keys.pack(triples))]

    def replaced_by(self, rule: int, edit: int, triples: Triples) -> Ints:
        """Return for each triple the relation (or type) with which the near miss concludes it; -1 for none.

        Of several, the first witness has the one with the smallest id.
        """
        from loginfer.benchmark.negatives.near_miss_kernels import first_witness

        found = np.full(len(triples), -1, dtype=np.int64)
        made = self.plan(rule, edit, 2)
        if made is None or made.wildcard is None:
            return found
        free = self.ends[rule]
        numbers = [made.numbers[variable] for variable in free.free]
        ends = triples[:, list(free.columns)].astype(np.int64)
        pairs = np.zeros((len(triples), 2), dtype=np.int64)
        pairs[:, : ends.shape[1]] = ends
        first, second = (*numbers, -1, -1)[:2]
        rows = first_witness(
            self.index.arrays, made.steps, made.unequal, made.size, first, second, pairs,
            np.int64(2**40), self._seen,
        )  # fmt: skip
        subject, relation, object_ = made.wildcard
        s, o = (rows[:, t] if t >= 0 else np.full(len(rows), ~t) for t in (subject, object_))
        graph = self.context.kg
        if relation == graph.type_relation:
            return np.asarray(o)
        return self.index.another(relation, s.astype(np.int64), o.astype(np.int64))


def _parts(plans: Ints, anchors: Ints) -> list[slice]:
    """Divide searches among threads; those from one anchor stay together, so that nothing depends on it."""
    fresh = np.flatnonzero((plans[1:] != plans[:-1]) | (anchors[1:] != anchors[:-1])) + 1
    even = np.linspace(0, len(plans), (os.cpu_count() or 1) + 1)[1:-1].astype(np.int64)
    inner = fresh[np.minimum(np.searchsorted(fresh, even), len(fresh) - 1)] if len(fresh) else even[:0]
    edges = [0, *np.unique(inner).tolist(), len(plans)]
    return [slice(start, stop) for start, stop in pairwise(edges)]
