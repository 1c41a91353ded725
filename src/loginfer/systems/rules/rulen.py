"""RuleN: the paths between the ends of some triples of each relation, and how often they are right.

Relation by relation: collect the bodies of all paths between the two entities of some triples, keep those that
explain most, and estimate the confidences of each rule from both sides.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.kernels import inlined, kernel, lower_bound
from loginfer.kg import KnowledgeGraph
from loginfer.randomness import generator, salt
from loginfer.settings import setting
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules.mined import BOTH, LONGEST, NONE, OBJECT, SUBJECT, MinedRules, Miner, Mining, RuleTable
from loginfer.systems.rules.paths import BodyCounts, body_counts, count_body, counted_bodies
from loginfer.systems.rules.walks import (
    Ids,
    Longs,
    Random,
    WalkGraph,
    begin_search,
    draw,
    edges_between,
    find_ends,
    new_search,
    read_steps,
    row_holds,
    row_of,
    walk_graph,
)


@dataclass(frozen=True, kw_only=True)
class RuleN(Miner):
    """Cyclic rules that explain some triples of each relation, and constants that are frequent.

    For each relation and length the bodies of all paths between the two entities of the first `s1` triples
    are collected, and those `s1` are kept that explain most of them. A rule has two confidences, correct
    predictions by all predictions: on the tail side of those that start from some entities X, on the head
    side of those that start from some entities Y. Entities are taken, each with all its predictions, until
    there are `s2` predictions. A rule's confidence is the larger of the two. r(c,·) and r(·,c) have their
    share of r's triples as confidence.

    A triple's score is that of the best rule, and 10⁻⁴ for each further one that predicts it.
    """

    aggregation: ClassVar[str] = "sum"

    max_length: int = setting(2, "atoms in the body of a rule, at most", least=1, most=LONGEST)
    s1: int = setting(
        1000, "triples to explain, and bodies to keep, for each relation and length", least=1, tuned="200:5000:log"
    )
    s2: int = setting(1000, "predictions to count for each side of a rule, at least", least=1)
    order: Literal["shuffled", "file"] = setting(
        "shuffled", "which triples come first: any, or those that come first in the benchmark's P_train"
    )
    min_support: int = setting(2, "correct predictions that a rule needs", least=1, tuned="1:10:log")
    min_confidence: float = setting(0.0, "confidence that a rule needs", least=0, most=1)
    seed: int = setting(0, "seed of everything random", least=0)

    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> RuleNMining:
        """Begin to mine P_train, or go on from a checkpoint."""
        return RuleNMining(self, benchmark.graph, checkpoint)


# -- bodies of the paths between two entities ------------------------------------------------------


@kernel
def find_bodies(
    graph: WalkGraph, head: int, pairs: Ids, length: int, edges: int, random: Random, bodies: BodyCounts
) -> None:
    """Count for each body of a length how many pairs of the head it leads from X to Y.

    Paths do not visit an entity twice. For each pair at most so many edges are looked at; where there are
    more, it is random which ones.
    """
    left = np.zeros(1, dtype=np.int64)
    for pair in range(len(pairs)):
        x, y = np.int64(pairs[pair, 0]), np.int64(pairs[pair, 1])
        left[0] = edges
        if length == 1:
            _one_step(graph, head, x, y, pair, bodies)
        elif length == 2:
            _two_steps(graph, x, y, np.int64(-1), np.int64(0), pair, left, bodies)
        else:
            _three_steps(graph, x, y, pair, left, random, bodies)


@inlined
def _one_step(graph: WalkGraph, head: Any, x: Any, y: Any, pair: Any, bodies: BodyCounts) -> None:
    for direction in range(2):
        first, stop = edges_between(graph, x, y, direction)
        for link in range(first, stop):
            step = 2 * np.int64(graph.link_relation[link]) + direction
            if step != 2 * head:
                count_body(bodies, step, pair, False)


@kernel
def _two_steps(
    graph: WalkGraph, x: Any, y: Any, apart: Any, prefix: Any, pair: Any, left: Longs, bodies: BodyCounts
) -> None:
    """Find all entities between x and y: those of the one with fewer edges are looked up in the other's."""
    steps = 2 * len(graph.sizes)
    for out in range(2):
        for back in range(2):
            first, stop = graph.link_first[out, x], graph.link_middle[out, x]
            other_link, last = graph.link_first[back, y], graph.link_middle[back, y]
            turned = stop - first > last - other_link
            if turned:
                first, stop, other_link, last = other_link, last, first, stop
            while first < stop and other_link < last and left[0] > 0:
                left[0] -= 1
                between = graph.link_end[first]
                other_link = lower_bound(graph.link_end, other_link, last, between)
                link = other_link
                while link < last and graph.link_end[link] == between:
                    left[0] -= 1
                    first_id, last_id = np.int64(graph.link_relation[first]), np.int64(graph.link_relation[link])
                    if turned:
                        first_id, last_id = last_id, first_id
                    if between != x and between != y and between != apart:
                        # The edge of y leads away from it, the body's last step towards it.
                        body = (prefix * steps + 2 * first_id + out) * steps + 2 * last_id + (1 - back)
                        count_body(bodies, body, pair, False)
                    link += 1
                first += 1


