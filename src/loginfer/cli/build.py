"""Loginfer build, suite (options generated from Recipe).

Options of `loginfer build` for the choice of rules and for conclusions of several steps.

Options of `loginfer build` for noisy and inductive benchmarks, and what is printed about them.

The gate of `build`, `suite` and `audit`: shortcuts must not do better than a limit.

`loginfer build`: make a benchmark from a graph and patterns or rules.

`loginfer suite`: the 37 benchmarks of the paper.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.common import (
    EngineName,
    EngineOption,
    ForceOption,
    JsonOption,
    MasterOption,
    MemoryOption,
    ScratchOption,
    SparkConfOption,
    TypePredicateOption,
    console,
    counted,
    engine_options,
    graph_to_build_from,
    note,
    print_json,
    progress_bar,
    table,
)
from loginfer.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loginfer.benchmark import Benchmark, Recipe
    from loginfer.benchmark.shortcut_gate import Exceeded
    from loginfer.progress import Progress


SelectOption = Annotated[
    str | None,
    typer.Option(
        "--select",
        help="Which rules of a pattern: support (default), those with the largest; random; or interval.",
        show_default=False,
    ),
]
SelectByOption = Annotated[
    str | None,
    typer.Option(
        "--select-by", help="What the interval is about: support (default), confidence or overlap.", show_default=False
    ),
]
IntervalOption = Annotated[
    str | None, typer.Option("--interval", metavar="LOW:HIGH", help="For --select interval, such as 0.1:0.5 or 100:.")
]
HeadOption = Annotated[
    str | None,
    typer.Option(
        "--head",
        help="Heads that the body leaves open: drawn (default), or best, with the largest confidence.",
        show_default=False,
    ),
]
DepthOption = Annotated[
    str | None,
    typer.Option(
        "--depth", metavar="N", help="Conclusions follow in up to N steps (or 1..N); 1 by default.", show_default=False
    ),
]
MaxTriplesOption = Annotated[
    int | None,
    typer.Option(
        "--max-triples",
        help="With --depth: give up when more triples follow; 20,000,000 by default.",
        show_default=False,
    ),
]


def depth_given(text: str | None) -> int | None:
    """Return the depth that a text such as `3` or `1..3` asks for."""
    if text is None:
        return None
    first, dots, last = text.partition("..")
    hint = "write --depth 3 or --depth 1..3"
    try:
        least, most = (1, int(first)) if not dots else (int(first), int(last))
    except ValueError as error:
        raise InputError(f"`{text}` is no depth", where="--depth", hint=hint) from error
    if least != 1:
        raise InputError(f"the depths `{text}` do not begin with 1", where="--depth", hint=hint)
    return most


def depth_rows(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield for each depth how many conclusions each split has; nothing for a benchmark of one step."""
    for depth, sizes in manifest.get("depths", {}).items():
        yield f"    at depth {depth}", sizes


FlippedOption = Annotated[
    float | None,
    typer.Option(
        "--flipped", help="Noise: share of train's conclusions that change places with negatives.", show_default=False
    ),
]
MissingOption = Annotated[
    float | None,
    typer.Option("--missing", help="Noise: share of premises that are removed from train.", show_default=False),
]
InductiveOption = Annotated[
    bool | None,
    typer.Option("--inductive", help="Test has constants of its own, and a context graph that tells of them."),
]
InductiveShareOption = Annotated[
    float | None,
    typer.Option(
        "--inductive-share", help="Inductive: share of constants for test; 0.2 by default.", show_default=False
    ),
]


