"""Evaluating a system on a benchmark: configure it, fit it, predict, rank, and measure.

`evaluate` is the public function. `evaluate_system` goes through the steps, without those that an unfinished run has
the outcome of. Errors in a user's own system are reported with the line of its file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import operator
import os
import re
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.folder.reading import load_benchmark
from loginfer.errors import InputError, LogInferError, caused_by_interruption
from loginfer.evaluation.metric_table import metric_titles
from loginfer.evaluation.metrics import Measures, MetricOptions, measure
from loginfer.evaluation.predictions import Predictions, Protocol, Ranks, Tie, predict
from loginfer.evaluation.resuming import CHECKPOINT_SECONDS, Curve, RunMonitor, UnfinishedRun
from loginfer.evaluation.thresholds import Criterion
from loginfer.files import file_sum
from loginfer.frames import to_frame
from loginfer.progress import Progress, ProgressChoice, shown
from loginfer.settings import configure, settings_of
from loginfer.systems.interface import (
    POSITIONS,
    Arrays,
    Scorer,
    StoredScorer,
    System,
    Watch,
    WatchedSystem,
    choose_method,
    only_negatives,
    training_view,
    with_own_arrays,
)
from loginfer.systems.registry import SystemEntry, find_system, object_at, published_figures, tuned_for, tuned_settings

if TYPE_CHECKING:
    from loginfer.evaluation.seeds import SeedSummary


@dataclass(frozen=True, slots=True)
class SystemOutcome:
    """What a system said about a benchmark, before any metric.

    Parameters
    ----------
    predictions, ranks
        Scores and ranks.
    curve
        The learning curve, if its learning was watched.
    weights
        The learned weights, if the system can save them.
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
    options
        Which figures were asked for.
    outcome
        What the system said.
    measures
        Every figure.
    """

    configured: ConfiguredSystem
    benchmark: Benchmark
    method: str | None
    options: MetricOptions
    outcome: SystemOutcome
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
        from loginfer.evaluation.runs import benchmark_sum

        about, benchmark = self.configured, self.benchmark
        system = (about.name, benchmark.name, about.seed, self.method, about.settings, about.settings_from)
        answer = as_answer(*system, self.measures)
        # Nothing is published about a benchmark with a manifest: that is one of ours.
        return answer if benchmark.manifest else with_published(answer, benchmark_sum(benchmark))

    def to_frame(self) -> Any:
        """Return a row for each figure, as `Evaluator.eval` calls them (see `loginfer.frames.to_frame`)."""
        return figures_frame(self.as_dict())

    def __repr__(self) -> str:
        from loginfer.evaluation.notebook import plain

        return f"Evaluation({plain(self.as_dict())})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.evaluation.notebook import evaluation_fragment

        return evaluation_fragment(self.as_dict())


def as_answer(
    system: str,
    benchmark: str,
    seed: int,
    method: str | None,
    settings: Mapping[str, Any],
    settings_from: Mapping[str, Any] | None,
    measures: Measures | Mapping[str, Any],
) -> dict[str, Any]:
    """Return who did how well as JSON values, in the order in which people look for it."""
    figures = measures.as_dict() if isinstance(measures, Measures) else measures
    return {
        "system": system,
        "benchmark": benchmark,
        "seed": seed,
        **{key: figures[key] for key in ("threshold", "metrics", "ranking")},
        "negatives": method,
        "settings": dict(settings),
        "settings_from": settings_from,
        **{key: figures[key] for key in ("tie", "thresholds", "notes", "diagnosis", "breakdown")},
        **{key: figures[key] for key in ("interval", "calibration") if key in figures},
    }


def with_published(answer: dict[str, Any], benchmark_sum: str) -> dict[str, Any]:
    """Add to an evaluation what is published about this system on this benchmark, if anything is."""
    published = published_figures(answer["system"], benchmark_sum)
    return {**answer, "published": published} if published and "filtered" in answer["ranking"] else answer


def final_figures(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of an evaluation by one name each, such as `filtered/c_mrr`; older files have fewer."""
    figures = {**answer["metrics"], "threshold": answer.get("threshold")}
    for protocol, ranking in answer["ranking"].items():
        figures |= {f"{protocol}/{name}": ranking[name] for name in metric_titles("ranking") if name in ranking}
    return figures


