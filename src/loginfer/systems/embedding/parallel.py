"""Several workers, the same bits.

The compiled part of training by several workers, with the bits of one.

The last bits of a sum depend on the order in which it is added up, so nobody may add to a row's gradient out
of turn. A batch is therefore learned from in three phases, and the workers wait for each other in between:

    look    each worker takes a share of the positives: draws their negatives, scores them, and writes down
            the derivatives of the loss by every score and by every query; weights are only read
    add     each worker owns a share of the rows: it goes through all positives in their order and adds up
            the gradients of its own rows; weights are only read
    step    each worker takes the optimiser's step for its own rows

So every row's gradient is summed up by one worker in the order of `steps.run_batches`, whoever that is. The
gradients of a comparison come from the functions that it uses: what falls off besides goes to a spare row.

Who learns from the batches: one worker, or several that take turns by phases; the bits are the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.kernels import fast_kernel, fast_spliced, inlined, kernel
from loginfer.systems.embedding.base import EmbeddingSystem, Floats
from loginfer.systems.embedding.kernels import (
    Data,
    Ids,
    Loss,
    Model,
    Positive,
    Weights,
    Workspace,
    add_gradient,
    announce,
    bias_corrections,
    draw,
    make_query,
    prefetch_row,
    pull_back,
    run_batches,
    score_candidates,
    touch,
    update,
    weigh,
    zeros,
)

_ZERO = np.float32(0)
_ONE = np.float32(1)

# So many positives ahead of their use rows are asked for.
_AHEAD = 3

# An odd number whose multiples are spread evenly over 32 bits.
_SPREAD, _LOW = np.uint64(0x9E3779B1), np.uint64(0xFFFFFFFF)


class Batch(NamedTuple):
    """What workers tell each other about the positives of a batch: the fields of `Workspace`, a row each.

    Parameters
    ----------
    known, relation, side, ends, candidates, scores, weights
        What `Workspace` has for one positive.
    queries, g_queries
        float32[batch, 4, width], the query of each group and the derivative of the loss by it.
    losses
        float32[batch].
    """

    known: Ids
    relation: Ids
    side: Ids
    ends: Ids
    candidates: Ids
    scores: Floats
    weights: Floats
    queries: Floats
    g_queries: Floats
    losses: Floats

    @classmethod
    def of(cls, system: EmbeddingSystem) -> Batch:
        """Make the room that a batch needs."""
        batch, room, width = system.batch, system.negatives + 3, system.query_width
        return cls(
            known=np.zeros((batch, 4), dtype=np.int32),
            relation=np.zeros((batch, 4), dtype=np.int32),
            side=np.zeros((batch, 4), dtype=np.int32),
            ends=np.zeros((batch, 5), dtype=np.int32),
            candidates=np.zeros((batch, room), dtype=np.int32),
            scores=zeros(batch, room),
            weights=zeros(batch, room),
            queries=zeros(batch, 4, width),
            g_queries=zeros(batch, 4, width),
            losses=zeros(batch),
        )


class Spare(NamedTuple):
    """Rows for gradients that are somebody else's to add: of a query, an entity, and a derived relation."""

    query: Floats
    entity: Floats
    derived: Floats

    @classmethod
    def of(cls, system: EmbeddingSystem) -> Spare:
        """Make the room that a worker needs."""
        widths = (system.query_width, system.entity_width, system.derived_width)
        return cls(*(zeros(width) for width in widths))


