"""The figures of a reproduction: one small file for each system and benchmark, with the interface of the paper's.

Beside them, what shortcuts reach on the benchmarks of the table `evidence`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from loginfer.benchmark.learned_shortcut import LEARNED, shortcut_results
from loginfer.errors import LogInferError
from loginfer.files import write_text
from loginfer.report.paper import METRICS, SYSTEMS, benchmark_parts, paper_recovery, paper_value
from loginfer.reproduction.planning import EVIDENCE, ONE_SEED, PlannedCell, Request, benchmarks_of, data, short, title
from loginfer.reproduction.running import Folder, stable_json

# What is kept of each ranking protocol; the run has the rest.
RANKING_FIGURES = ("c_mrr", "c_hits@1", "c_hits@10", "r_mrr", "r_hits@1")


def write_results(folder: Folder) -> list[dict[str, Any]]:
    """Write the file of each system and benchmark that has runs, and return what they say.

    Only seeds that were asked for count, and only benchmarks and systems that were. A run whose cell failed,
    because it was made for something else, does not count.
    """
    request = folder.request()
    all_results = []
    for benchmark in request.benchmarks:
        for system in request.systems:
            path = folder.result(system, benchmark)
            result = _result(folder, request, system, benchmark)
            if result is None:
                path.unlink(missing_ok=True)
            else:
                write_text(path, stable_json(result), force=True)
                all_results.append(result)
    return all_results


def results(folder: Folder) -> list[dict[str, Any]]:
    """Read the files that `write_results` wrote, benchmark by benchmark."""
    request = folder.request()
    paths = [folder.result(s, b) for b in request.benchmarks for s in request.systems]
    return [folder.json(path) for path in paths if path.exists()]


def _result(folder: Folder, request: Request, system: str, benchmark: str) -> dict[str, Any] | None:
    from loginfer.evaluation.runs import load_run
    from loginfer.evaluation.seeds import check_alike, summarise

    runs_folder = folder.runs / system / benchmark
    seeds = [0] if system in ONE_SEED else range(request.seeds)
    runs = []
    for seed in seeds:
        if folder.failure(PlannedCell(system, benchmark, seed)).exists():
            continue
        try:
            runs.append(load_run(runs_folder / f"seed-{seed}", verify=False))
        except LogInferError:
            continue  # missing or incomplete: the plan's outcome says so
    if not runs:
        return None
    check_alike(runs)
    answers = [_small(run.as_dict()) for run in runs]
    summary = summarise(answers)
    manifest = runs[0].manifest
    built = folder.json(folder.suite / benchmark / "manifest.json")
    return {
        "format": "loginfer-result",
        "format_version": 1,
        "system": system,
        "title": title(system),
        "benchmark": benchmark,
        "negatives": runs[0].method,
        "protocol": request.protocol,
        "budget": request.budget,
        "recipe_sha256": hashlib.sha256(stable_json(built["recipe"]).encode()).hexdigest(),
        "benchmark_sha256": manifest["request"]["benchmark"]["sha256"],
        "versions": dict(manifest["versions"]),
        "settings": dict(manifest["request"]["settings"]),
        "settings_from": dict(manifest["settings_from"]),
        "random": system not in ONE_SEED,
        "seeds": [
            {**{key: answer[key] for key in ("seed", "threshold", "metrics", "ranking")},
             "timing": _timing(folder, run.path)}
            for answer, run in zip(answers, runs, strict=True)
        ],
        "mean": {key: summary[key] for key in ("metrics", "ranking")},
        "interval": {"confidence": summary["confidence"], **summary["interval"]},
        "paper": _paper(system, benchmark),
    }  # fmt: skip


def _small(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an evaluation without breakdowns and without most figures of the ranking."""
    protocols = sorted(answer["ranking"].items())
    ranking = {protocol: {name: figures[name] for name in RANKING_FIGURES} for protocol, figures in protocols}
    small = {key: value for key, value in answer.items() if key not in ("breakdown", "diagnosis")}
    return {**small, "ranking": ranking}


