"""The folder of a run: written so that it is complete or not there, verified when it is read, scored again.

manifest.json        what ran on what, with the sums of the files below
curve.json           the learning curve, one object a row
thresholds.json      from which score on triples are predicted
metrics.json         classification, ranking, breakdowns
diagnosis.json       which rules and which shortcuts were learned
predictions.parquet  the score of every labelled triple
ranks.parquet        where every test triple stands
weights.safetensors  the learned weights, if the system can write them down
timing.json          seconds, memory, machine: the only file that differs from run to run

`run_system` evaluates a system into such a folder, resumably; `score_run` computes every figure of a run again,
without training. Several seeds are a folder of runs: see `seeds`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

import numpy as np
import numpy.typing as npt

from loginfer._version import __version__
from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.folder.manifest import FileSum, SumEntry, as_json
from loginfer.documents import Size, read_document
from loginfer.errors import InputError, LogInferError, OutputError
from loginfer.evaluation.evaluating import (
    ConfiguredSystem,
    Evaluation,
    as_answer,
    configure_system,
    evaluate_system,
    figures_frame,
    with_published,
)
from loginfer.evaluation.metrics import Measures, MetricOptions, measure
from loginfer.evaluation.predictions import (
    PREDICTIONS,
    RANKS,
    Predictions,
    Ranks,
    read_labelled,
    read_predictions,
    read_ranks,
    write_predictions,
    write_ranks,
)
from loginfer.evaluation.resuming import CHECKPOINT_SECONDS, dump_arrays, open_unfinished_run, read_arrays
from loginfer.evaluation.thresholds import Calibration
from loginfer.files import atomic_folder, beside, check_folder, file_sum, interrupted, locked, reading, recover_folder
from loginfer.progress import Progress
from loginfer.systems.interface import Scorer

FORMAT = "loginfer-run"
FORMAT_VERSION = 1

MANIFEST = "manifest.json"
CURVE = "curve.json"
THRESHOLDS = "thresholds.json"
METRICS = "metrics.json"
DIAGNOSIS = "diagnosis.json"
WEIGHTS = "weights.safetensors"
TIMING = "timing.json"

_RUN_FILES = (MANIFEST, CURVE, THRESHOLDS, METRICS, DIAGNOSIS, PREDICTIONS, RANKS, WEIGHTS, TIMING)

_NO_RUN_HINT = "a run is what `loginfer evaluate … --out FOLDER` writes"
_DAMAGED_HINT = "get the folder again, or run it again"


# -- running ----------------------------------------------------------------------------------------


def run_system(
    configured: ConfiguredSystem,
    benchmark: Benchmark,
    method: str | None,
    options: MetricOptions,
    path: str | Path,
    *,
    force: bool = False,
    progress: Progress | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    tell: Callable[[str], None] | None = None,
    weights: bool = True,
    callbacks: Sequence[Any] = (),
) -> Evaluation:
    """Evaluate a system and write the run's folder; a run that was killed goes on where it was.

    Parameters
    ----------
    configured, benchmark, method, options
        Who, on what, with whose negatives, and which figures.
    path
        The run's folder.
    force
        Replace an existing run, or an unfinished one for another request.
    progress
        Who shows how far the work is.
    checkpoint_seconds
        How often a checkpoint is due while learning.
    tell
        Called with a message when an unfinished run goes on.
    weights
        Keep what was learned; without it a run can be scored again, but not asked anything new.
    callbacks
        Who is told the rows of the learning curve, as for `evaluate`.

    Raises
    ------
    OutputError
        If the folder exists, is being written by another program, or an unfinished run of another request is
        there.
    """
    target = Path(path)
    request = request_of(configured, benchmark, method, options)
    recover_folder(target)
    try:
        check_run(target, force=force)
    except OutputError:
        _tidy(target, request)
        raise
    with open_unfinished_run(target, request, force=force) as unfinished:
        check_run(target, force=force)
        if unfinished.resumed and tell is not None:
            tell(f"going on with the unfinished run for {target}")
        evaluation = evaluate_system(
            configured, benchmark, method, options,
            unfinished=unfinished, progress=progress, checkpoint_seconds=checkpoint_seconds, callbacks=callbacks,
        )  # fmt: skip
        write_run(evaluation, target, request=request, force=force, resumed=unfinished.resumed, weights=weights)
    return evaluation


def _tidy(target: Path, request: Mapping[str, Any]) -> None:
    """Remove what is left beside a run that was killed after it was complete."""
    leftover = beside(target, "run")
    if not leftover.exists():
        return
    with contextlib.suppress(LogInferError):
        finished = load_run(target, verify=False).request
        if finished == json.loads(as_json(request)):
            with locked(target, "run-lock"):
                shutil.rmtree(leftover, ignore_errors=True)


def request_of(
    configured: ConfiguredSystem, benchmark: Benchmark, method: str | None, options: MetricOptions
) -> dict[str, Any]:
    """Return all that decides the outcome of a system: an unfinished run goes on only if it agrees with this."""
    code = configured.code
    return {
        "loginfer": __version__,
        "system": configured.name,
        **({} if code is None else {"code": code}),
        "settings": dict(configured.settings),
        "seed": configured.seed,
        "benchmark": {"name": benchmark.name, "sha256": benchmark_sum(benchmark)},
        "negatives": method,
        "protocols": sorted(options.protocols),
    }


def benchmark_sum(benchmark: Benchmark) -> str:
    """Return the sha256 of a benchmark's names, triples and rules, wherever it lies and whatever it is called."""
    digest = hashlib.sha256()

    def add(label: str, *arrays: npt.NDArray[Any]) -> None:
        digest.update(f"\0{label}\0".encode())
        for array in arrays:
            digest.update(f"{len(array)}\0".encode())
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(np.ascontiguousarray(little).view(np.uint8).data if array.size else b"")

    graph = benchmark.graph
    add("entities", graph.entities.data, graph.entities.offsets)
    add("relations", graph.relations.data, graph.relations.offsets)
    digest.update(f"\0type\0{graph.type_predicate or ''}".encode())
    for split, triples in benchmark.positives.items():
        add(split, triples)
    for method, negative_set in sorted(benchmark.negatives.items()):
        for split, triples in negative_set.splits.items():
            add(f"{split} {method}", triples)
    if benchmark.context is not None:
        add("context", benchmark.context.triples)
    for benchmark_rule in benchmark.rules:
        digest.update(f"\0rule\0{benchmark_rule.rule}".encode())
    return digest.hexdigest()


