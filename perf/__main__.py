"""Measure, and print one table. `python -m perf --help` has the options."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from perf.case import Case, Task
from perf.runner import Result, measure, run_once
from perf.table import Row, format_table
from perf.tasks import MODULES
from perf.workspace import ARCHIVES, Workspace, find_archive

SYSTEMS = (
    "loginfer", "duckdb", "nemo-python", "pyoxigraph", "polars", "numba", "numpy", "scipy", "pykeen", "torch",
    "torch-geometric",
)  # fmt: skip
READING = """
CPU seconds, user and system, of all threads and processes; medians. Each measurement has a process of its
own. `warm` is the second call in a process, `cold` the first, with compiled kernels on disk already; for a
program that is run as its users run it both are the whole process. `MB` is the peak memory of the process,
interpreter included, and `at start` what it had needed before the call. `ratio` and `cold ratio` are a
system's seconds divided by LogInfer's. Goals are for the warm call, for `end to end` and the suite for the
cold one.
"""


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="loginfer-bench-") as folder:
        space = Workspace(Path(folder))
        # A cache of kernels for this run alone: what compiles when is then known.
        # One thread for everybody: NumPy's linear algebra, which nobody uses here, would start one per core.
        environment = {"NUMBA_CACHE_DIR": str(Path(folder) / "kernels"), "OPENBLAS_NUM_THREADS": "1"}
        tasks = _select([task for module in MODULES for task in module.tasks(space)], options.only)
        compiling = _prepare(space, tasks, environment)
        rows: list[Row] = []
        for task in tasks:
            rows += _measure(task, environment, options.repeats, compiling)
    print(format_table(rows))
    for row in rows:
        if row.result.failure and not row.result.failure.startswith(">"):
            print(f"\n{row.task.name}, {row.case.system} failed: {row.result.failure}")
    if estimates := [row.estimate for row in rows if row.estimate]:
        print("\nEstimates, from the sample in the table (rare expensive queries may not be in it):")
        print("\n".join(f"  {line}" for line in estimates))
    print(READING)
    print(_machine())
    first = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in compiling.items() if seconds > 0.5)
    print(f"First use on a machine, compiling kernels: {first or 'nothing to compile'}.")
    if options.json:
        Path(options.json).write_text(json.dumps(_as_json(rows, compiling), indent=1) + "\n")
    return 1 if any(row.differs or (row.is_ours and row.result.failure) for row in rows) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf", description=__doc__)
    parser.add_argument("--only", default="", help="keys of tasks, separated by commas, e.g. triangle,diamond")
    parser.add_argument("--json", help="also write all figures to this file")
    parser.add_argument("--repeats", type=int, default=3, help="processes for each measurement (default 3)")
    return parser.parse_args()


def _select(tasks: list[Task], only: str) -> list[Task]:
    wanted = [key.strip() for key in only.split(",") if key.strip()]
    known = [task.key for task in tasks]
    if unknown := [key for key in wanted if key not in known]:
        sys.exit(f"error: no task `{unknown[0]}`\n  hint: the tasks are {', '.join(known)}")
    return [task for task in tasks if not wanted or task.key in wanted]


def _prepare(space: Workspace, tasks: list[Task], environment: dict[str, str]) -> dict[str, float]:
    """Make the graphs that tasks need; drop tasks whose graph is missing. Return seconds of compilation."""
    needed = {graph for task in tasks for graph in task.needs}
    archive = find_archive("fb15k-237")
    for graph, file in ARCHIVES.items():
        if graph in needed and find_archive(graph) is None:
            print(f"{graph} is left out: set LOGINFER_DATA to the folder of {file}.", file=sys.stderr)
            tasks[:] = [task for task in tasks if graph not in task.needs]
            needed = {wanted for task in tasks for wanted in task.needs}
    compiling: dict[str, float] = {}
    here = {"folder": str(space.folder)}
    if "lubm" in needed:
        _demand(Case("LUBM", "perf.workspace:prepare_lubm", here), environment)
    if "fb15k-237" in needed:
        case = Case("FB15k-237", "perf.workspace:prepare_fb", {**here, "archive": str(archive)}, limit=300)
        compiling["loading and ranking"] = _demand(case, environment)
    if "benchmark" in needed:
        case = Case("a benchmark", "perf.tasks.building:prepare_benchmark", here, limit=300)
        _demand(case, environment)
    return compiling


def _demand(case: Case, environment: dict[str, str]) -> float:
    print(f"preparing {case.system} …", file=sys.stderr, flush=True)
    result = run_once(case, environment)
    if result.failure:
        sys.exit(f"error: {case.system} could not be prepared: {result.failure}")
    return result.cold


def _measure(task: Task, environment: dict[str, str], repeats: int, compiling: dict[str, float]) -> list[Row]:
    """Measure all systems of one task; ours runs once before, to compile what it needs."""
    ours: Result | None = None
    rows = []
    for case in task.cases:
        started = time.monotonic()
        # Programs that read a graph have kernels to compile, too; those that only start have none.
        compiles = bool(case.call or task.needs)
        if ours is None and compiles:
            compiling[task.key] = run_once(task.before or case, environment).process
        result = measure(case, environment, repeats)
        if ours is None:
            ours = result
            if task.before:
                del compiling[task.key]
            elif compiles:
                compiling[task.key] -= result.process
        rows.append(Row(task, case, result, ours))
        spent = time.monotonic() - started
        print(f"{task.name}: {case.system} ({spent:.0f} s)", file=sys.stderr, flush=True)
    return rows


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} not installed"


def _machine() -> str:
    versions = ", ".join(map(_version, SYSTEMS))
    computer = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{computer}, Python {platform.python_version()}; {versions}."


def _as_json(rows: list[Row], compiling: dict[str, float]) -> dict[str, object]:
    return {
        "machine": _machine(),
        "compiling": compiling,
        "rows": [
            {
                "task": row.task.key,
                "system": row.case.system,
                **row.result.as_json(),
                "ratio": row.ratio("warm"),
                "ratio_cold": row.ratio("cold"),
                "goal": row.goal,
                "reached": row.reached,
                "estimate": row.estimate,
                "same_answer": not row.differs,
            }
            for row in rows
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
