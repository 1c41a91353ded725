"""The steps of an evaluation up to its ranks; what is kept of an earlier try is not done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from loginfer.benchmark.values import Benchmark
from loginfer.evaluation.contender import Contender
from loginfer.evaluation.predictions import predict
from loginfer.evaluation.values import Predictions, Protocol, Ranks
from loginfer.evaluation.watching import Progress, RunWatch
from loginfer.evaluation.work import Curve, Work
from loginfer.systems.interface import POSITIONS, Arrays, Scorer

__all__ = ["Steps"]

T = TypeVar("T")


class Steps:
    """The steps of one evaluation.

    Parameters
    ----------
    contender, benchmark, method
        Who, on what, with whose negatives.
    work
        Where results are kept and looked for; None to keep nothing.
    progress
        Who shows how far the work is.
    checkpoint_seconds
        How often a checkpoint is due.
    """

    def __init__(
        self,
        contender: Contender,
        benchmark: Benchmark,
        method: str | None,
        work: Work | None,
        progress: Progress | None,
        checkpoint_seconds: float,
    ) -> None:
        self._contender = contender
        self._benchmark = benchmark
        self._method = method
        self._work = work
        self._progress = progress
        self._watch = RunWatch(work, progress, checkpoint_seconds)
        self._scorer: Scorer | None = None
        self._weights: Arrays | None = None
        self._predicted = False
        self.seconds: dict[str, float] = {}

    @property
    def curve(self) -> Curve:
        """The learning curve so far."""
        return self._watch.curve

    def weights(self) -> Arrays | None:
        """Return the learned weights, if they can be written down."""
        if self._scorer is None:
            self._take_up()
        return self._weights

    def scorer(self) -> Scorer:
        """Return the fitted system."""
        if self._scorer is None:
            self._scorer = self._restored() or self._fitted()
        return self._scorer

    def _restored(self) -> Scorer | None:
        """Return what the weights that are kept give back, if there are any."""
        kept = self._take_up()
        return None if kept is None else self._contender.restore(self._benchmark, self._method, kept)

    def _take_up(self) -> Arrays | None:
        """Return the weights that are kept, with which comes their learning curve."""
        found = self._work.trained() if self._work is not None and self._contender.resumable else None
        if found is not None:
            self._weights, self._watch.curve = found
        return self._weights

    def _fitted(self) -> Scorer:
        ready = self._contender
        scorer = self.timed("fit", lambda: ready.fit(self._benchmark, self._method, self._watch))
        self._weights = ready.arrays(scorer)
        if self._weights is not None and self._work is not None:
            self._work.keep_trained(self._weights, self.curve)
        return scorer

    def predictions(self) -> Predictions:
        """Return the scores of the labelled triples."""
        kept = None if self._work is None else self._work.predictions(self._benchmark, self._method)
        if kept is not None:
            self._predicted = True
            return kept
        scorer = self.scorer()
        made = self.timed("predict", lambda: predict(scorer, self._benchmark, self._method))
        if self._weights is not None:
            self._keep_predictions(made)
        return made

    def _keep_predictions(self, predictions: Predictions) -> None:
        if self._work is not None and not self._predicted:
            self._work.keep_predictions(predictions, self._benchmark)
            self._predicted = True

    def ranks(self, predictions: Predictions, protocols: Sequence[Protocol], notes: list[str]) -> list[Ranks]:
        """Return the ranks of the test triples."""
        from loginfer.evaluation.ranking import left_out, rank

        benchmark, method = self._benchmark, self._method
        notes += left_out(benchmark, protocols).values()
        kept = None if self._work is None or not self._predicted else self._work.ranks()
        if kept is not None:
            return kept
        scorer = None if set(protocols) <= {"given"} else self.scorer()
        made = self.timed(
            "rank",
            lambda: rank(
                scorer, benchmark, method=method, protocols=protocols, predictions=predictions,
                progress=self._progress,
            ),
        )  # fmt: skip
        made.sort(key=lambda found: (found.protocol, POSITIONS.index(found.position)))
        if self._work is not None:
            self._work.keep_ranks(made, benchmark)
        # A scorer without weights cannot be given back: what it said is kept together, or not at all.
        self._keep_predictions(predictions)
        return made

    def timed(self, what: str, work: Callable[[], T]) -> T:
        """Do something and keep in mind how long it took."""
        start = time.perf_counter()
        done = work()
        self.seconds[what] = time.perf_counter() - start
        return done
