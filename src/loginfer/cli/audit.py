"""Loginfer audit, explain.

`loginfer audit`: check a benchmark's folder, whoever made it.

Explanations as people and programs read them.

`loginfer explain`: why a triple is in a benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.build import MaxShortcutOption, StrictOption, all_settings, check_gate
from loginfer.cli.common import (
    ENGINE_OPTIONS_WITHOUT_MEMORY,
    EngineChoice,
    JsonOption,
    console,
    counted,
    engine_choice,
    gather,
    note,
    print_json,
    progress_bar,
    resolve_entity,
    resolve_relation,
    table,
)

if TYPE_CHECKING:
    from loginfer.benchmark import Audit
    from loginfer.benchmark.explain import NegativeStory, TripleStory
    from loginfer.engine.program import Explanation


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
    engine: EngineChoice,
    json: JsonOption = False,
) -> None:
    """Check that a benchmark is what it should be, and how far shortcuts get on it.

    Sums and sizes, leaks, derivations of every conclusion, negatives that are true, coverage of undesired
    rules; shortcut baselines beside the oracle. Exit code 1 when something is wrong. With --recipe, the
    manifest must also agree with the settings of that file.
    """
    from loginfer.benchmark import audit as audit_benchmark

    check_gate(max_shortcut, strict)
    settings = all_settings(recipe, {}) if recipe else {}
    with engine.running(), progress_bar() as progress:
        found = audit_benchmark(
            folder, engine=engine.name, closure=closure, settings=settings, max_shortcut=max_shortcut,
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


def as_json(step: Explanation) -> dict[str, Any]:
    """Return one step of an explanation for a program."""
    return {
        "triple": list(step.triple),
        "reasons": [
            {
                "rule": str(reason.rule),
                "place": reason.place,
                "witness": {str(variable): value for variable, value in reason.witness.items()},
                "premises": [list(premise) for premise in reason.premises],
                **({"absent": [list(denied) for denied in reason.absent]} if reason.absent else {}),
            }
            for reason in step.reasons
        ],
    }


def print_explanation(
    answer: Explanation, steps: list[Explanation], follows: bool, depth: int | None, closure: bool
) -> None:
    """Print why a triple follows, or that it does not.

    Parameters
    ----------
    answer
        The triple, and why it follows in one step.
    steps
        The steps that lead to it, in the order of derivation.
    follows
        Whether it follows.
    depth
        In how many steps, if known.
    closure
        Whether more than one step was asked for.
    """
    print(triple_text(answer.triple))
    if answer.in_graph:
        print("  is in the graph")
    if not follows:
        # The materialisation does not derive the graph's own triples again.
        print("  does not follow " + ("from the rules" if closure and not answer.in_graph else "in one step"))
        if not closure and not answer.in_graph:
            note("hint: --closure looks further than one step")
        return
    if depth is not None and depth > 1:
        print(f"  follows in {depth} steps")
    for step in steps:
        for reason in step.reasons:
            if len(steps) > 1:
                print(f"{triple_text(step.triple)}")
            print(f"  follows by rule {reason.place + 1}: {short(str(reason.rule))}")
            for premise in reason.premises:
                print(f"    because {triple_text(premise)}")
            for absent in reason.absent:
                print(f"    and there is no {triple_text(absent)}")


def triple_text(triple: Sequence[str]) -> str:
    """Return a triple of names as text."""
    return f"({', '.join(short(name) for name in triple)})"


def short(text: str) -> str:
    """Leave out the namespace of IRIs that end in #name; the last part is enough to find them again."""
    return re.sub(r"<?https?://[^\s,()<>\"]*#([A-Za-z_][\w.-]*)>?", r"\1", text)


_SOURCES = {
    "relevance": "any constants of the rules' support, with the predicate of a head",
    "object": "a positive with a random object",
}


