"""Several evaluations: those of several seeds with their mean, deviation and interval, and any beside each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.folder.manifest import as_json
from loginfer.errors import InputError, LogInferError, OutputError
from loginfer.evaluation.evaluating import ConfiguredSystem, evaluate_system, figures_frame
from loginfer.evaluation.metrics import MetricOptions
from loginfer.evaluation.notebook import evaluation_fragment, plain
from loginfer.evaluation.resuming import differences
from loginfer.evaluation.runs import Run, load_run, request_of, run_system
from loginfer.files import atomic_write, recover_folder

# If a figure is distributed normally over all seeds, its mean lies in the interval with this probability.
CONFIDENCE = 0.95

SUMMARY = "summary.json"


def run_seeds(
    make: Callable[[int], ConfiguredSystem],
    seeds: Sequence[int],
    benchmark: Benchmark,
    method: str | None,
    options: MetricOptions,
    path: str | Path | None = None,
    *,
    force: bool = False,
    tell: Callable[[str], None] = lambda message: None,
    weights: bool = True,
    **training: Any,
) -> dict[str, Any]:
    """Run a system once with each seed; return the summary.

    Parameters
    ----------
    make
        Gives the system for a seed.
    seeds
        The seeds.
    benchmark, method, options
        On what, with whose negatives, and which figures.
    path
        A folder that gets `seed-0`, `seed-1`, … and `summary.json`. Runs that are there already, complete and
        for the same request, are kept. Without a folder nothing is written.
    force
        Replace other runs that are there.
    tell
        Called with messages about what happens.
    weights
        Keep what was learned in the folders.
    training
        `progress`, `checkpoint_seconds`, `callbacks`: see `run_system`.
    """
    folder = None if path is None else Path(path)
    if folder is not None:
        check_parent(folder)
    answers = []
    for number, seed in enumerate(seeds, start=1):
        configured = make(seed)
        label = f"seed {seed} ({number} of {len(seeds)})"
        if folder is None:
            tell(label)
            answers.append(evaluate_system(configured, benchmark, method, options, **training).as_dict())
            continue
        target = folder / f"seed-{seed}"
        run = finished_run(target, request_of(configured, benchmark, method, options), options, force)
        tell(f"{label}: kept" if run else label)
        if run is None:
            run_system(
                configured, benchmark, method, options, target,
                force=force, tell=tell, weights=weights, **training,
            )  # fmt: skip
            run = load_run(target, verify=False)
        answers.append(run.as_dict())
    summary = summarise(answers)
    if folder is not None:
        with atomic_write(folder / SUMMARY, force=True) as stream:
            stream.write(as_json(summary))
    return summary


@dataclass(frozen=True, slots=True)
class SeedSummary:
    """What evaluations with several seeds have in common.

    Parameters
    ----------
    answer
        As `summarise` returns it.
    """

    answer: Mapping[str, Any]

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """Means of the classification metrics by name."""
        return dict(self.answer["metrics"])

    @property
    def ranking(self) -> Mapping[str, Mapping[str, Any]]:
        """Means of the ranking metrics by protocol and name."""
        return dict(self.answer["ranking"])

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return dict(self.answer)

    def to_frame(self) -> Any:
        """Return a row for each figure: mean, deviation and interval (see `loginfer.frames.to_frame`)."""
        return figures_frame(self.answer)

    def __repr__(self) -> str:
        return f"SeedSummary({plain(self.answer)}, {len(self.answer['seeds'])} seeds)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return evaluation_fragment(self.answer)


def seed_runs(path: str | Path) -> list[Path]:
    """Return the folders of the runs that `run_seeds` wrote into a folder, in the order of their seeds."""
    numbers = [f.name.removeprefix("seed-") for f in Path(path).glob("seed-*") if f.is_dir()]
    return [Path(path) / f"seed-{n}" for n in sorted((n for n in numbers if n.isdecimal()), key=int)]


def check_alike(runs: Sequence[Run]) -> None:
    """Complain if runs differ in more than their seeds: then their figures have no mean.

    Raises
    ------
    InputError
        With the folder that differs from the first one, and in what.
    """
    first, *others = [(run, _request_without_seed(run)) for run in runs]
    for run, about in others:
        if about != first[1]:
            texts = "; ".join(differences(first[1], about))
            raise InputError(
                f"`{run.path.name}` and `{first[0].path.name}` are not runs of the same: {texts}",
                where=str(run.path.parent),
                hint="score one of them alone, or remove the runs that do not belong there",
            )


def _request_without_seed(run: Run) -> dict[str, Any]:
    request = {key: value for key, value in run.request.items() if key != "seed"}
    return {**request, "wanted": dict(run.manifest["wanted"])}


def check_parent(folder: Path) -> None:
    """Complain if a folder cannot hold several runs."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"`{folder}` is a file, not a folder", hint="give the name of a folder")
    if (folder / "manifest.json").exists():
        raise OutputError(
            f"`{folder}` is a run or a benchmark of its own", hint="choose another folder for several runs"
        )


def finished_run(path: Path, request: Mapping[str, Any], options: MetricOptions, force: bool) -> Run | None:
    """Return the run in a folder if it is complete and was made for the same request."""
    recover_folder(path)
    if not path.exists():
        return None
    try:
        run = load_run(path)
    except LogInferError as error:
        if force:
            return None
        hint = "remove it, or add --force to replace it"
        raise OutputError(f"`{path}` is there, but is no complete run: {error.message}", hint=hint) from error
    return run if run.request == dict(request) and run.manifest["wanted"] == options.as_dict() else None


