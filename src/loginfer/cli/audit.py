"""`loginfer audit`: check a benchmark's folder, whoever made it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.build import recipe_settings
from loginfer.cli.common import (
    JsonOption,
    console,
    counted,
    print_json,
    progress_bar,
    table,
)
from loginfer.cli.engines import (
    EngineName,
    EngineOption,
    MasterOption,
    ScratchOption,
    SparkConfOption,
    engine_options,
    engine_running,
)
from loginfer.cli.gate import MaxShortcutOption, StrictOption, check_gate

if TYPE_CHECKING:
    from loginfer.benchmark import Audit

__all__ = ["FolderArgument", "audit"]

FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="A benchmark's folder, ours or not.", show_default=False)
]

# How the severities are shown.
_MARKS = {"error": "ERROR", "warning": "warning", "note": "note"}


def audit(
    folder: FolderArgument,
    closure: Annotated[
        bool,
        typer.Option(
            "--closure/--one-step", help="Also look for negatives that follow in more than one step."
        ),
    ] = True,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Examples for notes too, and the checks that passed.")
    ] = False,
    recipe: Annotated[
        Path | None,
        typer.Option("--recipe", help="A TOML file with settings that the manifest must agree with."),
    ] = None,
    max_shortcut: MaxShortcutOption = None,
    strict: StrictOption = False,
    engine: EngineOption = EngineName.native,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
    scratch: ScratchOption = None,
    json: JsonOption = False,
) -> None:
    """Check that a benchmark is what it should be, and how far shortcuts get on it.

    Sums and sizes, leaks, derivations of every conclusion, negatives that are true, coverage of undesired
    rules; shortcut baselines beside the oracle. Exit code 1 when something is wrong. With --recipe, the
    manifest must also agree with the settings of that file.
    """
    from loginfer.benchmark import audit as audit_benchmark

    check_gate(max_shortcut, strict)
    settings = recipe_settings(recipe).values if recipe else {}
    options = engine_options(engine, None, master, spark_conf, scratch)
    with engine_running(engine, options), progress_bar() as progress:
        found = audit_benchmark(
            folder, engine=engine.value, closure=closure, settings=settings, max_shortcut=max_shortcut,
            strict=strict, progress=progress,
        )  # fmt: skip
    if json:
        print_json(found.as_dict())
    else:
        _print_findings(found, verbose)
        _print_shortcuts(found)
        if verbose:
            _print_rules_of_shortcuts(found)
    if not found.ok:
        raise typer.Exit(1)


def _print_findings(found: Audit, verbose: bool) -> None:
    plain = console()
    if verbose:
        for check in found.passed:
            plain.print(f"{'passed':<8} {check}")
    for finding in found.findings:
        plain.print(f"{_MARKS[finding.severity]:<8} {finding.check}: {finding.message}")
        for example in finding.examples if verbose or finding.severity != "note" else ():
            if example.text != finding.message:
                plain.print(f"           {example}")
    reasons: dict[str, list[str]] = {}
    for check, why in found.skipped.items():
        reasons.setdefault(why, []).append(check)
    for why, checks in reasons.items():
        plain.print(f"{'skipped':<8} {', '.join(checks)}: {why}")
    errors = sum(finding.severity == "error" for finding in found.findings)
    warnings = sum(finding.severity == "warning" for finding in found.findings)
    verdict = "ok" if found.ok else "not ok"
    plain.print(
        f"{found.name}: {verdict}; {counted(len(found.passed), 'check')} passed, {counted(errors, 'error')}, "
        f"{counted(warnings, 'warning')}, {len(found.skipped)} skipped"
    )


def _print_shortcuts(found: Audit) -> None:
    methods = list(found.shortcuts)
    if not methods:
        return
    baselines = list(dict.fromkeys(name for method in methods for name in found.shortcuts[method]))
    shown = table("accuracy on test", *methods, numbers=tuple(methods))
    for baseline in baselines:
        shown.add_row(baseline, *(_percent(found.shortcuts[method].get(baseline)) for method in methods))
    if found.oracle:
        shown.add_row("oracle", *(_percent(found.oracle.get(method)) for method in methods))
    console().print()
    console().print(shown)


def _print_rules_of_shortcuts(found: Audit) -> None:
    """Say on which rules each shortcut rests that is better than chance; numbered from 0, as in rules.txt."""
    for method, baselines in found.shortcuts.items():
        for name, outcome in baselines.items():
            if outcome.get("rules") and outcome["accuracy"] > 0.5:
                rules = ", ".join(f"rule {r['rule']} ({_percent(r)})" for r in outcome["rules"])
                console().print(f"{method}, {name}: {_percent(outcome)}, most for {rules}")


def _percent(outcome: dict[str, Any] | None) -> str:
    accuracy = None if outcome is None else outcome.get("accuracy")
    return "-" if accuracy is None else f"{100 * accuracy:.1f} %"
