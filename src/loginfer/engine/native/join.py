"""What a body's witnesses are: counting, projecting, checking and listing them by the compiled join.

Everything here takes a `RelationIndex` (a graph's relations, or any sets of pairs) and a `Bound` body whose
relation ids are the index's; heads are looked at by the callers. To evaluate a body with one atom over other
pairs than the rest (semi-naive rounds), give those pairs an id of their own in the index and put it into that
atom.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import prod

import numpy as np

from loginfer.engine.binding import BodyPart, Bound, combine, separate
from loginfer.engine.interface import Projection
from loginfer.engine.native import join_kernels as kernels
from loginfer.engine.native.plan import (
    DOMAIN,
    VARIABLE,
    Body,
    BodyShape,
    JoinPlan,
    Scales,
    plan_check,
    plan_count,
    plan_first,
    plan_listing,
    plan_projection,
    rename,
    restrict,
)
from loginfer.errors import LimitError
from loginfer.kg.graph import FORWARD, INVERSE, Ids, Mask, RelationIndex, ranges

_NOTHING = np.empty(0, dtype=np.int32)


class BodySearch:
    """A plan with a body's ids in it, and scratch memory: the arguments that all kernels share.

    Parameters
    ----------
    index, body, plan
        What to search, for what, and how.
    starts
        int32, ascending: the candidates of the first trunk variable, if not simply the domain of its plan.
    """

    def __init__(self, index: RelationIndex, body: Body, plan: JoinPlan, starts: Ids | None = None) -> None:
        self.plan = plan
        relations = body.relations
        pointers, rows = index.rows([(relations[relation], direction) for relation, direction in plan.slots])
        constraints = plan.constraints.copy()
        if rows:
            constraints[:, 0] = np.array(rows, dtype=np.int64)[constraints[:, 0]]
        terms = np.zeros(body.shape.variables + len(body.constants), dtype=np.int32)
        terms[body.shape.variables :] = body.constants
        state = np.zeros((len(plan.nodes), 2 * plan.lists + 4), dtype=np.int64)
        domains = [index.starts(relations[relation], direction) for relation, direction in plan.domains]
        if starts is not None:
            domains.append(starts)
        if domains:
            ends = np.cumsum([0, *map(len, domains)])
            domain_of = plan.nodes[:, DOMAIN]
            state[:, -4], state[:, -3] = ends[domain_of], ends[domain_of + 1]
            if starts is not None:
                state[0, -4:-2] = ends[-2:]
        self.arrays = kernels.JoinArrays(
            plan.nodes,
            constraints,
            plan.differs,
            pointers,
            index.columns,
            domains[0] if len(domains) == 1 else np.concatenate([_NOTHING, *domains]),
            terms,
            np.full((plan.memos, index.entities), -1, dtype=np.int64),
            state,
        )

    def free_parts_exist(self) -> bool:
        """Say whether every subtree without context has a witness."""
        return all(kernels.count(root, True, self.arrays) for root in self.plan.free)


# From this many steps on it pays to look for a better plan for a count.
COSTLY_COUNT = 1e5


def support(index: RelationIndex, bound: Bound) -> int:
    """Return the number of witnesses of a body.

    Raises
    ------
    LimitError
        When one connected part of the body has about 9·10^18 witnesses or more.
    """
    body = Body.of(index, bound)
    if body is None:
        return 0
    plan = plan_count(body.shape, body.scales)
    if plan.cost > COSTLY_COUNT:
        dropped = _inequality_to_drop(body.shape, body.scales, plan.cost)
        if dropped is not None:
            a, b = dropped
            rest = tuple(pair for pair in bound.inequalities if set(pair) != {a, b})
            without = replace(bound, inequalities=rest)
            return support(index, without) - support(index, rename(without, {b: a}))
    search = BodySearch(index, body, plan)
    counts = []
    for root in plan.free:
        count = int(kernels.count(root, False, search.arrays))
        if count == 0:
            return 0
        counts.append(count)
    if kernels.TOO_MANY in counts:
        raise LimitError("a rule has more witnesses than 64 bits can count")
    return prod(counts)


def exists(index: RelationIndex, bound: Bound) -> bool:
    """Say whether a body has a witness."""
    body = Body.of(index, bound)
    if body is None:
        return False
    return BodySearch(index, body, plan_count(body.shape, body.scales)).free_parts_exist()


@lru_cache(maxsize=4096)
def _inequality_to_drop(shape: BodyShape, scales: Scales, cost: float) -> tuple[int, int] | None:
    """Return the inequality a ≠ b for which B - B[a = b] promises much less work than B ∧ a ≠ b."""
    best = cost / 2
    best_pair = None
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
            best, best_pair = costs, pair
    return best_pair


def _renamed(term: int | None, terms: dict[int, int]) -> int | None:
    return None if term is None else terms.get(term, term)


# Fewer starts than this are not worth a walk, nor is a walk from more than a quarter of their number.
MANY_STARTS = 512
SEED_RATIO = 4


def _reduced_starts(index: RelationIndex, body: Body, variable: int, starts: Ids) -> Ids:
    """Return those of the values of a variable that a small atom of the body can be reached from.

    A trunk starts at a variable of the head and tries all its values. If an atom elsewhere in the body has few
    pairs, such as the delta of a round or the list of a constant, only those values matter that are connected
    with it; they are found by walking from the small atom to the start.

    Parameters
    ----------
    index, body
        The body.
    variable
        The variable.
    starts
        Its values, ascending, as far as its own atoms tell.
    """
    if len(starts) < MANY_STARTS:
        return starts
    size, seed = min(_seeds(index, body), key=lambda item: item[0])
    if SEED_RATIO * size > len(starts):
        return starts
    path = _path(body, seed[0], variable)
    if path is None:
        return starts
    values = _seed_values(index, body, seed)
    for relation, direction in path:
        values = _step(index, values, relation, direction)
    return np.intersect1d(values, starts, assume_unique=True)


def _seeds(index: RelationIndex, body: Body) -> list[tuple[int, tuple[int, int, int, int]]]:
    """Return for each variable of each atom how many values it has there."""
    variables = body.shape.variables
    seeds: list[tuple[int, tuple[int, int, int, int]]] = []
    for subject, relation, object_ in body.shape.atoms:
        for term, other, direction in ((subject, object_, FORWARD), (object_, subject, INVERSE)):
            if term < variables:
                size = len(index.starts(body.relations[relation], direction))
                if other >= variables:
                    constant = body.constants[other - variables]
                    size = len(index.neighbours(body.relations[relation], 1 - direction, constant))
                seeds.append((size, (term, other, relation, direction)))
    return seeds


def _seed_values(index: RelationIndex, body: Body, seed: tuple[int, int, int, int]) -> Ids:
    _, other, relation, direction = seed
    if other >= body.shape.variables:
        constant = body.constants[other - body.shape.variables]
        return index.neighbours(body.relations[relation], 1 - direction, constant)
    return index.starts(body.relations[relation], direction)


def _path(body: Body, source: int, target: int) -> list[tuple[int, int]] | None:
    """Return the steps (relation, direction) of a shortest walk between two variables."""
    variables = body.shape.variables
    steps_to: dict[int, list[tuple[int, int]]] = {source: []}
    queue = [source]
    while queue and target not in steps_to:
        variable = queue.pop(0)
        for subject, relation, object_ in body.shape.atoms:
            for a, b, direction in ((subject, object_, FORWARD), (object_, subject, INVERSE)):
                if a == variable and b < variables and b not in steps_to:
                    steps_to[b] = [*steps_to[variable], (body.relations[relation], direction)]
                    queue.append(b)
    return steps_to.get(target)


def _step(index: RelationIndex, values: Ids, relation: int, direction: int) -> Ids:
    """Return the union of the lists of some values, ascending."""
    pointers = index.pointers(relation, direction)
    begin = pointers[values].astype(np.int64)
    _, positions = ranges(begin, pointers[values + 1] - begin)
    reached = np.zeros(index.entities, dtype=bool)
    reached[index.columns[positions]] = True
    return np.flatnonzero(reached).astype(np.int32)


# From this many values on a trunk it pays to count which end is better.
COSTLY_PROJECTION = 1e6


def project(index: RelationIndex, bound: Bound, variables: tuple[int, ...], limit: int) -> Projection:
    """Return the distinct values of one variable, or of a pair of different ones.

    A pair whose variables nothing connects is returned as a product.

    Raises
    ------
    LimitError
        When there are more than `limit` pairs to list.
    """
    if len(variables) == 2:
        apart = separate(bound, (variables[0], variables[1]))
        if apart is not None:
            sides = [project(index, apart, (variable,), limit).left for variable in variables]
            return Projection(sides[0], sides[1], True, len(apart.inequalities) < len(bound.inequalities))
    search = _prepare(index, bound, variables)
    if search is None:
        return Projection(_NOTHING, _NOTHING)
    left, right = _run_projection(index, search, limit)
    if len(variables) == 1:
        return Projection(left, left)
    if search.plan.nodes[0, VARIABLE] != variables[0]:
        turned = np.empty_like(left), np.empty_like(left)
        kernels.transpose(left, right, index.entities, *turned)
        left, right = turned
    return Projection(left, right)


def project_in_parts(
    index: RelationIndex, bound: Bound, variables: tuple[int, int], max_pairs: int
) -> Iterator[tuple[Ids, Ids, bool]]:
    """Yield the distinct values of a pair of variables that something connects, in disjoint parts.

    A part is sorted by the first variable, then the second; where the third value says so, by the second,
    then the first.

    Parameters
    ----------
    index, bound, variables
        As for `project`.
    max_pairs
        How many pairs a part has, at most; more where the graph has more than a third as many entities.
    """
    search = _prepare(index, bound, variables)
    if search is None:
        return
    turned = bool(search.plan.nodes[0, VARIABLE] != variables[0])
    marks = _marks(index, search.plan)
    max_pairs = max(max_pairs, 3 * index.entities, 1 << 14)
    begin, done = 0, False
    while not done:
        left, right = (side[:max_pairs] for side in _pair_buffers.take(max_pairs))
        end, done = kernels.project(search.plan.trunk, begin, left, right, marks, search.arrays)
        first, second = left[begin:end].copy(), right[begin:end].copy()
        _pair_buffers.leave()
        yield (second, first, True) if turned else (first, second, False)
        begin = 1  # only a size above zero resumes the search


def _prepare(index: RelationIndex, bound: Bound, variables: tuple[int, ...]) -> BodySearch | None:
    """Plan a projection; None if the body has no witness, as can be seen at once."""
    body = Body.of(index, bound)
    if body is None:
        return None
    plan = _projection_plan(index, bound, body, variables)
    search = BodySearch(index, body, plan, _starts(index, body, plan))
    return search if search.free_parts_exist() else None


# Pairs that a projection can write before it needs fresh memory, which is slow to allocate.
KEPT_PAIRS = 2**22


class _PairBuffers(threading.local):
    """Two arrays to write pairs to, which each thread keeps for its next projection."""

    left = right = _NOTHING

    def take(self, size: int) -> tuple[Ids, Ids]:
        """Return two arrays of at least this size; they hold what was written to them since `leave`."""
        if size > len(self.left):
            self.left, self.right = (
                np.concatenate([old, np.empty(size - len(old), dtype=np.int32)]) for old in (self.left, self.right)
            )
        return self.left, self.right

    def leave(self) -> None:
        """Say that the arrays are not needed for now; large ones are given back."""
        if len(self.left) > KEPT_PAIRS:
            self.left, self.right = np.empty((2, KEPT_PAIRS), dtype=np.int32)


_pair_buffers = _PairBuffers()


def _marks(index: RelationIndex, plan: JoinPlan) -> kernels.Marks:
    blocks = np.zeros(8 * (index.entities // 2048 + 1), dtype=np.uint8)
    values = np.zeros(256 * len(blocks), dtype=np.uint8)
    serial, stamps = np.zeros(plan.trunk, dtype=np.int64), np.zeros((plan.stamps, index.entities), dtype=np.int64)
    return kernels.Marks(values, blocks, serial, stamps)


def _run_projection(index: RelationIndex, search: BodySearch, limit: int) -> tuple[Ids, Ids]:
    """Run the projection kernel, giving it longer arrays as often as it needs them."""
    marks = _marks(index, search.plan)
    size, done = 0, False
    try:
        while not done:
            left, right = _pair_buffers.take(max(2 * size, 2 * len(marks.values), 1 << 16))
            size, done = kernels.project(search.plan.trunk, size, left, right, marks, search.arrays)
            if size > limit:
                raise too_many(size, limit)
        return left[:size].copy(), right[:size].copy()
    finally:
        _pair_buffers.leave()


def _projection_plan(index: RelationIndex, bound: Bound, body: Body, variables: tuple[int, ...]) -> JoinPlan:
    """Plan a projection from the end where the trunk meets less.

    Averages say little about skewed relations, so where much is at stake the beginnings of both trunks are
    counted exactly.
    """
    plans = plan_projection(body.shape, body.scales, variables)
    cheapest = min(plans, key=lambda plan: plan.cost)
    if cheapest.trunk <= 2 or max(plan.cost for plan in plans) < COSTLY_PROJECTION:
        return cheapest
    return min(plans, key=lambda plan: _steps(index, bound, body, plan))


def _starts(index: RelationIndex, body: Body, plan: JoinPlan) -> Ids | None:
    """Return the values at which a plan's trunk starts; None if it starts with a list."""
    if plan.nodes[0, DOMAIN] < 0:
        return None
    relation, direction = plan.domains[plan.nodes[0, DOMAIN]]
    starts = index.starts(body.relations[relation], direction)
    return _reduced_starts(index, body, int(plan.nodes[0, VARIABLE]), starts)


