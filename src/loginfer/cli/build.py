"""`loginfer build` makes a benchmark from a graph and patterns or rules, `loginfer suite` those of the paper.

The options of a recipe's settings are made from their declaration in `loginfer.benchmark.recipe`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.benchmark.negatives.methods import METHODS, NEAR_MISSES
from loginfer.benchmark.recipe import Recipe, read_settings, recipe_settings, refuse_unknown, settings_in_memory
from loginfer.cli.common import (
    ENGINE_OPTIONS,
    NATIVE,
    EngineChoice,
    EngineOption,
    ForceOption,
    JsonOption,
    MaxShortcutOption,
    StrictOption,
    check_gate,
    console,
    counted,
    engine_choice,
    gather,
    graph_to_build_from,
    note,
    print_json,
    progress_bar,
    table,
)
from loginfer.errors import InputError
from loginfer.settings import Setting, kinds

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark
    from loginfer.benchmark.construction.suite import SuiteResult
    from loginfer.benchmark.shortcut_gate import Exceeded
    from loginfer.progress import Progress

_SPLITS = ("train", "valid", "test")

# -- options that are settings of a recipe ----------------------------------------------------------


def _option_of(declared: Setting) -> Any:
    """Return the type and option by which the command line asks for a setting."""
    about: dict[str, Any] = {"help": declared.meaning, "metavar": declared.metavar, "show_default": False}
    if declared.name == "kg":
        return Annotated[str | None, typer.Argument(**about)]
    types = kinds(declared.type)
    number = next((kind for kind in (bool, int, float) if kind in types), None)
    kind: Any = list[str] if isinstance(declared.default, tuple) else number or str
    if declared.read is not None:
        kind = str
    flags = declared.flags or (f"--{declared.name.replace('_', '-')}",)
    return Annotated[kind | None, typer.Option(*flags, rich_help_panel=declared.panel, **about)]


def _settings_given(**values: Any) -> dict[str, Any]:
    """Return the settings that the command line gives."""
    declared = recipe_settings()
    chosen_values = {name: value for name, value in values.items() if value not in (None, [])}
    return {name: read(value) if (read := declared[name].read) else value for name, value in chosen_values.items()}


RECIPE_OPTIONS = {name: (_option_of(declared), None) for name, declared in recipe_settings().items()}
SUITE_OPTIONS = {
    name: (_option_of(replace(recipe_settings()[name], panel=None)), None) for name in ("protocol", "seed")
}

RecipeOption = Annotated[
    Path | None, typer.Option("--recipe", help="A TOML file with settings; options on the command line come before it.")
]


def all_settings(file: Path | None, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a recipe file with those given on the command line put over them."""
    values = read_settings(file) if file else {}
    refuse_unknown(values, where=str(file))
    for name, rival in (("patterns", "rules"), ("rules", "patterns")):
        if name in overrides and rival not in overrides:
            values.pop(rival, None)
    return {**values, **overrides}


