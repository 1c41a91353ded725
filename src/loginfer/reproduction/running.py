"""Running a plan: benchmarks, then cell by cell; finished cells are kept, failures do not stop the others.

Each cell is a command of this program in a process of its own. A cell is not run again if its run is there, complete,
and was made for the same request. The folder holds:

    reproduction.json                          what was asked: tables, systems, seeds, protocol, budget, versions
    suite/<benchmark>/                         the benchmarks
    runs/<system>/<benchmark>/seed-<k>/        the runs
    failed/<system>/<benchmark>-seed-<k>.json  why a cell failed; gone once it succeeds
    results/<system>/<benchmark>.json          the figures of all seeds
    rules/<system>/<benchmark>.json            mined rules against those of the benchmark
    shortcuts/<benchmark>.json                 what shortcuts reach on a benchmark of the table `evidence`
    statements/<name>.json                     measurements behind what the paper says beside its tables
    tables/<table>.{md,tex,csv}                the paper's tables, with its figures and ours
    findings.json                              the paper's findings, with all comparisons
    statements.json                            what it says beside its tables, with all comparisons
    evidence.json                              which of its conclusions survive near misses, with all comparisons
    REPORT.md                                  all tables, and the paper's findings one by one
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from loginfer._version import __version__
from loginfer.benchmark.construction.suite import SuiteResult, all_entries, write_summary
from loginfer.documents import Size, read_document
from loginfer.errors import InputError, LogInferError, OutputError
from loginfer.files import recover_folder, write_text
from loginfer.frames import WrittenFolder
from loginfer.processes import PARENT
from loginfer.progress import ProgressChoice, report_progress, shown
from loginfer.reproduction.planning import PARTICIPANTS, TABLES, Pace, Plan, PlannedCell, Request, plan
from loginfer.reproduction.standard import build_benchmarks, known_benchmarks

if TYPE_CHECKING:
    from loginfer.benchmark.benchmark import Benchmark


# One core a process: threads of linear algebra would only get in the way of the others. Messages are not folded.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "100000"}
# How a process ends after Ctrl-C.
_INTERRUPTED = (130, -signal.SIGINT)
# Seconds that a process may take to end after it was asked to.
_PATIENCE = 10


class CommandError(LogInferError):
    """A command that did not end well: what it said, and its hint."""


class Commands:
    """Runs commands of this program, each in a process; several threads may do so at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def __call__(self, words: Sequence[str], accepted: Sequence[int] = ()) -> str:
        """Run a command and return what it printed; `accepted` are exit codes with which it ends well, too.

        Raises
        ------
        CommandError
            With its own message and hint.
        KeyboardInterrupt
            If Ctrl-C or `stop` ended it: that is no failure of the command.
        """
        # -P: a file in the current folder must not take the place of a module.
        command = [sys.executable, "-P", "-m", "loginfer", *words]
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            process = subprocess.Popen(  # noqa: S603 - this program itself, with words that it chose
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, **_ENVIRONMENT, PARENT: str(os.getpid())},
            )
            self._running.add(process)
        try:
            printed, messages = process.communicate()
        finally:
            # Not ended only if this thread was interrupted while it waited.
            if process.poll() is None:
                _end([process])
            with self._lock:
                self._running.discard(process)
        if process.returncode and (self._stopped or process.returncode in _INTERRUPTED):
            raise KeyboardInterrupt
        if process.returncode and process.returncode not in accepted:
            raise failure(messages, process.returncode)
        return printed

    def stop(self) -> None:
        """End all processes, and begin no more."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        _end(running)


def failure(messages: str, code: int) -> CommandError:
    """Return why a command failed: its last `error:` line and the hint below it.

    Parameters
    ----------
    messages
        What it wrote to stderr.
    code
        Its exit code; negative for a signal.
    """
    lines = messages.splitlines()
    error_lines = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if error_lines:
        message, hints = lines[error_lines[-1]].removeprefix("error: "), lines[error_lines[-1] + 1 :]
        hint = next((line.strip().removeprefix("hint: ") for line in hints if "hint: " in line), None)
        return CommandError(message, hint=hint)
    if code < 0:
        hint = "if memory was short, try again with --jobs 1" if -code == signal.SIGKILL else None
        return CommandError(f"its process was ended by {_signal(-code)}", hint=hint)
    last_line = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    return CommandError(f"exit code {code}: {last_line}")


def _signal(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:
        with contextlib.suppress(OSError):
            process.terminate()
    for process in processes:
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# Whom the cells rank against: the tables have both.
RANKING: tuple[Literal["filtered", "given"], ...] = ("filtered", "given")

FORMAT = "loginfer-reproduction"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Folder:
    """Where everything of a reproduction is."""

    path: Path

    @property
    def suite(self) -> Path:
        """The benchmarks."""
        return self.path / "suite"

    @property
    def runs(self) -> Path:
        """The runs."""
        return self.path / "runs"

    def run(self, cell: PlannedCell) -> Path:
        """Return where the run of a cell is."""
        return self.runs / cell.system / cell.benchmark / f"seed-{cell.seed}"

    def failure(self, cell: PlannedCell, what: str | None = None) -> Path:
        """Return the file that says why a cell failed, or why a step `what` of its system and benchmark did."""
        return self.path / "failed" / cell.system / f"{cell.benchmark}-{what or f'seed-{cell.seed}'}.json"

    def failures(self) -> list[dict[str, Any]]:
        """Return all recorded failures, in the order of the tables."""
        failures = [self.json(path, _Failure) for path in sorted(self.path.glob("failed/*/*.json"))]
        names = [*PARTICIPANTS, *(entry.name for entry in known_benchmarks())]
        order = {name: number for number, name in enumerate(names)}
        return sorted(
            failures, key=lambda f: (*(order.get(f[key], 0) for key in ("benchmark", "system")), str(f["seed"]))
        )

    def result(self, system: str, benchmark: str) -> Path:
        """Return where the figures of a system on a benchmark are."""
        return self.path / "results" / system / f"{benchmark}.json"

    def rules(self, system: str, benchmark: str) -> Path:
        """Return the file that compares the rules of a miner with those of a benchmark."""
        return self.path / "rules" / system / f"{benchmark}.json"

    def shortcuts(self, benchmark: str) -> Path:
        """Return the file that says what shortcuts reach on a benchmark."""
        return self.path / "shortcuts" / f"{benchmark}.json"

    def measurement(self, name: str) -> Path:
        """Return the file of a measurement."""
        return self.path / "statements" / f"{name}.json"

    def table(self, name: str, ending: str) -> Path:
        """Return where a table is."""
        return self.path / "tables" / f"{name}.{ending}"

    @property
    def report(self) -> Path:
        """All tables and findings."""
        return self.path / "REPORT.md"

    @property
    def request_file(self) -> Path:
        """What was asked."""
        return self.path / "reproduction.json"

    def json(self, path: Path, schema: Any = dict[str, Any]) -> dict[str, Any]:
        """Read a file of this folder."""
        document: dict[str, Any] = read_document(path, schema, what="reproduction", hint=_AGAIN)
        return document

    def request(self) -> Request:
        """Return what was asked for this folder so far.

        Raises
        ------
        InputError
            If nothing was.
        """
        if not self.request_file.exists():
            hint = "make one with `loginfer reproduce --out FOLDER`"
            raise InputError(f"`{self.path}` is no reproduction: it has no `{self.request_file.name}`", hint=hint)
        document = self.json(self.request_file, _Request)
        tables, systems, benchmarks = (tuple(document[k]) for k in ("tables", "systems", "benchmarks"))
        return Request(tables, systems, benchmarks, document["seeds"], document["protocol"], document["budget"])


class _Request(TypedDict):
    tables: list[str]
    systems: list[str]
    benchmarks: list[str]
    seeds: Size
    protocol: str
    budget: str


class _Failure(TypedDict):
    system: str
    benchmark: str
    seed: int | None


def open_folder(path: str | Path, request: Request) -> Folder:
    """Take a folder for a reproduction, and record this request together with earlier ones.

    Raises
    ------
    OutputError
        If it is something else, or a reproduction with another protocol, budget or version: their figures
        could not stand in one table.
    """
    folder = Folder(Path(path))
    if folder.path.exists() and not folder.path.is_dir():
        raise OutputError(f"`{folder.path}` is a file, not a folder", hint="give the name of a folder")
    if folder.request_file.exists():
        _check_request(folder, folder.json(folder.request_file), request)
        request = _joined(folder.request(), request)
    elif folder.path.exists() and (foreign := _foreign(folder)):
        hint = "choose an empty or new folder"
        raise OutputError(f"`{folder.path}` is no reproduction, and holds `{foreign}`", hint=hint)
    folder.path.mkdir(parents=True, exist_ok=True)
    about = {"format": FORMAT, "format_version": FORMAT_VERSION, "versions": {"loginfer": __version__}}
    write_text(folder.request_file, stable_json({**about, **asdict(request)}), force=True)
    return folder


def stable_json(value: Mapping[str, Any]) -> str:
    """Return a value as the text of a file, with sorted keys."""
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _foreign(folder: Folder) -> str | None:
    """Return something in a folder that no reproduction begins with."""
    own_names = {"suite", "runs", folder.request_file.name}
    names = sorted(entry.name for entry in folder.path.iterdir())
    return next((name for name in names if name not in own_names and not name.startswith(".")), None)


def _check_request(folder: Folder, document: Mapping[str, Any], request: Request) -> None:
    if document.get("format") != FORMAT or document.get("format_version") != FORMAT_VERSION:
        message = f"`{folder.request_file}` is not the file of a reproduction that this program reads"
        raise OutputError(message, hint="choose another folder")
    requested = {"protocol": request.protocol, "budget": request.budget, "version": __version__}
    before = {**document, "version": document.get("versions", {}).get("loginfer")}
    for name, value in requested.items():
        if before.get(name) != value:
            message = f"`{folder.path}` was begun with the {name} `{before.get(name)}`, not `{value}`"
            raise OutputError(message, hint="choose another folder: figures of both could not stand in one table")


def _joined(earlier: Request, later: Request) -> Request:
    """Return one request for both."""

    def union(order: Iterable[str], *parts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in order if any(name in part for part in parts))

    return Request(
        union(TABLES, earlier.tables, later.tables),
        union(PARTICIPANTS, earlier.systems, later.systems),
        union((entry.name for entry in known_benchmarks()), earlier.benchmarks, later.benchmarks),
        max(earlier.seeds, later.seeds),
        later.protocol,
        later.budget,
    )


_AGAIN = "remove it, and give the command again"


def existing(cells: Iterable[PlannedCell], folder: Folder) -> Iterator[tuple[PlannedCell, str]]:
    """Yield the cells that have a run, with an empty text if it is theirs, else what is wrong with it.

    A benchmark is read only if it has runs: its sum tells whether they are about it.
    """
    from loginfer.benchmark import load_benchmark

    cells_with_run = []
    for cell in cells:
        recover_folder(folder.run(cell))
        if folder.run(cell).exists():
            cells_with_run.append(cell)
    cells_with_run.sort(key=lambda cell: cell.benchmark)
    for name, group in groupby(cells_with_run, key=lambda cell: cell.benchmark):
        benchmark = load_benchmark(folder.suite / name)
        for cell in group:
            yield cell, _difference(cell, folder, benchmark)


def _difference(cell: PlannedCell, folder: Folder, benchmark: Benchmark) -> str:
    from loginfer.evaluation.evaluating import configure_system
    from loginfer.evaluation.metrics import MetricOptions
    from loginfer.evaluation.resuming import differences
    from loginfer.evaluation.runs import load_run, request_of
    from loginfer.systems.interface import choose_method

    try:
        run = load_run(folder.run(cell), verify=False)
        configured = configure_system(cell.system, benchmark, dict(cell.settings), seed=cell.seed)
    except LogInferError as error:
        return error.message
    options = MetricOptions("global" if cell.threshold is None else cell.threshold, protocols=RANKING)
    request = request_of(configured, benchmark, choose_method(benchmark, None), options)
    expected = {**request, "wanted": options.as_dict()}
    actual = {**run.manifest["request"], "wanted": dict(run.manifest["wanted"])}
    texts = differences(actual, expected)
    return f"the run that is there was made for something else: {'; '.join(texts)}" if texts else ""


# Runs one command of this program, given its words, and returns what it printed.
Command = Callable[..., str]

State = Literal["done", "kept", "failed"]


@dataclass(frozen=True, slots=True)
class CellOutcome:
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
class CellsDone:
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


def run(
    plan: Plan,
    out: str | Path,
    *,
    command: Command,
    stop: Callable[[], None] = lambda: None,
    build: Callable[..., list[SuiteResult]] = build_benchmarks,
    jobs: int = 1,
    force: bool = False,
    tell: Callable[[CellsDone], None] = lambda step: None,
    milestone: Callable[[], object] = lambda: None,
) -> list[CellOutcome]:
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
        Builds benchmarks, as `build_benchmarks` does.
    jobs
        Commands at a time.
    force
        Replace runs that are there and were made for something else.
    tell
        Called after each benchmark and each cell.
    milestone
        Called when all systems are through with a benchmark and a seed.

    Returns
    -------
    list of CellOutcome
        One for each cell, in the order of the plan.

    Raises
    ------
    OutputError
        If the folder is in use for something else.
    """
    folder = open_folder(out, plan.request)

    def built(benchmark: SuiteResult) -> None:
        if benchmark.state != "kept":
            tell(CellsDone(f"benchmark {benchmark.name}: {benchmark.state}", 0, len(plan.cells)))

    settings = {"protocol": plan.request.protocol}
    suite = build(folder.suite, plan.entries, settings=settings, jobs=jobs, force=force, report=built)
    if not folder.suite.is_symlink():  # a linked suite is not ours to write into
        of_suite = {entry.name for entry in all_entries()}
        write_summary(folder.suite, [benchmark for benchmark in suite if benchmark.name in of_suite])
    unbuilt = {benchmark.name: benchmark.error for benchmark in suite if benchmark.state == "failed"}
    outcomes: dict[PlannedCell, CellOutcome] = {}
    waiting: list[tuple[PlannedCell, str | None]] = []
    cells = (cell for cell in plan.cells if cell.benchmark not in unbuilt and not cell.measured)
    problems = dict(existing(cells, folder))
    for cell in plan.cells:
        if cell.measured:
            if folder.measurement(cell.benchmark).exists() and not force:
                outcomes[cell] = _finished(CellOutcome(cell, "kept"), folder)
            else:
                waiting.append((cell, None))
        elif cell.benchmark in unbuilt:
            reason = f"its benchmark could not be built: {unbuilt[cell.benchmark]}"
            outcomes[cell] = _failed(cell, folder, CommandError(reason))
        elif problems.get(cell) and not force:
            hint = "remove it, or add --force to replace it"
            outcomes[cell] = _failed(cell, folder, CommandError(problems[cell], hint=hint))
        elif problems.get(cell) == "" and not _to_analyse(cell, folder):
            outcomes[cell] = _finished(CellOutcome(cell, "kept"), folder)
        else:
            waiting.append((cell, problems.get(cell)))
    pace = Pace(jobs, [cell.seconds for cell, _ in waiting])
    if outcomes:
        tell(CellsDone(f"{len(outcomes)} of {len(plan.cells)} cells are there", len(outcomes), len(plan.cells)))
    cells_left = Counter((cell.benchmark, cell.seed) for cell, _ in waiting)
    tasks = [partial(_outcome, *entry, folder, command) for entry in waiting]
    for outcome in in_parallel(tasks, jobs, stop):
        outcomes[outcome.cell] = outcome
        pace.finished(outcome.cell.seconds, outcome.seconds, counts=outcome.state == "done")
        tell(CellsDone(_sentence(outcome), len(outcomes), len(plan.cells), pace.remaining()))
        cells_left[outcome.cell.benchmark, outcome.cell.seed] -= 1
        if not cells_left[outcome.cell.benchmark, outcome.cell.seed] and len(outcomes) < len(plan.cells):
            milestone()
    return [outcomes[cell] for cell in plan.cells]