def _timing(folder: Folder, run: Path) -> dict[str, Any]:
    timing = folder.json(run / "timing.json")
    return {
        "cpu_seconds": timing.get("cpu_seconds"),
        "seconds": round(sum(timing["seconds"].values()), 3),
        "peak_memory_bytes": timing.get("peak_memory_bytes"),
        # If so, the work of an earlier process is not counted.
        "resumed": timing.get("resumed", False),
    }


def _paper(system: str, benchmark: str) -> dict[str, float]:
    """Return the paper's figures of a cell, by our names, as fractions."""
    values = {metric: paper_value(system, benchmark, metric) for metric in METRICS}
    return {metric: value for metric, value in values.items() if value is not None}


# Version 1 had single shortcuts of other names and `combined`, and no intervals.
_SHORTCUTS_VERSION = 2

# Whom test triples are ranked against, where a figure is held against the paper's.
RANKING = "filtered"


class FigureSource(Protocol):
    """Where figures come from: ours, or the paper's. All are fractions between 0 and 1."""

    def mean(self, system: str, benchmark: str, metric: str) -> float | None:
        """Return a metric of a system on a benchmark; None where there is none."""

    def recovered(self, system: str, benchmark: str, figure: str) -> float | None:
        """Return a share of rules: `eps_ent`, `eps_cont`, `eps_ent_random_heads`, `subrules_entailed`."""

    def measured(self, name: str) -> Mapping[str, Any] | None:
        """Return the figures of a measurement; None where it was not made."""


@dataclass(frozen=True)
class Figures:
    """What a reproduction has found.

    Parameters
    ----------
    results
        The files of results, by system and benchmark.
    rules
        What mined rules say about those of a benchmark, by system and benchmark.
    failures
        The recorded failures of cells.
    shortcuts
        The balanced accuracy of each shortcut, by benchmark.
    intervals
        Where these lie with 95 % confidence, by benchmark; figures of earlier versions have none.
    measurements
        The files of measurements, by name.
    """

    results: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    rules: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    failures: Sequence[Mapping[str, Any]] = ()
    shortcuts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    intervals: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    measurements: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def values(self, system: str, benchmark: str, metric: str) -> list[float]:
        """Return a metric of each seed, of the filtered ranking if it is one of ranking."""
        result = self.results.get((system, benchmark))
        if result is None:
            return []
        values = [_seed_value(seed, metric) for seed in result["seeds"]]
        return [value for value in values if value is not None]

    def mean(self, system: str, benchmark: str, metric: str) -> float | None:
        """Return the mean of a metric over the seeds."""
        values = self.values(system, benchmark, metric)
        return sum(values) / len(values) if values else None

    def recovered(self, system: str, benchmark: str, figure: str) -> float | None:
        """Return a share of rules."""
        share: float | None = self.rules.get((system, benchmark), {}).get(figure)
        return share

    def measured(self, name: str) -> Mapping[str, Any] | None:
        """Return the figures of a measurement."""
        figures: Mapping[str, Any] | None = self.measurements.get(name, {}).get("figures")
        return figures

    def best_shortcut(self, benchmark: str) -> tuple[str, float] | None:
        """Return the learned shortcut on a benchmark and its balanced accuracy.

        Where it was not measured, as in figures of earlier versions: the best of the others.
        """
        accuracies = self.shortcuts.get(benchmark)
        return max(accuracies.items(), key=lambda item: (item[0] == LEARNED, item[1])) if accuracies else None

    def failed(self, system: str, benchmark: str, what: str = "run") -> list[Mapping[str, Any]]:
        """Return the recorded failures of a system on a benchmark."""
        key = (system, benchmark, what)
        return [f for f in self.failures if (f["system"], f["benchmark"], f["what"]) == key]


