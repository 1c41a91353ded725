"""How an embedding model is trained: epochs of batches, the choice of the best epoch on valid, checkpoints.

Weights are in memory; `large` is for entities in parts and weights in files, and not imported unless settings or
millions of entities ask for it. One thread learns, or several workers with the bits of one.

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

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.kernels import fast_kernel, fast_spliced, inlined, kernel
from loginfer.randomness import generator, salt
from loginfer.systems.embedding.base import EmbeddingSystem, Floats, ModelFunctions
from loginfer.systems.embedding.kernels import (
    AHEAD,
    Bucket,
    Candidates,
    Data,
    Ids,
    Loss,
    Weights,
    Workspace,
    backward_compare,
    backward_loss,
    backward_query,
    bias_corrections,
    draw,
    padded,
    prefetch_positive,
    prefetch_row,
    score_group,
    specialise,
    touch,
    training_kernels,
    update,
    zeros,
)
from loginfer.systems.embedding.scorer import EmbeddingScorer
from loginfer.systems.fitting import BestEpoch, Validation, explicit_negatives
from loginfer.systems.interface import Arrays, Checkpoint, Unwatched, Watch

_ZERO = np.float32(0)
_ONE = np.float32(1)

# An odd number whose multiples are spread evenly over 32 bits.
_SPREAD, _LOW = np.uint64(0x9E3779B1), np.uint64(0xFFFFFFFF)

# Weights and moments up to this many bytes are not split; two parts of larger ones have no more.
MEMORY = 8 * 2**30

# From this many bytes of weights and moments on, the storage `auto` means files.
MAPPED_FROM = 2 * 2**30

# Batches between two reports of progress, which are shown in epochs of more than `_LONG` batches.
_BETWEEN = 128
_LONG = 1024

# Rows that are worked on at a time where the whole would need memory for a copy.
_BLOCK = 2**16


def train(system: EmbeddingSystem, benchmark: Benchmark, watch: Watch | None) -> EmbeddingScorer:
    """Fit an embedding system to a benchmark."""
    watch = Unwatched() if watch is None else watch
    entities = len(benchmark.graph.entities)
    if count_parts(system, entities) == 1 and in_memory(system, entities):
        store = MemoryStore(system, training_data(system, benchmark), entities)
    else:
        from loginfer.systems.embedding.large import open_store

        store = open_store(system, training_data(system, benchmark), entities, watch)
    try:
        scorer = _Training(system, benchmark, store, watch).run()
    except BaseException:
        store.close()
        raise
    store.close_after(scorer)
    return scorer


def row_bytes(system: EmbeddingSystem) -> int:
    """Return the bytes of an entity's weights and both moments."""
    return 3 * 4 * system.entity_width