# -- writing ----------------------------------------------------------------------------------------


def check_run(path: str | Path, *, force: bool = False) -> None:
    """Complain now, before the work, if a run could not be written to this folder."""
    check_folder(path, force=force, may_replace=_may_replace)


def write_run(
    evaluation: Evaluation,
    path: str | Path,
    *,
    request: Mapping[str, Any] | None = None,
    force: bool = False,
    resumed: bool = False,
    weights: bool = True,
) -> None:
    """Write the folder of a run; it is complete or not there at all.

    Parameters
    ----------
    evaluation
        What came out.
    path
        The folder.
    request
        What was asked of the system before it was fitted (see `request_of`).
    force
        Replace an existing run.
    resumed
        Whether a part of the work was done earlier.
    weights
        Whether to write what was learned.
    """
    import pyarrow as pa

    configured, benchmark, outcome = evaluation.configured, evaluation.benchmark, evaluation.outcome
    figures = evaluation.measures.as_dict()
    diagnosis, thresholds = figures.pop("diagnosis"), figures.pop("thresholds")
    documents = {CURVE: outcome.curve, THRESHOLDS: thresholds, METRICS: figures, DIAGNOSIS: diagnosis}
    with atomic_folder(path, force=force, may_replace=_may_replace) as folder:
        for name, value in documents.items():
            (folder / name).write_bytes(as_json(value).encode())
        with (folder / PREDICTIONS).open("wb") as stream:
            write_predictions(outcome.predictions, benchmark, stream)
        with (folder / RANKS).open("wb") as stream:
            write_ranks(outcome.ranks, benchmark, stream)
        if weights and outcome.weights is not None:
            with (folder / WEIGHTS).open("wb") as stream:
                dump_arrays(stream, outcome.weights)
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "versions": {"loginfer": __version__, "numpy": np.__version__, "pyarrow": pa.__version__},
            "request": dict(request or request_of(configured, benchmark, evaluation.method, evaluation.options)),
            "settings_from": configured.settings_from,
            "type_predicate": benchmark.graph.type_predicate or "",
            "wanted": evaluation.options.as_dict(),
            "notes": list(outcome.notes),
            "files": {f.name: asdict(FileSum(f.stat().st_size, file_sum(f))) for f in sorted(folder.iterdir())},
        }
        timing = _timing(outcome.seconds, outcome.cpu_seconds, resumed) | {"benchmark": _place(benchmark, path)}
        (folder / TIMING).write_bytes(as_json(timing).encode())
        (folder / MANIFEST).write_bytes(as_json(manifest).encode())


