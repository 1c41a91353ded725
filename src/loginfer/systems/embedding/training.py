"""How an embedding model is trained: epochs of steps, the choice of the best epoch on valid, checkpoints.

Weights are in memory; `large` is for entities in parts and weights in files, and not imported unless settings or
millions of entities ask for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.randomness import generator
from loginfer.systems.embedding.base import EmbeddingSystem, Floats
from loginfer.systems.embedding.kernels import Ids, Weights, padded, training_kernels, zeros
from loginfer.systems.embedding.scorer import EmbeddingScorer
from loginfer.systems.embedding.steps import Data, Learner, Lesson, Teacher, TrainingQueries, lessons, training_queries
from loginfer.systems.fitting import BestEpoch, Validation, explicit_negatives, rival_constants
from loginfer.systems.interface import Arrays, Checkpoint, Unwatched, Watch

# Weights and moments up to this many bytes are not split; two parts of larger ones have no more.
MEMORY = 8 * 2**30

# From this many bytes of weights and moments on, the storage `auto` means files.
MAPPED_FROM = 2 * 2**30

# Steps between two reports of progress, which are shown in epochs of more than `_LONG` steps.
_BETWEEN = 32
_LONG = 256

# Rows that are worked on at a time where the whole would need memory for a copy.
_BLOCK = 2**16


def train(system: EmbeddingSystem, benchmark: Benchmark, watch: Watch | None) -> EmbeddingScorer:
    """Fit an embedding system to a benchmark."""
    watch = Unwatched() if watch is None else watch
    entities = len(benchmark.graph.entities)
    candidates = entities if system.loss == "1vsall" else min(system.negatives, entities)
    if 4 * candidates * (system.batch + 4 * system.entity_width) > MEMORY:
        hint = "fewer of them: --set loss=softmax --set negatives=1024, or a smaller --set batch"
        raise InputError(f"a step with {candidates:,} candidates needs more than {MEMORY // 2**30} GB", hint=hint)
    if count_parts(system, entities) == 1 and in_memory(system, entities):
        store = MemoryStore(system, training_data(system, benchmark), entities)
    else:
        from loginfer.systems.embedding.large import open_store

        store = open_store(system, training_data(system, benchmark), entities, watch)
    try:
        # Workers have shares of a matrix product already.
        with threadpool_limits(1, "blas"):
            training = _Training(system, benchmark, store, watch)
            try:
                scorer = training.run()
            finally:
                training.close()
    except BaseException:
        store.close()
        raise
    store.close_after(scorer)
    return scorer


def row_bytes(system: EmbeddingSystem) -> int:
    """Return the bytes of an entity's weights and moments."""
    return (1 + system.moments) * 4 * system.entity_width


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
    return Data(
        positives=np.array(benchmark.positives.train, dtype=np.int32, order="C"),
        negatives=np.require(explicit_negatives(benchmark, system.mode), np.int32, ["C", "W"]),
        constants=rival_constants(graph),
        types=np.array(graph.types, dtype=np.int32),
        relations=np.array(graph.rels, dtype=np.int32),
        type_relation=-1 if graph.type_relation is None else graph.type_relation,
    )


