"""The 37 benchmarks.

The benchmarks of the paper: 37, and the two with random corruption that it compares with them.

Building the suite: in parallel, resumable, with shared work done once.

The suite's sizes next to the paper's, with the reason wherever they differ.

The suite of the paper's benchmarks.
"""

from __future__ import annotations

import fnmatch
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loginfer._version import __version__
from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.folder.manifest import read_manifest
from loginfer.benchmark.negatives.methods import NEAR_MISSES, method_named
from loginfer.benchmark.recipe import Match, Recipe
from loginfer.errors import LimitError, LogInferError, OutputError, UnknownNameError
from loginfer.files import atomic_write, recover_folder, remove_leftovers

if TYPE_CHECKING:
    from loginfer.benchmark.benchmark import Benchmark


@dataclass(frozen=True, slots=True)
class Group:
    """The benchmarks of one graph and pattern: they share rules and positives.

    Parameters
    ----------
    name
        Graph and pattern, such as `FB-sym`.
    kg
        The graph.
    pattern, rules
        The pattern, or the rule set.
    k1, k2
        As in the paper's table of benchmarks.
    methods
        For negatives, in the paper's 37.
    more
        Methods that the paper compares beside the 37.
    paper
        Sizes in the paper: `kg`, `train`, `valid`, `test`.
    remark
        Why sizes differ from the paper's, if they do.
    """

    name: str
    kg: str
    k1: int
    k2: int
    methods: tuple[str, ...]
    paper: Mapping[str, int]
    pattern: str | None = None
    rules: str | None = None
    more: tuple[str, ...] = ()
    remark: str = ""

    def recipe(self, methods: Sequence[str], settings: Mapping[str, Any], match: tuple[Match, ...] = ()) -> Recipe:
        """Return the recipe of this group's benchmarks."""
        patterns = () if self.pattern is None else (self.pattern,)
        return Recipe(
            self.kg,
            patterns,
            self.rules,
            self.k1,
            self.k2,
            allow_fewer=True,
            negatives=tuple(methods),
            match=match,
            **settings,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One benchmark of the suite.

    Parameters
    ----------
    group
        Graph and pattern.
    method
        For negatives.
    match
        Of near misses: shortcuts on which negatives are matched to positives.
    """

    group: Group
    method: str
    match: tuple[Match, ...] = ()

    @property
    def negatives(self) -> str:
        """The method as it stands in the name: `nmm` for matched near misses."""
        return method_named(self.method).names[-1 if self.match else 0]

    @property
    def name(self) -> str:
        """The name: LogInfer-FB-sym-pa and so on."""
        return f"LogInfer-{self.group.name}-{self.negatives}"

    @property
    def in_paper(self) -> bool:
        """Whether it is one of the paper's 37."""
        return self.method in self.group.methods

    def recipe(self, settings: Mapping[str, Any]) -> Recipe:
        """Return the recipe; `settings` may hold protocol, seed, ratio, min_new and materialised."""
        return self.group.recipe((self.method,), settings, self.match).changed(name=self.name)


@lru_cache(maxsize=1)
def groups() -> tuple[Group, ...]:
    """Return the graphs and patterns of the paper's table of benchmarks, in its order."""
    text = (resources.files("loginfer.benchmark") / "data" / "suite.toml").read_text(encoding="utf-8")
    found = []
    for group in tomllib.loads(text)["group"]:
        settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in group.items()}
        found.append(Group(**settings))
    return tuple(found)


def entries() -> tuple[Entry, ...]:
    """Return all benchmarks of the paper's suite."""
    return tuple(Entry(group, method) for group in groups() for method in (*group.methods, *group.more))


def near_misses() -> tuple[Entry, ...]:
    """Return the same rules and positives with near misses, plain and matched: beside the paper's suite.

    Where symmetry is matched, other rules and positives may be chosen (see `complements`).
    """
    matches: tuple[tuple[Match, ...], ...] = ((), ("popularity", "adjacency"))
    return tuple(Entry(group, NEAR_MISSES.name, match) for group in groups() for match in matches)


def all_entries() -> tuple[Entry, ...]:
    """Return the paper's benchmarks and those with near misses, by graph and pattern."""
    place = {group.name: number for number, group in enumerate(groups())}
    return tuple(sorted((*entries(), *near_misses()), key=lambda entry: place[entry.group.name]))