def _steps(index: RelationIndex, bound: Bound, body: Body, plan: JoinPlan) -> int:
    """Return about how many values the trunk of a plan meets."""
    path = [int(v) for v in plan.nodes[: plan.trunk, VARIABLE]]
    first = _starts(index, body, plan)
    starts = index.entities if first is None else len(first)
    steps = 0
    for length in range(3, len(path) + 1):
        part = restrict(bound, path[:length])
        # Each first value meets each pair of the last step once at most.
        last = set(range(length - 2, length))
        once = [index.count(a.relation) for a in part.atoms if {a.subject, a.object} == last]
        steps += min(support(index, part), starts * min(once))
    return steps


def too_many(size: int, limit: int) -> LimitError:
    """Return the error for a rule that concludes too much."""
    hint = "add an atom that connects the head's variables, or raise the engine's `max_conclusions`"
    return LimitError(f"a rule has at least {size:,} conclusions; the limit is {limit:,}", hint=hint)


# More witnesses than this are not listed: they would fill the memory.
MAX_WITNESSES = 200_000_000
# Up to this many witnesses are listed in any order and sorted, whatever the limit.
_FEW_WITNESSES = 200_000


def check(
    index: RelationIndex, bound: Bound, variables: tuple[int, ...], values: Ids, is_open: Mask | None = None
) -> Mask:
    """Return bool[n]: which values of some variables extend to a witness.

    Parameters
    ----------
    index, bound
        The body.
    variables
        Distinct variables, at least one.
    values
        int32[n, len(variables)].
    is_open
        bool[n], which rows to check; the others come out false.
    """
    body = Body.of(index, bound)
    if body is None:
        return np.zeros(len(values), dtype=bool)
    search = BodySearch(index, body, plan_check(body.shape, body.scales, variables))
    if not search.free_parts_exist():
        return np.zeros(len(values), dtype=bool)
    extends = np.ones(len(values), dtype=bool) if is_open is None else is_open.copy()
    kernels.check(np.ascontiguousarray(values, dtype=np.int32), extends, search.arrays)
    return extends


