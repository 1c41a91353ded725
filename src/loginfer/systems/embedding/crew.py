"""Who learns from the batches: one worker, or several that take turns by phases; the bits are the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.systems.embedding.phases import Batch, Spare, add, look, step, sum_in_order
from loginfer.systems.embedding.state import Data, Loss, Model, Weights, Workspace
from loginfer.systems.embedding.steps import run_batches
from loginfer.systems.embedding.system import EmbeddingSystem

__all__ = ["Crew", "Lesson"]

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is learned from in one go: some positives, in batches.

    Parameters
    ----------
    data
        The positives, and what their negatives are made of.
    order, pairing
        The positives in the order of learning, and the explicit negative that goes with each place.
    salt
        64 random bits.
    first_step, rates
        The step of batch 0, counted from 1, and the learning rate of each batch.
    """

    data: Data
    order: Places
    pairing: Places
    salt: np.uint64
    first_step: int
    rates: npt.NDArray[np.float64]


class Crew:
    """The workers of one training, with the room that they need.

    Parameters
    ----------
    system
        Its settings.
    weights
        What has the shape of the weights that they will learn.
    """

    def __init__(self, system: EmbeddingSystem, weights: Weights) -> None:
        self._system = system
        self._workspaces = [Workspace.of(system, weights) for _ in range(system.workers)]
        if system.workers > 1:
            self._batch = Batch.of(system)
            self._spares = [Spare.of(system) for _ in range(system.workers)]
            self._barrier = threading.Barrier(system.workers)

    def learn(self, lesson: Lesson, weights: Weights, start: int, end: int) -> float:
        """Learn from the batches start to end of a lesson; returns the sum of the positives' losses."""
        if len(self._workspaces) == 1:
            return self._alone(lesson, weights, np.arange(start, end))
        workers = len(self._workspaces)
        self._barrier.reset()
        with ThreadPoolExecutor(workers) as pool:
            try:
                shares = [pool.submit(self._together, lesson, weights, start, end, w) for w in range(workers)]
                wait(shares)
            except BaseException:  # somebody pressed Ctrl-C, or there is no thread for one of them
                self._barrier.abort()
                raise
        failed = [error for error in (share.exception() for share in shares) if error is not None]
        if failed:
            # Whoever waited for the one that failed only says so.
            raise next((e for e in failed if not isinstance(e, threading.BrokenBarrierError)), failed[0])
        return float(shares[0].result())

    def _alone(self, lesson: Lesson, weights: Weights, batches: Places) -> float:
        system = self._system
        return float(
            run_batches(
                Model.of(system),
                Loss.of(system),
                weights,
                lesson.data,
                self._workspaces[0],
                lesson.order,
                lesson.pairing,
                lesson.salt,
                system.batch,
                batches,
                lesson.first_step,
                lesson.rates,
            )
        )

    def _together(self, lesson: Lesson, weights: Weights, start: int, end: int, worker: int) -> float:
        """Do one worker's part."""
        model, loss = Model.of(self._system), Loss.of(self._system)
        batch, spare, work = self._batch, self._spares[worker], self._workspaces[worker]
        workers, size = len(self._workspaces), self._system.batch
        total = 0.0
        for b in range(start, end):
            first, last = b * size, min((b + 1) * size, len(lesson.order))
            count = last - first
            mine = (first + count * worker // workers, first + count * (worker + 1) // workers)
            self._phase(
                look, model, loss, weights, lesson.data, batch, spare, lesson.order, lesson.pairing,
                lesson.salt, first, *mine,
            )  # fmt: skip
            self._phase(add, model, weights, batch, work, spare, count, worker, workers)
            total = sum_in_order(total, batch.losses[:count])
            self._phase(step, model, loss, weights, work, count, lesson.rates[b], lesson.first_step + b)
        return total

    def _phase(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do one's part of a phase, and wait for the others."""
        try:
            work(*arguments)
        except BaseException:
            self._barrier.abort()
            raise
        self._barrier.wait()
