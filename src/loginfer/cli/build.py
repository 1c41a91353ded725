"""`loginfer build` makes a benchmark from a graph and patterns or rules, `loginfer suite` those of the paper.

The options of a recipe's settings are made from their declaration in `loginfer.benchmark.recipe`.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.benchmark.negatives.methods import METHODS, NEAR_MISSES
from loginfer.benchmark.recipe import Recipe, all_settings, read_settings, recipe_settings, settings_in_memory
from loginfer.cli import common
from loginfer.cli.commands import CommandGroup
from loginfer.cli.common import counted, note, print_json, print_table, progress_bar, say
from loginfer.errors import InputError, LogInferError
from loginfer.progress import report_progress

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark
    from loginfer.benchmark.construction.suite import SuiteResult
    from loginfer.benchmark.shortcut_gate import Exceeded
    from loginfer.progress import Progress

_SPLITS = ("train", "valid", "test")

# -- options that are settings of a recipe ----------------------------------------------------------


def _recipe_settings(**values: Any) -> dict[str, Any]:
    return common.option_values(recipe_settings(), values)


@contextlib.contextmanager
def spoken_in_options(file: Path | None) -> Iterator[None]:
    """Let errors name settings as options, as `--min-new` for `min_new`, unless a recipe's file gives them."""
    keys = set(read_settings(file)) if file else set()
    try:
        yield
    except LogInferError as error:
        for name, declared in recipe_settings().items():
            if name not in keys and name != "kg":
                error.message = _with_option(error.message, name, common.flags_of(declared)[0])
                error.hint = error.hint and _with_option(error.hint, name, common.flags_of(declared)[0])
        raise


# Where a name in backticks is that of a setting, and not of a relation.
_NAMED = f"(?:^|{'|'.join(f'(?<={word} )' for word in ('and', 'or', 'give', 'out', 'without', 'raise', 'value of'))})"


def _with_option(text: str, name: str, flag: str) -> str:
    """Put an option in the place of `name = value`, and of a setting's name."""
    text = re.sub(rf'(\bset )?`?\b{name} = (?:true|"?([^"`,; ]+)"?)`?', partial(_option, flag), text)
    plain = rf"|(\bset )?`?(?<![-\w]){name}\b`?" if "_" in name or name == "k1" else "|(?!)()"
    return re.sub(rf"{_NAMED}`{name}`{plain}", partial(_option, flag), text)


def _option(flag: str, match: re.Match[str]) -> str:
    """Return the option for a match: what is set in a file is added on the command line."""
    value = match[2] if match.re.groups > 1 else None
    return f"{'add ' if match[1] else ''}`{flag}{f' {value}' if value else ''}`"


RECIPE_OPTIONS = {name: (common.option_of(declared), None) for name, declared in recipe_settings().items()}
SUITE_OPTIONS = {
    name: (common.option_of(replace(recipe_settings()[name], panel=None)), None) for name in ("protocol", "seed")
}

RecipeOption = Annotated[
    Path | None, typer.Option("--recipe", help="A TOML file with settings; options come before it.")
]


# -- shortcuts that do too well ---------------------------------------------------------------------


def shortcuts_above(benchmark: Benchmark, limit: float | None, progress: Progress | None = None) -> list[Exceeded]:
    """Return the shortcuts above the limit; none without a limit."""
    from loginfer.benchmark.shortcut_gate import gate

    if limit is None:
        return []
    report_progress(progress, "measuring shortcuts", 0, None)
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


