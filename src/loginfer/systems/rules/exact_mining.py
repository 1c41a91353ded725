"""Exact mining, piece by piece: length 1 at once, length 2 head by head, then length 3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.kg import KnowledgeGraph
from loginfer.kg.index import FORWARD, INVERSE, RelationIndex
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules.values import MinedRules, RuleTable

if TYPE_CHECKING:
    from loginfer.systems.rules.exact import Exact

__all__ = ["ExactMining", "PathIndex", "enough", "most_predictions", "rules_of"]

Ints: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PathIndex:
    """What paths may go along: the triples of a graph without loops and without types.

    Parameters
    ----------
    relations
        The pairs of each relation.
    directed
        How many directed relations there are, 2 for each relation.
    """

    relations: RelationIndex
    directed: int

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> PathIndex:
        """Index a graph."""
        triples = graph.triples
        kept = triples[:, 0] != triples[:, 2]
        if graph.type_relation is not None:
            kept &= triples[:, 1] != graph.type_relation
        index = RelationIndex(triples[kept], len(graph.entities), len(graph.relations))
        return cls(index, 2 * len(graph.relations))

    @cached_property
    def sources(self) -> Ints:
        """int32[2n], where the edges start that lead to `targets`."""
        return np.concatenate([self.relations.subjects, self.relations.inverse_objects])

    @property
    def targets(self) -> Ints:
        """int32[2n], the edges' ends; each directed relation's stand together, by source, then target."""
        return self.relations.columns

    @cached_property
    def spans(self) -> Longs:
        """int64[directed, 2], where the edges of a directed relation begin and end."""
        spans = np.empty((self.directed, 2), dtype=np.int64)
        for direction in (FORWARD, INVERSE):
            spans[direction::2, 0] = self.relations.offsets[:-1] + direction * self.relations.size
            spans[direction::2, 1] = self.relations.offsets[1:] + direction * self.relations.size
        return spans

    @cached_property
    def adjacency(self) -> tuple[Longs, Ints, Ints]:
        """For each entity its neighbours, ascending, and the directed relation that leads to each.

        int64[entities + 1] where an entity's neighbours start, int32[2n] neighbours, int32[2n] relations.
        """
        entities = self.relations.entities
        steps = np.repeat(np.arange(self.directed), self.spans[:, 1] - self.spans[:, 0])
        edges = np.concatenate([np.arange(*span) for span in self.spans]) if self.directed else steps
        # Source, target and relation in one number might not fit into 64 bits; `edges` is ordered by relation
        # already, and a stable sort keeps that order.
        order = np.argsort(
            self.sources[edges].astype(np.int64) * entities + self.targets[edges], kind="stable"
        )
        starts = np.zeros(entities + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.sources, minlength=entities), out=starts[1:])
        return starts, self.targets[edges[order]], steps[order].astype(np.int32)

    def pointers(self, directed: int) -> Ints:
        """Return int32[entities + 1]: row pointers of a directed relation into `targets`."""
        return self.relations.pointers(directed // 2, directed % 2)


class ExactMining:
    """An exact mining that is under way.

    Parameters
    ----------
    miner
        Gives the thresholds.
    graph
        P_train.
    """

    def __init__(self, miner: Exact, graph: KnowledgeGraph) -> None:
        self._miner = miner
        self._paths = PathIndex.of(graph)
        self._found: list[RuleTable] = []
        self._progress: tuple[str, int, int | None] = ("length 1", 0, 1)
        self._pieces = self._work()

    def advance(self) -> bool:
        """Do the next piece of work; False if nothing is left to do."""
        return next(self._pieces, None) is not None

    def rules(self) -> MinedRules:
        """Return the rules found so far, best first."""
        found = RuleTable.joined(self._found)
        return MinedRules(found.take(found.best_first))

    def progress(self) -> tuple[str, int, int | None]:
        """Return which length is being mined, how much of it is done, and how much there is."""
        return self._progress

    def checkpoint(self) -> Checkpoint | None:
        """Return nothing: it is quicker to start again."""
        return None

    def _work(self) -> Iterator[bool]:
        self._found.append(rules_of_length_1(self._miner, self._paths))
        self._progress = ("length 1", 1, 1)
        yield True
        if self._miner.max_length >= 2:
            yield from self._length_2()
        if self._miner.max_length >= 3:
            from loginfer.systems.rules.exact_long import rules_of_length_3

            for table, what, done, total in rules_of_length_3(self._miner, self._paths):
                self._found.append(table)
                self._progress = (what, done, total)
                yield True

    def _length_2(self) -> Iterator[bool]:
        counted = CountedBodies(self._paths)
        offsets = self._paths.relations.offsets
        done = 0
        for head in np.flatnonzero(np.diff(offsets)).tolist():
            self._found.append(_rules_of_length_2(self._miner, self._paths, counted, head))
            done += int(offsets[head + 1] - offsets[head])
            self._progress = ("length 2", done, self._paths.relations.size)
            yield True


# -- thresholds ------------------------------------------------------------------------------------


def enough(miner: Exact, predictions: Longs, correct: Longs) -> npt.NDArray[np.bool_]:
    """Say which rules have enough correct predictions and enough confidence."""
    confident = _confidence(miner, predictions, correct) >= miner.min_confidence
    return np.asarray((correct >= miner.min_support) & confident)


def most_predictions(miner: Exact, correct: Longs) -> Longs:
    """Return how many predictions a rule with so many correct ones may have; possibly one too many."""
    if miner.min_confidence == 0:
        return np.full(len(correct), np.iinfo(np.int64).max)
    return np.ceil(correct / miner.min_confidence - miner.smoothing).astype(np.int64)


def rules_of(
    miner: Exact, head: npt.ArrayLike, body: npt.ArrayLike, predictions: Longs, correct: Longs
) -> RuleTable:
    """Return those rules that are good enough."""
    made = RuleTable.of(
        head=head,
        body=body,
        predictions=predictions,
        correct=correct,
        confidence=_confidence(miner, predictions, correct),
    )
    return made.take(enough(miner, predictions, correct))


def _confidence(miner: Exact, predictions: Longs, correct: Longs) -> npt.NDArray[np.float64]:
    return np.asarray(correct / (predictions + miner.smoothing))


# -- length 1 --------------------------------------------------------------------------------------


def rules_of_length_1(miner: Exact, paths: PathIndex) -> RuleTable:
    """Return all rules h(X,Y) ⇐ b(X,Y) and h(X,Y) ⇐ b(Y,X) that are good enough."""
    starts, neighbours, steps = paths.adjacency
    if not len(steps):
        return RuleTable.empty()
    # Edges between the same two entities stand together; each is a head of all others.
    sources = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    fresh = np.ones(len(steps), dtype=np.bool_)
    fresh[1:] = (sources[1:] != sources[:-1]) | (neighbours[1:] != neighbours[:-1])
    begin = np.flatnonzero(fresh)
    group = np.cumsum(fresh) - 1
    sizes = np.diff(np.append(begin, len(steps)))[group]
    heads = np.repeat(np.arange(len(steps)), sizes)
    within = np.arange(len(heads)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    head, body = steps[heads].astype(np.int64), steps[begin[group[heads]] + within].astype(np.int64)
    kept = (head % 2 == FORWARD) & (head != body)
    codes, correct = np.unique(head[kept] * paths.directed + body[kept], return_counts=True)
    head, body = codes // paths.directed // 2, codes % paths.directed
    predictions = paths.spans[body, 1] - paths.spans[body, 0]
    return rules_of(miner, head, body, predictions, correct)


# -- length 2 --------------------------------------------------------------------------------------


def _rules_of_length_2(miner: Exact, paths: PathIndex, counted: CountedBodies, head: int) -> RuleTable:
    from loginfer.systems.rules.exact_kernels import closed_paths_of_two

    subjects, objects = paths.relations.pairs(head)
    codes, correct = closed_paths_of_two(subjects, objects, *paths.adjacency, paths.directed)
    order = np.argsort(codes)  # the order of a hash table says nothing
    codes, correct = codes[order], correct[order]
    often = correct >= miner.min_support
    codes, correct = codes[often], correct[often]
    predictions = counted.predictions(codes, most_predictions(miner, correct))
    body = np.column_stack([codes // paths.directed, codes % paths.directed])
    return rules_of(miner, np.full(len(codes), head), body, predictions, correct)


class CountedBodies:
    """How many pairs each body of two atoms connects, as far as anybody has asked.

    Read backwards, the path (b1, b2) is (b2⁻¹, b1⁻¹) and connects as many pairs: one of the two is counted.
    No more is counted than it takes to know that a body makes no rule confident enough.

    Parameters
    ----------
    paths
        The graph.
    """

    def __init__(self, paths: PathIndex) -> None:
        self._paths = paths
        self._pairs: dict[int, int] = {}
        self._limit: dict[int, int] = {}
        self._stamps = np.zeros(paths.relations.entities, dtype=np.int32)

    def predictions(self, codes: Longs, limits: Longs) -> Longs:
        """Return how many pairs each body connects; where it is more than its limit, a number above that.

        Parameters
        ----------
        codes
            int64[k], b1 · directed + b2.
        limits
            int64[k].
        """
        directed = self._paths.directed
        backwards = (codes % directed ^ 1) * directed + (codes // directed ^ 1)
        bodies, which = np.unique(np.minimum(codes, backwards), return_inverse=True)
        wanted = np.zeros(len(bodies), dtype=np.int64)
        np.maximum.at(wanted, which, limits)
        unknown = [
            place
            for place, (body, limit) in enumerate(zip(bodies.tolist(), wanted.tolist(), strict=True))
            # What was counted to its end is within its limit.
            if body not in self._pairs
            or (self._pairs[body] > self._limit[body] and limit > self._limit[body])
        ]
        self._count(bodies[unknown], wanted[unknown])
        found = np.array([self._pairs[body] for body in bodies.tolist()], dtype=np.int64)
        return np.asarray(found[which])

    def _count(self, bodies: Longs, limits: Longs) -> None:
        from loginfer.systems.rules.exact_kernels import count_pairs

        firsts, seconds = np.divmod(bodies, self._paths.directed)
        for second in np.unique(seconds).tolist():
            part = np.flatnonzero(seconds == second)
            pairs = count_pairs(
                self._paths.sources,
                self._paths.targets,
                self._paths.spans,
                self._paths.pointers(second),
                firsts[part],
                limits[part],
                self._stamps,
            )
            self._pairs.update(zip(bodies[part].tolist(), pairs.tolist(), strict=True))
            self._limit.update(zip(bodies[part].tolist(), limits[part].tolist(), strict=True))
