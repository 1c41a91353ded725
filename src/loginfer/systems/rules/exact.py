"""The exact miner: every closed path rule up to length 2 with exact counts, and length 3 if asked for.

Length 1 is counted at once, length 2 head by head. Then length 3: all rules where the graph has few enough
walks, otherwise a sample. Loops are not among the edges, so that two neighbours always differ, and what remains
to be checked is that entities two or three steps apart do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import LimitError
from loginfer.kernels import gallop, inlined, kernel, mix64
from loginfer.kg import KnowledgeGraph
from loginfer.kg.graph import FORWARD, RelationIndex, ranges, run_starts
from loginfer.randomness import salt
from loginfer.settings import setting
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules.mined import MinedRules, Miner, Mining, RuleTable
from loginfer.systems.rules.paths import (
    Ids,
    Longs,
    NeighbourLists,
    body_counts,
    count_body,
    counted_bodies,
    neighbours_of,
    steps_by_relation,
    with_more_slots,
)


@dataclass(frozen=True, kw_only=True)
class Exact(Miner):
    """Every rule h(X,Y) ⇐ b1(X,A), …, bn(·,Y) with enough correct predictions and enough confidence.

    A prediction is a pair of different entities that the body connects by a path without a repeated entity;
    it is correct if the head has that pair in P_train. So a loop r(e,e) neither closes a path nor is one
    of the pairs that are counted. Confidence is correct / (predictions + smoothing), as AnyBURL applies it.

    Predictions and correct ones are exact for lengths 1 and 2. For length 3 they are, too, if the graph has
    no more walks of three steps than `budget`; otherwise bodies are looked for between pairs that are drawn
    at random, and those found most often are counted from some of the entities that they start at.
    """

    max_length: int = setting(2, "atoms in a body, at most", least=1, most=3)
    min_support: int = setting(2, "correct predictions, at least", least=1, tuned="1:10:log")
    min_confidence: float = setting(0.01, "of a rule, at least", least=0, most=1)
    smoothing: float = setting(5.0, "confidence = correct / (predictions + this)", least=0, tuned="0.5:50:log")
    budget: int = setting(100_000_000, "length 3: walks to look at; if there are more, a sample", least=1)
    aggregation: Literal["maximum", "noisy-or"] = setting(
        "maximum",
        "of the rules that predict a triple: the best, or 1 − Π (1 − confidence) of the five best",
        tuned="maximum,noisy-or",
    )
    seed: int = setting(0, "seed of the sample of length 3", least=0)

    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> Mining:
        """Begin to mine P_train. A checkpoint is never needed: it is quicker to start again."""
        return ExactMining(self, benchmark.graph)


class PathIndex:
    """What paths may go along: the triples of a graph without loops and without types.

    Attributes
    ----------
    relations
        The pairs of each relation.
    directed
        How many directed relations there are, 2 for each relation.
    neighbours
        The neighbours of each entity.
    spans, sources, targets
        The steps by directed relation (see `steps_by_relation`).
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        triples = graph.triples
        is_step = triples[:, 0] != triples[:, 2]
        if graph.type_relation is not None:
            is_step &= triples[:, 1] != graph.type_relation
        self.relations = RelationIndex(triples[is_step], len(graph.entities), len(graph.relations))
        self.directed = 2 * len(graph.relations)
        self.neighbours = neighbours_of(graph, loops=False)
        self.spans, self.sources, self.targets = steps_by_relation(self.relations)

    def pointers(self, directed: int) -> Ids:
        """Return int32[entities + 1]: row pointers of a directed relation into `targets`."""
        return self.relations.pointers(directed // 2, directed % 2)

    @cached_property
    def heads(self) -> list[int]:
        """The relations that have pairs."""
        return list(np.flatnonzero(np.diff(self.relations.offsets)).tolist())


class ExactMining(Mining):
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
        self._paths = PathIndex(graph)
        self._tables: list[RuleTable] = []
        self._progress: tuple[str, int, int | None] = ("length 1", 0, 1)
        self._pieces = self._mine()

    def advance(self) -> bool:
        """Do the next piece of work; False if nothing is left to do."""
        return next(self._pieces, None) is not None

    def rules(self) -> MinedRules:
        """Return the rules found so far, best first."""
        table = RuleTable.joined(self._tables)
        return MinedRules(table.take(table.best_first))

    def progress(self) -> tuple[str, int, int | None]:
        """Return which length is being mined, how much of it is done, and how much there is."""
        return self._progress

    def _mine(self) -> Iterator[bool]:
        self._tables.append(rules_of_length_1(self._miner, self._paths))
        self._progress = ("length 1", 1, 1)
        yield True
        if self._miner.max_length >= 2:
            counted, offsets, done = CountedBodies(self._paths), self._paths.relations.offsets, 0
            for head in self._paths.heads:
                self._tables.append(_rules_of_length_2(self._miner, self._paths, counted, head))
                done += int(offsets[head + 1] - offsets[head])
                self._progress = ("length 2", done, self._paths.relations.size)
                yield True
        if self._miner.max_length >= 3:
            for table, what, done, total in rules_of_length_3(self._miner, self._paths):
                self._tables.append(table)
                self._progress = (what, done, total)
                yield True


# -- thresholds ------------------------------------------------------------------------------------


def most_predictions(miner: Exact, correct: Longs) -> Longs:
    """Return how many predictions a rule with so many correct ones may have; possibly one too many."""
    if miner.min_confidence == 0:
        return np.full(len(correct), np.iinfo(np.int64).max)
    return np.ceil(correct / miner.min_confidence - miner.smoothing).astype(np.int64)


def rules_of(miner: Exact, head: npt.ArrayLike, body: npt.ArrayLike, predictions: Longs, correct: Longs) -> RuleTable:
    """Return those rules that have enough correct predictions and enough confidence."""
    confidence = correct / (predictions + miner.smoothing)
    table = RuleTable.of(head=head, body=body, predictions=predictions, correct=correct, confidence=confidence)
    return table.take((correct >= miner.min_support) & (confidence >= miner.min_confidence))


# -- length 1 --------------------------------------------------------------------------------------


def rules_of_length_1(miner: Exact, paths: PathIndex) -> RuleTable:
    """Return all rules h(X,Y) ⇐ b(X,Y) and h(X,Y) ⇐ b(Y,X) that are good enough."""
    starts, neighbours, steps = paths.neighbours
    if not len(steps):
        return RuleTable.empty()
    # Edges between the same two entities stand together; each is a head of all others.
    sources = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    fresh = run_starts(sources, neighbours)
    begin, group = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    heads, bodies = ranges(begin[group], np.diff(np.append(begin, len(steps)))[group])
    head, body = steps[heads].astype(np.int64), steps[bodies].astype(np.int64)
    kept = (head % 2 == FORWARD) & (head != body)
    codes, correct = np.unique(head[kept] * paths.directed + body[kept], return_counts=True)
    head, body = codes // paths.directed // 2, codes % paths.directed
    predictions = paths.spans[body, 1] - paths.spans[body, 0]
    return rules_of(miner, head, body, predictions, correct)


# -- length 2 --------------------------------------------------------------------------------------


def _rules_of_length_2(miner: Exact, paths: PathIndex, counted: CountedBodies, head: int) -> RuleTable:
    codes, correct = _closed_paths(miner, paths, head, 2)
    predictions = counted.predictions(codes, most_predictions(miner, correct))
    body = np.column_stack([codes // paths.directed, codes % paths.directed])
    return rules_of(miner, np.full(len(codes), head), body, predictions, correct)


class CountedBodies:
    """How many pairs each body of two atoms connects, as far as it was asked for.

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
        bodies, body_of = np.unique(np.minimum(codes, backwards), return_inverse=True)
        needed = np.zeros(len(bodies), dtype=np.int64)
        np.maximum.at(needed, body_of, limits)
        unknown = [
            i
            for i, (body, limit) in enumerate(zip(bodies.tolist(), needed.tolist(), strict=True))
            # What was counted to its end is within its limit.
            if body not in self._pairs or (self._pairs[body] > self._limit[body] and limit > self._limit[body])
        ]
        self._count(bodies[unknown], needed[unknown])
        pairs = np.array([self._pairs[body] for body in bodies.tolist()], dtype=np.int64)
        return np.asarray(pairs[body_of])

    def _count(self, bodies: Longs, limits: Longs) -> None:
        paths = self._paths
        edges = paths.sources, paths.targets, paths.spans
        firsts, seconds = np.divmod(bodies, paths.directed)
        for second in np.unique(seconds).tolist():
            part = np.flatnonzero(seconds == second)
            pairs = count_pairs(*edges, paths.pointers(second), firsts[part], limits[part], self._stamps)
            self._pairs.update(zip(bodies[part].tolist(), pairs.tolist(), strict=True))
            self._limit.update(zip(bodies[part].tolist(), limits[part].tolist(), strict=True))


# -- bodies between the ends of a head -------------------------------------------------------------


def _closed_paths(miner: Exact, paths: PathIndex, head: int, length: int, share: int = 0) -> tuple[Longs, Longs]:
    """Return the bodies between enough pairs of a head, ascending, and for each how many pairs it connects."""
    path_salt = np.uint64(salt(miner.seed, "exact", "paths", head))
    bodies = closed_paths(*paths.relations.pairs(head), paths.neighbours, paths.directed, length, share, path_salt)
    codes, counts = counted_bodies(bodies)
    often = counts >= miner.min_support
    return codes[often], counts[often]


@kernel
def closed_paths(
    subjects: Ids, objects: Ids, graph: NeighbourLists, directed: int, length: int, share: int, salt: np.uint64
) -> Any:
    """Count for each body of two or three steps how many pairs of a head it connects.

    Parameters
    ----------
    subjects, objects
        int32[p], the pairs, without loops.
    graph
        The neighbours of each entity.
    directed
        How many directed relations there are.
    length
        Of the bodies, 2 or 3.
    share
        0: all paths, and the counts are exact. Otherwise, for length 3, pairs and first steps are drawn at random
        until so many paths and comparisons have been made, and a pair that is drawn again counts again.
    salt
        Chooses what is drawn.

    Returns
    -------
    BodyCounts
        Of codes b1 · directed + b2, or (b1 · directed + b2) · directed + b3.
    """
    starts, neighbours, steps = graph
    bodies = body_counts(2**10)
    steps_made, draws, pair = 0, 0, 0
    first = starts[subjects[0]] if len(subjects) else 0
    while pair < len(subjects):
        if share:
            if steps_made >= share:
                break
            pair = _random_below(salt, 2 * draws, len(subjects))
            x = subjects[pair]
            first = starts[x] + _random_below(salt, 2 * draws + 1, starts[x + 1] - starts[x])
            draws += 1
        # The last two steps lead from a to y, not over x, which is a itself where there are no more.
        x, y = subjects[pair], objects[pair]
        a, before = x, np.int64(0)
        if length == 3:
            a, before = neighbours[first], np.int64(steps[first])
        if a != y:
            # The shorter list is walked through; in the longer one the next position is sought ahead.
            turned = starts[a + 1] - starts[a] > starts[y + 1] - starts[y]
            few, many = (y, a) if turned else (a, y)
            i, stop = starts[few], starts[few + 1]
            j, end = starts[many], starts[many + 1]
            while i < stop and j < end:
                b = neighbours[i]
                steps_made += 1
                j = gallop(neighbours, j, end, b)
                if b == x or j == end or neighbours[j] != b:
                    i += 1
                    continue
                beyond = j
                while beyond < end and neighbours[beyond] == b:
                    beyond += 1
                while i < stop and neighbours[i] == b:
                    steps_made += beyond - j
                    for k in range(j, beyond):
                        one, two = (steps[k], steps[i]) if turned else (steps[i], steps[k])
                        count_body(bodies, (before * directed + one) * directed + (two ^ 1), pair, share > 0)
                        if 2 * bodies.size[0] >= len(bodies.keys):
                            bodies = with_more_slots(bodies)
                    i += 1
                j = beyond
        if share:
            steps_made += 1
            continue
        first += 1
        if length == 2 or first == starts[x + 1]:
            pair += 1
            if pair < len(subjects):
                first = starts[subjects[pair]]
    return bodies


# -- pairs that a body connects --------------------------------------------------------------------


@kernel
def count_pairs(
    sources: Ids, targets: Ids, spans: Longs, rows: Ids, firsts: Longs, limits: Longs, stamps: Ids
) -> Longs:
    """Return for each b1 how many pairs (b1, b2) connects; more than its limit: some number above it.

    Parameters
    ----------
    sources, targets
        int32[2n], the edges; those of a directed relation stand together, by source, then target.
    spans
        int64[directed, 2], where the edges of a directed relation begin and end.
    rows
        int32[entities + 1], row pointers of b2 into `targets`.
    firsts, limits
        int64[k].
    stamps
        int32[entities], scratch.
    """
    counts = np.zeros(len(firsts), dtype=np.int64)
    stamps[:] = 0
    mark = 0
    for body in range(len(firsts)):
        counted, last = 0, -1
        for edge in range(spans[firsts[body], 0], spans[firsts[body], 1]):
            x, middle = sources[edge], targets[edge]
            if x != last:
                if counted > limits[body]:
                    break
                # A mark for each source of each body: nothing need be cleared in between.
                mark, last = mark + 1, x
                if mark == 2**31 - 1:
                    stamps[:] = 0
                    mark = 1
                stamps[x] = mark
            for position in range(rows[middle], rows[middle + 1]):
                y = targets[position]
                counted += stamps[y] != mark
                stamps[y] = mark
        counts[body] = counted
    return counts


# -- length 3 --------------------------------------------------------------------------------------


@inlined
def _random_below(salt: Any, number: int, below: int) -> Any:
    """Return the number-th random number from 0 up to, not including, `below`."""
    return np.int64((mix64(mix64(np.uint64(number)) ^ salt) >> np.uint64(11)) % np.uint64(below))


@kernel
def walks_of_three(starts: Longs, neighbours: Ids) -> float:
    """Return how many walks of three steps there are, all directions and starts counted."""
    total = 0.0
    for entity in range(len(starts) - 1):
        ways = 0
        for i in range(starts[entity], starts[entity + 1]):
            ways += starts[neighbours[i] + 1] - starts[neighbours[i]]
        total += float(ways) * (starts[entity + 1] - starts[entity])
    return total


@kernel
def search_costs(subjects: Ids, objects: Ids, starts: Longs, neighbours: Ids) -> Longs:
    """Return int64[p]: how many steps it takes to look for all closed paths between each pair."""
    steps = np.zeros(len(subjects), dtype=np.int64)
    for pair in range(len(subjects)):
        x, y = subjects[pair], objects[pair]
        size = starts[y + 1] - starts[y]
        for i in range(starts[x], starts[x + 1]):
            a = neighbours[i]
            steps[pair] += 1 + min(size, starts[a + 1] - starts[a])
    return steps


@kernel
def count_predictions(
    sources: Ids,
    targets: Ids,
    spans: Longs,
    pointers: Ids,
    bodies: Longs,
    heads: Longs,
    starts: Longs,
    limits: Longs,
    share: int,
    salt: np.uint64,
    stamps: Ids,
) -> tuple[Longs, Longs]:
    """Return for each body how many pairs it connects, and how many of them each of its heads has.

    Parameters
    ----------
    sources, targets
        int32[2n], the edges; those of a directed relation stand together, by source, then target.
    spans
        int64[directed, 2], where the edges of a directed relation begin and end.
    pointers
        int32[directed, entities + 1], row pointers into `targets`.
    bodies
        int64[k, 3], directed relations.
    heads, starts
        int64[m], the directed relations of the heads; those of body i are starts[i] up to starts[i + 1].
    limits
        int64[k]: a body that connects more pairs is not counted to its end.
    share
        0: all pairs. Otherwise a body with more walks than that is counted from some of its sources only, so
        many that about this many walks are made.
    salt
        Chooses the sources.
    stamps
        int32[entities], scratch.
    """
    predictions, correct = np.zeros(len(bodies), dtype=np.int64), np.zeros(len(heads), dtype=np.int64)
    ways = np.zeros(len(stamps), dtype=np.int64)
    stamps[:] = 0
    mark = 0
    for body in range(len(bodies)):
        begin, end = spans[bodies[body, 0], 0], spans[bodies[body, 0], 1]
        second, third = pointers[bodies[body, 1]], pointers[bodies[body, 2]]
        if share:
            if body == 0 or bodies[body, 1] != bodies[body - 1, 1] or bodies[body, 2] != bodies[body - 1, 2]:
                _ways_of_two(sources, targets, spans, bodies[body, 1], third, ways)
            walks = 0
            for edge in range(begin, end):
                walks += ways[targets[edge]]
            chance = share / max(walks, share)
        counted = 0
        edge = begin
        while edge < end and counted <= limits[body]:
            x = sources[edge]
            stop = edge + 1
            while stop < end and sources[stop] == x:
                stop += 1
            if share and (mix64(np.uint64(x) ^ salt) >> np.uint64(11)) * 2.0**-53 >= chance:
                edge = stop
                continue
            mark += 1
            if mark == 2**31 - 1:
                stamps[:] = 0
                mark = 1
            stamps[x] = mark
            for first in range(edge, stop):
                a = targets[first]
                for i in range(second[a], second[a + 1]):
                    b = targets[i]
                    if b == x:
                        continue
                    for last in range(third[b], third[b + 1]):
                        y = targets[last]
                        if y != a:
                            counted += stamps[y] != mark
                            stamps[y] = mark
            for i in range(starts[body], starts[body + 1]):
                rows = pointers[heads[i]]
                for j in range(rows[x], rows[x + 1]):
                    correct[i] += stamps[targets[j]] == mark
            edge = stop
        predictions[body] = counted
    return predictions, correct


@inlined
def _ways_of_two(sources: Ids, targets: Ids, spans: Longs, second: int, third: Ids, ways: Longs) -> None:
    """Fill in how many walks with these two steps start at each entity."""
    ways[:] = 0
    for edge in range(spans[second, 0], spans[second, 1]):
        b = targets[edge]
        ways[sources[edge]] += third[b + 1] - third[b]


# Row pointers of all directed relations at once take at most this much.
POINTER_BYTES = 2**30
# Walks for a body in a sample, at least: with fewer its confidence would be a guess.
WALKS_OF_A_BODY = 2000
# Bodies that are counted in one piece of work.
BLOCK = 1000


def rules_of_length_3(miner: Exact, paths: PathIndex) -> Iterator[tuple[RuleTable, str, int, int]]:
    """Find the rules of length 3 piece by piece.

    Yields
    ------
    tuple
        The rules that this piece has found, what is being done, how much of it is done, how much there is.
    """
    _check_size(paths)
    exact = walks_of_three(paths.neighbours.pointers, paths.neighbours.ends) <= miner.budget
    heads = paths.heads
    shares = np.zeros(len(heads), dtype=np.int64) if exact else _shares(miner, paths, heads)
    candidates: list[tuple[Longs, Longs, Longs]] = []
    for number, head in enumerate(heads):
        codes, hits = _closed_paths(miner, paths, head, 3, int(shares[number]))
        candidates.append((np.full(len(codes), 2 * head), codes, hits))
        yield RuleTable.empty(), "length 3: looking for bodies", number + 1, len(heads)
    if candidates:
        directed, codes, hits = (np.concatenate(parts) for parts in zip(*candidates, strict=True))
        yield from _counted(miner, paths, directed, codes, hits, exact)


def _check_size(paths: PathIndex) -> None:
    size = 4 * paths.directed * (paths.relations.entities + 1)
    if size > POINTER_BYTES:
        raise LimitError(
            f"rules of length 3 would take {size / 2**30:.1f} GB for this graph's relations and entities",
            hint="mine with --max-length 2",
        )


def _shares(miner: Exact, paths: PathIndex, heads: list[int]) -> Longs:
    """Return what may be spent on each head: half the budget in equal parts, what one leaves goes to others.

    0 for a head whose paths can all be looked at.
    """
    starts, neighbours, _ = paths.neighbours
    costs = np.array([int(search_costs(*paths.relations.pairs(head), starts, neighbours).sum()) for head in heads])
    shares = np.zeros(len(heads), dtype=np.int64)
    left = miner.budget // 2
    order = np.argsort(costs, kind="stable").tolist()
    for i, head in enumerate(order):
        part = max(left // (len(heads) - i), 1)
        shares[head] = 0 if costs[head] <= part else part
        left = max(left - min(part, int(costs[head])), 0)
    return shares


def _counted(
    miner: Exact, paths: PathIndex, heads: Longs, codes: Longs, hits: Longs, exact: bool
) -> Iterator[tuple[RuleTable, str, int, int]]:
    """Count what the candidates predict, body by body, and give the rules that are good enough."""
    directed = paths.directed
    steps = np.column_stack([codes // directed**2, codes // directed % directed, codes % directed])
    # Read backwards, a path connects the same pairs the other way round: it is counted once for both.
    backwards = steps[:, ::-1] ^ 1
    turned = _code(backwards, directed) < codes
    steps[turned], heads = backwards[turned], heads + turned
    codes = np.where(turned, _code(steps, directed), codes)
    bodies, which, total = np.unique(codes, return_inverse=True, return_counts=True)
    limits, share = np.zeros(len(bodies), dtype=np.int64), 0
    np.maximum.at(limits, which, most_predictions(miner, hits))
    if not exact:
        limits[:] = np.iinfo(np.int64).max
        most = max(miner.budget // 2 // WALKS_OF_A_BODY, 1)
        strength = np.zeros(len(bodies), dtype=np.int64)
        np.maximum.at(strength, which, hits)
        kept = np.sort(np.argsort(-strength, kind="stable")[:most])
        share = max(miner.budget // 2 // max(len(kept), 1), WALKS_OF_A_BODY)
    else:
        kept = np.arange(len(bodies))
    # By the last two steps, so that what is known of them serves all bodies that begin otherwise.
    kept = kept[np.lexsort((bodies[kept] // directed**2, bodies[kept] % directed**2))]
    by_body = np.argsort(which, kind="stable")
    first = np.cumsum(total) - total
    pointers = np.stack([paths.pointers(relation) for relation in range(directed)])
    edges = paths.sources, paths.targets, paths.spans, pointers
    draws = share, np.uint64(salt(miner.seed, "exact", "sources")), np.zeros(paths.relations.entities, dtype=np.int32)
    for begin in range(0, len(kept), BLOCK):
        part = kept[begin : begin + BLOCK]
        rows = np.concatenate([by_body[first[body] : first[body] + total[body]] for body in part.tolist()])
        bounds = np.concatenate([[0], np.cumsum(total[part])])
        body_steps = steps[by_body[first[part]]]
        predictions, correct = count_predictions(*edges, body_steps, heads[rows], bounds, limits[part], *draws)
        # The heads the right way round again.
        forwards = np.where((heads[rows] % 2 == 1)[:, None], steps[rows][:, ::-1] ^ 1, steps[rows])
        table = rules_of(miner, heads[rows] // 2, forwards, np.repeat(predictions, total[part]), correct)
        yield table, "length 3: counting", begin + len(part), len(kept)


def _code(steps: Longs, directed: int) -> Longs:
    return np.asarray((steps[:, 0] * directed + steps[:, 1]) * directed + steps[:, 2])
