"""`loginfer rules`: rank bodies, apply rules, explain triples, convert rule files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from loginfer.cli.analyse import analyse
from loginfer.cli.common import (
    ForceOption,
    GraphArgument,
    JsonOption,
    OnError,
    TypePredicateOption,
    console,
    counted,
    note,
    print_json,
    progress_bar,
    resolve_entity,
    resolve_relation,
    table,
)
from loginfer.cli.engines import (
    EngineName,
    EngineOption,
    MasterOption,
    MemoryOption,
    ScratchOption,
    SparkConfOption,
    open_rule_engine,
)
from loginfer.cli.explanations import as_json, print_explanation
from loginfer.cli.mined import show
from loginfer.cli.programs import check_fixed_names, check_names, read_program, read_source
from loginfer.errors import InputError
from loginfer.files import refuse_to_overwrite

__all__ = ["app"]

app = typer.Typer(
    help="Rules and patterns: rank their bodies, apply, explain, convert.", no_args_is_help=True
)

# From so many rows on a table is printed line by line: to lay it out would take longer than to count it.
LONG = 2000

RulesArgument = Annotated[
    str,
    typer.Argument(
        metavar="RULES",
        help="A rule file, a shipped rule set (lubm-107, lubm-19), or one rule as text with `->`.",
        show_default=False,
    ),
]
DialectOption = Annotated[
    str | None, typer.Option("--from", help="Dialect of the rule file; detected by default.")
]


@app.command(epilog="Example:  loginfer rules rank fb15k-237 --pattern diamond --top 200 --json")
def rank(
    kg: GraphArgument,
    pattern: Annotated[
        str,
        typer.Option("--pattern", "-p", help="A named pattern (see `loginfer rules patterns`) or its text."),
    ],
    top: Annotated[int, typer.Option("--top", "-n", help="How many bodies to show.", min=1)] = 20,
    all_: Annotated[
        bool, typer.Option("--all", help="The complete table, every body with a witness.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write the table as TSV: support, body.")
    ] = None,
    engine: EngineOption = EngineName.native,
    memory_limit: MemoryOption = None,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
    scratch: ScratchOption = None,
    type_predicate: TypePredicateOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Rank the bodies of a pattern by their support in a graph, exactly."""
    from loginfer.engine.bodies import body_texts, predicate_names
    from loginfer.files import atomic_write
    from loginfer.logic import parse_pattern

    wanted = parse_pattern(pattern)
    if out is not None:
        refuse_to_overwrite(out, force)
    with open_rule_engine(
        kg,
        engine,
        type_predicate=type_predicate,
        memory_limit=memory_limit,
        master=master,
        spark_conf=spark_conf,
        scratch=scratch,
    ) as opened:
        graph = opened.graph
        check_fixed_names(wanted, graph)
        with progress_bar() as progress:
            ranked = opened.rank_bodies(wanted, None if all_ else top, progress=progress)
    texts = body_texts(ranked, graph)
    supports = ranked.support.tolist()
    if out is not None:
        with atomic_write(out, force=force) as stream:
            stream.writelines(f"{n}\t{text}\n" for n, text in zip(supports, texts, strict=True))
    if json:
        names = predicate_names(ranked, graph)
        print_json(
            {
                "pattern": wanted.name,
                "text": str(wanted),
                "nonzero": ranked.nonzero,
                "bodies": [
                    {"relations": list(relations), "body": text, "support": support}
                    for relations, text, support in zip(names, texts, supports, strict=True)
                ],
            }
        )
        return
    _print_bodies(supports, texts)
    if ranked.nonzero is None:
        note(f"the {len(ranked):,} bodies of `{wanted.name}` with the largest support; the rest was pruned")
    else:
        bodies, have = counted(ranked.nonzero, "body", "bodies"), "has" if ranked.nonzero == 1 else "have"
        note(f"{bodies} of `{wanted.name}` {have} a witness; {len(ranked):,} shown")


