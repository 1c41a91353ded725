"""`loginfer rules analyse`: which rules of a benchmark mined rules entail, beside what chance would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli.common import (
    ForceOption,
    JsonOption,
    OnError,
    console,
    counted,
    note,
    print_json,
    progress_bar,
    table,
)
from loginfer.errors import InputError
from loginfer.files import refuse_to_overwrite

if TYPE_CHECKING:
    from loginfer.evaluation.rule_recovery_values import RecoveredRule, RecoveryFigures, RuleRecovery

__all__ = ["analyse"]


def analyse(
    benchmark: Annotated[
        Path, typer.Argument(metavar="BENCH", help="A benchmark's folder with rules.", show_default=False)
    ],
    rules: Annotated[
        str,
        typer.Option(
            "--rules", help="Mined rules: a file in any dialect, or the folder of a run of a rule miner."
        ),
    ],
    dialect: Annotated[
        str | None, typer.Option("--from", help="Dialect of the rule file; detected by default.")
    ] = None,
    on_error: Annotated[
        OnError, typer.Option("--on-error", help="Lines that are no rule: stop, or skip and count them.")
    ] = OnError.fail,
    seed: Annotated[int, typer.Option(help="Seed of the random heads.", min=0)] = 0,
    draws: Annotated[int, typer.Option(help="Random heads for each body.", min=1)] = 20,
    confidences: Annotated[
        str, typer.Option(help="Least confidences, for each of which the figures are given too.")
    ] = "0,0.05,0.1,0.5",
    top: Annotated[
        int, typer.Option("--top", "-n", help="Rules to show that were not found as they are.", min=0)
    ] = 10,
    short: Annotated[
        bool, typer.Option("--short", help="Names by their last part, behind the last / or #.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write what --json prints to this file.")
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Compare mined rules with a benchmark's: found, entailed or missed, and what was learned instead.

    ε_ent, ε_cont and the share of undesired sub-rules that are entailed, each beside its controls: a single
    step instead of the closure, the same bodies with random heads, and only rules of some confidence.
    """
    from loginfer.benchmark import load_benchmark
    from loginfer.evaluation.rule_recovering import rule_recovery
    from loginfer.evaluation.rule_recovery_reading import read_mined
    from loginfer.files import atomic_write

    levels = _levels(confidences)
    if out is not None:
        refuse_to_overwrite(out, force)
    known = load_benchmark(benchmark)
    if not known.rules:
        raise InputError(
            f"the rules of `{benchmark}` are not known: it has no rules.txt",
            hint="mined rules can be compared with the rules of a benchmark only",
        )
    mined, notes = read_mined(rules, known, dialect=dialect, on_error=on_error.value)
    for message in notes:
        note(message)
    with progress_bar() as progress:
        found = rule_recovery(
            known.program, mined, known.graph, seed=seed, draws=draws, confidences=levels, progress=progress
        )
    answer = {"benchmark": known.name, "rules_file": rules, **found.as_dict(), "notes": notes}
    if out is not None:
        from json import dumps

        with atomic_write(out, force=force) as stream:
            stream.write(dumps(answer, ensure_ascii=False, indent=2) + "\n")
    if json:
        print_json(answer)
        return
    _print_figures(found)
    _print_rules(found, top, short)


def _levels(text: str) -> list[float]:
    try:
        levels = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        levels = [-1.0]
    if not all(0 <= level <= 1 for level in levels):
        raise InputError(
            f"`{text}` is no list of confidences",
            hint="numbers from 0 to 1 with commas, such as 0,0.05,0.1,0.5",
        )
    return levels


# -- for people ------------------------------------------------------------------------------------


def _print_figures(found: RuleRecovery) -> None:
    names = ("confidence", "mined", "ε_ent", "one step", "random heads", "ε_cont", "R⁻ entailed")
    shown = table(*names, numbers=names[1:])
    for label, figures in (
        ("all", found.figures),
        *((f"≥ {f.confidence:g}", f) for f in found.by_confidence),
    ):
        shown.add_row(label, f"{figures.mined:,}", *_shares(figures))
    plain = console()
    plain.print(shown)
    plain.print(
        f"{counted(len(found.rules), 'benchmark rule')}; {counted(found.subrules, 'sub-rule')} in R⁻; "
        f"random heads: mean of {counted(found.draws, 'draw')}, seed {found.seed}"
    )
    if found.figures.undecided:
        plain.print(
            f"{counted(found.figures.undecided, 'question')} about entailment not decided, counted as not "
            "entailed: a rule has a negation, or too many constants of the rules take part"
        )


def _shares(figures: RecoveryFigures) -> list[str]:
    shares = (
        figures.eps_ent,
        figures.eps_ent_single_step,
        figures.eps_ent_random_heads,
        figures.eps_cont,
        figures.subrules_entailed,
    )
    return ["-" if share is None else f"{100 * share:.1f} %" for share in shares]


def _print_rules(found: RuleRecovery, top: int, short: bool) -> None:
    plain = console()
    counts = dict.fromkeys(("found", "entailed", "missed", "undecided"), 0)
    for rule in found.rules:
        counts[rule.status] += 1
    plain.print(", ".join(f"{count:,} {status}" for status, count in counts.items() if count))
    others = [rule for rule in found.rules if rule.status != "found"]
    # What was missed says more than what follows somehow.
    others.sort(key=lambda rule: rule.status == "entailed")
    for rule in others[:top]:
        plain.print()
        _print_rule(rule, short)
    if len(others) > top:
        note(f"{len(others) - top:,} more rules that were not found as they are: --top N, or --json for all")


def _print_rule(rule: RecoveredRule, short: bool) -> None:
    from loginfer.cli.mined import shortened, shortened_part

    plain = console()
    whole: Callable[[Any], str] = shortened if short else str
    part: Callable[[Any], str] = shortened_part if short else str
    plain.print(f"{rule.status:<9} {whole(rule.rule)}")
    if rule.status == "entailed" and not rule.derivation:
        plain.print("          its head is in its body")
    for number, step in enumerate(rule.derivation, 1):
        premises = ", ".join(map(part, step.premises)) or "nothing"
        plain.print(f"          {number}. from {premises} follows {part(step.conclusion)}")
        plain.print(f"             by {whole(step.rule)}")
    for shortcut in rule.shortcuts:
        plain.print(f"          undesired, but entailed too: {whole(shortcut)}")