def witnesses(index: RelationIndex, bound: Bound, limit: int | None = None) -> Ids:
    """Return the first `limit` witnesses, int32[m, variables], in ascending order."""
    variables = len(bound.variables)
    body = Body.of(index, bound)
    if body is None or (limit is not None and limit <= 0):
        return np.empty((0, variables), dtype=np.int32)
    if variables == 0:
        return np.empty((1, 0), dtype=np.int32)
    try:
        total = support(index, bound)
    except LimitError:
        total = 2**63 - 1
    count = total if limit is None else min(limit, total)
    if count > MAX_WITNESSES:
        hint = "give a limit"
        raise LimitError(f"a rule has {total:,} witnesses; at most {MAX_WITNESSES:,} can be listed", hint=hint)
    ordered = total > max(count, _FEW_WITNESSES)
    search = BodySearch(index, body, plan_listing(body.shape, body.scales, ordered))
    rows = np.empty((count if ordered else total, variables), dtype=np.int32)
    rows = rows[: kernels.listing(rows, search.arrays)]
    return rows if ordered else rows[np.lexsort(rows.T[::-1])][:count]


def first_witnesses(index: RelationIndex, bound: Bound, values: Ids) -> Ids:
    """Return the smallest witness of each conclusion, int32[n, variables].

    Parameters
    ----------
    index, bound
        The rule.
    values
        int32[n, 2]: subjects and objects of its conclusions.
    """
    body = Body.of(index, bound)
    if body is None:
        return np.full((len(values), len(bound.variables)), -1, dtype=np.int32)
    known_body = body

    def smallest(part: BodyPart, contexts: Ids) -> Ids:
        plan = plan_first(known_body.shape, known_body.scales, part.context, part.variables)
        rows = np.empty((len(contexts), len(part.variables)), dtype=np.int32)
        kernels.first(contexts, rows, BodySearch(index, known_body, plan).arrays)
        return rows

    return combine(bound, values, smallest)