def _timing(seconds: Mapping[str, float], cpu_seconds: float, resumed: bool) -> dict[str, Any]:
    """Return what may differ between two equal runs; the work of an earlier process is not counted."""
    libraries = ("numpy", "numba", "pyarrow", "sklearn", "torch")  # their versions matter, if they were used
    return {
        "seconds": {step: round(spent, 3) for step, spent in seconds.items()},
        "cpu_seconds": round(cpu_seconds, 3),
        "resumed": resumed,
        "peak_memory_bytes": _peak_memory(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "versions": {n: getattr(sys.modules[n], "__version__", None) for n in libraries if n in sys.modules},
    }


def _place(benchmark: Benchmark, run: str | Path) -> str | None:
    """Return where a benchmark lies, seen from a run's folder; None if it is in no folder, or that says nothing."""
    with contextlib.suppress(ValueError):  # there is no way between two drives of Windows
        return None if benchmark.path is None else Path(os.path.relpath(benchmark.path, run)).as_posix()
    return None


def _peak_memory() -> int | None:
    """Return the most memory that this process has used so far, in bytes; None where that is not counted."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _may_replace(folder: Path) -> None:
    """Refuse to replace a folder with anything in it that is not a run's."""
    foreign = [e.name for e in sorted(folder.iterdir()) if not (e.is_file() and e.name in _RUN_FILES)]
    if foreign:
        names = ", ".join(f"`{name}`" for name in foreign[:3]) + (", …" if len(foreign) > 3 else "")
        hint = "choose another folder, or move your files out of it"
        raise OutputError(f"`{folder}` is not replaced: it also holds {names}", hint=hint)
    try:
        _read_manifest(folder)
    except LogInferError as error:
        raise OutputError(
            f"`{folder}` is not replaced: it is no run", hint="choose another folder, or remove it yourself"
        ) from error


# -- reading ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A complete run.

    Parameters
    ----------
    path
        Its folder.
    manifest
        Its manifest.
    """

    path: Path
    manifest: Mapping[str, Any]

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = True) -> Run:
        """Read a run's folder (see `load_run`)."""
        return load_run(path, verify=verify)

    @property
    def request(self) -> Mapping[str, Any]:
        """What was asked of the system (see `request_of`)."""
        return dict(self.manifest["request"])

    @property
    def system(self) -> str:
        """The system's name."""
        return str(self.request["system"])

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.request["seed"])

    @property
    def method(self) -> str | None:
        """Whose negatives."""
        return cast("str | None", self.request["negatives"])

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return str(self.request["benchmark"]["name"])

    def as_dict(self) -> dict[str, Any]:
        """Return what `Evaluation.as_dict` returned when the run was made."""
        return self.answer({**self.metrics(), "thresholds": self.thresholds(), "diagnosis": self.diagnosis()})

    def answer(self, measures: Measures | Mapping[str, Any]) -> dict[str, Any]:
        """Return figures of this run in the shape of `Evaluation.as_dict`."""
        settings = (self.request["settings"], self.manifest.get("settings_from"))
        answer = as_answer(self.system, self.benchmark, self.seed, self.method, *settings, measures)
        return with_published(answer, self.request["benchmark"]["sha256"])

    def to_frame(self) -> Any:
        """Return a row for each figure, as `Evaluator.eval` calls them (see `loginfer.frames.to_frame`)."""
        return figures_frame(self.as_dict())

    def __repr__(self) -> str:
        return f"Run({self.system!r} on {self.benchmark!r}, seed {self.seed}, in {str(self.path)!r})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.evaluation.notebook import evaluation_fragment

        return evaluation_fragment(self.as_dict())

    def metrics(self) -> dict[str, Any]:
        """Return the figures as they were computed then."""
        return cast("dict[str, Any]", self._json(METRICS))

    def calibration(self) -> Calibration | None:
        """Return what makes confidences of the system's scores; None if it was not fitted then."""
        description = self.metrics().get("calibration")
        return None if description is None else Calibration.from_dict(description)

    @property
    def seconds(self) -> float:
        """How long it took, without what an earlier process did."""
        return float(sum(self.timing().get("seconds", {}).values()))

    def timing(self) -> dict[str, Any]:
        """Return how long the steps took, and where."""
        return cast("dict[str, Any]", self._json(TIMING))

    @property
    def benchmark_folder(self) -> Path:
        """The folder of its benchmark, if that is still where it was, or its name if the catalogue has that.

        Raises
        ------
        InputError
            If it is not, or if that was not written down.
        """
        from loginfer.kg.catalogue import is_named

        place = self.timing().get("benchmark")
        if place and (folder := Path(os.path.normpath(self.path / place))).exists():
            return folder
        if is_named(self.benchmark):
            return Path(self.benchmark)
        hint = "say where it is: --benchmark FOLDER or NAME"
        raise InputError(f"{self.benchmark}, the benchmark of `{self.path}`, is not where it was", hint=hint)

    def curve(self) -> list[dict[str, Any]]:
        """Return the learning curve."""
        return cast("list[dict[str, Any]]", self._json(CURVE))

    def thresholds(self) -> dict[str, Any] | None:
        """Return the thresholds as JSON values; None if there are none."""
        return cast("dict[str, Any] | None", self._json(THRESHOLDS))

    def diagnosis(self) -> dict[str, Any]:
        """Return what was learned; nothing if that was not asked for."""
        return cast("dict[str, Any]", self._json(DIAGNOSIS) or {})

    def labelled(self) -> tuple[Benchmark, Predictions]:
        """Return the labelled triples, as a benchmark without anything else, and their scores."""
        return read_labelled(self.path / PREDICTIONS, self.method, self.manifest.get("type_predicate") or None)

    def ranks(self) -> list[Ranks]:
        """Return the ranks of the test triples."""
        return read_ranks(self.path / RANKS)

    def scorer(self, benchmark: Benchmark) -> Scorer:
        """Return the fitted system, for the benchmark that it was fitted to.

        Raises
        ------
        InputError
            If the run has no weights, or the benchmark is another one.
        """
        self.check_benchmark(benchmark)
        path = self.path / WEIGHTS
        if not path.exists():
            hint = "evaluate it again without --no-weights; baselines and many systems of your own have none"
            raise InputError(f"`{self.path}` has no weights: what {self.system} learned was not kept", hint=hint)
        configured = configure_system(self.system, benchmark, self.request["settings"], seed=self.seed, tuned=False)
        return configured.restore(benchmark, self.method, read_arrays(path)[0])

    def check_benchmark(self, benchmark: Benchmark) -> None:
        """Complain if this is not the benchmark that the run was about."""
        about = self.request["benchmark"]
        if benchmark_sum(benchmark) != about["sha256"]:
            raise InputError(
                f"`{self.path}` is not about this {benchmark.name}: triples or rules of {about['name']} were others",
                hint="give the benchmark that the run was made with",
            )

    def _json(self, name: str) -> Any:
        return read_document(self.path / name, _SCHEMAS[name], what="run", hint=_DAMAGED_HINT)


