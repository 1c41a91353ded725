"""Killing the program at a random moment, and what must be there afterwards.

The moments are the same in every run of the tests. LOGINFER_KILLS=30 makes more of them (`make torture`).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

KILLS = int(os.environ.get("LOGINFER_KILLS", "0"))
PROGRAM = [sys.executable, "-c", "from loginfer.cli import main; main()"]
# Whoever waits for a run that hangs shall not wait for ever.
LONGEST = 120.0


def kill_at_a_random_moment(command: list[str], moment: random.Random, sign: str, wait: float) -> bool:
    """Start the program and kill it; return whether it was still running.

    `sign` is a pattern of names in the folder of `--out`. The moment is drawn from so many seconds (`wait`)
    after the first such name appears; an empty pattern means the program's start.
    """
    folder = Path(command[command.index("--out") + 1]).parent
    delay = moment.uniform(0, wait)
    program = subprocess.Popen([*PROGRAM, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started = time.monotonic()
    while sign and program.poll() is None and not any(folder.glob(sign)):
        assert time.monotonic() < started + LONGEST, "the program hangs"
        time.sleep(0.0005)
    time.sleep(delay)
    program.kill()
    return program.wait(timeout=LONGEST) == -signal.SIGKILL


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def run_here(loginfer, command: list[str]) -> None:
    """Run the same command again; in this process, which is quicker."""
    code, _, messages = loginfer(*command)
    assert code == 0, messages


def moments(kills: int, signs: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return [signs[i % len(signs)] for i in range(KILLS or kills)]
