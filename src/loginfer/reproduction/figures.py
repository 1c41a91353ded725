"""The figures of a reproduction: one small file for each system and benchmark, asked in the same way as the paper's.

Beside them what shortcuts reach on the benchmarks of the table `evidence`.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from loginfer.errors import LogInferError
from loginfer.report.paper import SYSTEMS, benchmark_parts, paper_recovery, paper_value
from loginfer.reproduction.planning import EVIDENCE, ONE_SEED, PlannedCell, Request, benchmarks_of, short, title
from loginfer.reproduction.running import Folder, stable_json

# What is kept of each ranking protocol; the run has the rest.
RANKING_FIGURES = ("c_mrr", "c_hits@1", "c_hits@10", "r_mrr", "r_hits@1")


def write_results(folder: Folder) -> list[dict[str, Any]]:
    """Write the file of each system and benchmark that has runs, and return what they say.

    Only seeds that were asked for count, and only benchmarks and systems that were. A run whose cell failed,
    because it was made for something else, does not count.
    """
    request = folder.request()
    found = []
    for benchmark in request.benchmarks:
        for system in request.systems:
            path = folder.result(system, benchmark)
            result = _result(folder, request, system, benchmark)
            if result is None:
                path.unlink(missing_ok=True)
            else:
                folder.write(path, stable_json(result))
                found.append(result)
    return found


def results(folder: Folder) -> list[dict[str, Any]]:
    """Read the files that `write_results` wrote, benchmark by benchmark."""
    request = folder.request()
    paths = [folder.result(s, b) for b in request.benchmarks for s in request.systems]
    return [folder.json(path) for path in paths if path.exists()]


def _result(folder: Folder, request: Request, system: str, benchmark: str) -> dict[str, Any] | None:
    from loginfer.evaluation.runs import load_run
    from loginfer.evaluation.seeds import check_alike, summarise

    place = folder.runs / system / benchmark
    seeds = [0] if system in ONE_SEED else range(request.seeds)
    runs = []
    for seed in seeds:
        if folder.failure(PlannedCell(system, benchmark, seed)).exists():
            continue
        try:
            runs.append(load_run(place / f"seed-{seed}", verify=False))
        except LogInferError:
            continue  # not there, or not whole: the plan's outcome says so
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
        "recipe_sha256": _recipe_sum(built["recipe"]),
        "benchmark_sha256": manifest["request"]["benchmark"]["sha256"],
        "versions": dict(manifest["versions"]),
        "settings": dict(manifest["request"]["settings"]),
        "settings_from": dict(manifest["settings_from"]),
        "random": system not in ONE_SEED,
        "seeds": [
            {"seed": answer["seed"], "threshold": answer["threshold"], "metrics": answer["metrics"],
             "ranking": answer["ranking"], "timing": _timing(folder, run.path)}
            for answer, run in zip(answers, runs, strict=True)
        ],
        "mean": {key: summary[key] for key in ("metrics", "ranking")},
        "interval": {"confidence": summary["confidence"], **summary["interval"]},
        "paper": _paper(system, benchmark),
    }  # fmt: skip


def _small(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an evaluation without breakdowns and without most figures of the ranking."""
    ranking = {
        protocol: {name: figures[name] for name in RANKING_FIGURES}
        for protocol, figures in sorted(answer["ranking"].items())
    }
    kept = {key: value for key, value in answer.items() if key not in ("breakdown", "diagnosis")}
    return {**kept, "ranking": ranking}


def _timing(folder: Folder, run: Path) -> dict[str, Any]:
    known = folder.json(run / "timing.json")
    return {
        "cpu_seconds": known.get("cpu_seconds"),
        "seconds": round(sum(known["seconds"].values()), 3),
        "peak_memory_bytes": known.get("peak_memory_bytes"),
        # Then the work of an earlier process is not counted.
        "resumed": known.get("resumed", False),
    }


def _recipe_sum(recipe: Mapping[str, Any]) -> str:
    return hashlib.sha256(stable_json(recipe).encode()).hexdigest()


def _paper(system: str, benchmark: str) -> dict[str, float]:
    """Return the paper's figures of a cell, by our names, as fractions."""
    from loginfer.report.paper import METRICS, paper_value

    found = {metric: paper_value(system, benchmark, metric) for metric in METRICS}
    return {metric: value for metric, value in found.items() if value is not None}


# Whom test triples are ranked against, where a figure is held against the paper's.
RANKING = "filtered"


