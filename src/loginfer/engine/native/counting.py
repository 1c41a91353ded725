"""The number of witnesses of a body, by sums of products."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod

from loginfer.engine.binding import Bound
from loginfer.engine.native import join_kernels as kernels
from loginfer.engine.native.body import Body, rename
from loginfer.engine.native.plan import Scales, Shape
from loginfer.engine.native.planner import plan_count
from loginfer.engine.native.search import Search
from loginfer.engine.native.store import Store
from loginfer.errors import LimitError

__all__ = ["MANY_STEPS", "exists", "support"]

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
