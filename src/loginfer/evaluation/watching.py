"""Watching a system learn: progress, the learning curve, and a checkpoint every few seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

from loginfer.evaluation.work import Curve, Work
from loginfer.systems.interface import Checkpoint

__all__ = ["CHECKPOINT_SECONDS", "Progress", "RunWatch"]

Progress: TypeAlias = Callable[[str, int, int | None], None]

# A killed run loses at most so many seconds of learning.
CHECKPOINT_SECONDS = 10.0


class RunWatch:
    """Keeps the learning curve in memory, and checkpoints in the folder of an unfinished run.

    Parameters
    ----------
    work
        The folder; without one nothing is kept.
    progress
        Who shows how far the work is.
    seconds
        How often a checkpoint is due.
    """

    def __init__(
        self,
        work: Work | None = None,
        progress: Progress | None = None,
        seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        self.curve: Curve = []
        self._work = work
        self._progress = progress
        self._seconds = seconds
        self._last = time.monotonic()

    def restore(self) -> Checkpoint | None:
        """Return the last checkpoint of a run that was killed, and take up its learning curve."""
        found = None if self._work is None else self._work.checkpoint()
        if found is None:
            return None
        checkpoint, self.curve = found
        return checkpoint

    def folder(self) -> Path | None:
        """Return a folder for what is too large for a checkpoint."""
        return None if self._work is None else self._work.large

    def due(self) -> bool:
        """Say whether the last checkpoint is old enough."""
        return self._work is not None and time.monotonic() - self._last >= self._seconds

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint."""
        if self._work is not None:
            self._work.keep_checkpoint(checkpoint, self.curve)
        # Counted from here: writing to a slow disk must not take most of the time.
        self._last = time.monotonic()

    def record(self, row: Mapping[str, float | int]) -> None:
        """Add a row to the learning curve; JSON knows no NaN, so it becomes null."""
        self.curve.append({key: _json(value) for key, value in row.items()})

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Show how far the work is."""
        if self._progress is not None:
            self._progress(what, done, total)


def _json(value: Any) -> float | int | None:
    if isinstance(value, Integral):
        return int(value)
    return float(value) if math.isfinite(value) else None