def select(only: Sequence[str] = (), among: Sequence[Entry] | None = None) -> tuple[Entry, ...]:
    """Return the benchmarks whose names match one of these patterns, such as `WN-*`; by default all.

    The leading `LogInfer-` may be left out; upper and lower case are the same. Benchmarks with near misses
    are chosen by patterns that match none of the paper's, such as `WN-*-nm`.

    Parameters
    ----------
    only
        Patterns of names.
    among
        What to choose from; by default the paper's benchmarks, and for what they do not have those with
        near misses.

    Raises
    ------
    UnknownNameError
        For a pattern that no name matches.
    """
    first = entries() if among is None else tuple(among)
    every = all_entries() if among is None else first
    if not only:
        return first
    chosen: set[str] = set()
    for pattern in only:
        wanted = pattern.casefold().removeprefix("loginfer-")
        found = _matching(wanted, first) or _matching(wanted, every)
        if not found:
            error = UnknownNameError("benchmark", pattern, [_short(e) for e in every])
            error.hint = error.hint or "`loginfer suite list` shows them all"
            raise error
        chosen.update(found)
    return tuple(entry for entry in every if entry.name in chosen)


def _matching(wanted: str, among: Sequence[Entry]) -> list[str]:
    return [entry.name for entry in among if fnmatch.fnmatchcase(_short(entry).casefold(), wanted)]


def _short(entry: Entry) -> str:
    return entry.name.removeprefix("LogInfer-")


@dataclass(frozen=True, slots=True)
class Built:
    """A benchmark of the suite as it came out.

    Parameters
    ----------
    name
        Its name, and that of its folder.
    state
        `built`, `kept` (it was there already, complete and from the same recipe) or `failed`.
    manifest
        Its manifest; empty if it failed.
    error
        Why it failed.
    warnings
        What a user should know: shortcuts that do better than they may.
    """

    name: str
    state: str
    manifest: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    warnings: tuple[str, ...] = ()


def build_suite(
    out: str | Path,
    chosen: Sequence[Entry],
    *,
    settings: Mapping[str, Any] | None = None,
    engine: str = "native",
    jobs: int = 1,
    force: bool = False,
    max_shortcut: float | None = None,
    strict: bool = False,
    report: Callable[[Built], None] | None = None,
) -> list[Built]:
    """Build benchmarks of the suite, each in a folder of its own; what is there already is kept.

    Rules and positives are made once for all methods of a graph and pattern. A benchmark that fails does not
    stop the others.

    Parameters
    ----------
    out
        The folder of the suite.
    chosen
        Which benchmarks.
    settings
        Protocol, seed, ratio, min_new, materialised.
    engine
        `native` or `duckdb`.
    jobs
        Processes to use.
    force
        Replace benchmarks that are there from another recipe.
    max_shortcut
        The largest accuracy that a shortcut may have, a share above 0.5; more is a warning.
    strict
        A benchmark with more is not written, and counts as failed; one that is there stays.
    report
        Called with each benchmark as it is done.

    Raises
    ------
    OutputError
        If a folder holds something else and `force` is not set; nothing was built then.
    """
    folder = Path(out)
    settings = dict(settings or {})
    limit = _Limit(max_shortcut, strict)
    done: dict[str, Built] = {}
    pending: dict[tuple[str, tuple[str, ...]], list[Entry]] = {}
    for entry in chosen:
        kept = _kept(folder / entry.name, entry.recipe(settings), force)
        if kept is not None:
            done[entry.name] = limit.judged(Built(entry.name, "kept", kept), folder / entry.name)
            if report:
                report(done[entry.name])
        else:
            pending.setdefault((entry.group.name, entry.match), []).append(entry)
    tasks = [_Task(folder, tuple(batch), settings, engine, limit) for batch in pending.values()]
    for built in _run(tasks, jobs):
        done[built.name] = built
        if report:
            report(built)
    return [done[entry.name] for entry in chosen]


