"""What a report is about: the runs and benchmarks in some folders, in order.

`collect` finds them. A `Cell` is one system on one benchmark, with a run for each seed. Benchmarks are read when a
page first asks for one, and kept while they fit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loginfer.benchmark.construction.suite import all_entries
from loginfer.benchmark.folder.manifest import FORMAT as BENCHMARK_FORMAT
from loginfer.benchmark.recipe import Recipe
from loginfer.documents import read_document
from loginfer.errors import InputError
from loginfer.evaluation.runs import FORMAT as RUN_FORMAT
from loginfer.evaluation.runs import Run, load_run
from loginfer.report.paper import SYSTEMS

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark


# Benchmarks are kept while all together hold at most so many triples: some hundred megabytes.
MAX_TRIPLES = 20_000_000


class Library:
    """Reads benchmarks, and keeps as many as fit; the one read last is always kept."""

    def __init__(self) -> None:
        self._kept: dict[Path, Benchmark] = {}
        self._sums: dict[Path, str] = {}

    def load(self, folder: Path) -> Benchmark:
        """Return the benchmark in a folder."""
        from loginfer.benchmark import load_benchmark

        if folder not in self._kept:
            benchmark = load_benchmark(folder)
            held_triples = sum(_triples(kept) for kept in self._kept.values())
            if held_triples + _triples(benchmark) > MAX_TRIPLES:
                self._kept.clear()
            self._kept[folder] = benchmark
        return self._kept[folder]

    def sum_of(self, folder: Path) -> str:
        """Return the checksum of the benchmark in a folder, as its runs have it in their manifest."""
        from loginfer.evaluation.runs import benchmark_sum

        if folder not in self._sums:
            self._sums[folder] = benchmark_sum(self.load(folder))
        return self._sums[folder]


def _triples(benchmark: Benchmark) -> int:
    sets = [benchmark.positives, *(negatives.splits for negatives in benchmark.negatives.values())]
    return sum(sum(splits.sizes.values()) for splits in sets)


RESULT_FORMAT = "loginfer-result"


class KeptFigures(Run):
    """A run of which only the figures were kept, in a file of `loginfer reproduce`: no scores, no diagnosis."""

    def metrics(self) -> dict[str, Any]:
        """Return the figures."""
        figures: dict[str, Any] = self.manifest["figures"]
        return figures

    def diagnosis(self) -> dict[str, Any]:
        """Return nothing: it was not kept."""
        return {}


def _kept_figures(path: Path, result: Mapping[str, Any]) -> Iterator[Run]:
    """Yield the runs in a file of results, one for each seed."""
    try:
        benchmark = {"name": result["benchmark"], "sha256": result["benchmark_sha256"]}
        request = {key: result[key] for key in ("system", "negatives", "settings")} | {"benchmark": benchmark}
        for seed in result["seeds"]:
            figures = {key: seed[key] for key in ("metrics", "ranking")}
            manifest = {"request": request | {"seed": seed["seed"]}, "files": {}, "figures": figures}
            yield KeptFigures(path, manifest | {"recipe": {key: result[key] for key in ("protocol",) if key in result}})
    except (KeyError, TypeError) as error:
        raise InputError(f"this file of results lacks {error}", where=str(path), hint="make it again") from error


def figures_in(metrics: Mapping[str, Any], protocol: str | None) -> Mapping[str, Any]:
    """Return the figures of classification in a `metrics.json`, or those of the ranking under a protocol."""
    figures: Mapping[str, Any] = metrics["metrics"] if protocol is None else metrics["ranking"].get(protocol, {})
    return figures


# Systems that the paper does not have, after its own; others follow by name.
_MORE_SYSTEMS = ("exact", "contrast", "external", "oracle")


@dataclass(frozen=True)
class Cell:
    """One system on one benchmark: the runs with each seed.

    Parameters
    ----------
    system
        How the report calls the system: its name, with settings where one name has several.
    benchmark
        How the report calls the benchmark: its name, with the method where it has several.
    runs
        One for each seed, in the order of the seeds.
    """

    system: str
    benchmark: str
    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        """The run with the smallest seed."""
        return self.runs[0]

    @property
    def name(self) -> str:
        """The system's own name, without settings."""
        return self.first.system

    @property
    def method(self) -> str | None:
        """The method that made its negatives."""
        return self.first.method

    @cached_property
    def metrics(self) -> tuple[Mapping[str, Any], ...]:
        """The `metrics.json` of each run."""
        return tuple(run.metrics() for run in self.runs)

    def values(self, metric: str, protocol: str | None = None) -> list[float]:
        """Return a figure of each seed, of the ranking if a protocol is named; without undefined ones."""
        values = [figures_in(metrics, protocol).get(metric) for metrics in self.metrics]
        return [float(value) for value in values if value is not None]

    def mean(self, metric: str, protocol: str | None = None) -> float | None:
        """Return the mean of a figure over the seeds, if it is defined."""
        values = self.values(metric, protocol)
        return sum(values) / len(values) if values else None


