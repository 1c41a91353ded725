"""`loginfer rules`: rank bodies, apply rules, explain triples, convert and show rule files, compare mined rules."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loginfer.cli import common
from loginfer.cli.commands import CommandGroup, visible
from loginfer.cli.common import ShownNames, counted, note, print_json, print_table, progress_bar, say, shown
from loginfer.errors import InputError, UnknownNameError
from loginfer.files import refuse_to_overwrite
from loginfer.kg.formats.base import ReadOptions

if TYPE_CHECKING:
    import numpy.typing as npt

    from loginfer.engine.program import Explanation
    from loginfer.evaluation.rule_recovering import RecoveredRule, RecoveryFigures, RuleRecovery
    from loginfer.logic.rule import ScoredRule, ZeroRule
    from loginfer.systems.rules.listing import Listing

app = CommandGroup(help="Rules and patterns: rank their bodies, apply, explain, convert.")

# From so many rows on a table is printed line by line: to lay it out would take long.
LONG = 2000

RulesArgument = Annotated[
    str,
    typer.Argument(
        metavar="RULES", help="A rule file, a shipped rule set (lubm-107, lubm-19), or one rule as text with `->`."
    ),
]
DialectOption = Annotated[str | None, typer.Option("--from", help="Dialect of the rule file; detected by default.")]
BadLinesOption = Annotated[
    common.OnError, typer.Option("--on-error", help="Lines that are no rule: stop, or skip and count them.")
]


@app.command(epilog="Example:  loginfer rules rank wn18rr --pattern triangle --head drawn --out rules.txt")
@common.gather("engine", common.ENGINE_OPTIONS, common.engine_choice)
@common.gather_reading
def rank(
    *,
    kg: common.GraphArgument,
    pattern: Annotated[
        str, typer.Option("--pattern", "-p", help="A named pattern (see `loginfer rules patterns`) or its text.")
    ],
    top: Annotated[int, typer.Option("--top", "-t", help="How many bodies to show.", min=1)] = 20,
    all_: Annotated[bool, typer.Option("--all", help="The complete table, every body with a witness.")] = False,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            help="Make rules of the bodies: heads are drawn, best or typed, those that `build` gives them, or open, "
            "for you to fill in. `build --rules` takes the file of --out then.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="With --head: the seed of `build`.", min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also write the table as TSV: support, body; with --head a rule file."),
    ] = None,
    engine: common.EngineChoice,
    reading: ReadOptions,
    force: common.ForceOption = False,
    full_names: common.FullNamesOption = False,
    json: common.JsonOption = False,
) -> None:
    """Rank the bodies of a pattern by their support in a graph, exactly.

    With --head it is the way to rules that are selected by hand: take those that you do not want out of the file.
    """
    from loginfer.benchmark.construction.rules import HEADS, OPEN, with_heads
    from loginfer.engine import rank as rank_bodies
    from loginfer.files import atomic_write
    from loginfer.kg.vocabulary import middle
    from loginfer.logic import parse_pattern

    parsed_pattern = parse_pattern(pattern)
    if head is not None and head not in HEADS:
        raise UnknownNameError("way to find heads", head, HEADS, where="--head")
    if out is not None:
        refuse_to_overwrite(out, force)
    with common.open_rule_engine(kg, engine, reading) as opened, progress_bar() as progress:
        ranked = rank_bodies(opened, parsed_pattern, None if all_ else top, progress=progress)
        texts = [text for _, text, _ in ranked.bodies] if head is None else with_heads(opened, ranked, head, seed)
    lines = [(support, text) for (support, _, _), text in zip(ranked.bodies, texts, strict=True) if text]
    if out is not None:
        form = "{0}\t{1}\n" if head is None else "{1}  # support={0}\n"
        with atomic_write(out, force=force) as stream:
            stream.writelines(form.format(*line) for line in lines)
    if json:
        answer = ranked.as_dict()
        for body, text in zip(answer["bodies"], texts if head is not None else (), strict=False):
            body["rule"] = text or None
        print_json(answer)
        return
    fold = len(ranked) <= LONG
    longest = sys.maxsize if fold else common.console().width - len("1,000,000,000  ")
    shown_texts = common.rule_texts([text for _, text in lines], ShownNames(opened.graph))
    rows = [(f"{support:,}", middle(text, longest)) for (support, _), text in zip(lines, shown_texts, strict=True)]
    print_table(("support", "body" if head is None else "rule"), rows, ("support",), fold=fold)
    if headless := len(texts) - len(lines):
        verbs = "leaves no predicate for a head and is" if headless == 1 else "leave no predicate for a head and are"
        note(f"{counted(headless, 'body', 'bodies')} {verbs} left out")
    if head is not None and out is not None:
        todo = "fill in the heads, then" if head == OPEN and not parsed_pattern.head_in_body else "to build on them"
        note(f"rules written to {out}; {todo}: loginfer build {quote(kg)} --rules {quote(str(out))} --out FOLDER")
    if ranked.nonzero is None:
        note(f"the {len(ranked):,} bodies of `{parsed_pattern.name}` with the largest support; the rest was pruned")
    else:
        bodies, have = counted(ranked.nonzero, "body", "bodies"), "has" if ranked.nonzero == 1 else "have"
        note(f"{bodies} of `{parsed_pattern.name}` {have} a witness; {len(lines):,} shown")


@app.command(epilog="Example:  loginfer rules apply lubm lubm-107 --closure --out new.tsv --json")
@common.gather("engine", common.ENGINE_OPTIONS, common.engine_choice)
@common.gather_reading
def apply(
    *,
    kg: common.GraphArgument,
    rules: RulesArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write the new triples; the ending decides the format.")
    ] = None,
    closure: Annotated[bool, typer.Option("--closure", help="Apply until nothing new follows, not only once.")] = False,
    include_graph: Annotated[bool, typer.Option("--include-graph", help="Write the graph's own triples too.")] = False,
    max_rounds: Annotated[int | None, typer.Option(help="With --closure: stop after so many rounds.", min=1)] = None,
    max_triples: Annotated[
        int | None, typer.Option(help="With --closure: stop when more triples are derived.", min=1)
    ] = None,
    dialect: DialectOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="A name in a body that the graph does not have is an error.")
    ] = False,
    engine: common.EngineChoice,
    reading: ReadOptions,
    force: common.ForceOption = False,
    json: common.JsonOption = False,
) -> None:
    """Apply rules to a graph and write what they derive."""
    import numpy as np

    from loginfer.engine.program import one_step
    from loginfer.kg.load import check_output, write_graph
    from loginfer.logic.rule_files import SHIPPED

    if not closure and (max_rounds is not None or max_triples is not None):
        raise InputError("--max-rounds and --max-triples are for --closure", hint="add it, or leave the limit out")
    if include_graph and out is None:
        raise InputError("--include-graph is for --out", hint="say where to write with --out FILE")
    if out is not None:
        check_output(out, force=force)
    program = common.read_program(rules, dialect)
    answer: dict[str, Any] = {"rules": len(program)}
    with common.open_rule_engine(kg, engine, reading, program) as opened:
        graph = opened.graph
        common.check_names(graph, program, strict, shipped=rules in SHIPPED)
        with progress_bar() as progress:
            if closure:
                closed = opened.materialise(program, max_rounds=max_rounds, max_triples=max_triples, progress=progress)
                derived, answer["rounds"] = closed.triples, closed.rounds
            else:
                derived = one_step(opened, program, progress=progress)
                answer["rounds"] = int(len(derived) > 0)
        answer |= {"new": len(derived), "triples": len(graph) + len(derived)}
        if out is not None:
            if include_graph and not graph.in_memory:
                note("the whole graph comes into memory, for --include-graph")
            triples = np.vstack([graph.triples, derived]) if include_graph else derived
            write_graph(graph.with_triples(triples), out, force=force)
            answer["out"] = str(out)
    if json:
        print_json(answer)
        return
    rounds = counted(answer["rounds"], "round") if closure else "one step"
    destination = f", written to {out}" if out is not None else "; nothing written (give --out FILE)"
    derive = "1 rule derives" if len(program) == 1 else f"{len(program):,} rules derive"
    note(f"{derive} {counted(answer['new'], 'new triple')} in {rounds}{destination}")


@app.command(
    epilog="Example:  loginfer rules explain lubm lubm-107 http://www.Department0.University0.edu/Lecturer0 "
    "type Faculty"
)
@common.gather("engine", common.ENGINE_OPTIONS_WITHOUT_MEMORY, common.engine_choice)
@common.gather_reading
def explain(
    *,
    kg: common.GraphArgument,
    rules: RulesArgument,
    subject: Annotated[str, typer.Argument(metavar="S")],
    relation: Annotated[str, typer.Argument(metavar="R")],
    object_: Annotated[str, typer.Argument(metavar="O")],
    top: Annotated[int, typer.Option("--top", "-t", help="Witnesses to show for each rule.", min=1)] = 1,
    closure: Annotated[bool, typer.Option("--closure", help="Explain over several steps, down to the graph.")] = False,
    dialect: DialectOption = None,
    engine: common.EngineChoice,
    reading: ReadOptions,
    full_names: common.FullNamesOption = False,
    json: common.JsonOption = False,
) -> None:
    """Explain why a triple follows from a graph and rules: rule and witness, or that it does not.

    Names may be given by their last part (behind the last / or #) or label where that is unambiguous, and in any
    form in which they are shown.
    """
    import numpy as np

    from loginfer.engine.program import derivation
    from loginfer.engine.program import explain as explain_triple
    from loginfer.kg.graph import resolve_entity, resolve_relation
    from loginfer.logic.rule_files import SHIPPED

    program = common.read_program(rules, dialect)
    with common.open_rule_engine(kg, engine, reading, program) as opened:
        graph = opened.graph
        ids = (resolve_entity(graph, subject), resolve_relation(graph, relation), resolve_entity(graph, object_))
        common.check_names(graph, program, shipped=rules in SHIPPED)
        answer = explain_triple(opened, program, ids, limit=top)
        steps = [answer]
        depth = 1 if answer.reasons else None
        if closure and not answer.reasons and not answer.in_graph:
            with progress_bar() as progress:
                closed = opened.materialise(program, progress=progress)
            rows = np.flatnonzero((closed.triples == np.array(ids)).all(axis=1))
            if len(rows):
                depth = int(closed.depth[rows[0]])
                steps = derivation(graph, program, closed, ids, engine.name)
    follows = bool(steps[-1].reasons)
    if json:
        print_json(
            {
                "triple": list(answer.triple),
                "in_graph": answer.in_graph,
                "follows": follows,
                "depth": depth,
                "steps": [_step_as_json(step) for step in steps if step.reasons],
            }
        )
        return
    _print_explanation(answer, steps, follows, depth, closure, ShownNames(graph))


def _step_as_json(step: Explanation) -> dict[str, Any]:
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


def _print_explanation(
    answer: Explanation, steps: list[Explanation], follows: bool, depth: int | None, closure: bool, names: ShownNames
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
    names
        How names are shown.
    """
    say(shown(answer.triple, names))
    if answer.in_graph:
        say("  is in the graph")
    if not follows:
        # The materialisation does not derive the graph's own triples again.
        say("  does not follow " + ("from the rules" if closure and not answer.in_graph else "in one step"))
        if not closure and not answer.in_graph:
            note("hint: --closure looks further than one step")
        return
    if depth is not None and depth > 1:
        say(f"  follows in {depth} steps")
    for step in steps:
        for reason in step.reasons:
            if len(steps) > 1:
                say(shown(step.triple, names))
            say(f"  follows by rule {reason.place + 1}: {shown(reason.rule, names)}", indent=4)
            for premise in reason.premises:
                say(f"    because {shown(premise, names)}")
            for absent in reason.absent:
                say(f"    and there is no {shown(absent, names)}")


@app.command(epilog="Example:  loginfer rules convert lubm-107 --to rdfox --out lubm.dlog")
def convert(
    rules: RulesArgument,
    to: Annotated[str, typer.Option("--to", help="arrow, rdfox, nemo, anyburl, amie, datalog, sparql or sql.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write; by default to the screen.")] = None,
    dialect: DialectOption = None,
    on_error: BadLinesOption = common.OnError.fail,
    force: common.ForceOption = False,
    json: common.JsonOption = False,
) -> None:
    """Translate rules between dialects: LogInfer, RDFox, Nemo, AnyBURL, AMIE, Datalog, SPARQL, SQL."""
    from loginfer.logic import dialect_named
    from loginfer.logic.rule_files import format_rules, write_rules

    dialect_named(to)
    if out is not None:
        refuse_to_overwrite(out, force)
    file = common.read_source(rules, dialect, on_error)
    scored_rules = file.rules
    if file.skipped:
        note(f"skipped {counted(len(file.skipped), 'bad rule')}, e.g. {file.skipped[0]}")
    if file.zero:
        note(f"left out {counted(len(file.zero), 'rule')} without a body: they are no Datalog rules")
    if not scored_rules:
        raise InputError(f"`{rules}` holds no rule")
    if any(s.confidence is not None for s in scored_rules) and not dialect_named(to).keeps_scores:
        note(f"the dialect `{to}` has no place for supports and confidences: they are left out")
    text = format_rules(scored_rules, to)
    if out is not None:
        write_rules(scored_rules, out, dialect=to, force=force)
    if json:
        answer = {"rules": len(scored_rules), "from": file.dialect, "to": to}
        print_json(answer | ({"out": None, "text": text} if out is None else {"out": str(out)}))
    elif out is not None:
        note(f"{counted(len(scored_rules), 'rule')} written to {out}")
    else:
        if visible(text) != text:
            note("control characters are shown as escapes; with --out a file has them as they are")
        print(text, end="")


@app.command(epilog="Example:  loginfer rules patterns")
def patterns(json: common.JsonOption = False) -> None:
    """List the patterns that have a name: the seven of the paper, then some of later papers."""
    from loginfer.logic.patterns import all_patterns

    if json:
        print_json([{"name": p.name, "text": str(p)} for p in all_patterns()])
        return
    print_table(("name", "pattern"), [(pattern.name, str(pattern)) for pattern in all_patterns()])


@app.command(epilog="Example:  loginfer rules show rules.tsv --head nationality --top 10")
def show(
    rules: Annotated[str, typer.Argument(metavar="FILE", help="A rule file in any dialect, e.g. of `loginfer mine`.")],
    head: Annotated[str | None, typer.Option("--head", help="Only rules with this relation in the head.")] = None,
    relation: Annotated[
        str | None, typer.Option("--relation", help="Only rules with this relation in head or body.")
    ] = None,
    length: Annotated[
        int | None, typer.Option("--length", help="Only rules with so many atoms in the body.", min=0)
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option("--min-confidence", help="Only rules at least that sure.", min=0)
    ] = None,
    min_correct: Annotated[
        int | None, typer.Option("--min-correct", help="Only rules right at least that often.", min=0)
    ] = None,
    top: Annotated[int, typer.Option("--top", "-t", help="How many rules to show.", min=1)] = 50,
    sort: Annotated[
        str, typer.Option("--sort", help="confidence or correct, largest first; length, shortest first.")
    ] = "confidence",
    full_names: common.FullNamesOption = False,
    dialect: DialectOption = None,
    on_error: BadLinesOption = common.OnError.fail,
    json: common.JsonOption = False,
) -> None:
    """Show the rules of a file, best first.

    Relations may be given by their last part (behind the last / or #).
    """
    from loginfer.logic import dialect_named
    from loginfer.systems.rules.listing import SORTED_BY, list_rules

    order = next((name for name in SORTED_BY if name == sort.strip().casefold()), None)
    if order is None:
        raise UnknownNameError("order", sort, SORTED_BY, where="--sort")
    listing = list_rules(rules, on_error.value, dialect and dialect_named(dialect).name)
    rows = listing.select(
        head=head, relation=relation, length=length, min_confidence=min_confidence, min_correct=min_correct, sort=order
    )
    if listing.skipped:
        note(f"skipped {counted(len(listing.skipped), 'bad line')}, e.g. {listing.skipped[0]}")
    if json:
        print_json(_as_json(listing, rows, top))
        return
    fold = common.on_terminal(sys.stdout) and min(top, len(rows)) <= LONG
    print_rules([listing.rule(row) for row in rows[:top].tolist()], fold=fold)
    fitting = "" if len(rows) == len(listing) else f"; {len(rows):,} fit"
    note(f"{counted(len(listing), 'rule')} in {rules}{fitting}; {min(top, len(rows)):,} shown")


def _as_json(listing: Listing, rows: npt.NDArray[Any], top: int) -> dict[str, Any]:
    entries = []
    for row in rows[:top].tolist():
        rule = listing.rule(row)
        measures = {name: getattr(rule, name) for name in _MEASURES}
        place = {"length": int(listing.length[row]), "rule": str(rule), "line": int(listing.line[row])}
        entries.append(measures | place)
    return {
        "file": listing.path,
        "dialect": listing.dialect,
        "rules": len(listing),
        "fitting": len(rows),
        "skipped": len(listing.skipped),
        "shown": entries,
    }


# -- how rules are shown ---------------------------------------------------------------------------


def print_rules(rules: list[ScoredRule | ZeroRule], names: ShownNames | None = None, *, fold: bool = True) -> None:
    """Print a table of rules with what is known of them; what is for other programs is aligned, but not folded."""

    def text(rule: ScoredRule | ZeroRule, measure: str) -> str:
        value = getattr(rule, measure)
        return "" if value is None else format(value, _MEASURES[measure])

    columns = {measure: [text(rule, measure) for rule in rules] for measure in _MEASURES}
    known = {measure: column for measure, column in columns.items() if any(column)}
    rows = list(zip(*known.values(), common.rule_texts(rules, names), strict=True))
    print_table((*known, "rule"), rows, numbers=tuple(_MEASURES), fold=fold)


# What is known of a rule, and how it is written.
_MEASURES = {"predictions": ",", "correct": ",", "confidence": ".4f"}


@app.command(epilog="Example:  loginfer rules analyse LogInfer-FB-trian-qg --rules rules.tsv --json")
def analyse(
    benchmark: Annotated[Path, typer.Argument(metavar="BENCH", help="A benchmark's folder with rules.")],
    rules: Annotated[
        str,
        typer.Option(
            "--rules", "-r", help="Mined rules: a file in any dialect, or the folder of a run of a rule miner."
        ),
    ],
    dialect: DialectOption = None,
    on_error: BadLinesOption = common.OnError.fail,
    seed: Annotated[int, typer.Option(help="Seed of the random heads.", min=0)] = 0,
    draws: Annotated[int, typer.Option(help="Random heads for each body.", min=1)] = 20,
    confidences: Annotated[
        str, typer.Option(help="Least confidences, for each of which the figures are given too.")
    ] = "0,0.05,0.1,0.5",
    top: Annotated[int, typer.Option("--top", "-t", help="Rules to show that were not found as they are.", min=0)] = 10,
    full_names: common.FullNamesOption = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Also write what --json prints to this file.")] = None,
    force: common.ForceOption = False,
    json: common.JsonOption = False,
) -> None:
    """Compare mined rules with a benchmark's: found, entailed or missed, and what was learned instead.

    ε_ent, ε_cont and the share of undesired sub-rules that are entailed, each beside its controls: a single
    step instead of the closure, the same bodies with random heads, and only rules of some confidence.
    """
    from loginfer.benchmark import load_benchmark
    from loginfer.evaluation.rule_recovering import read_mined, rule_recovery
    from loginfer.files import write_text

    levels = _levels(confidences)
    if out is not None:
        refuse_to_overwrite(out, force)
    loaded = load_benchmark(benchmark)
    if not loaded.rules:
        hint = "mined rules can be compared with the rules of a benchmark only"
        raise InputError(f"the rules of `{benchmark}` are not known: it has no rules.txt", hint=hint)
    mined, notes = read_mined(rules, loaded, dialect=dialect, on_error=on_error.value)
    for message in notes:
        note(message)
    with progress_bar() as progress:
        recovery = rule_recovery(
            loaded.program, mined, loaded.graph, seed=seed, draws=draws, confidences=levels, progress=progress
        )
    answer = {"benchmark": loaded.name, "rules_file": rules, **recovery.as_dict(), "notes": notes}
    if out is not None:
        from json import dumps

        write_text(out, dumps(answer, ensure_ascii=False, indent=2) + "\n", force=force)
    if json:
        print_json(answer)
        return
    _print_figures(recovery)
    _print_rules(recovery, top, ShownNames(loaded.graph))


def _levels(text: str) -> list[float]:
    try:
        levels = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        levels = [-1.0]
    if not all(0 <= level <= 1 for level in levels):
        hint = "numbers from 0 to 1 with commas, such as 0,0.05,0.1,0.5"
        raise InputError(f"`{text}` is no list of confidences", hint=hint)
    return levels


def _print_figures(recovery: RuleRecovery) -> None:
    names = ("confidence", "mined", "ε_ent", "one step", "random heads", "ε_cont", "R⁻ entailed")
    rows = [("all", recovery.figures), *((f"≥ {f.confidence:g}", f) for f in recovery.by_confidence)]
    print_table(names, [(label, f"{f.mined:,}", *_shares(f)) for label, f in rows], numbers=names[1:])
    say(
        f"{counted(len(recovery.rules), 'benchmark rule')}; {counted(recovery.subrules, 'sub-rule')} in R⁻; "
        f"random heads: mean of {counted(recovery.draws, 'draw')}, seed {recovery.seed}"
    )
    if recovery.figures.undecided:
        say(
            f"{counted(recovery.figures.undecided, 'question')} about entailment not decided, counted as not "
            "entailed: a rule has a negation, or too many constants of the rules take part"
        )


def _shares(figures: RecoveryFigures) -> list[str]:
    names = ("eps_ent", "eps_ent_single_step", "eps_ent_random_heads", "eps_cont", "subrules_entailed")
    shares = (getattr(figures, name) for name in names)
    return ["-" if share is None else f"{100 * share:.1f} %" for share in shares]


def _print_rules(recovery: RuleRecovery, top: int, names: ShownNames) -> None:
    counts = dict.fromkeys(("found", "entailed", "missed", "undecided"), 0)
    for rule in recovery.rules:
        counts[rule.status] += 1
    say(", ".join(f"{count:,} {status}" for status, count in counts.items() if count))
    not_found = [rule for rule in recovery.rules if rule.status != "found"]
    # What was missed says more than what follows somehow.
    not_found.sort(key=lambda rule: rule.status == "entailed")
    for rule in not_found[:top]:
        say("")
        _print_rule(rule, lambda part: shown(part, names))
    if len(not_found) > top:
        note(f"{len(not_found) - top:,} more rules that were not found as they are: --top N, or --json for all")


def _print_rule(rule: RecoveredRule, text: Callable[[Any], str]) -> None:
    say(f"{rule.status:<9} {text(rule.rule)}", indent=12)
    if rule.status == "entailed" and not rule.derivation:
        say("          its head is in its body")
    for number, step in enumerate(rule.derivation, 1):
        premises = ", ".join(map(text, step.premises)) or "nothing"
        say(f"          {number}. from {premises} follows {text(step.conclusion)}", indent=3)
        say(f"             by {text(step.rule)}", indent=3)
    for shortcut in rule.shortcuts:
        say(f"          undesired, but entailed too: {text(shortcut)}")
