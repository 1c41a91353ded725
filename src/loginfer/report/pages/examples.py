"""Examples on a benchmark's card: test triples with their premises as a drawing and one sentence.

The drawing is SVG in the page: constants as boxes, triples as arrows. Its colours come from the style sheet, which has
the classes `premise` (holds), `conclusion` (the triple in question), `missing` (does not hold) and `origin` (what a
negative was made from). All text in it is escaped here.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from loginfer.benchmark.explain import RuleText
from loginfer.kg.vocabulary import short_names, shortened

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark
    from loginfer.benchmark.explain import Names, NegativeStory, TripleStory


# What a triple is in the drawing, with the text for screen readers.
KINDS = {"premise": "holds", "conclusion": "is asked about", "missing": "does not hold", "origin": "is a positive"}

_WIDTH = 520.0
_EDGE = 112.0  # from the sides to the centres of the outer boxes
_BOX = 28.0  # height of a box
_ROW = 24.0  # height of a type's label
_LOOP = 44.0  # height of an arrow from a box to itself
_ABOVE = 24.0  # from a line to a relation that stands above it
_BEND = 46.0  # between arrows that join the same boxes
_LETTER, _SMALL = 8.2, 6.6  # width of a letter in a box and on an arrow, roughly
_LETTERS = 24  # so many letters of a name


@dataclass(frozen=True, slots=True)
class Arrow:
    """A triple in the drawing.

    Parameters
    ----------
    subject, relation, object
        Its names.
    kind
        A key of `KINDS`.
    """

    subject: str
    relation: str
    object: str
    kind: str = "premise"


def draw(arrows: Iterable[Arrow], type_predicate: str | None = None, short: Mapping[str, str] | None = None) -> str:
    """Return an SVG element; empty text if there is nothing to draw.

    Parameters
    ----------
    arrows
        The conclusion and the premises. The conclusion's subject stands left and its object right.
    type_predicate
        The relation that gives types: its triples become labels of their subject.
    short
        The names as they are shown; by default short ones that are different in this drawing.
    """
    listed = list(dict.fromkeys(arrows))
    names = (name for a in listed for name in (a.subject, a.relation, a.object))
    return _Drawing(listed, type_predicate, short or short_names(names, _LETTERS)).svg() if listed else ""


# A point of the drawing is a complex number: x to the right, y down.


@dataclass(frozen=True, slots=True)
class _Area:
    """The rectangle that a text occupies."""

    centre: complex
    width: float
    height: float

    def holds(self, point: complex) -> bool:
        """Whether a point lies in it."""
        away = point - self.centre
        return abs(away.real) <= self.width / 2 and abs(away.imag) <= self.height / 2

    def meets(self, other: _Area) -> bool:
        """Whether the two overlap."""
        away = self.centre - other.centre
        return abs(away.real) < (self.width + other.width) / 2 and abs(away.imag) < (self.height + other.height) / 2


class _Drawing:
    """Lays out boxes, arrows and texts."""

    def __init__(self, arrows: Sequence[Arrow], type_predicate: str | None, short: Mapping[str, str]) -> None:
        # The conclusion comes first: it decides who stands left and right.
        self.all_arrows = sorted(arrows, key=lambda arrow: arrow.kind != "conclusion")
        self.types = [a for a in self.all_arrows if type_predicate is not None and a.relation == type_predicate]
        self.arrows = [a for a in self.all_arrows if a not in self.types]
        ends = [(a.subject,) if a in self.types else (a.subject, a.object) for a in self.all_arrows]
        self.names = list(dict.fromkeys(name for pair in ends for name in pair))
        self.short = short
        self.height, centres = self._layout()
        self.boxes = {name: self._box(name, centres[name]) for name in self.names}
        self.occupied = list(self.boxes.values())

    # -- layout -----------------------------------------------------------------------------------

    def _between(self, one: str, other: str) -> list[Arrow]:
        """Return the arrows between two boxes, in either direction, the conclusion last: it is lowest."""
        arrows = [a for a in self.arrows if {a.subject, a.object} == {one, other}]
        return sorted(arrows, key=lambda arrow: arrow.kind == "conclusion")

    def _layout(self) -> tuple[float, dict[str, complex]]:
        """Return the height, and the centres of the boxes: on a line, a triangle or a circle."""
        most_parallel = max((len(self._between(*pair)) for pair in combinations(self.names, 2)), default=0)
        loops = max(len(self._between(name, name)) for name in self.names) * _LOOP
        labels = max(sum(a.subject == name for a in self.types) for name in self.names) * _ROW
        bend = max(most_parallel - 1, 0) / 2 * _BEND
        below = max(bend + 18.0, _BOX / 2 + labels + 10.0)
        left, right, centre = _EDGE, _WIDTH - _EDGE, _WIDTH / 2
        if len(self.names) <= 2:
            line = max(_BOX / 2 + 6.0 + loops, bend + 18.0, _ABOVE + 10.0)
            xs = [centre] if len(self.names) == 1 else [left, right]
            return line + below, {n: complex(x, line) for n, x in zip(self.names, xs, strict=True)}
        top = _BOX / 2 + 6.0 + loops
        if len(self.names) == 3:
            line = top + 136.0 + labels
            corners = [complex(left, line), complex(right, line), complex(centre, top)]
            return line + below, dict(zip(self.names, corners, strict=True))
        radius = 106.0 + labels / 2 + 22.0 * (len(self.names) - 4)
        circle = [
            complex(centre - (right - left) / 2 * math.cos(turn), top + radius - radius * math.sin(turn))
            for turn in _turns(len(self.names))
        ]
        return top + 2 * radius + below, dict(zip(self.names, circle, strict=True))

    def _box(self, name: str, centre: complex) -> _Area:
        width = max(min(len(self.short[name]), _LETTERS) * _LETTER + 20.0, 44.0)
        return _Area(centre, width, _BOX)

    # -- drawing ----------------------------------------------------------------------------------

    def svg(self) -> str:
        """Put the drawing together."""
        description = "; ".join(f"{a.subject} {a.relation} {a.object} {KINDS[a.kind]}" for a in self.all_arrows)
        parts = [
            f'<svg class="premises" viewBox="0 0 {_WIDTH:.0f} {self.height:.0f}" width="{_WIDTH:.0f}" '
            f'height="{self.height:.0f}" role="img" aria-label="{escape(description)}">'
        ]
        texts: list[str] = []
        for one, other in combinations(self.names, 2):
            between = self._between(one, other)
            for number, arrow in enumerate(between):
                parts += self._curve(arrow, one, other, (number - (len(between) - 1) / 2) * _BEND, texts)
        for name in self.names:
            for number, arrow in enumerate(self._between(name, name)):
                parts += self._loop(arrow, number, texts)
        for name in self.names:
            parts += self._labelled_box(name)
        return "".join([*parts, *texts, "</svg>"])

    def _labelled_box(self, name: str) -> Iterator[str]:
        box = self.boxes[name]
        yield _rectangle("constant", box, name, self.short[name])
        for row, arrow in enumerate(a for a in self.types if a.subject == name):
            centre = complex(box.centre.real, box.centre.imag + _BOX / 2 + _ROW * (row + 0.5) + 1.0)
            text = self.short[arrow.object]
            area = _Area(centre, min(len(text), _LETTERS) * _SMALL + 16.0, _ROW - 4.0)
            title = f"{arrow.subject} {arrow.relation} {arrow.object}"
            yield _rectangle(f"type {arrow.kind}", area, title, text)

    def _curve(self, arrow: Arrow, one: str, other: str, bend: float, texts: list[str]) -> Iterator[str]:
        """Yield an arrow between two boxes that passes beside the straight line by `bend`."""
        start, end = self.boxes[one].centre, self.boxes[other].centre
        # The normal points down for lines that go right.
        turn = 1 if (end.real, end.imag) > (start.real, start.imag) else -1
        normal = turn * 1j * (end - start) / abs(end - start)
        # A curve passes its control point at half the distance.
        pull = (start + end) / 2 + 2 * bend * normal
        from_, to = self.boxes[arrow.subject], self.boxes[arrow.object]
        curve = _Curve(from_.centre, pull, to.centre)
        first, last = curve.leaves(from_), 1.0 - curve.turned().leaves(to)
        yield _path(arrow.kind, curve.part(first, last), curve.heading(last))
        self._write_relation(arrow, [curve.at(first + (last - first) * share) for share in _SHARES], texts)

    def _loop(self, arrow: Arrow, level: int, texts: list[str]) -> Iterator[str]:
        """Yield an arrow from a box to itself, above it."""
        box = self.boxes[arrow.subject]
        x, y, high = box.centre.real, box.centre.imag - _BOX / 2, _LOOP * (level + 1)
        wide = 16.0 + 8.0 * level
        line = f"M{x - 10:.1f} {y:.1f}C{x - wide - 24:.1f} {y - high:.1f} {x + wide + 24:.1f} {y - high:.1f} "
        yield _path(arrow.kind, f"{line}{x + 10:.1f} {y:.1f}", (complex(x + 10.0, y), math.pi * 0.62))
        self._write_relation(arrow, [complex(x, y - 0.75 * high)], texts)

    def _write_relation(self, arrow: Arrow, candidates: Sequence[complex], texts: list[str]) -> None:
        """Write an arrow's relation at the first free candidate; at the very first if none is free."""
        text = self.short[arrow.relation]
        # Between wide boxes there is no room on the line, but above it.
        above = [centre - _ABOVE * 1j for centre in candidates[:1]]
        areas = [_Area(centre, len(text) * _SMALL + 6.0, 17.0) for centre in (*candidates, *above)]
        area = next((a for a in areas if not any(a.meets(other) for other in self.occupied)), areas[0])
        self.occupied.append(area)
        texts.append(
            f'<text class="relation {arrow.kind}" x="{area.centre.real:.1f}" y="{area.centre.imag + 4:.1f}">'
            f"<title>{escape(arrow.relation)}</title>{escape(text)}</text>"
        )


