"""Scores; training data.

The compiled part of scoring, where every score has the same bits however it was asked for.

Unlike in training, numbers are added strictly one after the other: candidates are scored side by side, a
vector register of them at a time, and each sum goes along the dimensions. So blocks, positions in a block and
the width of the registers make no difference.

A fitted embedding system.

How good the weights of an epoch are: the accuracy on valid at the best threshold.

What a system learns from, as the kernels want it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.shortcuts import counts_from
from loginfer.errors import InputError
from loginfer.kernels import inlined, kernel
from loginfer.kg import Triples
from loginfer.randomness import generator
from loginfer.systems.embedding.base import DOT, L1, L2, MODULI, OBJECT, SUBJECT, EmbeddingSystem, Floats
from loginfer.systems.embedding.kernels import Data, Ids, Model, derive_all, make_query
from loginfer.systems.interface import Arrays, Position, Scorer, Scores

# Candidates that are scored side by side.
_TILE = 64

_ZERO = np.float32(0)
_ONE = np.float32(1)
_HALF = np.float32(0.5)


@kernel
def make_queries(
    model: Model, side: np.int32, known: Ids, relations: Ids, entities: Floats, derived: Floats, queries: Floats
) -> None:
    """Make float32[n, width], the queries of known ends and relations."""
    for i in range(len(known)):
        make_query(model.code, side, entities[known[i]], derived[relations[i]], queries[i])


@kernel
def score_pairs(model: Model, queries: Floats, candidates: Ids, entities: Floats, scores: Floats) -> None:
    """Score each query with its own candidate."""
    for i in range(len(queries)):
        query, candidate = queries[i], entities[candidates[i]]
        d = len(candidate)
        total = _ZERO
        if model.comparison == DOT:
            for j in range(d):
                total += query[j] * candidate[j]
            scores[i] = model.offset + total
            continue
        if model.comparison == L1:
            for j in range(d):
                total += abs(query[j] - candidate[j])
        elif model.comparison == L2:
            for j in range(d):
                total += _square(query[j] - candidate[j])
            total = np.sqrt(total)
        elif model.comparison == MODULI:
            for j in range(d // 2):
                total += _modulus(query[j] - candidate[j], query[d // 2 + j] - candidate[d // 2 + j])
        else:
            for j in range(d):
                box = _box(query[d + j])
                total += _to_box(abs(candidate[j] - query[j]), *box)
        scores[i] = model.offset - total


@kernel
def score_ends(model: Model, queries: Floats, candidates: Ids, entities: Floats, scores: Floats) -> None:
    """Score each query with each candidate: float32[n, c]."""
    width = entities.shape[1]
    tile = np.zeros((width, _TILE), dtype=np.float32)
    sums = np.zeros(_TILE, dtype=np.float32)
    for start in range(0, len(candidates), _TILE):
        count = min(_TILE, len(candidates) - start)
        for c in range(count):
            row = entities[candidates[start + c]]
            for j in range(width):
                tile[j, c] = row[j]
        for i in range(len(queries)):
            sums[:] = _ZERO
            _compare(model.comparison, queries[i], tile, sums)
            target = scores[i, start : start + count]
            if model.comparison == DOT:
                for c in range(count):
                    target[c] = model.offset + sums[c]
            else:
                for c in range(count):
                    target[c] = model.offset - sums[c]


@inlined
def _compare(comparison: int, query: Floats, tile: Floats, sums: Floats) -> None:
    """Add up the terms of a comparison for a tile of candidates, float32[width, _TILE]."""
    d = len(tile)
    if comparison == DOT:
        whole = d - d % 4
        for j in range(0, whole, 4):
            q0, q1, q2, q3 = query[j], query[j + 1], query[j + 2], query[j + 3]
            for c in range(_TILE):
                sums[c] = sums[c] + q0 * tile[j, c] + q1 * tile[j + 1, c] + q2 * tile[j + 2, c] + q3 * tile[j + 3, c]
        for j in range(whole, d):
            for c in range(_TILE):
                sums[c] += query[j] * tile[j, c]
    elif comparison == L1:
        whole = d - d % 4
        for j in range(0, whole, 4):
            q0, q1, q2, q3 = query[j], query[j + 1], query[j + 2], query[j + 3]
            for c in range(_TILE):
                sums[c] = (
                    sums[c]
                    + abs(q0 - tile[j, c])
                    + abs(q1 - tile[j + 1, c])
                    + abs(q2 - tile[j + 2, c])
                    + abs(q3 - tile[j + 3, c])
                )
        for j in range(whole, d):
            for c in range(_TILE):
                sums[c] += abs(query[j] - tile[j, c])
    elif comparison == L2:
        for j in range(d):
            for c in range(_TILE):
                sums[c] += _square(query[j] - tile[j, c])
        for c in range(_TILE):
            sums[c] = np.sqrt(sums[c])
    elif comparison == MODULI:
        half = d // 2
        for j in range(half):
            for c in range(_TILE):
                sums[c] += _modulus(query[j] - tile[j, c], query[half + j] - tile[half + j, c])
    else:
        for j in range(d):
            half, narrower, wider, beyond = _box(query[d + j])
            for c in range(_TILE):
                sums[c] += _to_box(abs(tile[j, c] - query[j]), half, narrower, wider, beyond)


@inlined
def _square(x: Any) -> Any:
    return x * x


@inlined
def _modulus(real: Any, imaginary: Any) -> Any:
    return np.sqrt(real * real + imaginary * imaginary)


@inlined
def _box(width: Any) -> Any:
    """Return what BoxE's distance needs of a width: its half, both slopes, and what is taken off outside."""
    wider = width + _ONE
    narrower = _ONE / wider
    half = _HALF * width
    return half, narrower, wider, half * (wider - narrower)


