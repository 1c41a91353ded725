"""Whether a rule is a path rule: the shape of its atoms, without any names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

from loginfer.systems.rules.values import BOTH, LONGEST, OBJECT, SUBJECT

__all__ = ["CONSTANT", "PathShape", "Places", "path_shape"]

# The places of an atom: the name of a variable each, or None for a constant.
CONSTANT = None
Places: TypeAlias = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class PathShape:
    """How the atoms of a rule make a path.

    Parameters
    ----------
    variables
        Which places of the head are variables: BOTH, SUBJECT or OBJECT.
    steps
        The atoms of the body in the order of the path: place in the body, and the direction of the step.
    end
        Whether the path ends in a constant.
    """

    variables: int
    steps: tuple[tuple[int, int], ...]
    end: bool


def path_shape(head: Places, body: Sequence[Places]) -> PathShape | None:
    """Return how a rule's atoms make a path, or None if they do not.

    Variables may have any names, atoms any order and direction.
    """
    subject, object_ = head
    if len(body) > LONGEST or subject == object_:
        return None
    if subject is None:
        return _path(OBJECT, object_, None, body)
    if object_ is None:
        return _path(SUBJECT, subject, None, body)
    return _path(BOTH, subject, object_, body) if body else None


def _path(variables: int, start: str | None, goal: str | None, body: Sequence[Places]) -> PathShape | None:
    for order in permutations(range(len(body))):
        steps = _walk(start, goal, body, order)
        if steps is not None:
            end = bool(body) and CONSTANT in body[order[-1]]
            return PathShape(variables, steps, end)
    return None


def _walk(
    start: str | None, goal: str | None, body: Sequence[Places], order: tuple[int, ...]
) -> tuple[tuple[int, int], ...] | None:
    """Go along the atoms in one order; None where they do not hang together, or meet a variable twice."""
    here, met, steps = start, {start}, []
    for number, place in enumerate(order):
        direction = 0 if body[place][0] == here else 1
        if body[place][direction] != here:
            return None
        here = body[place][1 - direction]
        last = number == len(order) - 1
        if here in met or (here is CONSTANT and not (last and goal is None)):
            return None
        if goal is not None and (here == goal) != last:
            return None
        met.add(here)
        steps.append((place, direction))
    return tuple(steps)
