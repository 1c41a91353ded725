"""`loginfer audit` checks a benchmark's folder, whoever made it; `loginfer explain` says why a triple is in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.build import all_settings
from loginfer.cli.common import (
    ENGINE_OPTIONS_WITHOUT_MEMORY,
    EngineChoice,
    JsonOption,
    MaxShortcutOption,
    StrictOption,
    check_gate,
    console,
    counted,
    engine_choice,
    gather,
    print_json,
    progress_bar,
    resolve_entity,
    resolve_relation,
    short,
    table,
    triple_text,
)

if TYPE_CHECKING:
    from loginfer.benchmark import Audit


FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="A benchmark's folder, ours or not.", show_default=False)
]

# How the severities are shown.
_MARKS = {"error": "ERROR", "warning": "warning", "note": "note"}


@gather("engine", ENGINE_OPTIONS_WITHOUT_MEMORY, engine_choice)
def audit(
    *,
    folder: FolderArgument,
    closure: Annotated[
        bool, typer.Option("--closure/--one-step", help="Also look for negatives that follow in more than one step.")
    ] = True,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Examples for notes too, and the checks that passed.")
    ] = False,
    recipe: Annotated[
        Path | None, typer.Option("--recipe", help="A TOML file with settings that the manifest must agree with.")
    ] = None,
    max_shortcut: MaxShortcutOption = None,
    strict: StrictOption = False,
    save: Annotated[
        bool, typer.Option("--save", help="Keep the result as audit.json in the folder, for reports.")
    ] = False,
    engine: EngineChoice,
    json: JsonOption = False,
) -> None:
    """Check that a benchmark is what it should be, and how far shortcuts get on it.

    Sums and sizes, leaks, derivations of every conclusion, negatives that are true, coverage of undesired
    rules; how far one gets without knowing a rule, beside the oracle. Exit code 1 when something is wrong. With
    --recipe, the manifest must also agree with the settings of that file.
    """
    from loginfer.benchmark import audit as audit_benchmark
    from loginfer.benchmark.auditing.audit import file_sums, save_audit

    check_gate(max_shortcut, strict)
    settings = all_settings(recipe, {}) if recipe else {}
    sums = file_sums(folder) if save else {}
    with engine.running(), progress_bar() as progress:
        answer = audit_benchmark(
            folder, engine=engine.name, closure=closure, settings=settings, max_shortcut=max_shortcut,
            strict=strict, progress=progress,
        )  # fmt: skip
    if save:
        options = {"one-step": not closure, "recipe": recipe, "max-shortcut": max_shortcut}
        save_audit(answer, folder, sums, [name for name, value in options.items() if value])
    if json:
        print_json(answer.as_dict())
    else:
        _print_findings(answer, verbose)
        _print_shortcuts(answer, verbose)
    if not answer.ok:
        raise typer.Exit(1)


def _print_findings(answer: Audit, verbose: bool) -> None:
    plain = console()
    if verbose:
        for check in answer.passed:
            plain.print(f"{'passed':<8} {check}")
    for finding in answer.findings:
        plain.print(f"{_MARKS[finding.severity]:<8} {finding.check}: {finding.message}")
        for example in finding.examples if verbose or finding.severity != "note" else ():
            if example.text != finding.message:
                plain.print(f"           {example}")
    for reason, checks in answer.skipped_by_reason().items():
        plain.print(f"{'skipped':<8} {', '.join(checks)}: {reason}")
    errors = sum(finding.severity == "error" for finding in answer.findings)
    warnings = sum(finding.severity == "warning" for finding in answer.findings)
    verdict = "ok" if answer.ok else "not ok"
    plain.print(
        f"{answer.name}: {verdict}; {counted(len(answer.passed), 'check')} passed, {counted(errors, 'error')}, "
        f"{counted(warnings, 'warning')}, {len(answer.skipped)} skipped"
    )


def _print_shortcuts(answer: Audit, verbose: bool) -> None:
    methods = list(answer.shortcuts)
    if not methods:
        return
    listing = table("balanced accuracy on test", *methods, numbers=tuple(methods))
    for name, row in answer.accuracies().items():
        listing.add_row(name, *map(_percent, row))
    console().print()
    console().print(listing)
    for method, shortcuts in answer.shortcuts.items():
        for name, figures in shortcuts.items():
            if name == "learned" or (verbose and figures["balanced_accuracy"] > 0.5):
                console().print(f"{method}, {name}: {_shortcut_text(figures)}")


def _shortcut_text(figures: Mapping[str, Any]) -> str:
    """Say how good a shortcut is, on which features and on which rules it rests; rules are numbered from 0."""
    low, high = figures["interval"]
    text = f"{_percent(figures['balanced_accuracy'])} ({100 * low:.1f} to {100 * high:.1f})"
    if features := list(figures.get("features", {}).items())[:3]:
        text += ", most by " + ", ".join(f"{name} ({_percent(value['share'])})" for name, value in features)
    if rules := figures.get("rules"):
        text += ", most for " + ", ".join(f"rule {r['rule']} ({_percent(r['accuracy'])})" for r in rules)
    return text


def _percent(accuracy: float | None) -> str:
    return "-" if accuracy is None else f"{100 * accuracy:.1f} %"


@gather("engine", ENGINE_OPTIONS_WITHOUT_MEMORY, engine_choice)
def explain(
    *,
    folder: FolderArgument,
    subject: Annotated[str, typer.Argument(metavar="S", help="Subject.", show_default=False)],
    relation: Annotated[str, typer.Argument(metavar="R", help="Relation.", show_default=False)],
    object_: Annotated[str, typer.Argument(metavar="O", help="Object.", show_default=False)],
    limit: Annotated[int, typer.Option("--limit", help="Witnesses per rule.", min=1)] = 1,
    engine: EngineChoice,
    json: JsonOption = False,
) -> None:
    """Say which set of a benchmark a triple is in, and why.

    For a positive: the rules that derive it, with premises. For a negative: the method that made it, and why
    it is not derivable. Rules are counted from 0, as in the benchmark's files. A name may be cut down to its
    last part where that is unambiguous; one that begins with a dash comes behind --.
    """
    from loginfer.benchmark import explain_triple, load_benchmark

    benchmark = load_benchmark(folder)
    graph = benchmark.graph
    triple = (resolve_entity(graph, subject), resolve_relation(graph, relation), resolve_entity(graph, object_))
    with engine.running():
        story = explain_triple(benchmark, triple, limit, engine=engine.name)
    if json:
        print_json(story.as_dict())
        return
    print(triple_text(story.triple))
    for line in story.lines():
        print(
            " " * (2 + line.indent) + "".join(triple_text(p) if isinstance(p, tuple) else short(p) for p in line.parts)
        )