@inlined
def _three_steps(graph: WalkGraph, x: Any, y: Any, pair: Any, left: Longs, random: Random, bodies: BodyCounts) -> None:
    for direction in range(2):
        first = graph.link_first[direction, x]
        size = graph.link_middle[direction, x] - first
        if size == 0:
            continue
        offset = draw(random, size)
        for i in range(size):
            link = first + (i + offset) % size
            between = np.int64(graph.link_end[link])
            if between != y and left[0] > 0:
                left[0] -= 1
                prefix = 2 * np.int64(graph.link_relation[link]) + direction
                _two_steps(graph, between, y, x, prefix, pair, left, bodies)


# -- predictions from both sides --------------------------------------------------------------------

# Pairs that start from some Y, and pairs that start from some X.
HEAD_SIDE, TAIL_SIDE = 0, 1

# Edges to look at for one side of a rule, at most; those of one start are all looked at.
_COUNTED = 2**22
_ALL = 2**62


@kernel
def count_sides(
    graph: WalkGraph, head: int, bodies: Ids, enough: int, shuffled: bool, random: Random, stamps: Longs, counts: Longs
) -> None:
    """Count pairs, and correct ones, of each body from both sides.

    Parameters
    ----------
    graph
        What the bodies lead through.
    head
        The head's relation.
    bodies
        int32[m, LONGEST], as in a `RuleTable`.
    enough
        So many pairs of a side, once some entities have been looked at with all their pairs.
    shuffled
        Whether to take entities in any order, or in that of their ids.
    random
        Salt and counter.
    stamps
        int64[entities + 1]: memory, 0 at first.
    counts
        int64[m, 2, 2], the result: for each side pairs and correct ones.
    """
    search, ends = new_search(), np.empty(len(stamps), dtype=np.int64)
    stamp = np.int64(0)
    for rule in range(len(bodies)):
        length = 0
        while length < LONGEST and bodies[rule, length] != NONE:
            length += 1
        for side in range(2):
            read_steps(search, bodies[rule], 0, length, side == HEAD_SIDE)
            answer = 2 * head + (0 if side == TAIL_SIDE else 1)
            first, size = _starts(graph, search.steps[0])
            offset, stride = np.int64(0), np.int64(1)
            if shuffled and size > 1:
                offset, stride = draw(random, size), _stride(random, size)
            left = np.int64(_COUNTED)
            for i in range(size):
                if counts[rule, side, 0] >= enough or left <= 0:
                    break
                row = first + (offset + i * stride) % size
                stamp += 1
                start = np.int64(graph.source[graph.row_edge[row]])
                begin_search(search, start, graph.row_edge[row], graph.row_edge[row + 1])
                right = row_of(graph, start, answer)
                pairs, seen = find_ends(graph, search, length, NONE, _ALL, _ALL, stamps, stamp, ends)
                counts[rule, side, 0] += pairs
                correct = np.int64(0)
                if right >= 0:
                    for number in range(pairs):
                        correct += row_holds(graph, right, ends[number])
                counts[rule, side, 1] += correct
                left -= seen


