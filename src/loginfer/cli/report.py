"""`loginfer report`, `loginfer export` and `loginfer reproduce`.

`report`: runs as pages to look at, or as tables for a paper.

`export`: write a benchmark in the format of another program.

`reproduce`: the paper's experiments, run again, its tables beside ours.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import loginfer.benchmark.export as export_package
from loginfer.cli import common
from loginfer.cli.audit import FolderArgument
from loginfer.cli.common import counted, note, print_json, print_table, progress_bar, say
from loginfer.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from loginfer.report.collection import Collection
    from loginfer.reproduction import CellsDone, Plan


# Each export format is a module of that name.
EXPORTS = sorted(
    m.name for m in pkgutil.iter_modules(export_package.__path__) if m.name not in export_package.NO_FORMATS
)


class TableFormat(StrEnum):
    """What a report may be written as."""

    site = "site"
    md = "md"
    latex = "latex"
    csv = "csv"


def report(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATHS...", help="Folders with runs and their benchmarks, however deep.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The site's folder; with --to md, latex or csv a file.")
    ] = None,
    to: Annotated[
        TableFormat, typer.Option("--to", help="site: pages with plots. md, latex, csv: tables alone.")
    ] = TableFormat.site,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="For tables: balanced_accuracy (default), roc_auc, c_mrr, …; repeatable."),
    ] = None,
    ranking: Annotated[
        str, typer.Option("--ranking", help="For tables of ranking metrics: filtered, seen, given or unfiltered.")
    ] = "filtered",
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare two runs: PATHS are the two, and their benchmark if wanted.")
    ] = False,
    title: Annotated[str, typer.Option("--title", help="Title of the site.")] = "LogInfer report",
    audits: Annotated[
        bool, typer.Option("--audit/--no-audit", help="Audit the benchmarks for their cards (seconds each).")
    ] = True,
    recovery: Annotated[
        bool, typer.Option("--recovery/--no-recovery", help="Compare mined rules with the benchmarks' (seconds a run).")
    ] = True,
    explorer: Annotated[
        int, typer.Option("--explorer", help="Test triples of each benchmark to explore, at most.", min=0)
    ] = 20_000,
    force: common.ForceOption = False,
    json: common.JsonOption = False,
) -> None:
    """Write a report on runs: a static site that needs no server and no network.

    First the answer: which systems learn what, and where they only take shortcuts. Then the paper's figures beside
    ours, benchmark cards, curves, rules and shortcuts, ranking, and an explorer of single triples. Give the
    benchmarks' folders too, if they are not beside the runs: cards, rules and witnesses come from them.
    """
    from loginfer.report.site import report as write_report

    if to is TableFormat.site and out is None:
        raise InputError("where should the site go?", hint="add --out FOLDER, or --to md for tables alone")
    if to is not TableFormat.site and compare:
        raise InputError("--compare makes a site", hint="leave out --to, or --compare")
    if to is not TableFormat.site:
        _tables(paths, to, metric or ["balanced_accuracy"], ranking, out, force)
        return
    if metric:
        raise InputError("--metric is for tables; the site has all metrics", hint="add --to md, latex or csv")
    with progress_bar() as progress:
        site = write_report(
            *paths, out=Path(str(out)), compare=compare, title=title, audits=audits, explorer=explorer,
            recovery=recovery, force=force, progress=progress,
        )  # fmt: skip
    for remark in site.details["notes"]:
        note(f"note: {remark}")
    start, pages, runs = site.path / "index.html", site.details["pages"], site.details["runs"]
    if json:
        print_json({"site": str(out), "start": str(start), "pages": pages, "runs": runs})
        return
    say(f"{counted(len(pages), 'page')} about {counted(runs, 'run')}, written to {out}")
    say(f"open {start}")


def _tables(
    paths: list[Path], to: TableFormat, metrics: list[str], protocol: str, out: Path | None, force: bool
) -> None:
    from loginfer.files import write_text
    from loginfer.report.collection import collect
    from loginfer.report.tables import result_table, to_csv, to_latex, to_markdown

    collection = collect(paths)
    render = {TableFormat.md: to_markdown, TableFormat.latex: to_latex, TableFormat.csv: to_csv}[to]
    columns = [_metric_and_protocol(collection, name, protocol) for name in metrics]
    text = "\n".join(render(result_table(collection, name, where)) for name, where in columns)
    if out is None:
        print(text, end="" if text.endswith("\n") else "\n")
        return
    write_text(out, text, force=force)
    say(f"written to {out}")


# -- what is given ----------------------------------------------------------------------------------


def _metric_and_protocol(collection: Collection, name: str, protocol: str) -> tuple[str, str | None]:
    """Return a metric's name and the protocol if it is one of ranking."""
    plain = name.strip().casefold().replace("-", "_")
    run_metrics = [metrics for cell in collection.cells for metrics in cell.metrics]
    if any(plain in metrics["metrics"] for metrics in run_metrics):
        return plain, None
    protocols = {key for metrics in run_metrics for key in metrics["ranking"]}
    ranking = {key for metrics in run_metrics for figures in metrics["ranking"].values() for key in figures}
    if plain in ranking:
        if protocol not in protocols:
            raise UnknownNameError("ranking protocol", protocol, sorted(protocols), where="--ranking")
        return plain, protocol
    metric_names = {key for metrics in run_metrics for key in metrics["metrics"]} | ranking
    raise UnknownNameError("metric", name, sorted(metric_names), where="--metric")


