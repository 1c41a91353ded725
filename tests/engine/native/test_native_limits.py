"""Large results of the native engine: counted without enumeration, refused with a number, never wrong."""

from __future__ import annotations

import numpy as np
import pytest

from loginfer.engine import Engine
from loginfer.engine.native import join
from loginfer.engine.native.engine import NativeEngine
from loginfer.errors import LimitError
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.logic.dialects.arrow import parse_rule
from loginfer.logic.patterns import instantiate, pattern_named

SIZE = 300


@pytest.fixture(scope="module")
def star() -> NativeEngine:
    """A hub with as many R-predecessors as S-successors."""
    names = [f"E{i:04}" for i in range(SIZE)]
    triples = [(name, "R", "Hub") for name in names] + [("Hub", "S", name) for name in names]
    return NativeEngine(KnowledgeGraph.from_names(triples))


def ids(engine: Engine) -> np.ndarray:
    return np.array([engine.graph.entity_id(f"E{i:04}") for i in range(SIZE)])


def test_all_pairs_through_a_hub_are_found_in_order(star: NativeEngine) -> None:
    found = star.conclusions(parse_rule("(x,R,h), (h,S,y) -> (x,S,y)"))
    entities = ids(star)
    assert len(found) == SIZE * SIZE
    assert np.array_equal(found[:, 0], np.repeat(entities, SIZE))
    assert np.array_equal(found[:, 2], np.tile(entities, SIZE))


def test_a_count_of_many_branches_is_exact_and_needs_no_enumeration(star: NativeEngine) -> None:
    branches = ", ".join(f"(h,S,x{i})" for i in range(7))
    assert star.support(parse_rule(f"{branches} -> (h,R,x0)")) == SIZE**7


def test_a_count_of_separate_parts_may_exceed_64_bits(star: NativeEngine) -> None:
    parts = ", ".join(f"(h{i},S,x{i})" for i in range(9))
    assert star.support(parse_rule(f"{parts} -> (h0,R,x0)")) == SIZE**9


def test_a_count_beyond_64_bits_in_one_part_is_refused(star: NativeEngine) -> None:
    rule = parse_rule(", ".join(f"(h,S,x{i})" for i in range(9)) + " -> (h,R,x0)")
    with pytest.raises(LimitError, match="64 bits"):
        star.support(rule)
    # The first witnesses can be listed all the same.
    assert star.witnesses(rule, limit=2).values.shape == (2, 10)


def test_a_product_is_given_as_its_two_sides(star: NativeEngine) -> None:
    engine = NativeEngine(star.graph, max_conclusions=1000)
    rule = parse_rule("(x,R,z), (w,S,y), x != y -> (x,S,y)")
    projection = engine.projection(rule)
    assert projection.product
    assert len(projection) == SIZE * SIZE - SIZE
    assert np.array_equal(projection.left, ids(engine))
    with pytest.raises(LimitError, match="89,700 conclusions; the limit is 1,000"):
        engine.conclusions(rule)


def test_too_many_conclusions_of_a_connected_body_are_refused(star: NativeEngine) -> None:
    engine = NativeEngine(star.graph, max_conclusions=1000)
    with pytest.raises(LimitError, match="the limit is 1,000"):
        engine.conclusions(parse_rule("(x,R,h), (h,S,y) -> (x,S,y)"))


def test_too_many_witnesses_are_refused_unless_limited(star: NativeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "MAX_WITNESSES", 1000)
    rule = parse_rule("(x,R,h), (h,S,y) -> (x,S,y)")
    with pytest.raises(LimitError, match="90,000 witnesses"):
        star.witnesses(rule)
    assert len(star.witnesses(rule, limit=1000)) == 1000


def test_an_empty_graph_derives_nothing() -> None:
    engine = NativeEngine(KnowledgeGraph.from_names([]).with_names(relations=["R"]))
    rule = parse_rule("(x,R,y) -> (y,R,x)")
    assert engine.support(rule) == 0
    assert engine.conclusions(rule).shape == (0, 3)
    assert engine.witnesses(rule).values.shape == (0, 2)
    assert engine.derives([rule], np.empty((0, 3), dtype=np.int32)).shape == (0,)


AWARD = "/award/award_nominee/award_nominations./award/award_nomination/award_nominee"
REGION = "/film/film/release_date_s./film/film_regional_release_date/film_release_region"
MEDAL = "/olympics/olympic_participating_country/medals_won./olympics/olympic_medal_honor/olympics"
SUPPORTS = [
    ("fb15k-237", "composition", ("/people/person/nationality", "/location/location/contains"), 3_169_030),
    ("fb15k-237", "triangle", (AWARD, AWARD, AWARD), 97_593),
    ("fb15k-237", "diamond", (REGION, REGION, MEDAL, MEDAL), 4_541_048),
    ("wn18rr", "composition", ("_hypernym", "_derivationally_related_form"), 54_048),
    ("wn18rr", "diamond", ("_member_meronym", "_member_meronym", "_hypernym", "_hypernym"), 77_216),
]


@pytest.mark.data
@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("name", ["fb15k-237", "wn18rr"])
def test_supports_on_the_real_graphs_have_their_reference_values(name: str) -> None:
    engine = NativeEngine(load_graph(name))
    for graph, pattern, relations, support in SUPPORTS:
        if graph == name:
            rule = instantiate(pattern_named(pattern), relations, relations[0])
            assert engine.support(rule) == support
