"""Running a plan: benchmarks, then cell by cell; what is there is kept, what fails stops nothing else."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from loginfer.benchmark.suite import Built, build_suite, write_summary
from loginfer.errors import LogInferError
from loginfer.reproduction.commands import CommandError
from loginfer.reproduction.folder import Folder, open_folder, stable_json
from loginfer.reproduction.keeping import existing
from loginfer.reproduction.pace import Pace
from loginfer.reproduction.planning import Plan, PlannedCell

__all__ = ["Command", "Outcome", "Step", "run"]

# Runs one command of this program, given its words, and returns what it printed.
Command = Callable[[Sequence[str]], str]

State = Literal["done", "kept", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a cell.

    Parameters
    ----------
    cell
        The cell.
    state
        `done`, `kept` (it was there already) or `failed`.
    reason, hint
        Why it failed, and what to do about it.
    seconds
        How long it took.
    """

    cell: PlannedCell
    state: State
    reason: str = ""
    hint: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """How far a reproduction is.

    Parameters
    ----------
    what
        What has just been finished.
    done, all
        How many cells are finished, and how many there are.
    remaining
        How many seconds the rest should take; None before anything is known.
    """

    what: str
    done: int
    all: int
    remaining: float | None = None


@dataclass(slots=True)
class _Work:
    """All that the parts of a run share."""

    folder: Folder
    command: Command
    force: bool
    failures: dict[str, str] = field(default_factory=dict)


def run(
    plan: Plan,
    out: str | Path,
    *,
    command: Command,
    stop: Callable[[], None] = lambda: None,
    build: Callable[..., list[Built]] = build_suite,
    jobs: int = 1,
    force: bool = False,
    tell: Callable[[Step], None] = lambda step: None,
    milestone: Callable[[], object] = lambda: None,
) -> list[Outcome]:
    """Run a plan into a folder; given again, it goes on where it was.

    Parameters
    ----------
    plan
        What to do.
    out
        The folder (see `folder`).
    command
        Runs one command of this program, given its words; called from several threads if there are several
        jobs. It raises a `LogInferError` if the command fails.
    stop
        Ends all commands that are running; called when something goes wrong here, or on Ctrl-C.
    build
        Builds benchmarks, as `build_suite` does.
    jobs
        Commands at a time.
    force
        Replace runs that are there and were made for something else.
    tell
        Told after each benchmark and each cell.
    milestone
        Called when all systems are through with a benchmark and a seed.

    Returns
    -------
    list of Outcome
        One for each cell, in the order of the plan.

    Raises
    ------
    OutputError
        If the folder is in use for something else.
    """
    work = _Work(open_folder(out, plan.request), command, force)
    _build(plan, work, build, jobs, tell)
    outcomes: dict[PlannedCell, Outcome] = {}
    waiting = []
    kept = dict(existing(_buildable(plan, work), work.folder))
    for cell in plan.cells:
        if cell.benchmark in work.failures:
            reason = f"its benchmark could not be built: {work.failures[cell.benchmark]}"
            outcomes[cell] = _failed(cell, work.folder, CommandError(reason))
        elif kept.get(cell) and not force:
            hint = "remove it, or add --force to replace it"
            outcomes[cell] = _failed(cell, work.folder, CommandError(kept[cell], hint=hint))
        elif kept.get(cell) == "" and not _to_analyse(cell, work.folder):
            outcomes[cell] = _finished(Outcome(cell, "kept"), work.folder)
        else:
            waiting.append((cell, kept.get(cell)))
    pace = Pace(jobs, [cell.seconds for cell, _ in waiting])
    if outcomes:
        tell(Step(f"{len(outcomes)} of {len(plan.cells)} cells are there", len(outcomes), len(plan.cells)))
    left = Counter((cell.benchmark, cell.seed) for cell, _ in waiting)
    for outcome in _each(waiting, work, jobs, stop):
        outcomes[outcome.cell] = outcome
        pace.finished(outcome.cell.seconds, outcome.seconds, counts=outcome.state == "done")
        tell(Step(_sentence(outcome), len(outcomes), len(plan.cells), pace.remaining()))
        left[outcome.cell.benchmark, outcome.cell.seed] -= 1
        if not left[outcome.cell.benchmark, outcome.cell.seed] and len(outcomes) < len(plan.cells):
            milestone()
    return [outcomes[cell] for cell in plan.cells]


# -- benchmarks -------------------------------------------------------------------------------------


def _build(
    plan: Plan, work: _Work, build: Callable[..., list[Built]], jobs: int, tell: Callable[[Step], None]
) -> None:
    def report(built: Built) -> None:
        if built.state != "kept":
            tell(Step(f"benchmark {built.name}: {built.state}", 0, len(plan.cells)))

    settings = {"protocol": plan.request.protocol}
    made = build(
        work.folder.suite, plan.entries, settings=settings, jobs=jobs, force=work.force, report=report
    )
    if not work.folder.suite.is_symlink():  # somebody else's suite is not ours to write into
        write_summary(work.folder.suite, made)
    work.failures.update({built.name: built.error for built in made if built.state == "failed"})