def figures_frame(answer: Mapping[str, Any]) -> Any:
    """Return a row for each figure; of several seeds the mean, deviation and interval."""
    figures, several = final_figures(answer), "seeds" in answer
    about = (answer["system"], answer["benchmark"], answer["negatives"])
    rows: list[tuple[Any, ...]] = [(*about, answer["seed"], *figure) for figure in figures.items()]
    columns: tuple[str, ...] = ("system", "benchmark", "negatives", "seed", "metric", "value")
    if several:
        deviation, interval = (final_figures(answer[key]) for key in ("deviation", "interval"))
        rows = [
            (*about, len(answer["seeds"]), name, mean, deviation[name], *(interval[name] or (None, None)))
            for name, mean in figures.items()
        ]
        columns = (*columns[:3], "seeds", *columns[4:], "deviation", "low", "high")
    return to_frame(columns, rows)


def evaluate(
    benchmark: Benchmark | str | Path,
    system: System | type[System] | str,
    *,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    seeds: int | Sequence[int] | None = None,
    tuned: bool = True,
    negatives: str | None = None,
    threshold: str | float = "global",
    criterion: Criterion = "accuracy",
    ranking: Sequence[Protocol] | Protocol = ("filtered",),
    tie: Tie = "realistic",
    diagnosis: bool = True,
    out: str | Path | None = None,
    force: bool = False,
    progress: ProgressChoice = None,
    callbacks: Any = (),
) -> Evaluation | SeedSummary:
    """Evaluate a system on a benchmark.

    Parameters
    ----------
    benchmark
        The benchmark, or its folder.
    system
        A system, its class, or the name of one (see `loginfer systems list`).
    settings
        Settings by name, for a system given by its name or class.
    seed
        For a system given by its name or class, if it has a seed.
    seeds
        Several seeds, or how many from `seed` on: a run each, and the mean with its interval.
    tuned
        Whether to use the settings that were tuned for the benchmark's graph.
    negatives
        Whose negatives, if the benchmark has several.
    threshold
        `global`: one threshold for all triples, chosen on valid; `relation`: one for each relation; or a
        number.
    criterion
        What a threshold is chosen for: `accuracy`, `f1` or `balanced_accuracy`.
    ranking
        Whom test triples are ranked against: `filtered`, `seen`, `given`, `unfiltered`; empty for no ranking.
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
        True for a bar; or called now and then with what is done, how much of it, and how much there is.
    callbacks
        Experiment trackers: objects with a method `curve`, called with each row of the learning curve as it comes,
        a method `finished`, called once with the figures by name, or both. As on the command line also classes of
        them, or `module:object`.

    Returns
    -------
    The evaluation; with `seeds` their summary.

    Examples
    --------
    >>> import loginfer
    >>> loginfer.evaluate("wn-trian", "simpbl").metrics["accuracy"]              # doctest: +SKIP
    0.53
    >>> loginfer.evaluate("wn-trian", "rotate", seeds=3, progress=True).to_frame()  # doctest: +SKIP
    """
    benchmark = load_benchmark(benchmark)
    with named_arguments():
        protocols: Any = (ranking,) if isinstance(ranking, str) else tuple(ranking)
        options = MetricOptions(threshold, criterion, protocols, tie, diagnosis)
        method = choose_method(benchmark, negatives)
        callbacks = trackers(callbacks)
    if not isinstance(settings or {}, Mapping):
        raise InputError(f"settings is a dictionary, not {settings!r}", hint="settings={'epochs': 20}")
    try:
        several = () if seeds is None else range(seed, seed + seeds) if isinstance(seeds, int) else seeds
        numbers = list(map(operator.index, several))
    except TypeError:
        raise InputError(f"seeds is a whole number or a list of them, not {seeds!r}") from None

    def configured(seed: int) -> ConfiguredSystem:
        if isinstance(system, str | type):
            return configure_system(system, benchmark, settings, seed=seed, tuned=tuned)
        if settings:
            raise InputError("settings are for a system given by its name or class", hint="give them to the class")
        return wrap_system(system if seeds is None else _with_seed(system, seed), seed=seed)

    result: Evaluation | SeedSummary
    with shown(progress) as show:
        training: dict[str, Any] = {"progress": show, "callbacks": callbacks}
        if seeds is not None:
            from loginfer.evaluation.seeds import SeedSummary, run_seeds

            result = SeedSummary(
                run_seeds(configured, numbers, benchmark, method, options, out, force=force, **training)
            )
        elif out is None:
            result = evaluate_system(configured(seed), benchmark, method, options, **training)
        else:
            from loginfer.evaluation.runs import run_system

            result = run_system(configured(seed), benchmark, method, options, out, force=force, **training)
    notify(callbacks, "finished", final_figures(result.as_dict()))
    return result