_NOISE = {
    "flipped-positive": "noise: a conclusion of train that was moved to the negatives",
    "flipped-negative": "noise: a negative of train that was moved to the positives",
    "missing": "noise: a premise that was removed from P_train, though it is true",
}


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
    for line in _lines(story):
        print(f"  {line}")


def _lines(story: TripleStory) -> Iterator[str]:
    if story.sets:
        sort = " (a conclusion that was distributed)" if story.conclusion else ""
        yield f"is in {', '.join(story.sets)}{sort}"
    else:
        yield "is in no set of this benchmark"
    if story.noise:
        yield _NOISE[story.noise]
    for negative in story.negatives:
        yield from _negative(negative)
    if story.depth and story.depth > 1:
        yield f"follows in {story.depth} steps"
    deep = story.depth is not None and story.depth > 1
    how = "in the last one" if deep else f"follows from {story.source}"
    for found in story.derivations:
        yield f"{how} by rule {found.rule}: {short(found.text)}"
        for premise in found.premises:
            missing = ", a premise missing from P_train" if premise in found.missing else ""
            yield f"  because {triple_text(premise)}{missing}"
        for absent in found.absent:
            yield f"  and there is no {triple_text(absent)}"
    if len(story.steps) > 1:
        yield "the whole derivation:"
        for step in story.steps:
            yield f"  {step.depth}. {triple_text(step.triple)} by rule {step.derivation.rule}"
            for premise in step.derivation.premises:
                yield f"       because {triple_text(premise)}"
    if story.reason:
        yield f"does not follow: {story.reason}"


def _negative(made: NegativeStory) -> Iterator[str]:
    begin = f"negative by {made.method} for {made.split}"
    if made.source == "sub-rule" and made.sub_rule is not None and made.rule is not None:
        yield f"{begin}: a conclusion of a sub-rule of rule {made.rule}, {short(made.sub_rule)}"
        for part in made.parts:
            if part.kept and part.absent:
                yield f"  and there is no {triple_text(part.absent)}"
            elif part.kept and part.triple:
                yield f"  because {triple_text(part.triple)}"
        for part in made.parts:
            if part.absent and part.triple:
                there = f"there is {triple_text(part.triple)}"
                yield f"  the rule also asks that there is no {triple_text(part.absent)}, but {there}"
            elif part.holds is None:
                yield f"  the rule also asks for {short(part.text)}"
            elif not part.holds:
                shown = triple_text(part.triple) if part.triple else short(part.text)
                yield f"  the rule also asks for {shown}, which does not hold"
    elif made.near_miss is not None:
        yield from _near_miss(begin, made)
    elif made.source == "position":
        what = {"subject": "the subject", "object": "the object", "either": "subject or object"}
        yield f"{begin}: a conclusion with {what.get(made.position or '', 'a constant')} replaced"
    elif made.source in _SOURCES:
        yield f"{begin}: {_SOURCES[made.source]}"
    else:
        yield f"{begin}; where it came from is not known"
    if made.replaced:
        yield f"  made from {triple_text(made.replaced)}"


def _near_miss(begin: str, made: NegativeStory) -> Iterator[str]:
    """Say what would have to be different for the rule to derive the triple."""
    yield f"{begin}: a near miss of rule {made.rule}"
    changed = next((part for part in made.parts if not part.kept), None)
    wanted = triple_text(changed.triple) if changed and changed.triple else short(made.edited or "")
    if changed and changed.absent:
        there = f"; there is {triple_text(changed.triple)}" if changed.triple else ""
        yield f"  would follow if the rule did not ask that there is no {triple_text(changed.absent)}{there}"
    elif made.put:
        yield f"  would follow if {triple_text(made.put)} were {wanted}"
    elif made.instead:
        yield f"  would follow if {short(made.instead)} were {wanted}"
    else:
        yield f"  would follow if the rule did not ask for {wanted}"
    for part in made.parts:
        if part.kept and part.absent:
            yield f"  since there is no {triple_text(part.absent)}"
        elif part.kept and part.triple:
            yield f"  since {triple_text(part.triple)}"
