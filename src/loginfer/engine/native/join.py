"""Rules over adjacency lists: support, projection, membership and witnesses by the compiled join.

Everything here takes a `Store` (a graph's relations, or any sets of pairs under any ids) and a `Bound`
body whose relation ids are the store's; heads are looked at by the callers. To evaluate a body with one
atom over other pairs than the rest (semi-naive rounds), give those pairs an id of their own in the store
and put it into that atom.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import Bound
from loginfer.engine.native import join_kernels as kernels
from loginfer.engine.native.body import Body, substitute
from loginfer.engine.native.counting import exists, support
from loginfer.engine.native.planner import plan_check, plan_first, plan_listing
from loginfer.engine.native.projection import Projection, project, project_in_parts, too_many
from loginfer.engine.native.search import Search
from loginfer.engine.native.store import Store
from loginfer.engine.parts import Part, combine
from loginfer.errors import LimitError

__all__ = [
    "MAX_WITNESSES",
    "Projection",
    "check",
    "exists",
    "first_witnesses",
    "project",
    "project_in_parts",
    "substitute",
    "support",
    "too_many",
    "witnesses",
]

Int32 = npt.NDArray[np.int32]

# More witnesses than this are not listed: they would fill the memory.
MAX_WITNESSES = 200_000_000
# Up to this many witnesses are listed in any order and sorted, whatever the limit.
_FEW_WITNESSES = 200_000


def check(
    store: Store,
    bound: Bound,
    given: tuple[int, ...],
    values: Int32,
    asked: npt.NDArray[np.bool_] | None = None,
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
            f"a rule has {total:,} witnesses; at most {MAX_WITNESSES:,} can be listed",
            hint="give a limit",
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
