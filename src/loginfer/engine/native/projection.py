"""The distinct values of a head's variables, without enumerating witnesses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import Bound
from loginfer.engine.interface import Projection
from loginfer.engine.native import join_kernels as kernels
from loginfer.engine.native.body import Body, restrict
from loginfer.engine.native.counting import support
from loginfer.engine.native.plan import DOMAIN, VARIABLE, Plan
from loginfer.engine.native.planner import plan_projection
from loginfer.engine.native.search import Search
from loginfer.engine.native.starts import reduced_starts
from loginfer.engine.native.store import Store
from loginfer.engine.parts import separate
from loginfer.errors import LimitError

__all__ = ["Projection", "project", "project_in_parts", "too_many"]

Int32 = npt.NDArray[np.int32]

# Where a trunk meets so many values, it pays to count which end is better.
MANY_STEPS = 1e6

_NOTHING = np.empty(0, dtype=np.int32)


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
    if cheapest.trunk <= 2 or max(plan.cost for plan in plans) < MANY_STEPS:
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