@dataclass
class TrainingState:
    """How far a training is.

    Parameters
    ----------
    epoch, bucket, lesson
        How many are done: epochs, buckets of the next epoch, lessons of its next bucket.
    steps
        How many steps were taken in all.
    total, asked
        The sum of the losses of that epoch so far, and how often a positive was asked for.
    best
        Which epoch was the best.
    """

    epoch: int = 0
    bucket: int = 0
    lesson: int = 0
    steps: int = 0
    total: float = 0.0
    asked: int = 0
    best: BestEpoch = field(default_factory=BestEpoch)

    _numbers: ClassVar = ("epoch", "bucket", "lesson", "steps", "total", "asked")

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> TrainingState:
        """Return what `facts` wrote into a checkpoint."""
        return cls(**{name: facts[name] for name in cls._numbers}, best=BestEpoch.of(facts))

    def facts(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {name: getattr(self, name) for name in self._numbers} | self.best.facts()


class _Training:
    """One training: weights, how far it is, and who watches."""

    def __init__(self, system: EmbeddingSystem, benchmark: Benchmark, store: MemoryStore, watch: Watch) -> None:
        self._system = system
        self._watch = watch
        self._store = store
        self._state = TrainingState()
        self._asked: tuple[tuple[int, ...], list[TrainingQueries]] | None = None
        validation = Validation.of(benchmark, system.seed, system.patience)
        # The entities that it needs, and its triples by indices among them.
        self._valid = None if validation is None else validation.compact()
        self._best_counts = validation is not None and system.keep == "best"
        checkpoint = watch.restore()
        if checkpoint is None:
            random = generator(system.seed, "embedding", "start")
            store.begin(random)
            relations = system.initial_relations(len(benchmark.graph.relations) * system.directions, random)
            moments = zeros(len(relations), system.moments, system.relation_width)
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
        self._learner = Learner(system, self._weights)

    def run(self) -> EmbeddingScorer:
        """Learn until it is enough; returns what was learned."""
        system, state, watch = self._system, self._state, self._watch
        while state.epoch < system.epochs and not state.best.enough(system.patience):
            watch.progress("epochs", state.epoch, system.epochs)
            loss, rate = self._epoch()
            state.epoch += 1
            state.bucket, state.lesson, state.total, state.asked = 0, 0, 0.0, 0
            row: dict[str, float | int] = {"epoch": state.epoch, "loss": loss, "learning_rate": rate}
            figure = None
            if self._valid is not None:
                entities, validation = self._valid
                figure = validation.judge(self._scorer_of(entities))
                row[validation.figure] = figure
            if state.best.judge(state.epoch, figure) and self._best_counts:
                self._store.keep()
                np.copyto(self._best_relations, self._weights.relations)
            watch.record(row)
            self._maybe_save(within=False)
        watch.progress("epochs", state.epoch, system.epochs)
        relations = self._best_relations if self._best_counts else self._weights.relations
        return EmbeddingScorer.of(system, self._store.result(self._best_counts), relations)

    def close(self) -> None:
        """Let the workers go."""
        self._learner.close()

    def _epoch(self) -> tuple[float, float]:
        """Learn from all positives once; returns their mean loss and the learning rate at the start."""
        system, state, epoch = self._system, self._state, self._state.epoch
        buckets = self._store.buckets(epoch)
        positives = sum(count for _, count in buckets)
        while state.bucket < len(buckets):
            number = state.bucket
            pair, count = buckets[number]
            data = self._store.load(*(pair for pair, _ in buckets[number : number + 2]))
            stage = (epoch, *(sorted(pair) if len(pair) > 1 else ()))
            random = generator(system.seed, "embedding", "order", *stage)
            teacher = Teacher(system, data, random.permutation(len(data.negatives)), self._store.place)
            planned = lessons(self._queries_of(pair, data), system.batch, random)
            before = sum(count for _, count in buckets[:number]) / positives
            self._learn(teacher, planned, stage, before, count / positives)
            state.bucket, state.lesson = number + 1, 0
            if state.bucket < len(buckets):
                self._maybe_save(within=True)
        return state.total / state.asked, system.learning_rate * (1 - epoch / system.epochs)

    def _queries_of(self, pair: tuple[int, ...], data: Data) -> list[TrainingQueries]:
        """Return what is asked of a bucket: as for the last one if it is the same."""
        if self._asked is None or self._asked[0] != pair:
            self._asked = pair, training_queries(data)
        return self._asked[1]

    def _learn(
        self, teacher: Teacher, planned: list[Lesson], stage: tuple[int, ...], before: float, share: float
    ) -> None:
        """Take the lessons of a bucket that are left; it begins at a share of the epoch, and has a share of it."""
        system, state = self._system, self._state
        for number in range(state.lesson, len(planned)):
            self._store.changing()
            step = teacher.step(planned[number], *stage, number)
            done = (state.epoch + before + share * number / len(planned)) / system.epochs
            state.total += self._learner.learn(step, system.learning_rate * (1 - done), state.steps + 1)
            state.steps, state.asked = state.steps + 1, state.asked + len(step.places)
            state.lesson = number + 1
            if not math.isfinite(state.total):
                raise self._ran_away(f"the loss became {state.total}")
            if state.lesson % _BETWEEN == 0 and state.lesson < len(planned):
                if len(planned) > _LONG:
                    self._watch.progress("steps", state.lesson, len(planned))
                self._maybe_save(within=True)
        if not (self._store.finite() and np.isfinite(self._weights.relations).all()):
            raise self._ran_away("a weight is no longer a finite number")

    def _ran_away(self, what: str) -> LogInferError:
        rate = self._system.learning_rate / 10
        return LogInferError(
            f"{what} in epoch {self._state.epoch + 1}: training ran away",
            hint=f"try a smaller learning rate: --set learning_rate={rate:g}",
        )

    def _scorer_of(self, entities: Ids) -> EmbeddingScorer:
        """Return the scorer with the weights as they are now, of some entities."""
        return EmbeddingScorer.of(self._system, self._store.rows(entities), self._weights.relations)

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
        float32[n, width] and float32[n, moments, width], the rows in memory.
    """

    def __init__(self, system: EmbeddingSystem, data: Data, entities: int) -> None:
        self._system = system
        self._data = data
        self._best: Floats | None = None
        self.entities = zeros(entities, system.entity_width)
        self.moments = zeros(entities, system.moments, system.entity_width)

    def begin(self, random: np.random.Generator) -> None:
        """Draw the rows at the start."""
        draw_rows(self._system, self.entities, random)

    def buckets(self, epoch: int) -> list[tuple[tuple[int, ...], int]]:
        """Return what an epoch consists of: the parts of a bucket, and how many positives it has."""
        return [((), len(self._data.positives))]

    def load(self, pair: tuple[int, ...], following: tuple[int, ...] | None = None) -> Data:
        """Bring the rows of a bucket into memory and return its data; say which is next."""
        return self._data

    def place(self, ids: Ids) -> Ids:
        """Return where in memory the rows are that data call so."""
        return ids

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
