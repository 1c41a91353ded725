"""`loginfer explain`: why a triple is in a benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from loginfer.cli.audit import FolderArgument
from loginfer.cli.common import (
    EngineName,
    EngineOption,
    JsonOption,
    print_json,
    resolve_entity,
    resolve_relation,
)
from loginfer.cli.explanations import short, triple_text

if TYPE_CHECKING:
    from loginfer.benchmark.story import NegativeStory, TripleStory

__all__ = ["explain"]

_SOURCES = {
    "relevance": "any constants of the rules' support, with the predicate of a head",
    "object": "a positive with a random object",
}


def explain(
    folder: FolderArgument,
    subject: Annotated[str, typer.Argument(metavar="S", help="Subject.", show_default=False)],
    relation: Annotated[str, typer.Argument(metavar="R", help="Relation.", show_default=False)],
    object_: Annotated[str, typer.Argument(metavar="O", help="Object.", show_default=False)],
    limit: Annotated[int, typer.Option("--limit", help="Witnesses per rule.", min=1)] = 1,
    engine: EngineOption = EngineName.native,
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
    triple = (
        resolve_entity(graph, subject),
        resolve_relation(graph, relation),
        resolve_entity(graph, object_),
    )
    story = explain_triple(benchmark, triple, limit, engine=engine.value)
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
    for negative in story.negatives:
        yield from _negative(negative)
    for found in story.derivations:
        yield f"follows from {story.source} by rule {found.rule}: {short(found.text)}"
        for premise in found.premises:
            yield f"  because {triple_text(premise)}"
    if story.reason:
        yield f"does not follow: {story.reason}"


def _negative(made: NegativeStory) -> Iterator[str]:
    begin = f"negative by {made.method} for {made.split}"
    if made.source == "sub-rule" and made.sub_rule is not None and made.rule is not None:
        yield f"{begin}: a conclusion of a sub-rule of rule {made.rule}, {short(made.sub_rule)}"
        for part in made.parts:
            if part.kept and part.triple:
                yield f"  because {triple_text(part.triple)}"
        for part in made.parts:
            if part.holds is None:
                yield f"  the rule also asks for {short(part.text)}"
            elif not part.holds:
                shown = triple_text(part.triple) if part.triple else short(part.text)
                yield f"  the rule also asks for {shown}, which does not hold"
    elif made.source == "position":
        what = {"subject": "the subject", "object": "the object", "either": "subject or object"}
        yield f"{begin}: a conclusion with {what.get(made.position or '', 'a constant')} replaced"
    elif made.source in _SOURCES:
        yield f"{begin}: {_SOURCES[made.source]}"
    else:
        yield f"{begin}; where it came from is not known"
    if made.replaced:
        yield f"  made from {triple_text(made.replaced)}"
