"""`loginfer report`: runs as pages to look at, or as tables for a paper."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loginfer.cli.common import ForceOption, JsonOption, counted, note, print_json, progress_bar
from loginfer.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable

    from loginfer.engine import Progress
    from loginfer.report.collection import Cell, Collection
    from loginfer.report.material import Options

__all__ = ["report"]


class Format(StrEnum):
    """What a report may be written as."""

    site = "site"
    md = "md"
    latex = "latex"
    csv = "csv"


def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATHS...",
            help="Folders with runs and their benchmarks, however deep.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The site's folder; with --to md, latex or csv a file."),
    ] = None,
    to: Annotated[
        Format, typer.Option("--to", help="site: pages with plots. md, latex, csv: tables alone.")
    ] = Format.site,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", help="For tables: balanced_accuracy (default), roc_auc, c_mrr, …; repeatable."
        ),
    ] = None,
    protocol: Annotated[
        str, typer.Option("--protocol", help="For tables of ranking metrics: filtered, given or unfiltered.")
    ] = "filtered",
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Compare two runs: PATHS are the two, and their benchmark if wanted."),
    ] = False,
    title: Annotated[str, typer.Option("--title", help="Title of the site.")] = "LogInfer report",
    audits: Annotated[
        bool, typer.Option("--audit/--no-audit", help="Audit the benchmarks for their cards (seconds each).")
    ] = True,
    recovery: Annotated[
        bool,
        typer.Option(
            "--recovery/--no-recovery", help="Compare mined rules with the benchmarks' (seconds a run)."
        ),
    ] = True,
    explorer: Annotated[
        int, typer.Option("--explorer", help="Test triples of each benchmark to explore, at most.", min=0)
    ] = 20_000,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Write a report on runs: a static site that needs no server and no network.

    Heat maps with the paper's figures beside ours, benchmark cards, curves, impact of negatives, learned
    rules and shortcuts, ranking, and an explorer of single triples. Give the benchmarks' folders too, if they
    are not beside the runs: cards, rules and witnesses come from them.
    """
    from loginfer.report.material import Options

    if to is Format.site and out is None:
        raise InputError("where should the site go?", hint="add --out FOLDER, or --to md for tables alone")
    if to is not Format.site and compare:
        raise InputError("--compare makes a site", hint="leave out --to, or --compare")
    if to is not Format.site:
        _tables(paths, to, metric or ["balanced_accuracy"], protocol, out, force)
        return
    if metric:
        raise InputError("--metric is for tables; the site has all metrics", hint="add --to md, latex or csv")
    options = Options(title=title, audits=audits, explorer=explorer, recovery=recovery)
    _site(paths, Path(str(out)), options, compare=compare, force=force, json=json)


def _site(paths: list[Path], out: Path, options: Options, *, compare: bool, force: bool, json: bool) -> None:
    from loginfer.report.material import Material
    from loginfer.report.site import check_site, write_site

    check_site(out, force=force)
    with progress_bar() as progress:
        found = _collected(paths, progress)
        material = Material(found, options, tell=_teller(progress))
        makers = None
        if compare:
            from loginfer.report.pages.compare import compare_pages

            first, second = _two(found)
            makers = [lambda material: compare_pages(material, first, second)]
        written = write_site(material, out, force=force, makers=makers)
    for remark in found.notes:
        note(f"note: {remark}")
    start = out / "index.html"
    if json:
        print_json({"site": str(out), "start": str(start), "pages": written, "runs": _runs(found)})
        return
    print(f"{counted(len(written), 'page')} about {counted(_runs(found), 'run')}, written to {out}")
    print(f"open {start}")


def _tables(
    paths: list[Path], to: Format, metrics: list[str], protocol: str, out: Path | None, force: bool
) -> None:
    from loginfer.files import atomic_write
    from loginfer.report.tables import result_table, to_csv, to_latex, to_markdown

    with progress_bar() as progress:
        found = _collected(paths, progress)
    render = {Format.md: to_markdown, Format.latex: to_latex, Format.csv: to_csv}[to]
    wanted = [_known_metric(found, name, protocol) for name in metrics]
    text = "\n".join(render(result_table(found, name, where)) for name, where in wanted)
    if out is None:
        print(text, end="" if text.endswith("\n") else "\n")
        return
    with atomic_write(out, force=force) as stream:
        stream.write(text)
    print(f"written to {out}")


# -- what is given ----------------------------------------------------------------------------------


def _collected(paths: list[Path], progress: Progress | None) -> Collection:
    from loginfer.report.collection import collect

    def tell(runs: int) -> None:
        if progress is not None:
            progress("runs", runs, None)

    return collect(paths, tell=tell)


def _teller(progress: Progress | None) -> Callable[[str], None]:
    """Show what is being made now; only the last few lines stay of interest."""

    def tell(message: str) -> None:
        if progress is not None:
            progress(message, 1, 1)

    return tell


def _two(found: Collection) -> tuple[Cell, Cell]:
    if len(found.cells) != 2:
        named = [f"{cell.system} on {cell.benchmark}" for cell in found.cells[:4]]
        named += ["…"] if len(found.cells) > 4 else []
        raise InputError(
            f"two runs can be compared, not {len(found.cells)}: {', '.join(named)}",
            hint="give two folders of runs, and if you like the folder of their benchmark",
        )
    return found.cells[0], found.cells[1]


def _runs(found: Collection) -> int:
    return sum(len(cell.runs) for cell in found.cells)


def _known_metric(found: Collection, name: str, protocol: str) -> tuple[str, str | None]:
    """Return a metric's name and the protocol if it is one of ranking."""
    plain = name.strip().casefold().replace("-", "_")
    first = [metrics for cell in found.cells for metrics in cell.metrics]
    if any(plain in metrics["metrics"] for metrics in first):
        return plain, None
    protocols = {known for metrics in first for known in metrics["ranking"]}
    ranking = {key for metrics in first for known in metrics["ranking"].values() for key in known}
    if plain in ranking:
        if protocol not in protocols:
            raise UnknownNameError("protocol", protocol, sorted(protocols), where="--protocol")
        return plain, protocol
    known = {key for metrics in first for key in metrics["metrics"]} | ranking
    raise UnknownNameError("metric", name, sorted(known), where="--metric")
