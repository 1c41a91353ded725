"""The suite: the 37 benchmarks of the paper, the two with random corruption that it compares with them, near misses.

What is in the suite stands in `suite.toml`. It is built in parallel, can be resumed, and does shared work once. A
summary sets its sizes next to the paper's, with the reason wherever they differ.
"""

from __future__ import annotations

import fnmatch
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain, count
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from loginfer._version import __version__
from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.folder.manifest import Problem, read_manifest, verify_files
from loginfer.benchmark.negatives.methods import NEAR_MISSES, method_named
from loginfer.benchmark.recipe import Match, Recipe
from loginfer.errors import InputError, LimitError, LogInferError, OutputError, UnknownNameError
from loginfer.files import recover_folder, shipped, write_text
from loginfer.frames import WrittenFolder
from loginfer.processes import deaf_children, end_with_parent
from loginfer.progress import ProgressChoice, report_progress, shown

if TYPE_CHECKING:
    from loginfer.benchmark.benchmark import Benchmark


# What all names begin with.
_PREFIX = "LogInfer-"


@dataclass(frozen=True, slots=True)
class SuiteGroup:
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
    no_twins
        Why conclusions have no twins, if they have none.
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
    no_twins: str = ""

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
class SuiteBenchmark:
    """One benchmark of the suite.

    Parameters
    ----------
    group
        Graph and pattern.
    method
        For negatives.
    match
        Of near misses: on which features twins are alike.
    """

    group: SuiteGroup
    method: str
    match: tuple[Match, ...] = ()

    @property
    def negatives(self) -> str:
        """The method as it stands in the name: `nmm` for near misses that are twins."""
        return method_named(self.method).names[-1 if self.match else 0]

    @property
    def name(self) -> str:
        """The name: LogInfer-FB-sym-pa and so on."""
        return f"{_PREFIX}{self.group.name}-{self.negatives}"

    @property
    def in_paper(self) -> bool:
        """Whether it is one of the paper's 37."""
        return self.method in self.group.methods

    def recipe(self, settings: Mapping[str, Any]) -> Recipe:
        """Return the recipe; `settings` may hold protocol, seed, ratio, min_new and materialised."""
        return self.group.recipe((self.method,), settings, self.match).changed(name=self.name)


@lru_cache(maxsize=1)
def groups() -> tuple[SuiteGroup, ...]:
    """Return the graphs and patterns of the paper's table of benchmarks, in its order."""
    suite_groups = []
    for group in shipped("benchmark/data/suite.toml")["group"]:
        settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in group.items()}
        suite_groups.append(SuiteGroup(**settings))
    return tuple(suite_groups)


def entries() -> tuple[SuiteBenchmark, ...]:
    """Return all benchmarks of the paper's suite."""
    return tuple(SuiteBenchmark(group, method) for group in groups() for method in (*group.methods, *group.more))


def near_misses() -> tuple[SuiteBenchmark, ...]:
    """Return the same rules with near misses, plain and as twins: beside the paper's suite.

    Positives with twins are those conclusions that have one.
    """
    matches: tuple[tuple[Match, ...], ...] = ((), ("all",))
    return tuple(
        SuiteBenchmark(group, NEAR_MISSES.name, match)
        for group in groups()
        for match in matches
        if not (match and group.no_twins)
    )


def all_entries() -> tuple[SuiteBenchmark, ...]:
    """Return the paper's benchmarks and those with near misses, by graph and pattern."""
    order = {group.name: number for number, group in enumerate(groups())}
    return tuple(sorted((*entries(), *near_misses()), key=lambda entry: order[entry.group.name]))


def select(only: Sequence[str] = (), among: Sequence[SuiteBenchmark] | None = None) -> tuple[SuiteBenchmark, ...]:
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
    default = entries() if among is None else tuple(among)
    candidates = all_entries() if among is None else default
    if not only:
        return default
    chosen: set[str] = set()
    for pattern in only:
        folded = pattern.casefold().removeprefix(_PREFIX.casefold())
        names = _matching(folded, default) or _matching(folded, candidates)
        if not names:
            error = UnknownNameError("benchmark", pattern, [_short(e) for e in candidates])
            error.hint = error.hint or "`loginfer suite list` shows them all"
            raise error
        chosen.update(names)
    return tuple(entry for entry in candidates if entry.name in chosen)


