"""The training loop: epochs, the choice among them on valid, checkpoints."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import generator, salt
from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError, LogInferError
from loginfer.systems.embedding.kernels import derive_all
from loginfer.systems.embedding.scorer import EmbeddingScorer
from loginfer.systems.embedding.state import Data, Loss, Model, Weights, Workspace
from loginfer.systems.embedding.steps import run_batches
from loginfer.systems.embedding.system import EmbeddingSystem, Floats
from loginfer.systems.embedding.validation import Validation
from loginfer.systems.interface import Arrays, Checkpoint, Unwatched, Watch

__all__ = ["train"]

# So many batches are learned from between two signs of life.
_BETWEEN = 128


@dataclass
class _Progress:
    """What is known after some epochs: the next one, and the best on valid.

    Parameters
    ----------
    epoch
        How many are done.
    best
        The best figure on valid; NaN before the first.
    best_epoch
        The last epoch that reached it, counted from 1.
    stale
        Epochs since it was improved.
    entities, relations
        The weights of that epoch.
    """

    epoch: int
    best: float
    best_epoch: int
    stale: int
    entities: Floats
    relations: Floats


def train(system: EmbeddingSystem, benchmark: Benchmark, watch: Watch | None) -> EmbeddingScorer:
    """Fit an embedding system to a benchmark."""
    watch = Unwatched() if watch is None else watch
    data = _data(system, benchmark)
    validation = Validation.of(benchmark, system.seed)
    weights, progress = _start(system, benchmark, watch.restore())
    workspaces = [Workspace.of(system, weights) for _ in range(system.workers)]
    while progress.epoch < system.epochs and not _enough(system, progress):
        watch.progress("epochs", progress.epoch, system.epochs)
        loss, rate = _epoch(system, data, weights, workspaces, progress.epoch)
        progress.epoch += 1
        row: dict[str, float | int] = {"epoch": progress.epoch, "loss": loss, "learning_rate": rate}
        if validation is None:
            _take(progress, weights)
        else:
            figure = validation.accuracy(_scorer(system, weights))
            row["valid_accuracy"] = figure
            _compare(system, progress, weights, figure)
        watch.record(row)
        if watch.due():
            watch.save(_checkpoint(weights, progress))
    watch.progress("epochs", progress.epoch, system.epochs)
    return EmbeddingScorer.of(system, progress.entities, progress.relations)


def _data(system: EmbeddingSystem, benchmark: Benchmark) -> Data:
    graph = benchmark.graph
    if not len(graph):
        raise InputError(f"{benchmark.name} has no training triples to learn from")
    negatives = np.empty((0, 3), dtype=np.int32)
    if system.mode != "random":
        made = [found.splits.train for found in benchmark.negatives.values()]
        negatives = np.vstack([negatives, *made])
        if not len(negatives):
            raise InputError(
                f"{benchmark.name} has no negative training triples, and mode `{system.mode}` needs them",
                hint="train with random negatives only: --mode random",
            )
    type_relation = -1 if graph.type_relation is None else graph.type_relation
    return Data(
        positives=np.array(benchmark.positives.train, dtype=np.int32, order="C"),
        negatives=np.array(negatives, dtype=np.int32, order="C"),
        constants=np.array(graph.consts, dtype=np.int32),
        types=np.array(graph.types, dtype=np.int32),
        relations=np.array(graph.rels, dtype=np.int32),
        type_relation=type_relation,
    )


# -- one epoch -----------------------------------------------------------------------------------


def _epoch(
    system: EmbeddingSystem, data: Data, weights: Weights, workspaces: list[Workspace], epoch: int
) -> tuple[float, float]:
    """Learn from all positives once; returns their mean loss and the learning rate at the start."""
    count = len(data.positives)
    batches = math.ceil(count / system.batch)
    first = epoch * batches
    rates = system.learning_rate * (1 - np.arange(first, first + batches) / (system.epochs * batches))
    random = generator(system.seed, "embedding", "order", epoch)
    order = random.permutation(count)
    pairing = np.resize(random.permutation(len(data.negatives)), count) if len(data.negatives) else order
    bits = np.uint64(salt(system.seed, "embedding", "negatives", epoch))

    def work(chosen: npt.NDArray[np.int64], workspace: Workspace) -> float:
        return run_batches(
            Model.of(system),
            Loss.of(system),
            weights,
            data,
            workspace,
            order,
            pairing,
            bits,
            system.batch,
            chosen,
            first + 1,
            rates,
        )

    total = 0.0
    for start in range(0, batches, _BETWEEN):
        chosen = np.arange(start, min(start + _BETWEEN, batches))
        total += _in_parallel(work, chosen, workspaces)
        if not math.isfinite(total):
            raise _ran_away(system, epoch, f"the loss became {total}")
    if not (np.isfinite(weights.entities).all() and np.isfinite(weights.relations).all()):
        raise _ran_away(system, epoch, "a weight is no longer a finite number")
    return total / count, float(rates[0])


def _ran_away(system: EmbeddingSystem, epoch: int, what: str) -> LogInferError:
    return LogInferError(
        f"{what} in epoch {epoch + 1}: training ran away",
        hint=f"try a smaller learning rate: --set learning_rate={system.learning_rate / 10:g}",
    )


def _in_parallel(work: Any, batches: npt.NDArray[np.int64], workspaces: list[Workspace]) -> float:
    """Share batches among workers, who all write to the same weights without waiting for one another."""
    workers = len(workspaces)
    if workers == 1:
        return float(work(batches, workspaces[0]))
    with ThreadPoolExecutor(workers) as pool:
        shares = [batches[i::workers].copy() for i in range(workers)]
        return float(sum(pool.map(work, shares, workspaces)))


# -- the choice of the epoch ---------------------------------------------------------------------


def _compare(system: EmbeddingSystem, progress: _Progress, weights: Weights, figure: float) -> None:
    """Keep an epoch's weights if none was better; among equals the last one has learned most."""
    better = not figure <= progress.best
    progress.stale = 0 if better else progress.stale + 1
    if system.keep == "last" or not figure < progress.best:
        _take(progress, weights)
    if better:
        progress.best = figure