@contextlib.contextmanager
def named_arguments() -> Iterator[None]:
    """Let errors name the arguments that they are about as scripts do: `ranking`, not `--ranking`."""
    try:
        yield
    except LogInferError as error:
        error.where = error.where and error.where.removeprefix("--")
        error.hint = error.hint and re.sub(r"--(\w+) (\S+)", r"\1='\2'", error.hint)
        raise


def trackers(callbacks: Any) -> list[Any]:
    """Return experiment trackers, one or several, that are given as objects, classes or `module:object`."""
    several = callbacks if isinstance(callbacks, Iterable) and not isinstance(callbacks, str) else (callbacks,)
    made = []
    for given in several:
        tracker = object_at(given, "--callback") if isinstance(given, str) else given
        if isinstance(tracker, type):
            with _explained(f"the callback `{tracker.__name__}` could not be made", tracker):
                tracker = tracker()
        made.append(tracker)
    return made


def notify(callbacks: Sequence[Any], event: str, values: Mapping[str, Any]) -> None:
    """Tell callbacks that have a method of this name; figures that are not defined are left out."""
    for callback in callbacks:
        if (method := getattr(callback, event, None)) is not None:
            with _explained(f"the callback `{type(callback).__name__}` failed in `{event}`", type(callback)):
                method({name: value for name, value in values.items() if value is not None})


