"""P_train and N_train by the pair of parts that their ends lie in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import generator
from loginfer.systems.embedding.partition import Pair, Partition
from loginfer.systems.embedding.state import Data, Ids

__all__ = ["Buckets"]

Starts = npt.NDArray[np.int64]


class Buckets:
    """What can be learned while a pair of parts is in memory.

    A triple with both ends in one part goes to any of the pairs with this part, by chance. Random negatives
    are drawn from the constants of both parts.

    Parameters
    ----------
    data
        All there is to learn from, by ids of entities.
    partition
        How entities are split.
    seed
        Seed of the chance.
    """

    def __init__(self, data: Data, partition: Partition, seed: int) -> None:
        self._data = data
        self._partition = partition
        self._whole = partition.parts == 1
        if self._whole:
            return
        random = generator(seed, "embedding", "parts")
        positives, self._positive_starts = self._sorted(data.positives, random)
        negatives, self._negative_starts = self._sorted(data.negatives, random)
        constants, types = (np.sort(partition.rows_of(ids)) for ids in (data.constants, data.types))
        # By rows instead of ids.
        self._data = Data(positives, negatives, constants, types, data.relations, data.type_relation)

    def _sorted(self, triples: Ids, random: np.random.Generator) -> tuple[Ids, Starts]:
        """Return triples of rows sorted by pair, and where each pair starts."""
        parts = self._partition.parts
        rows = np.stack(
            [
                self._partition.rows_of(triples[:, 0]),
                triples[:, 1],
                self._partition.rows_of(triples[:, 2]),
            ],
            axis=1,
        )
        one, two = (rows[:, column] // self._partition.size for column in (0, 2))
        within = np.flatnonzero(one == two)
        two[within] = (one[within] + 1 + random.integers(0, parts - 1, len(within))) % parts
        pair = np.minimum(one, two) * parts + np.maximum(one, two)
        order = np.argsort(pair, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=parts * parts))])
        return rows[order], starts

    def count(self, pair: Pair) -> int:
        """Return how many positives a pair has."""
        return len(self._data.positives) if self._whole else len(self._part_of(pair, positives=True))

    def data(self, pair: Pair) -> Data:
        """Return what can be learned from a pair, by places of its rows in memory."""
        if self._whole:
            return self._data
        positives, negatives = (self._part_of(pair, positives=positives) for positives in (True, False))
        return self._data._replace(
            positives=self._placed_triples(positives, pair),
            negatives=self._placed_triples(negatives, pair),
            constants=self._pool(self._data.constants, pair),
            types=self._pool(self._data.types, pair),
        )

    def _part_of(self, pair: Pair, *, positives: bool) -> Ids:
        number = min(pair) * self._partition.parts + max(pair)
        triples = self._data.positives if positives else self._data.negatives
        starts = self._positive_starts if positives else self._negative_starts
        return triples[starts[number] : starts[number + 1]]

    def _placed_triples(self, triples: Ids, pair: Pair) -> Ids:
        placed = triples.copy()
        for column in (0, 2):
            placed[:, column] = self._placed(triples[:, column], pair)
        return placed

    def _placed(self, rows: Ids, pair: Pair) -> Ids:
        """Return the places in memory of rows that belong to a pair."""
        size = self._partition.size
        first, second = pair
        shift = np.where(rows // size == first, -first * size, (1 - second) * size)
        return (rows + shift).astype(np.int32)

    def _pool(self, rows: Ids, pair: Pair) -> Ids:
        """Return the places in memory of those of some sorted rows that belong to a pair."""
        chosen = [rows[slice(*np.searchsorted(rows, self._partition.bounds(part)))] for part in pair]
        return self._placed(np.concatenate(chosen), pair)