def _take(progress: _Progress, weights: Weights) -> None:
    progress.best_epoch = progress.epoch
    np.copyto(progress.entities, weights.entities)
    np.copyto(progress.relations, weights.relations)


def _enough(system: EmbeddingSystem, progress: _Progress) -> bool:
    return 0 < system.patience <= progress.stale


# -- start and checkpoints -----------------------------------------------------------------------


def _start(
    system: EmbeddingSystem, benchmark: Benchmark, checkpoint: Checkpoint | None
) -> tuple[Weights, _Progress]:
    """Draw the weights, or take them from a checkpoint."""
    if checkpoint is not None:
        arrays, facts = checkpoint.arrays, checkpoint.facts
        weights = _weights(system, arrays)
        best = float("nan") if facts["best"] is None else float(facts["best"])
        known = (int(facts["epoch"]), best, int(facts["best_epoch"]), int(facts["stale"]))
        return weights, _Progress(
            *known, np.array(arrays["best_entities"]), np.array(arrays["best_relations"])
        )
    graph = benchmark.graph
    random = generator(system.seed, "embedding", "start")
    entities = system.initial_entities(len(graph.entities), random)
    relations = system.initial_relations(len(graph.relations), random)
    weights = _weights(
        system,
        {
            "entities": entities,
            "relations": relations,
            "entity_moments": np.zeros((len(entities), 2, entities.shape[1]), dtype=np.float32),
            "relation_moments": np.zeros((len(relations), 2, relations.shape[1]), dtype=np.float32),
        },
    )
    return weights, _Progress(0, float("nan"), 0, 0, entities.copy(), relations.copy())


def _weights(system: EmbeddingSystem, arrays: Arrays) -> Weights:
    relations = np.array(arrays["relations"], dtype=np.float32, order="C")
    derived = np.zeros((len(relations), system.derived_width), dtype=np.float32)
    derive_all(system.code, relations, derived)
    return Weights(
        np.array(arrays["entities"], dtype=np.float32, order="C"),
        relations,
        derived,
        np.array(arrays["entity_moments"], dtype=np.float32, order="C"),
        np.array(arrays["relation_moments"], dtype=np.float32, order="C"),
    )


def _checkpoint(weights: Weights, progress: _Progress) -> Checkpoint:
    arrays = {
        "entities": weights.entities,
        "relations": weights.relations,
        "entity_moments": weights.entity_moments,
        "relation_moments": weights.relation_moments,
        "best_entities": progress.entities,
        "best_relations": progress.relations,
    }
    facts = {
        "epoch": progress.epoch,
        "best": None if math.isnan(progress.best) else progress.best,
        "best_epoch": progress.best_epoch,
        "stale": progress.stale,
    }
    return Checkpoint(arrays, facts)


def _scorer(system: EmbeddingSystem, weights: Weights) -> EmbeddingScorer:
    return EmbeddingScorer(Model.of(system), system.query_width, *weights[:3])
