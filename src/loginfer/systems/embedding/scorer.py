"""A fitted embedding system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.kg import Triples
from loginfer.systems.embedding.codes import OBJECT, SUBJECT
from loginfer.systems.embedding.kernels import derive_all
from loginfer.systems.embedding.scoring import make_queries, score_ends, score_pairs
from loginfer.systems.embedding.state import Ids, Model
from loginfer.systems.embedding.system import EmbeddingSystem, Floats
from loginfer.systems.interface import Arrays, Position

__all__ = ["EmbeddingScorer"]

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

    def score_candidates(
        self, triples: Triples, position: Position, candidates: npt.NDArray[np.int32]
    ) -> Floats:
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
