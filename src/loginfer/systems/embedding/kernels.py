"""The compiled training step.

Room for the arrays that kernels change, with a margin around each.

The compiler makes two versions of a loop over rows of two arrays: a fast one, and a careful one for rows so
close to each other in memory that they might overlap. Their last bits can differ. Rows of different arrays
must therefore never be neighbours, or results would depend on where the system happens to put arrays.

The values that the kernels of training work on.

The five models behind one set of compiled functions, which switch over the model's number.

A triple is scored in two steps: its one end and its relation make a *query*, which is compared with the other
end. All corruptions of one end share the query, and their gradients with respect to it are added up before
they are led back to what it was made of.

Lazy Adam: only the rows that a batch touched are updated, with their moments.

A hint to the processor that rows will be needed soon.

Rows of random entities lie all over memory, so that most of the time of training would be spent waiting for
them. What comes next is known well before, though.

A positive and its negatives, drawn inside kernels; its place in the epoch decides which.

The compiled part of training: batches of positives and their negatives, one after the other.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from loginfer.kernels import draw_other, fast_inlined, fast_kernel, fast_spliced, random_bits
from loginfer.systems.embedding.base import (
    BOXE,
    COMPLEX,
    DISTMULT,
    DOT,
    L1,
    L2,
    MODULI,
    OBJECT,
    ROTATE,
    SUBJECT,
    TRANSE,
    EmbeddingSystem,
    Floats,
)
from loginfer.systems.embedding.boxe import (
    add_box_gradient,
    aim,
    box_distance,
    pull_back_aim,
    pull_back_boxes,
    to_boxes,
)
from loginfer.systems.embedding.complex import multiply, pull_back_product
from loginfer.systems.embedding.distmult import add_dot_gradient, dot, pull_back_scaling, scale
from loginfer.systems.embedding.rotate import add_moduli_gradient, moduli_distance, pull_back_rotation, to_rotation
from loginfer.systems.embedding.transe import (
    add_l1_gradient,
    add_l2_gradient,
    l1_distance,
    l2_distance,
    pull_back_translation,
    translate,
)

# Numbers on either side: more than the fast versions of loops take at a time, and a whole page, so that rows
# begin where a cache line does as often as before.
_MARGIN = 1024


def zeros(*shape: int) -> Floats:
    """Return an array of zeros with a margin."""
    count = math.prod(shape)
    return np.zeros(count + 2 * _MARGIN, dtype=np.float32)[_MARGIN : _MARGIN + count].reshape(shape)


def apart(array: Floats) -> Floats:
    """Return a copy of an array with a margin."""
    copy = zeros(*array.shape)
    copy[:] = array
    return copy


Ids: TypeAlias = npt.NDArray[np.int32]


class Model(NamedTuple):
    """What kernels need to know of a model (see `codes`), and what is added to a comparison: γ or 0."""

    code: int
    comparison: int
    offset: np.float32

    @classmethod
    def of(cls, system: EmbeddingSystem) -> Model:
        """Describe a system's model."""
        return cls(system.code, system.comparison, np.float32(system.offset))


class Loss(NamedTuple):
    """The loss: how many random negatives, and the weights of its parts (see `EmbeddingSystem`)."""

    negatives: int
    adversarial: np.float32
    explicit_weight: np.float32
    relation_weight: np.float32
    cubic: np.float32

    @classmethod
    def of(cls, system: EmbeddingSystem) -> Loss:
        """Describe a system's loss."""
        return cls(
            0 if system.mode == "explicit" else system.negatives,
            np.float32(system.adversarial),
            np.float32(0 if system.mode == "random" else system.explicit_weight),
            np.float32(system.relation_weight),
            np.float32(system.cubic),
        )


class Weights(NamedTuple):
    """What is learned, what is derived from relations, and Adam's moments, float32[rows, 2, width]."""

    entities: Floats
    relations: Floats
    derived: Floats
    entity_moments: Floats
    relation_moments: Floats


class Data(NamedTuple):
    """What is learned from.

    Parameters
    ----------
    positives, negatives
        int32[n, 3], P_train and N_train; without explicit negatives the latter is empty.
    constants, types, relations
        Ids to choose from for random negatives.
    type_relation
        The id of the type predicate; -1 for none.
    """

    positives: Ids
    negatives: Ids
    constants: Ids
    types: Ids
    relations: Ids
    type_relation: int