# -- shortcuts that do too well ---------------------------------------------------------------------


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
        Whether to print JSON.
    match
        On which features near misses are alike to conclusions already.
    """
    for exceeded in above:
        note(f"error: {exceeded.message}")
    hint = f"`--negatives {NEAR_MISSES.name}` draws near misses, which are harder to tell from conclusions"
    if all(METHODS[exceeded.method].matchable for exceeded in above):
        hint = "`--match all` gives each conclusion a near miss that looks like it"
        if match:
            hint = (
                "choose other rules (`--select twins`), another seed or a higher limit: near misses are twins already"
            )
    note(f"nothing was written\n  hint: {hint}")
    if json:
        print_json({"path": None, **gate_answer(limit, above)})
    raise typer.Exit(1)


def gate_answer(limit: float | None, above: Sequence[Exceeded]) -> dict[str, Any]:
    """Return the answer as JSON values; empty without a limit."""
    if limit is None:
        return {}
    return {"max_shortcut": {"limit": limit, "exceeded": [exceeded.as_dict() for exceeded in above]}}


# -- one benchmark ----------------------------------------------------------------------------------


@gather("settings", RECIPE_OPTIONS, _settings_given)
@gather("engine", ENGINE_OPTIONS, engine_choice)
def build(
    *,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The benchmark's folder.")] = None,
    settings: dict[str, Any],
    recipe: RecipeOption = None,
    max_shortcut: MaxShortcutOption = None,
    strict: StrictOption = False,
    engine: EngineChoice,
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
    from loginfer.benchmark.folder.writing import check_graph, check_output

    if out is None:
        raise InputError("no folder to build in", hint="add --out FOLDER")
    check_gate(max_shortcut, strict)
    settings = all_settings(recipe, settings)
    if "kg" not in settings:
        raise InputError("no graph to build from", hint="name one, or give --recipe FILE")
    made_of = Recipe.from_dict(settings, where=str(recipe) if recipe else None)
    given_rules = check_recipe(made_of)
    check_output(out, force=force)
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(progress_bar())
        if progress:
            progress("reading the graph", 0, None)
        graph = stack.enter_context(graph_to_build_from(made_of.kg, engine, given_rules, made_of.type_predicate))
        check_graph(graph)
        loading = settings_in_memory(made_of) + ([] if max_shortcut is None else ["--max-shortcut"])
        if loading and not graph.in_memory:
            note(f"the whole graph comes into memory, for {', '.join(loading)}")
        benchmark = build_benchmark(made_of, graph, engine=engine.name, progress=progress, **engine.options)
        above = shortcuts_above(benchmark, max_shortcut, progress)
        if above and strict:
            stop_at_gate(above, max_shortcut, json, made_of.match)
        if progress:
            progress("writing", 0, None)
        manifest = write_benchmark(benchmark, out, force=force)
    for method, negative_set in benchmark.negatives.items():
        for remark in negative_set.notes:
            note(f"{method}: {remark}")
    for remark in benchmark.notes:
        note(remark)
    for exceeded in above:
        note(f"warning: {exceeded.message}")
    if json:
        print_json({"path": str(out), **manifest, **gate_answer(max_shortcut, above)})
    else:
        _print_figures(out, manifest, made_of)


def _print_figures(out: Path, manifest: Mapping[str, Any], recipe: Recipe) -> None:
    listing = table("", *_SPLITS, numbers=_SPLITS)
    rows = [("positives", manifest["positives"]), ("  of them conclusions", manifest["conclusions"])]
    rows += [(f"    at depth {depth}", sizes) for depth, sizes in manifest.get("depths", {}).items()]
    for method, counts in manifest["negatives"].items():
        rows.append((f"negatives {method}", {s: counts[s]["reached"] for s in _SPLITS}))
    for label, sizes in rows:
        listing.add_row(label, *(f"{sizes[s]:,}" for s in _SPLITS))
    plain = console()
    rules = counted(len(manifest["rules"]), "rule")
    plain.print(f"{manifest['name']}: {rules}, protocol {recipe.protocol}")
    plain.print(listing)
    for line in _variant_lines(manifest):
        plain.print(line)
    # Ready to be copied: neither a space nor a leading dash may be misunderstood.
    named = shlex.quote(f"./{out}" if str(out).startswith("-") else str(out))
    plain.print(f"written to {out}; check it with: loginfer audit {named}")


def _variant_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a manifest says about noise or a context graph."""
    if (noise := manifest.get("noise")) is not None:
        yield (
            f"noise: {noise['flipped-positive']:,} conclusions of train are negatives, "
            f"{noise['flipped-negative']:,} negatives positives, {noise['missing']:,} premises missing"
        )
        reached, total = noise["reached"]["test"], manifest["positives"]["test"]
        if total:
            yield f"from train as it is the rules themselves derive {reached / total:.1%} of test"
    if (sides := manifest.get("inductive")) is not None:
        yield (
            f"inductive: {sides['constants']['test']:,} constants of test, not among the "
            f"{sides['constants']['train']:,} of train; context graph of {sides['context']:,} triples"
        )


# -- the suite --------------------------------------------------------------------------------------