# Where along an arrow its relation may be written, the best first.
_SHARES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)


@dataclass(frozen=True, slots=True)
class _Curve:
    """A quadratic Bézier curve."""

    start: complex
    pull: complex
    end: complex

    def turned(self) -> _Curve:
        """Return the same curve in the other direction."""
        return _Curve(self.end, self.pull, self.start)

    def _blossom(self, s: float, t: float) -> complex:
        a, b, c = (1 - s) * (1 - t), (1 - s) * t + s * (1 - t), s * t
        return a * self.start + b * self.pull + c * self.end

    def at(self, share: float) -> complex:
        """Return the point at this share of the way."""
        return self._blossom(share, share)

    def part(self, first: float, last: float) -> str:
        """Return the part between two shares as the commands of a path."""
        start, pull, end = self.at(first), self._blossom(first, last), self.at(last)
        return f"M{_place(start)}Q{_place(pull)} {_place(end)}"

    def heading(self, share: float) -> tuple[complex, float]:
        """Return the point at this share of the way, and the direction there."""
        before, point = self._blossom(share, max(share - 0.05, 0.0)), self.at(share)
        return point, cmath.phase(point - before)

    def leaves(self, area: _Area) -> float:
        """Return at which share of the way it leaves the area that it starts in."""
        inside, outside = 0.0, 0.5
        for _ in range(20):
            half = (inside + outside) / 2
            inside, outside = (half, outside) if area.holds(self.at(half)) else (inside, half)
        return outside


