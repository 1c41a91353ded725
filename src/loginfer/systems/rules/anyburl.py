"""AnyBURL: rules generalised from random walks, found anytime.

Which class of walk comes next, the store of rules, what has been found; from the kernels' rows to mined rules.

The kernels count the predictions of a rule: of cyclic rules by walks, of others one after the other. Different
variables always stand for different entities, which differ from the rule's constants. A batch walks, generalises, skips
what is trivial or was looked at before, counts, and keeps what is good enough.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.kernels import first_slot, inlined, kernel, random_bits
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import Rule, ScoredRule, Variable
from loginfer.randomness import generator, salt
from loginfer.settings import setting
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules.mined import (
    AC2_WEIGHT,
    BOTH,
    LONGEST,
    NONE,
    OBJECT,
    PSEUDO_COUNT,
    SUBJECT,
    ZERO_WEIGHT,
    MinedRules,
    Miner,
    Mining,
    RuleTable,
    applied,
)
from loginfer.systems.rules.texts import named_atoms
from loginfer.systems.rules.walks import (
    NODES,
    RELATION,
    STEPS,
    TURNED,
    WALK_SIZE,
    Ids,
    Longs,
    Random,
    WalkGraph,
    begin_search,
    closed_walk,
    draw,
    find_ends,
    new_search,
    open_walk,
    read_steps,
    row_holds,
    row_of,
    walk_graph,
)

if TYPE_CHECKING:
    from loginfer.systems.rules.scorer import RuleScorer


@dataclass(frozen=True, kw_only=True)
class AnyBURL(Miner):
    """Random walks, generalised to cyclic, acyclic and zero rules.

    Walks come in batches, all of one class: closed walks of a length, open walks of a length, or heads
    alone. A batch ends when a number of edges have been looked at that takes some tenths of a second, not
    after a time, so that a run of so many batches finds the same rules everywhere. The class of batch t is
    drawn uniformly with probability max(0.1, (5 − t) / 5), and else in proportion to what its batches have
    earned so far on average, for each new rule correct · confidence / 2^(length − 1); a class without a
    batch counts like the best.

    The rules that are mined have the confidence correct / predictions, as in AnyBURL's files. They are
    applied with correct / (predictions + pseudo_count), times the weight of their shape.
    """

    steps: int = setting(150, "batches of walks; the same number finds the same rules everywhere", least=1)
    seconds: float = setting(0.0, "mine for so long instead of `steps` batches; 0: not", least=0)
    max_length: int = setting(3, "atoms in the body of a cyclic rule, at most", least=1, most=LONGEST)
    max_acyclic: int = setting(1, "atoms in the body of an acyclic rule, at most", least=0, most=LONGEST)
    min_support: int = setting(2, "correct predictions that a rule needs", least=1, tuned="2:10:log")
    min_zero_support: int = setting(101, "correct predictions that a zero rule needs", least=1)
    min_confidence: float = setting(0.0001, "confidence that a rule needs", least=0, most=1)
    aggregation: Literal["maximum", "noisy-or"] = setting(
        "maximum",
        "score of a triple: that of the best rule, ties broken by the next ones, or 1 − Π (1 − c) of the five best",
        tuned="maximum,noisy-or",
    )
    pseudo_count: float = setting(
        PSEUDO_COUNT, "wrong predictions added to those of each rule", least=0, tuned="1:50:log"
    )
    ac2_weight: float = setting(AC2_WEIGHT, "weight of h(X,c) ⇐ b(X,A)", least=0, most=1)
    zero_weight: float = setting(ZERO_WEIGHT, "weight of h(X,c) with an empty body", least=0, most=1)
    seed: int = setting(0, "seed of everything random", least=0)

    def begin(self, benchmark: Benchmark, checkpoint: Checkpoint | None = None) -> AnyBURLMining:
        """Begin to mine P_train, or go on from a checkpoint."""
        return AnyBURLMining(self, benchmark.graph, checkpoint)

    def scorer(self, benchmark: Benchmark, rules: MinedRules) -> RuleScorer:
        """Return what scores triples with the rules over P_train, weighted as AnyBURL applies them."""
        weighted = applied(rules, pseudo=self.pseudo_count, ac2=self.ac2_weight, zero=self.zero_weight)
        return super().scorer(benchmark, weighted)


def as_rules(graph: KnowledgeGraph, rules: Ids, counts: npt.NDArray[np.int64]) -> MinedRules:
    """Return rows of rules and counts as mined rules.

    A path rule cannot say h(X,X). Rules with the special constant of loops (see `walks_graph`) therefore
    become rules of other shapes, without it: h(X,X) ⇐ b(X,A).
    """
    rows, itself = np.delete(rules, LENGTH, axis=1), len(graph.entities)
    loops = (rows[:, HEAD_CONSTANT] == itself) | (rows[:, END_CONSTANT] == itself)
    predictions, correct = counts[~loops].T
    table = RuleTable.of_rows(rows[~loops], predictions, correct, correct / predictions)
    others = [
        ScoredRule(_about_loops(graph, row), all_, right, right / all_)
        for row, (all_, right) in zip(rows[loops].tolist(), counts[loops].tolist(), strict=True)
    ]
    return MinedRules(table, tuple(others))


def _about_loops(graph: KnowledgeGraph, row: list[int]) -> Rule:
    """Return the acyclic rule of a row, with a variable for the special constant: X, or that before the last."""
    itself, length = len(graph.entities), LONGEST - row[4:].count(NONE)
    x, before_last = Variable("x"), Variable("xab"[length - 1])
    # An id of its own for the end.
    row[END_CONSTANT] += row[END_CONSTANT] == itself
    head, *body = named_atoms(row, graph, x, x, {itself: x, itself + 1: before_last})
    return Rule(body, head)


# Edges to look at in a batch, and walks in a row without a new rule that end it before.
BATCH_EDGES = 2**21
IDLE = 20_000
# Seconds between two reports of progress.
_PAUSE = 0.5
# How many rules fit at first; keys have twice as many slots as can be filled.
_CAPACITY = 2**12


class AnyBURLMining(Mining):
    """A mining with AnyBURL that is under way (see `Mining`).

    Parameters
    ----------
    system
        The settings.
    graph
        What to mine.
    checkpoint
        Where to go on; at the start if None.
    """

    def __init__(self, system: AnyBURL, graph: KnowledgeGraph, checkpoint: Checkpoint | None = None) -> None:
        self._system = system
        self._graph = graph
        self._walks = walk_graph(graph)
        self._limits = Limits()
        self._scratch = new_scratch(len(graph.entities), self._limits)
        # Whether walks are closed, and how long they are: first the class of zero rules.
        self.classes = [
            (False, 0),
            *((True, length) for length in range(1, system.max_length + 1)),
            *((False, length) for length in range(1, system.max_acyclic + 1)),
        ]
        self._batch = 0
        self._rewards = np.zeros(len(self.classes))
        self._batches = np.zeros(len(self.classes), dtype=np.int64)
        self._elapsed = 0.0
        self._store = _new_store(0, 0)
        if checkpoint is not None:
            self._restore(checkpoint)

    def advance(self) -> bool:
        """Walk for about half a second; False if that was the end."""
        started = time.monotonic()
        before = self._elapsed
        while self._goes_on() and time.monotonic() - started < _PAUSE:
            self._run_batch()
            self._elapsed = before + time.monotonic() - started
        return self._goes_on()

    def rules(self) -> MinedRules:
        """Return the rules found so far, in the order in which they were found."""
        size = int(self._store.counters[ROWS])
        return as_rules(self._graph, self._store.rules[:size], self._store.counts[:size])

    def progress(self) -> tuple[str, int, int | None]:
        """Return how many batches, or seconds, are done."""
        if self._system.seconds:
            return "seconds", int(self._elapsed), int(np.ceil(self._system.seconds))
        return "batches", self._batch, self._system.steps

    def checkpoint(self) -> Checkpoint:
        """Return the rules, the keys of all that were looked at, and what the classes have earned."""
        size = int(self._store.counters[ROWS])
        arrays = {
            # In ascending order: the slots depend on when the set grew.
            "keys": np.sort(self._store.keys[self._store.keys != 0]),
            "rules": self._store.rules[:size].copy(),
            "counts": self._store.counts[:size].copy(),
            "rewards": self._rewards.copy(),
            "batches": self._batches.copy(),
        }
        return Checkpoint(arrays, {"batch": self._batch, "elapsed": self._elapsed})

    def _restore(self, checkpoint: Checkpoint) -> None:
        arrays = checkpoint.arrays
        self._batch = int(checkpoint.facts["batch"])
        self._elapsed = float(checkpoint.facts["elapsed"])
        self._rewards = np.array(arrays["rewards"], dtype=np.float64)
        self._batches = np.array(arrays["batches"], dtype=np.int64)
        keys, rules = np.asarray(arrays["keys"], dtype=np.uint64), np.asarray(arrays["rules"])
        self._store = _new_store(len(rules), len(keys))
        fill(self._store.keys, keys)
        self._store.rules[: len(rules)] = rules
        self._store.counts[: len(rules)] = arrays["counts"]
        self._store.counters[ROWS], self._store.counters[KNOWN] = len(rules), len(keys)

    def _goes_on(self) -> bool:
        if not len(self._graph):
            return False
        if self._system.seconds:
            return self._elapsed < self._system.seconds
        return self._batch < self._system.steps

    # -- batches --------------------------------------------------------------------------------

    def _run_batch(self) -> None:
        class_number = self._choose()
        closed, length = self.classes[class_number]
        system, seed = self._system, self._system.seed
        thresholds = LeastCounts(system.min_support, system.min_zero_support, system.min_confidence)
        self._store.counters[KNOWN + 1 :] = 0
        self._store.reward[0] = 0.0
        self._store.random[:] = salt(seed, "anyburl", "walks", self._batch), 0
        counting = np.uint64(salt(seed, "anyburl", "predictions"))
        fixed = (self._walks, closed, length, BATCH_EDGES, IDLE, counting, thresholds, self._limits, self._scratch)
        while run_batch(*fixed, self._store) == FULL:
            self._store = _enlarged(self._store)
        self._rewards[class_number] += self._store.reward[0]
        self._batches[class_number] += 1
        self._batch += 1

    def _choose(self) -> int:
        """Return the class of the next batch: any, or by what classes have earned so far."""
        random = generator(self._system.seed, "anyburl", "class", self._batch)
        mean = self._rewards / np.maximum(self._batches, 1)
        # A class without a batch may be as good as the best.
        mean[self._batches == 0] = mean.max()
        if random.random() < max(0.1, (5 - self._batch) / 5) or not mean.any():
            return int(random.integers(len(self.classes)))
        return int(random.choice(len(self.classes), p=mean / mean.sum()))


def _new_store(rules: int, keys: int) -> RuleStore:
    """Return an empty store for so many rules and keys, and for some more."""
    capacity = max(_CAPACITY, 2 * (rules + MOST_OF_A_WALK))
    slots = 4 * max(_CAPACITY, 1 << int(keys + MOST_OF_A_WALK).bit_length())
    return RuleStore(
        np.zeros(slots, dtype=np.uint64),
        np.zeros((capacity, RULE), dtype=np.int32),
        np.zeros((capacity, 2), dtype=np.int64),
        np.zeros(COUNTERS, dtype=np.int64),
        np.zeros(1, dtype=np.float64),
        np.zeros(2, dtype=np.uint64),
    )


def _enlarged(store: RuleStore) -> RuleStore:
    """Return the same rules in a store that is larger where it was too small."""
    keys, rules, counts = store.keys, store.rules, store.counts
    if len(keys) // 2 - store.counters[KNOWN] < MOST_OF_A_WALK:
        keys = np.zeros(2 * len(store.keys), dtype=np.uint64)
        fill(keys, store.keys)
    if len(rules) - store.counters[ROWS] < MOST_OF_A_WALK:
        rules, counts = np.vstack([rules, np.zeros_like(rules)]), np.vstack([counts, np.zeros_like(counts)])
    return store._replace(keys=keys, rules=rules, counts=counts)


# -- kernels: predictions of a rule -------------------------------------------------------------------

# A rule in an array of int64, as in a row of a `RuleTable`.
HEAD, VARIABLES, HEAD_CONSTANT, END_CONSTANT, LENGTH, BODY = 0, 1, 2, 3, 4, 5
RULE = BODY + LONGEST

# Edges that are looked at for an acyclic rule, at most.
_EDGES = 100_000


class Limits(NamedTuple):
    """How far to count.

    Parameters
    ----------
    pairs
        Distinct pairs of a cyclic rule, from each end.
    repeats
        So many pairs in a row that were seen before end the sampling of a cyclic rule.
    starts
        Walks of a cyclic rule, from each end.
    predictions
        Predictions of an acyclic rule.
    """

    pairs: int = 1000
    repeats: int = 5
    starts: int = 100_000
    predictions: int = 2000


class Scratch(NamedTuple):
    """Memory for counting: a set of pairs, a set of entities, both emptied by a new stamp; and a list of ends."""

    pairs: Longs
    pair_stamps: Longs
    stamps: Longs
    ends: Longs
    stamp: Longs
    random: Random


def new_scratch(entities: int, limits: Limits) -> Scratch:
    """Return memory for graphs of so many entities, and for these limits."""
    size = 4 << int(limits.pairs).bit_length()
    pairs, pair_stamps = np.zeros((2, size), dtype=np.int64)
    stamps, ends = np.zeros((2, entities + 1), dtype=np.int64)
    return Scratch(pairs, pair_stamps, stamps, ends, np.zeros(1, dtype=np.int64), np.zeros(2, dtype=np.uint64))


@kernel
def count(graph: WalkGraph, rule: Longs, limits: Limits, scratch: Scratch) -> Any:
    """Return a rule's predictions, its correct predictions, and how many edges were looked at."""
    if rule[LENGTH] == 0:
        row = _head_row(graph, rule)
        return graph.sizes[rule[HEAD]], _size(graph, row), np.int64(1)
    if rule[HEAD_CONSTANT] == NONE:
        return _count_cyclic(graph, rule, limits, scratch)
    if rule[END_CONSTANT] == NONE:
        return _count_ac2(graph, rule, limits, scratch)
    if rule[LENGTH] == 1:
        last = row_of(graph, rule[END_CONSTANT], rule[BODY] ^ 1)
        if _size(graph, last) <= limits.predictions:
            return _count_shared(graph, rule, last)
    return _count_ac1(graph, rule, limits, scratch)