@inlined
def _to_box(u: Any, half: Any, narrower: Any, wider: Any, beyond: Any) -> Any:
    """Return BoxE's distance of a number from an interval, u from its centre."""
    inside, outside = u * narrower, u * wider - beyond
    return inside if u <= half else outside


# Triples whose queries are held at once.
_BLOCK = 4096


@dataclass(frozen=True)
class EmbeddingScorer:
    """The scores of an embedding model: γ minus a distance, or a product.

    Parameters
    ----------
    model
        What kernels need to know of it.
    query_width
        Numbers in a query.
    entities, relations
        Its weights: a row for each constant and type, and for each relation.
    derived
        What queries need of the relations.
    """

    model: Model
    query_width: int
    entities: Floats
    relations: Floats
    derived: Floats

    @classmethod
    def of(
        cls, system: EmbeddingSystem, entities: npt.NDArray[np.float32], relations: npt.NDArray[np.float32]
    ) -> EmbeddingScorer:
        """Return the scorer of a system with these weights."""
        parameters = _plain(relations)
        derived = np.zeros((len(parameters), system.derived_width), dtype=np.float32)
        derive_all(system.code, parameters, derived)
        return cls(Model.of(system), system.query_width, _plain(entities), parameters, derived)

    def score(self, triples: Triples) -> npt.NDArray[np.float64]:
        """Return float64[n], one score a triple of int32[n, 3]."""
        subjects, relations, objects = _columns(triples)
        return self._pairs(subjects, relations, objects).astype(np.float64)

    def score_candidates(self, triples: Triples, position: Position, candidates: npt.NDArray[np.int32]) -> Floats:
        """Return float32[n, c]: the scores of each triple with each candidate in that position."""
        subjects, relations, objects = _columns(triples)
        wanted = np.array(candidates, dtype=np.int32, order="C")
        if position == "relation":
            pairs = (np.repeat(subjects, len(wanted)), np.tile(wanted, len(subjects)))
            scores = self._pairs(*pairs, np.repeat(objects, len(wanted)))
            return scores.reshape(len(subjects), len(wanted))
        scores = np.empty((len(subjects), len(wanted)), dtype=np.float32)
        known, side = (subjects, OBJECT) if position == "object" else (objects, SUBJECT)
        score_ends(self.model, self._queries(side, known, relations), wanted, self.entities, scores)
        return scores

    def _queries(self, side: int, known: Ids, relations: Ids) -> Floats:
        queries = np.empty((len(known), self.query_width), dtype=np.float32)
        make_queries(self.model, np.int32(side), known, relations, self.entities, self.derived, queries)
        return queries

    def _pairs(self, subjects: Ids, relations: Ids, objects: Ids) -> Floats:
        """Score triples, in blocks that keep their queries small."""
        scores = np.empty(len(subjects), dtype=np.float32)
        for start in range(0, len(scores), _BLOCK):
            block = slice(start, start + _BLOCK)
            queries = self._queries(OBJECT, subjects[block], relations[block])
            score_pairs(self.model, queries, objects[block], self.entities, scores[block])
        return scores

    def arrays(self) -> Arrays:
        """Return the weights by name."""
        return {"entities": self.entities, "relations": self.relations}