def _print_bodies(supports: list[int], texts: list[str]) -> None:
    if len(texts) > LONG:
        width = max(len(f"{support:,}") for support in supports)
        sys.stdout.writelines(f"{n:>{width},}   {text}\n" for n, text in zip(supports, texts, strict=True))
        return
    listing = table("support", "body", numbers=("support",))
    for support, text in zip(supports, texts, strict=True):
        listing.add_row(f"{support:,}", text)
    console().print(listing)


@app.command(epilog="Example:  loginfer rules apply lubm lubm-107 --closure --out new.tsv --json")
def apply(
    kg: GraphArgument,
    rules: RulesArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where to write the new triples; the ending decides the format."),
    ] = None,
    closure: Annotated[
        bool, typer.Option("--closure", help="Apply until nothing new follows, not only once.")
    ] = False,
    include_graph: Annotated[
        bool, typer.Option("--include-graph", help="Write the graph's own triples too.")
    ] = False,
    max_rounds: Annotated[
        int | None, typer.Option(help="With --closure: stop after so many rounds.", min=1)
    ] = None,
    max_triples: Annotated[
        int | None, typer.Option(help="With --closure: stop when more triples are derived.", min=1)
    ] = None,
    dialect: DialectOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="A name in a body that the graph does not have is an error.")
    ] = False,
    engine: EngineOption = EngineName.native,
    memory_limit: MemoryOption = None,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
    scratch: ScratchOption = None,
    type_predicate: TypePredicateOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Apply rules to a graph and write what they derive."""
    import numpy as np

    from loginfer.engine.program import one_step
    from loginfer.kg.load import check_output, write_graph
    from loginfer.logic.rulefile import SHIPPED

    if not closure and (max_rounds is not None or max_triples is not None):
        raise InputError(
            "--max-rounds and --max-triples are for --closure", hint="add it, or leave the limit out"
        )
    if include_graph and out is None:
        raise InputError("--include-graph is for --out", hint="say where to write with --out FILE")
    if out is not None:
        check_output(out, force=force)
    program = read_program(rules, dialect)
    answer: dict[str, Any] = {"rules": len(program)}
    with open_rule_engine(
        kg,
        engine,
        program,
        type_predicate=type_predicate,
        memory_limit=memory_limit,
        master=master,
        spark_conf=spark_conf,
        scratch=scratch,
    ) as opened:
        graph = opened.graph
        check_names(graph, program, strict, shipped=rules in SHIPPED)
        with progress_bar() as progress:
            if closure:
                closed = opened.materialise(
                    program, max_rounds=max_rounds, max_triples=max_triples, progress=progress
                )
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
    written = f", written to {out}" if out is not None else "; nothing written (give --out FILE)"
    derive = "1 rule derives" if len(program) == 1 else f"{len(program):,} rules derive"
    note(f"{derive} {counted(answer['new'], 'new triple')} in {rounds}{written}")


@app.command(
    epilog="Example:  loginfer rules explain lubm lubm-107 http://www.Department0.University0.edu/Lecturer0 "
    "type Faculty"
)
def explain(
    kg: GraphArgument,
    rules: RulesArgument,
    subject: Annotated[str, typer.Argument(metavar="S", show_default=False)],
    relation: Annotated[str, typer.Argument(metavar="R", show_default=False)],
    object_: Annotated[str, typer.Argument(metavar="O", show_default=False)],
    limit: Annotated[int, typer.Option(help="Witnesses to show for each rule.", min=1)] = 1,
    closure: Annotated[
        bool, typer.Option("--closure", help="Explain over several steps, down to the graph.")
    ] = False,
    dialect: DialectOption = None,
    engine: EngineOption = EngineName.native,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
    scratch: ScratchOption = None,
    type_predicate: TypePredicateOption = None,
    json: JsonOption = False,
) -> None:
    """Explain why a triple follows from a graph and rules: rule and witness, or that it does not.

    Names may be given by their last part (behind the last / or #) where that is unambiguous.
    """
    import numpy as np

    from loginfer.engine.program import derivation
    from loginfer.engine.program import explain as explain_triple
    from loginfer.logic.rulefile import SHIPPED

    program = read_program(rules, dialect)
    with open_rule_engine(
        kg,
        engine,
        program,
        type_predicate=type_predicate,
        master=master,
        spark_conf=spark_conf,
        scratch=scratch,
    ) as opened:
        graph = opened.graph
        ids = (
            resolve_entity(graph, subject),
            resolve_relation(graph, relation),
            resolve_entity(graph, object_),
        )
        check_names(graph, program, shipped=rules in SHIPPED)
        answer = explain_triple(opened, program, ids, limit=limit)
        steps = [answer]
        depth = 1 if answer.reasons else None
        if closure and not answer.reasons and not answer.in_graph:
            with progress_bar() as progress:
                closed = opened.materialise(program, progress=progress)
            place = np.flatnonzero((closed.triples == np.array(ids)).all(axis=1))
            if len(place):
                depth = int(closed.depth[place[0]])
                steps = derivation(graph, program, closed, ids, engine.value)
    follows = bool(steps[-1].reasons)
    if json:
        print_json(
            {
                "triple": list(answer.triple),
                "in_graph": answer.in_graph,
                "follows": follows,
                "depth": depth,
                "steps": [as_json(step) for step in steps if step.reasons],
            }
        )
        return
    print_explanation(answer, steps, follows, depth, closure)


@app.command(epilog="Example:  loginfer rules convert lubm-107 --to rdfox --out lubm.dlog")
def convert(
    rules: RulesArgument,
    to: Annotated[
        str, typer.Option("--to", help="arrow, rdfox, nemo, anyburl, amie, datalog, sparql or sql.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write; by default to the screen.")
    ] = None,
    dialect: DialectOption = None,
    on_error: Annotated[
        OnError, typer.Option("--on-error", help="Lines that are no rule: stop, or skip and count them.")
    ] = OnError.fail,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Translate rules between dialects: LogInfer, RDFox, Nemo, AnyBURL, AMIE, Datalog, SPARQL, SQL."""
    from loginfer.logic import dialect_named
    from loginfer.logic.rulefile import format_rules, write_rules

    dialect_named(to)
    if out is not None:
        refuse_to_overwrite(out, force)
    file = read_source(rules, dialect, on_error)
    found = file.rules
    if file.skipped:
        note(f"skipped {counted(len(file.skipped), 'bad rule')}, e.g. {file.skipped[0]}")
    if file.zero:
        note(f"left out {counted(len(file.zero), 'rule')} without a body: they are no Datalog rules")
    if not found:
        raise InputError(f"`{rules}` holds no rule")
    if any(s.confidence is not None for s in found) and not dialect_named(to).keeps_scores:
        note(f"the dialect `{to}` has no place for supports and confidences: they are left out")
    text = format_rules(found, to)
    if out is not None:
        write_rules(found, out, dialect=to, force=force)
    if json:
        answer = {"rules": len(found), "from": file.dialect, "to": to}
        print_json(answer | ({"out": None, "text": text} if out is None else {"out": str(out)}))
    elif out is not None:
        note(f"{counted(len(found), 'rule')} written to {out}")
    else:
        print(text, end="")


@app.command(epilog="Example:  loginfer rules patterns")
def patterns(json: JsonOption = False) -> None:
    """List the patterns that have a name: the seven of the paper, then some of later papers."""
    from loginfer.logic.patterns import all_patterns

    if json:
        print_json([{"name": p.name, "text": str(p)} for p in all_patterns()])
        return
    listing = table("name", "pattern")
    for pattern in all_patterns():
        listing.add_row(pattern.name, str(pattern))
    console().print(listing)


app.command(epilog="Example:  loginfer rules show rules.tsv --head nationality --top 10 --short")(show)
app.command(epilog="Example:  loginfer rules analyse LogInfer-FB-trian-qg --rules rules.tsv --json")(analyse)