@inlined
def _size(graph: WalkGraph, row: Any) -> Any:
    return graph.row_edge[row + 1] - graph.row_edge[row] if row >= 0 else np.int64(0)


@inlined
def _head_row(graph: WalkGraph, rule: Longs) -> Any:
    """Return the row of those for which the head of an acyclic rule is true."""
    direction = 0 if rule[VARIABLES] == OBJECT else 1
    return row_of(graph, rule[HEAD_CONSTANT], 2 * rule[HEAD] + direction)


# -- cyclic rules ----------------------------------------------------------------------------------


@kernel
def _count_cyclic(graph: WalkGraph, rule: Longs, limits: Limits, scratch: Scratch) -> Any:
    """Sample the body from both ends, and add up what was found."""
    predictions, correct, edges_seen = np.int64(0), np.int64(0), np.int64(0)
    search = new_search()
    for side in range(2):
        read_steps(search, rule, BODY, rule[LENGTH], side == 1)
        scratch.stamp[0] += 1
        distinct, repeats = np.int64(0), np.int64(0)
        for _ in range(limits.starts):
            if distinct == limits.pairs or repeats == limits.repeats:
                break
            x, y, steps = _body_walk(graph, search.steps, rule[LENGTH], scratch.random)
            edges_seen += steps
            if x < 0:
                continue
            if not _is_new(scratch, x * np.int64(graph.itself) + y):
                repeats += 1
                continue
            repeats = np.int64(0)
            distinct += 1
            if side == 1:
                x, y = y, x
            correct += row_holds(graph, row_of(graph, x, 2 * rule[HEAD]), y)
        predictions += distinct
    return predictions, correct, edges_seen


