"""Which variables of a body depend on each other, once some have their values.

Atoms, inequalities and negations hold variables together; a variable whose value is given holds nothing
together any more. The parts that remain have nothing to do with each other: a witness of the body is a
witness of each part, chosen on its own. So the conclusions of a body that falls apart between the head's
variables are a product, and the smallest witness of a body is made of the smallest witnesses of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import Bound

__all__ = ["Part", "Smallest", "combine", "parts", "separate"]

Ids: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Part:
    """Variables that depend on each other.

    Parameters
    ----------
    variables
        Places of the part's variables, ascending.
    context
        Those of the given variables that it depends on, in the order in which they were given.
    """

    variables: tuple[int, ...]
    context: tuple[int, ...]


# Given a part and int32[m, context], distinct values of its context that have a witness: int32[m, variables],
# the smallest witness of each.
Smallest: TypeAlias = Callable[[Part, Ids], Ids]


def parts(bound: Bound, given: Sequence[int] = ()) -> list[Part]:
    """Return the parts of a body in the order of their first variables, without the given variables."""
    pairs = [(atom.subject, atom.object) for atom in bound.atoms] + list(bound.inequalities)
    edges = [{term for term in pair if term >= 0} for pair in pairs]
    edges += [set(negation.variables) for negation in bound.negations]
    rest = [v for v in range(len(bound.variables)) if v not in given]
    found = []
    while rest:
        reached, grown = set[int](), {rest[0]}
        while grown != reached:
            reached = grown
            inside = reached.difference(given)
            grown = reached.union(*(edge for edge in edges if edge & inside))
        found.append(Part(tuple(v for v in rest if v in reached), tuple(v for v in given if v in reached)))
        rest = [v for v in rest if v not in reached]
    return found


def separate(bound: Bound, pair: tuple[int, int]) -> Bound | None:
    """Return the body without `a != b`, if nothing else connects these two variables; else None."""
    rest = tuple(inequality for inequality in bound.inequalities if set(inequality) != set(pair))
    apart = replace(bound, inequalities=rest)
    if any(set(pair) <= set(part.variables) for part in parts(apart)):
        return None
    return apart


def combine(bound: Bound, values: Ids, smallest: Smallest) -> Ids:
    """Return the smallest witness of each conclusion, int32[n, variables], part by part.

    Parameters
    ----------
    bound
        The rule.
    values
        int32[n, 2]: subjects and objects of conclusions of this rule.
    smallest
        Finds the smallest witnesses of one part. It is asked once for each value of the part's context.
    """
    columns = {t: values[:, i] for i, t in enumerate((bound.head.subject, bound.head.object)) if t >= 0}
    rows = np.empty((len(values), len(bound.variables)), dtype=np.int32)
    for variable, column in columns.items():
        rows[:, variable] = column
    for part in parts(bound, tuple(columns)):
        asked, places = _distinct([columns[v] for v in part.context], len(values))
        rows[:, part.variables] = smallest(part, asked)[places]
    return rows


def _distinct(columns: Sequence[Ids], size: int) -> tuple[Ids, npt.NDArray[np.int64] | slice]:
    """Return the distinct rows of at most two columns, ascending, and where each row is among them."""
    keys = np.zeros(size, dtype=np.int64)
    for column in columns:
        keys = keys << 32 | column
    places: npt.NDArray[np.int64] | slice = slice(None)
    if (keys[1:] <= keys[:-1]).any():  # conclusions mostly come in order, without duplicates
        keys, places = np.unique(keys, return_inverse=True)
    rows = np.empty((len(keys), len(columns)), dtype=np.int32)
    for i in range(len(columns)):
        rows[:, i] = keys >> 32 * (len(columns) - 1 - i) & 0x7FFFFFFF
    return rows, places
