"""Which settings a system does well with: Optuna tries some, and looks at valid alone, never at test.

The first trial has the defaults, the second what is shipped for the graph, both as near as the ranges allow. A trial
fits the system to each benchmark, and is worth the mean of their figures: the accuracy on valid three times and the
C-MRR (filtered) of some hundred valid triples once; without negatives the C-MRR alone. The folder holds:

    tuning.json   what was asked, all trials, and the best settings: the same bytes, however often it was killed
    timing.json   the CPU seconds of each trial, with those of processes that it started
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np

from loginfer._version import __version__
from loginfer.benchmark.benchmark import Benchmark, Splits
from loginfer.benchmark.folder.reading import load_benchmark
from loginfer.documents import AtLeast, Size, read_document
from loginfer.errors import InputError, LogInferError, OutputError, UnknownNameError
from loginfer.evaluation.evaluating import ConfiguredSystem, configure_system, cpu_clock, settings_words
from loginfer.evaluation.metrics import ranking_metrics
from loginfer.evaluation.ranking import rank
from loginfer.evaluation.resuming import RunMonitor, UnfinishedRun, differences
from loginfer.evaluation.runs import benchmark_sum
from loginfer.files import locked, write_text, writing
from loginfer.progress import Progress, ProgressChoice, report_progress, shown
from loginfer.randomness import hash_order
from loginfer.reproduction.running import stable_json
from loginfer.settings import Setting, settings_of
from loginfer.systems.fitting import best_accuracy
from loginfer.systems.interface import choose_method
from loginfer.systems.registry import SPLIT, find_system, graph_entry, tuned_settings

# Valid triples that are ranked.
RANKED = 300

# Trials that are drawn at random before Optuna's sampler learns from them.
AT_RANDOM = 4

FORMAT, FORMAT_VERSION = "loginfer-tuning", 1

_HINT = "give what `loginfer tune … --out FOLDER` wrote, or tune into a new folder"


_Figure = Annotated[float, AtLeast(0)]
_Settings = dict[str, bool | int | float | str | None]


class _TunedGraph(TypedDict):
    name: str
    triples: Size
    sample: list[str]


class _Trial(TypedDict):
    settings: _Settings
    worth: _Figure | None
    figures: list[dict[str, _Figure]]
    error: NotRequired[str]


class _Best(TypedDict):
    trial: Size
    worth: _Figure
    settings: _Settings
    how: str


class _TunedBenchmark(TypedDict):
    name: str
    sha256: str
    negatives: str | None


class _Request(TypedDict):
    benchmarks: list[_TunedBenchmark]


class _Document(TypedDict):
    system: str
    request: _Request
    graph: _TunedGraph | None
    trials: list[_Trial]
    best: _Best


def read_tuning(folder: str | Path) -> dict[str, Any]:
    """Read what a folder holds."""
    file, form = Path(folder) / "tuning.json", (FORMAT, FORMAT_VERSION)
    document: dict[str, Any] = read_document(file, _Document, what="tuning", hint=_HINT, form=form)
    return document


# -- what may be tried ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Range:
    """What may be tried for a setting.

    Parameters
    ----------
    name
        The setting.
    values
        The bounds, or the values to choose from.
    scale
        `linear` or `log` between bounds; None for a choice.
    """

    name: str
    values: tuple[Any, ...]
    scale: Literal["linear", "log"] | None

    @classmethod
    def read(cls, declared: Setting, text: str) -> Range:
        """Read `0.005:0.03:log`, `2:5` or `maximum,noisy-or`."""
        bounds, log = text.removesuffix(":log").split(":"), text.endswith(":log")
        texts = bounds if len(bounds) == 2 else text.split(",")
        try:
            values = tuple(declared.parse(value.strip()) for value in texts)
            for value in values:
                declared.check(value)
        except LogInferError as error:
            error.where = "--vary"
            raise
        if len(bounds) != 2 and len(set(values)) > 1:
            return cls(declared.name, values, None)
        numbers = all(type(value) in (int, float) for value in values)
        if len(bounds) == 2 and numbers and (0 if log else -np.inf) < values[0] < values[1]:
            return cls(declared.name, values, "log" if log else "linear")
        hint = "give LOW:HIGH, LOW:HIGH:log (both above 0) or several values, a,b,c"
        raise InputError(f"`{text}` is no range for `{declared.name}`", where="--vary", hint=hint)

    def draw(self, trial: Any) -> Any:
        """Let Optuna choose a value; three digits of it will do."""
        if self.scale is None:
            return trial.suggest_categorical(self.name, self.values)
        low, high = self.values
        log = self.scale == "log"
        if isinstance(low, int) and isinstance(high, int):
            return trial.suggest_int(self.name, low, high, log=log)
        return self.nearest(float(f"{trial.suggest_float(self.name, low, high, log=log):.3g}"))

    def nearest(self, value: Any) -> Any:
        """Return the value that is nearest to another one."""
        if self.scale is None:
            return value if value in self.values else self.values[0]
        low, high = self.values
        return min(max(value, low), high) if isinstance(value, int | float) else low


def _ranges(configured: ConfiguredSystem, declared: Mapping[str, Setting], vary: Mapping[str, str]) -> dict[str, Range]:
    """Return what is varied: what the user says, or else what the system declares and the user did not fix."""
    for name in vary:
        if name not in declared:
            raise UnknownNameError(f"setting of {configured.name} to vary", name, declared, where="--vary")
        if name in configured.from_user:
            raise InputError(f"`{name}` cannot be both fixed and varied", where="--vary", hint="leave out its --set")
    own = {name: one.tuned for name, one in declared.items() if one.tuned and name not in configured.from_user}
    texts = vary or own
    if not texts:
        hint = f"give --vary NAME=LOW:HIGH, with one of: {', '.join(declared)}" if declared else None
        raise InputError(f"{configured.name} has no settings that it says may be varied", hint=hint)
    return {name: Range.read(one, text) for name, one in declared.items() if (text := texts.get(name))}


# -- trials -----------------------------------------------------------------------------------------


def tune(
    benchmarks: Benchmark | str | Path | Iterable[Benchmark | str | Path],
    system: str,
    out: str | Path,
    *,
    trials: int = 20,
    vary: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    negatives: str | None = None,
    seconds: float | None = None,
    seed: int = 0,
    force: bool = False,
    tell: Callable[[str], None] = lambda message: None,
    progress: ProgressChoice = None,
) -> dict[str, Any]:
    """Look for settings with which a system does well on valid; return what `tuning.json` holds.

    Parameters
    ----------
    benchmarks
        A benchmark, its folder or its name in the catalogue; or several: settings are to do well on all of them.
    system
        The name of a system (see `loginfer systems list`).
    out
        The folder. Trials that are there are not made again, and more may be asked for.
    trials
        How many settings to try.
    vary
        What may be tried, by setting: `0.005:0.03:log`, `2:5` or `a,b`; by default what the system declares.
    settings
        What stays as it is.
    negatives
        Whose negatives, if benchmarks have several.
    seconds
        Begin no trial after so many CPU seconds, with those of processes that trials start; how many are made then
        depends on the machine.
    seed
        Of the system, and of what is drawn.
    force
        Start over if the folder holds other trials.
    tell
        Called with a line about each trial.
    progress
        True for a bar; or called with what is being done, how much is done, and how much there is.
    """
    try:
        import optuna
    except ImportError as error:
        hint = "in a checkout of LogInfer, `pip install '.[tune]'` brings it"
        raise InputError("tuning needs `optuna`, which is not installed", hint=hint) from error

    if trials < 1:
        raise InputError(f"`trials` must be at least 1, not {trials}")
    for where, values in (("--set", settings), ("--vary", vary)):
        if "seed" in (values or {}):
            raise InputError("the seed has an option of its own", where=where, hint="give --seed NUMBER")
    several = benchmarks if isinstance(benchmarks, Iterable) and not isinstance(benchmarks, str) else [benchmarks]
    places = [(benchmark, choose_method(benchmark, negatives)) for benchmark in map(load_benchmark, several)]
    if not places:
        raise InputError("there is no benchmark to tune on", hint="give one or more")
    for benchmark, _ in places:
        if not len(benchmark.positives.valid):
            hint = "build it with a part for valid, such as --ratio 8:1:1"
            raise InputError(f"{benchmark.name} has no valid triples to choose settings by", hint=hint)
    first = places[0][0]
    configured = configure_system(system, first, settings, seed=seed, tuned=False)
    declared = {
        name: one
        for name, one in settings_of(type(configured.system)).items()
        if name != "seed" and not one.indifferent
    }
    ranges = _ranges(configured, declared, vary or {})
    defaults = {name: one.nearest(declared[name].default) for name, one in ranges.items()}
    shipped_settings = tuned_settings(find_system(system), first)
    second = {name: one.nearest(shipped_settings.get(name, defaults[name])) for name, one in ranges.items()}
    starts = [defaults] if second == defaults else [defaults, second]
    request = {
        "loginfer": __version__,
        "optuna": optuna.__version__,
        **({} if configured.code is None else {"code": configured.code}),
        "settings": {n: value for n, value in configured.settings.items() if n in declared and n not in ranges},
        "varied": {name: (vary or {}).get(name) or declared[name].tuned for name in ranges},
        "starts": starts,
        "seed": seed,
        "benchmarks": [{"name": b.name, "sha256": benchmark_sum(b), "negatives": method} for b, method in places],
    }
    graphs = [graph_entry(benchmark) for benchmark, _ in places]
    document = {"format": FORMAT, "format_version": FORMAT_VERSION, "system": configured.name, "request": request}
    document["graph"] = graphs[0] if all(graph["name"] == graphs[0]["name"] for graph in graphs) else None

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=AT_RANDOM)
    )
    for start in starts:
        study.enqueue_trial(start)

    folder = Path(out)
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder, "tuning-lock"), shown(progress) as show:
        document["trials"] = known_trials = _earlier_trials(folder, json.loads(stable_json(request)), force)
        cpu_seconds = _earlier_seconds(folder, len(known_trials))
        for number in range(trials):
            trial = study.ask()
            trial_settings = {name: one.draw(trial) for name, one in ranges.items()}
            if number == len(known_trials):
                if seconds is not None and known_trials and sum(cpu_seconds) >= seconds:
                    tell(f"{sum(cpu_seconds):.0f} CPU seconds are used up")
                    break
                report_progress(show, "trials", number, trials)
                begin = cpu_clock()
                row: dict[str, Any] = {"settings": trial_settings, "worth": None, "figures": []}
                try:
                    same = next((earlier for earlier in known_trials if earlier["settings"] == trial_settings), None)
                    row |= same or _trial(system, {**(settings or {}), **trial_settings}, places, seed, show)
                except LogInferError as error:  # other settings may do
                    if not known_trials:
                        raise
                    row["error"] = error.message
                known_trials.append(row)
                cpu_seconds.append(round(cpu_clock() - begin, 3))
                document["best"] = _best(known_trials, request, declared)
                write_text(folder / "tuning.json", stable_json(document), force=True)
                write_text(folder / "timing.json", stable_json({"cpu_seconds": cpu_seconds}), force=True)
                outcome = f"failed: {row['error']}" if "error" in row else f"worth {100 * row['worth']:.2f}"
                tell(f"trial {number + 1} of {trials}: {outcome}; {settings_words(trial_settings)}")
            if known_trials[number]["settings"] != trial_settings:
                problem = f"trial {number + 1} is not the one that follows from those before"
                raise InputError(problem, where=str(folder), hint=_HINT)
            worth = known_trials[number]["worth"]
            study.tell(trial, worth, state=optuna.trial.TrialState.FAIL if worth is None else None)
        return read_tuning(folder)


def _earlier_trials(folder: Path, request: Mapping[str, Any], force: bool) -> list[dict[str, Any]]:
    """Return the trials that a folder holds, made for the same request."""
    if (folder / "tuning.json").exists():
        document = read_tuning(folder)
        if not (changes := differences(document["request"], request)):
            return list(document["trials"])
        if not force:
            hint = "choose another --out, or add --force to start over"
            raise OutputError(f"`{folder}` was tuned for something else: {'; '.join(changes)}", hint=hint)
    elif folder.exists() and not (folder.is_dir() and all(map(_left_by_a_kill, folder.iterdir()))):
        raise OutputError(f"`{folder}` exists already, and holds no tuning", hint="choose a new folder")
    return []


def _left_by_a_kill(path: Path) -> bool:
    """Say whether a file may be there though no trial was finished."""
    return path.name == "timing.json" or path.match(".*.part")


def _earlier_seconds(folder: Path, trials: int) -> list[float]:
    """Return the CPU seconds of so many trials; 0 where a kill came before they were written."""
    file, schema = folder / "timing.json", dict[str, list[_Figure]]
    document = read_document(file, schema, what="tuning", hint=_HINT) if file.exists() else {}
    return [*document.get("cpu_seconds", []), *[0.0] * trials][:trials]


def _trial(
    system: str,
    settings: Mapping[str, Any],
    places: Sequence[tuple[Benchmark, str | None]],
    seed: int,
    show: Progress | None,
) -> dict[str, Any]:
    """Fit a system to all benchmarks; return what that is worth, and the figures for each."""
    figures = [
        trial_figures(system, benchmark, settings, negatives=method, seed=seed, show=show)
        for benchmark, method in places
    ]
    worth = [(3 * f["accuracy"] + f["c_mrr"]) / 4 if "accuracy" in f else f["c_mrr"] for f in figures]
    return {"worth": float(np.mean(worth)), "figures": figures}


def trial_figures(
    system: str,
    benchmark: Benchmark | str | Path,
    settings: Mapping[str, Any],
    *,
    negatives: str | None = None,
    seed: int = 0,
    show: Progress | None = None,
) -> dict[str, float]:
    """Fit a system; return the accuracy on valid, if there are negatives, and the C-MRR of some valid triples."""
    benchmark = load_benchmark(benchmark)
    method = choose_method(benchmark, negatives)
    configured = configure_system(system, benchmark, settings, seed=seed, tuned=False)
    scorer = configured.fit(benchmark, method, RunMonitor(UnfinishedRun(), show))
    train, valid = benchmark.positives.train, benchmark.positives.valid
    rows = np.sort(hash_order(benchmark.graph.keys.pack(valid), 0, RANKED))
    positives = Splits(train, np.delete(valid, rows, axis=0), valid[rows])
    # No context graph: its constants would be the candidates, and those of valid are in train.
    ranks = rank(scorer, Benchmark(benchmark.name, benchmark.graph, positives, {}), ranking=("filtered",))
    figures = {"c_mrr": float(ranking_metrics(ranks)["c_mrr"])}
    if method is not None and len(false := benchmark.negatives[method].splits.valid):
        figures["accuracy"] = best_accuracy(scorer.score(valid), scorer.score(false))
    return figures


def _best(
    trials: Sequence[Mapping[str, Any]], request: Mapping[str, Any], declared: Mapping[str, Setting]
) -> dict[str, Any]:
    """Return the first trial that is worth most, its settings that are not the defaults, and how it was found."""
    number = max(range(len(trials)), key=lambda i: -1 if trials[i]["worth"] is None else trials[i]["worth"])
    values = {**request["settings"], **trials[number]["settings"]}
    settings = {name: value for name, value in values.items() if value != declared[name].default}
    worth, first = trials[number]["worth"], trials[0]["worth"]
    how = f"trial {number + 1} of {len(trials)}, worth {100 * worth:.2f}, the first {100 * first:.2f}; on "
    how += ", ".join(benchmark["name"] for benchmark in request["benchmarks"])
    how += f"; varied: {settings_words(request['varied'])}"
    return {"trial": number + 1, "worth": worth, "settings": settings, "how": how}


# -- the settings that are shipped ------------------------------------------------------------------

_HEADER = """\
# Settings that do better than the defaults, by system and graph. Made by `loginfer tune --collect`.
#
# How they were found: `loginfer tune` lets Optuna try settings on benchmarks of a graph, and looks at valid alone. A
# trial is worth the mean, over these benchmarks, of the accuracy on valid (three times) and the filtered C-MRR of 300
# valid triples (once), in percent; without negatives it is the C-MRR alone. The first trial has the defaults.
#
# A graph is recognised by its size and a sample of its triples, wherever a benchmark comes from.
"""


def collect(folders: Iterable[str | Path]) -> str:
    """Return the content of `systems/tuned.toml`: the best settings of each system for each graph.

    A folder is about one system, or has a folder for each. Of two with the same system and benchmarks, the better one
    counts.

    Raises
    ------
    InputError
        If a folder is about several graphs, or two cannot be compared.
    """
    import tomli_w

    best: dict[tuple[str, str], dict[str, Any]] = {}
    graphs: dict[str, Any] = {}
    for folder in chain.from_iterable(map(_tunings, folders)):
        document = read_tuning(folder)
        system, graph = document["system"], document["graph"]
        if graph is None:
            hint = "put its best settings into the system's defaults"
            raise InputError("these settings were tuned for several graphs together", where=str(folder), hint=hint)
        name = graph.pop("name")
        if graphs.setdefault(name, graph) != graph:
            raise InputError(f"two graphs are called `{name}`", where=str(folder), hint="leave one out")
        if all(benchmark["negatives"] is None for benchmark in document["request"]["benchmarks"]):
            name += SPLIT
        other = best.setdefault((system, name), document)
        if other["request"]["benchmarks"] != document["request"]["benchmarks"]:
            problem = f"{system} was tuned for {name} on other benchmarks as well"
            raise InputError(problem, where=str(folder), hint="leave one folder out")
        if document["best"]["worth"] > other["best"]["worth"]:
            best[system, name] = document
    remarks, settings = [], dict[str, dict[str, Any]]()
    for (system, name), document in sorted(best.items()):
        values = {key: "none" if value is None else value for key, value in document["best"]["settings"].items()}
        settings.setdefault(system, {})[name] = values
        remarks.append("# " + re.sub(r"[\x00-\x1f\x7f]", " ", f"{system}, {name}: {document['best']['how']}"))
    tables = {"graphs": dict(sorted(graphs.items())), "settings": settings}
    return "\n".join([_HEADER, *remarks, "", tomli_w.dumps(tables)])


def _tunings(folder: str | Path) -> list[Path]:
    """Return the folders of single systems; a folder itself if it holds none."""
    folder = Path(folder)
    return sorted(file.parent for file in folder.glob("*/tuning.json")) or [folder]
