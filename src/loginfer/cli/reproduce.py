"""`loginfer reproduce`: the paper's experiments, run again, its tables beside ours."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.common import ForceOption, JsonOption, console, counted, note, print_json, table
from loginfer.errors import InputError

if TYPE_CHECKING:
    from loginfer.reproduction import Outcome, Plan, Step

__all__ = ["reproduce"]


def reproduce(
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for benchmarks, runs, results, tables and the report."),
    ] = None,
    tables: Annotated[
        str,
        typer.Option(
            "--tables",
            help="Tables of the paper: fb-wn, lubm, negatives, rules, sizes. Beside it: evidence, which "
            "holds systems and shortcuts against near misses.",
        ),
    ] = "fb-wn,lubm,negatives,rules,sizes",
    systems: Annotated[
        str | None,
        typer.Option(
            "--systems",
            help="Systems, separated by commas; by default the paper's nine, exact, contrast and oracle.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only benchmarks whose name matches, e.g. 'WN-*'; repeatable."),
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", help="Runs of each system in which chance plays a part.", min=1)
    ] = 3,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            help="How benchmarks are built: paper (default) or sound (default for evidence, which needs it).",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", help="full: the settings as shipped. quick: a third of the training.")
    ] = "quick",
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Cells at a time; by default one per core.", min=1)
    ] = None,
    show_plan: Annotated[
        bool, typer.Option("--plan", help="Only show the cells, and how long they should take.")
    ] = False,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Run the paper's experiments again, and put its figures and ours side by side.

    Builds the benchmarks that are needed, runs each system on each of them, and writes every table, a file of
    results for each cell, and REPORT.md with the paper's findings one by one. What is done is kept: the same
    command goes on where it was, and more tables, systems or seeds can be added. A cell that fails does not
    stop the others.
    """
    from loginfer import reproduction

    made = reproduction.plan(
        tables=_words(tables),
        systems=_words(systems or ""),
        only=only or (),
        seeds=seeds,
        protocol=None if protocol is None else protocol.strip().casefold(),
        budget=budget,
    )
    jobs = jobs or os.cpu_count() or 1
    if show_plan:
        _show_plan(made, jobs, json)
        return
    if out is None:
        raise InputError(
            "nowhere to write to", hint="add --out FOLDER, or --plan to see only what would be done"
        )
    commands, folder = reproduction.Commands(), reproduction.Folder(out)
    with _resumable(out), _terminable():
        outcomes = reproduction.run(
            made, out, command=commands, stop=commands.stop, jobs=jobs, force=force, tell=_tell,
            milestone=lambda: reproduction.write_report(folder),
        )  # fmt: skip
        written = reproduction.write_report(folder)
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    if json:
        print_json(_answer(outcomes, written))
    else:
        _print_failures(failed)
        done = counted(len(outcomes) - len(failed), "cell")
        print(f"{done} of {len(outcomes):,}; the report is {out / 'REPORT.md'}")
    if failed:
        raise typer.Exit(1)


def _words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _tell(step: Step) -> None:
    from loginfer.reproduction.pace import in_words

    left = f"; about {in_words(step.remaining)} left" if step.remaining else ""
    note(f"[{step.done}/{step.all}] {step.what}{left}")


@contextlib.contextmanager
def _resumable(out: Path) -> Iterator[None]:
    """Say after Ctrl-C that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"what is done so far is kept in {out}: the same command goes on from there")
        raise


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let a polite request to end work like Ctrl-C: the processes of the cells must end too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# -- answers ----------------------------------------------------------------------------------------


def _show_plan(plan: Plan, jobs: int, json: bool) -> None:
    from loginfer.reproduction.pace import in_words

    if json:
        print_json(
            {
                "benchmarks": [entry.name for entry in plan.entries],
                "cells": [
                    {"system": c.system, "benchmark": c.benchmark, "seed": c.seed,
                     "settings": dict(c.settings), "compare_rules": c.analyse,
                     "cpu_seconds": round(c.seconds, 1)}
                    for c in plan.cells
                ],
                "cpu_seconds": round(plan.seconds, 1),
                "jobs": jobs,
                "seconds": round(plan.seconds / jobs, 1),
            }
        )  # fmt: skip
        return
    numbers = ("cells", "expected")
    shown = table("benchmark", "systems", *numbers, numbers=numbers)
    for entry in plan.entries:
        cells = [cell for cell in plan.cells if cell.benchmark == entry.name]
        names = ", ".join(name for name in plan.request.systems if any(c.system == name for c in cells))
        shown.add_row(entry.name, names, str(len(cells)), in_words(sum(c.seconds for c in cells)))
    console().print(shown)
    console().print(
        f"{counted(len(plan.cells), 'cell')} on {counted(len(plan.entries), 'benchmark')}: "
        f"{in_words(plan.seconds)} of CPU time, about {in_words(plan.seconds / jobs)} "
        f"with {counted(jobs, 'job')}"
    )


def _answer(outcomes: Sequence[Outcome], written: dict[str, Any]) -> dict[str, Any]:
    cells = [
        {"system": o.cell.system, "benchmark": o.cell.benchmark, "seed": o.cell.seed, "state": o.state,
         **({"reason": o.reason, "hint": o.hint} if o.state == "failed" else {})}
        for o in outcomes
    ]  # fmt: skip
    return {"cells": cells, **written}


def _print_failures(failed: Sequence[Outcome]) -> None:
    """Say what failed; the same reason once for all cells that it holds for."""
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for outcome in failed:
        reasons.setdefault((outcome.reason, outcome.hint), []).append(outcome.cell.label)
    for (reason, hint), labels in reasons.items():
        more = f" and {counted(len(labels) - 1, 'more cell')}" if len(labels) > 1 else ""
        note(f"failed: {labels[0]}{more}: {reason}" + (f"\n  hint: {hint}" if hint else ""))
