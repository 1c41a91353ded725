"""Examples of a benchmark's card: test triples with their premises as a drawing and one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from loginfer.report.names import last_part, middle, short_rule, short_triple
from loginfer.report.premises import Arrow, draw

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark
    from loginfer.benchmark.story import NegativeStory, TripleStory

__all__ = ["Example", "examples"]

# So many positives, and as many negatives.
MOST = 4
_LONGEST = 40  # letters of a name in a heading


@dataclass(frozen=True, slots=True)
class Example:
    """A test triple and its story.

    Parameters
    ----------
    triple
        Its names.
    positive
        Its label.
    place
        Its place among P_test and N_test, counted from 0: how the explorer calls it.
    drawing
        Its premises as SVG.
    words
        The story in a sentence or two.
    """

    triple: tuple[str, str, str]
    positive: bool
    place: int
    drawing: str
    words: str

    @property
    def title(self) -> str:
        """The triple as text, with short names."""
        return f"({', '.join(middle(last_part(name), _LONGEST) for name in self.triple)})"


def examples(benchmark: Benchmark, method: str | None) -> list[Example]:
    """Return positives by different rules, then negatives of different kinds; always the same ones.

    Parameters
    ----------
    benchmark
        The benchmark.
    method
        Whose negatives; None for none.
    """
    found = [_positive(benchmark, place) for place in _positives(benchmark)]
    if method is not None:
        found += [_negative(benchmark, method, place) for place in _negatives(benchmark, method)]
    return found


# -- choice -------------------------------------------------------------------------------------


def _positives(benchmark: Benchmark) -> list[int]:
    """Return places in P_test: conclusions of rules that lie far apart."""
    test, provenance = benchmark.positives.test, benchmark.provenance
    if provenance is None or not (provenance.split == 2).any():
        return _even(range(len(test)))
    # Of several rules that derive a conclusion the first counts, so that no triple is taken twice.
    pairs = np.unique(provenance.conclusion, return_index=True)[1]
    pairs = pairs[provenance.split[provenance.conclusion[pairs]] == 2]
    first = np.unique(provenance.rule[pairs], return_index=True)[1]
    wanted = provenance.triples[provenance.conclusion[pairs[_even(first.tolist())]]]
    keys = benchmark.graph.keys
    return sorted(np.searchsorted(keys.pack(test), keys.pack(wanted)).tolist())


def _negatives(benchmark: Benchmark, method: str) -> list[int]:
    """Return places in N_test: of each source and position in turn, and of rules that lie far apart."""
    made = benchmark.negatives[method]
    origins = made.origins.get("test")
    if origins is None:
        return _even(range(len(made.splits.test)))
    kinds: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
    columns = (origins.source, origins.position, origins.rule, origins.kept)
    for place, (source, position, rule, kept) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        kinds.setdefault((source, position), {}).setdefault((rule, kept), place)
    queues = [_even(list(kinds[kind].values())) for kind in sorted(kinds)]
    rounds = [queue[turn] for turn in range(MOST) for queue in queues if turn < len(queue)]
    return sorted(rounds[:MOST])


def _even(items: Iterable[int]) -> list[int]:
    """Return at most `MOST` items that lie evenly in a list."""
    listed = list(items)
    if len(listed) <= MOST:
        return listed
    return [listed[round(step * (len(listed) - 1) / (MOST - 1))] for step in range(MOST)]


# -- stories ------------------------------------------------------------------------------------


def _positive(benchmark: Benchmark, place: int) -> Example:
    story = _story(benchmark, benchmark.positives.test[place])
    arrows = [Arrow(*story.triple, kind="conclusion")]
    words = "No rule of the benchmark derives it in one step."
    if story.derivations:
        first = story.derivations[0]
        arrows += [Arrow(*premise) for premise in first.premises]
        witness = ", ".join(f"{variable} = {last_part(value)}" for variable, value in first.witness.items())
        words = f"Follows from {_set(story.source)} by rule {first.rule}: {short_rule(first.text)}."
        words += f" Witness: {witness}." if witness else ""
        more = len(story.derivations) - 1
        words += f" {more} more rule{'s derive' if more > 1 else ' derives'} it too." if more else ""
    elif not benchmark.rules:
        words = "The rules of this benchmark are not known."
    return Example(story.triple, True, place, _drawn(arrows, benchmark), words)


def _negative(benchmark: Benchmark, method: str, place: int) -> Example:
    story = _story(benchmark, benchmark.negatives[method].splits.test[place])
    arrows = [Arrow(*story.triple, kind="conclusion")]
    words: list[str] = []
    for made in story.negatives:
        if made.method == method and made.split == "test":
            arrows += _arrows(made)
            words += _sentences(made)
    if story.derivations:
        words.append(f"But rule {story.derivations[0].rule} derives it from {_set(story.source)}.")
        arrows += [Arrow(*premise) for premise in story.derivations[0].premises]
    elif story.reason:
        words.append(f"It does not follow: {story.reason}.")
    index = len(benchmark.positives.test) + place
    return Example(story.triple, False, index, _drawn(arrows, benchmark), " ".join(words))


def _story(benchmark: Benchmark, triple: Any) -> TripleStory:
    from loginfer.benchmark import explain_triple

    return explain_triple(benchmark, [int(part) for part in triple])


def _arrows(made: NegativeStory) -> Iterator[Arrow]:
    for part in made.parts:
        if part.triple is not None:
            yield Arrow(*part.triple, kind="premise" if part.holds else "missing")
    if made.replaced is not None:
        yield Arrow(*made.replaced, kind="origin")


def _sentences(made: NegativeStory) -> Iterator[str]:
    """Tell how a negative was made, and what would have been needed."""
    if made.source == "sub-rule" and made.sub_rule is not None:
        yield f"A conclusion of a sub-rule of rule {made.rule}: {short_rule(made.sub_rule)}."
        known = [part for part in made.parts if part.holds is False]
        false = [short_triple(p.triple) if p.triple else short_rule(p.text) for p in known]
        open_ = [short_rule(part.text) for part in made.parts if part.holds is None]
        if false:
            yield f"The rule also asks for {' and '.join(false)}, which {_does(len(false))} not hold."
        if open_:
            yield f"The rule also asks for {' and '.join(open_)}, for which there is no witness."
    elif made.source == "position":
        what = {"subject": "the subject", "object": "the object", "either": "subject or object"}
        yield f"A conclusion with {what.get(made.position or '', 'a constant')} replaced."
    elif made.source == "relevance":
        yield "Any constants of the rules' support, with the relation of a head."
    elif made.source == "object":
        yield "A positive with a random object."
    else:
        yield "Where this negative came from is not known."
    if made.replaced is not None:
        yield f"It differs in one place from the positive {short_triple(made.replaced)}."


def _does(count: int) -> str:
    return "does" if count == 1 else "do"


def _set(source: str | None) -> str:
    return source or "the positives"


def _drawn(arrows: list[Arrow], benchmark: Benchmark) -> str:
    # The same triple may be a premise and the origin: the first thing said about it counts.
    known: dict[tuple[str, str, str], Arrow] = {}
    for arrow in arrows:
        known.setdefault((arrow.subject, arrow.relation, arrow.object), arrow)
    return draw(known.values(), benchmark.graph.type_predicate)