def _kept(path: Path, recipe: Recipe, force: bool) -> Mapping[str, Any] | None:
    """Return the manifest of a complete benchmark from the same recipe and version, if it is there."""
    from loginfer.benchmark.folder.folder import check_output
    from loginfer.benchmark.folder.manifest import Problem, read_manifest, verify_files

    recover_folder(path)
    if not path.exists():
        return None
    problems: list[Problem] = []
    manifest = read_manifest(path, problems) if path.is_dir() else None
    if manifest is not None:
        verify_files(path, [file.name for file in path.iterdir()], manifest, problems)
    same = manifest is not None and manifest.get("recipe") == recipe.as_dict()
    current = manifest is not None and manifest.get("versions", {}).get("loginfer") == __version__
    if same and current and not problems:
        return manifest
    if force:
        check_output(path, force=True)
        return None
    why = "is no complete benchmark"
    if problems:
        why = f"is damaged: {problems[0].message}"
    elif manifest is not None:
        why = "was built by another version" if same else "was built from another recipe"
    raise OutputError(f"`{path}` {why}", hint="choose another folder, or add --force to replace it")


@dataclass(frozen=True, slots=True)
class _Limit:
    """How well shortcuts may do; None for as well as they can."""

    accuracy: float | None
    strict: bool

    def warnings(self, benchmark: Benchmark) -> tuple[str, ...]:
        """Return what is wrong with a benchmark."""
        from loginfer.benchmark.shortcut_gate import gate

        if self.accuracy is None:
            return ()
        return tuple(exceeded.message for exceeded in gate(benchmark, self.accuracy))

    def judged(self, built: Built, path: Path) -> Built:
        """Return what became of a benchmark that is there, with warnings; failed if they are errors."""
        from loginfer.benchmark.folder.folder import load_benchmark

        if self.accuracy is None:
            return built
        told = self.warnings(load_benchmark(path, verify=False))
        if told and self.strict:
            return Built(built.name, "failed", built.manifest, "; ".join(told))
        return replace(built, warnings=told)


@dataclass(frozen=True, slots=True)
class _Task:
    """Benchmarks that share rules and positives, and how near misses are matched."""

    folder: Path
    entries: tuple[Entry, ...]
    settings: Mapping[str, Any]
    engine: str
    limit: _Limit

    @property
    def cost(self) -> int:
        """Roughly how much there is to do: triples to draw and write."""
        return len(self.entries) * self.entries[0].group.paper["train"]


def _run(tasks: Sequence[_Task], jobs: int) -> Iterator[Built]:
    """Do the tasks, the largest first, in this process or in several."""
    ordered = sorted(tasks, key=lambda task: -task.cost)
    if jobs <= 1 or len(ordered) <= 1:
        for task in ordered:
            yield from _build_group(task)
        return
    # Processes start afresh: a fork would copy the threads' locks of the libraries.
    pool = ProcessPoolExecutor(min(jobs, len(ordered)), mp_context=get_context("spawn"), initializer=_end_with_parent)
    try:
        waiting: dict[Future[list[Built]], _Task] = {pool.submit(_in_process, t): t for t in ordered}
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                waiting.pop(future)
                yield from future.result()
        pool.shutdown()
    except BaseException as error:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(10)
        for task in ordered:
            for entry in task.entries:
                recover_folder(task.folder / entry.name)
        if isinstance(error, BrokenProcessPool):
            raise LimitError(
                "a process that built benchmarks was killed, perhaps for want of memory",
                hint="what is done is kept: run the same command again with --jobs 1",
            ) from error
        raise


def _end_with_parent() -> None:
    """End this process when the one that started it is no more: nobody else would tell it to."""
    import os
    import threading

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _in_process(task: _Task) -> list[Built]:
    import signal

    # Ctrl-C is heard by the process that waits for this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return list(_build_group(task))


def _build_group(task: _Task) -> Iterator[Built]:
    from loginfer.benchmark.construction.pipeline import foundation
    from loginfer.benchmark.folder.folder import write_benchmark

    group = task.entries[0].group
    left = list(task.entries)
    try:
        recipe = group.recipe([entry.method for entry in left], task.settings, left[0].match)
        with foundation(recipe, engine=task.engine) as laid:
            while left:
                entry = left[0]
                made = laid.benchmark((entry.method,), entry.name)
                told = task.limit.warnings(made)
                built = Built(entry.name, "failed", error="; ".join(told))
                if not (told and task.limit.strict):
                    manifest = write_benchmark(made, task.folder / entry.name, force=True)
                    built = Built(entry.name, "built", manifest, warnings=told)
                left.pop(0)
                yield built
    except LogInferError as error:
        for entry in left:
            yield Built(entry.name, "failed", error=str(error))


