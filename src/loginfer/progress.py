"""How long work reports its progress: one kind of callback for the whole package, and a bar that is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from loginfer.errors import InputError

# Called with what is being done, how much of it is done, and how much there is (None: unknown).
Progress: TypeAlias = Callable[[str, int, int | None], None]

# What public functions take: a callback, or True for a bar on the terminal or in the notebook.
ProgressChoice: TypeAlias = Progress | bool | None

T = TypeVar("T")


def report_progress(progress: Progress | None, what: str, done: int, total: int | None) -> None:
    """Tell whoever listens how much is done."""
    if progress is not None:
        progress(what, done, total)


def each(items: Sequence[T], what: str, progress: Progress | None) -> Iterator[tuple[int, T]]:
    """Yield items with their numbers, and say before each how many are done."""
    for done, item in enumerate(items):
        report_progress(progress, what, done, len(items))
        yield done, item


@contextmanager
def shown(progress: ProgressChoice, console: Any = None) -> Iterator[Progress | None]:
    """Give the callback that a choice means; None for no progress.

    Parameters
    ----------
    progress
        A callback, True for a bar, or nothing.
    console
        Rich's console that the bar is on; by default standard error, in a notebook the cell's output.
    """
    if progress and not (progress is True or callable(progress)):
        raise InputError(f"progress is True or a function, not {progress!r}")
    if progress is not True:
        yield progress or None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:,.0f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console or Console(stderr=True),
        transient=True,
    )
    with bar:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield report
