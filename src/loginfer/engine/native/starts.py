"""Where a projection may start: fewer values than a relation has, if some other atom is small.

A trunk starts at a variable of the head and tries all its values. If an atom elsewhere in the body has few
pairs, such as the news of a round or the list of a constant, only those values matter that are connected
with it; they are found by walking from the small atom to the start.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.engine.native.body import Body
from loginfer.engine.native.store import Store
from loginfer.kg.index import FORWARD, INVERSE

__all__ = ["reduced_starts"]

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
