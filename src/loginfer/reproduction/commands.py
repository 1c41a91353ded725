"""Running a command of this program in a process of its own; and ending all of them at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

from loginfer.errors import LogInferError

__all__ = ["CommandError", "Commands"]

# One core a process: threads of linear algebra would only get in the way of the others.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# How long a process may take to end when it is told to.
_PATIENCE = 10


class CommandError(LogInferError):
    """A command that did not end well: what it said, and its hint."""


class Commands:
    """Runs commands of this program, each in a process; several threads may do so at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def __call__(self, words: Sequence[str]) -> str:
        """Run a command and return what it printed.

        Raises
        ------
        CommandError
            With its own message and hint.
        """
        # -P: a file in the current folder must not take the place of a module.
        command = [sys.executable, "-P", "-m", "loginfer", *words]
        with self._lock:
            if self._stopped:
                raise CommandError("not begun: everything was told to end")
            process = subprocess.Popen(  # noqa: S603 - this program itself, with words that it chose
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, **_ENVIRONMENT, "PYTHONIOENCODING": "utf-8"},
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
        if process.returncode:
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
    places = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if places:
        message, hints = lines[places[-1]].removeprefix("error: "), lines[places[-1] + 1 :]
        hint = next((line.strip().removeprefix("hint: ") for line in hints if "hint: " in line), None)
        return CommandError(message, hint=hint)
    if code < 0:
        return CommandError(
            f"its process was ended by {_signal(-code)}",
            hint="if memory was short, try again with --jobs 1" if -code == signal.SIGKILL else None,
        )
    said = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    return CommandError(f"exit code {code}: {said}")


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
