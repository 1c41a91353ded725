"""What a call costs, with all processes it started that are still there, as Spark's are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf.child import cpu_seconds
from perf.family import descendants

__all__ = ["Spent", "metered"]


@dataclass(frozen=True)
class Spent:
    """What a call returned, and what it took.

    Parameters
    ----------
    value
        What it returned.
    cpu, wall
        CPU seconds of this process and its descendants, and seconds on the clock.
    """

    value: Any
    cpu: float
    wall: float


def metered(
    call: Callable[[], Any], told: Callable[[Any], dict[str, Any]]
) -> tuple[Callable[[], Spent], Callable[[Spent], dict[str, Any]], Callable[[Spent], float]]:
    """Return what `perf.child` wants of a prepared call.

    Parameters
    ----------
    call
        The call to measure.
    told
        From its value to a summary.
    """

    def measured() -> Spent:
        cpu, started = _all_cpu_seconds(), time.monotonic()
        value = call()
        return Spent(value, _all_cpu_seconds() - cpu, time.monotonic() - started)

    def summary(spent: Spent) -> dict[str, Any]:
        return {"call_wall": spent.wall, "all_megabytes": _all_megabytes(), **told(spent.value)}

    return measured, summary, lambda spent: spent.cpu


def _all_cpu_seconds() -> float:
    """CPU seconds of this process, of those that have ended below it, and of those that still run."""
    tick = os.sysconf("SC_CLK_TCK")
    return cpu_seconds() + sum(_ticks(process) for process in descendants(os.getpid())[1:]) / tick


def _ticks(process: int) -> int:
    """User and system time of a process and of the children it has waited for."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended meanwhile
        return 0
    return sum(int(field) for field in fields[11:15])


def _all_megabytes() -> float:
    """Return the peak memory of this process and of each that runs below it, together."""
    return sum(_kilobytes(process) for process in descendants(os.getpid())) / 1024


def _kilobytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
