"""The native engine: exact evaluation in memory by compiled kernels."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from loginfer.engine.binding import ABSENT, Bound, bind, fits_head, head_values, relation_of, separate
from loginfer.engine.interface import BodyTable, Derivations, Materialisation, Projection, Witnesses
from loginfer.engine.native import join
from loginfer.engine.native.join_kernels import assemble
from loginfer.engine.native.plan import substitute
from loginfer.engine.registry import MAX_CONCLUSIONS
from loginfer.kernels import kernel, mix64
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Ints, Mask, TripleKeys
from loginfer.logic.rule import Pattern, Rule
from loginfer.progress import Progress
from loginfer.randomness import hash_order, hashes

# About how many conclusions are in memory at a time, where parts are enough.
PART = 2**22

# Projections of the last bodies are kept: rules often differ in the head only.
_KEPT_BODIES = 64
_KEPT_VALUES = 8_000_000

# Everything of a body but the head, and the variables that are projected to.
_Body: TypeAlias = tuple[object, ...]


class NativeEngine:
    """Exact evaluation of rules in memory (see `interface.Engine`).

    An engine keeps scratch memory between calls: use one per thread.

    Parameters
    ----------
    graph
        The graph K.
    max_conclusions
        The largest number of conclusions of one rule that is written down.
    """

    name = "native"

    def __init__(self, graph: KnowledgeGraph, *, max_conclusions: int = MAX_CONCLUSIONS) -> None:
        self.graph = graph
        self.max_conclusions = max_conclusions
        self._projections: OrderedDict[_Body, Projection] = OrderedDict()
        self._kept = 0

    # -- one rule -------------------------------------------------------------------------------

    def support(self, rule: Rule) -> int:
        """Return the number of witnesses: substitutions of all variables of the body."""
        return join.support(self.graph.index, bind(rule, self.graph))

    def projection(self, rule: Rule) -> Projection:
        """Return the distinct subjects and objects of a rule's conclusions.

        Unlike `conclusions` this is never large for a body that falls apart between the head's variables,
        such as (x,S,z), (y,T,w) -> (x,P,y): that is a product of two sets. The arrays are kept for the next
        call: do not write to them.

        Raises
        ------
        LimitError
            When more than `max_conclusions` pairs that are no product would have to be listed.
        """
        return self._projection(bind(rule, self.graph))

    def _projection(self, bound: Bound) -> Projection:
        head = bound.head
        variables = tuple(dict.fromkeys(t for t in (head.subject, head.object) if t >= 0))
        if len(variables) == 2:
            return self._project(bound, variables)
        if variables:
            return Projection.of(head, self._project(bound, variables).left)
        return Projection.of(head, np.zeros(int(join.exists(self.graph.index, bound)), dtype=np.int32))

    def conclusions(self, rule: Rule, *, new: bool = False) -> Triples:
        """Return T_r(K), the distinct conclusion triples; with `new`, T_r(K) ∖ K.

        Raises
        ------
        LimitError
            When there are more than `max_conclusions`; `projection` may still describe them.
        """
        bound = bind(rule, self.graph)
        projection = self._projection(bound)
        if len(projection) > self.max_conclusions:
            raise join.too_many(len(projection), self.max_conclusions)
        return self._triples(*projection.pairs(), bound.head.relation, new)

    def conclusions_in_parts(self, rule: Rule, *, new: bool = False) -> Iterator[Triples]:
        """Yield T_r(K) or T_r(K) ∖ K in disjoint parts, in no particular order.

        There may be any number of conclusions: a few million are in memory at a time.
        """
        bound = bind(rule, self.graph)
        head = bound.head
        pair = (head.subject, head.object)
        if min(pair) >= 0 and pair[0] != pair[1] and separate(bound, pair) is None:
            for left, right, turned in join.project_in_parts(self.graph.index, bound, pair, PART):
                yield self._triples(left, right, head.relation, new, turned)
            return
        projection = self._projection(bound)
        step = max(PART // max(len(projection.right), 1), 1) if projection.product else max(len(projection.left), 1)
        for start in range(0, len(projection.left), step):
            left = projection.left[start : start + step]
            part = replace(projection, left=left) if projection.product else projection
            yield self._triples(*part.pairs(), head.relation, new)

    def sample_conclusions(self, rule: Rule, salt: int, count: int) -> tuple[int, Ints]:
        """Return |T_r(K) ∖ K|, and the keys of the first `count` of these triples in hash order."""
        return first_of_parts(self.conclusions_in_parts(rule, new=True), self.graph.keys, salt, count)

    def _triples(self, left: Ids, right: Ids, relation: int, new: bool, turned: bool = False) -> Triples:
        """Return sorted pairs as triples, with `new` those that are not in K; `turned`: sorted by `right`."""
        index = self.graph.index
        graph_pairs = index.inverse_pairs(relation) if turned else index.pairs(relation)
        if not new:
            graph_pairs = (graph_pairs[0][:0], graph_pairs[1][:0])
        triples = np.empty((len(left), 3), dtype=np.int32)
        first, second = (right, left) if turned else (left, right)
        size = assemble(first, second, relation, *graph_pairs, triples)
        return triples[:size, ::-1] if turned else triples[:size]

    def _project(self, bound: Bound, variables: tuple[int, ...]) -> Projection:
        key = (bound.atoms, bound.inequalities, bound.negations, bound.empty, variables)
        projection = self._projections.get(key)
        if projection is not None:
            self._projections.move_to_end(key)
            return projection
        projection = join.project(self.graph.index, bound, variables, self.max_conclusions)
        self._projections[key] = projection
        self._kept += len(projection.left) + len(projection.right)
        while self._kept > _KEPT_VALUES or len(self._projections) > _KEPT_BODIES:
            _, dropped = self._projections.popitem(last=False)
            self._kept -= len(dropped.left) + len(dropped.right)
        return projection

    def witnesses(self, rule: Rule, *, limit: int | None = None, conclusion: Sequence[int] | None = None) -> Witnesses:
        """Return the first `limit` witnesses, all of them or those of one conclusion triple."""
        bound = bind(rule, self.graph)
        if conclusion is None:
            return Witnesses(rule, join.witnesses(self.graph.index, bound, limit))
        rows = np.empty((0, len(bound.variables)), dtype=np.int32)
        values = head_values(bound.head, conclusion)
        entity_ids = range(len(self.graph.entities))
        if values is not None and int(conclusion[0]) in entity_ids and int(conclusion[2]) in entity_ids:
            free_values = join.witnesses(self.graph.index, substitute(bound, values), limit)
            rows = np.empty((len(free_values), len(bound.variables)), dtype=np.int32)
            for variable, value in values.items():
                rows[:, variable] = value
            rows[:, [v for v in range(len(bound.variables)) if v not in values]] = free_values
        return Witnesses(rule, rows)

    def first_witnesses(self, rule: Rule, triples: Triples) -> Ids:
        """Return the first witness of each triple, int32[n, v]; -1s where the rule does not derive it."""
        bound = bind(rule, self.graph)
        rows = np.full((len(triples), len(bound.variables)), -1, dtype=np.int32)
        derived = self.derives([rule], triples)
        if derived.any():
            values = np.asarray(triples, dtype=np.int32)[derived, ::2]
            rows[derived] = join.first_witnesses(self.graph.index, bound, values)
        return rows

    # -- many rules and triples -----------------------------------------------------------------

    def derives(self, rules: Sequence[Rule], triples: Triples) -> Mask:
        """Return bool[n]: which of these triples are in T_R(K)."""
        derived = np.zeros(len(triples), dtype=bool)
        for _, rows, is_derived in self._derivations(rules, triples, derived):
            derived[rows[is_derived]] = True
        return derived

    def derived(self, rules: Sequence[Rule], graph: KnowledgeGraph) -> KnowledgeGraph:
        """Return the triples of another graph, over the same vocabularies, that are in T_R(K)."""
        return self.graph.with_triples(graph.triples[self.derives(rules, graph.triples)])

    def derivations(self, rules: Sequence[Rule], triples: Triples) -> Derivations:
        """Return every pair of a triple and a rule that derives it in one step."""
        return Derivations.of(
            (rows[is_derived], np.full(np.count_nonzero(is_derived), number, dtype=np.int64))
            for number, rows, is_derived in self._derivations(rules, triples, None)
        )

    def _derivations(
        self, rules: Sequence[Rule], triples: Triples, derived: Mask | None
    ) -> Iterator[tuple[int, Ints, Mask]]:
        """Yield for each rule its number, rows of `triples`, and which of those it derives.

        Triples that `derived` marks meanwhile are not checked again.
        """
        triples = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
        by_relation = _RowsByRelation(triples, self.graph)
        relations: dict[str, int] = {}
        pairs: dict[int, Ids] = {}
        for number, rule in enumerate(rules):
            name = str(rule.head.relation)
            if name not in relations:
                relations[name] = relation_of(rule.head, self.graph)
            if relations[name] != ABSENT and not len(by_relation[relations[name]]):
                continue
            bound = bind(rule, self.graph)
            if bound.empty:
                continue
            head = bound.head
            rows = by_relation[head.relation]
            if head.relation not in pairs:
                pairs[head.relation] = np.ascontiguousarray(triples[rows][:, ::2], dtype=np.int32)
            values = pairs[head.relation]
            if head.subject < 0 or head.object < 0 or head.subject == head.object:
                matches = fits_head(head, *values.T)
                rows, values = rows[matches], values[matches]
                if not len(rows):
                    continue
            is_open = np.ones(len(rows), dtype=bool) if derived is None else ~derived[rows]
            if is_open.any():
                yield number, rows, self._check(bound, values, is_open)

    def _check(self, bound: Bound, values: Ids, is_open: Mask) -> Mask:
        columns = {t: i for i, t in enumerate((bound.head.subject, bound.head.object)) if t >= 0}
        if not columns:
            return is_open & join.exists(self.graph.index, bound)
        return join.check(self.graph.index, bound, tuple(columns), values[:, list(columns.values())], is_open)

    # -- whole patterns and programs ------------------------------------------------------------

    def rank_bodies(
        self,
        pattern: Pattern,
        top: int | None = None,
        *,
        complete: bool | None = None,
        progress: Progress | None = None,
    ) -> BodyTable:
        """Return the exact support of every body of a pattern, or of the `top` largest.

        `complete` says whether the number of all bodies with a witness must be known too; by default it
        is as long as that is cheap.
        """
        from loginfer.engine.native.rank import rank_bodies

        return rank_bodies(self.graph, pattern, top, complete=complete, progress=progress)

    def materialise(
        self,
        rules: Sequence[Rule],
        *,
        max_rounds: int | None = None,
        max_triples: int | None = None,
        progress: Progress | None = None,
    ) -> Materialisation:
        """Apply the rules until nothing new follows.

        Raises
        ------
        LimitError
            When a round beyond `max_rounds` would be needed, more than `max_triples` are derived, or a rule
            has more than `max_conclusions` to list in one round.
        """
        from loginfer.engine.native.materialise import materialise

        return materialise(
            self.graph,
            rules,
            max_rounds=max_rounds,
            max_triples=max_triples,
            max_conclusions=self.max_conclusions,
            progress=progress,
        )


class _RowsByRelation:
    """For each relation the rows of its triples, ascending; rows with an unknown id are left out."""

    def __init__(self, triples: Triples, graph: KnowledgeGraph) -> None:
        # Kernels use ids as array indices, unchecked.
        sizes = np.array([len(graph.entities), len(graph.relations), len(graph.entities)])
        valid_rows = np.flatnonzero(((triples >= 0) & (triples < sizes)).all(axis=1))
        relations = triples[valid_rows, 1]
        self._order = valid_rows[np.argsort(relations, kind="stable")]
        self._ends = np.cumsum(np.bincount(relations, minlength=len(graph.relations)))

    def __getitem__(self, relation: int) -> Ints:
        begin = self._ends[relation - 1] if relation else 0
        return self._order[begin : self._ends[relation]]


def first_of_parts(parts: Iterable[Triples], packing: TripleKeys, salt: int, count: int) -> tuple[int, Ints]:
    """Return how many triples there are, and the keys of the first `count` in hash order.

    Parameters
    ----------
    parts
        Disjoint parts of a set of triples; one is in memory at a time.
    packing
        What makes keys of them.
    salt
        Chooses the order.
    count
        How many keys to return at most.
    """
    total, first = 0, np.empty(0, dtype=np.int64)
    if count == 0:
        return sum(map(len, parts)), first
    for part in parts:
        total += len(part)
        # Once there are enough, few of the others come before the last of them.
        last = hashes(first[-1:], salt)[0] if len(first) == count else np.uint64(2**64 - 1)
        keys = np.empty(len(part), dtype=np.int64)
        size = _up_to(part, packing.relations, packing.entities, np.uint64(salt), last, keys)
        keys = np.concatenate([first, keys[:size]])
        first = keys[hash_order(keys, salt, count)]
    return total, first


@kernel
def _up_to(triples: Any, relations: Any, entities: Any, salt: Any, last: Any, keys: Any) -> int:
    """Write the keys of the triples whose hash is at most `last`; return how many."""
    size = 0
    for i in range(len(triples)):
        key = (np.int64(triples[i, 0]) * relations + triples[i, 1]) * entities + triples[i, 2]
        if mix64(mix64(key) ^ salt) <= last:
            keys[size] = key
            size += 1
    return size