@inlined
def _body_walk(graph: WalkGraph, steps: Longs, length: Any, random: Random) -> Any:
    """Walk along a body; returns start and end, -1 where it leads nowhere, and how many steps were taken."""
    first, stop = graph.step_first[steps[0]], graph.step_stop[steps[0]]
    if first == stop:
        return np.int64(-1), np.int64(-1), 1
    edge = first + draw(random, stop - first)
    start, constant = np.int64(graph.source[edge]), np.int64(graph.end[edge])
    before = start
    for i in range(1, length):
        row = row_of(graph, constant, steps[i])
        if row < 0:
            return np.int64(-1), np.int64(-1), i
        first, stop = graph.row_edge[row], graph.row_edge[row + 1]
        following = np.int64(graph.end[first + draw(random, stop - first)])
        # With up to three steps there are no more constants than these to meet again.
        if following in (start, before):
            return np.int64(-1), np.int64(-1), i
        before, constant = constant, following
    return start, constant, length


@inlined
def _is_new(scratch: Scratch, pair: Any) -> Any:
    """Put a pair into the set; False if it was there."""
    mask = len(scratch.pairs) - 1
    slot = first_slot(pair, len(scratch.pairs))
    while scratch.pair_stamps[slot] == scratch.stamp[0]:
        if scratch.pairs[slot] == pair:
            return False
        slot = (slot + 1) & mask
    scratch.pairs[slot] = pair
    scratch.pair_stamps[slot] = scratch.stamp[0]
    return True


