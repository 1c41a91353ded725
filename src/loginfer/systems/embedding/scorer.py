"""A fitted embedding system: every score has the same bits, however it was asked for.

Unlike in training, numbers are added strictly one after the other: candidates are scored side by side, a
vector register of them at a time, and each sum goes along the dimensions. So blocks, positions in a block and
the width of the registers make no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.kernels import inlined, kernel
from loginfer.kg import Triples
from loginfer.systems.embedding.base import OBJECT, SUBJECT, TILE, EmbeddingSystem, Floats, ModelFunctions
from loginfer.systems.embedding.kernels import Ids, compare, compare_tile, make_query, specialise, training_kernels
from loginfer.systems.interface import Arrays, Position

# Triples whose queries are held at once.
_BLOCK = 4096

_ZERO = np.float32(0)


@dataclass(frozen=True)
class EmbeddingScorer:
    """The scores of an embedding model: γ minus a distance, or a product.

    Parameters
    ----------
    system
        Its settings.
    entities, relations
        Its weights: a row for each constant and type, and for each relation.
    derived
        What queries need of the relations.
    """

    system: EmbeddingSystem
    entities: Floats
    relations: Floats
    derived: Floats

    @classmethod
    def of(cls, system: EmbeddingSystem, entities: npt.NDArray[Any], relations: npt.NDArray[Any]) -> EmbeddingScorer:
        """Return the scorer of a system with these weights."""
        parameters = _plain(relations)
        derived = np.zeros((len(parameters), system.derived_width), dtype=np.float32)
        training_kernels(system.functions).derive_all(parameters, derived)
        return cls(system, _plain(entities), parameters, derived)

    def score(self, triples: Triples) -> npt.NDArray[np.float64]:
        """Return float64[n], one score a triple of int32[n, 3]."""
        return self._pairs(*_columns(triples)).astype(np.float64)

    def score_candidates(self, triples: Triples, position: Position, candidates: npt.NDArray[np.int32]) -> Floats:
        """Return float32[n, c]: the scores of each triple with each candidate in that position."""
        subjects, relations, objects = _columns(triples)
        ids = np.array(candidates, dtype=np.int32, order="C")
        if position == "relation":
            count, every = len(ids), np.tile(ids, len(subjects))
            scores = self._pairs(np.repeat(subjects, count), every, np.repeat(objects, count))
            return scores.reshape(len(subjects), count)
        scores = np.empty((len(subjects), len(ids)), dtype=np.float32)
        anchors, side = (subjects, OBJECT) if position == "object" else (objects, SUBJECT)
        self._kernels.score_ends(self._offset, self._queries(side, anchors, relations), ids, self.entities, scores)
        return scores

    def arrays(self) -> Arrays:
        """Return the weights by name."""
        return {"entities": self.entities, "relations": self.relations}

    @property
    def _kernels(self) -> SimpleNamespace:
        return _scoring_kernels(self.system.functions)

    @property
    def _offset(self) -> np.float32:
        return np.float32(self.system.offset)

    def _queries(self, side: int, anchors: Ids, relations: Ids) -> Floats:
        queries = np.empty((len(anchors), self.system.query_width), dtype=np.float32)
        side, relations = directed(self.system, side, relations)
        self._kernels.make_queries(np.int32(side), anchors, relations, self.entities, self.derived, queries)
        return queries

    def _pairs(self, subjects: Ids, relations: Ids, objects: Ids) -> Floats:
        """Score triples, in blocks that keep their queries small; in both directions where they differ."""
        scores = np.empty((self.system.directions, len(subjects)), dtype=np.float32)
        for side, anchors, others in ((OBJECT, subjects, objects), (SUBJECT, objects, subjects))[: len(scores)]:
            for start in range(0, len(subjects), _BLOCK):
                block = slice(start, start + _BLOCK)
                queries = self._queries(side, anchors[block], relations[block])
                self._kernels.score_pairs(self._offset, queries, others[block], self.entities, scores[side, block])
        mean: Floats = scores.mean(axis=0, dtype=np.float32)
        return mean


def directed(system: EmbeddingSystem, side: int, relations: Ids) -> tuple[int, Ids]:
    """Return the side of queries and the rows of their relations: reciprocal ones turn all queries one way."""
    return (side, relations) if system.directions == 1 else (OBJECT, relations * np.int32(2) + np.int32(side))


def _plain(array: npt.NDArray[Any]) -> Floats:
    """Return an array as kernels want it, without a copy if it is so: weights may be most of the memory."""
    return np.require(array, dtype=np.float32, requirements=["C", "W"])


def _columns(triples: Triples) -> tuple[Ids, Ids, Ids]:
    rows = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
    return rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy()


# -- templates of kernels, of which each model has its copies ----------------------------------------


def make_queries(
    side: np.int32, anchors: Ids, relations: Ids, entities: Floats, derived: Floats, queries: Floats
) -> None:
    """Make float32[n, width], the queries of known ends and relations."""
    for i in range(len(anchors)):
        make_query(side, entities[anchors[i]], derived[relations[i]], queries[i])


def score_pairs(offset: Any, queries: Floats, candidates: Ids, entities: Floats, scores: Floats) -> None:
    """Score each query with its own candidate."""
    for i in range(len(queries)):
        scores[i] = offset + compare(queries[i], entities[candidates[i]])


def score_ends(offset: Any, queries: Floats, candidates: Ids, entities: Floats, scores: Floats) -> None:
    """Score each query with each candidate: float32[n, c]."""
    width = entities.shape[1]
    tile = np.zeros((width, TILE), dtype=np.float32)
    sums = np.zeros(TILE, dtype=np.float32)
    for start in range(0, len(candidates), TILE):
        count = min(TILE, len(candidates) - start)
        for c in range(count):
            row = entities[candidates[start + c]]
            for j in range(width):
                tile[j, c] = row[j]
        for i in range(len(queries)):
            sums[:] = _ZERO
            compare_tile(queries[i], tile, sums)
            target = scores[i, start : start + count]
            for c in range(count):
                target[c] = offset + sums[c]


@cache
def _scoring_kernels(functions: ModelFunctions) -> SimpleNamespace:
    names = {
        "make_query": training_kernels(functions).make_query,
        "compare": inlined(functions.compare),
        "compare_tile": inlined(functions.compare_tile),
    }
    return specialise(names, functions, (kernel, make_queries), (kernel, score_pairs), (kernel, score_ends))