def reproduce(
    out: str | Path,
    *,
    tables: Iterable[str] = (),
    systems: Iterable[str] = (),
    only: Sequence[str] | str = (),
    seeds: int = 3,
    protocol: str | None = None,
    budget: str = "quick",
    jobs: int | None = None,
    force: bool = False,
    tell: Callable[[CellsDone], None] = lambda step: None,
    progress: ProgressChoice = None,
) -> WrittenFolder:
    """Run the paper's experiments again, and put its figures and ours side by side.

    Parameters
    ----------
    out
        A folder for benchmarks, runs, results, tables and the report; what is done there is kept.
    tables, systems, only, seeds, protocol, budget
        As for `plan`.
    jobs
        Cells at a time; by default one per core.
    force, tell
        As for `run`.
    progress
        True for a bar; or called with what is being done, how much is done, and how much there is.

    Returns
    -------
    A row for each cell, also in `details["cells"]` beside the tables and findings.

    Examples
    --------
    >>> import loginfer
    >>> loginfer.reproduce("again", tables=["lubm"], systems=["simpbl", "oracle"], seeds=1)  # doctest: +SKIP
    """
    from loginfer.reproduction.paper_tables import write_report

    cells = plan(
        tables=tables, systems=systems, only=[only] if isinstance(only, str) else only, seeds=seeds, protocol=protocol,
        budget=budget,
    )  # fmt: skip
    commands, folder = Commands(), Folder(Path(out))
    with shown(progress) as show:

        def step(done: CellsDone) -> None:
            tell(done)
            report_progress(show, "cells", done.done, done.all)

        outcomes = run(
            cells, out, command=commands, stop=commands.stop, jobs=jobs or os.cpu_count() or 1, force=force, tell=step,
            milestone=lambda: write_report(folder),
        )  # fmt: skip
    rows = [(o.cell.system, o.cell.benchmark, o.cell.seed, o.state, o.reason, o.hint) for o in outcomes]
    columns = ("system", "benchmark", "seed", "state", "reason", "hint")
    details = [dict(zip(columns[: 6 if row[3] == "failed" else 4], row, strict=False)) for row in rows]
    return WrittenFolder(Path(out), columns, list(rows), {"cells": details, **write_report(folder)})


