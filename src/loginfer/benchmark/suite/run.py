"""Building the suite: in parallel, resumable, with shared work done once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loginfer._version import __version__
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.suite.entries import Entry
from loginfer.errors import LimitError, LogInferError, OutputError
from loginfer.files import recover_folder

if TYPE_CHECKING:
    from loginfer.benchmark.values import Benchmark

__all__ = ["Built", "build_suite"]


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
    from loginfer.benchmark.folder import check_output
    from loginfer.benchmark.manifest import Problem, read_manifest, verify_files

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
        from loginfer.benchmark.folder import load_benchmark

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
    pool = ProcessPoolExecutor(
        min(jobs, len(ordered)), mp_context=get_context("spawn"), initializer=_end_with_parent
    )
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
    from loginfer.benchmark.folder import write_benchmark
    from loginfer.benchmark.pipeline import foundation

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