# -- acyclic rules ---------------------------------------------------------------------------------


@kernel
def _count_shared(graph: WalkGraph, rule: Longs, last: Any) -> Any:
    """Count h(X,c) ⇐ b(X,d): two sorted rows, the shorter of which is looked up in the longer."""
    head = _head_row(graph, rule)
    c, d = rule[HEAD_CONSTANT], rule[END_CONSTANT]
    predictions, correct = _size(graph, last), np.int64(0)
    few, many = (head, last) if _size(graph, head) < predictions else (last, head)
    edges_seen = _size(graph, few)
    if edges_seen > 0:
        for edge in range(graph.row_edge[few], graph.row_edge[few + 1]):
            constant = np.int64(graph.end[edge])
            correct += constant != c and constant != d and row_holds(graph, many, constant)
    predictions -= row_holds(graph, last, c)
    if c != d:
        predictions -= row_holds(graph, last, d)
    return predictions, correct, edges_seen + 1


@kernel
def _count_ac1(graph: WalkGraph, rule: Longs, limits: Limits, scratch: Scratch) -> Any:
    """Follow the body back from its end constant, and count the distinct X."""
    head, constant = _head_row(graph, rule), rule[HEAD_CONSTANT]
    search = new_search()
    read_steps(search, rule, BODY, rule[LENGTH], True)
    row = row_of(graph, rule[END_CONSTANT], search.steps[0])
    predictions, correct, edges_seen = np.int64(0), np.int64(0), np.int64(1)
    if row < 0:
        return predictions, correct, edges_seen
    # Too many to see all: begin anywhere, not with those whose names come first.
    first, stop = graph.row_edge[row], graph.row_edge[row + 1]
    middle = first + draw(scratch.random, stop - first)
    scratch.stamp[0] += 1
    for part in range(2):
        begin_search(search, rule[END_CONSTANT], first if part else middle, middle if part else stop)
        enough, most = limits.predictions - predictions, _EDGES - edges_seen
        count, seen = find_ends(
            graph, search, rule[LENGTH], constant, enough, most, scratch.stamps, scratch.stamp[0], scratch.ends
        )
        edges_seen += seen
        predictions += count
        if head >= 0:
            for number in range(count):
                correct += row_holds(graph, head, scratch.ends[number])
    return predictions, correct, edges_seen


