"""Drawings of premises: what is in them, what is not in the way of what, and that names stay text."""

import itertools
import re
from xml.etree import ElementTree as ET

import pytest

from loginfer.kg.vocabulary import middle
from loginfer.report.pages.examples import Arrow, draw

TYPE = "rdf:type"


def parsed(arrows):
    return ET.fromstring(draw(arrows, TYPE))


def groups(svg, kind):
    return [g for g in svg.iter("g") if kind in g.get("class").split()]


def texts(svg, kind=None):
    found = [t for t in svg.iter("text") if kind is None or kind in t.get("class", "").split()]
    return ["".join(t.itertext()) if t.find("title") is None else t.find("title").tail for t in found]


def boxes(svg):
    """Rectangles as left, top, right, bottom."""
    found = []
    for r in svg.iter("rect"):
        x, y, width, height = (float(r.get(key)) for key in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    return found


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


COMPOSITION = [Arrow("a", "R", "c", "conclusion"), Arrow("a", "S", "b"), Arrow("b", "T", "c")]
CHAIN = [Arrow("n0", "goal", "n5", "conclusion"), *(Arrow(f"n{i}", "next", f"n{i + 1}") for i in range(5))]
CASES = {
    "symmetry": [Arrow("a", "R", "b", "conclusion"), Arrow("b", "R", "a")],
    "three between two": [Arrow("a", "R", "b", "conclusion"), Arrow("a", "S", "b"), Arrow("b", "T", "a", "missing")],
    "composition": COMPOSITION,
    "triangle": [*COMPOSITION, Arrow("a", "U", "c")],
    "diamond": [
        Arrow("a", "T", "d", "conclusion"),
        Arrow("a", "R1", "b"),
        Arrow("a", "R2", "c"),
        Arrow("b", "R3", "d"),
        Arrow("c", "R4", "d"),
        Arrow("b", "R5", "c"),
    ],
    "types": [Arrow("a", TYPE, "Person", "conclusion"), Arrow("a", TYPE, "Student"), Arrow("a", "takes", "c")],
    "loop": [Arrow("a", "R", "a", "conclusion"), Arrow("a", "S", "b"), Arrow("b", "S", "a")],
    "negative": [Arrow("a", "R", "b", "conclusion"), Arrow("a", "R", "c", "origin")],
    "long chain": CHAIN,
    "long names": [
        Arrow("subject" * 20, "relation" * 20, "object" * 20, "conclusion"),
        Arrow("subject" * 20, "other" * 20, "object" * 20),
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_boxes_stay_inside_and_apart(case):
    svg = parsed(CASES[case])
    _, _, width, height = (float(v) for v in svg.get("viewBox").split())
    found = boxes(svg)
    for left, top, right, bottom in found:
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height
    assert not any(overlap(a, b) for a, b in itertools.combinations(found, 2))


@pytest.mark.parametrize("case", CASES)
def test_every_triple_is_drawn_once_with_its_kind(case):
    arrows = CASES[case]
    svg = parsed(arrows)
    for kind in ("premise", "conclusion", "missing", "origin"):
        wanted = sum(arrow.kind == kind for arrow in arrows)
        assert len(groups(svg, kind)) == wanted, kind
    assert len(groups(svg, "constant")) == len(
        {name for a in arrows for name in ((a.subject,) if a.relation == TYPE else (a.subject, a.object))}
    )


@pytest.mark.parametrize("case", CASES)
def test_names_of_arrows_do_not_lie_on_each_other(case):
    svg = parsed(CASES[case])
    found = []
    for text in svg.iter("text"):
        if "relation" in text.get("class", ""):
            x, y = float(text.get("x")), float(text.get("y"))
            half = 3 * len(text.find("title").tail)
            found.append((x - half, y - 11, x + half, y + 3))
    assert not any(overlap(a, b) for a, b in itertools.combinations(found, 2))


@pytest.mark.parametrize("others", [[], [Arrow("GraduateStudent127", "advisor", "x"), Arrow("x", "degreeFrom", "y")]])
def test_names_of_arrows_do_not_lie_on_wide_boxes(others):
    asked = Arrow("GraduateStudent127", "undergraduateDegreeFrom", "www.University494.edu", "conclusion")
    svg = parsed([asked, *others])
    (text,) = [t for t in svg.iter("text") if "conclusion" in t.get("class", "")]
    x, y, half = float(text.get("x")), float(text.get("y")), 3 * len(asked.relation)
    assert y > 11
    assert not any(overlap((x - half, y - 11, x + half, y + 3), box) for box in boxes(svg))


def middle_of_line(group):
    """The point halfway of a quadratic curve."""
    numbers = [float(n) for n in re.findall(r"-?\d+\.?\d*", group.find("path").get("d"))]
    ax, ay, bx, by, cx, cy = numbers
    return (ax + 2 * bx + cx) / 4, (ay + 2 * by + cy) / 4


def test_arrows_between_the_same_constants_keep_their_distance():
    svg = parsed(CASES["three between two"])
    lines = [middle_of_line(g) for kind in ("premise", "missing", "conclusion") for g in groups(svg, kind)]
    heights = sorted(y for _, y in lines)
    assert all(high - low > 30 for low, high in itertools.pairwise(heights))
    (_, conclusion), *_ = [middle_of_line(g) for g in groups(svg, "conclusion")]
    assert conclusion == heights[-1]


def test_the_conclusion_goes_from_left_to_right():
    svg = parsed([Arrow("b", "S", "c"), Arrow("z", "R", "a", "conclusion"), Arrow("z", "S", "b")])
    places = {"".join(g.find("text").itertext()): float(g.find("rect").get("x")) for g in groups(svg, "constant")}
    assert places["z"] == min(places.values())
    assert places["a"] == max(places.values())


def test_types_are_labels_of_their_constant():
    svg = parsed(CASES["types"])
    (asked,) = groups(svg, "conclusion")
    assert "type" in asked.get("class").split()
    assert "".join(asked.find("text").itertext()) == "Person"
    assert [title.text for title in asked.iter("title")] == ["a rdf:type Person"]
    # Nothing but the relation `takes` has an arrow.
    assert texts(svg, "relation") == ["takes"]


def test_names_are_text_and_never_markup():
    wrong = "<script>alert(1)</script>"
    drawn = draw([Arrow(wrong, "a\"b'c", "x & y", "conclusion"), Arrow(wrong, TYPE, "<b>")], TYPE)
    assert "<script" not in drawn
    assert "<b>" not in drawn
    svg = ET.fromstring(drawn)
    assert {element.tag for element in svg.iter()} == {"svg", "g", "rect", "text", "title", "path"}
    assert wrong in [title.text for title in svg.iter("title")]
    assert wrong in svg.get("aria-label")


def test_long_names_are_cut_in_the_middle_and_whole_in_the_title():
    svg = parsed(CASES["long names"])
    shown = texts(svg)
    assert all(len(text) <= 24 for text in shown)
    titles = [title.text for title in svg.iter("title")]
    assert "subject" * 20 in titles
    assert "other" * 20 in titles


def test_nothing_gives_no_drawing_and_the_same_gives_the_same():
    assert draw([]) == ""
    assert draw(CASES["diamond"]) == draw(list(CASES["diamond"]))
    assert draw([*CASES["symmetry"], *CASES["symmetry"]]) == draw(CASES["symmetry"])


@pytest.mark.parametrize("length", range(3, 30))
def test_a_cut_name_is_as_long_as_asked(length):
    cut = middle("abcdefghijklmnopqrstuvwxyz", length)
    assert len(cut) == min(length, 26)
    assert cut[0] == "a"
    assert cut[-1] == "z"