@dataclass(frozen=True)
class Collection:
    """Everything a report is about.

    Parameters
    ----------
    cells
        Benchmark by benchmark, system by system.
    benchmarks
        Folders of benchmarks that were found, by the report's name of the benchmark.
    notes
        What was left out, and why.
    library
        Reads the benchmarks.
    """

    cells: tuple[Cell, ...]
    benchmarks: Mapping[str, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    library: Library = field(default_factory=Library, compare=False, repr=False)

    @cached_property
    def light(self) -> bool:
        """Whether only figures of the runs were kept."""
        return any(isinstance(cell.first, KeptFigures) for cell in self.cells)

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """All systems: the paper's in its order, then others."""
        return tuple(dict.fromkeys(c.system for c in sorted(self.cells, key=_system_order)))

    @cached_property
    def benchmark_names(self) -> tuple[str, ...]:
        """All benchmarks that have a run: the suite's in its order, then others."""
        return tuple(dict.fromkeys(cell.benchmark for cell in self.cells))

    @cached_property
    def _by_names(self) -> dict[tuple[str, str], Cell]:
        return {(cell.system, cell.benchmark): cell for cell in self.cells}

    def cell(self, system: str, benchmark: str) -> Cell | None:
        """Return the runs of one system on one benchmark, if there are any."""
        return self._by_names.get((system, benchmark))

    def systems_of(self, cells: Iterable[Cell]) -> list[str]:
        """Return the systems of some cells, in the order of all systems."""
        present = {cell.system for cell in cells}
        return [system for system in self.systems if system in present]

    def of_system(self, system: str) -> list[Cell]:
        """Return all cells of a system."""
        return [cell for cell in self.cells if cell.system == system]

    def of_benchmark(self, benchmark: str) -> list[Cell]:
        """Return all cells of a benchmark, in the order of the systems."""
        cells = [self.cell(system, benchmark) for system in self.systems]
        return [cell for cell in cells if cell is not None]


def collect(
    paths: Iterable[str | Path], *, tell: Callable[[int], None] = lambda count: None, verify: bool = False
) -> Collection:
    """Find all runs and benchmarks in folders.

    Parameters
    ----------
    paths
        Folders of runs and benchmarks, or folders that hold such or files of results, however deep.
    tell
        Called with the number of runs found so far.
    verify
        Compare the files of each run with the sums in its manifest.

    Raises
    ------
    InputError
        If there is no run, or two runs of the same system, settings and seed on the same benchmark.
    """
    runs: list[Run] = []
    manifests: list[tuple[Path, dict[str, Any]]] = []
    notes: list[str] = []
    folders = [Path(path) for path in paths]
    for folder, manifest in _manifests(folders):
        if manifest.get("format") == RUN_FORMAT:
            runs.append(load_run(folder, verify=verify))
            tell(len(runs))
        elif manifest.get("format") == BENCHMARK_FORMAT:
            manifests.append((folder, manifest))
        elif manifest.get("format") == RESULT_FORMAT:
            runs += _kept_figures(folder, manifest)
            tell(len(runs))
    if not runs:
        listed = ", ".join(f"`{path}`" for path in folders)
        hint = "make one with `loginfer evaluate BENCH --system NAME --out RUN`, or see `loginfer audit BENCH…`"
        raise InputError(f"there is no run in {listed}", hint=hint)
    if len({isinstance(run, KeptFigures) for run in runs}) > 1:
        hint = "make one report of the runs, and another of the files"
        raise InputError("there are both runs and files of results", hint=hint)
    library = Library()
    cells = _cells(runs, _recipes(runs, manifests, library))
    return Collection(tuple(cells), _benchmarks(cells, manifests, notes, library), tuple(notes), library)


def _manifests(paths: Sequence[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield all folders with a manifest, and files of results, each once, in the order of their paths."""
    from loginfer.kg.catalogue import is_named

    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            if is_named(str(path)):
                hint = "leave it out: cards are for benchmarks that LogInfer built"
                raise InputError(f"`{path}` is a data set of the catalogue, not a folder of runs", hint=hint)
            raise InputError(f"no file or folder `{path}`", hint="check the path")
        if not path.is_dir():
            raise InputError(f"`{path}` is a file, not a folder of runs", hint="give the folder it is in")
        for folder, subfolders, files in os.walk(path, followlinks=True):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            current = Path(folder)
            if "manifest.json" not in files:
                for name in sorted(name for name in files if name.endswith(".json")):
                    if (current / name).resolve() not in seen:
                        seen.add((current / name).resolve())
                        yield current / name, _json(current / name)
                continue
            subfolders.clear()  # runs and benchmarks do not contain each other
            if current.resolve() not in seen:
                seen.add(current.resolve())
                yield current, _json(current / "manifest.json")


def _json(path: Path) -> dict[str, Any]:
    manifest = read_document(path, Any, what="run or benchmark", hint="remove it, or get it again")
    return manifest if isinstance(manifest, dict) else {}


# -- cells --------------------------------------------------------------------------------------


def _cells(runs: Sequence[Run], recipes: Mapping[str, Mapping[str, Any]]) -> list[Cell]:
    benchmarks = _benchmark_labels(runs, recipes)
    systems = _system_labels(runs)
    grouped: dict[tuple[str, str], dict[int, Run]] = {}
    for run, benchmark, system in zip(runs, benchmarks, systems, strict=True):
        seeds = grouped.setdefault((system, benchmark), {})
        if run.seed in seeds:
            raise InputError(
                f"`{seeds[run.seed].path}` and `{run.path}` are the same: {system} with seed {run.seed} on {benchmark}",
                hint="give one of them",
            )
        seeds[run.seed] = run
    cells = [Cell(*key, tuple(seeds[seed] for seed in sorted(seeds))) for key, seeds in grouped.items()]
    return sorted(cells, key=lambda cell: (_benchmark_order(cell), _system_order(cell)))


def _recipes(
    runs: Sequence[Run], manifests: Sequence[tuple[Path, dict[str, Any]]], library: Library
) -> dict[str, Mapping[str, Any]]:
    """Return by checksum what is not usual in the recipes of benchmarks that share their name, as far as known."""
    sums = _sums_by_name(runs)
    shared = [(folder, m) for folder, m in manifests if len(sums.get(m.get("name", ""), ())) > 1]
    recipes = {_sum(run): run.manifest.get("recipe") or {} for run in runs}
    recipes |= {library.sum_of(folder): manifest.get("recipe") or {} for folder, manifest in shared}
    usual = {declared.name: declared.default for declared in fields(Recipe)}
    return {key: {k: v for k, v in recipe.items() if usual.get(k) != v} for key, recipe in recipes.items()}


def _sums_by_name(runs: Sequence[Run]) -> dict[str, set[str]]:
    sums: dict[str, set[str]] = {}
    for run in runs:
        sums.setdefault(run.benchmark, set()).add(_sum(run))
    return sums


def _benchmark_labels(runs: Sequence[Run], recipes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Name benchmarks: with what differs where two share a name, with the method where one has several.

    Where that is not known, or nothing in their recipes differs, with a part of the checksum.
    """
    sums, methods = _sums_by_name(runs), {(run.benchmark, run.method) for run in runs}
    labels = []
    for run in runs:
        namesakes = [recipes.get(other, {}) for other in sums[run.benchmark]]
        label = f"{run.benchmark}{_differing(recipes.get(_sum(run), {}), namesakes)}"
        several = sum(name == run.benchmark for name, _ in methods) > 1
        labels.append(f"{label}, {run.method or 'no negatives'}" if several else label)
    sums = {label: {_sum(run) for run, other in zip(runs, labels, strict=True) if other == label} for label in labels}
    return [f"{o} ({_sum(r)[:8]})" if len(sums[o]) > 1 else o for r, o in zip(runs, labels, strict=True)]


def _differing(settings: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> str:
    """Return the settings that not all others have, in brackets; the methods for negatives are named elsewhere."""
    texts = [
        f"{key}={'+'.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in settings.items()
        if key not in ("name", "negatives") and any(key not in o or o[key] != value for o in others)
    ]
    return f" ({', '.join(texts)})" if texts else ""


def _system_labels(runs: Sequence[Run]) -> list[str]:
    """Name systems: with the settings in which runs of one name on one benchmark differ."""
    settings: dict[str, dict[tuple[str, str, str | None], set[str]]] = {}
    for run in runs:
        key = (run.benchmark, _sum(run), run.method)
        text = json.dumps(run.manifest["request"]["settings"], sort_keys=True)
        settings.setdefault(run.system, {}).setdefault(key, set()).add(text)
    several = {system for system, texts in settings.items() if any(len(alike) > 1 for alike in texts.values())}
    return [_label(run, runs) if run.system in several else run.system for run in runs]


def _label(run: Run, runs: Sequence[Run]) -> str:
    settings = [other.manifest["request"]["settings"] for other in runs if other.system == run.system]
    return f"{run.system}{_differing(run.manifest['request']['settings'], settings)}"


def _sum(run: Run) -> str:
    return str(run.manifest["request"]["benchmark"]["sha256"])


def _benchmark_order(cell: Cell) -> tuple[int, str]:
    positions = {entry.name: position for position, entry in enumerate(all_entries())}
    return positions.get(cell.first.benchmark, len(positions)), cell.benchmark


def _system_order(cell: Cell) -> tuple[int, str]:
    names = [*SYSTEMS, *_MORE_SYSTEMS]
    # Other systems, such as the user's own, stand before the oracle.
    position = names.index(cell.name) if cell.name in names else len(names) - 1.5
    return int(2 * position), cell.system


# -- benchmarks ---------------------------------------------------------------------------------


def _benchmarks(
    cells: Sequence[Cell], manifests: Sequence[tuple[Path, dict[str, Any]]], notes: list[str], library: Library
) -> dict[str, Path]:
    """Find the folder of each benchmark that has runs, by its name and then by its checksum."""
    paths: dict[str, Path] = {}
    for cell in cells:
        if cell.benchmark in paths:
            continue
        namesakes = [folder for folder, manifest in manifests if manifest.get("name") == cell.first.benchmark]
        matching = [folder for folder in namesakes if library.sum_of(folder) == _sum(cell.first)]
        if matching:
            paths[cell.benchmark] = matching[0]
        elif namesakes:
            notes.append(f"the folder of {cell.benchmark} is not the one that its runs were made with")
    return paths