def _plain(array: npt.NDArray[np.float32]) -> Floats:
    """Return an array as kernels want it, without a copy if it is so: weights may be most of the memory."""
    return np.require(array, dtype=np.float32, requirements=["C", "W"])


def _columns(triples: Triples) -> tuple[Ids, Ids, Ids]:
    rows = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
    return rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy()


@dataclass(frozen=True)
class Validation:
    """The triples of valid.

    Parameters
    ----------
    positives, negatives
        P_valid and N_valid.
    """

    positives: Triples
    negatives: Triples

    @classmethod
    def of(cls, benchmark: Benchmark, seed: int) -> Validation | None:
        """Return a benchmark's triples; None if it has none to choose by.

        For a benchmark without negatives each positive gets one with a random subject or object.
        """
        positives = benchmark.positives.valid
        if not benchmark.negatives:
            negatives = _corrupted(benchmark, seed)
        else:
            negatives = np.vstack([made.splits.valid for made in benchmark.negatives.values()])
        return cls(positives, negatives) if len(positives) and len(negatives) else None

    def compact(self) -> tuple[npt.NDArray[np.int32], Validation]:
        """Return the entities that occur, sorted, and the same triples by places among them."""
        both = np.vstack([self.positives, self.negatives])
        entities, places = np.unique(both[:, [0, 2]], return_inverse=True)
        triples = both.astype(np.int32)
        triples[:, [0, 2]] = places.reshape(-1, 2)
        cut = len(self.positives)
        return entities.astype(np.int32), Validation(triples[:cut], triples[cut:])

    def accuracy(self, scorer: Scorer) -> float:
        """Return the accuracy at the best threshold."""
        return best_accuracy(scorer.score(self.positives), scorer.score(self.negatives))


def best_accuracy(positives: Scores, negatives: Scores) -> float:
    """Return the highest accuracy that one threshold on the scores can have."""
    _, true, false = counts_from(positives.astype(np.float64), negatives.astype(np.float64))
    right = true + (len(negatives) - false)
    return float(right.max() / (len(positives) + len(negatives)))


def _corrupted(benchmark: Benchmark, seed: int) -> Triples:
    """Return the positives of valid with a random subject or object."""
    graph = benchmark.graph
    triples = benchmark.positives.valid.copy()
    random = generator(seed, "embedding", "valid")
    in_object = random.random(len(triples)) < 0.5
    others = graph.consts[random.integers(0, len(graph.consts), len(triples))]
    if graph.type_relation is not None and len(graph.types):
        of_type = in_object & (triples[:, 1] == graph.type_relation)
        others[of_type] = graph.types[random.integers(0, len(graph.types), int(of_type.sum()))]
    triples[in_object, 2] = others[in_object]
    triples[~in_object, 0] = others[~in_object]
    return triples


def training_data(system: EmbeddingSystem, benchmark: Benchmark) -> Data:
    """Return P_train, N_train and what random negatives are made of.

    Raises
    ------
    InputError
        If there is nothing to learn from.
    """
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
        negatives=np.require(negatives, dtype=np.int32, requirements=["C", "W"]),
        constants=np.array(graph.consts, dtype=np.int32),
        types=np.array(graph.types, dtype=np.int32),
        relations=np.array(graph.rels, dtype=np.int32),
        type_relation=type_relation,
    )