@common.gather("settings", RECIPE_OPTIONS, _recipe_settings)
@common.gather("unpacking", common.UNPACKING_OPTIONS, dict)
@common.gather("engine", common.ENGINE_OPTIONS, common.engine_choice)
def build(
    *,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The benchmark's folder.")] = None,
    settings: dict[str, Any],
    unpacking: dict[str, Any],
    recipe: RecipeOption = None,
    max_shortcut: common.MaxShortcutOption = None,
    strict: common.StrictOption = False,
    engine: common.EngineChoice,
    force: common.ForceOption = False,
    full_names: common.FullNamesOption = False,
    json: common.JsonOption = False,
) -> None:
    """Build a benchmark: rules with the largest support, their conclusions, negatives.

    The folder holds train, valid and test with negatives, the rules, where each triple came from, and a card.
    The same recipe gives the same bytes.
    """
    from loginfer.benchmark import build as build_benchmark
    from loginfer.benchmark import write_benchmark
    from loginfer.benchmark.construction.pipeline import check_recipe
    from loginfer.benchmark.folder.writing import check_graph, check_output

    if out is None:
        raise InputError("no folder to build in", hint="add --out FOLDER")
    common.check_gate(max_shortcut, strict)
    settings = all_settings(recipe, settings)
    if "kg" not in settings:
        raise InputError("no graph to build from", hint="name one, or give --recipe FILE")
    check_output(out, force=force)
    with contextlib.ExitStack() as stack:
        stack.enter_context(spoken_in_options(recipe))
        made_of = Recipe.from_dict(settings, where=str(recipe) if recipe else None)
        given_rules = check_recipe(made_of)
        progress = stack.enter_context(progress_bar())
        report_progress(progress, "reading the graph", 0, None)
        options = replace(made_of.reading, **unpacking)
        graph = stack.enter_context(common.graph_to_build_from(made_of.kg, engine, options, given_rules))
        check_graph(graph)
        loading = settings_in_memory(made_of) + ([] if max_shortcut is None else ["--max-shortcut"])
        if loading and not graph.in_memory:
            note(f"the whole graph comes into memory, for {', '.join(loading)}")
        benchmark = build_benchmark(made_of, graph, engine=engine.name, progress=progress, **engine.options)
        above = shortcuts_above(benchmark, max_shortcut, progress)
        if above and strict:
            stop_at_gate(above, max_shortcut, json, made_of.match)
        report_progress(progress, "writing", 0, None)
        manifest = write_benchmark(benchmark, out, force=force)
    remarks = [f"{method}: {remark}" for method, made in benchmark.negatives.items() for remark in made.notes]
    remarks += [*benchmark.notes, *(f"warning: {exceeded.message}" for exceeded in above)]
    for remark in common.sentences(remarks, graph.labels):
        note(remark)
    if json:
        print_json({"path": str(out), **manifest, **gate_answer(max_shortcut, above)})
    else:
        _print_figures(out, manifest, made_of)


def _print_figures(out: Path, manifest: Mapping[str, Any], recipe: Recipe) -> None:
    rows = [("positives", manifest["positives"]), ("  of them conclusions", manifest["conclusions"])]
    rows += [(f"    at depth {depth}", sizes) for depth, sizes in manifest.get("depths", {}).items()]
    for method, counts in manifest["negatives"].items():
        rows.append((f"negatives {method}", {s: counts[s]["reached"] for s in _SPLITS}))
    rules = counted(len(manifest["rules"]), "rule")
    say(f"{manifest['name']}: {rules}, protocol {recipe.protocol}")
    print_table(("", *_SPLITS), [(label, *(f"{sizes[s]:,}" for s in _SPLITS)) for label, sizes in rows], _SPLITS)
    for line in _variant_lines(manifest):
        say(line)
    # Ready to be copied: neither a space nor a leading dash may be misunderstood.
    named = shlex.quote(f"./{out}" if str(out).startswith("-") else str(out))
    say(f"written to {out}; check it with: loginfer audit {named}")


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

app = CommandGroup(help="The suite: all benchmarks of the paper.")

OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help="Only benchmarks whose name matches, e.g. 'WN-*' or 'FB-*-qg'; repeatable. '*-nm' and '*-nmm' "
        "bring near misses, plain and as twins, which the paper does not have.",
    ),
]


