"""Fit, predict, rank, measure.

A system that takes part: made ready with its settings; mistakes in somebody else's code are explained.

The steps of an evaluation up to its ranks; what is kept of an earlier try is not done again.

Evaluating a system on a benchmark: fit, predict, rank, measure.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.folder.manifest import file_sum
from loginfer.errors import InputError, LogInferError
from loginfer.evaluation.metrics import Measures, MetricOptions, measure
from loginfer.evaluation.resuming import CHECKPOINT_SECONDS, Curve, RunMonitor, UnfinishedRun
from loginfer.evaluation.thresholds import Criterion
from loginfer.evaluation.values import Predictions, Protocol, Ranks, Tie, predict
from loginfer.progress import Progress
from loginfer.settings import configure, settings_of
from loginfer.systems.interface import (
    POSITIONS,
    Arrays,
    CandidateScorer,
    Position,
    Scorer,
    StoredScorer,
    System,
    Watch,
    WatchedSystem,
    choose_method,
    only_negatives,
    training_view,
)
from loginfer.systems.registry import SystemEntry, find_system, tuned_settings


@dataclass(frozen=True)
class ConfiguredSystem:
    """A system with its settings.

    Parameters
    ----------
    name
        What it is called.
    system
        The system, ready to be fitted.
    settings
        All its settings, those with default values too.
    tuned
        Names of the settings that were tuned for the benchmark's graph.
    given
        Names of the settings that the user gave.
    seed
        The seed of all that is random in it.
    """

    name: str
    system: Any
    settings: Mapping[str, Any] = field(default_factory=dict)
    tuned: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    seed: int = 0

    @property
    def code(self) -> str | None:
        """The sha256 of the file that somebody else's system stands in; None for ours, or without a file."""
        module = sys.modules.get(type(self.system).__module__)
        home = None if self.system is None or self._is_ours else getattr(module, "__file__", None)
        if home is None or type(self.system).__module__ == "__main__" or not Path(home).is_file():
            return None  # a script does more than to define a system, and may change for other reasons
        return file_sum(Path(home))

    @property
    def resumable(self) -> bool:
        """Whether its learning can be watched, resumed and written down."""
        if not isinstance(self.system, WatchedSystem):
            return False
        return self._is_ours or "watch" in inspect.signature(self.system.fit).parameters

    def fit(self, benchmark: Benchmark, method: str | None, watch: Watch) -> Scorer:
        """Fit the system to what it may see of a benchmark."""
        seen = self._view(benchmark, method)
        with self._blamed("fit"):
            made: Any = self.system.fit(seen, watch) if self.resumable else self.system.fit(seen)
        return self._checked(made)

    def restore(self, benchmark: Benchmark, method: str | None, arrays: Arrays) -> Scorer:
        """Return the scorer that a fitted one's weights describe."""
        with self._blamed("restore"):
            made: Any = self.system.restore(self._view(benchmark, method), arrays)
        return self._checked(made)

    def arrays(self, scorer: Scorer) -> Arrays | None:
        """Return the weights of a scorer that can be written down and given back."""
        if not self.resumable or not isinstance(scorer, StoredScorer):
            return None
        with self._blamed("arrays"):
            return scorer.arrays()

    def _view(self, benchmark: Benchmark, method: str | None) -> Benchmark:
        if getattr(self.system, "sees_everything", False):
            return dataclasses.replace(benchmark, negatives=only_negatives(benchmark, method))
        return training_view(benchmark, method)

    def _checked(self, made: Any) -> Scorer:
        if not callable(getattr(made, "score", None)):
            raise InputError(
                f"`{self.name}` gave {type(made).__name__}, which is no scorer: it has no method `score`",
                hint="`fit` must return an object with `score(triples)`",
            )
        return made if self._is_ours else _blamed_scorer(self, made)

    @property
    def _is_ours(self) -> bool:
        return type(self.system).__module__.startswith("loginfer.")

    @contextlib.contextmanager
    def _blamed(self, what: str) -> Iterator[None]:
        """Turn an error in somebody else's code into one clear message that says where it is."""
        try:
            yield
        except (LogInferError, MemoryError):
            raise
        except Exception as error:
            if self._is_ours:
                raise
            raise _failure(f"`{self.name}` failed in `{what}`", error, type(self.system)) from error