@fast_kernel
def look(
    model: Model,
    loss: Loss,
    weights: Weights,
    data: Data,
    batch: Batch,
    spare: Spare,
    order: npt.NDArray[np.int64],
    pairing: npt.NDArray[np.int64],
    salt: Any,
    first: int,
    start: int,
    end: int,
) -> None:
    """Draw, score and weigh the positives of the places start to end of a batch that begins at `first`."""
    spare.entity[:] = _ZERO
    for place in range(start, end):
        if place + _AHEAD < end:
            announce(loss, weights, data, salt, place + _AHEAD, order[place + _AHEAD])
        i = place - first
        ends, candidates, scores, shares = (batch.ends[i], batch.candidates[i], batch.scores[i], batch.weights[i])
        one = Positive(batch.known[i], batch.relation[i], batch.side[i], ends, candidates, scores, shares)
        draw(loss, data, one, salt, place, order[place], pairing[place])
        for group in range(4):
            if ends[group] < ends[group + 1]:
                query, known = batch.queries[i, group], weights.entities[one.known[group]]
                make_query(model.code, one.side[group], known, weights.derived[one.relation[group]], query)
                score_candidates(model, query, weights.entities, candidates, scores, ends[group], ends[group + 1])
        batch.losses[i] = weigh(loss, one)
        for group in range(4):
            query, g_query = batch.queries[i, group], batch.g_queries[i, group]
            if ends[group] < ends[group + 1]:
                for j in range(len(g_query)):
                    g_query[j] = _ZERO
            for c in range(ends[group], ends[group + 1]):
                candidate = weights.entities[candidates[c]]
                add_gradient(model, shares[c], scores[c], query, candidate, g_query, spare.entity)


@fast_kernel
def add(
    model: Model, weights: Weights, batch: Batch, work: Workspace, spare: Spare, count: int, worker: int, workers: int
) -> None:
    """Add up the gradients of a worker's own rows, from so many positives of a batch."""
    spare.query[:] = _ZERO
    spare.entity[:] = _ZERO
    spare.derived[:] = _ZERO
    for i in range(min(_AHEAD, count)):
        _claim(weights, batch, work, i, worker, workers)
    for i in range(count):
        if i + _AHEAD < count:
            _claim(weights, batch, work, i + _AHEAD, worker, workers)
        ends, candidates = batch.ends[i], batch.candidates[i]
        for group in range(4):
            if ends[group] == ends[group + 1]:
                continue
            query = batch.queries[i, group]
            for c in range(ends[group], ends[group + 1]):
                entity = candidates[c]
                if _owner(entity, workers) == worker:
                    add_gradient(
                        model,
                        batch.weights[i, c],
                        batch.scores[i, c],
                        query,
                        weights.entities[entity],
                        spare.query,
                        work.g_entities[work.slots[entity]],
                    )
            known, relation = batch.known[i, group], batch.relation[i, group]
            my_known, my_relation = _owner(known, workers) == worker, _owner(relation, workers) == worker
            if my_known or my_relation:
                pull_back(
                    model.code,
                    batch.side[i, group],
                    weights.entities[known],
                    weights.derived[relation],
                    batch.g_queries[i, group],
                    work.g_entities[work.slots[known]] if my_known else spare.entity,
                    work.g_derived[relation] if my_relation else spare.derived,
                )


@inlined
def _owner(row: Any, workers: int) -> Any:
    """Return whose a row is: a hash of it, scaled down, as a division would take longer."""
    return np.int64(((np.uint64(row) * _SPREAD & _LOW) * np.uint64(workers)) >> np.uint64(32))


@fast_spliced
def _claim(weights: Weights, batch: Batch, work: Workspace, i: int, worker: int, workers: int) -> None:
    """Give a worker's own among the rows of a positive room for gradients, and count what it uses."""
    for c in range(batch.ends[i, 4]):
        entity = batch.candidates[i, c]
        if _owner(entity, workers) == worker:
            touch(work, entity)
            prefetch_row(weights.entities, np.int64(entity), weights.entities.shape[1])
    for group in range(4):
        known, relation = batch.known[i, group], batch.relation[i, group]
        if _owner(known, workers) == worker:
            touch(work, known)
        if _owner(relation, workers) == worker:
            work.relation_touched[relation] = True
    subject, relation, object_ = batch.known[i, 0], batch.relation[i, 0], batch.candidates[i, 0]
    if _owner(subject, workers) == worker:
        work.uses[work.slots[subject]] += 1
    if _owner(object_, workers) == worker:
        work.uses[work.slots[object_]] += 1
    if _owner(relation, workers) == worker:
        work.relation_uses[relation] += 1


