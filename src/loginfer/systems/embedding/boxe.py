"""BoxE: a relation is two boxes, and each constant moves the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from loginfer.settings import setting
from loginfer.systems.embedding.base import OBJECT, TILE, ComparisonFunctions, DistanceSystem, Floats, ModelFunctions

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
    spread: float = setting(0.05, "positions, bumps and centres start between minus this and this", least=0)
    log_width: float = setting(-3.0, "the logarithm of all boxes' widths at the start")

    entity_parts: ClassVar[int] = 2
    relation_parts: ClassVar[int] = 4
    query_parts: ClassVar[int] = 4  # a point, and the widths of the box around it

    @property
    def functions(self) -> ModelFunctions:
        """Where the other end would have to be, and how far from there it is."""
        return ModelFunctions(aim, backward_aim, *BOX, derive_boxes, backward_boxes)

    @property
    def initial_bound(self) -> float:
        """The spread."""
        return self.spread

    def initial_relations(self, relations: int, random: np.random.Generator) -> Floats:
        """Draw centres evenly; all boxes start equally wide."""
        centres = self._draw_uniform((relations, 2 * self.dimension), random)
        return np.hstack([centres, np.full_like(centres, self.log_width)])


def derive_boxes(parameters: Floats, boxes: Floats) -> None:
    """Derive centres, then widths, from centres and logarithms of widths."""
    half = len(parameters) // 2
    log_widths, widths = parameters[half:], boxes[half:]
    for j in range(half):
        boxes[j] = parameters[j]
        widths[j] = np.exp(log_widths[j])


def backward_boxes(boxes: Floats, g_boxes: Floats, g_parameters: Floats) -> None:
    """Set the parameters' gradient from that of centres and widths."""
    half = len(boxes) // 2
    widths, g_widths, g_log_widths = boxes[half:], g_boxes[half:], g_parameters[half:]
    for j in range(half):
        g_parameters[j] = g_boxes[j]
        g_log_widths[j] = g_widths[j] * widths[j]


def aim(side: int, entity: Floats, boxes: Floats, query: Floats) -> None:
    """Query: where the other constant's position and bump would have to be, then the widths around there.

    For the object: position c₂ − b(s) and bump c₁ − s. For the subject: position c₁ − b(o) and bump c₂ − o.
    """
    d = len(entity) // 2
    my_start, other_start = (0, d) if side == OBJECT else (d, 0)  # where my box and the other constant's box begin
    my_centre, other_centre = boxes[my_start : my_start + d], boxes[other_start : other_start + d]
    my_width, other_width = boxes[2 * d + my_start :], boxes[2 * d + other_start :]
    bump, to_bump, width, bump_width = entity[d:], query[d:], query[2 * d :], query[3 * d :]
    for j in range(d):
        query[j] = other_centre[j] - bump[j]
        to_bump[j] = my_centre[j] - entity[j]
        width[j] = other_width[j]
        bump_width[j] = my_width[j]


def backward_aim(side: int, entity: Floats, boxes: Floats, g_query: Floats, g_entity: Floats, g_boxes: Floats) -> None:
    """Add the query's gradient to those of what it was made of."""
    d = len(g_entity) // 2
    my_start, other_start = (0, d) if side == OBJECT else (d, 0)
    g_my_centre, g_other_centre = g_boxes[my_start : my_start + d], g_boxes[other_start : other_start + d]
    g_my_width, g_other_width = g_boxes[2 * d + my_start :], g_boxes[2 * d + other_start :]
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


def _compare_box(query: Floats, candidate: Floats) -> Any:
    widths = query[len(candidate) :]
    total = _ZERO
    for j in range(len(candidate)):
        u = abs(candidate[j] - query[j])
        width = widths[j]
        wider = width + _ONE
        narrower = _ONE / wider
        outside = u * wider - _HALF * width * (wider - narrower)
        total += u * narrower if u <= _HALF * width else outside
    return -total


def _backward_box(
    weight: Any, comparison: Any, query: Floats, candidate: Floats, g_query: Floats, g_candidate: Floats
) -> None:
    # The derivative of |0| is 0.
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


def _compare_tile_box(query: Floats, tile: Floats, sums: Floats) -> None:
    d = len(tile)
    for j in range(d):
        point, half = query[j], _HALF * query[d + j]
        wider = query[d + j] + _ONE
        narrower = _ONE / wider
        beyond = half * (wider - narrower)
        for c in range(TILE):
            u = abs(tile[j, c] - point)
            inside, outside = u * narrower, u * wider - beyond
            sums[c] -= inside if u <= half else outside


def _backward_tile_box(
    weights: Floats, query: Floats, tile: Floats, sums: Floats, g_query: Floats, g_tile: Floats
) -> None:
    d = len(tile)
    for j in range(d):
        point, width, g_point, g_width = query[j], query[d + j], _ZERO, _ZERO
        half, wider = _HALF * width, width + _ONE
        narrower = _ONE / wider
        square = narrower * narrower
        beyond = _HALF * (wider - narrower + width * (_ONE + square))
        for c in range(TILE):
            difference = tile[j, c] - point
            u = abs(difference)
            size = weights[c] * (narrower if u <= half else wider)
            up = (size if difference > _ZERO else _ZERO) - (size if difference < _ZERO else _ZERO)
            g_point += up
            g_tile[j, c] -= up
            g_width += weights[c] * (-u * square if u <= half else u - beyond)
        g_query[j] += g_point
        g_query[d + j] -= g_width


# −Σ dist(candidate, box around the query).
BOX = ComparisonFunctions(_compare_box, _backward_box, _compare_tile_box, _backward_tile_box)
