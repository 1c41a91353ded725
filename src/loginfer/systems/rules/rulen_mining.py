"""RuleN at work, one head relation after the other."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import generator, salt
from loginfer.kg import KnowledgeGraph
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules.rulen_bodies import bodies_of, find_bodies
from loginfer.systems.rules.rulen_counting import HEAD_SIDE, TAIL_SIDE, count_sides
from loginfer.systems.rules.values import BOTH, LONGEST, NONE, OBJECT, SUBJECT, MinedRules, RuleTable
from loginfer.systems.rules.walks_graph import Ids, walk_graph

if TYPE_CHECKING:
    from loginfer.systems.rules.rulen import RuleN

__all__ = ["RuleNMining", "Sides"]

# Seconds between two signs of life.
_PAUSE = 0.5
# Edges to look at for the bodies of a relation and a length; some ten times what length 2 needs on FB15k-237.
_EDGES = 2**26
# Places for bodies, at most; half of them can be filled.
_PLACES = 2**20


@dataclass(frozen=True)
class Sides:
    """The two confidences of each of RuleN's rules, in the order of the rules.

    Parameters
    ----------
    head
        float64[m], the share of correct ones among the predictions of subjects, which start from objects.
        Of h(c,X) it is c's share of h's triples; it is 0 for h(X,c), which predicts no subjects.
    tail
        float64[m], that among the predictions of objects, which start from subjects. Of h(X,c) it is c's
        share of h's triples; it is 0 for h(c,X).
    """

    head: npt.NDArray[np.float64]
    tail: npt.NDArray[np.float64]


class RuleNMining:
    """A mining with RuleN that is under way (see `Mining`).

    Parameters
    ----------
    system
        The settings.
    graph
        What to mine.
    checkpoint
        Where to go on; at the start if None.
    """

    def __init__(self, system: RuleN, graph: KnowledgeGraph, checkpoint: Checkpoint | None = None) -> None:
        self._system = system
        self._graph = graph
        self._walks = walk_graph(graph)
        self._relations = [int(relation) for relation in graph.preds]
        self._stamps = np.zeros(len(graph.entities) + 1, dtype=np.int64)
        self._done = 0
        # For each relation int32[m, 3 + LONGEST]: head, variables, constant, steps of the bodies; and
        # int64[m, 2, 2]: for both sides predictions and correct ones.
        self._rows: list[Ids] = []
        self._counts: list[npt.NDArray[np.int64]] = []
        if checkpoint is not None:
            self._done = int(checkpoint.facts["relations"])
            self._rows.append(np.asarray(checkpoint.arrays["rows"], dtype=np.int32))
            self._counts.append(np.asarray(checkpoint.arrays["counts"], dtype=np.int64))

    def advance(self) -> bool:
        """Mine the rules of some relations; False if there are no more."""
        started = time.monotonic()
        while self._done < len(self._relations) and time.monotonic() - started < _PAUSE:
            self._mine(self._relations[self._done])
            self._done += 1
        return self._done < len(self._relations)

    def rules(self) -> MinedRules:
        """Return the rules of the relations so far; counts are those of the side with more confidence."""
        rows, counts, sides = self._joined()
        chosen = np.where(sides.tail > sides.head, TAIL_SIDE, HEAD_SIDE)
        table = RuleTable.of(
            head=rows[:, 0],
            variables=rows[:, 1],
            head_constant=rows[:, 2],
            body=rows[:, 3:],
            predictions=counts[np.arange(len(rows)), chosen, 0],
            correct=counts[np.arange(len(rows)), chosen, 1],
            confidence=np.maximum(sides.head, sides.tail),
        )
        return MinedRules(table)

    def sides(self) -> Sides:
        """Return both confidences of each of the rules so far."""
        return self._joined()[2]

    def progress(self) -> tuple[str, int, int | None]:
        """Return how many relations are done."""
        return "relations", self._done, len(self._relations)

    def checkpoint(self) -> Checkpoint:
        """Return the rules of the relations so far."""
        rows, counts, _ = self._joined()
        return Checkpoint({"rows": rows, "counts": counts}, {"relations": self._done})

    def _joined(self) -> tuple[Ids, npt.NDArray[np.int64], Sides]:
        rows = np.concatenate([np.empty((0, 3 + LONGEST), dtype=np.int32), *self._rows])
        counts = np.concatenate([np.empty((0, 2, 2), dtype=np.int64), *self._counts])
        return rows, counts, _confidences(counts)

    # -- one relation ---------------------------------------------------------------------------

    def _mine(self, relation: int) -> None:
        triples = self._graph.triples[self._graph.triples[:, 1] == relation]
        self._keep(*self._constants(relation, triples))
        if relation == self._graph.type_relation:
            return
        for length in range(1, self._system.max_length + 1):
            bodies = self._most_frequent(relation, triples, length)
            counts = np.zeros((len(bodies), 2, 2), dtype=np.int64)
            shuffled = self._system.order == "shuffled"
            random = self._random("pairs", relation, length)
            self._stamps[:] = 0
            count_sides(
                self._walks, relation, bodies, self._system.s2, shuffled, random, self._stamps, counts
            )
            rows = np.full((len(bodies), 3 + LONGEST), NONE, dtype=np.int32)
            rows[:, 0], rows[:, 1], rows[:, 3:] = relation, BOTH, bodies
            self._keep(rows, counts)

    def _keep(self, rows: Ids, counts: npt.NDArray[np.int64]) -> None:
        """Keep the rules that are good enough."""
        sides = _confidences(counts)
        good = counts[:, :, 1].max(axis=1, initial=0) >= self._system.min_support
        good &= np.maximum(sides.head, sides.tail) >= self._system.min_confidence
        self._rows.append(rows[good])
        self._counts.append(counts[good])

    def _constants(self, relation: int, triples: Ids) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Return h(X,c) and h(c,X) for all constants; a type is none that X could be."""
        parts, counted = [], []
        for variables, column, side in ((SUBJECT, 2, TAIL_SIDE), (OBJECT, 0, HEAD_SIDE)):
            if variables == OBJECT and relation == self._graph.type_relation:
                continue
            constants, sizes = np.unique(triples[:, column], return_counts=True)
            rows = np.full((len(constants), 3 + LONGEST), NONE, dtype=np.int32)
            rows[:, 0], rows[:, 1], rows[:, 2] = relation, variables, constants
            counts = np.zeros((len(constants), 2, 2), dtype=np.int64)
            counts[:, side, 0], counts[:, side, 1] = len(triples), sizes
            parts.append(rows)
            counted.append(counts)
        return np.concatenate(parts), np.concatenate(counted)

    def _most_frequent(self, relation: int, triples: Ids, length: int) -> Ids:
        """Return int32[m, LONGEST], the bodies of a length that explain most of the first triples."""
        pairs = triples[triples[:, 0] != triples[:, 2]][:, [0, 2]]
        if self._system.order == "shuffled":
            pairs = pairs[generator(self._system.seed, "rulen", "triples", relation).permutation(len(pairs))]
        pairs = np.ascontiguousarray(pairs[: self._system.s1])
        steps = 2 * len(self._graph.relations)
        found = bodies_of(min(_PLACES, 4 << int(steps**length).bit_length()))
        edges = _EDGES // max(1, len(pairs))
        random = self._random("paths", relation, length)
        find_bodies(self._walks, relation, pairs, length, edges, random, found)
        used = np.flatnonzero(found.keys != NONE)
        keys, explained = found.keys[used], found.triples[used]
        best = keys[np.lexsort((keys, -explained))[: self._system.s1]]
        bodies = np.full((len(best), LONGEST), NONE, dtype=np.int32)
        for place in range(length - 1, -1, -1):
            best, bodies[:, place] = np.divmod(best, steps)
        return bodies

    def _random(self, *stage: object) -> npt.NDArray[np.uint64]:
        return np.array([salt(self._system.seed, "rulen", *stage), 0], dtype=np.uint64)


def _confidences(counts: npt.NDArray[np.int64]) -> Sides:
    share = counts[:, :, 1] / np.maximum(counts[:, :, 0], 1)
    return Sides(share[:, HEAD_SIDE], share[:, TAIL_SIDE])