def _buildable(plan: Plan, work: _Work) -> list[PlannedCell]:
    return [cell for cell in plan.cells if cell.benchmark not in work.failures]


# -- cells ------------------------------------------------------------------------------------------


def _each(
    waiting: Sequence[tuple[PlannedCell, str | None]], work: _Work, jobs: int, stop: Callable[[], None]
) -> Iterator[Outcome]:
    """Yield what becomes of the cells, as it becomes known."""
    if jobs <= 1:
        try:
            for cell, there in waiting:
                yield _outcome(cell, there, work)
        except BaseException:
            stop()
            raise
        return
    pool = ThreadPoolExecutor(jobs)
    try:
        futures: set[Future[Outcome]] = {pool.submit(_outcome, *entry, work) for entry in waiting}
        while futures:
            finished, futures = wait(futures, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        stop()
        pool.shutdown(wait=True)
        raise
    pool.shutdown()


def _outcome(cell: PlannedCell, there: str | None, work: _Work) -> Outcome:
    """Run a cell, then compare its rules if that is wanted."""
    folder, started = work.folder, time.monotonic()
    try:
        if there is None or there:
            work.command(evaluate_words(cell, folder, force=bool(there)))
            if cell.seed == 0:  # rules that an earlier run has found
                folder.rules(cell.system, cell.benchmark).unlink(missing_ok=True)
    except LogInferError as error:
        return _failed(cell, folder, error, seconds=time.monotonic() - started)
    folder.failure(cell).unlink(missing_ok=True)
    if _to_analyse(cell, folder):
        try:
            _analyse(cell, work)
        except LogInferError as error:
            return _failed(cell, folder, error, "rules", time.monotonic() - started)
    return _finished(Outcome(cell, "done", seconds=time.monotonic() - started), folder)


def evaluate_words(cell: PlannedCell, folder: Folder, *, force: bool = False) -> list[str]:
    """Return the command that runs a cell."""
    words = ["evaluate", str(folder.suite / cell.benchmark), "--system", cell.system]
    words += ["--seed", str(cell.seed), "--out", str(folder.run(cell)), "--json"]
    words += [] if cell.weights else ["--no-weights"]
    words += [] if cell.threshold is None else ["--threshold", str(cell.threshold)]
    for name, value in cell.settings:
        words += ["--set", f"{name}={value}"]
    return [*words, "--force"] if force else words


def _to_analyse(cell: PlannedCell, folder: Folder) -> bool:
    return cell.analyse and not folder.rules(cell.system, cell.benchmark).exists()


def _analyse(cell: PlannedCell, work: _Work) -> None:
    folder = work.folder
    words = [
        "rules",
        "analyse",
        str(folder.suite / cell.benchmark),
        "--rules",
        str(folder.run(cell)),
        "--json",
    ]
    answer: dict[str, Any] = json.loads(work.command(words))
    # Rule by rule it is large, and `loginfer rules analyse` tells it again.
    small = {key: value for key, value in answer.items() if key not in ("rules", "rules_file", "notes")}
    about = {"system": cell.system, "run_seed": cell.seed}
    folder.write(folder.rules(cell.system, cell.benchmark), stable_json({**small, **about}))


def _finished(outcome: Outcome, folder: Folder) -> Outcome:
    """Forget the failures of a cell that succeeded."""
    folder.failure(outcome.cell).unlink(missing_ok=True)
    if outcome.cell.analyse:
        folder.failure(outcome.cell, "rules").unlink(missing_ok=True)
    return outcome


def _failed(
    cell: PlannedCell, folder: Folder, error: LogInferError, what: str | None = None, seconds: float = 0.0
) -> Outcome:
    """Write down why a cell failed."""
    # Where the folder is says nothing to others.
    reason = error.message.replace(f"{folder.path}/", "")
    if error.where:
        reason = f"{error.where.replace(f'{folder.path}/', '')}: {reason}"
    hint = None if error.hint is None else error.hint.replace(f"{folder.path}/", "")
    told = {"system": cell.system, "benchmark": cell.benchmark, "seed": cell.seed, "hint": hint}
    told |= {"what": what or "run", "reason": reason}
    folder.write(folder.failure(cell, what), stable_json(told))
    return Outcome(cell, "failed", reason, hint, seconds)


def _sentence(outcome: Outcome) -> str:
    said = f"{outcome.cell.label}: {outcome.state}"
    return f"{said}: {outcome.reason}" if outcome.reason else f"{said} in {outcome.seconds:.0f} s"
