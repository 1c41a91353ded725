"""`loginfer kg`: list, show, convert, fetch and generate graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from loginfer.cli import common
from loginfer.cli.commands import CommandGroup
from loginfer.errors import UnknownNameError
from loginfer.kg.formats.base import ReadOptions

app = CommandGroup(help="Knowledge graphs: list, show, convert, fetch, generate.")


@app.command("list", epilog="Example:  loginfer kg list")
def list_graphs(json: common.JsonOption = False) -> None:
    """List the graphs that have a name, and the formats that can be read."""
    from loginfer.kg import catalogue
    from loginfer.kg.formats.base import formats

    entries = catalogue.entries()
    paths = {entry.name: None if entry.generated else catalogue.locate(entry.name) for entry in entries}
    if json:
        keys = ("name", "description", "triples", "generated", "citation", "licence", "address")
        about = [{key: getattr(entry, key) for key in keys} for entry in entries]
        graphs = [row | {"path": path and str(path)} for row, path in zip(about, paths.values(), strict=True)]
        common.print_json(
            {"graphs": graphs, "formats": [{"name": f.name, "endings": list(f.endings)} for f in formats()]}
        )
        return
    states = ["generated" if e.generated else "here" if paths[e.name] else "to fetch" for e in entries]
    rows = [(e.name, f"{e.triples:,}", state, e.description) for e, state in zip(entries, states, strict=True)]
    common.print_table(("name", "triples", "", "what"), rows, numbers=("triples",))
    common.print_table(("format", "endings", "what"), [(f.name, " ".join(f.endings), f.description) for f in formats()])


@app.command(epilog="Example:  loginfer kg show wn18rr --json")
@common.gather_reading
def show(
    *,
    kg: common.GraphArgument,
    top: Annotated[int, typer.Option("--top", "-t", help="How many relations and types to list.", min=0)] = 10,
    reading: ReadOptions,
    full_names: common.FullNamesOption = False,
    json: common.JsonOption = False,
) -> None:
    """Show what is in a graph: triples, constants, relations, types."""
    import numpy as np

    from loginfer.kg import catalogue

    loaded = common.open_kg(kg, reading)
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
        **({"labels": len(graph.labels)} if graph.labels else {}),
    }
    entry = catalogue.find(kg) if catalogue.is_named(kg) and not Path(kg).exists() else None
    if json:
        common.print_json({"name": kg, **facts, "relation_sizes": dict(relations), "type_sizes": dict(types)})
        return
    names = common.ShownNames(graph)
    texts = [f"{value:,}" if isinstance(value, int) else names[value] if value else "none" for value in facts.values()]
    summary = [(key.replace("_", " "), text) for key, text in zip(facts, texts, strict=True)]
    common.print_table(("", kg), summary, numbers=(kg,))
    for kind, sizes_by_name in (("relation", relations), ("type", types)):
        rows = [(names[name], f"{size:,}") for name, size in sizes_by_name[:top]]
        if len(sizes_by_name) > top:
            rows.append((f"… and {len(sizes_by_name) - top} more", ""))
        if top and sizes_by_name:
            common.print_table((kind, "triples"), rows, numbers=("triples",))
    if entry is not None:
        common.say(f"{entry.description}\ncite: {entry.citation}\nlicence: {entry.licence}")


def _largest(row: tuple[str, int]) -> tuple[int, str]:
    return (-row[1], row[0])


@app.command(epilog="Example:  loginfer kg convert fb15k-237 fb.parquet")
@common.gather_reading
def convert(
    *,
    kg: common.GraphArgument,
    out: Annotated[Path, typer.Argument(help="Where to write; the ending decides the format.")],
    to: Annotated[str | None, typer.Option("--to", help="Format to write, if not by ending.")] = None,
    reading: ReadOptions,
    force: common.ForceOption = False,
    json: common.JsonOption = False,
) -> None:
    """Write a graph in another format."""
    from loginfer.kg.load import check_output, write_graph

    check_output(out, format=to, force=force)
    loaded = common.open_kg(kg, reading)
    write_graph(loaded.graph, out, format=to, force=force)
    if json:
        common.print_json({"out": str(out), "triples": len(loaded.graph)})
    else:
        common.note(f"{common.counted(len(loaded.graph), 'triple')} written to {out}")


@app.command(epilog="Example:  loginfer kg fetch wn18rr")
def fetch(
    name: Annotated[str, typer.Argument(help="A graph of `loginfer kg list`.")],
    force: common.ForceOption = False,
    json: common.JsonOption = False,
) -> None:
    """Download a graph of the catalogue into your cache and check it."""
    from loginfer.kg import catalogue

    entry = catalogue.find(name)
    if entry.generated:
        common.note(f"`{entry.name}` is generated when it is used; there is nothing to download")
        if json:
            common.print_json({"name": entry.name, "path": None, "sha256": None})
        return
    with common.progress_bar() as progress:
        path = catalogue.fetch(entry.name, force=force, progress=progress)
    if json:
        common.print_json({"name": entry.name, "path": str(path), "sha256": entry.sha256})
    else:
        common.note(f"{entry.name} is at {common.folder_of(path)}, checksum verified")


@app.command(epilog="Example:  loginfer kg generate lubm --universities 2 --start 0 --seed 0 --out lubm.nt")
def generate(
    what: Annotated[str, typer.Argument(help="The generator: lubm.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write; the ending decides the format.")],
    universities: Annotated[int, typer.Option(help="Number of universities.", min=1)] = 1,
    start: Annotated[int, typer.Option(help="Index of the first university.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the generator.", min=0, max=2**31 - 1)] = 0,
    force: common.ForceOption = False,
    json: common.JsonOption = False,
) -> None:
    """Generate a graph: LUBM, triple for triple what its original generator (UBA 1.7) makes."""
    if what.casefold() != "lubm":
        raise UnknownNameError("generator", what, ["lubm"])
    from loginfer.kg import lubm
    from loginfer.kg.load import check_output, write_graph

    check_output(out, force=force)
    with common.progress_bar() as progress:
        if out.name.casefold().endswith((".nt", ".nt.gz", ".nt.zst")):
            # One department at a time, so that any number of universities fits into memory.
            counts = lubm.write_lubm(out, universities, start, seed, force=force, progress=progress)
            triples = counts.triples
        else:
            graph = lubm.generate_lubm(universities, start, seed, progress=progress)
            write_graph(graph, out, force=force)
            triples = len(graph)
    if json:
        common.print_json({"out": str(out), "triples": triples})
    else:
        common.note(f"{triples:,} triples written to {out}")