# -- cells ------------------------------------------------------------------------------------------


T = TypeVar("T")


def in_parallel(tasks: Sequence[Callable[[], T]], jobs: int, stop: Callable[[], None]) -> Iterator[T]:
    """Do tasks, so many at a time, and yield what they return as it comes.

    Parameters
    ----------
    tasks
        What to do; called from several threads if there are several jobs.
    jobs
        How many at a time.
    stop
        Ends those that are running; called when one of them raises, or on Ctrl-C.
    """
    if jobs <= 1:
        try:
            for task in tasks:
                yield task()
        except BaseException:
            stop()
            raise
        return
    pool = ThreadPoolExecutor(jobs)
    try:
        futures: set[Future[T]] = {pool.submit(task) for task in tasks}
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


def _outcome(cell: PlannedCell, problem: str | None, folder: Folder, command: Command) -> CellOutcome:
    """Run a cell unless it has a run without problems, then compare its rules if that is asked for."""
    started = time.monotonic()
    try:
        if cell.measured:
            command(["reproduce", "--measure", cell.benchmark, "--out", str(folder.path), "--json"])
        elif problem is None or problem:
            command(evaluate_words(cell, folder, force=bool(problem)))
            if cell.seed == 0:  # rules that an earlier run has found
                folder.rules(cell.system, cell.benchmark).unlink(missing_ok=True)
    except LogInferError as error:
        return _failed(cell, folder, error, seconds=time.monotonic() - started)
    folder.failure(cell).unlink(missing_ok=True)
    if _to_analyse(cell, folder):
        try:
            _analyse(cell, folder, command)
        except LogInferError as error:
            return _failed(cell, folder, error, "rules", time.monotonic() - started)
    return _finished(CellOutcome(cell, "done", seconds=time.monotonic() - started), folder)


