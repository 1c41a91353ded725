"""The engine over the compiled join.

Sampling the conclusions of a rule, whatever their number.

From a plan and a body to the arguments of the kernels.

The number of witnesses of a body, by sums of products.

Where a projection may start: fewer values than a relation has, if some other atom is small.

A trunk starts at a variable of the head and tries all its values. If an atom elsewhere in the body has few
pairs, such as the news of a round or the list of a constant, only those values matter that are connected
with it; they are found by walking from the small atom to the start.

The distinct values of a head's variables, without enumerating witnesses.

Rules over adjacency lists: support, projection, membership and witnesses by the compiled join.

Everything here takes a `Store` (a graph's relations, or any sets of pairs under any ids) and a `Bound`
body whose relation ids are the store's; heads are looked at by the callers. To evaluate a body with one
atom over other pairs than the rest (semi-naive rounds), give those pairs an id of their own in the store
and put it into that atom.

The engine's interface over the compiled join.

The native engine: exact evaluation in memory by compiled kernels.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import ABSENT, Bound, BoundAtom, Part, bind, combine, relation_of, separate
from loginfer.engine.interface import BodyTable, Derivations, Materialisation, Projection, Witnesses
from loginfer.engine.native import join_kernels as kernels
from loginfer.engine.native.plan import (
    DOMAIN,
    VARIABLE,
    Body,
    Plan,
    Scales,
    Shape,
    plan_check,
    plan_count,
    plan_first,
    plan_listing,
    plan_projection,
    rename,
    restrict,
    substitute,
)
from loginfer.engine.native.store import GraphStore, Store
from loginfer.errors import LimitError
from loginfer.kernels import kernel, mix64
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import FORWARD, INVERSE, TripleKeys
from loginfer.logic.rule import Pattern, Rule
from loginfer.progress import Progress
from loginfer.randomness import hash_order, hashes


def first_of_parts(
    parts: Iterable[Triples], packing: TripleKeys, salt: int, count: int
) -> tuple[int, npt.NDArray[np.int64]]:
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
        found = _up_to(part, packing.relations, packing.entities, np.uint64(salt), last, keys)
        keys = np.concatenate([first, keys[:found]])
        first = keys[hash_order(keys, salt, count)]
    return total, first


@kernel
def _up_to(triples: Any, relations: Any, entities: Any, salt: Any, last: Any, keys: Any) -> int:
    """Write down the keys of the triples whose hash is at most `last`; return how many they are."""
    found = 0
    for i in range(len(triples)):
        key = (np.int64(triples[i, 0]) * relations + triples[i, 1]) * entities + triples[i, 2]
        if mix64(mix64(key) ^ salt) <= last:
            keys[found] = key
            found += 1
    return found


_NOTHING = np.empty(0, dtype=np.int32)


class Search:
    """A plan with a body's ids in it, and scratch memory: the arguments that all kernels share.

    Parameters
    ----------
    store, body, plan
        What to search, for what, and how.
    starts
        int32, ascending: the candidates of the first trunk variable, if not simply the domain of its plan.
    """

    def __init__(self, store: Store, body: Body, plan: Plan, starts: npt.NDArray[np.int32] | None = None) -> None:
        self.plan = plan
        relations = body.relations
        rows = store.rows([(relations[relation], direction) for relation, direction in plan.slots])
        constraints = plan.constraints.copy()
        if rows:
            constraints[:, 0] = np.array(rows, dtype=np.int64)[constraints[:, 0]]
        terms = np.zeros(body.shape.variables + len(body.constants), dtype=np.int32)
        terms[body.shape.variables :] = body.constants
        state = np.zeros((len(plan.nodes), 2 * plan.lists + 4), dtype=np.int64)
        domains = [store.starts(relations[relation], direction) for relation, direction in plan.domains]
        if starts is not None:
            domains.append(starts)
        if domains:
            ends = np.cumsum([0, *map(len, domains)])
            of = plan.nodes[:, DOMAIN]
            state[:, -4], state[:, -3] = ends[of], ends[of + 1]
            if starts is not None:
                state[0, -4:-2] = ends[-2:]
        self.arguments: tuple[Any, ...] = (
            plan.nodes,
            constraints,
            plan.differs,
            store.pointers,
            store.values,
            domains[0] if len(domains) == 1 else np.concatenate([_NOTHING, *domains]),
            terms,
            np.full((plan.memos, store.entities), -1, dtype=np.int64),
            state,
        )

    def free_parts_exist(self) -> bool:
        """Say whether every subtree without context has a witness."""
        return all(kernels.count(root, True, *self.arguments) for root in self.plan.free)


# Where a plan takes many steps, it pays to look for a better one.
MANY_STEPS = 1e5


def support(store: Store, bound: Bound) -> int:
    """Return the number of witnesses of a body.

    Raises
    ------
    LimitError
        When one connected part of the body has about 9·10^18 witnesses or more.
    """
    body = Body.of(store, bound)
    if body is None:
        return 0
    plan = plan_count(body.shape, body.scales)
    if plan.cost > MANY_STEPS:
        dropped = _inequality_to_drop(body.shape, body.scales, plan.cost)
        if dropped is not None:
            a, b = dropped
            rest = tuple(pair for pair in bound.inequalities if set(pair) != {a, b})
            without = replace(bound, inequalities=rest)
            return support(store, without) - support(store, rename(without, {b: a}))
    search = Search(store, body, plan)
    counts = []
    for root in plan.free:
        found = int(kernels.count(root, False, *search.arguments))
        if found == 0:
            return 0
        counts.append(found)
    if kernels.TOO_MANY in counts:
        raise LimitError("a rule has more witnesses than 64 bits can count")
    return prod(counts)


def exists(store: Store, bound: Bound) -> bool:
    """Say whether a body has a witness."""
    body = Body.of(store, bound)
    if body is None:
        return False
    return Search(store, body, plan_count(body.shape, body.scales)).free_parts_exist()


@lru_cache(maxsize=4096)
def _inequality_to_drop(shape: Shape, scales: Scales, cost: float) -> tuple[int, int] | None:
    """Return the inequality a ≠ b for which B - B[a = b] promises much less work than B ∧ a ≠ b."""
    best = cost / 2
    found = None
    for pair in shape.inequalities:
        if max(pair) >= shape.variables:
            continue
        rest = tuple(other for other in shape.inequalities if other != pair)
        terms = {pair[1]: pair[0]}
        atoms = ((terms.get(s, s), r, terms.get(o, o)) for s, r, o in shape.atoms)
        others = tuple((terms.get(a, a), terms.get(b, b)) for a, b in rest)
        absent = tuple((_renamed(s, terms), r, _renamed(o, terms)) for s, r, o in shape.absent)
        merged = replace(shape, atoms=tuple(dict.fromkeys(atoms)), inequalities=others, absent=absent)
        without = replace(shape, inequalities=rest)
        costs = plan_count(without, scales).cost
        if not any(a == b for a, b in others):
            costs += plan_count(merged, scales).cost
        if costs < best:
            best, found = costs, pair
    return found


def _renamed(term: int | None, terms: dict[int, int]) -> int | None:
    return None if term is None else terms.get(term, term)


Int32 = npt.NDArray[np.int32]

# Fewer starts than this are not worth a walk, nor is a walk from more than a quarter of their number.
MANY_STARTS = 512
SEED_RATIO = 4


def reduced_starts(store: Store, body: Body, variable: int, starts: Int32) -> Int32:
    """Return those of the values of a variable that a small atom of the body can be reached from.

    Parameters
    ----------
    store, body
        The body.
    variable
        The variable.
    starts
        Its values, ascending, as far as its own atoms tell.
    """
    if len(starts) < MANY_STARTS:
        return starts
    size, seed = min(_seeds(store, body), key=lambda item: item[0])
    if SEED_RATIO * size > len(starts):
        return starts
    path = _path(body, seed[0], variable)
    if path is None:
        return starts
    values = _seed_values(store, body, seed)
    for relation, direction in path:
        values = _step(store, values, relation, direction)
    return np.intersect1d(values, starts, assume_unique=True)


def _seeds(store: Store, body: Body) -> list[tuple[int, tuple[int, int, int, int]]]:
    """Return for each variable of each atom how many values it has there."""
    variables = body.shape.variables
    found: list[tuple[int, tuple[int, int, int, int]]] = []
    for subject, relation, object_ in body.shape.atoms:
        for term, other, direction in ((subject, object_, FORWARD), (object_, subject, INVERSE)):
            if term < variables:
                size = len(store.starts(body.relations[relation], direction))
                if other >= variables:
                    constant = body.constants[other - variables]
                    size = len(store.list_of(body.relations[relation], 1 - direction, constant))
                found.append((size, (term, other, relation, direction)))
    return found


def _seed_values(store: Store, body: Body, seed: tuple[int, int, int, int]) -> Int32:
    _, other, relation, direction = seed
    if other >= body.shape.variables:
        constant = body.constants[other - body.shape.variables]
        return store.list_of(body.relations[relation], 1 - direction, constant)
    return store.starts(body.relations[relation], direction)


def _path(body: Body, source: int, target: int) -> list[tuple[int, int]] | None:
    """Return the steps (relation, direction) of a shortest walk between two variables."""
    variables = body.shape.variables
    found: dict[int, list[tuple[int, int]]] = {source: []}
    queue = [source]
    while queue and target not in found:
        at = queue.pop(0)
        for subject, relation, object_ in body.shape.atoms:
            for a, b, direction in ((subject, object_, FORWARD), (object_, subject, INVERSE)):
                if a == at and b < variables and b not in found:
                    found[b] = [*found[at], (body.relations[relation], direction)]
                    queue.append(b)
    return found.get(target)


def _step(store: Store, values: Int32, relation: int, direction: int) -> Int32:
    """Return the union of the lists of some values, ascending."""
    (row,) = store.rows([(relation, direction)])
    begin = store.pointers[row, values].astype(np.int64)
    length = store.pointers[row, values + 1] - begin
    ends = np.cumsum(length)
    total = int(ends[-1]) if len(ends) else 0
    places = np.arange(total) + np.repeat(begin - (ends - length), length)
    reached = np.zeros(store.entities, dtype=bool)
    reached[store.values[places]] = True
    return np.flatnonzero(reached).astype(np.int32)


# Where a trunk meets so many values, it pays to count which end is better.
PROJECTION_MANY_STEPS = 1e6


def project(store: Store, bound: Bound, wanted: tuple[int, ...], limit: int) -> Projection:
    """Return the distinct values of one variable, or of a pair of different ones.

    A pair whose variables nothing connects is returned as a product.

    Raises
    ------
    LimitError
        When there are more than `limit` pairs to list.
    """
    if len(wanted) == 2:
        apart = separate(bound, (wanted[0], wanted[1]))
        if apart is not None:
            sides = [project(store, apart, (variable,), limit).left for variable in wanted]
            return Projection(sides[0], sides[1], True, len(apart.inequalities) < len(bound.inequalities))
    search = _prepare(store, bound, wanted)
    if search is None:
        return Projection(_NOTHING, _NOTHING)
    left, right = _run_projection(store, search, limit)
    if len(wanted) == 1:
        return Projection(left, left)
    if search.plan.nodes[0, VARIABLE] != wanted[0]:
        turned = np.empty_like(left), np.empty_like(left)
        kernels.transpose(left, right, store.entities, *turned)
        left, right = turned
    return Projection(left, right)


def project_in_parts(
    store: Store, bound: Bound, wanted: tuple[int, int], room: int
) -> Iterator[tuple[Int32, Int32, bool]]:
    """Yield the distinct values of a pair of variables that something connects, in disjoint parts.

    A part is sorted by the first variable, then the second; where the third value says so, by the second,
    then the first.

    Parameters
    ----------
    store, bound, wanted
        As for `project`.
    room
        How many pairs a part has, at most; more where the graph has more than a third as many entities.
    """
    search = _prepare(store, bound, wanted)
    if search is None:
        return
    turned = bool(search.plan.nodes[0, VARIABLE] != wanted[0])
    scratch = _scratch(store, search.plan)
    room = max(room, 3 * store.entities, 1 << 14)
    begin, done = 0, False
    while not done:
        left, right = (side[:room] for side in store.room(room))
        end, done = kernels.project(search.plan.trunk, begin, left, right, *scratch, *search.arguments)
        first, second = left[begin:end].copy(), right[begin:end].copy()
        store.leave()
        yield (second, first, True) if turned else (first, second, False)
        begin = 1  # only a size above zero resumes the search


def _prepare(store: Store, bound: Bound, wanted: tuple[int, ...]) -> Search | None:
    """Plan a projection; None if the body has no witness, as can be seen at once."""
    body = Body.of(store, bound)
    if body is None:
        return None
    plan = _projection_plan(store, bound, body, wanted)
    search = Search(store, body, plan, _starts(store, body, plan))
    return search if search.free_parts_exist() else None


def _scratch(store: Store, plan: Plan) -> tuple[npt.NDArray[Any], ...]:
    """Return marks, blocks, serial numbers and stamps for the projection kernel."""
    blocks = np.zeros(8 * (store.entities // 2048 + 1), dtype=np.uint8)
    marks = np.zeros(256 * len(blocks), dtype=np.uint8)
    serial = np.zeros(plan.trunk, dtype=np.int64)
    return marks, blocks, serial, np.zeros((plan.stamps, store.entities), dtype=np.int64)


def _run_projection(store: Store, search: Search, limit: int) -> tuple[Int32, Int32]:
    """Run the projection kernel, giving it more room as often as it asks for it."""
    scratch = _scratch(store, search.plan)
    size, done = 0, False
    try:
        while not done:
            left, right = store.room(max(2 * size, 2 * len(scratch[0]), 1 << 16))
            size, done = kernels.project(search.plan.trunk, size, left, right, *scratch, *search.arguments)
            if size > limit:
                raise too_many(size, limit)
        return left[:size].copy(), right[:size].copy()
    finally:
        store.leave()


def _projection_plan(store: Store, bound: Bound, body: Body, wanted: tuple[int, ...]) -> Plan:
    """Plan a projection from the end where the trunk meets less.

    Averages say little about skewed relations, so where much is at stake the beginnings of both trunks are
    counted exactly.
    """
    plans = plan_projection(body.shape, body.scales, wanted)
    cheapest = min(plans, key=lambda plan: plan.cost)
    if cheapest.trunk <= 2 or max(plan.cost for plan in plans) < PROJECTION_MANY_STEPS:
        return cheapest
    return min(plans, key=lambda plan: _steps(store, bound, body, plan))


def _starts(store: Store, body: Body, plan: Plan) -> Int32 | None:
    """Return the values at which a plan's trunk starts; None if it starts with a list."""
    if plan.nodes[0, DOMAIN] < 0:
        return None
    relation, direction = plan.domains[plan.nodes[0, DOMAIN]]
    starts = store.starts(body.relations[relation], direction)
    return reduced_starts(store, body, int(plan.nodes[0, VARIABLE]), starts)