def _matching(pattern: str, among: Sequence[SuiteBenchmark]) -> list[str]:
    return [entry.name for entry in among if fnmatch.fnmatchcase(_short(entry).casefold(), pattern)]


def _short(entry: SuiteBenchmark) -> str:
    return entry.name.removeprefix(_PREFIX)


@dataclass(frozen=True, slots=True)
class SuiteResult:
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


# What can be said about the whole suite; the rest is the paper's.
GENERAL = ("protocol", "seed", "ratio", "min_new", "materialised")


def suite(
    out: str | Path,
    only: Sequence[str] | str = (),
    *,
    engine: str = "native",
    jobs: int | None = None,
    force: bool = False,
    max_shortcut: float | None = None,
    strict: bool = False,
    tell: Callable[[SuiteResult, int, int], None] = lambda result, done, total: None,
    progress: ProgressChoice = None,
    **settings: Any,
) -> WrittenFolder:
    """Build the benchmarks of the paper, with a summary; those that are there already are kept.

    Parameters
    ----------
    out
        A folder for the benchmarks' folders.
    only
        Patterns of names, such as `WN-*`; by default all of the paper's.
    engine, force, max_shortcut, strict
        As for `build_suite`.
    jobs
        Processes to use; by default one per core.
    tell
        Called with each benchmark as it is done, how many are done, and how many there are.
    progress
        True for a bar; or called with what is being done, how much is done, and how much there is.
    **settings
        `protocol`, `seed`, `ratio`, `min_new`, `materialised`.

    Returns
    -------
    A row for each benchmark; `details["benchmarks"]` is its summary.

    Examples
    --------
    >>> import loginfer
    >>> loginfer.suite("suite", only="WN-*", progress=True).to_frame()  # doctest: +SKIP
    """
    from loginfer.benchmark.folder.writing import check_output

    folder, chosen = Path(out), select([only] if isinstance(only, str) else only)
    for key in settings:
        if key not in GENERAL:
            hint = f"a recipe for the suite may set {', '.join(GENERAL)}"
            raise InputError(f"`{key}` is fixed by the suite", hint=hint)
    for entry in chosen:
        entry.recipe(settings)  # complains about a wrong setting before any work
    missing = next((entry.name for entry in chosen if not (folder / entry.name).exists()), None)
    if missing:
        check_output(folder / missing)
    done = count(1)
    with shown(progress) as show:

        def report(result: SuiteResult) -> None:
            number = next(done)
            tell(result, number, len(chosen))
            report_progress(show, "benchmarks", number, len(chosen))

        results = build_suite(
            folder, chosen, settings=settings, engine=engine, jobs=jobs or os.cpu_count() or 1, force=force,
            max_shortcut=max_shortcut, strict=strict, report=report,
        )  # fmt: skip
    write_summary(folder, results)
    rows = summary(results)
    values = [
        (row["name"], built.state, row.get("rules"), *(row.get("positives", {}).get(s) for s in SPLITS),
         row.get("difference"), row.get("reason", row.get("error")))
        for row, built in zip(rows, results, strict=True)
    ]  # fmt: skip
    columns = ("benchmark", "state", "rules", *SPLITS, "difference", "reason")
    return WrittenFolder(folder, columns, values, {"benchmarks": rows})


