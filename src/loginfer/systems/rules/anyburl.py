"""AnyBURL: rules generalised from random walks, found anytime.

Which class of walk comes next, the store of rules, what has been found; from the kernels' rows to mined rules; and
what AnyBURL's rules are worth when they are applied, which is less than their files say.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import Constant, Rule, ScoredRule, Variable
from loginfer.randomness import generator, salt
from loginfer.settings import setting
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules import anyburl_kernels as kernels
from loginfer.systems.rules.mined import BOTH, LONGEST, NONE, MinedRules, Miner, Mining, RuleTable
from loginfer.systems.rules.texts import named_atoms
from loginfer.systems.rules.walks import Ids, walk_graph

if TYPE_CHECKING:
    from loginfer.systems.rules.scorer import RuleScorer


# As AnyBURL has them.
PSEUDO_COUNT = 5.0
AC2_WEIGHT = 0.1
ZERO_WEIGHT = 0.01


def applied_confidence(
    table: RuleTable, *, pseudo: float = PSEUDO_COUNT, ac2: float = AC2_WEIGHT, zero: float = ZERO_WEIGHT
) -> npt.NDArray[np.float64]:
    """Return float64[m]: correct / (predictions + pseudo), times a weight for rules that say little.

    A rule without counts, as a file may hold, keeps the confidence it came with, weighted likewise.

    Parameters
    ----------
    table
        The rules, with the counts and confidences of AnyBURL's files.
    pseudo
        Wrong predictions that every rule is taken to have besides those that were seen.
    ac2
        Weight of h(X,c) ⇐ b1(X,A), …, bn(·,B).
    zero
        Weight of h(X,c) with an empty body.
    """
    predictions = table.predictions.astype(np.float64)
    counted = table.predictions > 0
    confidence = np.where(counted, table.correct / np.where(counted, predictions + pseudo, 1.0), table.confidence)
    acyclic = table.variables != BOTH
    confidence[acyclic & (table.length > 0) & (table.end_constant == NONE)] *= ac2
    confidence[table.length == 0] *= zero
    return np.asarray(confidence, dtype=np.float64)


def applied(
    rules: MinedRules, *, pseudo: float = PSEUDO_COUNT, ac2: float = AC2_WEIGHT, zero: float = ZERO_WEIGHT
) -> MinedRules:
    """Return the same rules, with the confidences that `applied_confidence` gives them.

    Rules of other shapes, such as those about loops, are weighted by the same formula.
    """
    table = rules.paths
    weighted = replace(table, confidence=applied_confidence(table, pseudo=pseudo, ac2=ac2, zero=zero))
    return replace(rules, paths=weighted, others=_others(rules.others, pseudo, ac2))


def _others(rules: Sequence[ScoredRule], pseudo: float, ac2: float) -> tuple[ScoredRule, ...]:
    weighted = []
    for scored in rules:
        confidence = scored.confidence or 0.0
        if scored.predictions and scored.correct is not None:
            confidence = scored.correct / (scored.predictions + pseudo)
        weighted.append(replace(scored, confidence=confidence * (ac2 if _says_little(scored.rule) else 1.0)))
    return tuple(weighted)


def _says_little(rule: Rule) -> bool:
    """Say whether a rule is about one variable, and anything may be at the end of its path."""
    last = rule.atoms[-1]
    loop = last.subject == last.object
    return len(rule.head.variables) == 1 and not loop and not any(isinstance(t, Constant) for t in last.terms)


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
    min_support: int = setting(2, "correct predictions that a rule needs", least=1)
    min_zero_support: int = setting(101, "correct predictions that a zero rule needs", least=1)
    min_confidence: float = setting(0.0001, "confidence that a rule needs", least=0, most=1)
    aggregation: Literal["maximum", "noisy-or"] = setting(
        "maximum", "score of a triple: that of the best rule, ties broken by the next ones, or 1 − Π (1 − c)"
    )
    pseudo_count: float = setting(PSEUDO_COUNT, "wrong predictions added to those of each rule", least=0)
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
    itself = len(graph.entities)
    loops = (rules[:, kernels.HEAD_CONSTANT] == itself) | (rules[:, kernels.END_CONSTANT] == itself)
    table = RuleTable.of(
        head=rules[~loops, kernels.HEAD],
        variables=rules[~loops, kernels.VARIABLES],
        head_constant=rules[~loops, kernels.HEAD_CONSTANT],
        end_constant=rules[~loops, kernels.END_CONSTANT],
        body=rules[~loops, kernels.BODY :],
        predictions=counts[~loops, 0],
        correct=counts[~loops, 1],
        confidence=counts[~loops, 1] / counts[~loops, 0],
    )
    others = [
        ScoredRule(_about_loops(graph, row), int(predictions), int(correct), int(correct) / int(predictions))
        for row, (predictions, correct) in zip(rules[loops], counts[loops], strict=True)
    ]
    return MinedRules(table, tuple(others))


def _about_loops(graph: KnowledgeGraph, row: Ids) -> Rule:
    """Return the acyclic rule of a row, with a variable for the special constant: X, or that before the last."""
    itself, length = len(graph.entities), int(row[kernels.LENGTH])
    x, before_last = Variable("x"), Variable("xab"[length - 1])
    parts = [*row[: kernels.LENGTH].tolist(), *row[kernels.BODY :].tolist()]
    # An id of its own for the end.
    parts[3] += parts[3] == itself
    head, *body = named_atoms(parts, graph, x, x, {itself: x, itself + 1: before_last})
    return Rule(body, head)


# Edges to look at in a batch, and walks in a row without a new rule that end it before.
WORK = 2**21
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
        self._limits = kernels.Limits()
        self._scratch = kernels.scratch(len(graph.entities), self._limits)
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
        size = int(self._store.counters[kernels.ROWS])
        return as_rules(self._graph, self._store.rules[:size], self._store.counts[:size])

    def progress(self) -> tuple[str, int, int | None]:
        """Return how many batches, or seconds, are done."""
        if self._system.seconds:
            return "seconds", int(self._elapsed), int(np.ceil(self._system.seconds))
        return "batches", self._batch, self._system.steps

    def checkpoint(self) -> Checkpoint:
        """Return the rules, the keys of all that were looked at, and what the classes have earned."""
        size = int(self._store.counters[kernels.ROWS])
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
        kernels.fill(self._store.keys, keys)
        self._store.rules[: len(rules)] = rules
        self._store.counts[: len(rules)] = arrays["counts"]
        self._store.counters[kernels.ROWS], self._store.counters[kernels.KNOWN] = len(rules), len(keys)

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
        thresholds = kernels.LeastCounts(system.min_support, system.min_zero_support, system.min_confidence)
        self._store.counters[kernels.KNOWN + 1 :] = 0
        self._store.reward[0] = 0.0
        self._store.random[:] = salt(seed, "anyburl", "walks", self._batch), 0
        counting = np.uint64(salt(seed, "anyburl", "predictions"))
        fixed = (self._walks, closed, length, WORK, IDLE, counting, thresholds, self._limits, self._scratch)
        while kernels.run_batch(*fixed, self._store) == kernels.FULL:
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


def _new_store(rules: int, keys: int) -> kernels.RuleStore:
    """Return an empty store for so many rules and keys, and for some more."""
    capacity = max(_CAPACITY, 2 * (rules + kernels.MOST_OF_A_WALK))
    slots = 4 * max(_CAPACITY, 1 << int(keys + kernels.MOST_OF_A_WALK).bit_length())
    return kernels.RuleStore(
        np.zeros(slots, dtype=np.uint64),
        np.zeros((capacity, kernels.RULE), dtype=np.int32),
        np.zeros((capacity, 2), dtype=np.int64),
        np.zeros(kernels.COUNTERS, dtype=np.int64),
        np.zeros(1, dtype=np.float64),
        np.zeros(2, dtype=np.uint64),
    )


def _enlarged(store: kernels.RuleStore) -> kernels.RuleStore:
    """Return the same rules in a store that is larger where it was too small."""
    keys, rules, counts = store.keys, store.rules, store.counts
    if len(keys) // 2 - store.counters[kernels.KNOWN] < kernels.MOST_OF_A_WALK:
        keys = np.zeros(2 * len(store.keys), dtype=np.uint64)
        kernels.fill(keys, store.keys)
    if len(rules) - store.counters[kernels.ROWS] < kernels.MOST_OF_A_WALK:
        rules, counts = np.vstack([rules, np.zeros_like(rules)]), np.vstack([counts, np.zeros_like(counts)])
    return store._replace(keys=keys, rules=rules, counts=counts)