@kernel
def _count_ac2(graph: WalkGraph, rule: Longs, limits: Limits, scratch: Scratch) -> Any:
    """Go through the X with which the body begins, and count those for which it goes on to its end."""
    head, constant = _head_row(graph, rule), rule[HEAD_CONSTANT]
    first, stop = graph.row_first[rule[BODY]], graph.row_first[rule[BODY] + 1]
    search = new_search()
    read_steps(search, rule, BODY, rule[LENGTH], False)
    size = stop - first
    predictions, correct, edges_seen = np.int64(0), np.int64(0), np.int64(1)
    if size == 0:
        return predictions, correct, edges_seen
    offset = draw(scratch.random, size)
    for i in range(size):
        if predictions == limits.predictions or edges_seen >= _EDGES:
            break
        row = first + (i + offset) % size
        x = np.int64(graph.source[graph.row_edge[row]])
        edges_seen += 1
        if x == constant or x == graph.itself:
            continue
        begin_search(search, x, graph.row_edge[row], graph.row_edge[row + 1])
        scratch.stamp[0] += 1
        most = _EDGES - edges_seen
        count, seen = find_ends(
            graph, search, rule[LENGTH], constant, 1, most, scratch.stamps, scratch.stamp[0], scratch.ends
        )
        edges_seen += seen
        predictions += count
        if count:
            correct += row_holds(graph, head, x)
    return predictions, correct, edges_seen


