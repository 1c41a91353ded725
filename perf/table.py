"""The one table: a row a system, the rows of a task together."""

from __future__ import annotations

from dataclasses import dataclass

from perf.case import Case, Task
from perf.runner import Result

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
        limits = ((self.case.seconds, "s"), (self.case.megabytes, "MB"))
        return ", ".join(f"< {limit:g} {unit}" for limit, unit in limits if limit is not None)

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without one, or without figures."""
        figure = "cold" if self.task.end_to_end else "warm"
        if self.case.faster is not None:
            ratio = self.ratio(figure)
            return None if ratio is None else ratio >= self.case.faster
        if self.result.failure or not self.goal:
            return None
        limits = ((getattr(self.result, figure), self.case.seconds), (self.megabytes, self.case.megabytes))
        return all(limit is None or value < limit for value, limit in limits)

    @property
    def megabytes(self) -> float:
        """The peak memory: of all processes together, where the summary tells it."""
        summary = self.result.summary
        together = summary.get("all_megabytes", 0.0) if isinstance(summary, dict) else 0.0
        return max(self.result.megabytes, float(together))

    @property
    def estimate(self) -> str:
        """What this system would need for something larger, as text; empty if nothing is asked."""
        asked = self.task.estimate
        if asked is None or self.result.failure:
            return ""
        whole = self.result.warm * asked.times
        return f"{self.case.system}: about {_long(whole)} for {asked.what}"

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
            f"{self.megabytes:.0f}",
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


def _long(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} CPU {unit}"
    return f"{seconds:.0f} CPU seconds"


def _times(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
