"""`loginfer kg`: list, show, convert, fetch and generate graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from loginfer.cli.common import (
    ColumnsOption,
    ForceOption,
    FormatOption,
    GraphArgument,
    JsonOption,
    OnError,
    OnErrorOption,
    TypePredicateOption,
    console,
    counted,
    folder_of,
    note,
    open_kg,
    print_json,
    progress_bar,
    table,
)
from loginfer.errors import UnknownNameError

app = typer.Typer(help="Knowledge graphs: list, show, convert, fetch, generate.", no_args_is_help=True)


@app.command("list", epilog="Example:  loginfer kg list")
def list_graphs(json: JsonOption = False) -> None:
    """List the graphs that have a name, and the formats that can be read."""
    from loginfer.kg import catalogue
    from loginfer.kg.formats.base import formats

    entries = catalogue.entries()
    paths = {entry.name: None if entry.generated else catalogue.locate(entry.name) for entry in entries}
    if json:
        print_json(
            {
                "graphs": [
                    {
                        "name": entry.name,
                        "description": entry.description,
                        "triples": entry.triples,
                        "generated": entry.generated,
                        "path": None if paths[entry.name] is None else str(paths[entry.name]),
                    }
                    for entry in entries
                ],
                "formats": [{"name": f.name, "endings": list(f.endings)} for f in formats()],
            }
        )
        return
    graphs = table("name", "triples", "where", "what", numbers=("triples",))
    for entry in entries:
        path = paths[entry.name]
        where = "generated" if entry.generated else f"loginfer kg fetch {entry.name}"
        graphs.add_row(entry.name, f"{entry.triples:,}", where if path is None else folder_of(path), entry.description)
    readable = table("format", "endings", "what")
    for form in formats():
        readable.add_row(form.name, " ".join(form.endings), form.description)
    out = console()
    out.print(graphs)
    out.print(readable)


@app.command(epilog="Example:  loginfer kg show wn18rr --json")
def show(
    kg: GraphArgument,
    top: Annotated[int, typer.Option(help="How many relations and types to list.", min=0)] = 10,
    format: FormatOption = None,
    columns: ColumnsOption = "sro",
    on_error: OnErrorOption = OnError.fail,
    type_predicate: TypePredicateOption = None,
    json: JsonOption = False,
) -> None:
    """Show what is in a graph: triples, constants, relations, types."""
    import numpy as np

    loaded = open_kg(kg, format=format, columns=columns, on_error=on_error, type_predicate=type_predicate)
    graph, report = loaded.graph, loaded.report
    sizes = np.bincount(graph.triples[:, 1], minlength=len(graph.relations))
    loops = int((graph.triples[:, 0] == graph.triples[:, 2]).sum())
    literals = sum(graph.entities[int(i)].startswith('"') for i in graph.consts)
    relations = sorted(((graph.relations[int(r)], int(sizes[r])) for r in graph.rels), key=_largest)
    types: list[tuple[str, int]] = []
    if graph.type_relation is not None:
        _, objects = graph.index.pairs(graph.type_relation)
        counts = np.bincount(objects, minlength=len(graph.entities))
        types = sorted(((graph.entities[int(t)], int(counts[t])) for t in graph.types), key=_largest)
    facts: dict[str, Any] = {
        "triples": len(graph),
        "constants": len(graph.consts),
        "literals": literals,
        "relations": len(graph.rels),
        "types": len(graph.types),
        "type_predicate": graph.type_predicate,
        "loops": loops,
        "duplicates": report.duplicates,
        "skipped": report.skipped,
    }
    if json:
        print_json({"name": kg, **facts, "relation_sizes": dict(relations), "type_sizes": dict(types)})
        return
    out = console()
    summary = table("", kg, numbers=(kg,))
    for name, value in facts.items():
        text = f"{value:,}" if isinstance(value, int) else value or "none"
        summary.add_row(name.replace("_", " "), text)
    out.print(summary)
    for kind, rows in (("relation", relations), ("type", types)):
        if rows and top:
            listing = table(kind, "triples", numbers=("triples",))
            for name, size in rows[:top]:
                listing.add_row(name, f"{size:,}")
            if len(rows) > top:
                listing.add_row(f"… and {len(rows) - top} more", "")
            out.print(listing)


def _largest(row: tuple[str, int]) -> tuple[int, str]:
    return (-row[1], row[0])


@app.command(epilog="Example:  loginfer kg convert fb15k-237 fb.parquet")
def convert(
    kg: GraphArgument,
    out: Annotated[Path, typer.Argument(help="Where to write; the ending decides the format.")],
    to: Annotated[str | None, typer.Option("--to", help="Format to write, if not by ending.")] = None,
    format: FormatOption = None,
    columns: ColumnsOption = "sro",
    on_error: OnErrorOption = OnError.fail,
    type_predicate: TypePredicateOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Write a graph in another format."""
    from loginfer.kg.load import check_output, write_graph

    check_output(out, format=to, force=force)
    loaded = open_kg(kg, format=format, columns=columns, on_error=on_error, type_predicate=type_predicate)
    write_graph(loaded.graph, out, format=to, force=force)
    if json:
        print_json({"out": str(out), "triples": len(loaded.graph)})
    else:
        note(f"{counted(len(loaded.graph), 'triple')} written to {out}")


@app.command(epilog="Example:  loginfer kg fetch wn18rr")
def fetch(
    name: Annotated[str, typer.Argument(help="A graph of `loginfer kg list`.", show_default=False)],
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Download a graph of the catalogue into your cache and check it."""
    from loginfer.kg import catalogue

    entry = catalogue.find(name)
    if entry.generated:
        note(f"`{entry.name}` is generated when it is used; there is nothing to download")
        if json:
            print_json({"name": entry.name, "path": None, "sha256": None})
        return
    with progress_bar() as progress:
        path = catalogue.fetch(entry.name, force=force, progress=progress)
    if json:
        print_json({"name": entry.name, "path": str(path), "sha256": entry.sha256})
    else:
        note(f"{entry.name} is at {folder_of(path)}, checksum verified")


@app.command(epilog="Example:  loginfer kg generate lubm --universities 2 --start 0 --seed 0 --out lubm.nt")
def generate(
    what: Annotated[str, typer.Argument(help="The generator: lubm.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Where to write; the ending decides the format.")],
    universities: Annotated[int, typer.Option(help="Number of universities.", min=1)] = 1,
    start: Annotated[int, typer.Option(help="Index of the first university.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the generator.", min=0, max=2**31 - 1)] = 0,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Generate a graph: LUBM, triple for triple what its original generator (UBA 1.7) makes."""
    if what.casefold() != "lubm":
        raise UnknownNameError("generator", what, ["lubm"])
    from loginfer.kg import lubm
    from loginfer.kg.load import check_output, write_graph

    check_output(out, force=force)
    with progress_bar() as progress:
        if out.name.casefold().endswith((".nt", ".nt.gz", ".nt.zst")):
            # One department at a time, so that any number of universities fits into memory.
            counts = lubm.write_lubm(out, universities, start, seed, force=force, progress=progress)
            triples = counts.triples
        else:
            graph = lubm.generate_lubm(universities, start, seed, progress=progress)
            write_graph(graph, out, force=force)
            triples = len(graph)
    if json:
        print_json({"out": str(out), "triples": triples})
    else:
        note(f"{triples:,} triples written to {out}")