Keys = npt.NDArray[np.uint64]

# A key that no rule has: an empty slot.
_EMPTY = np.uint64(0)


@inlined
def key_of(rule: Longs, entities: Any, relations: Any) -> Any:
    """Pack a rule into 64 bits.

    The key is a number whose digits are the rule's parts, all of them above 0, so that different rules have
    different keys as long as it does not overflow; three atoms and two constants of a very large vocabulary
    do. Then it is a hash, and one rule in some 10¹³ may be taken for another one.
    """
    steps = np.uint64(2 * relations + 1)
    constants = np.uint64(entities + 2)
    key = np.uint64(rule[HEAD] + 1)
    for i in range(rule[LENGTH]):
        key = key * steps + np.uint64(rule[BODY + i] + 1)
    if rule[VARIABLES] != BOTH:
        key = key * constants + np.uint64(rule[HEAD_CONSTANT] + 1)
        key = key * constants + np.uint64(rule[END_CONSTANT] + 1)
    key = key * np.uint64(3) + np.uint64(rule[VARIABLES])
    return key if key != _EMPTY else np.uint64(1)


@inlined
def add_key(keys: Keys, key: Any) -> Any:
    """Put a key into the set, which must not be full; False if it was there."""
    mask = np.uint64(len(keys) - 1)
    slot = random_bits(key, 0) & mask
    while keys[slot] != _EMPTY:
        if keys[slot] == key:
            return False
        slot = (slot + np.uint64(1)) & mask
    keys[slot] = key
    return True


@kernel
def fill(keys: Keys, others: Keys) -> None:
    """Put all keys of another set, or list, into a set."""
    for key in others:
        if key != _EMPTY:
            add_key(keys, key)


