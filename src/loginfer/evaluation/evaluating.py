"""Evaluating a system on a benchmark: fit, predict, rank, measure."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loginfer.benchmark.values import Benchmark
from loginfer.evaluation.contender import Contender, contender, contender_of
from loginfer.evaluation.measures import Measures, Wanted, measure
from loginfer.evaluation.steps import Steps
from loginfer.evaluation.thresholds import Criterion
from loginfer.evaluation.values import Predictions, Protocol, Ranks, Tie
from loginfer.evaluation.watching import CHECKPOINT_SECONDS, Progress
from loginfer.evaluation.work import Curve, Work
from loginfer.systems.interface import Arrays, System
from loginfer.systems.view import choose_method

__all__ = ["Evaluation", "Outcome", "answer", "evaluate", "evaluate_contender", "evaluate_scores"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a system said about a benchmark, before any metric.

    Parameters
    ----------
    predictions, ranks
        Scores and ranks.
    curve
        The learning curve, if its learning was watched.
    weights
        The learned weights, if they can be written down.
    seconds, cpu_seconds
        How long each step took, and how much processor time they took together.
    notes
        What a user should know.
    """

    predictions: Predictions
    ranks: list[Ranks]
    curve: Curve = field(default_factory=list)
    weights: Arrays | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a system did on a benchmark.

    Parameters
    ----------
    contender
        The system with its settings.
    benchmark
        The benchmark.
    method
        Whose negatives; None for a benchmark without any.
    outcome
        What the system said.
    measures
        Every figure.
    """

    contender: Contender
    benchmark: Benchmark
    method: str | None
    outcome: Outcome
    measures: Measures

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """Classification metrics by name."""
        return self.measures.metrics

    @property
    def ranking(self) -> Mapping[str, Mapping[str, Any]]:
        """Ranking metrics by protocol and name."""
        return self.measures.ranking

    def as_dict(self) -> dict[str, Any]:
        """Return the evaluation as JSON values; figures are fractions between 0 and 1."""
        ready = self.contender
        return answer(
            ready.name, self.benchmark.name, ready.seed, self.method, ready.settings, self.measures.as_dict()
        )

    def __repr__(self) -> str:
        from loginfer.evaluation.evaluation_html import plain

        return f"Evaluation({plain(self.as_dict())})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.evaluation.evaluation_html import evaluation_fragment

        return evaluation_fragment(self.as_dict())


def answer(
    system: str,
    benchmark: str,
    seed: int,
    method: str | None,
    settings: Mapping[str, Any],
    figures: Mapping[str, Any],
) -> dict[str, Any]:
    """Return who did how well as JSON values, in the order in which people look for it."""
    last = ("tie", "thresholds", "notes", "diagnosis", "breakdown")
    return {
        "system": system,
        "benchmark": benchmark,
        "seed": seed,
        **{key: figures[key] for key in ("threshold", "metrics", "ranking")},
        "negatives": method,
        "settings": dict(settings),
        **{key: figures[key] for key in last},
    }


def evaluate(
    benchmark: Benchmark,
    system: System | str,
    *,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    tuned: bool = True,
    method: str | None = None,
    threshold: str | float = "global",
    criterion: Criterion = "accuracy",
    protocols: Sequence[Protocol] = ("filtered", "given"),
    tie: Tie = "realistic",
    diagnosis: bool = True,
    out: str | Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate a system on a benchmark.

    Parameters
    ----------
    benchmark
        The benchmark.
    system
        A system, or the name of one (see `loginfer systems list`).
    settings
        Settings by name, for a system given by its name.
    seed
        For a system given by its name, if it has a seed.
    tuned
        Whether to use the settings that were tuned for the benchmark's graph.
    method
        Whose negatives, if the benchmark has several.
    threshold
        `global`: one threshold for all triples, chosen on valid; `relation`: one for each relation; or a
        number.
    criterion
        What a threshold is chosen for: `accuracy`, `f1` or `balanced_accuracy`.
    protocols
        Whom test triples are ranked against: `filtered`, `given`, `unfiltered`; empty for no ranking.
    tie
        `optimistic`, `realistic` or `pessimistic`.
    diagnosis
        Whether to look for learned rules and shortcuts.
    out
        The run's folder (see `loginfer.evaluation.runs`); a run there that was killed goes on. By default
        nothing is written.
    force
        Replace a run that is there.
    progress
        Called now and then with what is done, how much of it, and how much there is.

    Examples
    --------
    >>> import loginfer
    >>> from loginfer.evaluation import evaluate
    >>> benchmark = loginfer.load_benchmark("wn-trian")           # doctest: +SKIP
    >>> evaluate(benchmark, "simpbl").metrics["accuracy"]           # doctest: +SKIP
    0.53
    """
    wanted = Wanted(threshold, criterion, tuple(protocols), tie, diagnosis)
    method = choose_method(benchmark, method)
    if isinstance(system, str):
        ready = contender(system, benchmark, settings, seed=seed, tuned=tuned)
    else:
        ready = contender_of(system, seed=seed)
    if out is None:
        return evaluate_contender(ready, benchmark, method, wanted, progress=progress)
    from loginfer.evaluation.running import run_contender

    return run_contender(ready, benchmark, method, wanted, out, force=force, progress=progress)


def evaluate_contender(
    contender: Contender,
    benchmark: Benchmark,
    method: str | None,
    wanted: Wanted,
    *,
    work: Work | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Evaluation:
    """Evaluate a system that is made ready.

    Parameters
    ----------
    contender, benchmark, method, wanted
        Who, on what, with whose negatives, and which figures.
    work
        Where an unfinished run keeps what is done; what is found there is not done again.
    progress
        Who shows how far the work is.
    checkpoint_seconds
        How often a checkpoint is due.
    """
    started = time.process_time()
    steps = Steps(contender, benchmark, method, work, progress, checkpoint_seconds)
    predictions = steps.predictions()
    notes: list[str] = []
    ranks = steps.ranks(predictions, wanted.protocols, notes)
    measures = steps.timed("measure", lambda: measure(benchmark, predictions, ranks, wanted, notes=notes))
    weights = steps.weights()  # kept ones come with their learning curve
    cpu = time.process_time() - started
    outcome = Outcome(predictions, ranks, steps.curve, weights, steps.seconds, cpu, tuple(notes))
    return Evaluation(contender, benchmark, method, outcome, measures)


def evaluate_scores(
    predictions: Predictions,
    benchmark: Benchmark,
    wanted: Wanted,
    *,
    name: str = "scores",
    settings: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Evaluate scores that were read from a file; they rank against the given negatives only."""
    from loginfer.evaluation.ranking import left_out, rank

    notes = []
    protocols = tuple(protocol for protocol in wanted.protocols if protocol == "given")
    if protocols != wanted.protocols:
        notes.append("scores of the labelled triples alone do not rank them against all candidates")
    notes += left_out(benchmark, protocols).values()
    ranks = rank(None, benchmark, method=predictions.method, protocols=protocols, predictions=predictions)
    measures = measure(benchmark, predictions, ranks, wanted, notes=notes)
    outcome = Outcome(predictions, ranks, notes=tuple(notes))
    return Evaluation(Contender(name, None, settings or {}), benchmark, predictions.method, outcome, measures)
