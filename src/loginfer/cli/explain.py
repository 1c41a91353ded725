"""`loginfer explain`: why a triple is in a benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from loginfer.cli.audit import FolderArgument
from loginfer.cli.common import (
    JsonOption,
    print_json,
    resolve_entity,
    resolve_relation,
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
from loginfer.cli.explanations import short, triple_text

if TYPE_CHECKING:
    from loginfer.benchmark.story import NegativeStory, TripleStory

__all__ = ["explain"]

_SOURCES = {
    "relevance": "any constants of the rules' support, with the predicate of a head",
    "object": "a positive with a random object",
}


_NOISE = {
    "flipped-positive": "noise: a conclusion of train that was moved to the negatives",
    "flipped-negative": "noise: a negative of train that was moved to the positives",
    "missing": "noise: a premise that was removed from P_train, though it is true",
}


def explain(
    folder: FolderArgument,
    subject: Annotated[str, typer.Argument(metavar="S", help="Subject.", show_default=False)],
    relation: Annotated[str, typer.Argument(metavar="R", help="Relation.", show_default=False)],
    object_: Annotated[str, typer.Argument(metavar="O", help="Object.", show_default=False)],
    limit: Annotated[int, typer.Option("--limit", help="Witnesses per rule.", min=1)] = 1,
    engine: EngineOption = EngineName.native,
    master: MasterOption = None,
    spark_conf: SparkConfOption = None,
    scratch: ScratchOption = None,
    json: JsonOption = False,
) -> None:
    """Say which set of a benchmark a triple is in, and why.

    For a positive: the rules that derive it, with premises. For a negative: the method that made it, and why
    it is not derivable. Rules are counted from 0, as in the benchmark's files. A name may be cut down to its
    last part where that is unambiguous; one that begins with a dash comes behind --.
    """
    from loginfer.benchmark import explain_triple, load_benchmark

    options = engine_options(engine, None, master, spark_conf, scratch)
    benchmark = load_benchmark(folder)
    graph = benchmark.graph
    triple = (
        resolve_entity(graph, subject),
        resolve_relation(graph, relation),
        resolve_entity(graph, object_),
    )
    with engine_running(engine, options):
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