class FigureSource(Protocol):
    """Where figures come from: ours, or the paper's. All are fractions between 0 and 1."""

    def mean(self, system: str, benchmark: str, metric: str) -> float | None:
        """Return a metric of a system on a benchmark; None where there is none."""

    def recovered(self, system: str, benchmark: str, figure: str) -> float | None:
        """Return a share of rules: `eps_ent`, `eps_cont`, `eps_ent_random_heads`, `subrules_entailed`."""


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
        What is written down about cells that failed.
    shortcuts
        The balanced accuracy of each shortcut, by benchmark.
    """

    results: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    rules: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    failures: Sequence[Mapping[str, Any]] = ()
    shortcuts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def values(self, system: str, benchmark: str, metric: str) -> list[float]:
        """Return a metric of each seed, of the filtered ranking if it is one of ranking."""
        result = self.results.get((system, benchmark))
        if result is None:
            return []
        found = [_of(seed, metric) for seed in result["seeds"]]
        return [value for value in found if value is not None]

    def mean(self, system: str, benchmark: str, metric: str) -> float | None:
        """Return the mean of a metric over the seeds."""
        values = self.values(system, benchmark, metric)
        return sum(values) / len(values) if values else None

    def recovered(self, system: str, benchmark: str, figure: str) -> float | None:
        """Return a share of rules."""
        found: float | None = self.rules.get((system, benchmark), {}).get(figure)
        return found

    def best_shortcut(self, benchmark: str) -> tuple[str, float] | None:
        """Return the shortcut with the largest balanced accuracy on a benchmark, and that accuracy."""
        known = self.shortcuts.get(benchmark)
        return max(known.items(), key=lambda item: item[1]) if known else None

    def failed(self, system: str, benchmark: str, what: str = "run") -> list[Mapping[str, Any]]:
        """Return what is written down about failures of a system on a benchmark."""
        wanted = (system, benchmark, what)
        return [f for f in self.failures if (f["system"], f["benchmark"], f["what"]) == wanted]


class PaperFigures:
    """What the paper has printed."""

    def mean(self, system: str, benchmark: str, metric: str) -> float | None:
        """Return the paper's figure for a metric."""
        return paper_value(system, benchmark, metric)

    def recovered(self, system: str, benchmark: str, figure: str) -> float | None:
        """Return the paper's figure for a share of rules."""
        parts = benchmark_parts(benchmark)
        if parts and system in SYSTEMS and figure == "subrules_entailed" and parts[:2] == ("FB", "trian"):
            share = _text()["subrules_entailed"].get(system)
            return None if share is None else share / 100
        return paper_recovery(system, benchmark, figure)


def read_figures(folder: Folder) -> Figures:
    """Read all figures of a reproduction's folder."""
    found = {(result["system"], result["benchmark"]): result for result in results(folder)}
    request = folder.request()
    paths = {(s, b): folder.rules(s, b) for b in request.benchmarks for s in request.systems}
    rules = {place: folder.json(path) for place, path in paths.items() if path.exists()}
    there = {b: folder.shortcuts(b) for b in request.benchmarks}
    reached = {b: folder.json(path)["balanced_accuracy"] for b, path in there.items() if path.exists()}
    return Figures(found, rules, folder.failures(), reached)


def stated_averages() -> dict[str, float]:
    """Return the averages over the eight systems that the paper's section 5.3 states, as fractions."""
    return {name: value / 100 for name, value in _text()["averages"].items()}


def _of(seed: Mapping[str, Any], metric: str) -> float | None:
    ranking: Mapping[str, float] = seed["ranking"].get(RANKING, {})
    found: float | None = seed["metrics"].get(metric, ranking.get(metric))
    return found


@cache
def _text() -> dict[str, dict[str, float]]:
    place = resources.files("loginfer.reproduction") / "data" / "text.toml"
    return tomllib.loads(place.read_text(encoding="utf-8"))


def groups_of(benchmarks: Sequence[str]) -> tuple[str, ...]:
    """Return graph and pattern of the benchmarks that the table is about, such as `FB-sym`."""
    about = [name for name in benchmarks_of(EVIDENCE) if name in benchmarks]
    return tuple(dict.fromkeys(short(name).rsplit("-", 1)[0] for name in about))


def write_shortcuts(folder: Folder) -> None:
    """Measure the shortcuts on each benchmark that is there; what is known of the same benchmark is kept."""
    request = folder.request()
    if EVIDENCE not in request.tables:
        return
    about = set(benchmarks_of(EVIDENCE))
    for benchmark in request.benchmarks:
        manifest = folder.suite / benchmark / "manifest.json"
        if benchmark in about and manifest.exists():
            # The manifest holds the sums of all files.
            digest = hashlib.sha256(manifest.read_bytes()).hexdigest()
            if _known_sum(folder, benchmark) != digest:
                _measure(folder, benchmark, digest)


def _known_sum(folder: Folder, benchmark: str) -> str | None:
    path = folder.shortcuts(benchmark)
    found = folder.json(path).get("manifest_sha256") if path.exists() else None
    return None if found is None else str(found)


def _measure(folder: Folder, benchmark: str, digest: str) -> None:
    from loginfer.benchmark import load_benchmark
    from loginfer.benchmark.shortcut_gate import balanced_accuracies
    from loginfer.systems.interface import choose_method

    found = load_benchmark(folder.suite / benchmark, verify=False)
    method = choose_method(found, None)
    reached = {} if method is None else balanced_accuracies(found, method)
    told = {
        "format": "loginfer-shortcuts",
        "format_version": 1,
        "benchmark": benchmark,
        "negatives": method,
        "manifest_sha256": digest,
        "test": {"positives": len(found.positives.test),
                 "negatives": 0 if method is None else len(found.negatives[method].splits.test)},
        "balanced_accuracy": reached,
    }  # fmt: skip
    folder.write(folder.shortcuts(benchmark), stable_json(told))