def configure_system(
    name: str | SystemEntry,
    benchmark: Benchmark,
    given: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    tuned: bool = True,
) -> ConfiguredSystem:
    """Make a system ready for a benchmark.

    Settings come from the user, then from what was tuned for the benchmark's graph, then from defaults.

    Parameters
    ----------
    name
        A system's name, in any case, or `module:Class`.
    benchmark
        The benchmark.
    given
        Settings by name; texts are read as what they should be.
    seed
        For systems that have a setting `seed`.
    tuned
        Whether tuned settings may be used.
    """
    entry = find_system(name) if isinstance(name, str) else name
    kind = entry.load()
    known = settings_of(kind)
    chosen = dict(given or {})
    better = tuned_settings(entry, benchmark) if tuned else {}
    better = {key: value for key, value in better.items() if key not in chosen}
    values = better | chosen
    if "seed" in known:
        values.setdefault("seed", seed)
    bare = ConfiguredSystem(entry.name, None)
    try:
        system = configure(kind, values)
        settings = _settings(system, values)
    except (LogInferError, MemoryError):
        raise
    except Exception as error:
        if kind.__module__.startswith("loginfer."):
            raise
        raise _failure(f"`{entry.name}` could not be made", error, kind) from error
    seed = int(settings.pop("seed", seed))
    return dataclasses.replace(
        bare, system=system, settings=settings, tuned=tuple(better), given=tuple(chosen), seed=seed
    )


def wrap_system(system: System, *, name: str | None = None, seed: int = 0) -> ConfiguredSystem:
    """Let a system take part that was made by hand."""
    if not callable(getattr(system, "fit", None)):
        raise InputError(
            f"{type(system).__name__} is not a system: it has no method `fit`",
            hint="a model that PyKEEN has trained becomes one by loginfer.pykeen.Trained(model)",
        )
    settings = _settings(system, {})
    seed = int(settings.pop("seed", seed))
    return ConfiguredSystem(name or type(system).__name__, system, settings, seed=seed)


def _settings(system: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of a system as JSON values, as far as it tells them."""
    found: dict[str, Any] = {}
    for name, setting in settings_of(type(system)).items():
        value = getattr(system, name, values.get(name, setting.default))
        if value is not inspect.Parameter.empty:
            plain = value is None or isinstance(value, bool | int | float | str)
            found[name] = value if plain else str(value)
    return found


# -- somebody else's code --------------------------------------------------------------------------


def _failure(what: str, error: Exception, kind: type[Any]) -> InputError:
    """Say where in a user's own file something failed."""
    home = getattr(sys.modules.get(kind.__module__), "__file__", None)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if home and Path(frame.filename) == Path(home)]
    frame = own[-1] if own else None  # none of it where the call itself does not fit
    return InputError(
        f"{what}: {type(error).__name__}: {error}",
        where=home if frame is None else f"{frame.filename}:{frame.lineno}",
        hint=None if frame is None or not frame.line else f"the line is: {frame.line}",
    )


class _BlamedScorer:
    """A user's scorer, whose errors are told with their place."""

    def __init__(self, configured: ConfiguredSystem, scorer: Any) -> None:
        self._configured = configured
        self._scorer = scorer

    def score(self, triples: Any) -> Any:
        with self._configured._blamed("score"):
            return self._scorer.score(triples)


class _BlamedCandidateScorer(_BlamedScorer):
    def score_candidates(self, triples: Any, position: Position, candidates: Any) -> Any:
        with self._configured._blamed("score_candidates"):
            return self._scorer.score_candidates(triples, position, candidates)


def _blamed_scorer(configured: ConfiguredSystem, scorer: Any) -> Scorer:
    kind = _BlamedCandidateScorer if isinstance(scorer, CandidateScorer) else _BlamedScorer
    wrapped = kind(configured, scorer)
    if isinstance(scorer, StoredScorer):
        wrapped.arrays = scorer.arrays  # type: ignore[attr-defined]
    return wrapped