def load_run(path: str | Path | Run, *, verify: bool = True) -> Run:
    """Read a run's folder.

    Parameters
    ----------
    path
        The folder. A run is returned as it is.
    verify
        Compare all files with the sums in the manifest.

    Raises
    ------
    InputError
        If it is no run, or a file is missing or was changed.
    """
    if isinstance(path, Run):
        return path
    folder = interrupted(path) or Path(path)
    manifest = _read_manifest(folder)
    for name in dict.fromkeys((PREDICTIONS, RANKS, METRICS, *manifest["files"])):
        file, entry = folder / name, manifest["files"].get(name)
        if entry is None or not file.is_file():
            raise InputError(f"`{name}` is missing", where=str(folder), hint=_DAMAGED_HINT)
        if verify and (file.stat().st_size, file_sum(file)) != (entry["bytes"], entry["sha256"]):
            raise InputError(f"`{name}` was changed since the run", where=str(folder), hint=_DAMAGED_HINT)
    return Run(folder, manifest)


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not folder.exists() and beside(folder, "run").is_dir():
        hint = "the `loginfer evaluate` command that began it goes on where it was"
        raise InputError(f"the run `{folder}` is not finished", hint=hint)
    with reading(folder):
        if not folder.is_dir():
            folder.stat()
            raise InputError(f"`{folder}` is a file, not the folder of a run")
    if not path.exists():
        raise InputError(f"`{folder}` is no run: it has no `{MANIFEST}`", hint=_NO_RUN_HINT)
    manifest: dict[str, Any] = read_document(
        path, _Manifest, what="run", hint=_DAMAGED_HINT, form=(FORMAT, FORMAT_VERSION)
    )
    return manifest


