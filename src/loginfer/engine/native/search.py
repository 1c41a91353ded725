"""From a plan and a body to the arguments of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.engine.native import join_kernels as kernels
from loginfer.engine.native.body import Body
from loginfer.engine.native.plan import DOMAIN, Plan
from loginfer.engine.native.store import Store

__all__ = ["Search"]

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

    def __init__(
        self, store: Store, body: Body, plan: Plan, starts: npt.NDArray[np.int32] | None = None
    ) -> None:
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