def evaluate_system(
    configured: ConfiguredSystem,
    benchmark: Benchmark,
    method: str | None,
    options: MetricOptions,
    *,
    unfinished: UnfinishedRun | None = None,
    progress: Progress | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    callbacks: Sequence[Any] = (),
) -> Evaluation:
    """Evaluate a configured system.

    Parameters
    ----------
    configured, benchmark, method, options
        Who, on what, with whose negatives, and which figures.
    unfinished
        Where an unfinished run keeps what is done; what is found there is not done again.
    progress
        Who shows how far the work is.
    checkpoint_seconds
        How often a checkpoint is due.
    callbacks
        Who is told the rows of the learning curve, as for `evaluate`.
    """
    from loginfer.evaluation.ranking import rank, ranking_notes

    started = cpu_clock()
    seconds: dict[str, float] = {}
    store = unfinished or UnfinishedRun()
    monitor = RunMonitor(store, progress, checkpoint_seconds, lambda row: notify(callbacks, "curve", row))
    weights, monitor.curve = (store.trained() if configured.resumable else None) or (None, [])

    @cache
    def scorer() -> Scorer:
        nonlocal weights
        if weights is not None:
            return configured.restore(benchmark, method, weights)
        with _timed(seconds, "fit"):
            fitted = configured.fit(benchmark, method, monitor)
        weights = configured.arrays(fitted)
        if weights is not None:
            store.keep_trained(weights, monitor.curve)
        return fitted

    predictions = store.predictions(benchmark, method)
    predictions_kept = predictions is not None
    if predictions is None:
        fitted = scorer()
        with _timed(seconds, "predict"):
            predictions = predict(fitted, benchmark, method)
        if weights is not None:
            store.keep_predictions(predictions, benchmark)
            predictions_kept = True

    notes = tuple(ranking_notes(benchmark, options.protocols))
    ranks = store.ranks() if predictions_kept else None
    if ranks is None:
        candidate_scorer = None if set(options.protocols) <= {"given"} else scorer()
        with _timed(seconds, "rank"):
            ranks = rank(
                candidate_scorer, benchmark,
                negatives=method, ranking=options.protocols, predictions=predictions, progress=progress,
            )  # fmt: skip
        ranks.sort(key=lambda part: (part.protocol, POSITIONS.index(part.position)))
        store.keep_ranks(ranks, benchmark)
        if not predictions_kept:
            # A scorer without weights cannot be restored: its predictions and ranks are kept together, or not at all.
            store.keep_predictions(predictions, benchmark)

    with _timed(seconds, "measure"):
        measures = measure(benchmark, predictions, ranks, options, notes=notes)
    cpu_seconds = cpu_clock() - started
    outcome = SystemOutcome(predictions, ranks, monitor.curve, weights, seconds, cpu_seconds, notes)
    return Evaluation(configured, benchmark, method, options, outcome, measures)


def cpu_clock() -> float:
    """Return the CPU seconds of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


@contextlib.contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[step] = time.perf_counter() - start


def evaluate_scores(
    predictions: Predictions,
    benchmark: Benchmark,
    options: MetricOptions,
    *,
    scorer: Scorer | None = None,
    name: str = "scores",
    settings: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Evaluate scores that were computed elsewhere.

    Parameters
    ----------
    predictions, benchmark, options
        The scores, what they are about, and which figures.
    scorer
        Who scores candidates; without one, test triples are ranked against the given negatives only.
    name, settings
        What the system is called, and what distinguishes it from others of that name.
    """
    from loginfer.evaluation.ranking import rank, ranking_notes

    notes: list[str] = []
    protocols = tuple(p for p in options.protocols if p == "given" or scorer is not None)
    if protocols != options.protocols:
        notes.append("scores of the labelled triples alone do not rank them against all candidates")
    notes += ranking_notes(benchmark, protocols)
    ranks = rank(scorer, benchmark, negatives=predictions.method, ranking=protocols, predictions=predictions)
    measures = measure(benchmark, predictions, ranks, options, notes=notes)
    configured = ConfiguredSystem(name, None, settings or {})
    outcome = SystemOutcome(predictions, ranks, notes=tuple(notes))
    return Evaluation(configured, benchmark, predictions.method, options, outcome, measures)


# -- systems with their settings --------------------------------------------------------------------