def export(
    folder: FolderArgument,
    to: Annotated[str, typer.Option("--to", help=f"{', '.join(EXPORTS[:-1])} or {EXPORTS[-1]}.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The new folder.")],
    negatives: Annotated[
        list[str] | None, typer.Option("--negatives", "-n", help="Whose negatives only; repeatable.")
    ] = None,
    force: common.ForceOption = False,
    json: common.JsonOption = False,
) -> None:
    """Write a benchmark in the format of another program.

    Files are named and laid out as that program expects; negatives, which most do not know, lie beside them
    in files of the same kind. `export.json` in the new folder has counts and checksums.
    """
    from loginfer.benchmark.export.export import check_export, export_benchmark

    check_export(to, out, force=force)
    about = export_benchmark(folder, to, out, negatives=negatives or None, force=force)
    if json:
        print_json({"path": str(out), **about})
        return
    _print_figures(about)
    for text in about["notes"]:
        note(f"note: {text}")
    say(f"written to {out}: {counted(len(about['files']) + 1, 'file')} for {about['to']}")


def _print_figures(about: Mapping[str, Any]) -> None:
    splits = ("train", "valid", "test")
    sets = {"positives": about["positives"]}
    sets |= {f"negatives {method}": sizes for method, sizes in about["negatives"].items()}
    rows = [(label, *(f"{sizes[split]:,}" for split in splits)) for label, sizes in sets.items()]
    if "context" in about:
        rows.append(("context graph", "", "", f"{about['context']:,}"))
    sizes = f"{counted(about['entities'], 'entity', 'entities')}, {counted(about['relations'], 'relation')}"
    say(f"{about['benchmark']}: {sizes}")
    print_table(("", *splits), rows, numbers=splits)


