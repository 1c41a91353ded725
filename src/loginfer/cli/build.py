"""`loginfer build`: make a benchmark from a graph and patterns or rules."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.choice import (
    DepthOption,
    HeadOption,
    IntervalOption,
    MaxTriplesOption,
    SelectByOption,
    SelectOption,
    depth_given,
    depth_rows,
)
from loginfer.cli.common import (
    ForceOption,
    JsonOption,
    TypePredicateOption,
    console,
    counted,
    note,
    print_json,
    progress_bar,
    table,
)
from loginfer.cli.engines import (
    EngineName,
    EngineOption,
    MasterOption,
    MemoryOption,
    ScratchOption,
    SparkConfOption,
    engine_options,
    graph_to_build_from,
)
from loginfer.cli.gate import (
    MaxShortcutOption,
    StrictOption,
    check_gate,
    gate_answer,
    shortcuts_above,
    stop_at_gate,
)
from loginfer.cli.variants import (
    FlippedOption,
    InductiveOption,
    InductiveShareOption,
    MissingOption,
    variant_lines,
)
from loginfer.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loginfer.benchmark import Recipe

__all__ = ["ProtocolOption", "RecipeOption", "SeedOption", "build", "recipe_settings"]

RecipeOption = Annotated[
    Path | None,
    typer.Option("--recipe", help="A TOML file with settings; options on the command line come before it."),
]
ProtocolOption = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        help="sound (default): no negative follows from the rules. paper: the text to the letter.",
        show_default=False,
    ),
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Seed of all randomness; 0 by default.", show_default=False)
]


def build(
    kg: Annotated[
        str | None,
        typer.Argument(
            metavar="KG",
            help="A graph: a name from `loginfer kg list`, or a file, folder or archive of triples.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The benchmark's folder.")] = None,
    pattern: Annotated[
        list[str] | None,
        typer.Option("--pattern", "-p", help="A named pattern or its text; give several for a mixture."),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option("--rules", "-r", help="Instead of patterns: a rule file, lubm-107 or lubm-19, a rule."),
    ] = None,
    negatives: Annotated[
        list[str] | None,
        typer.Option(
            "--negatives", "-n", help="rb, pa (default), qg, rc or nm; give several for several sets."
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            "--match",
            help="nm: negatives look like positives to these shortcuts: popularity, adjacency, simpbl.",
            show_default=False,
        ),
    ] = None,
    k1: Annotated[
        int | None, typer.Option("--k1", help="Rules per pattern; 20 by default.", show_default=False)
    ] = None,
    k2: Annotated[
        int | None,
        typer.Option("--k2", help="Conclusions per rule at most; 2,000 by default.", show_default=False),
    ] = None,
    ratio: Annotated[
        str | None,
        typer.Option("--ratio", help="Train : valid : test; 8:1:1 by default.", show_default=False),
    ] = None,
    protocol: ProtocolOption = None,
    min_new: Annotated[
        int | None,
        typer.Option(
            "--min-new",
            help="sound: pass over rules with fewer new conclusions; 10 by default.",
            show_default=False,
        ),
    ] = None,
    materialised: Annotated[
        bool | None,
        typer.Option("--materialised", help="sound: no negative follows in any number of steps."),
    ] = None,
    min_support: Annotated[
        int | None, typer.Option("--min-support", help="Only bodies with at least this support.")
    ] = None,
    max_support: Annotated[
        int | None, typer.Option("--max-support", help="Only bodies with at most this support.")
    ] = None,
    select: SelectOption = None,
    select_by: SelectByOption = None,
    interval: IntervalOption = None,
    head: HeadOption = None,
    depth: DepthOption = None,
    max_triples: MaxTriplesOption = None,
    allow_fewer: Annotated[
        bool | None, typer.Option("--allow-fewer", help="Be content with fewer than k1 rules.")
    ] = None,
    seed: SeedOption = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="What to call it; by default after graph and patterns."),
    ] = None,
    flipped: FlippedOption = None,
    missing: MissingOption = None,
    inductive: InductiveOption = None,
    inductive_share: InductiveShareOption = None,
    recipe: RecipeOption = None,
    max_shortcut: MaxShortcutOption = None,
    strict: StrictOption = False,
    type_predicate: TypePredicateOption = None,
    engine: EngineOption = EngineName.native,
    memory_limit: MemoryOption = None,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
    scratch: ScratchOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Build a benchmark: rules with the largest support, their conclusions, negatives.

    The folder holds train, valid and test with negatives for each, the rules, where every triple came from,
    checksums and a card. The same recipe gives the same bytes. With --max-shortcut and --strict a benchmark
    on which a shortcut does too well is not written.
    """
    from loginfer.benchmark import build as build_benchmark
    from loginfer.benchmark import write_benchmark
    from loginfer.benchmark.folder import check_graph, check_output
    from loginfer.benchmark.graph_in_memory import settings_in_memory
    from loginfer.benchmark.pipeline import check_recipe

    if out is None:
        raise InputError("no folder to build in", hint="add --out FOLDER")
    check_gate(max_shortcut, strict)
    asked = recipe_settings(
        recipe,
        kg=kg, patterns=pattern, rules=rules, negatives=negatives, match=_words(match), k1=k1, k2=k2,
        ratio=ratio,
        protocol=protocol, min_new=min_new, materialised=materialised, min_support=min_support,
        max_support=max_support, allow_fewer=allow_fewer, seed=seed, type_predicate=type_predicate,
        name=name,
        select=select, select_by=select_by, interval=interval, head=head, depth=depth_given(depth),
        max_triples=max_triples,
        flipped=flipped, missing=missing, inductive=inductive, inductive_share=inductive_share,
    )  # fmt: skip
    if "kg" not in asked.values:
        raise InputError("no graph to build from", hint="name one, or give --recipe FILE")
    made_of = asked.recipe()
    given = check_recipe(made_of)
    check_output(out, force=force)
    options = engine_options(engine, memory_limit, master, spark_conf, scratch)
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(progress_bar())
        if progress:
            progress("reading the graph", 0, None)
        source = graph_to_build_from(made_of.kg, engine, given, made_of.type_predicate, options)
        graph = stack.enter_context(source)
        check_graph(graph)
        loading = settings_in_memory(made_of) + ([] if max_shortcut is None else ["--max-shortcut"])
        if loading and not graph.in_memory:
            note(f"the whole graph comes into memory, for {', '.join(loading)}")
        benchmark = build_benchmark(made_of, graph, engine=engine.value, progress=progress, **options)
        above = shortcuts_above(benchmark, max_shortcut, progress)
        if above and strict:
            stop_at_gate(above, max_shortcut, json, made_of.match)
        if progress:
            progress("writing", 0, None)
        manifest = write_benchmark(benchmark, out, force=force)
    for method, found in benchmark.negatives.items():
        for remark in found.notes:
            note(f"{method}: {remark}")
    for remark in benchmark.notes:
        note(remark)
    for exceeded in above:
        note(f"warning: {exceeded.message}")
    if json:
        print_json({"path": str(out), **manifest, **gate_answer(max_shortcut, above)})
        return
    _print_figures(out, manifest, made_of)