# Rules that one walk yields, at most.
MOST_OF_A_WALK = 3

# How a call ends: the batch is done, or the `RuleStore` is full.
DONE, FULL = 0, 1

# Indices into `RuleStore.counters`: rules kept, rules looked at, and of this batch: edges seen, walks, and the last
# walk that led to a rule which was kept.
ROWS, KNOWN, WORK, WALKS, LAST_KEPT = 0, 1, 2, 3, 4
COUNTERS = 5

# Drawing a head costs as much as this many edges: it may be anywhere in memory.
_DRAWING = 10


class LeastCounts(NamedTuple):
    """What a rule must reach to be kept; a zero rule needs more correct predictions."""

    correct: int
    zero_correct: int
    confidence: float


class RuleStore(NamedTuple):
    """The rules that were kept, and the keys of all that were looked at.

    Parameters
    ----------
    keys
        uint64[power of 2], the set of all rules that were looked at.
    rules
        int32[capacity, RULE], the rules that were kept.
    counts
        int64[capacity, 2], their predictions and correct predictions.
    counters
        int64[COUNTERS]: see above.
    reward
        float64[1], what the batch has earned.
    random
        uint64[2], the batch's salt and counter.
    """

    keys: Keys
    rules: Ids
    counts: Longs
    counters: Longs
    reward: npt.NDArray[np.float64]
    random: Random