def count_parts(system: EmbeddingSystem, entities: int) -> int:
    """Return into how many parts entities are split, by the settings; what the machine has does not matter."""
    size = entities * row_bytes(system)
    parts = system.partitions or (1 if size <= MEMORY else max(3, -(-2 * size // MEMORY)))
    return max(1, min(parts, entities))


def in_memory(system: EmbeddingSystem, entities: int) -> bool:
    """Say whether weights are in memory and not in files."""
    return system.storage == "memory" or (system.storage == "auto" and entities * row_bytes(system) <= MAPPED_FROM)


def training_data(system: EmbeddingSystem, benchmark: Benchmark) -> Data:
    """Return P_train, N_train and what random negatives are made of."""
    graph = benchmark.graph
    negatives = explicit_negatives(benchmark, system.mode)
    return Data(
        positives=np.array(benchmark.positives.train, dtype=np.int32, order="C"),
        negatives=np.require(negatives[:0] if system.mode == "random" else negatives, np.int32, ["C", "W"]),
        constants=np.array(graph.consts, dtype=np.int32),
        types=np.array(graph.types, dtype=np.int32),
        relations=np.array(graph.rels, dtype=np.int32),
        type_relation=-1 if graph.type_relation is None else graph.type_relation,
    )


@dataclass
class TrainingState:
    """How far a training is.

    Parameters
    ----------
    epoch, bucket, batch
        How many are done: epochs, buckets of the next epoch, batches of its next bucket.
    total
        The sum of the losses of that epoch so far.
    best
        Which epoch was the best.
    """

    epoch: int = 0
    bucket: int = 0
    batch: int = 0
    total: float = 0.0
    best: BestEpoch = field(default_factory=BestEpoch)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> TrainingState:
        """Return what `facts` wrote into a checkpoint."""
        bucket, batch, total = (facts.get(name, 0) for name in ("lesson", "batch", "total"))
        return cls(facts["epoch"], bucket, batch, float(total), BestEpoch.of(facts))

    def facts(self) -> dict[str, Any]:
        """Return it as JSON values."""
        progress = {"epoch": self.epoch, "lesson": self.bucket, "batch": self.batch, "total": self.total}
        return progress | self.best.facts()


class _Training:
    """One training: weights, how far it is, and who watches."""

    def __init__(self, system: EmbeddingSystem, benchmark: Benchmark, store: MemoryStore, watch: Watch) -> None:
        self._system = system
        self._watch = watch
        self._store = store
        self._state = TrainingState()
        validation = Validation.of(benchmark, system.seed)
        # The entities of valid, and its triples by indices among them.
        self._valid = None if validation is None else validation.compact()
        self._best_counts = validation is not None and system.keep == "best"
        checkpoint = watch.restore()
        if checkpoint is None:
            random = generator(system.seed, "embedding", "start")
            store.begin(random)
            relations = system.initial_relations(len(benchmark.graph.relations), random)
            moments = zeros(len(relations), 2, system.relation_width)
            self._best_relations = relations.copy()
        else:
            arrays, facts = checkpoint.arrays, checkpoint.facts
            store.resume(arrays, facts.get("mapped"))
            relations, moments = (np.asarray(arrays[name]) for name in ("relations", "relation_moments"))
            self._best_relations = np.array(arrays["best_relations"], dtype=np.float32)
            self._state = TrainingState.of(facts)
        relations, derived = padded(relations), zeros(len(relations), system.derived_width)
        self._kernels = training_kernels(system.functions)
        self._kernels.derive_all(relations, derived)
        self._weights = Weights(store.entities, relations, derived, store.moments, padded(moments))
        if system.workers > 1:
            self._run_batches: Callable[..., float] = Workers(system, self._weights).run_batches
        else:
            self._loss, self._workspace = Loss.of(system), Workspace.of(system, self._weights)
            self._run_batches = self._run_alone

    def run(self) -> EmbeddingScorer:
        """Learn until it is enough; returns what was learned."""
        system, state, watch = self._system, self._state, self._watch
        while state.epoch < system.epochs and not state.best.enough(system.patience):
            watch.progress("epochs", state.epoch, system.epochs)
            loss, rate = self._epoch()
            state.epoch += 1
            state.bucket, state.batch, state.total = 0, 0, 0.0
            row: dict[str, float | int] = {"epoch": state.epoch, "loss": loss, "learning_rate": rate}
            accuracy = self._accuracy()
            if accuracy is not None:
                row["valid_accuracy"] = accuracy
            if state.best.judge(state.epoch, accuracy) and self._best_counts:
                self._store.keep()
                np.copyto(self._best_relations, self._weights.relations)
            watch.record(row)
            self._maybe_save(within=False)
        watch.progress("epochs", state.epoch, system.epochs)
        relations = self._best_relations if self._best_counts else self._weights.relations
        return EmbeddingScorer.of(system, self._store.result(self._best_counts), relations)

    def _epoch(self) -> tuple[float, float]:
        """Learn from all positives once; returns their mean loss and the learning rate at the start."""
        system, state, epoch = self._system, self._state, self._state.epoch
        buckets = self._store.buckets(epoch)
        batches = [math.ceil(count / system.batch) for _, count in buckets]
        batches_per_epoch = sum(batches)
        steps = system.epochs * batches_per_epoch
        taken = np.arange(epoch * batches_per_epoch, (epoch + 1) * batches_per_epoch)
        rates = system.learning_rate * (1 - taken / steps)
        while state.bucket < len(buckets):
            number, first = state.bucket, sum(batches[: state.bucket])
            pair, count = buckets[number]
            data = self._store.load(*(pair for pair, _ in buckets[number : number + 2]))
            name = sorted(pair) if len(pair) > 1 else ()
            random = generator(system.seed, "embedding", "order", epoch, *name)
            order = random.permutation(count)
            explicit = len(data.negatives)
            pairing = np.resize(random.permutation(explicit), count) if explicit else order
            bits = np.uint64(salt(system.seed, "embedding", "negatives", epoch, *name))
            bucket_rates = rates[first : first + batches[number]]
            bucket = Bucket(data, order, pairing, bits, epoch * batches_per_epoch + first + 1, bucket_rates)
            self._learn(bucket, steps)
            state.bucket, state.batch = number + 1, 0
            if state.bucket < len(buckets):
                self._maybe_save(within=True)
        return state.total / sum(count for _, count in buckets), float(rates[0])

    def _learn(self, bucket: Bucket, steps: int) -> None:
        """Learn from the batches of a bucket that are left; `steps` is how many batches all epochs have."""
        state, batches = self._state, len(bucket.rates)
        for start in range(state.batch, batches, _BETWEEN):
            self._store.changing()
            end = min(start + _BETWEEN, batches)
            state.total += self._run_batches(bucket, self._weights, start, end)
            state.batch = end
            if steps > _LONG * self._system.epochs:
                self._watch.progress("batches", bucket.first_step - 1 + end, steps)
            if not math.isfinite(state.total):
                raise self._ran_away(f"the loss became {state.total}")
            if end < batches:
                self._maybe_save(within=True)
        if not (self._store.finite() and np.isfinite(self._weights.relations).all()):
            raise self._ran_away("a weight is no longer a finite number")

    def _run_alone(self, bucket: Bucket, weights: Weights, first: int, last: int) -> float:
        size = self._system.batch
        return float(self._kernels.run_batches(self._loss, weights, bucket, self._workspace, size, first, last))

    def _ran_away(self, what: str) -> LogInferError:
        rate = self._system.learning_rate / 10
        return LogInferError(
            f"{what} in epoch {self._state.epoch + 1}: training ran away",
            hint=f"try a smaller learning rate: --set learning_rate={rate:g}",
        )

    def _accuracy(self) -> float | None:
        """Return how good the weights are on valid, if there is one."""
        if self._valid is None:
            return None
        entities, triples = self._valid
        rows, relations = self._store.rows(entities), self._weights.relations
        return triples.accuracy(EmbeddingScorer.of(self._system, rows, relations))

    def _maybe_save(self, within: bool) -> None:
        """Keep a checkpoint, if it is time for one."""
        if not (self._store.ready(within) and self._watch.due()):
            return
        arrays, mapped = self._store.save()
        arrays |= {
            "relations": self._weights.relations,
            "relation_moments": self._weights.relation_moments,
            "best_relations": self._best_relations,
        }
        facts = self._state.facts()
        self._watch.save(Checkpoint(arrays, facts if mapped is None else {**facts, "mapped": mapped}))
        self._store.saved()


class MemoryStore:
    """The rows of all entities, in memory, and what is learned from.

    Stores for many entities (`large`) keep rows elsewhere and give out P_train in several buckets.

    Parameters
    ----------
    system
        Its settings.
    data
        What is learned from.
    entities
        How many entities there are.

    Attributes
    ----------
    entities, moments
        float32[n, width] and float32[n, 2, width], the rows in memory.
    """

    def __init__(self, system: EmbeddingSystem, data: Data, entities: int) -> None:
        self._system = system
        self._data = data
        self._best: Floats | None = None
        self.entities = zeros(entities, system.entity_width)
        self.moments = zeros(entities, 2, system.entity_width)

    def begin(self, random: np.random.Generator) -> None:
        """Draw the rows at the start."""
        draw_rows(self._system, self.entities, random)

    def buckets(self, epoch: int) -> list[tuple[tuple[int, ...], int]]:
        """Return what an epoch consists of: the parts of a bucket, and how many positives it has."""
        return [((), len(self._data.positives))]

    def load(self, pair: tuple[int, ...], following: tuple[int, ...] | None = None) -> Data:
        """Bring the rows of a bucket into memory and return its data, by places of rows; say which is next."""
        return self._data

    def rows(self, ids: Ids) -> Floats:
        """Return copies of the rows of some entities."""
        return self.entities[ids]

    def finite(self) -> bool:
        """Say whether all weights in memory are finite numbers."""
        return all(bool(np.isfinite(self.entities[block]).all()) for block in blocks(len(self.entities)))

    def keep(self) -> None:
        """Keep the rows as they are now, as the best ones so far."""
        if self._best is None:
            self._best = np.empty_like(self.entities)
        np.copyto(self._best, self.entities)

    def result(self, best: bool) -> Floats:
        """Return the rows that were kept as the best, or the last ones, in the order of entities."""
        return self._best if best and self._best is not None else self.entities

    def resume(self, arrays: Arrays, mapped: Any) -> None:
        """Take rows up from what `save` gave."""
        if mapped is not None:
            hint = "go on with --set storage=mapped, or start over"
            raise InputError("the unfinished run kept its weights in files, not in memory", hint=hint)
        self.entities[:] = arrays["entities"]
        self.moments[:] = arrays["entity_moments"]
        if "best_entities" in arrays:
            self._best = np.array(arrays["best_entities"], dtype=np.float32)

    def save(self) -> tuple[dict[str, npt.NDArray[Any]], Any]:
        """Return arrays and facts for a checkpoint; what is not in them is safe when this returns."""
        best = {} if self._best is None else {"best_entities": self._best}
        return {"entities": self.entities, "entity_moments": self.moments, **best}, None

    def ready(self, within: bool) -> bool:
        """Say whether now is the time for a checkpoint; `within` an epoch, or between two."""
        return not within

    def saved(self) -> None:
        """Take note that the checkpoint is kept: what only the last one needed may go."""

    def changing(self) -> None:
        """Take note that rows in memory will be changed."""

    def close(self) -> None:
        """Remove what was only for the time being."""

    def close_after(self, scorer: EmbeddingScorer) -> None:
        """Close once a scorer is gone."""


def blocks(rows: int) -> Iterator[slice]:
    """Yield slices that cover so many rows."""
    for first in range(0, rows, _BLOCK):
        yield slice(first, min(first + _BLOCK, rows))


def draw_rows(system: EmbeddingSystem, rows: Floats, random: np.random.Generator) -> None:
    """Draw rows at the start, block by block: the same numbers as all at once."""
    for block in blocks(len(rows)):
        rows[block] = system.initial_entities(block.stop - block.start, random)


# -- several workers -------------------------------------------------------------------------------


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
                row, derived = weights.entities[anchor], weights.derived[relation]
                g_entity = workspace.g_entities[workspace.slots[anchor]] if my_anchor else spare.entity
                g_derived = workspace.g_derived[relation] if my_relation else spare.derived
                g_query = batch.g_queries[i, group]
                backward_query(candidates.side[group], row, derived, g_query, g_entity, g_derived)


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