class _BenchmarkEntry(TypedDict):
    name: str
    sha256: str


class _RequestEntry(TypedDict):
    system: str
    settings: dict[str, Any]
    seed: int
    benchmark: _BenchmarkEntry
    negatives: str | None
    protocols: list[str]


class _Wanted(TypedDict):
    threshold: str | float
    criterion: str
    tie: str
    diagnosis: bool


class _Timing(TypedDict):
    seconds: NotRequired[dict[str, float]]
    cpu_seconds: NotRequired[float | None]
    peak_memory_bytes: NotRequired[int | None]
    benchmark: NotRequired[str | None]


_Figures = dict[str, float | None]
_Row = dict[str, float | str | bool | list[float] | None]


class _Breakdown(TypedDict):
    relations: NotRequired[dict[str, _Row]]
    rules: NotRequired[list[_Row]]
    patterns: NotRequired[dict[str, _Row]]
    negatives: NotRequired[dict[str, _Row]]


class _Calibration(TypedDict):
    kind: Literal["platt", "isotonic"]
    scores: list[float]
    log_odds: list[float]


class _Metrics(TypedDict):
    threshold: float | None
    metrics: _Figures
    ranking: dict[str, dict[str, float | str | dict[str, dict[str, float | None]] | None]]
    tie: str
    notes: list[str]
    breakdown: _Breakdown
    interval: NotRequired[dict[str, dict[str, list[float]]]]
    calibration: NotRequired[_Calibration]


class _Thresholds(TypedDict):
    kind: Literal["global", "relation"]
    criterion: str | None
    value: NotRequired[float | None]
    relations: NotRequired[_Figures]


class _DiagnosedRule(TypedDict):
    rule: str
    pattern: str | None
    verdict: str
    text: str
    conclusions: Size
    predicted: Size
    recall: float | None
    sub_rules: NotRequired[Size]
    shortcuts: list[_Row]


class _Diagnosis(TypedDict):
    summary: NotRequired[list[str]]
    verdicts: NotRequired[dict[str, Size]]
    limits: NotRequired[_Figures]
    derivable_negatives: NotRequired[Size]
    best_shortcut: NotRequired[dict[str, Any] | None]
    baselines: NotRequired[dict[str, dict[str, Any]]]
    rules: NotRequired[list[_DiagnosedRule]]
    notes: NotRequired[list[str]]


_SCHEMAS: dict[str, Any] = {
    CURVE: list[_Figures],
    THRESHOLDS: _Thresholds | None,
    DIAGNOSIS: _Diagnosis | None,
    METRICS: _Metrics,
    TIMING: _Timing,
}


class _SettingsFrom(TypedDict):
    user: list[str]
    tuned: list[str]
    graph: NotRequired[str]


class _Manifest(TypedDict):
    request: _RequestEntry
    settings_from: NotRequired[_SettingsFrom | None]
    wanted: _Wanted
    files: dict[Literal[_RUN_FILES], SumEntry]  # type: ignore[valid-type]
    notes: list[str]
    type_predicate: str


# -- scoring again ----------------------------------------------------------------------------------


def options_of_run(run: Run, **changed: Any) -> MetricOptions:
    """Return which figures were asked for when the run was made, with changes.

    Parameters
    ----------
    run
        The run.
    changed
        Fields of `MetricOptions`; None leaves one as it was.
    """
    then = {key: run.manifest["wanted"][key] for key in MetricOptions().as_dict()}
    changes = {key: value for key, value in changed.items() if value is not None}
    return MetricOptions(**{**then, "protocols": tuple(run.request["protocols"]), **changes})


def score_run(run: Run, options: MetricOptions | None = None, benchmark: Benchmark | None = None) -> Measures:
    """Compute every figure of a run again.

    Parameters
    ----------
    run
        The run.
    options
        Which figures; by default those of the run.
    benchmark
        The run's benchmark. Without it there are no breakdowns by rule, pattern and kind of negative and no
        diagnosis, since the run holds labelled triples only.

    Raises
    ------
    InputError
        If the benchmark is not the one of the run.
    """
    options = options or options_of_run(run)
    notes = [str(note) for note in run.manifest.get("notes", ())]
    if benchmark is None:
        labelled, predictions = run.labelled()
        benchmark = dataclasses.replace(labelled, name=run.benchmark)
    else:
        run.check_benchmark(benchmark)
        predictions = read_predictions(run.path / PREDICTIONS, benchmark, run.method)
    return measure(benchmark, predictions, run.ranks(), options, notes=notes)
