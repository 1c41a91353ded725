"""The compiled training step: batches of positives and their negatives, one after the other.

What a model, the loss and the optimiser contribute are small functions: a model's stand in its own file
(`ModelFunctions`), the loss is `draw` and `backward_loss`, the optimiser is `update_row`. `training_kernels`
compiles the kernels for one model.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from loginfer.kernels import draw_other, fast_inlined, fast_kernel, fast_spliced, not_kept, random_bits
from loginfer.systems.embedding.base import OBJECT, SUBJECT, EmbeddingSystem, Floats, ModelFunctions

Ids: TypeAlias = npt.NDArray[np.int32]
Order: TypeAlias = npt.NDArray[np.int64]

_ZERO = np.float32(0)
_ONE = np.float32(1)

# Numbers before and after each array that kernels change. The compiler makes two versions of a loop over rows
# of two arrays: a fast one, and a careful one for rows so close to each other in memory that they might
# overlap. Their last bits can differ, so rows of different arrays must never be neighbours. The margin is more
# than the fast versions take at a time, and a whole page, so that rows begin where a cache line does as often
# as before.
_PADDING = 1024


def zeros(*shape: int) -> Floats:
    """Return an array of zeros with padding around it."""
    count = math.prod(shape)
    return np.zeros(count + 2 * _PADDING, dtype=np.float32)[_PADDING : _PADDING + count].reshape(shape)


def padded(array: npt.NDArray[Any]) -> Floats:
    """Return a copy of an array with padding around it."""
    copy = zeros(*array.shape)
    copy[:] = array
    return copy


# -- the values that kernels work on ---------------------------------------------------------------


class Loss(NamedTuple):
    """The loss (see `EmbeddingSystem`): what is added to comparisons, how many random negatives, weights."""

    offset: np.float32
    negatives: int
    adversarial: np.float32
    explicit_weight: np.float32
    relation_weight: np.float32
    cubic: np.float32

    @classmethod
    def of(cls, system: EmbeddingSystem) -> Loss:
        """Describe a system's loss."""
        return cls(
            np.float32(system.offset),
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


class Bucket(NamedTuple):
    """Positives that are learned from in one go, in batches: all of an epoch, unless entities are in parts.

    Parameters
    ----------
    data
        The positives, and what their negatives are made of.
    order, pairing
        The positives in the order of learning, and the explicit negative that goes with each.
    salt
        64 random bits.
    first_step, rates
        The step of batch 0, counted from 1, and the learning rate of each batch.
    """

    data: Data
    order: Order
    pairing: Order
    salt: np.uint64
    first_step: int
    rates: npt.NDArray[np.float64]


class Candidates(NamedTuple):
    """A positive and its negatives, as candidates in four groups.

    Those of a group share a query, made of a known end (the anchor) and a relation: the positive's subject (the
    positive itself is candidate 0, random objects follow), its object (random subjects), the subject of the explicit
    negative, the positive's subject with another relation.

    Parameters
    ----------
    anchor, relation, side, ends
        int32[4] (`ends` one more), what each group's query is made of; group g has the candidates ends[g] to
        ends[g + 1].
    ids, scores, weights
        [negatives + 3]: candidates, their scores and the derivatives of the loss by them.
    """

    anchor: Ids
    relation: Ids
    side: Ids
    ends: Ids
    ids: Ids
    scores: Floats
    weights: Floats

    @classmethod
    def empty(cls, system: EmbeddingSystem, *batch: int) -> Candidates:
        """Make empty arrays for one positive, or for a batch of them."""
        most = system.negatives + 3
        anchor, relation, side, ends, ids = (np.zeros((*batch, n), dtype=np.int32) for n in (4, 4, 4, 5, most))
        return cls(anchor, relation, side, ends, ids, zeros(*batch, most), zeros(*batch, most))


class Workspace(NamedTuple):
    """What a worker needs besides: gradients of the rows that its batch touches, and space for one positive.

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
    candidates, queries, g_query
        One positive with its negatives, the query of each group, float32[4, width], and a query's gradient.
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
    candidates: Candidates
    queries: Floats
    g_query: Floats

    @classmethod
    def of(cls, system: EmbeddingSystem, weights: Weights) -> Workspace:
        """Make the arrays that a worker needs."""
        entities, relations = len(weights.entities), len(weights.relations)
        most = min(entities, system.batch * (system.negatives + 4))
        return cls(
            slots=np.full(entities, -1, dtype=np.int32),
            filled=np.zeros(1, dtype=np.int32),
            touched=np.zeros(most, dtype=np.int32),
            uses=np.zeros(most, dtype=np.int32),
            g_entities=zeros(most, system.entity_width),
            relation_touched=np.zeros(relations, dtype=np.bool_),
            relation_uses=np.zeros(relations, dtype=np.int32),
            g_derived=zeros(relations, system.derived_width),
            g_parameters=zeros(system.relation_width),
            candidates=Candidates.empty(system),
            queries=zeros(4, system.query_width),
            g_query=zeros(system.query_width),
        )


# -- fetching rows before they are needed ---------------------------------------------------------
#
# Rows of random entities lie all over memory, so that most of the time of training would be spent waiting for
# them. What comes next is known well before, though.

# Numbers of four bytes in a cache line; how many positives, and updates of rows, ahead of their use rows are
# prefetched.
_LINE = 16
AHEAD = 3
_ROWS_AHEAD = 6


@intrinsic
def _prefetch(context: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of an element of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(rows.data, [arguments[1]]), cgutils.voidptr_t)
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
    """Prefetch a row of an array of rows with this width."""
    start = row * width
    for j in range(0, width, _LINE):
        _prefetch(rows, start + j)  # type: ignore[call-arg]


@fast_spliced
def prefetch_positive(loss: Loss, weights: Weights, data: Data, salt: Any, position: int, positive: int) -> None:
    """Prefetch the rows of a positive and its random negatives."""
    width = weights.entities.shape[1]
    prefetch_row(weights.entities, np.int64(data.positives[positive, 0]), width)
    prefetch_row(weights.entities, np.int64(data.positives[positive, 2]), width)
    counter = np.uint64(position) * np.uint64(loss.negatives + 1)
    for i in range(loss.negatives):
        bits = random_bits(salt, counter + np.uint64(i))
        prefetch_row(weights.entities, np.int64(draw_other(bits, data.constants, -1)), width)


# -- the loss: which negatives a positive gets, and the derivative by each score --------------------


@fast_spliced
def draw(
    loss: Loss, data: Data, candidates: Candidates, salt: Any, position: int, positive: int, explicit: int
) -> None:
    """Write down a positive and its negatives; the position in the epoch decides which."""
    subject, relation, object_ = (data.positives[positive, 0], data.positives[positive, 1], data.positives[positive, 2])
    of_types = relation == data.type_relation
    counter = np.uint64(position) * np.uint64(loss.negatives + 1)
    candidates.ids[0] = object_
    objects, end = 1, loss.negatives + 1
    pool = data.types if of_types else data.constants
    for i in range(loss.negatives):
        bits = random_bits(salt, counter + np.uint64(i))
        if bits & np.uint64(1) and len(pool) > 1:  # a graph may have one type only
            candidates.ids[objects] = draw_other(bits, pool, object_)
            objects += 1
        else:
            end -= 1
            candidates.ids[end] = draw_other(bits, data.constants, subject)
    for group in range(4):
        candidates.anchor[group] = subject
        candidates.relation[group] = relation
        candidates.side[group] = OBJECT
    candidates.anchor[1] = object_
    candidates.side[1] = SUBJECT
    candidates.ends[1] = objects
    candidates.ends[2] = loss.negatives + 1
    end = loss.negatives + 1
    if loss.explicit_weight > _ZERO and len(data.negatives) > 0:
        candidates.ids[end] = data.negatives[explicit, 2]
        candidates.anchor[2] = data.negatives[explicit, 0]
        candidates.relation[2] = data.negatives[explicit, 1]
        end += 1
    candidates.ends[3] = end
    if loss.relation_weight > _ZERO and len(data.relations) > 1 and not of_types:
        bits = random_bits(salt, counter + np.uint64(loss.negatives))
        candidates.ids[end] = object_
        candidates.relation[3] = draw_other(bits, data.relations, relation)
        end += 1
    candidates.ends[4] = end


@fast_spliced
def backward_loss(loss: Loss, candidates: Candidates) -> Any:
    """Set the derivative of the loss by each score; returns the loss."""
    scores, weights = candidates.scores, candidates.weights
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
    weights[k + 1] = loss.explicit_weight if candidates.ends[3] > candidates.ends[2] else loss.relation_weight
    weights[k + 2] = loss.relation_weight
    total = _ZERO
    for i in range(candidates.ends[4]):
        small = np.exp(-abs(scores[i]))
        share = _ONE / (_ONE + small)
        total += weights[i] * (max(scores[i], _ZERO) + np.log(_ONE + small))
        weights[i] *= share if scores[i] >= _ZERO else _ONE - share
    scores[0] = -scores[0]
    weights[0] = -weights[0]
    return total


# -- the optimiser: lazy Adam, which moves only the rows that a batch touched ------------------------

# The decay rates of both moments, and what keeps the denominator from 0: the values of Kingma and Ba.
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8
_KEEP_FIRST, _TAKE_FIRST = np.float32(_FIRST), np.float32(1 - _FIRST)
_KEEP_SECOND, _TAKE_SECOND = np.float32(_SECOND), np.float32(1 - _SECOND)


@fast_inlined
def bias_corrections(rate: float, step: int) -> Any:
    """Return the rate and the tiny number of a step, counted from 1, with the moments' bias corrected."""
    second = np.sqrt(1.0 - _SECOND**step)
    return np.float32(rate * second / (1.0 - _FIRST**step)), np.float32(_TINY * second)


@fast_inlined
def update_row(share: Any, rate: Any, tiny: Any, row: Floats, moments: Any, gradient: Floats) -> None:
    """Take a step with share · gradient for one row, and clear it; `moments` is float32[2, width]."""
    first, second = moments[0], moments[1]
    for j in range(len(row)):
        g = share * gradient[j]
        first[j] = _KEEP_FIRST * first[j] + _TAKE_FIRST * g
        second[j] = _KEEP_SECOND * second[j] + _TAKE_SECOND * g * g
        row[j] -= rate * first[j] / (np.sqrt(second[j]) + tiny)
        gradient[j] = np.float32(0)


# -- a batch ---------------------------------------------------------------------------------------


@fast_spliced
def touch(workspace: Workspace, entity: Any) -> None:
    """Give an entity a row for its gradient."""
    if workspace.slots[entity] < 0:
        workspace.slots[entity] = workspace.filled[0]
        workspace.touched[workspace.filled[0]] = entity
        workspace.filled[0] += 1
    prefetch_row(workspace.g_entities, np.int64(workspace.slots[entity]), workspace.g_entities.shape[1])


@fast_spliced
def touch_candidates(workspace: Workspace, candidates: Candidates) -> None:
    """Give all that `draw` wrote down rows for gradients, and count what the positive uses."""
    for i in range(candidates.ends[4]):
        touch(workspace, candidates.ids[i])
    for group in range(4):
        touch(workspace, candidates.anchor[group])
        workspace.relation_touched[candidates.relation[group]] = True
    workspace.uses[workspace.slots[candidates.anchor[0]]] += 1
    workspace.uses[workspace.slots[candidates.ids[0]]] += 1
    workspace.relation_uses[candidates.relation[0]] += 1


# Names that stand for a model's functions. What uses them are templates: `specialise` makes each model's copies.
def _unbound(*_: Any) -> Any:
    raise NotImplementedError


make_query = backward_query = compare = backward_compare = compare_tile = _unbound
derive = backward_derive = backward_cubic = _unbound


def score_group(loss: Loss, weights: Weights, candidates: Candidates, query: Floats, group: int) -> None:
    """Make the query of a group, and score its candidates."""
    anchor, derived = weights.entities[candidates.anchor[group]], weights.derived[candidates.relation[group]]
    make_query(candidates.side[group], anchor, derived, query)
    for i in range(candidates.ends[group], candidates.ends[group + 1]):
        candidates.scores[i] = loss.offset + compare(query, weights.entities[candidates.ids[i]])


def add_gradients(loss: Loss, weights: Weights, workspace: Workspace, candidates: Candidates) -> Any:
    """Add the gradients of what `draw` wrote down; returns the loss."""
    for group in range(4):
        if candidates.ends[group] < candidates.ends[group + 1]:
            score_group(loss, weights, candidates, workspace.queries[group], group)
    total = backward_loss(loss, candidates)
    for group in range(4):
        start, end = candidates.ends[group], candidates.ends[group + 1]
        if start < end:
            query, g_query = workspace.queries[group], workspace.g_query
            for j in range(len(g_query)):
                g_query[j] = _ZERO
            for i in range(start, end):
                candidate = weights.entities[candidates.ids[i]]
                g_candidate = workspace.g_entities[workspace.slots[candidates.ids[i]]]
                comparison = candidates.scores[i] - loss.offset
                backward_compare(candidates.weights[i], comparison, query, candidate, g_query, g_candidate)
            anchor, relation = candidates.anchor[group], candidates.relation[group]
            entity, g_entity = weights.entities[anchor], workspace.g_entities[workspace.slots[anchor]]
            derived, g_derived = weights.derived[relation], workspace.g_derived[relation]
            backward_query(candidates.side[group], entity, derived, g_query, g_entity, g_derived)
    return total


def update(loss: Loss, weights: Weights, workspace: Workspace, share: Any, rate: Any, tiny: Any) -> None:
    """Take a step with the mean gradients of a batch, and clear them."""
    width = weights.entities.shape[1]
    for slot in range(workspace.filled[0]):
        if slot + _ROWS_AHEAD < workspace.filled[0]:
            ahead = np.int64(workspace.touched[slot + _ROWS_AHEAD])
            prefetch_row(weights.entities, ahead, width)
            prefetch_row(weights.entity_moments, ahead, 2 * width)
        entity = workspace.touched[slot]
        row, gradient = weights.entities[entity], workspace.g_entities[slot]
        if loss.cubic > _ZERO and workspace.uses[slot] > 0:
            backward_cubic(loss.cubic * workspace.uses[slot], row, gradient)
        update_row(share, rate, tiny, row, weights.entity_moments[entity], gradient)
        workspace.uses[slot] = 0
        workspace.slots[entity] = -1
    workspace.filled[0] = 0
    for relation in range(len(workspace.relation_touched)):
        if not workspace.relation_touched[relation]:
            continue
        row, gradient = weights.relations[relation], workspace.g_parameters
        derived, g_derived = weights.derived[relation], workspace.g_derived[relation]
        backward_derive(derived, g_derived, gradient)
        for j in range(len(g_derived)):
            g_derived[j] = _ZERO
        if loss.cubic > _ZERO:
            backward_cubic(loss.cubic * workspace.relation_uses[relation], row, gradient)
        update_row(share, rate, tiny, row, weights.relation_moments[relation], gradient)
        derive(row, derived)
        workspace.relation_uses[relation] = 0
        workspace.relation_touched[relation] = False


def run_batches(
    loss: Loss, weights: Weights, bucket: Bucket, workspace: Workspace, batch: int, first: int, last: int
) -> float:
    """Learn from the batches first to last of a bucket, of so many positives each; returns the sum of the losses."""
    total = 0.0
    for b in range(first, last):
        start, end = b * batch, min((b + 1) * batch, len(bucket.order))
        for position in range(start, end):
            if position + AHEAD < end:
                prefetch_positive(
                    loss, weights, bucket.data, bucket.salt, position + AHEAD, bucket.order[position + AHEAD]
                )
            positive, explicit = bucket.order[position], bucket.pairing[position]
            draw(loss, bucket.data, workspace.candidates, bucket.salt, position, positive, explicit)
            touch_candidates(workspace, workspace.candidates)
            total += add_gradients(loss, weights, workspace, workspace.candidates)
        rate, tiny = bias_corrections(bucket.rates[b], bucket.first_step + b)
        update(loss, weights, workspace, _ONE / np.float32(end - start), rate, tiny)
    return total


def derive_all(parameters: Floats, derived: Floats) -> None:
    """Derive what queries need from all relations' parameters."""
    for r in range(len(parameters)):
        derive(parameters[r], derived[r])


# -- kernels of one model --------------------------------------------------------------------------


@cache
def training_kernels(functions: ModelFunctions) -> SimpleNamespace:
    """Compile the kernels above for a model; returns them by name, with the model's functions."""
    model = {name: fast_inlined(function) for name, function in functions._asdict().items()}
    spliced = ((fast_spliced, template) for template in (score_group, add_gradients, update))
    compiled = ((fast_kernel, template) for template in (run_batches, derive_all))
    return specialise(model, functions, *spliced, *compiled)


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def specialise(
    names: Mapping[str, Any], functions: ModelFunctions, *templates: tuple[Decorator, Callable[..., Any]]
) -> SimpleNamespace:
    """Compile copies of templates in which global names mean what they mean in `names`.

    Later templates see earlier ones. A kernel that gets functions as arguments, or closes over them, could not
    be kept on disk; a copy of its own for each model can, in a folder that is named after the model's
    functions and depends on what they do.
    """
    model = _digest(*(f"{function.__module__}.{function.__qualname__}" for function in functions))
    code = _digest(*map(_code_of, functions))
    if _first_code.setdefault(model, code) != code:  # functions of the same names, as in a notebook
        model = code
    namespace = {**names, "model_code": code}
    # What is kept on disk could not be loaded again without the modules of the model's functions.
    importable = all(function.__module__ in sys.modules for function in functions)
    for decorate, template in templates:
        copy = FunctionType(template.__code__, {**template.__globals__, **namespace}, template.__name__)
        # Machine code of two models may be loaded from disk into one process: their names must differ.
        copy.__qualname__ = f"{template.__name__}_{model}"
        # The folder is chosen by the module's name now; when machine code is loaded, there must be such a module.
        copy.__module__ = f"{template.__module__}.{model}"
        with nullcontext() if importable else not_kept():
            namespace[template.__name__] = decorate(copy)
        copy.__module__ = template.__module__
    return SimpleNamespace(**namespace)


# By the names of a model's functions: what they do, as this process saw it first.
_first_code: dict[str, str] = {}


def _code_of(function: Any) -> str:
    """Return what a function does: its code, and the numbers and functions that it uses."""
    plain = getattr(function, "py_func", function)
    code = plain.__code__
    used = [plain.__globals__[name] for name in code.co_names if name in plain.__globals__]
    inner = [_code_of(value) if hasattr(value, "py_func") else repr(value) for value in used]
    return _digest(code.co_code.hex(), repr(code.co_consts), repr(code.co_names), *inner)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
