"""The figures of a reproduction: one small file for each system and benchmark, all seeds together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loginfer.errors import LogInferError
from loginfer.reproduction.folder import Folder, stable_json
from loginfer.reproduction.participants import ONE_SEED, title
from loginfer.reproduction.planning import PlannedCell, Request

__all__ = ["RANKING_FIGURES", "results", "write_results"]

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
