"""All figures of a reproduction, and all of the paper's, to be asked in the same way."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Protocol

from loginfer.report.paper import SYSTEMS, benchmark_parts, paper_figures, paper_value
from loginfer.reproduction.collecting import results
from loginfer.reproduction.folder import Folder

__all__ = ["Figures", "PaperFigures", "Source", "read_figures", "stated_averages"]

# Whom test triples are ranked against, where a figure is held against the paper's.
RANKING = "filtered"


class Source(Protocol):
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
        if parts is None or system not in SYSTEMS:
            return None
        if figure == "subrules_entailed" and parts[:2] == ("FB", "trian"):
            share = _text()["subrules_entailed"].get(system)
            return None if share is None else share / 100
        return _recovered().get((*parts[:2], SYSTEMS[system], figure))


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
def _recovered() -> dict[tuple[str, str, str, str], float]:
    return {
        (f.kg, f.pattern, f.system, f.metric): f.value / 100
        for f in paper_figures()
        if f.table == "result-rule"
    }


@cache
def _text() -> dict[str, dict[str, float]]:
    place = resources.files("loginfer.reproduction") / "data" / "text.toml"
    return tomllib.loads(place.read_text(encoding="utf-8"))
