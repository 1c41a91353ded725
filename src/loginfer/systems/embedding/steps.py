"""The compiled part of training: batches of positives and their negatives, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.compiled import fast_kernel, fast_spliced
from loginfer.systems.embedding.adam import add_cubic_gradient, bias_corrections, update_row
from loginfer.systems.embedding.codes import COMPLEX, OBJECT, SUBJECT
from loginfer.systems.embedding.kernels import (
    add_gradients,
    derive,
    make_query,
    pull_back,
    pull_back_derived,
    score_candidates,
)
from loginfer.systems.embedding.prefetch import prefetch_row
from loginfer.systems.embedding.sampling import draw_other, random_bits
from loginfer.systems.embedding.state import Data, Loss, Model, Weights, Workspace

__all__ = ["run_batches"]

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
                _announce(loss, weights, data, salt, place + _AHEAD, order[place + _AHEAD])
            _gather(loss, data, work, salt, place, order[place], pairing[place])
            total += _add_gradients(model, loss, weights, work)
        rate, tiny = bias_corrections(rates[b], first_step + b)
        _update(model, loss, weights, work, _ONE / np.float32(end - start), rate, tiny)
    return total


@fast_spliced
def _announce(loss: Loss, weights: Weights, data: Data, salt: Any, place: int, positive: int) -> None:
    """Ask for the rows of a positive and its random negatives, before they are needed."""
    width = weights.entities.shape[1]
    prefetch_row(weights.entities, np.int64(data.positives[positive, 0]), width)
    prefetch_row(weights.entities, np.int64(data.positives[positive, 2]), width)
    counter = np.uint64(place) * np.uint64(loss.negatives + 1)
    for i in range(loss.negatives):
        bits = random_bits(salt, counter + np.uint64(i))
        prefetch_row(weights.entities, np.int64(draw_other(bits, data.constants, -1)), width)


# -- a positive and its negatives ------------------------------------------------------------------


@fast_spliced
def _gather(
    loss: Loss, data: Data, work: Workspace, salt: Any, place: int, positive: int, explicit: int
) -> None:
    """Write a positive and its negatives to the workspace, as candidates in groups (see `Workspace`)."""
    subject, relation, object_ = (
        data.positives[positive, 0],
        data.positives[positive, 1],
        data.positives[positive, 2],
    )
    of_types = relation == data.type_relation
    _touch(work, subject)
    _touch(work, object_)
    work.uses[work.slots[subject]] += 1
    work.uses[work.slots[object_]] += 1
    work.relation_uses[relation] += 1
    counter = np.uint64(place) * np.uint64(loss.negatives + 1)
    work.candidates[0] = object_
    objects, end = 1, loss.negatives + 1
    pool = data.types if of_types else data.constants
    for i in range(loss.negatives):
        bits = random_bits(salt, counter + np.uint64(i))
        if bits & np.uint64(1) and len(pool) > 1:  # a graph may have one type only
            other = draw_other(bits, pool, object_)
            work.candidates[objects] = other
            objects += 1
        else:
            other = draw_other(bits, data.constants, subject)
            end -= 1
            work.candidates[end] = other
        _touch(work, other)
    for group in range(4):
        work.known[group] = subject
        work.relation[group] = relation
        work.side[group] = OBJECT
    work.known[1] = object_
    work.side[1] = SUBJECT
    work.ends[1] = objects
    work.ends[2] = loss.negatives + 1
    end = loss.negatives + 1
    if loss.explicit_weight > _ZERO and len(data.negatives) > 0:
        s, r, o = data.negatives[explicit, 0], data.negatives[explicit, 1], data.negatives[explicit, 2]
        _touch(work, s)
        _touch(work, o)
        work.candidates[end] = o
        work.known[2] = s
        work.relation[2] = r
        end += 1
    work.ends[3] = end
    if loss.relation_weight > _ZERO and len(data.relations) > 1 and not of_types:
        bits = random_bits(salt, counter + np.uint64(loss.negatives))
        work.candidates[end] = object_
        work.relation[3] = draw_other(bits, data.relations, relation)
        end += 1
    work.ends[4] = end
    for group in range(4):
        work.relation_touched[work.relation[group]] = True


@fast_spliced
def _touch(work: Workspace, entity: Any) -> None:
    """Give an entity a row for its gradient."""
    if work.slots[entity] < 0:
        work.slots[entity] = work.filled[0]
        work.touched[work.filled[0]] = entity
        work.filled[0] += 1
    prefetch_row(work.g_entities, np.int64(work.slots[entity]), work.g_entities.shape[1])


@fast_spliced
def _add_gradients(model: Model, loss: Loss, weights: Weights, work: Workspace) -> Any:
    """Add the gradients of what `_gather` wrote down; returns the loss."""
    for group in range(4):
        start, end = work.ends[group], work.ends[group + 1]
        if start < end:
            query = work.queries[group]
            known, derived = weights.entities[work.known[group]], weights.derived[work.relation[group]]
            make_query(model.code, work.side[group], known, derived, query)
            score_candidates(model, query, weights.entities, work.candidates, work.scores, start, end)
    total = _weigh(loss, work)
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
def _weigh(loss: Loss, work: Workspace) -> Any:
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
def _update(
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