def _words(text: str | None) -> list[str] | None:
    """Return the words of a list with commas."""
    return None if text is None else [word.strip() for word in text.split(",")]


def _print_figures(out: Path, manifest: Mapping[str, Any], recipe: Recipe) -> None:
    shown = table("", "train", "valid", "test", numbers=("train", "valid", "test"))
    rows = [("positives", manifest["positives"]), ("  of them conclusions", manifest["conclusions"])]
    rows += depth_rows(manifest)
    for method, counts in manifest["negatives"].items():
        rows.append((f"negatives {method}", {s: counts[s]["reached"] for s in ("train", "valid", "test")}))
    for label, sizes in rows:
        shown.add_row(label, *(f"{sizes[s]:,}" for s in ("train", "valid", "test")))
    plain = console()
    rules = counted(len(manifest["rules"]), "rule")
    plain.print(f"{manifest['name']}: {rules}, protocol {recipe.protocol}")
    plain.print(shown)
    for line in variant_lines(manifest):
        plain.print(line)
    # Ready to be copied: neither a space nor a leading dash may be misunderstood.
    named = shlex.quote(f"./{out}" if str(out).startswith("-") else str(out))
    plain.print(f"written to {out}; check it with: loginfer audit {named}")


class Settings:
    """The settings of a recipe, from a file and from the command line.

    Parameters
    ----------
    values
        The settings by name.
    where
        The file, if there is one.
    """

    def __init__(self, values: dict[str, Any], where: str | None) -> None:
        self.values = values
        self.where = where

    def recipe(self) -> Recipe:
        """Return the recipe; errors name the file."""
        from loginfer.benchmark import Recipe

        return Recipe.from_dict(self.values, where=self.where)


def recipe_settings(file: Path | None, **given: Any) -> Settings:
    """Return the settings of a recipe file with those given on the command line put over them."""
    from loginfer.benchmark.recipe import read_settings, refuse_unknown

    values = read_settings(file) if file else {}
    refuse_unknown(values, where=str(file))
    chosen = {key: value for key, value in given.items() if value not in (None, [])}
    if "patterns" in chosen and "rules" not in chosen:
        values.pop("rules", None)
    if "rules" in chosen and "patterns" not in chosen:
        values.pop("patterns", None)
    return Settings(values | chosen, str(file) if file else None)