def _turns(count: int) -> list[float]:
    """Return angles on a circle: left, right, then in turn above and below, from left to right."""
    above, below = (count - 1) // 2, (count - 2) // 2
    upper = [math.pi * (step + 1) / (above + 1) for step in range(above)]
    lower = [-math.pi * (step + 1) / (below + 1) for step in range(below)]
    mixed = [turn for pair in zip(upper, [*lower, math.nan], strict=False) for turn in pair]
    return [0.0, math.pi, *(turn for turn in mixed if not math.isnan(turn))]


def _rectangle(kind: str, area: _Area, title: str, text: str) -> str:
    x, y = area.centre.real - area.width / 2, area.centre.imag - area.height / 2
    # A name that only its whole length tells from another is pressed into its box.
    pressed = f' textLength="{area.width - 8:.1f}" lengthAdjust="spacingAndGlyphs"' if len(text) > _LETTERS else ""
    return (
        f'<g class="{kind}"><title>{escape(title)}</title><rect x="{x:.1f}" y="{y:.1f}" '
        f'width="{area.width:.1f}" height="{area.height:.1f}" rx="6"/>'
        f'<text x="{area.centre.real:.1f}" y="{area.centre.imag + 4.5:.1f}"{pressed}>{escape(text)}</text></g>'
    )


