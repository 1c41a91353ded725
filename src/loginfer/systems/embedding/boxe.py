"""BoxE: a relation is two boxes, and each constant moves the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from loginfer.kernels import fast_inlined
from loginfer.settings import setting
from loginfer.systems.embedding.base import BOX, BOXE, OBJECT, DistanceSystem, Floats

_ZERO = np.float32(0)
_HALF = np.float32(0.5)
_ONE = np.float32(1)


@dataclass(frozen=True, kw_only=True)
class BoxE(DistanceSystem):
    """score(s, r, o) = γ − Σ dist(s + b(o), r₁) − Σ dist(o + b(s), r₂), where b are bumps and r₁, r₂ boxes.

    Abboud and others, BoxE: A Box Embedding Model for Knowledge Base Completion (NeurIPS 2020). The distance
    of a number p from an interval with centre c and width w is, with u = |p − c|, u / (w + 1) inside and
    u · (w + 1) − ½ · w · ((w + 1) − 1 / (w + 1)) outside. The norm is the sum; there is no tanh.

    An entity's row holds its position, then its bump; a relation's row the centres of both boxes, then the
    logarithms of both boxes' widths.
    """

    relation_weight: float = setting(0.1, "weight of a negative with another relation", least=0)
    spread: float = setting(0.5, "positions, bumps and centres start between minus this and this", least=0)
    log_width: float = setting(-1.0, "the logarithm of all boxes' widths at the start")

    code: ClassVar[int] = BOXE
    parts: ClassVar[int] = 2
    relation_parts: ClassVar[int] = 4

    @property
    def comparison(self) -> int:
        """How queries and candidates are compared."""
        return BOX

    @property
    def query_width(self) -> int:
        """Numbers in a query: a point, and the widths of the box around it."""
        return 4 * self.dimension

    def initial_entities(self, entities: int, random: np.random.Generator) -> Floats:
        """Draw positions and bumps evenly."""
        shape = (entities, 2 * self.dimension)
        return random.uniform(-self.spread, self.spread, shape).astype(np.float32)

    def initial_relations(self, relations: int, random: np.random.Generator) -> Floats:
        """Draw centres evenly; all boxes start equally wide."""
        made = np.full((relations, 4 * self.dimension), self.log_width, dtype=np.float32)
        made[:, : 2 * self.dimension] = random.uniform(-self.spread, self.spread, (relations, 2 * self.dimension))
        return made


# Slices, not sums of indices: an index that might be negative would keep loops out of vector registers.


@fast_inlined
def to_boxes(parameters: Floats, boxes: Floats) -> None:
    """Derive centres, then widths, from centres and logarithms of widths."""
    half = len(parameters) // 2
    log_widths, widths = parameters[half:], boxes[half:]
    for j in range(half):
        boxes[j] = parameters[j]
        widths[j] = np.exp(log_widths[j])


@fast_inlined
def pull_back_boxes(boxes: Floats, g_boxes: Floats, g_parameters: Floats) -> None:
    """Set the parameters' gradient from that of centres and widths."""
    half = len(boxes) // 2
    widths, g_widths, g_log_widths = boxes[half:], g_boxes[half:], g_parameters[half:]
    for j in range(half):
        g_parameters[j] = g_boxes[j]
        g_log_widths[j] = g_widths[j] * widths[j]


@fast_inlined
def aim(side: int, entity: Floats, boxes: Floats, query: Floats) -> None:
    """Query: where the other constant's position and bump would have to be, then the widths around there.

    For the object: position c₂ − b(s) and bump c₁ − s. For the subject: position c₁ − b(o) and bump c₂ − o.
    """
    d = len(entity) // 2
    mine, other = (0, d) if side == OBJECT else (d, 0)  # where my box and the other constant's box begin
    my_centre, other_centre = boxes[mine : mine + d], boxes[other : other + d]
    my_width, other_width = boxes[2 * d + mine :], boxes[2 * d + other :]
    bump, to_bump, width, bump_width = entity[d:], query[d:], query[2 * d :], query[3 * d :]
    for j in range(d):
        query[j] = other_centre[j] - bump[j]
        to_bump[j] = my_centre[j] - entity[j]
        width[j] = other_width[j]
        bump_width[j] = my_width[j]


@fast_inlined
def pull_back_aim(side: int, g_query: Floats, g_entity: Floats, g_boxes: Floats) -> None:
    """Add the query's gradient to those of what it was made of."""
    d = len(g_entity) // 2
    mine, other = (0, d) if side == OBJECT else (d, 0)
    g_my_centre, g_other_centre = g_boxes[mine : mine + d], g_boxes[other : other + d]
    g_my_width, g_other_width = g_boxes[2 * d + mine :], g_boxes[2 * d + other :]
    g_bump, g_to_bump, g_width, g_bump_width = g_entity[d:], g_query[d:], g_query[2 * d :], g_query[3 * d :]
    for j in range(d):
        g_other_centre[j] += g_query[j]
        g_bump[j] -= g_query[j]
    for j in range(d):
        g_my_centre[j] += g_to_bump[j]
        g_entity[j] -= g_to_bump[j]
    for j in range(d):
        g_other_width[j] += g_width[j]
        g_my_width[j] += g_bump_width[j]


@fast_inlined
def box_distance(query: Floats, candidate: Floats) -> Any:
    """Σ dist(candidate, box around the query)."""
    widths = query[len(candidate) :]
    total = _ZERO
    for j in range(len(candidate)):
        u = abs(candidate[j] - query[j])
        width = widths[j]
        wider = width + _ONE
        narrower = _ONE / wider
        outside = u * wider - _HALF * width * (wider - narrower)
        total += u * narrower if u <= _HALF * width else outside
    return total


@fast_inlined
def add_box_gradient(weight: Any, query: Floats, candidate: Floats, g_query: Floats, g_candidate: Floats) -> None:
    """Add weight · ∂(−Σ dist(candidate, box around the query)); the derivative of |0| is 0."""
    widths, g_widths = query[len(candidate) :], g_query[len(candidate) :]
    for j in range(len(candidate)):
        difference = candidate[j] - query[j]
        u = abs(difference)
        width = widths[j]
        wider = width + _ONE
        narrower = _ONE / wider
        square = narrower * narrower
        size = weight * (narrower if u <= _HALF * width else wider)
        up = (size if difference > _ZERO else _ZERO) - (size if difference < _ZERO else _ZERO)
        outside = u - _HALF * (wider - narrower + width * (_ONE + square))
        by_width = -u * square if u <= _HALF * width else outside
        g_candidate[j] -= up
        g_query[j] += up
        g_widths[j] -= weight * by_width