class Positive(NamedTuple):
    """A positive and its negatives, as `Workspace` has them."""

    known: Ids
    relation: Ids
    side: Ids
    ends: Ids
    candidates: Ids
    scores: Floats
    weights: Floats


class Workspace(NamedTuple):
    """What a worker needs besides: gradients of the rows that its batch touches, and room for one positive.

    A positive and its negatives are candidates in four groups. Those of a group share a query, made of a
    known end and a relation: the positive's subject (the positive itself is candidate 0, random objects
    follow), its object (random subjects), the subject of the explicit negative, the positive's subject with
    another relation.

    Parameters
    ----------
    slots
        int32[entities], the row of each entity in `g_entities`; -1 if the batch has not touched it.
    filled
        int32[1], how many rows are in use.
    touched, uses
        int32[most], the entity of each row and how often it was part of a positive.
    g_entities
        float32[most, width], gradients; 0 between batches.
    relation_touched, relation_uses, g_derived
        The same for relations, with a row each.
    g_parameters
        float32[width], the gradient of one relation's parameters.
    known, relation, side, ends
        int32[4], what the query of each group is made of; group g has the candidates ends[g] to ends[g + 1].
    queries, g_query
        float32[4, width], float32[width].
    candidates, scores, weights
        [negatives + 3]: candidates, their scores and the derivatives of the loss by them.
    """

    slots: Ids
    filled: Ids
    touched: Ids
    uses: Ids
    g_entities: Floats
    relation_touched: npt.NDArray[np.bool_]
    relation_uses: Ids
    g_derived: Floats
    g_parameters: Floats
    known: Ids
    relation: Ids
    side: Ids
    ends: Ids
    queries: Floats
    g_query: Floats
    candidates: Ids
    scores: Floats
    weights: Floats

    @classmethod
    def of(cls, system: EmbeddingSystem, weights: Weights) -> Workspace:
        """Make the room that a worker needs."""
        entities, width = weights.entities.shape
        relations, derived = weights.derived.shape
        most = min(entities, system.batch * (system.negatives + 4))
        room = system.negatives + 3
        return cls(
            slots=np.full(entities, -1, dtype=np.int32),
            filled=np.zeros(1, dtype=np.int32),
            touched=np.zeros(most, dtype=np.int32),
            uses=np.zeros(most, dtype=np.int32),
            g_entities=zeros(most, width),
            relation_touched=np.zeros(relations, dtype=np.bool_),
            relation_uses=np.zeros(relations, dtype=np.int32),
            g_derived=zeros(relations, derived),
            g_parameters=zeros(weights.relations.shape[1]),
            known=np.zeros(4, dtype=np.int32),
            relation=np.zeros(4, dtype=np.int32),
            side=np.zeros(4, dtype=np.int32),
            ends=np.zeros(5, dtype=np.int32),
            queries=zeros(4, system.query_width),
            g_query=zeros(system.query_width),
            candidates=np.zeros(room, dtype=np.int32),
            scores=zeros(room),
            weights=zeros(room),
        )


@fast_spliced
def make_query(code: int, side: Any, entity: Floats, relation: Floats, query: Floats) -> None:
    """Make the query of the known end of a triple and what is derived from its relation."""
    if code == TRANSE:
        translate(side, entity, relation, query)
    elif code == DISTMULT:
        scale(entity, relation, query)
    elif code == BOXE:
        aim(side, entity, relation, query)
    else:
        multiply(side, entity, relation, query)


@fast_spliced
def pull_back(
    code: int, side: Any, entity: Floats, relation: Floats, g_query: Floats, g_entity: Floats, g_relation: Floats
) -> None:
    """Add the query's gradient to those of the known end and of what is derived from the relation."""
    if code == TRANSE:
        pull_back_translation(side, g_query, g_entity, g_relation)
    elif code == DISTMULT:
        pull_back_scaling(entity, relation, g_query, g_entity, g_relation)
    elif code == BOXE:
        pull_back_aim(side, g_query, g_entity, g_relation)
    else:
        pull_back_product(side, entity, relation, g_query, g_entity, g_relation)


