"""AnyBURL at work: which class of walk comes next, room for the rules, what has been found."""

from __future__ import annotations

import time
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import generator, salt
from loginfer.kg import KnowledgeGraph
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules.anyburl import AnyBURL
from loginfer.systems.rules.anyburl_batch import (
    COUNTERS,
    FULL,
    KNOWN,
    MOST_OF_A_WALK,
    ROWS,
    Found,
    Thresholds,
    run_batch,
)
from loginfer.systems.rules.anyburl_counting import RULE, Limits, scratch
from loginfer.systems.rules.anyburl_known import fill
from loginfer.systems.rules.anyburl_rules import as_rules
from loginfer.systems.rules.values import MinedRules
from loginfer.systems.rules.walks_graph import walk_graph

__all__ = ["AnyBURLMining"]

A = TypeVar("A", bound=npt.NDArray[Any])

# Edges to look at in a batch, and walks in a row without a new rule that end it before.
WORK = 2**21
IDLE = 20_000
# Seconds between two signs of life.
_PAUSE = 0.5
# Rules that there is room for at first; keys have twice as many places as can be filled.
_ROOM = 2**12


class AnyBURLMining:
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
        self._scratch = scratch(len(graph.entities), self._limits)
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
        self._found = _found(0, 0)
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
        size = int(self._found.counters[ROWS])
        return as_rules(self._graph, self._found.rules[:size], self._found.counts[:size])

    def progress(self) -> tuple[str, int, int | None]:
        """Return how many batches, or seconds, are done."""
        if self._system.seconds:
            return "seconds", int(self._elapsed), int(np.ceil(self._system.seconds))
        return "batches", self._batch, self._system.steps

    def checkpoint(self) -> Checkpoint:
        """Return the rules, the keys of all that were looked at, and what the classes have earned."""
        size = int(self._found.counters[ROWS])
        arrays = {
            # In ascending order: the places depend on when the set grew.
            "keys": np.sort(self._found.keys[self._found.keys != 0]),
            "rules": self._found.rules[:size].copy(),
            "counts": self._found.counts[:size].copy(),
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
        self._found = _found(len(rules), len(keys))
        fill(self._found.keys, keys)
        self._found.rules[: len(rules)] = rules
        self._found.counts[: len(rules)] = arrays["counts"]
        self._found.counters[ROWS], self._found.counters[KNOWN] = len(rules), len(keys)

    def _goes_on(self) -> bool:
        if not len(self._graph):
            return False
        if self._system.seconds:
            return self._elapsed < self._system.seconds
        return self._batch < self._system.steps

    # -- batches --------------------------------------------------------------------------------

    def _run_batch(self) -> None:
        chosen = self._choose()
        closed, length = self.classes[chosen]
        system, seed = self._system, self._system.seed
        thresholds = Thresholds(system.min_support, system.min_zero_support, system.min_confidence)
        self._found.counters[KNOWN + 1 :] = 0
        self._found.reward[0] = 0.0
        self._found.random[:] = salt(seed, "anyburl", "walks", self._batch), 0
        counting = np.uint64(salt(seed, "anyburl", "predictions"))
        while (
            run_batch(
                self._walks,
                closed,
                length,
                WORK,
                IDLE,
                counting,
                thresholds,
                self._limits,
                self._scratch,
                self._found,
            )
            == FULL
        ):
            self._found = _grown(self._found)
        self._rewards[chosen] += self._found.reward[0]
        self._batches[chosen] += 1
        self._batch += 1

    def _choose(self) -> int:
        """Return the class of the next batch: any, or by what classes have earned so far."""
        random = generator(self._system.seed, "anyburl", "class", self._batch)
        mean = self._rewards / np.maximum(self._batches, 1)
        # A class that never had its turn may be as good as the best.
        mean[self._batches == 0] = mean.max()
        if random.random() < max(0.1, (5 - self._batch) / 5) or not mean.any():
            return int(random.integers(len(self.classes)))
        return int(random.choice(len(self.classes), p=mean / mean.sum()))


# -- room --------------------------------------------------------------------------------------------


def _found(rules: int, keys: int) -> Found:
    """Return room for so many rules and keys, and for some more."""
    room = max(_ROOM, 2 * (rules + MOST_OF_A_WALK))
    places = 4 * max(_ROOM, 1 << int(keys + MOST_OF_A_WALK).bit_length())
    return Found(
        np.zeros(places, dtype=np.uint64),
        np.zeros((room, RULE), dtype=np.int32),
        np.zeros((room, 2), dtype=np.int64),
        np.zeros(COUNTERS, dtype=np.int64),
        np.zeros(1, dtype=np.float64),
        np.zeros(2, dtype=np.uint64),
    )


def _grown(found: Found) -> Found:
    """Return the same with more room where there was too little."""
    rows, known = int(found.counters[ROWS]), int(found.counters[KNOWN])
    keys, rules, counts = found.keys, found.rules, found.counts
    if len(keys) // 2 - known < MOST_OF_A_WALK:
        keys = np.zeros(2 * len(found.keys), dtype=np.uint64)
        fill(keys, found.keys)
    if len(rules) - rows < MOST_OF_A_WALK:
        rules, counts = _longer(rules), _longer(counts)
    return found._replace(keys=keys, rules=rules, counts=counts)


def _longer(array: A) -> A:
    longer = np.zeros((2 * len(array), array.shape[1]), dtype=array.dtype)
    longer[: len(array)] = array
    return cast(A, longer)
