"""Compiled: logistic regression on 0/1 features with an L1 penalty, by cyclic coordinate descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.compiled import inlined, kernel

__all__ = ["logistic_l1", "offset_for"]


@inlined
def _curvature(margin: Any, width: Any) -> Any:
    """Return the largest second derivative of log(1 + exp(−m)) within `width` of a margin."""
    distance = abs(margin) - width
    if distance <= 0:
        return 0.25
    return 1 / (2 + np.exp(distance) + np.exp(-distance))


@inlined
def _newton(pull: Any, curvature: Any, penalty: Any, weight: Any) -> Any:
    """Return the step that minimises a quadratic with an L1 penalty, not below 0."""
    return max((pull - penalty) / curvature, -weight)


@inlined
def _move(
    rows: Any,
    first: Any,
    last: Any,
    every: Any,
    step: Any,
    signs: Any,
    costs: Any,
    margins: Any,
    pulls: Any,
) -> None:
    for place in range(first, last):
        row = place if every else rows[place]
        margins[row] += signs[row] * step
        pulls[row] = signs[row] * costs[row] / (1 + np.exp(margins[row]))


@kernel
def logistic_l1(
    pointers: Any,
    rows: Any,
    signs: Any,
    costs: Any,
    penalties: Any,
    weights: Any,
    tolerance: float,
    rounds: int,
) -> None:
    """Minimise Σ costs·log(1 + exp(−signs·(b + x·β))) + Σ penalties·β for β ≥ 0, in place.

    Feature j is 1 in `rows[pointers[j]:pointers[j + 1]]`; the last weight is b, which costs no penalty. Steps
    are bounded by a trust region for each weight, so that the loss never grows (Genkin, Lewis, Madigan 2007).
    The features with weights are gone through until they settle, then all once more, until no weight moves
    by more than the tolerance, or after so many rounds.
    """
    features, size = len(pointers) - 1, len(signs)
    margins, pulls = np.empty(size), np.empty(size)
    for row in range(size):
        margins[row] = signs[row] * weights[features]
    for j in range(features):
        if weights[j] != 0:
            for place in range(pointers[j], pointers[j + 1]):
                margins[rows[place]] += signs[rows[place]] * weights[j]
    for row in range(size):
        pulls[row] = signs[row] * costs[row] / (1 + np.exp(margins[row]))
    widths = np.ones(features + 1)
    everything = True
    for _ in range(rounds):
        largest = 0.0
        for j in range(features + 1):
            every = j == features
            if not everything and not every and weights[j] == 0:
                continue
            first, last = (0, size) if every else (pointers[j], pointers[j + 1])
            penalty = 0.0 if every else penalties[j]
            pull = 0.0
            for place in range(first, last):
                pull += pulls[place if every else rows[place]]
            if not every and weights[j] == 0 and pull <= penalty:
                continue
            curvature = 1e-9
            for place in range(first, last):
                row = place if every else rows[place]
                curvature += costs[row] * _curvature(margins[row], widths[j])
            step = pull / curvature if every else _newton(pull, curvature, penalty, weights[j])
            step = min(max(step, -widths[j]), widths[j])
            widths[j] = max(2 * abs(step), widths[j] / 2)
            if step != 0:
                weights[j] += step
                _move(rows, first, last, every, step, signs, costs, margins, pulls)
                largest = max(largest, abs(step))
        if largest < tolerance:
            if everything:
                break
            everything = True
        else:
            everything = False


@kernel
def offset_for(margins: Any, signs: Any, costs: Any, prior: float) -> float:
    """Return the d that minimises Σ costs·log(1 + exp(−signs·(margins + d))) + prior·d²/2."""
    offset, width = 0.0, 1.0
    for _ in range(200):
        pull, curvature = -prior * offset, prior + 1e-9
        for row in range(len(margins)):
            margin = signs[row] * (margins[row] + offset)
            pull += signs[row] * costs[row] / (1 + np.exp(margin))
            curvature += costs[row] * _curvature(margin, width)
        step = min(max(pull / curvature, -width), width)
        width = max(2 * abs(step), width / 2)
        offset += step
        if abs(step) < 1e-9:
            break
    return offset