@fast_spliced
def score_candidates(
    model: Model, query: Floats, entities: Floats, candidates: Ids, scores: Floats, start: int, end: int
) -> None:
    """Score candidates start to end for the end that a query lacks."""
    for i in range(start, end):
        candidate = entities[candidates[i]]
        if model.comparison == L1:
            scores[i] = model.offset - l1_distance(query, candidate)
        elif model.comparison == L2:
            scores[i] = model.offset - l2_distance(query, candidate)
        elif model.comparison == MODULI:
            scores[i] = model.offset - moduli_distance(query, candidate)
        elif model.comparison == DOT:
            scores[i] = model.offset + dot(query, candidate)
        else:
            scores[i] = model.offset - box_distance(query, candidate)


@fast_spliced
def add_gradients(model: Model, query: Floats, entities: Floats, work: Workspace, start: int, end: int) -> None:
    """Add weight · ∂score of candidates start to end to the gradients of the query and of the candidates."""
    for i in range(start, end):
        candidate = entities[work.candidates[i]]
        g_candidate = work.g_entities[work.slots[work.candidates[i]]]
        add_gradient(model, work.weights[i], work.scores[i], query, candidate, work.g_query, g_candidate)


@fast_spliced
def add_gradient(
    model: Model, weight: Any, score: Any, query: Floats, candidate: Floats, g_query: Floats, g_candidate: Floats
) -> None:
    """Add weight · ∂score to the gradients of a query and of a candidate for the end that it lacks."""
    if model.comparison == L1:
        add_l1_gradient(weight, query, candidate, g_query, g_candidate)
    elif model.comparison == L2:
        add_l2_gradient(weight, model.offset - score, query, candidate, g_query, g_candidate)
    elif model.comparison == MODULI:
        add_moduli_gradient(weight, query, candidate, g_query, g_candidate)
    elif model.comparison == DOT:
        add_dot_gradient(weight, query, candidate, g_query, g_candidate)
    else:
        add_box_gradient(weight, query, candidate, g_query, g_candidate)


# -- what is derived from a relation's parameters --------------------------------------------------


@fast_spliced
def derive(code: int, parameters: Floats, derived: Floats) -> None:
    """Derive what queries need from a relation's parameters; most models use these as they are."""
    if code == ROTATE:
        to_rotation(parameters, derived)
    elif code == BOXE:
        to_boxes(parameters, derived)
    else:
        for j in range(len(parameters)):
            derived[j] = parameters[j]


@fast_spliced
def pull_back_derived(code: int, derived: Floats, g_derived: Floats, g_parameters: Floats) -> None:
    """Set the gradient of a relation's parameters from that of what is derived from them."""
    if code == ROTATE:
        pull_back_rotation(derived, g_derived, g_parameters)
    elif code == BOXE:
        pull_back_boxes(derived, g_derived, g_parameters)
    else:
        for j in range(len(g_derived)):
            g_parameters[j] = g_derived[j]


@fast_kernel
def derive_all(code: int, parameters: Floats, derived: Floats) -> None:
    """Derive what queries need from all relations' parameters."""
    for r in range(len(parameters)):
        derive(code, parameters[r], derived[r])


# The decay rates of both moments, and what keeps the denominator from 0: the values of Kingma and Ba.
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8
_KEEP_FIRST, _TAKE_FIRST = np.float32(_FIRST), np.float32(1 - _FIRST)
_KEEP_SECOND, _TAKE_SECOND = np.float32(_SECOND), np.float32(1 - _SECOND)
_THREE = np.float32(3)


@fast_inlined
def bias_corrections(rate: float, step: int) -> Any:
    """Return the rate and the tiny number of a step, counted from 1, with the moments' bias corrected."""
    second = np.sqrt(1.0 - _SECOND**step)
    return np.float32(rate * second / (1.0 - _FIRST**step)), np.float32(_TINY * second)


@fast_inlined
def update_row(share: Any, rate: Any, tiny: Any, row: Floats, moments: Any, gradient: Floats) -> None:
    """Take a step of Adam with share · gradient for one row, and clear it; `moments` is float32[2, width]."""
    first, second = moments[0], moments[1]
    for j in range(len(row)):
        g = share * gradient[j]
        first[j] = _KEEP_FIRST * first[j] + _TAKE_FIRST * g
        second[j] = _KEEP_SECOND * second[j] + _TAKE_SECOND * g * g
        row[j] -= rate * first[j] / (np.sqrt(second[j]) + tiny)
        gradient[j] = np.float32(0)


