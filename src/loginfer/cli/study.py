"""`loginfer study`: one command from a graph to an answer."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loginfer.cli import common
from loginfer.cli.common import counted, note, print_json, progress_bar, say
from loginfer.kg.formats.base import ReadOptions

if TYPE_CHECKING:
    from loginfer.study import Study


@common.gather_reading_without_literals
def study(
    *,
    kg: common.GraphArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The study's folder; a study that is there goes on.")],
    systems: Annotated[
        str | None,
        typer.Option("--systems", "--system", help="Systems (a,b,c); by default the study's, or some of each kind."),
    ] = None,
    patterns: Annotated[
        str | None,
        typer.Option("--patterns", "--pattern", help="Patterns (a,b,c); by default the study's, or the paper's."),
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", help="quick: 10 rules a pattern, short training. full: all, three seeds.")
    ] = "quick",
    head: Annotated[
        str, typer.Option("--head", help="Heads that a body leaves open: typed, drawn (as in the paper) or best.")
    ] = "typed",
    seed: Annotated[int, typer.Option("--seed", help="Seed of all randomness.", min=0)] = 0,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Commands at a time; by default one per core.", min=1)
    ] = None,
    reading: ReadOptions,
    json: common.JsonOption = False,
) -> None:
    """Say which systems learn which patterns on a graph, and where they only take shortcuts.

    Looks at the graph, builds a benchmark for each pattern that has support in it, with negatives that shortcuts do not
    solve where there are such, evaluates systems on them, and makes a report. The commands that it used are in
    commands.sh.
    """
    from loginfer.study import study as run_study

    with common.say_resumable(f" in {out}"), progress_bar() as progress:
        done = run_study(
            kg, out, systems=common.words_of(systems or ""), patterns=common.words_of(patterns or ""), budget=budget,
            head=head, seed=seed, jobs=jobs, tell=note, progress=progress, **asdict(reading),
        )  # fmt: skip
    failed = done.document["failed"]
    if json:
        print_json(done.as_dict())
    else:
        _print_answer(done)
    if failed:
        note(f"{counted(len(failed), 'run')} failed; the same command tries again")
        raise typer.Exit(1)


# What stands behind a figure.
MARKS = {"learned": "✓", "above": "✓", "in part": "~", "cannot tell": "?", "shortcut": "s", "not learned": "✗"}
LEGEND = "✓ learned  ~ in part  ? shortcut does as well  s only a shortcut  ✗ not learned"
# So many systems stand side by side in 80 columns.
ABREAST = 6


def _print_answer(study: Study) -> None:
    """Print balanced accuracies by pattern and system, the answer in words, and where to go on."""
    plain = common.console()
    patterns = list(dict.fromkeys(pattern for pattern, _ in study.cells))
    systems = list(dict.fromkeys(system for _, system in study.cells))
    for start in range(0, len(systems), ABREAST):
        part = systems[start : start + ABREAST]
        listing = common.table("balanced accuracy, %", "shortcut", *part, numbers=("shortcut", *part))
        for pattern in patterns:
            cells = [study.cells.get((pattern, system)) for system in part]
            shortcut = next((cell.shortcut for cell in cells if cell and cell.shortcut), None)
            texts = [f"{100 * cell.value:.1f} {MARKS.get(cell.outcome or '', ' ')}" if cell else "-" for cell in cells]
            listing.add_row(pattern, f"{100 * shortcut.value:.1f}" if shortcut else "-", *texts)
        plain.print(listing)
    say(LEGEND)
    say(study.headline)
    say(f"report: {study.report}\ncommands: {study.commands}")
