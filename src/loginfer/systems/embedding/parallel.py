"""Training by several workers, with the bits of one.

The last bits of a sum depend on the order in which it is added up, so nobody may add to a row's gradient out
of turn. A batch is therefore learned from in three steps, and the workers wait for each other in between:

    score   each worker takes a share of the positives: draws their negatives, scores them, and writes down
            the derivatives of the loss by every score and by every query; weights are only read
    add     each worker owns a share of the rows: it goes through all positives in their order and adds up
            the gradients of its own rows; weights are only read
    update  each worker takes the optimiser's step for its own rows

So every row's gradient is summed up by one worker in the order of `kernels.run_batches`, whoever that is. The
gradients of a comparison come from the functions that it uses: what is not needed goes to a spare row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from loginfer.kernels import fast_kernel, fast_spliced, inlined, kernel
from loginfer.systems.embedding.base import EmbeddingSystem, Floats, ModelFunctions
from loginfer.systems.embedding.kernels import (
    AHEAD,
    Bucket,
    Candidates,
    Loss,
    Weights,
    Workspace,
    backward_compare,
    backward_loss,
    backward_query,
    bias_corrections,
    draw,
    prefetch_positive,
    prefetch_row,
    score_group,
    specialise,
    touch,
    training_kernels,
    update,
    zeros,
)

_ZERO = np.float32(0)
_ONE = np.float32(1)

# An odd number whose multiples are spread evenly over 32 bits.
_SPREAD, _LOW = np.uint64(0x9E3779B1), np.uint64(0xFFFFFFFF)


class Workers:
    """The workers of one training, with the arrays that they need.

    Parameters
    ----------
    system
        Its settings.
    weights
        Weights of the shape that they will learn.
    """

    def __init__(self, system: EmbeddingSystem, weights: Weights) -> None:
        self._size = system.batch
        self._loss = Loss.of(system)
        self._kernels = worker_kernels(system.functions)
        self._workspaces = [Workspace.of(system, weights) for _ in range(system.workers)]
        self._batch = Batch.of(system)
        self._spares = [SpareRows.of(system) for _ in range(system.workers)]
        self._barrier = threading.Barrier(system.workers)

    def run_batches(self, bucket: Bucket, weights: Weights, first: int, last: int) -> float:
        """Learn from the batches first to last of a bucket; returns the sum of the positives' losses."""
        workers = len(self._workspaces)
        self._barrier.reset()
        with ThreadPoolExecutor(workers) as pool:
            try:
                shares = [pool.submit(self._run_worker, bucket, weights, first, last, w) for w in range(workers)]
                wait(shares)
            except BaseException:  # somebody pressed Ctrl-C, or there is no thread for one of them
                self._barrier.abort()
                raise
        failed = [error for error in (share.exception() for share in shares) if error is not None]
        if failed:
            # Workers that waited for the one that failed only report that.
            raise next((e for e in failed if not isinstance(e, threading.BrokenBarrierError)), failed[0])
        return float(shares[0].result())

    def _run_worker(self, bucket: Bucket, weights: Weights, first: int, last: int, worker: int) -> float:
        """Do one worker's part."""
        kernels, loss, workers = self._kernels, self._loss, len(self._workspaces)
        batch, spare, workspace = self._batch, self._spares[worker], self._workspaces[worker]
        total = 0.0
        for b in range(first, last):
            start, end = b * self._size, min((b + 1) * self._size, len(bucket.order))
            count = end - start
            bounds = (start + count * worker // workers, start + count * (worker + 1) // workers)
            self._step(kernels.score_positives, loss, weights, bucket, batch, spare, start, *bounds)
            self._step(kernels.add_own_rows, loss, weights, batch, workspace, spare, count, worker, workers)
            total = sum_in_order(total, batch.losses[:count])
            rate = bucket.rates[b]
            self._step(kernels.update_own_rows, loss, weights, workspace, count, rate, bucket.first_step + b)
        return total

    def _step(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """Do this worker's share of a step, and wait for the others."""
        try:
            kernel(*arguments)
        except BaseException:
            self._barrier.abort()
            raise
        self._barrier.wait()


class Batch(NamedTuple):
    """What workers share about the positives of a batch.

    Parameters
    ----------
    candidates
        Each positive with its negatives, a row each.
    queries, g_queries
        float32[batch, 4, width], the query of each group and the derivative of the loss by it.
    losses
        float32[batch].
    """

    candidates: Candidates
    queries: Floats
    g_queries: Floats
    losses: Floats

    @classmethod
    def of(cls, system: EmbeddingSystem) -> Batch:
        """Make the arrays that a batch needs."""
        shape = (system.batch, 4, system.query_width)
        return cls(Candidates.empty(system, system.batch), zeros(*shape), zeros(*shape), zeros(system.batch))


class SpareRows(NamedTuple):
    """Rows for gradients that are somebody else's to add: of a query, an entity, and a derived relation."""

    query: Floats
    entity: Floats
    derived: Floats

    @classmethod
    def of(cls, system: EmbeddingSystem) -> SpareRows:
        """Make the arrays that a worker needs."""
        return cls(*(zeros(width) for width in (system.query_width, system.entity_width, system.derived_width)))


@fast_spliced
def _positive(batch: Candidates, i: int) -> Candidates:
    """Return one positive of a batch."""
    return Candidates(
        batch.anchor[i],
        batch.relation[i],
        batch.side[i],
        batch.ends[i],
        batch.ids[i],
        batch.scores[i],
        batch.weights[i],
    )


@inlined
def _owner(row: Any, workers: int) -> Any:
    """Return the worker that owns a row: a hash of it, scaled down, as a division would take longer."""
    return np.int64(((np.uint64(row) * _SPREAD & _LOW) * np.uint64(workers)) >> np.uint64(32))


@fast_spliced
def _touch_own(weights: Weights, candidates: Candidates, workspace: Workspace, worker: int, workers: int) -> None:
    """Give those rows of a positive that a worker owns rows for gradients, and count what it uses."""
    for c in range(candidates.ends[4]):
        entity = candidates.ids[c]
        if _owner(entity, workers) == worker:
            touch(workspace, entity)
            prefetch_row(weights.entities, np.int64(entity), weights.entities.shape[1])
    for group in range(4):
        anchor, relation = candidates.anchor[group], candidates.relation[group]
        if _owner(anchor, workers) == worker:
            touch(workspace, anchor)
        if _owner(relation, workers) == worker:
            workspace.relation_touched[relation] = True
    subject, relation, object_ = candidates.anchor[0], candidates.relation[0], candidates.ids[0]
    if _owner(subject, workers) == worker:
        workspace.uses[workspace.slots[subject]] += 1
    if _owner(object_, workers) == worker:
        workspace.uses[workspace.slots[object_]] += 1
    if _owner(relation, workers) == worker:
        workspace.relation_uses[relation] += 1


@kernel
def sum_in_order(total: float, losses: Floats) -> float:
    """Add losses to a total, one after the other."""
    for loss in losses:
        total += loss
    return total


# -- templates, of which `worker_kernels` makes each model's copies ------------------------------------


def score_positives(
    loss: Loss, weights: Weights, bucket: Bucket, batch: Batch, spare: SpareRows, first: int, start: int, end: int
) -> None:
    """Draw, score and weigh the positives at positions start to end of a batch that begins at `first`."""
    spare.entity[:] = _ZERO
    for position in range(start, end):
        if position + AHEAD < end:
            prefetch_positive(loss, weights, bucket.data, bucket.salt, position + AHEAD, bucket.order[position + AHEAD])
        i = position - first
        candidates = _positive(batch.candidates, i)
        draw(loss, bucket.data, candidates, bucket.salt, position, bucket.order[position], bucket.pairing[position])
        for group in range(4):
            if candidates.ends[group] < candidates.ends[group + 1]:
                score_group(loss, weights, candidates, batch.queries[i, group], group)
        batch.losses[i] = backward_loss(loss, candidates)
        for group in range(4):
            query, g_query = batch.queries[i, group], batch.g_queries[i, group]
            if candidates.ends[group] < candidates.ends[group + 1]:
                for j in range(len(g_query)):
                    g_query[j] = _ZERO
            for c in range(candidates.ends[group], candidates.ends[group + 1]):
                candidate, comparison = weights.entities[candidates.ids[c]], candidates.scores[c] - loss.offset
                backward_compare(candidates.weights[c], comparison, query, candidate, g_query, spare.entity)


def add_own_rows(
    loss: Loss,
    weights: Weights,
    batch: Batch,
    workspace: Workspace,
    spare: SpareRows,
    count: int,
    worker: int,
    workers: int,
) -> None:
    """Add up the gradients of a worker's own rows, from so many positives of a batch."""
    spare.query[:] = _ZERO
    spare.entity[:] = _ZERO
    spare.derived[:] = _ZERO
    for i in range(min(AHEAD, count)):
        _touch_own(weights, _positive(batch.candidates, i), workspace, worker, workers)
    for i in range(count):
        if i + AHEAD < count:
            _touch_own(weights, _positive(batch.candidates, i + AHEAD), workspace, worker, workers)
        candidates = _positive(batch.candidates, i)
        for group in range(4):
            if candidates.ends[group] == candidates.ends[group + 1]:
                continue
            query = batch.queries[i, group]
            for c in range(candidates.ends[group], candidates.ends[group + 1]):
                entity = candidates.ids[c]
                if _owner(entity, workers) == worker:
                    row, gradient = weights.entities[entity], workspace.g_entities[workspace.slots[entity]]
                    comparison = candidates.scores[c] - loss.offset
                    backward_compare(candidates.weights[c], comparison, query, row, spare.query, gradient)
            anchor, relation = candidates.anchor[group], candidates.relation[group]
            my_anchor, my_relation = _owner(anchor, workers) == worker, _owner(relation, workers) == worker
            if my_anchor or my_relation:
                backward_query(
                    candidates.side[group],
                    weights.entities[anchor],
                    weights.derived[relation],
                    batch.g_queries[i, group],
                    workspace.g_entities[workspace.slots[anchor]] if my_anchor else spare.entity,
                    workspace.g_derived[relation] if my_relation else spare.derived,
                )


def update_own_rows(
    loss: Loss, weights: Weights, workspace: Workspace, count: int, learning_rate: float, step: int
) -> None:
    """Take the optimiser's step for a worker's own rows; steps are counted from 1."""
    rate, tiny = bias_corrections(learning_rate, step)
    update(loss, weights, workspace, _ONE / np.float32(count), rate, tiny)


@cache
def worker_kernels(functions: ModelFunctions) -> SimpleNamespace:
    """Compile the kernels above for a model."""
    names = vars(training_kernels(functions))
    steps = (score_positives, add_own_rows, update_own_rows)
    return specialise(names, functions, *((fast_kernel, step) for step in steps))