T = TypeVar("T")


class Steps:
    """The steps of one evaluation.

    Parameters
    ----------
    configured, benchmark, method
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
        configured: ConfiguredSystem,
        benchmark: Benchmark,
        method: str | None,
        work: UnfinishedRun | None,
        progress: Progress | None,
        checkpoint_seconds: float,
    ) -> None:
        self._configured = configured
        self._benchmark = benchmark
        self._method = method
        self._work = work
        self._progress = progress
        self._watch = RunMonitor(work, progress, checkpoint_seconds)
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
        return None if kept is None else self._configured.restore(self._benchmark, self._method, kept)

    def _take_up(self) -> Arrays | None:
        """Return the weights that are kept, with which comes their learning curve."""
        found = self._work.trained() if self._work is not None and self._configured.resumable else None
        if found is not None:
            self._weights, self._watch.curve = found
        return self._weights

    def _fitted(self) -> Scorer:
        ready = self._configured
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
    configured
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

    configured: ConfiguredSystem
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
        ready = self.configured
        return answer(ready.name, self.benchmark.name, ready.seed, self.method, ready.settings, self.measures.as_dict())

    def __repr__(self) -> str:
        from loginfer.evaluation.notebook import plain

        return f"Evaluation({plain(self.as_dict())})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.evaluation.notebook import evaluation_fragment

        return evaluation_fragment(self.as_dict())


def answer(
    system: str, benchmark: str, seed: int, method: str | None, settings: Mapping[str, Any], figures: Mapping[str, Any]
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
    options = MetricOptions(threshold, criterion, tuple(protocols), tie, diagnosis)
    method = choose_method(benchmark, method)
    if isinstance(system, str):
        ready = configure_system(system, benchmark, settings, seed=seed, tuned=tuned)
    else:
        ready = wrap_system(system, seed=seed)
    if out is None:
        return evaluate_system(ready, benchmark, method, options, progress=progress)
    from loginfer.evaluation.runs import run_system

    return run_system(ready, benchmark, method, options, out, force=force, progress=progress)


def evaluate_system(
    configured: ConfiguredSystem,
    benchmark: Benchmark,
    method: str | None,
    options: MetricOptions,
    *,
    work: UnfinishedRun | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Evaluation:
    """Evaluate a system that is made ready.

    Parameters
    ----------
    configured, benchmark, method, options
        Who, on what, with whose negatives, and which figures.
    work
        Where an unfinished run keeps what is done; what is found there is not done again.
    progress
        Who shows how far the work is.
    checkpoint_seconds
        How often a checkpoint is due.
    """
    started = time.process_time()
    steps = Steps(configured, benchmark, method, work, progress, checkpoint_seconds)
    predictions = steps.predictions()
    notes: list[str] = []
    ranks = steps.ranks(predictions, options.protocols, notes)
    measures = steps.timed("measure", lambda: measure(benchmark, predictions, ranks, options, notes=notes))
    weights = steps.weights()  # kept ones come with their learning curve
    cpu = time.process_time() - started
    outcome = Outcome(predictions, ranks, steps.curve, weights, steps.seconds, cpu, tuple(notes))
    return Evaluation(configured, benchmark, method, outcome, measures)


def evaluate_scores(
    predictions: Predictions,
    benchmark: Benchmark,
    options: MetricOptions,
    *,
    name: str = "scores",
    settings: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Evaluate scores that were read from a file; they rank against the given negatives only."""
    from loginfer.evaluation.ranking import left_out, rank

    notes = []
    protocols = tuple(protocol for protocol in options.protocols if protocol == "given")
    if protocols != options.protocols:
        notes.append("scores of the labelled triples alone do not rank them against all candidates")
    notes += left_out(benchmark, protocols).values()
    ranks = rank(None, benchmark, method=predictions.method, protocols=protocols, predictions=predictions)
    measures = measure(benchmark, predictions, ranks, options, notes=notes)
    outcome = Outcome(predictions, ranks, notes=tuple(notes))
    return Evaluation(ConfiguredSystem(name, None, settings or {}), benchmark, predictions.method, outcome, measures)