app = typer.Typer(help="The suite: all benchmarks of the paper.", no_args_is_help=True)

OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help="Only benchmarks whose name matches, e.g. 'WN-*' or 'FB-*-qg'; repeatable. '*-nm' and '*-nmm' "
        "bring near misses, plain and as twins, which the paper does not have.",
    ),
]

# What a recipe may say about the whole suite; the rest is the paper's.
GENERAL = ("protocol", "seed", "ratio", "min_new", "materialised")


@app.command("list", epilog="Example:  loginfer suite list --only 'FB-*'")
def list_suite(only: OnlyOption = None, json: JsonOption = False) -> None:
    """List the benchmarks of the suite with the paper's sizes."""
    from loginfer.benchmark.construction.suite import select

    entries = select(only or ())
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
                for entry in entries
            ]
        )
        return
    numbers = ("k1", "k2", "train", "valid", "test")
    listing = table("benchmark", "graph", "pattern or rules", *numbers, numbers=numbers)
    for entry in entries:
        group = entry.group
        sizes = [f"{group.paper[s]:,}" for s in _SPLITS]
        made_of = group.pattern or group.rules or ""
        listing.add_row(entry.name, group.kg, made_of, str(group.k1), f"{group.k2:,}", *sizes)
    console().print(listing)
    paper, random = (sum(e.in_paper for e in entries), sum(e.method in e.group.more for e in entries))
    near_misses = len(entries) - paper - random
    console().print(
        f"{counted(paper, 'benchmark')} of the paper"
        + (f", and {random} with random corruption that it compares with them" if random else "")
        + (f", and {near_misses} with near misses that it does not have" if near_misses else "")
    )


@app.command("build", epilog="Example:  loginfer suite build --only 'WN-*' --out suite")
@gather("settings", SUITE_OPTIONS, _settings_given)
def build_suite(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the benchmarks' folders.")],
    only: OnlyOption = None,
    settings: dict[str, Any],
    recipe: RecipeOption = None,
    max_shortcut: MaxShortcutOption = None,
    strict: StrictOption = False,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Processes; by default one per core.", min=1)] = None,
    engine: EngineOption = NATIVE,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Build the benchmarks of the paper; those that are there already are kept, so it can be resumed."""
    from loginfer.benchmark.construction import suite
    from loginfer.benchmark.folder.writing import check_output

    check_gate(max_shortcut, strict)
    entries = suite.select(only or ())
    settings = all_settings(recipe, settings)
    for key in settings:
        if key not in GENERAL:
            raise InputError(
                f"`{key}` is fixed by the suite",
                where=str(recipe) if recipe else None,
                hint=f"a recipe for the suite may set {', '.join(GENERAL)}",
            )
    for entry in entries:
        entry.recipe(settings)  # complains about a wrong setting before any work
    missing = next((entry.name for entry in entries if not (out / entry.name).exists()), None)
    if missing:
        check_output(out / missing)
    done = 0

    def report(built: SuiteResult) -> None:
        nonlocal done
        done += 1
        note(f"[{done}/{len(entries)}] {built.name} {built.state}{': ' + built.error if built.error else ''}")
        for warning in built.warnings:
            note(f"warning: {built.name}, {warning}")

    results = suite.build_suite(
        out,
        entries,
        settings=settings,
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
    sizes = _SPLITS
    numbers = ("rules", *sizes, "paper", "difference")
    listing = table("benchmark", *numbers, numbers=numbers)
    reasons: dict[str, str] = {}
    for row in rows:
        paper = " / ".join(f"{row['paper'][s]:,}" for s in sizes)
        if not row["built"]:
            listing.add_row(row["name"], "failed", "", "", "", paper, "")
            continue
        ours = [f"{row['positives'][s]:,}" for s in sizes]
        listing.add_row(row["name"], str(row["rules"]), *ours, paper, f"{100 * row['difference']:+.1f} %")
        if row["reason"]:
            reasons.setdefault(row["name"].rsplit("-", 1)[0], row["reason"])
    console().print(listing)
    for name, reason in reasons.items():
        console().print(f"{name}: {reason}")
