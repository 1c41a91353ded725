"""How far a training is, and which epoch was the best."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Progress"]


@dataclass
class Progress:
    """What is known after some epochs, and in the middle of one.

    Parameters
    ----------
    epoch, lesson, batch
        How many are done: epochs, lessons of the next epoch, batches of its next lesson.
    total
        The sum of the losses of that epoch so far.
    best
        The best figure on valid; NaN before the first.
    best_epoch
        The last epoch that reached it, counted from 1.
    stale
        Epochs since it was improved.
    """

    epoch: int = 0
    lesson: int = 0
    batch: int = 0
    total: float = 0.0
    best: float = math.nan
    best_epoch: int = 0
    stale: int = 0

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Progress:
        """Return what `facts` wrote down."""
        known = {field.name: facts[field.name] for field in fields(cls) if field.name in facts}
        return cls(**{**known, "best": math.nan if facts["best"] is None else float(facts["best"])})

    def facts(self) -> dict[str, Any]:
        """Return it as JSON values."""
        known: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**known, "best": None if math.isnan(self.best) else self.best}

    def end_lesson(self) -> None:
        """Take note that all batches of a lesson are done."""
        self.lesson += 1
        self.batch = 0

    def end_epoch(self) -> None:
        """Take note that all lessons of an epoch are done."""
        self.epoch += 1
        self.lesson, self.batch, self.total = 0, 0, 0.0

    def judge(self, figure: float | None) -> bool:
        """Compare an epoch's figure on valid; among equals the last one has learned most.

        Returns whether none was better.
        """
        better = figure is None or not figure <= self.best
        if figure is not None:
            self.stale = 0 if better else self.stale + 1
            if figure < self.best:
                return False
            if better:
                self.best = figure
        self.best_epoch = self.epoch
        return True

    def enough(self, patience: int) -> bool:
        """Say whether there was no improvement for so many epochs; 0: never."""
        return 0 < patience <= self.stale
