"""Measuring one case: a process of its own, a few times, the median."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from perf.case import Case

REPEATS = 3
# No further repetition once a case has taken this long (wall-clock seconds).
ENOUGH = 12.0


@dataclass(frozen=True)
class Result:
    """What one case cost: medians over processes.

    Parameters
    ----------
    cold, warm
        CPU seconds of the first and of the second call in a process; for a `command`, both are those of
        the whole process.
    process
        CPU seconds of the whole process, preparation included.
    wall
        Wall-clock seconds of the whole process.
    megabytes, megabytes_before
        Peak memory of the process after the first call, and before it.
    summary
        What the case found.
    failure
        Why there are no numbers: `> 60 s` or the last line of the error.
    """

    cold: float = 0.0
    warm: float = 0.0
    process: float = 0.0
    wall: float = 0.0
    megabytes: float = 0.0
    megabytes_before: float = 0.0
    summary: Any = None
    failure: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


def measure(case: Case, environment: dict[str, str], repeats: int = REPEATS) -> Result:
    """Run a case in fresh processes and return medians."""
    runs: list[Result] = []
    started = time.monotonic()
    while len(runs) < repeats:
        run = run_once(case, environment)
        if run.failure is not None:
            return run
        runs.append(run)
        if time.monotonic() - started > ENOUGH:
            break
    figures = ("cold", "warm", "process", "wall", "megabytes", "megabytes_before")
    medians = {name: median(getattr(run, name) for run in runs) for name in figures}
    return Result(**medians, summary=runs[0].summary)


def run_once(case: Case, environment: dict[str, str]) -> Result:
    """Run a case in one fresh process."""
    command = [sys.executable, *case.command]
    if case.call:
        command += ["-m", "perf.child", case.call, json.dumps(case.arguments)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=errors,
            env=_environment(environment | case.environment),
            preexec_fn=lambda: _limit(case.limit),
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - started
        output.seek(0)
        errors.seek(0)
        lines = output.read().decode().splitlines()
        complaints = errors.read().decode(errors="replace").splitlines()
    if process.returncode == -signal.SIGXCPU:
        return Result(failure=f"> {case.limit:.0f} s")
    if process.returncode != 0:
        return Result(failure=complaints[-1] if complaints else f"exit code {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    if not case.call:
        # A command does not report on itself. The figure may include this small process.
        megabytes = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
        return Result(cold=cpu, warm=cpu, process=cpu, wall=wall, megabytes=megabytes)
    return Result(process=cpu, wall=wall, **json.loads(lines[-1]))


def _environment(more: dict[str, str]) -> dict[str, str]:
    """Return the environment of a measured process: as users have it, with byte code kept on disk."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | more


def _limit(seconds: float) -> None:
    """Let the system stop this process when it has used so much CPU time."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