@inlined
def _starts(graph: WalkGraph, step: Any) -> Any:
    """Return the first row of a step, and how many entities there are with such an edge."""
    first, stop = graph.row_first[step], graph.row_first[step + 1]
    if stop > first and graph.source[graph.row_edge[stop - 1]] == graph.itself:
        stop -= 1
    return first, stop - first


@inlined
def _stride(random: Random, size: Any) -> Any:
    """Return a random number that has no divisor in common with a size."""
    while True:
        stride = 1 + draw(random, size - 1)
        if math.gcd(stride, size) == 1:
            return stride


# -- mining -----------------------------------------------------------------------------------------

# Seconds between two reports of progress.
_PAUSE = 0.5
# Edges to look at for the bodies of a relation and a length; some ten times what length 2 needs on FB15k-237.
_SEARCHED = 2**26
# Slots for bodies, at most; half of them can be filled.
_SLOTS = 2**20


class RuleNMining(Mining):
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
        self._counts: list[Longs] = []
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
        rows, counts = self._joined()
        confidences = _confidences(counts)
        better_side = np.where(confidences[:, TAIL_SIDE] > confidences[:, HEAD_SIDE], TAIL_SIDE, HEAD_SIDE)
        predictions, correct = counts[np.arange(len(rows)), better_side].T
        rows = np.insert(rows, 3, NONE, axis=1)  # no constant at the end
        return MinedRules(RuleTable.of_rows(rows, predictions, correct, confidences.max(axis=1)))

    def progress(self) -> tuple[str, int, int | None]:
        """Return how many relations are done."""
        return "relations", self._done, len(self._relations)

    def checkpoint(self) -> Checkpoint:
        """Return the rules of the relations so far."""
        rows, counts = self._joined()
        return Checkpoint({"rows": rows, "counts": counts}, {"relations": self._done})

    def _joined(self) -> tuple[Ids, Longs]:
        rows = np.concatenate([np.empty((0, 3 + LONGEST), dtype=np.int32), *self._rows])
        counts = np.concatenate([np.empty((0, 2, 2), dtype=np.int64), *self._counts])
        return rows, counts

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
            count_sides(self._walks, relation, bodies, self._system.s2, shuffled, random, self._stamps, counts)
            rows = np.full((len(bodies), 3 + LONGEST), NONE, dtype=np.int32)
            rows[:, 0], rows[:, 1], rows[:, 3:] = relation, BOTH, bodies
            self._keep(rows, counts)

    def _keep(self, rows: Ids, counts: Longs) -> None:
        """Keep the rules that are good enough."""
        good = counts[:, :, 1].max(axis=1, initial=0) >= self._system.min_support
        good &= _confidences(counts).max(axis=1) >= self._system.min_confidence
        self._rows.append(rows[good])
        self._counts.append(counts[good])

    def _constants(self, relation: int, triples: Ids) -> tuple[Ids, Longs]:
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
        explaining = body_counts(min(_SLOTS, 4 << int(steps**length).bit_length()))
        edges = _SEARCHED // max(1, len(pairs))
        random = self._random("paths", relation, length)
        find_bodies(self._walks, relation, pairs, length, edges, random, explaining)
        keys, explained = counted_bodies(explaining)
        best = keys[np.lexsort((keys, -explained))[: self._system.s1]]
        bodies = np.full((len(best), LONGEST), NONE, dtype=np.int32)
        for i in range(length - 1, -1, -1):
            best, bodies[:, i] = np.divmod(best, steps)
        return bodies

    def _random(self, *stage: object) -> Random:
        return np.array([salt(self._system.seed, "rulen", *stage), 0], dtype=np.uint64)


def _confidences(counts: Longs) -> npt.NDArray[np.float64]:
    """Return float64[m, 2]: of each rule the share of correct ones among the predictions of either side.

    HEAD_SIDE is about predictions of subjects, TAIL_SIDE about those of objects. A rule h(X,c) predicts no subjects,
    and h(c,X) no objects; on the other side they have c's share of h's triples.
    """
    return np.asarray(counts[:, :, 1] / np.maximum(counts[:, :, 0], 1))