def _place(point: complex) -> str:
    return f"{point.real:.1f} {point.imag:.1f}"


def _path(kind: str, line: str, heading: tuple[complex, float]) -> str:
    """Return an arrow; its head is a path of its own, since markers would need unique names."""
    tip, direction = heading
    corners = [tip - cmath.rect(9, direction + side) for side in (0.42, -0.42)]
    head = f"M{_place(tip)}{''.join(f'L{_place(corner)}' for corner in corners)}Z"
    return f'<g class="{kind}"><path class="line" d="{line}"/><path class="head" d="{head}"/></g>'


# At most so many positives, and as many negatives.
MAX_EXAMPLES = 4


@dataclass(frozen=True, slots=True)
class DrawnExample:
    """A test triple and its story.

    Parameters
    ----------
    triple
        Its names.
    positive
        Its label.
    index
        Its index in P_test followed by N_test, by which the explorer finds it.
    drawing
        Its premises as SVG.
    words
        The story in a sentence or two.
    title
        The triple as text, with short names.
    """

    triple: tuple[str, str, str]
    positive: bool
    index: int
    drawing: str
    words: str
    title: str


def examples(benchmark: Benchmark, method: str | None) -> list[DrawnExample]:
    """Return positives by different rules, then negatives of different kinds; always the same ones.

    Parameters
    ----------
    benchmark
        The benchmark.
    method
        The method for negatives; None for no negatives.
    """
    positive = {i: _story(benchmark, benchmark.positives.test[i]) for i in _positive_indices(benchmark)}
    negative = {}
    if method is not None:
        triples = benchmark.negatives[method].splits.test
        negative = {i: _story(benchmark, triples[i]) for i in _negative_indices(benchmark, method)}
    names = [name for story in (*positive.values(), *negative.values()) for name in _names(story)]
    short = short_names(names, _LETTERS, benchmark.graph.labels)
    return [
        *(_positive(benchmark, index, story, short) for index, story in positive.items()),
        *(_negative(benchmark, str(method), index, story, short) for index, story in negative.items()),
    ]


def _names(story: TripleStory) -> Iterator[str]:
    """Yield the names of all triples that a story may show."""
    yield from story.triple
    for derivation in story.derivations[:1]:
        yield from (name for premise in derivation.premises for name in premise)
        yield from derivation.witness.values()
    for negative in story.negatives:
        shown = [part.triple for part in negative.parts] + [negative.put]
        shown += [part for line in negative.lines() for part in line.parts if not isinstance(part, str)]
        yield from (name for triple in shown for name in triple or ())


def _text(triple: Sequence[str], short: Mapping[str, str]) -> str:
    return f"({', '.join(short[name] for name in triple)})"


# -- choice -------------------------------------------------------------------------------------


def _positive_indices(benchmark: Benchmark) -> list[int]:
    """Return indices in P_test: conclusions of rules that lie far apart."""
    test, provenance = benchmark.positives.test, benchmark.provenance
    if provenance is None or not (provenance.split == 2).any():
        return _even(range(len(test)))
    # Of several rules that derive a conclusion the first counts, so that no triple comes twice.
    pairs = np.unique(provenance.conclusion, return_index=True)[1]
    pairs = pairs[provenance.split[provenance.conclusion[pairs]] == 2]
    first = np.unique(provenance.rule[pairs], return_index=True)[1]
    conclusions = provenance.triples[provenance.conclusion[pairs[_even(first.tolist())]]]
    keys = benchmark.graph.keys
    return sorted(np.searchsorted(keys.pack(test), keys.pack(conclusions)).tolist())


def _negative_indices(benchmark: Benchmark, method: str) -> list[int]:
    """Return indices in N_test: of each source and position in turn, and of rules that lie far apart."""
    negatives = benchmark.negatives[method]
    origins = negatives.origins.get("test")
    if origins is None:
        return _even(range(len(negatives.splits.test)))
    kinds: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
    columns = (origins.source, origins.position, origins.rule, origins.kept)
    for index, (source, position, rule, kept) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        kinds.setdefault((source, position), {}).setdefault((rule, kept), index)
    queues = [_even(list(kinds[kind].values())) for kind in sorted(kinds)]
    rounds = [queue[turn] for turn in range(MAX_EXAMPLES) for queue in queues if turn < len(queue)]
    return sorted(rounds[:MAX_EXAMPLES])