@kernel
def run_batch(
    graph: WalkGraph,
    closed: bool,
    length: int,
    edge_budget: int,
    idle: int,
    salt: Any,
    thresholds: LeastCounts,
    limits: Limits,
    scratch: Scratch,
    store: RuleStore,
) -> int:
    """Walk until so many edges were looked at, or so many walks in a row have led to no new rule.

    Parameters
    ----------
    graph
        Where to walk.
    closed, length
        The class of walk.
    edge_budget
        Edges to look at. So a batch ends at the same walk everywhere, after about the same time.
    idle
        Walks without a new rule that is kept after which the batch ends.
    salt
        What the sampling of predictions depends on, besides the rule.
    thresholds, limits, scratch, store
        See there.
    """
    walk = np.zeros(WALK_SIZE, dtype=np.int64)
    rule = np.zeros(RULE, dtype=np.int64)
    counters = store.counters
    while counters[WORK] < edge_budget and counters[WALKS] - counters[LAST_KEPT] < idle:
        fewest = min(len(store.rules) - counters[ROWS], len(store.keys) // 2 - counters[KNOWN])
        if fewest < MOST_OF_A_WALK:
            return FULL
        counters[WALKS] += 1
        counters[WORK] += length + _DRAWING
        ended = (
            closed_walk(graph, length, store.random, walk) if closed else open_walk(graph, length, store.random, walk)
        )
        if not ended:
            continue
        for which in range(MOST_OF_A_WALK):
            is_rule = (
                generalise_closed(graph, walk, length, which, rule)
                if closed
                else generalise_open(graph, walk, length, which, rule)
            )
            if is_rule and not _is_trivial(rule):
                _consider(graph, rule, salt, thresholds, limits, scratch, store)
    return DONE


@inlined
def _consider(
    graph: WalkGraph,
    rule: Longs,
    salt: Any,
    thresholds: LeastCounts,
    limits: Limits,
    scratch: Scratch,
    store: RuleStore,
) -> None:
    """Count a rule that was not looked at before, and keep it if it is good enough."""
    key = key_of(rule, graph.itself, len(graph.sizes))
    if not add_key(store.keys, key):
        return
    store.counters[KNOWN] += 1
    # The same rule is counted alike whenever and however it is found.
    scratch.random[0] = random_bits(salt, key)
    scratch.random[1] = 0
    predictions, correct, edges_seen = count(graph, rule, limits, scratch)
    store.counters[WORK] += edges_seen
    least = thresholds.correct if rule[LENGTH] else thresholds.zero_correct
    if correct < least or correct < thresholds.confidence * predictions:
        return
    row = store.counters[ROWS]
    for i in range(RULE):
        store.rules[row, i] = rule[i]
    store.counts[row, 0] = predictions
    store.counts[row, 1] = correct
    store.counters[ROWS] += 1
    store.counters[LAST_KEPT] = store.counters[WALKS]
    store.reward[0] += correct * (correct / predictions) / 2.0 ** (rule[LENGTH] - 1)


# -- generalisation --------------------------------------------------------------------------------


@kernel
def generalise_closed(graph: WalkGraph, walk: Longs, length: int, which: int, rule: Longs) -> bool:
    """Make a rule of a closed walk: 0 the cyclic one; of length 1 also 1: h(X,c) ⇐ b(X,c), 2: its mirror."""
    loop = walk[NODES] == graph.itself
    if which > 0 and length > 1:
        return False
    if loop and which != 1:
        return False
    _clear(rule, walk[RELATION], length)
    turned = walk[TURNED]
    if which == 0:
        rule[VARIABLES] = BOTH
        for i in range(length):
            # The body leads from the head's second constant to its first: if the head was not turned,
            # from Y to X.
            rule[BODY + i] = walk[STEPS + i] if turned else walk[STEPS + length - 1 - i] ^ 1
        return True
    # Either constant of the head stays. The walk's step leads from the second to the first.
    kept = NODES if which == 1 else NODES + 1
    subject_stays = (kept == NODES) != (turned == 1)
    rule[VARIABLES] = OBJECT if subject_stays else SUBJECT
    rule[HEAD_CONSTANT] = walk[kept]
    rule[END_CONSTANT] = walk[kept]
    rule[BODY] = walk[STEPS] if which == 1 else walk[STEPS] ^ 1
    _straighten(graph, rule)
    return True


@kernel
def generalise_open(graph: WalkGraph, walk: Longs, length: int, which: int, rule: Longs) -> bool:
    """Make a rule of an open walk: 0 AC1, or the zero rule of a walk without steps; 1 AC2."""
    last = walk[NODES + length + 1]
    if which > 1 or (which == 1 and length == 0):
        return False
    if length == 0 and walk[NODES] == graph.itself:
        return False
    if which == 1 and (last == graph.itself or walk[STEPS + length - 1] >> 1 == graph.type_relation):
        # Whether there is any type, or any loop, is no atom of a rule.
        return False
    _clear(rule, walk[RELATION], length)
    rule[VARIABLES] = SUBJECT if walk[TURNED] else OBJECT
    rule[HEAD_CONSTANT] = walk[NODES]
    for i in range(length):
        rule[BODY + i] = walk[STEPS + i]
    if which == 0 and length > 0:
        rule[END_CONSTANT] = last
    _straighten(graph, rule)
    return True


@inlined
def _clear(rule: Longs, head: Any, length: Any) -> None:
    rule[HEAD] = head
    rule[HEAD_CONSTANT] = NONE
    rule[END_CONSTANT] = NONE
    rule[LENGTH] = length
    for i in range(LONGEST):
        rule[BODY + i] = NONE


@inlined
def _straighten(graph: WalkGraph, rule: Longs) -> None:
    """Write a loop one way: h(X,i) and h(i,X) are both h(X,X)."""
    if rule[HEAD_CONSTANT] == graph.itself:
        rule[VARIABLES] = SUBJECT
    if rule[END_CONSTANT] == graph.itself:
        rule[BODY + rule[LENGTH] - 1] &= -2


@inlined
def _is_trivial(rule: Longs) -> Any:
    """Say whether the head is in the body."""
    if rule[LENGTH] != 1 or rule[HEAD_CONSTANT] != rule[END_CONSTANT]:
        return False
    return rule[BODY] == 2 * rule[HEAD] + (1 if rule[VARIABLES] == OBJECT else 0)