def build_suite(
    out: str | Path,
    chosen: Sequence[SuiteBenchmark],
    *,
    settings: Mapping[str, Any] | None = None,
    engine: str = "native",
    jobs: int = 1,
    force: bool = False,
    max_shortcut: float | None = None,
    strict: bool = False,
    report: Callable[[SuiteResult], None] | None = None,
) -> list[SuiteResult]:
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
        The largest balanced accuracy that a shortcut may have, a share above 0.5; more is a warning.
    strict
        A benchmark with more is not written, and counts as failed; one that is there stays.
    report
        Called with each benchmark as it is done.

    Raises
    ------
    OutputError
        If a folder holds something else and `force` is not set; nothing was built then.
    """
    from loginfer.benchmark.folder.reading import load_benchmark

    folder = Path(out)
    settings = dict(settings or {})
    results: dict[str, SuiteResult] = {}
    pending: dict[tuple[str, tuple[str, ...]], list[SuiteBenchmark]] = {}
    for entry in chosen:
        path = folder / entry.name
        manifest = _kept(path, entry.recipe(settings), force)
        if manifest is None:
            pending.setdefault((entry.group.name, entry.match), []).append(entry)
            continue
        warnings = () if max_shortcut is None else _too_easy(load_benchmark(path, verify=False), max_shortcut)
        results[entry.name] = SuiteResult(entry.name, "kept", manifest, warnings=warnings)
        if warnings and strict:
            results[entry.name] = SuiteResult(entry.name, "failed", manifest, "; ".join(warnings))
        if report:
            report(results[entry.name])
    build = partial(_build_group, folder, settings=settings, engine=engine, max_shortcut=max_shortcut, strict=strict)
    for result in _run(build, list(pending.values()), jobs, folder):
        results[result.name] = result
        if report:
            report(result)
    return [results[entry.name] for entry in chosen]


def _kept(path: Path, recipe: Recipe, force: bool) -> Mapping[str, Any] | None:
    """Return the manifest of a complete benchmark from the same recipe and version, if it is there."""
    from loginfer.benchmark.folder.writing import check_output

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


def _too_easy(benchmark: Benchmark, limit: float | None) -> tuple[str, ...]:
    """Return which shortcuts do better on a benchmark than they may; none without a limit."""
    from loginfer.benchmark.shortcut_gate import gate

    return () if limit is None else tuple(exceeded.message for exceeded in gate(benchmark, limit))


def _run(
    build: Callable[[Sequence[SuiteBenchmark]], Iterator[SuiteResult]],
    batches: Sequence[Sequence[SuiteBenchmark]],
    jobs: int,
    folder: Path,
) -> Iterator[SuiteResult]:
    """Build benchmarks that share rules and positives, the largest first, in this process or in several."""
    # The cost is roughly how many triples there are to draw and write.
    ordered = sorted(batches, key=lambda batch: -len(batch) * batch[0].group.paper["train"])
    if jobs <= 1 or len(ordered) <= 1:
        for batch in ordered:
            yield from build(batch)
        return
    # Processes start afresh: a fork would copy the threads' locks of the libraries.
    pool = ProcessPoolExecutor(min(jobs, len(ordered)), mp_context=get_context("spawn"), initializer=end_with_parent)
    main = sys.modules["__main__"]
    try:
        # Without a stand-in each process would run the caller's script again, if it does not look at its `__name__`.
        sys.modules["__main__"] = ModuleType("__main__")
        with deaf_children():
            futures = [pool.submit(_in_process, build, batch) for batch in ordered]
        sys.modules["__main__"] = main
        for future in as_completed(futures):
            yield from future.result()
        pool.shutdown()
    except BaseException as error:
        sys.modules["__main__"] = main
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(10)
        for entry in chain.from_iterable(ordered):
            recover_folder(folder / entry.name)
        if isinstance(error, BrokenProcessPool):
            message = "a process that built benchmarks was killed, perhaps for want of memory"
            raise LimitError(message, hint="what is done is kept: run the same command again with --jobs 1") from error
        raise


def _in_process(
    build: Callable[[Sequence[SuiteBenchmark]], Iterator[SuiteResult]], batch: Sequence[SuiteBenchmark]
) -> list[SuiteResult]:
    import signal

    # Ctrl-C is handled by the process that waits for this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return list(build(batch))


def _build_group(
    folder: Path,
    batch: Sequence[SuiteBenchmark],
    *,
    settings: Mapping[str, Any],
    engine: str,
    max_shortcut: float | None,
    strict: bool,
) -> Iterator[SuiteResult]:
    """Build benchmarks that share rules, positives, and how near misses are matched."""
    from loginfer.benchmark.construction.pipeline import foundation
    from loginfer.benchmark.folder.writing import write_benchmark

    left = list(batch)
    try:
        recipe = left[0].group.recipe([entry.method for entry in left], settings, left[0].match)
        with foundation(recipe, engine=engine) as base:
            while left:
                entry = left[0]
                benchmark = base.benchmark((entry.method,), entry.name)
                warnings = _too_easy(benchmark, max_shortcut)
                result = SuiteResult(entry.name, "failed", error="; ".join(warnings))
                if not (warnings and strict):
                    manifest = write_benchmark(benchmark, folder / entry.name, force=True)
                    result = SuiteResult(entry.name, "built", manifest, warnings=warnings)
                left.pop(0)
                yield result
    except LogInferError as error:
        for entry in left:
            yield SuiteResult(entry.name, "failed", error=str(error))


# Sizes that differ from the paper's by no more than this are a matter of random heads and overlaps.
TOLERANCE = 0.03


def difference(entry: SuiteBenchmark, manifest: Mapping[str, Any]) -> tuple[float, str]:
    """Return by how much the sizes differ from the paper's at most, and why if that is not chance."""
    sizes = manifest["positives"]
    most = max((sizes[s] / entry.group.paper[s] - 1 for s in SPLITS), key=abs)
    if abs(most) <= TOLERANCE:
        return most, ""
    rules = manifest["rules"]
    sampled = sum(rule["sampled"] for rule in rules)
    distinct = sum(manifest["conclusions"].values())
    in_paper = sum(entry.group.paper[s] for s in SPLITS) - entry.group.paper["kg"]
    counts = f"{sampled:,} conclusions sampled from {len(rules)} rules, {distinct:,} distinct; paper {in_paper:,}."
    return most, f"{entry.group.remark} {counts}".strip()


