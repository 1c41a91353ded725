"""`loginfer suite`: the 37 benchmarks of the paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from loginfer.cli.build import ProtocolOption, RecipeOption, SeedOption, recipe_settings
from loginfer.cli.common import (
    ForceOption,
    JsonOption,
    console,
    counted,
    note,
    print_json,
    table,
)
from loginfer.cli.engines import (
    EngineName,
    EngineOption,
)
from loginfer.cli.gate import MaxShortcutOption, StrictOption, check_gate
from loginfer.errors import InputError

__all__ = ["app"]

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
    from loginfer.benchmark.suite import select

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
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Processes; by default one per core.", min=1)
    ] = None,
    engine: EngineOption = EngineName.native,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Build the benchmarks of the paper; those that are there already are kept, so it can be resumed."""
    from loginfer.benchmark import suite
    from loginfer.benchmark.folder import check_output

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
    shown = table(
        "benchmark", "rules", *sizes, "paper", "difference", numbers=("rules", *sizes, "paper", "difference")
    )
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
