"""What a training step asks, and how it is learned from.

A positive is learned from twice in an epoch: once its object is asked for, once its subject. Positives that answer
the same query, such as (s, R, o₁) and (s, R, o₂), are learned together: the query is compared with the candidates
of the step once. The candidates are random constants (types, where a type is asked for), and all queries of a step
share them, so that they are compared with them as a matrix product goes: tile by tile.

A step is a series of passes, in each of which workers share rows and then wait for each other. Nothing that a pass
writes depends on who works on which rows, and every sum has its order: the result has the bits of one worker.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from loginfer.randomness import generator, salt
from loginfer.systems.embedding.base import OBJECT, SUBJECT, TILE, EmbeddingSystem, Floats
from loginfer.systems.embedding.kernels import (
    FIRST,
    SECOND,
    TINY,
    Gradients,
    Ids,
    Loss,
    Order,
    TrainingStep,
    Weights,
    Work,
    training_kernels,
    weigh_queries,
    zeros,
)
from loginfer.systems.embedding.scorer import directed

# Right answers of one query that are learned together, at most: the rest are another query.
_ANSWERS = 64

# Into how many shards candidates are cut, at most, each of which is one worker's.
_SHARDS = 8


class Data(NamedTuple):
    """What is learned from.

    Parameters
    ----------
    positives, negatives
        int32[n, 3], P_train and N_train; without explicit negatives the latter is empty.
    constants, types, relations
        Ids to choose from for random negatives, ascending.
    type_relation
        The id of the type predicate; -1 for none.
    """

    positives: Ids
    negatives: Ids
    constants: Ids
    types: Ids
    relations: Ids
    type_relation: int


# -- what is asked ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainingQueries:
    """Queries that lack the same end, with their right answers in P_train.

    Parameters
    ----------
    side
        The end that they lack.
    anchors, relations
        int32[n], what each is made of.
    starts, answers
        int64[n + 1], int32[m]: the answers of query i are answers[starts[i]:starts[i + 1]].
    pool
        Whom candidates are drawn from.
    """

    side: int
    anchors: Ids
    relations: Ids
    starts: Order
    answers: Ids
    pool: Ids

    @classmethod
    def of(cls, side: int, triples: Ids, pool: Ids) -> TrainingQueries:
        """Group triples by what is known of them."""
        known, lacking = (0, 2) if side == OBJECT else (2, 0)
        triples = triples[np.lexsort((triples[:, lacking], triples[:, known], triples[:, 1]))]
        new = np.ones(len(triples), dtype=bool)
        new[1:] = (triples[1:, [known, 1]] != triples[:-1, [known, 1]]).any(axis=1)
        place = np.arange(len(triples)) - np.flatnonzero(new)[np.cumsum(new) - 1]
        starts = np.flatnonzero(place % _ANSWERS == 0)
        anchors, relations = triples[starts, known], triples[starts, 1]
        return cls(side, anchors, relations, np.append(starts, len(triples)), triples[:, lacking].copy(), pool)


def training_queries(data: Data) -> list[TrainingQueries]:
    """Return what is asked of P_train: for objects, subjects and types."""
    of_types = data.positives[:, 1] == data.type_relation
    kinds = (
        (OBJECT, data.positives[~of_types], data.constants),
        (SUBJECT, data.positives, data.constants),
        (OBJECT, data.positives[of_types], data.types),
    )
    return [TrainingQueries.of(*kind) for kind in kinds if len(kind[1])]


@dataclass(frozen=True)
class Lesson:
    """Queries of a step, by indices, and how many positives were asked for before them."""

    kind: TrainingQueries
    queries: Order
    before: int


def lessons(kinds: list[TrainingQueries], size: int, random: np.random.Generator) -> list[Lesson]:
    """Put all queries in random order, and as many into a step as have so many answers."""
    parts: list[tuple[TrainingQueries, Order, int]] = []
    for kind in kinds:
        order = random.permutation(len(kind.anchors))
        counts = np.diff(kind.starts)[order]
        number = (np.cumsum(counts) - counts) // size
        cuts = np.flatnonzero(np.diff(number)) + 1
        sums = np.add.reduceat(counts, np.append(0, cuts))
        parts += [(kind, *part) for part in zip(np.split(order, cuts), sums.tolist(), strict=True)]
    planned, before = [], 0
    for i in random.permutation(len(parts)).tolist():
        kind, queries, count = parts[i]
        planned.append(Lesson(kind, queries, before))
        before += count
    return planned


class Teacher:
    """Makes steps of lessons: draws candidates, and pairs that are wrong.

    Parameters
    ----------
    system
        The settings.
    data
        What is learned from.
    pairing
        int64[e], the order in which explicit negatives are gone through.
    place
        Says where in memory the rows of entities are.
    """

    def __init__(self, system: EmbeddingSystem, data: Data, pairing: Order, place: Callable[[Ids], Ids]) -> None:
        self._system = system
        self._data = data
        self._pairing = pairing
        self._place = place

    def step(self, lesson: Lesson, *stage: object) -> TrainingStep:
        """Return the step of a lesson; the stage decides what is drawn."""
        system, kind = self._system, lesson.kind
        random = generator(system.seed, "embedding", *stage)
        first, counts = kind.starts[lesson.queries], np.diff(kind.starts)[lesson.queries]
        starts = np.append(0, np.cumsum(counts))
        targets = kind.answers[np.repeat(first - starts[:-1], counts) + np.arange(starts[-1])]
        anchors, relations = kind.anchors[lesson.queries], kind.relations[lesson.queries]
        asked = np.column_stack([np.repeat(anchors, counts), np.repeat(relations, counts), targets])
        candidates = np.empty(0, dtype=np.int32)
        if system.mode != "explicit":
            candidates = self._candidates(kind.pool, random)
        places = np.column_stack([np.searchsorted(candidates, targets, side) for side in ("left", "right")])
        pairs, weights = self._pairs(kind.side, asked, lesson.before, random)
        side, rows = directed(system, kind.side, np.append(relations, pairs[:, 1]))
        return TrainingStep(
            side=side,
            salt=np.uint64(salt(system.seed, "embedding", "dropout", *stage)),
            anchors=self._place(np.append(anchors, pairs[:, 0])),
            relations=rows,
            starts=np.append(starts, starts[-1] + 1 + np.arange(len(pairs))),
            targets=self._place(np.append(targets, pairs[:, 2])),
            weights=weights,
            candidates=self._place(np.resize(candidates, -(-len(candidates) // TILE) * TILE)),
            drawn=len(candidates),
            places=places,
        )

    def _candidates(self, pool: Ids, random: np.random.Generator) -> Ids:
        """Draw candidates that all queries of a step share, ascending; all if there are no more."""
        if self._system.loss == "1vsall" or self._system.negatives >= len(pool):
            return pool
        return np.sort(pool[random.integers(0, len(pool), self._system.negatives)])

    def _pairs(self, side: int, asked: Ids, before: int, random: np.random.Generator) -> tuple[Ids, Floats]:
        """Return what is wrong for sure or nearly so, as anchors, relations and answers; and weights.

        Those of what was asked come first: a right answer by itself counts as much as what is wrong beside it.
        """
        system, data = self._system, self._data
        own = np.zeros(len(asked), dtype=np.float32)
        pairs, weights = [np.empty((0, 3), dtype=np.int32)], [own]
        if len(self._pairing):
            places = np.arange(before, before + len(asked)) % len(self._pairing)
            explicit = data.negatives[self._pairing[places]]
            pairs.append(explicit if side == OBJECT else explicit[:, ::-1])
            weights.append(np.full(len(asked), system.explicit_weight, dtype=np.float32))
            own += weights[-1]
        if system.relation_weight and len(data.relations) > 1 and system.mode != "explicit":
            untyped = asked[:, 1] != data.type_relation
            other = asked[untyped].copy()
            drawn = random.integers(0, len(data.relations) - 1, len(other))
            places = np.searchsorted(data.relations, other[:, 1])
            other[:, 1] = data.relations[drawn + (drawn >= places)]
            pairs.append(other)
            weights.append(np.full(len(other), system.relation_weight, dtype=np.float32))
            own[untyped] += weights[-1]
        if not system.softmax:
            own[:] = 1
        return np.vstack(pairs), np.concatenate(weights)


# -- how it is learned -----------------------------------------------------------------------------


@np.errstate(over="ignore", invalid="ignore")  # training that runs away is noticed by its loss
def _score_products(first: int, last: int, rows: Floats, work: Work) -> None:
    """Score the candidates of some shards by a matrix product."""
    for shard in range(first, last):
        part = _shard(shard, work)
        np.matmul(work.queries[: len(work.scores)], rows[part].T, out=work.scores[:, part])


@np.errstate(over="ignore", invalid="ignore")
def _backward_products(first: int, last: int, rows: Floats, work: Work) -> None:
    """Set gradients of the candidates in some shards, and what these add to those of queries."""
    gradients = work.g_entities[len(work.g_entities) - len(rows) :]
    for shard in range(first, last):
        part = _shard(shard, work)
        np.matmul(work.scores[:, part].T, work.queries[: len(work.scores)], out=gradients[part])
        np.matmul(work.scores[:, part], rows[part], out=work.g_parts[shard])


def _shard(shard: int, work: Work) -> slice:
    """Return the candidates of a shard."""
    tiles, shards = len(work.tiles) // TILE, len(work.g_parts)
    return slice(tiles * shard // shards * TILE, tiles * (shard + 1) // shards * TILE)


class Learner:
    """Takes steps.

    Parameters
    ----------
    system
        The settings.
    weights
        What is learned.
    """

    def __init__(self, system: EmbeddingSystem, weights: Weights) -> None:
        self._weights = weights
        self._loss = Loss.of(system)
        self._kernels = training_kernels(system.functions)
        self._products = system.functions.backward_tile is None
        self._widths = system.query_width, system.entity_width, system.derived_width
        self._workers = system.workers
        self._pool = ThreadPoolExecutor(system.workers) if system.workers > 1 else None
        self._space: dict[str, Floats] = {}
        self._g_relations = zeros(*weights.relations.shape)

    def learn(self, step: TrainingStep, rate: float, number: int) -> float:
        """Take a step, counted from 1; returns the sum of the losses."""
        kernels, loss, weights, work = self._kernels, self._loss, self._weights, self._work(step)
        given = (loss, weights, step, work)
        shards = len(work.g_parts)
        self._share(len(step.anchors), kernels.make_queries, *given)
        if self._products:
            rows = weights.entities.take(step.candidates, axis=0, out=work.tiles, mode="clip")
            self._share(shards, _score_products, rows, work)
        else:
            self._share(len(work.tiles), kernels.score_tiles, *given)
        self._share(len(step.anchors), weigh_queries, *given)
        if self._products:
            self._share(shards, _backward_products, rows, work)
        else:
            self._share(shards, kernels.backward_tiles, *given)
        self._share(len(step.anchors), kernels.backward_queries, *given)
        self._update(step, work, rate, number)
        return float(work.losses.sum(dtype=np.float64))

    def close(self) -> None:
        """Let the workers go."""
        if self._pool is not None:
            self._pool.shutdown()

    def _share(self, count: int, task: Callable[..., None], *arguments: Any) -> None:
        """Let workers do a task for rows 0 to count, and wait for them."""
        if self._pool is None:
            task(0, count, *arguments)
            return
        bounds = [count * i // self._workers for i in range(self._workers + 1)]
        shares = [self._pool.submit(task, *part, *arguments) for part in pairwise(bounds)]
        wait(shares)
        for share in shares:
            share.result()

    def _update(self, step: TrainingStep, work: Work, rate: float, number: int) -> None:
        """Take the optimiser's step."""
        queries = len(work.scores)
        counts = np.diff(step.starts).astype(np.float32)
        counts[queries:] = 0
        of_targets = np.zeros(len(step.targets) + len(step.candidates), dtype=np.float32)
        positives = int(step.starts[queries])
        of_targets[:positives] = 1
        owners = np.concatenate([step.anchors, step.targets, step.candidates])
        tiny = TINY
        if self._weights.entity_moments.shape[1] == 2:  # the bias of Adam's moments
            correction = float(np.sqrt(1 - SECOND**number))
            rate, tiny = rate * correction / (1 - FIRST**number), tiny * correction
        sizes = (np.float32(1 / positives), np.float32(rate), np.float32(tiny))
        entities = Gradients.of(owners, np.append(counts, of_targets))
        relations = Gradients.of(step.relations, counts)
        for gradients, update in (
            (entities, self._kernels.update_entities),
            (relations, self._kernels.update_relations),
        ):
            self._share(len(gradients.ids), update, self._loss, self._weights, gradients, work, *sizes)

    def _work(self, step: TrainingStep) -> Work:
        """Return space for a step, the same as for the last one if there is enough."""
        query, entity, derived = self._widths
        everything, targets, candidates = len(step.anchors), len(step.targets), len(step.candidates)
        queries, tiles = everything - step.pairs, candidates // TILE
        shards = min(_SHARDS, tiles)
        return Work(
            queries=self._array("queries", everything, query),
            g_queries=self._array("g_queries", everything, query),
            g_parts=self._array("g_parts", shards, queries, query),
            scores=self._array("scores", queries, candidates),
            target_scores=self._array("target_scores", targets),
            comparisons=self._array("comparisons", targets),
            losses=self._array("losses", everything),
            tiles=self._array("tiles", candidates, entity)
            if self._products
            else self._array("tiles", tiles, entity, TILE),
            g_tiles=self._array("g_tiles", 0 if self._products else tiles, entity, TILE),
            sums=self._array("sums", shards, TILE),
            g_entities=self._array("g_entities", everything + targets + candidates, entity),
            g_derived=self._array("g_derived", everything, derived),
            g_relations=self._g_relations,
        )

    def _array(self, name: str, *shape: int) -> Floats:
        """Return an array whose numbers are whatever was there."""
        size = int(np.prod(shape))
        if name not in self._space or len(self._space[name]) < size:
            self._space[name] = zeros(size)
        return self._space[name][:size].reshape(shape)
