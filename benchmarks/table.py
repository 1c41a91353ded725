"""The one table: a row a system, the rows of a task together."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.case import Case, Task
from benchmarks.runner import Result

HEADER = ("task", "system", "warm s", "cold s", "MB", "at start", "ratio", "cold ratio", "goal", "")
LEFT = (0, 1, 8, 9)


@dataclass(frozen=True)
class Row:
    """What one case cost, beside ours in the same task."""

    task: Task
    case: Case
    result: Result
    ours: Result

    @property
    def is_ours(self) -> bool:
        """Whether this is LogInfer's row."""
        return self.case is self.task.cases[0]

    def ratio(self, figure: str) -> float | None:
        """CPU seconds of this system divided by ours."""
        if self.is_ours or self.result.failure or self.ours.failure or not self.case.call:
            return None
        return float(getattr(self.result, figure)) / max(float(getattr(self.ours, figure)), 1e-4)

    @property
    def differs(self) -> bool:
        """Whether this system's answer is not ours, though it should be."""
        if self.is_ours or not self.case.same or self.result.failure or self.ours.failure:
            return False
        return bool(self.result.summary != self.ours.summary)

    @property
    def goal(self) -> str:
        """The goal as text; empty without one."""
        if self.case.faster is not None:
            faster = self.case.faster
            return f"≥ {faster:g}×" if faster >= 1 else f"≥ 1/{1 / faster:g}×"
        if self.case.megabytes is not None:
            return f"< {self.case.megabytes:g} MB"
        return "" if self.case.seconds is None else f"< {self.case.seconds:g} s"

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without one, or without figures."""
        figure = "cold" if self.task.end_to_end else "warm"
        if self.case.faster is not None:
            ratio = self.ratio(figure)
            return None if ratio is None else ratio >= self.case.faster
        if self.result.failure:
            return None
        if self.case.megabytes is not None:
            return self.result.megabytes < self.case.megabytes
        return None if self.case.seconds is None else self.result.process < self.case.seconds

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        name = self.task.name if self.is_ours else ""
        if self.result.failure:
            shown = self.result.failure if self.result.failure.startswith(">") else "failed"
            return (name, self.case.system, shown, *[""] * 5, self.goal, "")
        mark = {None: "", True: "reached", False: "MISSED"}[self.reached]
        result = self.result
        return (
            name,
            self.case.system,
            _seconds(result.warm),
            _seconds(result.cold),
            f"{result.megabytes:.0f}",
            f"{result.megabytes_before:.0f}" if result.megabytes_before else "",
            _times(self.ratio("warm")),
            _times(self.ratio("cold")),
            self.goal,
            "ANSWER DIFFERS" if self.differs else mark,
        )


def format_table(rows: list[Row]) -> str:
    """Return the table as text (a Markdown table, too)."""
    cells = [HEADER, *(row.cells() for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(HEADER))]
    lines = [_line(row, widths) for row in cells]
    rule = "|".join("-" * (w + 2) if i in LEFT else "-" * (w + 1) + ":" for i, w in enumerate(widths))
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    padded = (
        cell.ljust(width) if i in LEFT else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return f"| {' | '.join(padded)} |"


def _seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def _times(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