@app.command("list", epilog="Example:  loginfer suite list --only 'FB-*'")
def list_suite(only: OnlyOption = None, json: common.JsonOption = False) -> None:
    """List the benchmarks of the suite with the paper's sizes."""
    from loginfer.benchmark.construction.suite import select

    entries = select(only or ())
    if json:
        answer = []
        for entry in entries:
            about = {key: getattr(entry.group, key) for key in ("kg", "pattern", "rules", "k1", "k2")}
            match = {"match": list(entry.match)} if entry.match else {}
            printed = {"in_paper": entry.in_paper, "paper": dict(entry.group.paper)}
            answer.append({"name": entry.name, **about, "negatives": entry.method, **match, **printed})
        print_json(answer)
        return
    numbers = ("k1", "k2", "train", "valid", "test")
    rows = []
    for entry in entries:
        group = entry.group
        sizes = [f"{group.paper[s]:,}" for s in _SPLITS]
        made_of = group.pattern or group.rules or ""
        rows.append((entry.name, group.kg, made_of, str(group.k1), f"{group.k2:,}", *sizes))
    print_table(("benchmark", "graph", "pattern or rules", *numbers), rows, numbers=numbers)
    paper, random = (sum(e.in_paper for e in entries), sum(e.method in e.group.more for e in entries))
    near_misses = len(entries) - paper - random
    say(
        f"{counted(paper, 'benchmark')} of the paper"
        + (f", and {random} with random corruption that it compares with them" if random else "")
        + (f", and {near_misses} with near misses that it does not have" if near_misses else "")
    )


@app.command("build", epilog="Example:  loginfer suite build --only 'WN-*' --out suite")
@common.gather("settings", SUITE_OPTIONS, _recipe_settings)
def build_suite(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the benchmarks' folders.")],
    only: OnlyOption = None,
    settings: dict[str, Any],
    recipe: RecipeOption = None,
    max_shortcut: common.MaxShortcutOption = None,
    strict: common.StrictOption = False,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Processes; by default one per core.", min=1)] = None,
    engine: common.EngineOption = common.NATIVE,
    force: common.ForceOption = False,
    json: common.JsonOption = False,
) -> None:
    """Build the benchmarks of the paper; those that are there already are kept, so it can be resumed."""
    from loginfer.benchmark.construction import suite

    common.check_gate(max_shortcut, strict)
    settings = all_settings(recipe, settings)

    def tell(built: SuiteResult, done: int, total: int) -> None:
        note(f"[{done}/{total}] {built.name} {built.state}{': ' + built.error if built.error else ''}")
        for warning in built.warnings:
            note(f"warning: {built.name}, {warning}")

    with spoken_in_options(recipe):
        built = suite.suite(
            out, only or (), engine=engine.value, jobs=jobs, force=force, max_shortcut=max_shortcut, strict=strict,
            tell=tell, **settings,
        )  # fmt: skip
    rows = built.details["benchmarks"]
    if json:
        print_json(rows)
    else:
        _print_summary(rows)
        note(f"this summary is in {out / 'SUITE.md'}")
    if any(state == "failed" for _, state, *_ in built.values):
        raise typer.Exit(1)


def _print_summary(rows: list[dict[str, Any]]) -> None:
    sizes = _SPLITS
    numbers = ("rules", *sizes, "paper", "difference")
    cells: list[tuple[str, ...]] = []
    reasons: dict[str, str] = {}
    for row in rows:
        paper = " / ".join(f"{row['paper'][s]:,}" for s in sizes)
        if not row["built"]:
            cells.append((row["name"], "failed", "", "", "", paper, ""))
            continue
        ours = [f"{row['positives'][s]:,}" for s in sizes]
        cells.append((row["name"], str(row["rules"]), *ours, paper, f"{100 * row['difference']:+.1f} %"))
        if row["reason"]:
            reasons.setdefault(row["name"].rsplit("-", 1)[0], row["reason"])
    print_table(("benchmark", *numbers), cells, numbers=numbers)
    for name, reason in reasons.items():
        say(f"{name}: {reason}")