@fast_kernel
def step(
    model: Model, loss: Loss, weights: Weights, work: Workspace, count: int, learning_rate: float, number: int
) -> None:
    """Take the optimiser's step for a worker's own rows; `number` counts steps from 1."""
    rate, tiny = bias_corrections(learning_rate, number)
    update(model, loss, weights, work, _ONE / np.float32(count), rate, tiny)


@kernel
def sum_in_order(total: float, losses: Floats) -> float:
    """Add losses to a total, one after the other."""
    for loss in losses:
        total += loss
    return total


Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is learned from in one go: some positives, in batches.

    Parameters
    ----------
    data
        The positives, and what their negatives are made of.
    order, pairing
        The positives in the order of learning, and the explicit negative that goes with each place.
    salt
        64 random bits.
    first_step, rates
        The step of batch 0, counted from 1, and the learning rate of each batch.
    """

    data: Data
    order: Places
    pairing: Places
    salt: np.uint64
    first_step: int
    rates: npt.NDArray[np.float64]


class Crew:
    """The workers of one training, with the room that they need.

    Parameters
    ----------
    system
        Its settings.
    weights
        What has the shape of the weights that they will learn.
    """

    def __init__(self, system: EmbeddingSystem, weights: Weights) -> None:
        self._system = system
        self._workspaces = [Workspace.of(system, weights) for _ in range(system.workers)]
        if system.workers > 1:
            self._batch = Batch.of(system)
            self._spares = [Spare.of(system) for _ in range(system.workers)]
            self._barrier = threading.Barrier(system.workers)

    def learn(self, lesson: Lesson, weights: Weights, start: int, end: int) -> float:
        """Learn from the batches start to end of a lesson; returns the sum of the positives' losses."""
        if len(self._workspaces) == 1:
            return self._alone(lesson, weights, np.arange(start, end))
        workers = len(self._workspaces)
        self._barrier.reset()
        with ThreadPoolExecutor(workers) as pool:
            try:
                shares = [pool.submit(self._together, lesson, weights, start, end, w) for w in range(workers)]
                wait(shares)
            except BaseException:  # somebody pressed Ctrl-C, or there is no thread for one of them
                self._barrier.abort()
                raise
        failed = [error for error in (share.exception() for share in shares) if error is not None]
        if failed:
            # Whoever waited for the one that failed only says so.
            raise next((e for e in failed if not isinstance(e, threading.BrokenBarrierError)), failed[0])
        return float(shares[0].result())

    def _alone(self, lesson: Lesson, weights: Weights, batches: Places) -> float:
        system = self._system
        return float(
            run_batches(
                Model.of(system),
                Loss.of(system),
                weights,
                lesson.data,
                self._workspaces[0],
                lesson.order,
                lesson.pairing,
                lesson.salt,
                system.batch,
                batches,
                lesson.first_step,
                lesson.rates,
            )
        )

    def _together(self, lesson: Lesson, weights: Weights, start: int, end: int, worker: int) -> float:
        """Do one worker's part."""
        model, loss = Model.of(self._system), Loss.of(self._system)
        batch, spare, work = self._batch, self._spares[worker], self._workspaces[worker]
        workers, size = len(self._workspaces), self._system.batch
        total = 0.0
        for b in range(start, end):
            first, last = b * size, min((b + 1) * size, len(lesson.order))
            count = last - first
            mine = (first + count * worker // workers, first + count * (worker + 1) // workers)
            self._phase(
                look, model, loss, weights, lesson.data, batch, spare, lesson.order, lesson.pairing,
                lesson.salt, first, *mine,
            )  # fmt: skip
            self._phase(add, model, weights, batch, work, spare, count, worker, workers)
            total = sum_in_order(total, batch.losses[:count])
            self._phase(step, model, loss, weights, work, count, lesson.rates[b], lesson.first_step + b)
        return total

    def _phase(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do one's part of a phase, and wait for the others."""
        try:
            work(*arguments)
        except BaseException:
            self._barrier.abort()
            raise
        self._barrier.wait()