def evaluate_words(cell: PlannedCell, folder: Folder, *, force: bool = False) -> list[str]:
    """Return the command that runs a cell."""
    words = ["evaluate", str(folder.suite / cell.benchmark), "--system", cell.system]
    words += ["--seed", str(cell.seed), "--out", str(folder.run(cell)), "--json", "--ranking", ",".join(RANKING)]
    words += [] if cell.weights else ["--no-weights"]
    words += [] if cell.threshold is None else ["--threshold", str(cell.threshold)]
    for name, value in cell.settings:
        words += ["--set", f"{name}={value}"]
    return [*words, "--force"] if force else words


def _to_analyse(cell: PlannedCell, folder: Folder) -> bool:
    return cell.analyse and not folder.rules(cell.system, cell.benchmark).exists()


def _analyse(cell: PlannedCell, folder: Folder, command: Command) -> None:
    words = ["rules", "analyse", str(folder.suite / cell.benchmark), "--rules", str(folder.run(cell)), "--json"]
    answer: dict[str, Any] = json.loads(command(words))
    # Rule by rule it is large, and `loginfer rules analyse` can compute it again.
    small = {key: value for key, value in answer.items() if key not in ("rules", "rules_file", "notes")}
    about = {"system": cell.system, "run_seed": cell.seed}
    write_text(folder.rules(cell.system, cell.benchmark), stable_json({**small, **about}), force=True)


def _finished(outcome: CellOutcome, folder: Folder) -> CellOutcome:
    """Forget the failures of a cell that succeeded."""
    folder.failure(outcome.cell).unlink(missing_ok=True)
    if outcome.cell.analyse:
        folder.failure(outcome.cell, "rules").unlink(missing_ok=True)
    return outcome


def _failed(
    cell: PlannedCell, folder: Folder, error: LogInferError, what: str | None = None, seconds: float = 0.0
) -> CellOutcome:
    """Write down why a cell failed."""
    place = f"{folder.path}/"  # it says nothing to others
    reason = f"{error.where}: {error.message}" if error.where else error.message
    reason, hint = reason.replace(place, ""), error.hint and error.hint.replace(place, "")
    document = {"system": cell.system, "benchmark": cell.benchmark, "seed": cell.seed, "hint": hint}
    document |= {"what": what or "run", "reason": reason}
    write_text(folder.failure(cell, what), stable_json(document), force=True)
    return CellOutcome(cell, "failed", reason, hint, seconds)


def _sentence(outcome: CellOutcome) -> str:
    text = f"{outcome.cell.label}: {outcome.state}"
    return f"{text}: {outcome.reason}" if outcome.reason else f"{text} in {outcome.seconds:.0f} s"