# Sizes that differ from the paper's by no more than this are a matter of random heads and overlaps.
TOLERANCE = 0.03


def difference(entry: Entry, manifest: Mapping[str, Any]) -> tuple[float, str]:
    """Return by how much the sizes differ from the paper's at most, and why if that is not chance."""
    sizes = manifest["positives"]
    most = max((sizes[s] / entry.group.paper[s] - 1 for s in SPLITS), key=abs)
    if abs(most) <= TOLERANCE:
        return most, ""
    rules = manifest["rules"]
    sampled = sum(rule["sampled"] for rule in rules)
    distinct = sum(manifest["conclusions"].values())
    wanted = sum(entry.group.paper[s] for s in SPLITS) - entry.group.paper["kg"]
    counts = f"{sampled:,} conclusions sampled from {len(rules)} rules, {distinct:,} distinct; paper {wanted:,}."
    return most, f"{entry.group.remark} {counts}".strip()


def summary_text(results: Sequence[Built]) -> str:
    """Return the suite's sizes next to the paper's, as a Markdown table, with reasons for differences."""
    known = {entry.name: entry for entry in all_entries()}
    lines = [
        "| benchmark | rules | train | valid | test | paper: train | valid | test | difference |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    reasons: dict[str, str] = {}
    for built in results:
        entry = known[built.name]
        paper = " | ".join(f"{entry.group.paper[s]:,}" for s in SPLITS)
        if not built.manifest:
            lines.append(f"| {built.name} | failed | | | | {paper} | |")
            reasons[built.name] = built.error
            continue
        most, why = difference(entry, built.manifest)
        ours = " | ".join(f"{built.manifest['positives'][s]:,}" for s in SPLITS)
        lines.append(f"| {built.name} | {len(built.manifest['rules'])} | {ours} | {paper} | {100 * most:+.1f} % |")
        if why:
            reasons.setdefault(entry.group.name, why)
    lines += ["", f"The difference is the largest of the three; up to {100 * TOLERANCE:.0f} % come from random"]
    lines += (
        ["heads and overlaps between rules. Beyond that:", ""] if reasons else ["heads and overlaps between rules."]
    )
    lines += [f"- {name}: {why}" for name, why in reasons.items()]
    return "\n".join(lines) + "\n"


def write_summary(folder: Path, results: Sequence[Built]) -> None:
    """Write the summary of all that is in the suite's folder, for people and for programs."""
    results = _with_others(folder, results)
    texts = {
        "SUITE.md": "# LogInfer suite\n\n" + summary_text(results),
        "suite.json": json.dumps(summary(results), indent=2, ensure_ascii=False) + "\n",
    }
    for name, text in texts.items():
        remove_leftovers(folder / name)
        with atomic_write(folder / name, force=True) as stream:
            stream.write(text)


def summary(results: Sequence[Built]) -> list[dict[str, Any]]:
    """Return the suite's sizes next to the paper's, for a program."""
    known = {entry.name: entry for entry in all_entries()}
    rows: list[dict[str, Any]] = []
    for built in results:
        entry = known[built.name]
        row: dict[str, Any] = {"name": built.name, "built": bool(built.manifest), "paper": dict(entry.group.paper)}
        if built.manifest:
            most, why = difference(entry, built.manifest)
            row |= {
                "positives": dict(built.manifest["positives"]),
                "rules": len(built.manifest["rules"]),
                "difference": round(most, 6),
                "reason": why,
            }
        else:
            row["error"] = built.error
        rows.append(row)
    return rows


def _with_others(folder: Path, results: Sequence[Built]) -> list[Built]:
    """Return the results together with benchmarks that the folder has from before, in the suite's order."""
    known = {built.name: built for built in results}
    for entry in all_entries():
        if entry.name not in known and (folder / entry.name).is_dir():
            manifest = read_manifest(folder / entry.name, [])
            if manifest is not None:
                known[entry.name] = Built(entry.name, "kept", manifest)
    return [known[entry.name] for entry in all_entries() if entry.name in known]