# -- the summary ------------------------------------------------------------------------------------


def summarise(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what evaluations with several seeds have in common.

    Parameters
    ----------
    answers
        Evaluations as JSON values, with the same figures.

    Returns
    -------
    dict
        The keys of one evaluation with means for figures; `deviation` and `interval` have the same figures as
        `metrics` and `ranking`, and `seeds` lists the figures of each seed. `learned` has the mean number of rules with
        each verdict, and the best shortcut.
    """
    if not answers:
        raise InputError("no seed, no figures", hint="ask for at least one")
    first = answers[0]
    figures = [{key: answer[key] for key in ("threshold", "metrics", "ranking")} for answer in answers]
    spread = [{key: row[key] for key in ("metrics", "ranking")} for row in figures]
    same = ("negatives", "settings", "settings_from", "tie", "published")
    thresholds = first.get("thresholds")
    diagnoses = [diagnosis for answer in answers if (diagnosis := answer.get("diagnosis"))]
    learned = {"best_shortcut": diagnoses[0]["best_shortcut"]} if diagnoses else {}
    if len(diagnoses) == len(answers):
        learned["verdicts"] = _joined([diagnosis["verdicts"] for diagnosis in diagnoses], _mean)
    notes = dict.fromkeys(note for answer in answers for note in answer.get("notes", ()))
    return {
        "system": first["system"],
        "benchmark": first["benchmark"],
        "seed": first["seed"],
        **_joined(figures, _mean),
        **{key: first[key] for key in same if key in first},
        "thresholds": None if thresholds is None else {key: thresholds[key] for key in ("kind", "criterion")},
        "notes": list(notes),
        "learned": learned,
        "confidence": CONFIDENCE,
        "deviation": _joined(spread, _deviation),
        "interval": _joined(spread, _interval),
        "seeds": [{"seed": answer["seed"], **row} for answer, row in zip(answers, figures, strict=True)],
    }


def _joined(values: Sequence[Any], join: Callable[[Sequence[float]], Any]) -> Any:
    """Join the numbers under the same keys of nested mappings; anything else stays if it is always the same."""
    first = values[0]
    if isinstance(first, Mapping):
        shared = [key for key in first if all(key in value for value in values)]  # older runs have fewer figures
        return {key: _joined([value[key] for value in values], join) for key in shared}
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return join([float(value) for value in values])
    return first if all(value == first for value in values) else None


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation over all seeds, as estimated from those that were tried."""
    if len(values) < 2:
        return None
    mean = _mean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def half_interval(values: Sequence[float]) -> float | None:
    """Return half the width of the interval of a mean (Student's t); None for fewer than two values."""
    from scipy.special import stdtrit

    deviation = _deviation(values)
    if deviation is None:
        return None
    return float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * deviation / math.sqrt(len(values))


def _interval(values: Sequence[float]) -> list[float] | None:
    """Return where the mean lies with 95 % probability."""
    half = half_interval(values)
    if half is None:
        return None
    low, high = _mean(values) - half, _mean(values) + half
    if all(0 <= value <= 1 for value in values):  # a share of something, and so is its mean
        low, high = max(low, 0.0), min(high, 1.0)
    return [low, high]


# -- beside each other ------------------------------------------------------------------------------

# Which verdicts of a diagnosis are counted together.
COUNTED = {
    "learned": ("learned",),
    "shortcut": ("shortcut",),
    "not_learned": ("in part", "not learned"),
    "open": ("untested", "not testable"),
}


def comparison_rows(answers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what to compare systems by, those with the best balanced accuracy first, then with the best C-MRR.

    Parameters
    ----------
    answers
        Evaluations as JSON values (`Evaluation.as_dict`, `Run.as_dict` or the summary of several seeds), with the
        `seconds` they took if those are known.

    Returns
    -------
    list of dict
        `system`, `benchmark`, `negatives`; `balanced_accuracy` with its 95 % `interval`; `shortcut_accuracy`, that of
        the best shortcut; how many rules were `learned`, replaced by a `shortcut` or `not_learned`, and how many are
        `open`, since the test triples cannot tell; `c_mrr`, filtered where there is a choice, and `published_c_mrr`;
        `seconds`.
        None for what is not known.
    """
    rows = [_row(answer) for answer in answers]
    keys = ("balanced_accuracy", "c_mrr")
    return sorted(rows, key=lambda row: [math.inf if row[key] is None else -row[key] for key in keys])


def _row(answer: Mapping[str, Any]) -> dict[str, Any]:
    learned = answer.get("diagnosis") or answer.get("learned") or {}
    verdicts = learned.get("verdicts") or {}
    counts = {key: sum(verdicts.get(verdict, 0) for verdict in which) for key, which in COUNTED.items()}
    ranking = answer.get("ranking") or {}
    figures: Mapping[str, Any] = ranking.get("filtered") or next(iter(ranking.values()), {})
    interval = ((answer.get("interval") or {}).get("metrics") or {}).get("balanced_accuracy")
    return {
        **{key: answer.get(key) for key in ("system", "benchmark", "negatives")},
        "balanced_accuracy": answer["metrics"].get("balanced_accuracy"),
        "interval": interval,
        "shortcut_accuracy": (learned.get("best_shortcut") or {}).get("balanced_accuracy"),
        **(counts if any(counts.values()) else dict.fromkeys(counts)),
        "c_mrr": figures.get("c_mrr"),
        "published_c_mrr": (answer.get("published") or {}).get("c_mrr"),
        "seconds": answer.get("seconds"),
    }