@dataclass(frozen=True)
class ConfiguredSystem:
    """A system with its settings.

    Parameters
    ----------
    name
        What it is called.
    system
        The system, ready to be fitted; None where only scores are known.
    settings
        All its settings, those with default values too.
    tuned
        Names of the settings that were tuned for the benchmark's graph.
    from_user
        Names of the settings that the user gave.
    seed
        The seed of all that is random in it.
    graph
        That graph.
    """

    name: str
    system: Any
    settings: Mapping[str, Any] = field(default_factory=dict)
    tuned: tuple[str, ...] = ()
    from_user: tuple[str, ...] = ()
    seed: int = 0
    graph: str | None = None

    @property
    def settings_from(self) -> dict[str, Any] | None:
        """Where settings come from that are not the defaults; None where only scores are known."""
        graph = {} if self.graph is None else {"graph": self.graph}
        return None if self.system is None else {"user": sorted(self.from_user), "tuned": sorted(self.tuned), **graph}

    @property
    def code(self) -> str | None:
        """The sha256 of the file of a user's own system; None for our systems, or without a file."""
        kind = type(self.system)
        home = _home(kind)
        # A script does more than define a system, and may change for other reasons.
        if self.system is None or _is_ours(kind) or kind.__module__ == "__main__" or home is None or not home.is_file():
            return None
        return file_sum(home)

    @property
    def resumable(self) -> bool:
        """Whether its learning can be watched and resumed, and its weights saved."""
        if not isinstance(self.system, WatchedSystem):
            return False
        return _is_ours(type(self.system)) or "watch" in inspect.signature(self.system.fit).parameters

    def fit(self, benchmark: Benchmark, method: str | None, monitor: Watch) -> Scorer:
        """Fit the system to what it may see of a benchmark."""
        view = self._view(benchmark, method)
        with self._explained("fit"):
            fitted: Any = self.system.fit(view, monitor) if self.resumable else self.system.fit(view)
            return self._checked(fitted)

    def restore(self, benchmark: Benchmark, method: str | None, arrays: Arrays) -> Scorer:
        """Return the scorer that a fitted one's weights describe."""
        with self._explained("restore"):
            fitted: Any = self.system.restore(self._view(benchmark, method), self._own(arrays))
            return self._checked(fitted)

    def arrays(self, scorer: Scorer) -> Arrays | None:
        """Return the weights of a scorer; None if they cannot be saved and restored."""
        return self._own(scorer.arrays()) if self.resumable and isinstance(scorer, StoredScorer) else None

    def _own(self, arrays: Arrays) -> Arrays:
        """Return weights that nobody else changes: a user's own system gets copies, and gives some."""
        return arrays if _is_ours(type(self.system)) else deepcopy(arrays)

    def _view(self, benchmark: Benchmark, method: str | None) -> Benchmark:
        if getattr(self.system, "sees_everything", False):
            view = dataclasses.replace(benchmark, negatives=only_negatives(benchmark, method))
        else:
            view = training_view(benchmark, method)
        return view if _is_ours(type(self.system)) else with_own_arrays(view)

    def _checked(self, fitted: Any) -> Scorer:
        """Return a scorer; errors in any method of a user's own scorer are explained."""
        if not callable(getattr(fitted, "score", None)):
            raise InputError(
                f"`{self.name}` gave {type(fitted).__name__}, which is no scorer: it has no method `score`",
                hint="`fit` must return an object with `score(triples)`",
            )
        if _is_ours(type(self.system)):
            return cast(Scorer, fitted)
        names = [name for name in ("score", "score_candidates", "arrays") if hasattr(fitted, name)]
        return cast(Scorer, SimpleNamespace(**{name: self._explained(name)(getattr(fitted, name)) for name in names}))

    def _explained(self, step: str) -> contextlib._GeneratorContextManager[None]:
        return _explained(f"`{self.name}` failed in `{step}`", type(self.system))


def configure_system(
    name: str | SystemEntry | type[System],
    benchmark: Benchmark,
    user_settings: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    tuned: bool = True,
) -> ConfiguredSystem:
    """Make a system ready for a benchmark.

    Settings come from the user, then from what was tuned for the benchmark's graph, then from defaults.

    Parameters
    ----------
    name
        A system's name, in any case, or `module:Class`; or the class.
    benchmark
        The benchmark.
    user_settings
        Settings by name; texts are read as what they should be.
    seed
        For systems that have a setting `seed`.
    tuned
        Whether tuned settings may be used.
    """
    if isinstance(name, type):
        _check_system(name, name)
        entry, kind = SystemEntry(name.__name__, "", name.__name__, "plug-in"), name
    else:
        entry = find_system(name) if isinstance(name, str) else name
        kind = entry.load()
    from_user = dict(user_settings or {})
    tuned_values = tuned_settings(entry, benchmark) if tuned else {}
    from_tuning = {key: value for key, value in tuned_values.items() if key not in from_user}
    values = from_tuning | from_user
    if "seed" in settings_of(kind):
        values.setdefault("seed", seed)
    with _explained(f"`{entry.name}` could not be made", kind):
        system = configure(kind, values)
        settings = _settings(system, values)
    seed = int(settings.pop("seed", seed))
    graph = tuned_for(entry, benchmark) if from_tuning else None
    return ConfiguredSystem(entry.name, system, settings, tuple(from_tuning), tuple(from_user), seed, graph)