def variant_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a manifest tells of noise or of a context graph."""
    if (noise := manifest.get("noise")) is not None:
        yield (
            f"noise: {noise['flipped-positive']:,} conclusions of train are negatives, "
            f"{noise['flipped-negative']:,} negatives positives, {noise['missing']:,} premises missing"
        )
        reached, wanted = noise["reached"]["test"], manifest["positives"]["test"]
        if wanted:
            yield f"from train as it is the rules themselves derive {reached / wanted:.1%} of test"
    if (sides := manifest.get("inductive")) is not None:
        yield (
            f"inductive: {sides['constants']['test']:,} constants of test, not among the "
            f"{sides['constants']['train']:,} of train; context graph of {sides['context']:,} triples"
        )


MaxShortcutOption = Annotated[
    float | None,
    typer.Option(
        "--max-shortcut",
        help="Warn of shortcuts with a larger accuracy on test: a share such as 0.6, above 0.5.",
        show_default=False,
    ),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="With --max-shortcut: fail instead (exit code 1).")]


def check_gate(limit: float | None, strict: bool) -> None:
    """Complain now, before the work, about a limit that makes no sense, or strictness about nothing."""
    from loginfer.benchmark.shortcut_gate import check_limit

    if limit is not None:
        check_limit(limit, where="--max-shortcut")
    elif strict:
        raise InputError("--strict is about shortcuts", hint="add --max-shortcut, such as 0.6")


def shortcuts_above(benchmark: Benchmark, limit: float | None, progress: Progress | None = None) -> list[Exceeded]:
    """Return the shortcuts above the limit; none without a limit."""
    from loginfer.benchmark.shortcut_gate import gate

    if limit is None:
        return []
    if progress:
        progress("measuring shortcuts", 0, None)
    return gate(benchmark, limit)


def stop_at_gate(above: Sequence[Exceeded], limit: float | None, json: bool, match: Sequence[str] = ()) -> None:
    """Say which shortcuts do too well, and end with exit code 1.

    Parameters
    ----------
    above
        The shortcuts.
    limit
        How well they may do.
    json
        Whether programs are to be told.
    match
        On which shortcuts near misses are matched already.
    """
    for exceeded in above:
        note(f"error: {exceeded.message}")
    hint = "`--negatives nm` draws near misses, which shortcuts hardly tell from conclusions"
    if all(exceeded.method == "nm" for exceeded in above):
        hint = "`--match popularity,adjacency` matches near misses to the conclusions"
        if match:
            hint = "choose other rules, another seed or a higher limit: near misses are matched already"
    note(f"nothing was written\n  hint: {hint}")
    if json:
        print_json({"path": None, **gate_answer(limit, above)})
    raise typer.Exit(1)


def gate_answer(limit: float | None, above: Sequence[Exceeded]) -> dict[str, Any]:
    """Return what programs are told; nothing without a limit."""
    if limit is None:
        return {}
    return {"max_shortcut": {"limit": limit, "exceeded": [known.as_dict() for known in above]}}


RecipeOption = Annotated[
    Path | None, typer.Option("--recipe", help="A TOML file with settings; options on the command line come before it.")
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
        str | None, typer.Option("--rules", "-r", help="Instead of patterns: a rule file, lubm-107 or lubm-19, a rule.")
    ] = None,
    negatives: Annotated[
        list[str] | None,
        typer.Option("--negatives", "-n", help="rb, pa (default), qg, rc or nm; give several for several sets."),
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
        int | None, typer.Option("--k2", help="Conclusions per rule at most; 2,000 by default.", show_default=False)
    ] = None,
    ratio: Annotated[
        str | None, typer.Option("--ratio", help="Train : valid : test; 8:1:1 by default.", show_default=False)
    ] = None,
    protocol: ProtocolOption = None,
    min_new: Annotated[
        int | None,
        typer.Option(
            "--min-new", help="sound: pass over rules with fewer new conclusions; 10 by default.", show_default=False
        ),
    ] = None,
    materialised: Annotated[
        bool | None, typer.Option("--materialised", help="sound: no negative follows in any number of steps.")
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
        str | None, typer.Option("--name", help="What to call it; by default after graph and patterns.")
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
    from loginfer.benchmark.construction.pipeline import check_recipe
    from loginfer.benchmark.folder.folder import check_graph, check_output
    from loginfer.benchmark.recipe import settings_in_memory

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


app = typer.Typer(help="The suite: all benchmarks of the paper.", no_args_is_help=True)

OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help="Only benchmarks whose name matches, e.g. 'WN-*' or 'FB-*-qg'; repeatable. '*-nm' and '*-nmm' "
        "bring near misses, plain and matched, which the paper does not have.",
    ),
]

# What a recipe may say about the whole suite; the rest is the paper's.
GENERAL = ("protocol", "seed", "ratio", "min_new", "materialised")


@app.command("list", epilog="Example:  loginfer suite list --only 'FB-*'")
def list_suite(only: OnlyOption = None, json: JsonOption = False) -> None:
    """List the benchmarks of the suite with the paper's sizes."""
    from loginfer.benchmark.construction.suite import select

    chosen = select(only or ())
    if json:
        print_json(
            [
                {
                    "name": entry.name,
                    "kg": entry.group.kg,
                    "pattern": entry.group.pattern,
                    "rules": entry.group.rules,
                    "k1": entry.group.k1,
                    "k2": entry.group.k2,
                    "negatives": entry.method,
                    **({"match": list(entry.match)} if entry.match else {}),
                    "in_paper": entry.in_paper,
                    "paper": dict(entry.group.paper),
                }
                for entry in chosen
            ]
        )
        return
    numbers = ("k1", "k2", "train", "valid", "test")
    shown = table("benchmark", "graph", "pattern or rules", *numbers, numbers=numbers)
    for entry in chosen:
        group = entry.group
        sizes = [f"{group.paper[s]:,}" for s in ("train", "valid", "test")]
        made_of = group.pattern or group.rules or ""
        shown.add_row(entry.name, group.kg, made_of, str(group.k1), f"{group.k2:,}", *sizes)
    console().print(shown)
    paper, random = (sum(e.in_paper for e in chosen), sum(e.method == "rc" for e in chosen))
    others = len(chosen) - paper - random
    console().print(
        f"{counted(paper, 'benchmark')} of the paper"
        + (f", and {random} with random corruption that it compares with them" if random else "")
        + (f", and {others} with near misses that it does not have" if others else "")
    )


