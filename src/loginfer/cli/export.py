"""`loginfer export`: write a benchmark in the format of another program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from loginfer.cli.audit import FolderArgument
from loginfer.cli.common import ForceOption, JsonOption, console, counted, note, print_json, table

__all__ = ["export"]


def export(
    folder: FolderArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="pykeen, libkge, openke, rotate, rdf, parquet, huggingface or anyburl.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The new folder.", show_default=False)],
    method: Annotated[
        list[str] | None,
        typer.Option("--method", help="Negatives of this method only; may be repeated.", show_default=False),
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Write a benchmark in the format of another program.

    Files are named and laid out as that program expects; negatives, which most do not know, lie beside them
    in files of the same kind. `export.json` in the new folder has counts and checksums.
    """
    from loginfer.benchmark.exporting.writing import check_export, export_benchmark

    check_export(to, out, force=force)
    about = export_benchmark(folder, to, out, methods=method or None, force=force)
    if json:
        print_json({"path": str(out), **about})
        return
    _print_figures(about)
    for text in about["notes"]:
        note(f"note: {text}")
    console().print(f"written to {out}: {counted(len(about['files']) + 1, 'file')} for {about['to']}")


def _print_figures(about: Mapping[str, Any]) -> None:
    splits = ("train", "valid", "test")
    shown = table("", *splits, numbers=splits)
    rows = [("positives", about["positives"])]
    rows += [(f"negatives {method}", sizes) for method, sizes in about["negatives"].items()]
    for label, sizes in rows:
        shown.add_row(label, *(f"{sizes[split]:,}" for split in splits))
    if "context" in about:
        shown.add_row("context graph", "", "", f"{about['context']:,}")
    sizes = f"{counted(about['entities'], 'entity', 'entities')}, {counted(about['relations'], 'relation')}"
    console().print(f"{about['benchmark']}: {sizes}")
    console().print(shown)
