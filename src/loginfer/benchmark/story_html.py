"""What a notebook shows for the story of a triple: where it is, what it follows from, or what it lacks."""

from __future__ import annotations

from collections.abc import Iterator

from loginfer.benchmark.story import Derivation, NegativeStory, TripleStory
from loginfer.logic.rule_html import text_markup, triple_markup
from loginfer.markup import Markup, element, folded, fragment, joined, listing

__all__ = ["story_fragment"]


def story_fragment(story: TripleStory) -> str:
    """Return what a notebook shows for the story of a triple."""
    return fragment(
        element("div", triple_markup(story.triple), kind="title"),
        element("div", "is in " + (", ".join(story.sets) or "none of the sets"), kind="quiet"),
        listing(_lines(story)),
    )


def _lines(story: TripleStory) -> Iterator[Markup]:
    if story.noise is not None:
        yield joined(f"wrong on purpose: {story.noise}")
    for derivation in story.derivations:
        source = "" if story.source is None else f" from {story.source}"
        yield joined(f"follows{source} by rule {derivation.rule}: ", *_derived(derivation))
    if len(story.steps) > 1:
        steps = [joined(triple_markup(s.triple), f", by rule {s.derivation.rule}") for s in story.steps]
        yield folded(f"in {story.depth} steps", listing(steps))
    for negative in story.negatives:
        yield joined(f"negative by {negative.method} for {negative.split}", *_told(negative))
    if story.reason is not None:
        yield joined(f"does not follow: {story.reason}")


def _derived(derivation: Derivation) -> Iterator[Markup]:
    yield text_markup(derivation.text)
    gone = [joined("missing on purpose: ", triple_markup(premise)) for premise in derivation.missing]
    there = [triple_markup(p) for p in derivation.premises if p not in derivation.missing]
    absent = [joined("there is no ", triple_markup(denied)) for denied in derivation.absent]
    yield listing([*(joined("because ", made) for made in there), *gone, *absent])


def _told(negative: NegativeStory) -> Iterator[Markup]:
    if negative.near_miss is not None:
        yield joined(f": a near miss of rule {negative.rule} ({negative.edit}): ")
        yield text_markup(negative.near_miss)
        yield listing(_premises(negative))
    elif negative.sub_rule is not None:
        yield joined(f": a sub-rule of rule {negative.rule} concludes it: ", text_markup(negative.sub_rule))
        yield listing(_premises(negative))
    elif negative.replaced is not None:
        what = f"the {negative.position} replaced" if negative.position else "a part replaced"
        yield joined(f": {what} in ", triple_markup(negative.replaced))
    elif negative.source is not None:
        yield joined(f": {negative.source}")


def _premises(negative: NegativeStory) -> Iterator[Markup]:
    """Say part by part of the rule's body what is there and what is not."""
    for part in negative.parts:
        written = text_markup(part.text) if part.triple is None else triple_markup(part.triple)
        if part.holds is None:
            yield joined(written, " is left open")
        else:
            yield joined(written, " is ", _there(part.holds))
    if negative.put is not None:
        yield joined("instead there is ", triple_markup(negative.put))


def _there(holds: bool) -> Markup:
    return element("span", "there", kind="good") if holds else element("span", "not there", kind="bad")