@fast_inlined
def add_cubic_gradient(weight: Any, is_complex: bool, row: Floats, gradient: Floats) -> None:
    """Add weight · ∂Σ|x|³, of real or complex numbers."""
    if is_complex:
        imaginary, g_imaginary = row[len(row) // 2 :], gradient[len(row) // 2 :]
        for j in range(len(row) // 2):
            modulus = np.sqrt(row[j] * row[j] + imaginary[j] * imaginary[j])
            gradient[j] += _THREE * weight * modulus * row[j]
            g_imaginary[j] += _THREE * weight * modulus * imaginary[j]
    else:
        for j in range(len(row)):
            gradient[j] += _THREE * weight * abs(row[j]) * row[j]


# Numbers of four bytes in a cache line.
_LINE = 16


@intrinsic
def _prefetch(context: Any, array: Any, place: Any) -> Any:
    """Ask for the cache line of a place in an array, counted in its elements."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(made.data, [arguments[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module,
            ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number]),
            "llvm.prefetch.p0",
        )
        # To be read, to be kept in all caches, data.
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@fast_inlined
def prefetch_row(rows: Floats, row: Any, width: int) -> None:
    """Ask for a row of an array of rows that are so wide."""
    start = row * width
    for j in range(0, width, _LINE):
        _prefetch(rows, start + j)  # type: ignore[call-arg]


_ZERO = np.float32(0)


@fast_spliced
def announce(loss: Loss, weights: Weights, data: Data, salt: Any, place: int, positive: int) -> None:
    """Ask for the rows of a positive and its random negatives, before they are needed."""
    width = weights.entities.shape[1]
    prefetch_row(weights.entities, np.int64(data.positives[positive, 0]), width)
    prefetch_row(weights.entities, np.int64(data.positives[positive, 2]), width)
    counter = np.uint64(place) * np.uint64(loss.negatives + 1)
    for i in range(loss.negatives):
        bits = random_bits(salt, counter + np.uint64(i))
        prefetch_row(weights.entities, np.int64(draw_other(bits, data.constants, -1)), width)


@fast_spliced
def draw(
    loss: Loss, data: Data, work: Workspace | Positive, salt: Any, place: int, positive: int, explicit: int
) -> None:
    """Write down a positive and its negatives, as candidates in groups (see `Workspace`)."""
    subject, relation, object_ = (data.positives[positive, 0], data.positives[positive, 1], data.positives[positive, 2])
    of_types = relation == data.type_relation
    counter = np.uint64(place) * np.uint64(loss.negatives + 1)
    work.candidates[0] = object_
    objects, end = 1, loss.negatives + 1
    pool = data.types if of_types else data.constants
    for i in range(loss.negatives):
        bits = random_bits(salt, counter + np.uint64(i))
        if bits & np.uint64(1) and len(pool) > 1:  # a graph may have one type only
            work.candidates[objects] = draw_other(bits, pool, object_)
            objects += 1
        else:
            end -= 1
            work.candidates[end] = draw_other(bits, data.constants, subject)
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
        work.candidates[end] = data.negatives[explicit, 2]
        work.known[2] = data.negatives[explicit, 0]
        work.relation[2] = data.negatives[explicit, 1]
        end += 1
    work.ends[3] = end
    if loss.relation_weight > _ZERO and len(data.relations) > 1 and not of_types:
        bits = random_bits(salt, counter + np.uint64(loss.negatives))
        work.candidates[end] = object_
        work.relation[3] = draw_other(bits, data.relations, relation)
        end += 1
    work.ends[4] = end


@fast_spliced
def touch(work: Workspace, entity: Any) -> None:
    """Give an entity a row for its gradient."""
    if work.slots[entity] < 0:
        work.slots[entity] = work.filled[0]
        work.touched[work.filled[0]] = entity
        work.filled[0] += 1
    prefetch_row(work.g_entities, np.int64(work.slots[entity]), work.g_entities.shape[1])


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
def update(model: Model, loss: Loss, weights: Weights, work: Workspace, share: Any, rate: Any, tiny: Any) -> None:
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
