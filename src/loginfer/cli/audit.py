"""`loginfer audit` checks a benchmark's folder, whoever made it; `loginfer explain` says why a triple is in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.benchmark.recipe import all_settings
from loginfer.cli import common
from loginfer.cli.common import counted, print_json, print_table, progress_bar, say, shown
from loginfer.errors import LogInferError

if TYPE_CHECKING:
    from loginfer.benchmark import Audit


FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A benchmark's folder, ours or not.")]

# How the severities are shown.
_MARKS = {"error": "ERROR", "warning": "warning", "note": "note"}


@common.gather("engine", common.ENGINE_OPTIONS_WITHOUT_MEMORY, common.engine_choice)
def audit(
    *,
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Benchmarks' folders, ours or not; several: a line each.")
    ],
    closure: Annotated[
        bool, typer.Option("--closure/--one-step", help="Also look for negatives that follow in more than one step.")
    ] = True,
    recipe: Annotated[
        Path | None, typer.Option("--recipe", help="A TOML file with settings that the manifest must agree with.")
    ] = None,
    max_shortcut: common.MaxShortcutOption = None,
    strict: common.StrictOption = False,
    save: Annotated[
        bool, typer.Option("--save", help="Keep the result as audit.json in the folder, for reports.")
    ] = False,
    engine: common.EngineChoice,
    full_names: common.FullNamesOption = False,
    json: common.JsonOption = False,
) -> None:
    """Check that a benchmark is what it should be, and how far shortcuts get on it.

    Sums and sizes, leaks, derivations of every conclusion, negatives that are true, coverage of undesired
    rules; how far one gets without knowing a rule, beside the oracle. Exit code 1 when something is wrong. With
    --recipe, the manifest must also agree with the settings of that file. -v adds examples for notes and the checks
    that passed, and of several folders all details.
    """
    from loginfer.benchmark import audit as audit_benchmark
    from loginfer.benchmark.auditing.audit import file_sums, save_audit

    common.check_gate(max_shortcut, strict)
    settings = all_settings(recipe, {}) if recipe else {}

    def audited(folder: Path) -> Audit:
        sums = file_sums(folder) if save else {}
        with progress_bar() as progress:
            answer = audit_benchmark(
                folder, engine=engine.name, closure=closure, settings=settings, max_shortcut=max_shortcut,
                strict=strict, progress=progress,
            )  # fmt: skip
        if save:
            options = {"one-step": not closure, "recipe": recipe, "max-shortcut": max_shortcut}
            save_audit(answer, folder, sums, [name for name, value in options.items() if value])
        return answer

    with engine.running():
        code = _audit_several(folders, audited, json) if len(folders) > 1 else _audit_one(audited(folders[0]), json)
    if code:
        raise typer.Exit(code)


def _audit_one(answer: Audit, json: bool) -> int:
    """Show an audit; return the exit code."""
    if json:
        print_json(answer.as_dict())
    else:
        _print_findings(answer, common.verbose())
        _print_shortcuts(answer, common.verbose())
    return 0 if answer.ok else 1


def _audit_several(folders: Sequence[Path], audited: Callable[[Path], Audit], json: bool) -> int:
    """Audit folders one after the other, a line each as soon as it is done; return the exit code.

    It is 2 if a folder is no benchmark, else 1 if a check found something.
    """
    answers: list[dict[str, Any]] = []
    code, titles, names = 0, "  verdict  errors  warnings   oracle  best shortcut", list(map(str, folders))
    short_names = {folder.name for folder in folders}
    if max(map(len, names)) + len(titles) > common.console().width and len(short_names) == len(names):
        names = [folder.name for folder in folders]  # where they lie is too wide, and needs not be said
    width = max(map(len, names))
    if not json:
        say(f"{'folder':<{width}}{titles}")
    for folder, name in zip(folders, names, strict=True):
        try:
            answer = audited(folder)
        except LogInferError as error:
            code = 2
            answers.append({"folder": str(folder), "ok": None, "error": error.message, "hint": error.hint})
            line = f"error: {error.message}"
        else:
            code = max(code, 0 if answer.ok else 1)
            answers.append({"folder": str(folder), **answer.as_dict()})
            line = _audit_line(answer)
        if not json:
            say(f"{name:<{width}}  {line}", indent=width + 2)
            if common.verbose() and answers[-1]["ok"] is not None:
                _audit_one(answer, json)
    if json:
        print_json(answers)
    return code


def _audit_line(answer: Audit) -> str:
    """Return verdict, numbers of errors and warnings, the oracle at its worst, and the best shortcut by method."""
    from loginfer.benchmark.learned_shortcut import LEARNED

    errors, warnings = _severe(answer)
    oracle = [value for value in answer.accuracies().get("oracle", ()) if value is not None]
    # The learned shortcut, as everywhere; where it could not be fitted, the best of the others.
    accuracies = {
        method: {name: row["balanced_accuracy"] for name, row in shortcuts.items()}
        for method, shortcuts in answer.shortcuts.items()
        if shortcuts
    }
    best = {method: figures.get(LEARNED, max(figures.values())) for method, figures in accuracies.items()}
    texts = [f"{method} {_percent(accuracy)}" for method, accuracy in best.items()]
    verdict = "ok" if answer.ok else "not ok"
    share = _percent(min(oracle)) if oracle else "-"
    return f"{verdict:<7}  {errors:>6}  {warnings:>8}  {share:>7}  {', '.join(texts) or '-'}"


def _severe(answer: Audit) -> tuple[int, int]:
    """Return the numbers of errors and warnings."""
    severities = [finding.severity for finding in answer.findings]
    return severities.count("error"), severities.count("warning")


def _print_findings(answer: Audit, details: bool) -> None:
    lines = [f"{'passed':<8} {check}" for check in answer.passed] if details else []
    for finding in answer.findings:
        lines.append(f"{_MARKS[finding.severity]:<8} {finding.check}: {finding.message}")
        examples = finding.examples if details or finding.severity != "note" else ()
        lines += [f"           {example}" for example in examples if example.text != finding.message]
    for reason, checks in answer.skipped_by_reason().items():
        lines.append(f"{'skipped':<8} {', '.join(checks)}: {reason}")
    for line in common.sentences(lines):
        say(line, indent=9)
    errors, warnings = _severe(answer)
    verdict = "ok" if answer.ok else "not ok"
    say(
        f"{answer.name}: {verdict}; {counted(len(answer.passed), 'check')} passed, {counted(errors, 'error')}, "
        f"{counted(warnings, 'warning')}, {len(answer.skipped)} skipped"
    )


def _print_shortcuts(answer: Audit, details: bool) -> None:
    methods = list(answer.shortcuts)
    if not methods:
        return
    rows = []
    for name, row in answer.accuracies().items():
        turned = [method for method in methods if answer.shortcuts[method].get(name, {}).get("reversed")]
        where = "" if turned == methods else f"{', '.join(turned)} "
        rows.append((f"{name} ({where}reversed)" if turned else name, *map(_percent, row)))
    say("")
    print_table(("balanced accuracy on test", *methods), rows, numbers=methods)
    for method, shortcuts in answer.shortcuts.items():
        for name, figures in shortcuts.items():
            if name == "learned" or (details and figures["balanced_accuracy"] > 0.5):
                say(f"{method}, {name}: {_shortcut_text(figures)}")


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


@common.gather("engine", common.ENGINE_OPTIONS_WITHOUT_MEMORY, common.engine_choice)
def explain(
    *,
    folder: FolderArgument,
    subject: Annotated[str, typer.Argument(metavar="S", help="Subject.")],
    relation: Annotated[str, typer.Argument(metavar="R", help="Relation.")],
    object_: Annotated[str, typer.Argument(metavar="O", help="Object.")],
    top: Annotated[int, typer.Option("--top", "-t", help="Witnesses to show for each rule.", min=1)] = 1,
    engine: common.EngineChoice,
    full_names: common.FullNamesOption = False,
    json: common.JsonOption = False,
) -> None:
    """Say which set of a benchmark a triple is in, and why.

    For a positive: the rules that derive it, with premises. For a negative: the method that made it, and why
    it is not derivable. Rules are counted from 0, as in the benchmark's files. A name may be cut down to its
    last part or be given by its label where that is unambiguous, or in any form in which it is shown; one that
    begins with a dash comes behind --.
    """
    from loginfer.benchmark import explain_triple, load_benchmark

    benchmark = load_benchmark(folder)
    with engine.running():
        story = explain_triple(benchmark, (subject, relation, object_), top, engine=engine.name)
    if json:
        print_json(story.as_dict())
        return
    names = common.ShownNames(benchmark.graph)
    say(shown(story.triple, names))
    for line in story.lines():
        # A text that is a rule is of a class of its own.
        say(" " * (2 + line.indent) + "".join(p if type(p) is str else shown(p, names) for p in line.parts))
