"""Epochs, best on valid, checkpoints.

How far a training is, and which epoch was the best.

The training loop: epochs, the choice among them on valid, checkpoints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.randomness import generator, salt
from loginfer.systems.embedding.base import EmbeddingSystem, Floats
from loginfer.systems.embedding.kernels import Weights, apart, derive_all, zeros
from loginfer.systems.embedding.large import Buckets, Partition, Place, Store
from loginfer.systems.embedding.parallel import Crew, Lesson
from loginfer.systems.embedding.scorer import EmbeddingScorer, Validation, training_data
from loginfer.systems.interface import Checkpoint, Unwatched, Watch


@dataclass
class Progress:
    """What is known after some epochs, and in the middle of one.

    Parameters
    ----------
    epoch, lesson, batch
        How many are done: epochs, lessons of the next epoch, batches of its next lesson.
    total
        The sum of the losses of that epoch so far.
    best
        The best figure on valid; NaN before the first.
    best_epoch
        The last epoch that reached it, counted from 1.
    stale
        Epochs since it was improved.
    """

    epoch: int = 0
    lesson: int = 0
    batch: int = 0
    total: float = 0.0
    best: float = math.nan
    best_epoch: int = 0
    stale: int = 0

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Progress:
        """Return what `facts` wrote down."""
        known = {field.name: facts[field.name] for field in fields(cls) if field.name in facts}
        return cls(**{**known, "best": math.nan if facts["best"] is None else float(facts["best"])})

    def facts(self) -> dict[str, Any]:
        """Return it as JSON values."""
        known: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**known, "best": None if math.isnan(self.best) else self.best}

    def end_lesson(self) -> None:
        """Take note that all batches of a lesson are done."""
        self.lesson += 1
        self.batch = 0

    def end_epoch(self) -> None:
        """Take note that all lessons of an epoch are done."""
        self.epoch += 1
        self.lesson, self.batch, self.total = 0, 0, 0.0

    def judge(self, figure: float | None) -> bool:
        """Compare an epoch's figure on valid; among equals the last one has learned most.

        Returns whether none was better.
        """
        better = figure is None or not figure <= self.best
        if figure is not None:
            self.stale = 0 if better else self.stale + 1
            if figure < self.best:
                return False
            if better:
                self.best = figure
        self.best_epoch = self.epoch
        return True

    def enough(self, patience: int) -> bool:
        """Say whether there was no improvement for so many epochs; 0: never."""
        return 0 < patience <= self.stale


# So many batches are learned from between two signs of life; in epochs of more than `_LONG` they are shown.
_BETWEEN = 128
_LONG = 1024


def train(system: EmbeddingSystem, benchmark: Benchmark, watch: Watch | None) -> EmbeddingScorer:
    """Fit an embedding system to a benchmark."""
    watch = Unwatched() if watch is None else watch
    partition = Partition.of(system, len(benchmark.graph.entities))
    # Sorted before there are weights: it needs memory for a while.
    buckets = Buckets(training_data(system, benchmark), partition, system.seed)
    place = Place(system, partition, watch)
    try:
        scorer = _Training(system, benchmark, place.store, partition, watch).run(buckets)
    except BaseException:
        place.clear()
        raise
    place.clear_after(scorer)
    return scorer


class _Training:
    """One training: weights, how far it is, and who watches."""

    def __init__(
        self, system: EmbeddingSystem, benchmark: Benchmark, store: Store, partition: Partition, watch: Watch
    ) -> None:
        self._system = system
        self._watch = watch
        self._store = store
        self._partition = partition
        self._progress = Progress()
        self._valid = self._valid_rows = None
        validation = Validation.of(benchmark, system.seed)
        if validation is not None:
            entities, self._valid = validation.compact()
            rows = partition.rows_of(entities)
            self._valid_order = np.argsort(rows)
            self._valid_rows = rows[self._valid_order]
        relations = len(benchmark.graph.relations)
        checkpoint = watch.restore()
        if checkpoint is None:
            random = generator(system.seed, "embedding", "start")
            store.begin(random)
            start = system.initial_relations(relations, random)
            self._weights = self._weights_of(start, zeros(relations, 2, start.shape[1]))
            self._best_relations = start.copy()
        else:
            self._take_up(checkpoint)
        self._crew = Crew(system, self._weights)

    @property
    def _best_counts(self) -> bool:
        """Whether the best epoch may be another one than the last."""
        return self._valid is not None and self._system.keep == "best"

    def run(self, buckets: Buckets) -> EmbeddingScorer:
        """Learn until it is enough; returns what was learned."""
        system, progress, watch = self._system, self._progress, self._watch
        while progress.epoch < system.epochs and not progress.enough(system.patience):
            watch.progress("epochs", progress.epoch, system.epochs)
            loss, rate = self._epoch(buckets)
            progress.end_epoch()
            row: dict[str, float | int] = {"epoch": progress.epoch, "loss": loss, "learning_rate": rate}
            figure = self._accuracy()
            if figure is not None:
                row["valid_accuracy"] = figure
            if progress.judge(figure) and self._best_counts:
                self._store.keep()
                np.copyto(self._best_relations, self._weights.relations)
            watch.record(row)
            self._maybe_save(within=False)
        watch.progress("epochs", progress.epoch, system.epochs)
        relations = self._best_relations if self._best_counts else self._weights.relations
        return EmbeddingScorer.of(system, self._store.result(self._best_counts), relations)

    # -- one epoch ---------------------------------------------------------------------------------

    def _epoch(self, buckets: Buckets) -> tuple[float, float]:
        """Learn from all positives once; returns their mean loss and the learning rate at the start."""
        system, progress, epoch = self._system, self._progress, self._progress.epoch
        tour = [pair for pair in self._partition.tour(system.seed, epoch) if buckets.count(pair)]
        counts = [buckets.count(pair) for pair in tour]
        batches = [math.ceil(count / system.batch) for count in counts]
        whole = sum(batches)
        steps = np.arange(epoch * whole, (epoch + 1) * whole)
        rates = system.learning_rate * (1 - steps / (system.epochs * whole))
        while progress.lesson < len(tour):
            number, first = progress.lesson, sum(batches[: progress.lesson])
            self._store.load(tour[number])
            if number + 1 < len(tour):
                self._store.expect(tour[number + 1])
            data = buckets.data(tour[number])
            name = () if self._partition.parts == 1 else (min(tour[number]), max(tour[number]))
            random = generator(system.seed, "embedding", "order", epoch, *name)
            order = random.permutation(counts[number])
            there = len(data.negatives)
            pairing = np.resize(random.permutation(there), len(order)) if there else order
            bits = np.uint64(salt(system.seed, "embedding", "negatives", epoch, *name))
            here = rates[first : first + batches[number]]
            self._learn(Lesson(data, order, pairing, bits, epoch * whole + first + 1, here), whole)
            progress.end_lesson()
            if progress.lesson < len(tour):
                self._maybe_save(within=True)
        return progress.total / sum(counts), float(rates[0])

    def _learn(self, lesson: Lesson, whole: int) -> None:
        """Learn from the batches of a lesson that are left; `whole` is how many an epoch has."""
        progress, batches = self._progress, len(lesson.rates)
        for start in range(progress.batch, batches, _BETWEEN):
            self._store.changing()
            end = min(start + _BETWEEN, batches)
            progress.total += self._crew.learn(lesson, self._weights, start, end)
            progress.batch = end
            if whole > _LONG:
                done = lesson.first_step - 1 + end
                self._watch.progress("batches", done, self._system.epochs * whole)
            if not math.isfinite(progress.total):
                raise self._ran_away(f"the loss became {progress.total}")
            if end < batches:
                self._maybe_save(within=True)
        if not (self._store.finite() and np.isfinite(self._weights.relations).all()):
            raise self._ran_away("a weight is no longer a finite number")

    def _ran_away(self, what: str) -> LogInferError:
        rate = self._system.learning_rate / 10
        return LogInferError(
            f"{what} in epoch {self._progress.epoch + 1}: training ran away",
            hint=f"try a smaller learning rate: --set learning_rate={rate:g}",
        )

    def _accuracy(self) -> float | None:
        """Return how good the weights are on valid, if there is one."""
        if self._valid is None or self._valid_rows is None:
            return None
        found = self._store.rows(self._valid_rows)
        entities = np.empty_like(found)
        entities[self._valid_order] = found
        return self._valid.accuracy(EmbeddingScorer.of(self._system, entities, self._weights.relations))

    # -- start and checkpoints ---------------------------------------------------------------------

    def _weights_of(self, relations: Floats, moments: Floats) -> Weights:
        mine, derived = apart(relations), zeros(len(relations), self._system.derived_width)
        derive_all(self._system.code, mine, derived)
        return Weights(self._store.entities, mine, derived, self._store.moments, apart(moments))

    def _take_up(self, checkpoint: Checkpoint) -> None:
        arrays, facts = checkpoint.arrays, checkpoint.facts
        if facts.get("mapped") is not None and not self._store.in_files:
            raise InputError(
                "the unfinished run kept its weights in files, not in memory",
                hint="go on with --set storage=mapped, or start over",
            )
        self._store.resume(arrays, facts.get("mapped"))
        relations, moments, self._best_relations = (
            np.array(arrays[name], dtype=np.float32, order="C")
            for name in ("relations", "relation_moments", "best_relations")
        )
        self._weights = self._weights_of(relations, moments)
        self._progress = Progress.of(facts)

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
        facts: dict[str, Any] = self._progress.facts()
        self._watch.save(Checkpoint(arrays, facts if mapped is None else {**facts, "mapped": mapped}))
        self._store.saved()