def reproduce(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for benchmarks, runs, results, tables and the report.")
    ] = None,
    tables: Annotated[
        str,
        typer.Option(
            "--tables",
            help="Tables of the paper: fb-wn, lubm, negatives, rules, sizes. Beside it: evidence, which "
            "holds systems and shortcuts against near misses; standard, standard splits with random "
            "corruption; statements, what the paper says beside its tables.",
        ),
    ] = "fb-wn,lubm,negatives,rules,sizes",
    systems: Annotated[
        str | None,
        typer.Option(
            "--system",
            "--systems",
            "-s",
            help="Systems, separated by commas; by default the paper's nine, exact, contrast and oracle.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only benchmarks whose name matches, e.g. 'WN-*'; repeatable.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Runs of each system in which chance plays a part.", min=1)] = 3,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            help="How benchmarks are built: paper (default) or sound (default for evidence, which needs it).",
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
    measurement: Annotated[
        str | None,
        typer.Option("--measure", metavar="NAME", help="Make one measurement of the table statements again."),
    ] = None,
    force: common.ForceOption = False,
    json: common.JsonOption = False,
) -> None:
    """Run the paper's experiments again, and put its figures and ours side by side.

    Builds the benchmarks that are needed, runs each system on each of them, and writes every table, a file of
    results for each cell, and REPORT.md with the paper's findings one by one. What is done is kept: the same
    command goes on where it was, and more tables, systems or seeds can be added. A cell that fails does not
    stop the others.
    """
    from loginfer import reproduction

    asked: dict[str, Any] = {
        "tables": common.words_of(tables), "systems": common.words_of(systems or ""), "only": only or (),
        "seeds": seeds, "protocol": None if protocol is None else protocol.strip().casefold(), "budget": budget,
    }  # fmt: skip
    if show_plan:
        _show_plan(reproduction.plan(**asked), jobs or os.cpu_count() or 1, json)
        return
    if out is None:
        raise InputError("nowhere to write to", hint="add --out FOLDER, or --plan to see only what would be done")
    if measurement is not None:
        print_json(reproduction.measure(reproduction.Folder(out), measurement))
        return
    with common.say_resumable(f" in {out}"):
        done = reproduction.reproduce(out, **asked, jobs=jobs, force=force, tell=_tell)
    cells = done.details["cells"]
    failed = [cell for cell in cells if cell["state"] == "failed"]
    if json:
        print_json(done.details)
    else:
        _print_failures(failed)
        say(f"{counted(len(cells) - len(failed), 'cell')} of {len(cells):,}; the report is {out / 'REPORT.md'}")
    if failed:
        raise typer.Exit(1)


def _tell(step: CellsDone) -> None:
    from loginfer.reproduction.planning import in_words

    remaining = f"; about {in_words(step.remaining)} left" if step.remaining else ""
    note(f"[{step.done}/{step.all}] {step.what}{remaining}")


# -- answers ----------------------------------------------------------------------------------------


def _show_plan(plan: Plan, jobs: int, json: bool) -> None:
    from loginfer.reproduction.planning import in_words

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
    rows = []
    for entry in plan.entries:
        cells = [cell for cell in plan.cells if cell.benchmark == entry.name]
        names = ", ".join(name for name in plan.request.systems if any(c.system == name for c in cells))
        rows.append((entry.name, names, str(len(cells)), in_words(sum(c.seconds for c in cells))))
    if measured := [cell for cell in plan.cells if cell.measured]:
        rows.append(("statements", "", str(len(measured)), in_words(sum(c.seconds for c in measured))))
    print_table(("benchmark", "systems", "cells", "expected"), rows, numbers=("cells", "expected"))
    say(
        f"{counted(len(plan.cells), 'cell')} on {counted(len(plan.entries), 'benchmark')}: "
        f"{in_words(plan.seconds)} of CPU time, about {in_words(plan.seconds / jobs)} "
        f"with {counted(jobs, 'job')}"
    )


def _print_failures(failed: Sequence[Mapping[str, Any]]) -> None:
    """Say what failed, each reason once."""
    from loginfer.reproduction.planning import short

    reasons: dict[tuple[str, str | None], list[str]] = {}
    for cell in failed:
        label = f"{cell['system']} on {short(cell['benchmark'])}, seed {cell['seed']}"
        reasons.setdefault((cell["reason"], cell["hint"]), []).append(label)
    for (reason, hint), labels in reasons.items():
        more = f" and {counted(len(labels) - 1, 'more cell')}" if len(labels) > 1 else ""
        note(f"failed: {labels[0]}{more}: {reason}" + (f"\n  hint: {hint}" if hint else ""))