def _steps(store: Store, bound: Bound, body: Body, plan: Plan) -> int:
    """Return about how many values the trunk of a plan meets."""
    path = [int(v) for v in plan.nodes[: plan.trunk, VARIABLE]]
    first = _starts(store, body, plan)
    starts = store.entities if first is None else len(first)
    steps = 0
    for length in range(3, len(path) + 1):
        part = restrict(bound, path[:length])
        # Each first value meets each pair of the last step once at most.
        last = set(range(length - 2, length))
        once = [store.size(a.relation) for a in part.atoms if {a.subject, a.object} == last]
        steps += min(support(store, part), starts * min(once))
    return steps


def too_many(size: int, limit: int) -> LimitError:
    """Return the error for a rule that concludes too much."""
    return LimitError(
        f"a rule has at least {size:,} conclusions; the limit is {limit:,}",
        hint="add an atom that connects the head's variables, or raise the engine's `max_conclusions`",
    )


# More witnesses than this are not listed: they would fill the memory.
MAX_WITNESSES = 200_000_000
# Up to this many witnesses are listed in any order and sorted, whatever the limit.
_FEW_WITNESSES = 200_000


def check(
    store: Store, bound: Bound, given: tuple[int, ...], values: Int32, asked: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which values of some variables extend to a witness.

    Parameters
    ----------
    store, bound
        The body.
    given
        Distinct variables, at least one.
    values
        int32[n, len(given)].
    asked
        bool[n]; rows that are not asked about come out false.
    """
    body = Body.of(store, bound)
    if body is None:
        return np.zeros(len(values), dtype=bool)
    search = Search(store, body, plan_check(body.shape, body.scales, given))
    if not search.free_parts_exist():
        return np.zeros(len(values), dtype=bool)
    found = np.ones(len(values), dtype=bool) if asked is None else asked.copy()
    kernels.check(np.ascontiguousarray(values, dtype=np.int32), found, *search.arguments)
    return found


def witnesses(store: Store, bound: Bound, limit: int | None = None) -> Int32:
    """Return the first `limit` witnesses, int32[m, variables], in ascending order."""
    variables = len(bound.variables)
    body = Body.of(store, bound)
    if body is None or (limit is not None and limit <= 0):
        return np.empty((0, variables), dtype=np.int32)
    if variables == 0:
        return np.empty((1, 0), dtype=np.int32)
    try:
        total = support(store, bound)
    except LimitError:
        total = 2**63 - 1
    wanted = total if limit is None else min(limit, total)
    if wanted > MAX_WITNESSES:
        raise LimitError(
            f"a rule has {total:,} witnesses; at most {MAX_WITNESSES:,} can be listed", hint="give a limit"
        )
    ordered = total > max(wanted, _FEW_WITNESSES)
    search = Search(store, body, plan_listing(body.shape, body.scales, ordered))
    rows = np.empty((wanted if ordered else total, variables), dtype=np.int32)
    rows = rows[: kernels.listing(rows, *search.arguments)]
    return rows if ordered else rows[np.lexsort(rows.T[::-1])][:wanted]


def first_witnesses(store: Store, bound: Bound, values: Int32) -> Int32:
    """Return the smallest witness of each conclusion, int32[n, variables].

    Parameters
    ----------
    store, bound
        The rule.
    values
        int32[n, 2]: subjects and objects of its conclusions.
    """
    body = Body.of(store, bound)
    if body is None:
        return np.full((len(values), len(bound.variables)), -1, dtype=np.int32)
    known = body

    def smallest(part: Part, asked: Int32) -> Int32:
        plan = plan_first(known.shape, known.scales, part.context, part.variables)
        rows = np.empty((len(asked), len(part.variables)), dtype=np.int32)
        kernels.first(asked, rows, *Search(store, known, plan).arguments)
        return rows

    return combine(bound, values, smallest)


# A rule with more conclusions than this is refused: as triples they take 12 bytes each, and as much
# again while they are made.
MAX_CONCLUSIONS = 200_000_000

# About so many conclusions are in memory at a time, where parts are enough.
PART = 2**22

# Projections of the last bodies are kept: rules often differ in the head only.
_KEPT_BODIES = 64
_KEPT_VALUES = 8_000_000

# Of a body everything but the head, and the variables that are projected to.
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

    @cached_property
    def _store(self) -> GraphStore:
        # Ranking and materialisation have their own; only single rules need the graph's index.
        return GraphStore(self.graph.index)

    # -- one rule -------------------------------------------------------------------------------

    def support(self, rule: Rule) -> int:
        """Return the number of witnesses: substitutions of all variables of the body."""
        return support(self._store, bind(rule, self.graph))

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
        return Projection.of(head, np.zeros(int(exists(self._store, bound)), dtype=np.int32))

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
            raise too_many(len(projection), self.max_conclusions)
        return self._triples(*projection.pairs(), bound.head.relation, new)

    def conclusions_in_parts(self, rule: Rule, *, new: bool = False) -> Iterator[Triples]:
        """Yield T_r(K) or T_r(K) ∖ K in disjoint parts, in no particular order.

        There may be any number of conclusions: a few million are in memory at a time.
        """
        bound = bind(rule, self.graph)
        head = bound.head
        pair = (head.subject, head.object)
        if min(pair) >= 0 and pair[0] != pair[1] and separate(bound, pair) is None:
            for left, right, turned in project_in_parts(self._store, bound, pair, PART):
                yield self._triples(left, right, head.relation, new, turned)
            return
        found = self._projection(bound)
        step = max(PART // max(len(found.right), 1), 1) if found.product else max(len(found.left), 1)
        for start in range(0, len(found.left), step):
            left = found.left[start : start + step]
            part = replace(found, left=left) if found.product else found
            yield self._triples(*part.pairs(), head.relation, new)

    def sample_conclusions(self, rule: Rule, salt: int, count: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Return |T_r(K) ∖ K|, and the keys of the first `count` of these triples in hash order."""
        return first_of_parts(self.conclusions_in_parts(rule, new=True), self.graph.keys, salt, count)

    def _triples(
        self, left: npt.NDArray[np.int32], right: npt.NDArray[np.int32], relation: int, new: bool, turned: bool = False
    ) -> Triples:
        """Return sorted pairs as triples, with `new` those that are not in K; `turned`: sorted by `right`."""
        index = self.graph.index
        known = index.inverse_pairs(relation) if turned else index.pairs(relation)
        if not new:
            known = (known[0][:0], known[1][:0])
        triples = np.empty((len(left), 3), dtype=np.int32)
        first, second = (right, left) if turned else (left, right)
        size = kernels.assemble(first, second, relation, *known, triples)
        return triples[:size, ::-1] if turned else triples[:size]

    def _project(self, bound: Bound, variables: tuple[int, ...]) -> Projection:
        key = (bound.atoms, bound.inequalities, bound.negations, bound.empty, variables)
        found = self._projections.get(key)
        if found is not None:
            self._projections.move_to_end(key)
            return found
        found = project(self._store, bound, variables, self.max_conclusions)
        self._projections[key] = found
        self._kept += len(found.left) + len(found.right)
        while self._kept > _KEPT_VALUES or len(self._projections) > _KEPT_BODIES:
            _, dropped = self._projections.popitem(last=False)
            self._kept -= len(dropped.left) + len(dropped.right)
        return found

    def witnesses(self, rule: Rule, *, limit: int | None = None, conclusion: Sequence[int] | None = None) -> Witnesses:
        """Return the first `limit` witnesses, all of them or those of one conclusion triple."""
        bound = bind(rule, self.graph)
        if conclusion is None:
            return Witnesses(rule, witnesses(self._store, bound, limit))
        head = bound.head
        values: dict[int, int] = {}
        matches = head.relation == int(conclusion[1])
        for term, value in ((head.subject, int(conclusion[0])), (head.object, int(conclusion[2]))):
            matches &= 0 <= value < len(self.graph.entities)
            matches &= (values.setdefault(term, value) if term >= 0 else ~term) == value
        rows = np.empty((0, len(bound.variables)), dtype=np.int32)
        if matches:
            found = witnesses(self._store, substitute(bound, values), limit)
            rows = np.empty((len(found), len(bound.variables)), dtype=np.int32)
            for variable, value in values.items():
                rows[:, variable] = value
            rows[:, [v for v in range(len(bound.variables)) if v not in values]] = found
        return Witnesses(rule, rows)

    def first_witnesses(self, rule: Rule, triples: Triples) -> npt.NDArray[np.int32]:
        """Return the first witness of each triple, int32[n, v]; -1s where the rule does not derive it."""
        bound = bind(rule, self.graph)
        rows = np.full((len(triples), len(bound.variables)), -1, dtype=np.int32)
        derived = self.derives([rule], triples)
        if derived.any():
            values = np.asarray(triples, dtype=np.int32)[derived, ::2]
            rows[derived] = first_witnesses(self._store, bound, values)
        return rows

    # -- many rules and triples -----------------------------------------------------------------

    def derives(self, rules: Sequence[Rule], triples: Triples) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which of these triples are in T_R(K)."""
        derived = np.zeros(len(triples), dtype=bool)
        for _, places, found in self._derivations(rules, triples, derived):
            derived[places[found]] = True
        return derived

    def derived(self, rules: Sequence[Rule], graph: KnowledgeGraph) -> KnowledgeGraph:
        """Return the triples of another graph, over the same vocabularies, that are in T_R(K)."""
        return self.graph.with_triples(graph.triples[self.derives(rules, graph.triples)])

    def derivations(self, rules: Sequence[Rule], triples: Triples) -> Derivations:
        """Return every pair of a triple and a rule that derives it in one step."""
        triple = [np.empty(0, dtype=np.int64)]
        rule = [np.empty(0, dtype=np.int64)]
        for number, places, found in self._derivations(rules, triples, None):
            triple.append(places[found])
            rule.append(np.full(len(triple[-1]), number, dtype=np.int64))
        all_triples, all_rules = np.concatenate(triple), np.concatenate(rule)
        order = np.lexsort((all_rules, all_triples))
        return Derivations(all_triples[order], all_rules[order])

    def _derivations(
        self, rules: Sequence[Rule], triples: Triples, derived: npt.NDArray[np.bool_] | None
    ) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
        """Yield for each rule its number, places of triples, and which of those it derives.

        Triples that `derived` marks meanwhile are not asked about again.
        """
        triples = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
        by_relation = _PlacesByRelation(triples, self.graph)
        relations: dict[str, int] = {}
        pairs: dict[int, npt.NDArray[np.int32]] = {}
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
            places = by_relation[head.relation]
            if head.relation not in pairs:
                pairs[head.relation] = np.ascontiguousarray(triples[places][:, ::2], dtype=np.int32)
            values = pairs[head.relation]
            if head.subject < 0 or head.object < 0 or head.subject == head.object:
                matches = _matches(head, values)
                places, values = places[matches], values[matches]
                if not len(places):
                    continue
            asked = np.ones(len(places), dtype=bool) if derived is None else ~derived[places]
            if asked.any():
                yield number, places, self._check(bound, values, asked)

    def _check(
        self, bound: Bound, values: npt.NDArray[np.int32], asked: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        columns = {t: i for i, t in enumerate((bound.head.subject, bound.head.object)) if t >= 0}
        if not columns:
            return asked & exists(self._store, bound)
        return check(self._store, bound, tuple(columns), values[:, list(columns.values())], asked)

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


def _matches(head: BoundAtom, values: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which pairs of subject and object a head with constants or a repetition fits."""
    fits = np.ones(len(values), dtype=bool)
    if head.subject < 0:
        fits &= values[:, 0] == ~head.subject
    if head.object < 0:
        fits &= values[:, 1] == ~head.object
    if head.subject == head.object:
        fits &= values[:, 0] == values[:, 1]
    return fits


class _PlacesByRelation:
    """For each relation the places of its triples, ascending; without those that have an unknown id."""

    def __init__(self, triples: Triples, graph: KnowledgeGraph) -> None:
        # Kernels use ids as places in arrays, unchecked.
        sizes = np.array([len(graph.entities), len(graph.relations), len(graph.entities)])
        known = np.flatnonzero(((triples >= 0) & (triples < sizes)).all(axis=1))
        relations = triples[known, 1]
        self._order = known[np.argsort(relations, kind="stable")]
        self._ends = np.cumsum(np.bincount(relations, minlength=len(graph.relations)))

    def __getitem__(self, relation: int) -> npt.NDArray[np.int64]:
        begin = self._ends[relation - 1] if relation else 0
        return self._order[begin : self._ends[relation]]
