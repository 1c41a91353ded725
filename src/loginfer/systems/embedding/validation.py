"""How good the weights of an epoch are: the accuracy on valid at the best threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import generator
from loginfer.benchmark.shortcuts import counts_from
from loginfer.benchmark.values import Benchmark
from loginfer.kg import Triples
from loginfer.systems.interface import Scorer, Scores

__all__ = ["Validation", "best_accuracy"]


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