class PaperFigures:
    """What the paper has printed."""

    def mean(self, system: str, benchmark: str, metric: str) -> float | None:
        """Return the paper's figure for a metric."""
        return paper_value(system, benchmark, metric)

    def recovered(self, system: str, benchmark: str, figure: str) -> float | None:
        """Return the paper's figure for a share of rules."""
        parts = benchmark_parts(benchmark)
        if parts and system in SYSTEMS and figure == "subrules_entailed" and parts[:2] == ("FB", "trian"):
            share = data("text.toml")["subrules_entailed"].get(system)
            return None if share is None else share / 100
        return paper_recovery(system, benchmark, figure)

    def measured(self, name: str) -> None:
        """Return nothing: the paper prints no such figures."""


def read_figures(folder: Folder) -> Figures:
    """Read all figures of a reproduction's folder."""
    by_cell = {(result["system"], result["benchmark"]): result for result in results(folder)}
    request = folder.request()
    paths = {(s, b): folder.rules(s, b) for b in request.benchmarks for s in request.systems}
    rules = {cell: folder.json(path) for cell, path in paths.items() if path.exists()}
    measured = {b: folder.json(folder.shortcuts(b)) for b in request.benchmarks if folder.shortcuts(b).exists()}
    shortcuts = {benchmark: figures["balanced_accuracy"] for benchmark, figures in measured.items()}
    intervals = {benchmark: figures.get("interval", {}) for benchmark, figures in measured.items()}
    made = {path.stem: folder.json(path) for path in sorted(folder.path.glob("statements/*.json"))}
    return Figures(by_cell, rules, folder.failures(), shortcuts, intervals, made)


def stated_averages() -> dict[str, float]:
    """Return the averages over the eight systems that the paper's section 5.3 states, as fractions."""
    return {name: value / 100 for name, value in data("text.toml")["averages"].items()}


def _seed_value(seed: Mapping[str, Any], metric: str) -> float | None:
    ranking: Mapping[str, float] = seed["ranking"].get(RANKING, {})
    value: float | None = seed["metrics"].get(metric, ranking.get(metric))
    return value


def groups_of(benchmarks: Sequence[str]) -> tuple[str, ...]:
    """Return graph and pattern of the benchmarks that the table is about, such as `FB-sym`."""
    about = [name for name in benchmarks_of(EVIDENCE) if name in benchmarks]
    return tuple(dict.fromkeys(short(name).rsplit("-", 1)[0] for name in about))


def write_shortcuts(folder: Folder) -> None:
    """Measure the shortcuts on each benchmark that was built, unless they were measured on it already."""
    request = folder.request()
    if EVIDENCE not in request.tables:
        return
    about = set(benchmarks_of(EVIDENCE))
    for benchmark in request.benchmarks:
        manifest = folder.suite / benchmark / "manifest.json"
        if benchmark in about and manifest.exists():
            # The manifest holds the sums of all files.
            digest = hashlib.sha256(manifest.read_bytes()).hexdigest()
            path = folder.shortcuts(benchmark)
            measured = folder.json(path) if path.exists() else {}
            if (measured.get("manifest_sha256"), measured.get("format_version")) != (digest, _SHORTCUTS_VERSION):
                _measure(folder, benchmark, digest)


def _measure(folder: Folder, benchmark: str, digest: str) -> None:
    from loginfer.benchmark import load_benchmark
    from loginfer.systems.interface import choose_method

    loaded = load_benchmark(folder.suite / benchmark, verify=False)
    method = choose_method(loaded, None)
    results = {} if method is None else shortcut_results(loaded, method)
    document = {
        "format": "loginfer-shortcuts",
        "format_version": _SHORTCUTS_VERSION,
        "benchmark": benchmark,
        "negatives": method,
        "manifest_sha256": digest,
        "test": {"positives": len(loaded.positives.test),
                 "negatives": 0 if method is None else len(loaded.negatives[method].splits.test)},
        "balanced_accuracy": {name: result.balanced_accuracy for name, result in results.items()},
        "interval": {name: list(result.interval) for name, result in results.items()},
    }  # fmt: skip
    write_text(folder.shortcuts(benchmark), stable_json(document), force=True)