def wrap_system(system: System, *, name: str | None = None, seed: int = 0) -> ConfiguredSystem:
    """Return a system that was made by hand with the settings that it has."""
    _check_system(system, type(system))
    settings = _settings(system, {})
    seed = int(settings.pop("seed", seed))
    declared = settings_of(type(system))
    from_user = tuple(name for name, value in settings.items() if value != declared[name].default)
    return ConfiguredSystem(name or type(system).__name__, system, settings, from_user=from_user, seed=seed)


def settings_words(settings: Mapping[str, Any]) -> str:
    """Return settings as people read them."""
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def settings_line(answer: Mapping[str, Any]) -> str:
    """Say which settings an evaluation's system had, and where they came from; nothing where that is not known."""
    settings, source = answer.get("settings") or {}, answer.get("settings_from")
    if source is None:
        return ""
    tuned, yours = (
        settings_words({name: settings[name] for name in source[kind] if name in settings})
        for kind in ("tuned", "user")
    )
    origin = f"tuned for {source.get('graph', 'the graph')} ({tuned})" if tuned else "the defaults"
    return f"settings: {origin}{f'; yours: {yours}' if yours else ''}"


def _check_system(system: Any, kind: type[Any]) -> None:
    if not callable(getattr(system, "fit", None)):
        hint = "give one name, class or object with `fit`; of a trained model of PyKEEN: loginfer.pykeen.Trained(model)"
        raise InputError(f"{kind.__name__} is not a system: it has no method `fit`", hint=hint)


def _with_seed(system: Any, seed: int) -> Any:
    """Return a system like one that was made by hand, with another seed."""
    kind = type(system)
    if "seed" not in settings_of(kind):
        raise InputError(f"{kind.__name__} has no setting `seed`", where="seeds", hint="leave `seeds` out")
    return kind(**{name: getattr(system, name) for name in settings_of(kind)} | {"seed": seed})


def _settings(system: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of a system as JSON values, as far as they are known."""
    settings: dict[str, Any] = {}
    for name, setting in settings_of(type(system)).items():
        value = getattr(system, name, values.get(name, setting.default))
        if value is not inspect.Parameter.empty:
            plain = value is None or isinstance(value, bool | int | float | str)
            settings[name] = value if plain else str(value)
    return settings


def _is_ours(kind: type[Any]) -> bool:
    return kind.__module__.startswith("loginfer.")


def _home(kind: type[Any]) -> Path | None:
    """Return the file that a class stands in."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return None if file is None else Path(file)


@contextlib.contextmanager
def _explained(failure: str, kind: type[Any]) -> Iterator[None]:
    """Turn an error in a user's own class into one clear message that names the line of its file."""
    try:
        yield
    except (LogInferError, MemoryError):
        raise
    except BaseException as error:  # also SystemExit: it would end the program as if all were well
        if _is_ours(kind) or caused_by_interruption(error):
            raise
        home = _home(kind)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if home == Path(frame.filename)]
        where, hint = None if home is None else str(home), None
        if frames:  # none if the call itself does not fit
            where = f"{frames[-1].filename}:{frames[-1].lineno}"
            hint = f"the line is: {frames[-1].line}" if frames[-1].line else None
        raise InputError(f"{failure}: {type(error).__name__}: {error}", where=where, hint=hint) from error
