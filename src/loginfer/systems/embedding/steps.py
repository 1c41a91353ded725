"""The compiled part of training: batches of positives and their negatives, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.compiled import fast_kernel, fast_spliced
from loginfer.systems.embedding.adam import add_cubic_gradient, bias_corrections, update_row
from loginfer.systems.embedding.codes import COMPLEX
from loginfer.systems.embedding.drawing import announce, draw, touch
from loginfer.systems.embedding.kernels import (
    add_gradients,
    derive,
    make_query,
    pull_back,
    pull_back_derived,
    score_candidates,
)
from loginfer.systems.embedding.prefetch import prefetch_row
from loginfer.systems.embedding.state import Data, Loss, Model, Positive, Weights, Workspace

__all__ = ["run_batches", "update", "weigh"]

_ZERO = np.float32(0)
_ONE = np.float32(1)

# So many positives, and updates of rows, ahead of their use rows are asked for.
_AHEAD = 3
_ROWS_AHEAD = 6


@fast_kernel
def run_batches(
    model: Model,
    loss: Loss,
    weights: Weights,
    data: Data,
    work: Workspace,
    order: npt.NDArray[np.int64],
    pairing: npt.NDArray[np.int64],
    salt: Any,
    batch: int,
    batches: npt.NDArray[np.int64],
    first_step: int,
    rates: npt.NDArray[np.float64],
) -> float:
    """Learn from some batches of an epoch; returns the sum of the positives' losses.

    Parameters
    ----------
    order, pairing
        The positives in the order of this epoch, and the explicit negative that goes with each place.
    salt
        64 random bits of this epoch.
    batch, batches
        Positives in a batch, and which batches to learn from.
    first_step, rates
        The step of batch 0, counted from 1, and the learning rate of each batch.
    """
    total = 0.0
    for b in batches:
        start, end = b * batch, min((b + 1) * batch, len(order))
        for place in range(start, end):
            if place + _AHEAD < end:
                announce(loss, weights, data, salt, place + _AHEAD, order[place + _AHEAD])
            draw(loss, data, work, salt, place, order[place], pairing[place])
            _claim(work)
            total += _add_gradients(model, loss, weights, work)
        rate, tiny = bias_corrections(rates[b], first_step + b)
        update(model, loss, weights, work, _ONE / np.float32(end - start), rate, tiny)
    return total


# -- a positive and its negatives ------------------------------------------------------------------


@fast_spliced
def _claim(work: Workspace) -> None:
    """Give all that `draw` wrote down rows for gradients, and count what the positive uses."""
    for i in range(work.ends[4]):
        touch(work, work.candidates[i])
    for group in range(4):
        touch(work, work.known[group])
        work.relation_touched[work.relation[group]] = True
    work.uses[work.slots[work.known[0]]] += 1
    work.uses[work.slots[work.candidates[0]]] += 1
    work.relation_uses[work.relation[0]] += 1


@fast_spliced
def _add_gradients(model: Model, loss: Loss, weights: Weights, work: Workspace) -> Any:
    """Add the gradients of what `draw` wrote down; returns the loss."""
    for group in range(4):
        start, end = work.ends[group], work.ends[group + 1]
        if start < end:
            query = work.queries[group]
            known, derived = weights.entities[work.known[group]], weights.derived[work.relation[group]]
            make_query(model.code, work.side[group], known, derived, query)
            score_candidates(model, query, weights.entities, work.candidates, work.scores, start, end)
    total = weigh(loss, work)
    for group in range(4):
        start, end = work.ends[group], work.ends[group + 1]
        if start < end:
            query, g_query = work.queries[group], work.g_query
            for j in range(len(g_query)):
                g_query[j] = _ZERO
            add_gradients(model, query, weights.entities, work, start, end)
            known, relation = work.known[group], work.relation[group]
            pull_back(
                model.code,
                work.side[group],
                weights.entities[known],
                weights.derived[relation],
                g_query,
                work.g_entities[work.slots[known]],
                work.g_derived[relation],
            )
    return total


@fast_spliced
def weigh(loss: Loss, work: Workspace | Positive) -> Any:
    """Set the derivative of the loss by each score; returns the loss."""
    scores, weights = work.scores, work.weights
    k = loss.negatives
    highest = np.float32(-np.inf)
    for i in range(1, k + 1):
        highest = max(highest, scores[i])
    sum_ = _ZERO
    for i in range(1, k + 1):
        weights[i] = np.exp(loss.adversarial * (scores[i] - highest))
        sum_ += weights[i]
    for i in range(1, k + 1):
        weights[i] /= sum_
    weights[0] = _ONE
    scores[0] = -scores[0]  # the positive is a negative of the opposite score
    weights[k + 1] = loss.explicit_weight if work.ends[3] > work.ends[2] else loss.relation_weight
    weights[k + 2] = loss.relation_weight
    total = _ZERO
    for i in range(work.ends[4]):
        small = np.exp(-abs(scores[i]))
        share = _ONE / (_ONE + small)
        total += weights[i] * (max(scores[i], _ZERO) + np.log(_ONE + small))
        weights[i] *= share if scores[i] >= _ZERO else _ONE - share
    scores[0] = -scores[0]
    weights[0] = -weights[0]
    return total


# -- a step of the optimiser -----------------------------------------------------------------------


@fast_spliced
def update(
    model: Model, loss: Loss, weights: Weights, work: Workspace, share: Any, rate: Any, tiny: Any
) -> None:
    """Take a step with the mean gradients of a batch, and clear them."""
    is_complex = model.code == COMPLEX
    width = weights.entities.shape[1]
    for slot in range(work.filled[0]):
        if slot + _ROWS_AHEAD < work.filled[0]:
            ahead = np.int64(work.touched[slot + _ROWS_AHEAD])
            prefetch_row(weights.entities, ahead, width)
            prefetch_row(weights.entity_moments, ahead, 2 * width)
        entity = work.touched[slot]
        row, gradient = weights.entities[entity], work.g_entities[slot]
        if loss.cubic > _ZERO and work.uses[slot] > 0:
            add_cubic_gradient(loss.cubic * work.uses[slot], is_complex, row, gradient)
        update_row(share, rate, tiny, row, weights.entity_moments[entity], gradient)
        work.uses[slot] = 0
        work.slots[entity] = -1
    work.filled[0] = 0
    for relation in range(len(work.relation_touched)):
        if not work.relation_touched[relation]:
            continue
        row, gradient = weights.relations[relation], work.g_parameters
        derived, g_derived = weights.derived[relation], work.g_derived[relation]
        pull_back_derived(model.code, derived, g_derived, gradient)
        for j in range(len(g_derived)):
            g_derived[j] = _ZERO
        if loss.cubic > _ZERO:
            add_cubic_gradient(loss.cubic * work.relation_uses[relation], is_complex, row, gradient)
        update_row(share, rate, tiny, row, weights.relation_moments[relation], gradient)
        derive(model.code, row, derived)
        work.relation_uses[relation] = 0
        work.relation_touched[relation] = False