def _even(items: Iterable[int]) -> list[int]:
    """Return at most `MAX_EXAMPLES` items that lie evenly in a list."""
    listed = list(items)
    if len(listed) <= MAX_EXAMPLES:
        return listed
    return [listed[round(step * (len(listed) - 1) / (MAX_EXAMPLES - 1))] for step in range(MAX_EXAMPLES)]


# -- stories ------------------------------------------------------------------------------------


def _positive(benchmark: Benchmark, index: int, story: TripleStory, short: Mapping[str, str]) -> DrawnExample:
    arrows = [Arrow(*story.triple, kind="conclusion")]
    words = "No rule of the benchmark derives it in one step."
    if story.derivations:
        first = story.derivations[0]
        arrows += [Arrow(*premise) for premise in first.premises]
        witness = ", ".join(f"{variable} = {short[value]}" for variable, value in first.witness.items())
        words = f"Follows from {_set(story.source)} by rule {first.rule}: {shortened(first.text)}."
        words += f" Witness: {witness}." if witness else ""
        more = len(story.derivations) - 1
        words += f" {more} more rule{'s derive' if more > 1 else ' derives'} it too." if more else ""
    elif not benchmark.rules:
        words = "The rules of this benchmark are not known."
    return _drawn(benchmark, story, True, index, arrows, words, short)


def _negative(
    benchmark: Benchmark, method: str, index: int, story: TripleStory, short: Mapping[str, str]
) -> DrawnExample:
    arrows = [Arrow(*story.triple, kind="conclusion")]
    words: list[str] = []
    for negative in story.negatives:
        if negative.method == method and negative.split == "test":
            arrows += _arrows(negative)
            words.append(_words(negative, short))
    if story.derivations:
        words.append(f"But rule {story.derivations[0].rule} derives it from {_set(story.source)}.")
        arrows += [Arrow(*premise) for premise in story.derivations[0].premises]
    elif story.reason:
        words.append(f"It does not follow: {story.reason}.")
    index += len(benchmark.positives.test)
    return _drawn(benchmark, story, False, index, arrows, " ".join(words), short)


def _story(benchmark: Benchmark, triple: Any) -> TripleStory:
    from loginfer.benchmark import explain_triple

    return explain_triple(benchmark, [int(part) for part in triple])


def _arrows(negative: NegativeStory) -> Iterator[Arrow]:
    for part in negative.parts:
        if part.triple is not None:
            yield Arrow(*part.triple, kind="premise" if part.holds else "missing")
    if negative.put is not None:
        yield Arrow(*negative.put)
    if negative.replaced is not None:
        yield Arrow(*negative.replaced, kind="origin")


def _words(negative: NegativeStory, short: Mapping[str, str]) -> str:
    """Say how a negative was made, and what it lacks to be a conclusion."""

    def shown(part: str | Names) -> str:
        if isinstance(part, str):
            return shortened(part) if isinstance(part, RuleText) else part
        return _text(part, short)

    text = "; ".join("".join(map(shown, line.parts)) for line in negative.lines())
    text = text.removeprefix(f"negative by {negative.method} for {negative.split}").lstrip(":; ")
    return f"{text[:1].upper()}{text[1:]}."


def _set(source: str | None) -> str:
    return source or "the positives"


def _drawn(
    benchmark: Benchmark,
    story: TripleStory,
    positive: bool,
    index: int,
    arrows: list[Arrow],
    words: str,
    short: Mapping[str, str],
) -> DrawnExample:
    # The same triple may be a premise and the origin: its first arrow counts.
    by_triple: dict[tuple[str, str, str], Arrow] = {}
    for arrow in arrows:
        by_triple.setdefault((arrow.subject, arrow.relation, arrow.object), arrow)
    drawing = draw(by_triple.values(), benchmark.graph.type_predicate, short)
    return DrawnExample(story.triple, positive, index, drawing, words, _text(story.triple, short))