def summary(results: Sequence[SuiteResult]) -> list[dict[str, Any]]:
    """Return the suite's sizes next to the paper's, for a program."""
    by_name = {entry.name: entry for entry in all_entries()}
    rows: list[dict[str, Any]] = []
    for result in results:
        entry = by_name[result.name]
        row: dict[str, Any] = {"name": result.name, "built": bool(result.manifest), "paper": dict(entry.group.paper)}
        if result.manifest:
            most, why = difference(entry, result.manifest)
            row |= {
                "positives": dict(result.manifest["positives"]),
                "rules": len(result.manifest["rules"]),
                "difference": round(most, 6),
                "reason": why,
            }
        else:
            row["error"] = result.error
        rows.append(row)
    return rows


def summary_text(results: Sequence[SuiteResult]) -> str:
    """Return the suite's sizes next to the paper's, as a Markdown table, with reasons for differences."""
    lines = [
        "| benchmark | rules | train | valid | test | paper: train | valid | test | difference |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    reasons: dict[str, str] = {}
    for row in summary(results):
        name, paper = row["name"], " | ".join(f"{row['paper'][s]:,}" for s in SPLITS)
        if not row["built"]:
            lines.append(f"| {name} | failed | | | | {paper} | |")
            reasons[name] = row["error"]
            continue
        ours = " | ".join(f"{row['positives'][s]:,}" for s in SPLITS)
        lines.append(f"| {name} | {row['rules']} | {ours} | {paper} | {100 * row['difference']:+.1f} % |")
        if row["reason"]:
            reasons.setdefault(name.removeprefix(_PREFIX).rpartition("-")[0], row["reason"])
    lines += ["", f"The difference is the largest of the three; up to {100 * TOLERANCE:.0f} % come from random"]
    lines += (
        ["heads and overlaps between rules. Beyond that:", ""] if reasons else ["heads and overlaps between rules."]
    )
    lines += [f"- {name}: {why}" for name, why in reasons.items()]
    return "\n".join(lines) + "\n"


def write_summary(folder: Path, results: Sequence[SuiteResult]) -> None:
    """Write the summary of all that is in the suite's folder, for people and for programs."""
    results = _with_others(folder, results)
    texts = {
        "SUITE.md": "# LogInfer suite\n\n" + summary_text(results),
        "suite.json": json.dumps(summary(results), indent=2, ensure_ascii=False) + "\n",
    }
    for name, text in texts.items():
        write_text(folder / name, text, force=True)


def _with_others(folder: Path, results: Sequence[SuiteResult]) -> list[SuiteResult]:
    """Return the results together with benchmarks that the folder has from before, in the suite's order."""
    by_name = {result.name: result for result in results}
    for entry in all_entries():
        if entry.name not in by_name and (folder / entry.name).is_dir():
            manifest = read_manifest(folder / entry.name, [])
            if manifest is not None:
                by_name[entry.name] = SuiteResult(entry.name, "kept", manifest)
    return [by_name[entry.name] for entry in all_entries() if entry.name in by_name]