@app.command("build", epilog="Example:  loginfer suite build --only 'WN-*' --out suite")
def build_suite(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the benchmarks' folders.")],
    only: OnlyOption = None,
    protocol: ProtocolOption = None,
    seed: SeedOption = None,
    recipe: RecipeOption = None,
    max_shortcut: MaxShortcutOption = None,
    strict: StrictOption = False,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Processes; by default one per core.", min=1)] = None,
    engine: EngineOption = EngineName.native,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Build the benchmarks of the paper; those that are there already are kept, so it can be resumed."""
    from loginfer.benchmark.construction import suite
    from loginfer.benchmark.folder.folder import check_output

    check_gate(max_shortcut, strict)
    chosen = suite.select(only or ())
    settings = recipe_settings(recipe, protocol=protocol, seed=seed)
    for key in settings.values:
        if key not in GENERAL:
            raise InputError(
                f"`{key}` is fixed by the suite",
                where=settings.where,
                hint=f"a recipe for the suite may set {', '.join(GENERAL)}",
            )
    for entry in chosen:
        entry.recipe(settings.values)  # a wrong setting is told before any work
    missing = next((entry.name for entry in chosen if not (out / entry.name).exists()), None)
    if missing:
        check_output(out / missing)
    done = 0

    def report(built: suite.Built) -> None:
        nonlocal done
        done += 1
        note(f"[{done}/{len(chosen)}] {built.name} {built.state}{': ' + built.error if built.error else ''}")
        for warning in built.warnings:
            note(f"warning: {built.name}, {warning}")

    results = suite.build_suite(
        out,
        chosen,
        settings=settings.values,
        engine=engine.value,
        jobs=jobs or os.cpu_count() or 1,
        force=force,
        max_shortcut=max_shortcut,
        strict=strict,
        report=report,
    )
    suite.write_summary(out, results)
    rows = suite.summary(results)
    if json:
        print_json(rows)
    else:
        _print_summary(rows)
        note(f"this summary is in {out / 'SUITE.md'}")
    if any(built.state == "failed" for built in results):
        raise typer.Exit(1)


def _print_summary(rows: list[dict[str, Any]]) -> None:
    sizes = ("train", "valid", "test")
    shown = table("benchmark", "rules", *sizes, "paper", "difference", numbers=("rules", *sizes, "paper", "difference"))
    reasons: dict[str, str] = {}
    for row in rows:
        paper = " / ".join(f"{row['paper'][s]:,}" for s in sizes)
        if not row["built"]:
            shown.add_row(row["name"], "failed", "", "", "", paper, "")
            continue
        ours = [f"{row['positives'][s]:,}" for s in sizes]
        shown.add_row(row["name"], str(row["rules"]), *ours, paper, f"{100 * row['difference']:+.1f} %")
        if row["reason"]:
            reasons.setdefault(row["name"].rsplit("-", 1)[0], row["reason"])
    console().print(shown)
    for name, reason in reasons.items():
        console().print(f"{name}: {reason}")
