"""What to measure, as values: a task, and in it the same question asked of several systems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

OURS = "LogInfer"


@dataclass(frozen=True)
class Case:
    """One system answering the question of a task.

    Parameters
    ----------
    system
        What the table calls it, with its settings where they matter.
    call
        `package.module:function`. The function prepares in a fresh process, unmeasured, and returns the
        call to measure, a function from that call's value to a summary that JSON can hold and, for a
        system that tells by itself which part of its time counts, one from the value to CPU seconds.
    arguments
        Keyword arguments of that function.
    command
        Instead of `call`: arguments of the Python interpreter; the whole process is measured.
    faster
        The goal: this many times our CPU seconds, at least.
    seconds, megabytes
        The goal: at most this much CPU time and peak memory.
    same
        Whether the summary must equal ours.
    environment
        Environment variables of the process.
    limit
        CPU seconds after which the process is stopped.
    """

    system: str
    call: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    faster: float | None = None
    seconds: float | None = None
    megabytes: float | None = None
    same: bool = True
    environment: dict[str, str] = field(default_factory=dict)
    limit: float = 60.0


@dataclass(frozen=True)
class Estimate:
    """What the same work would cost as a part of something that is too long to be measured.

    Parameters
    ----------
    times
        How often the measured work is contained in it.
    what
        What it is.
    """

    times: float
    what: str


@dataclass(frozen=True)
class Task:
    """A question, and the systems that answer it, ours first.

    Parameters
    ----------
    key
        What `--only` calls it.
    name
        What the table calls it.
    cases
        The systems.
    needs
        What must be there: the graphs `fb15k-237`, `wn18rr` and `lubm`, a `benchmark` of FB15k-237.
    end_to_end
        Whether goals are for the first call in a process, not for the second.
    estimate
        What every system would need for something larger.
    before
        What compiles our kernels, where our own case would take long.
    """

    key: str
    name: str
    cases: tuple[Case, ...]
    needs: tuple[str, ...] = ()
    end_to_end: bool = False
    estimate: Estimate | None = None
    before: Case | None = None
