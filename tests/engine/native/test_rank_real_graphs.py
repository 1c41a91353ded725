"""rank_bodies on FB15k-237 and WN18RR: the reference values, and pruning against the complete table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from loginfer.engine.native.rank import rank_bodies, rank_general
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.logic.patterns import parse_pattern, pattern_named

pytestmark = pytest.mark.data

D = "_derivationally_related_form"

# Number of bodies with a witness, and the largest supports with the last segments of the relations.
FB = {
    "hierarchy": (237, [(("award_nominee",), 16_391), (("film_release_region",), 15_568)]),
    "composition": (6_563, [(("nationality", "contains"), 3_169_030)]),
    "intersection": (336, [(("award_nominee", "award_winner"), 6_276)]),
    "triangle": (7_992, [(("award_nominee",) * 3, 97_593)]),
    "diamond": (98_023, [(("film_release_region",) * 2 + ("olympics",) * 2, 4_541_048)]),
}
WN = {
    "hierarchy": [(("_hypernym",), 37_221), ((D,), 31_867)],
    "composition": [((D, D), 90_497), (("_hypernym", D), 54_048)],
    "intersection": [((D, "_member_meronym"), 26)],
    "triangle": [((D, D, "_hypernym"), 1_308)],
    "diamond": [(("_member_meronym",) * 2 + ("_hypernym",) * 2, 77_216)],
}


@pytest.fixture(scope="module")
def fb(data_folder: Path) -> KnowledgeGraph:
    return load_graph(data_folder / "FB15k-237.tar.gz")


@pytest.fixture(scope="module")
def wn(data_folder: Path) -> KnowledgeGraph:
    return load_graph(data_folder / "WN18RR.tar.gz")


def segments(graph: KnowledgeGraph, row: np.ndarray) -> tuple[str, ...]:
    return tuple(name.rsplit("/", 1)[-1].rsplit(".", 1)[-1] for name in graph.relations.names(row))


@pytest.mark.parametrize("name", FB)
def test_fb15k_237_has_the_reference_values(fb, name):
    nonzero, largest = FB[name]
    table = rank_bodies(fb, pattern_named(name))
    assert table.nonzero == len(table) == nonzero
    for i, (relations, support) in enumerate(largest):
        assert (segments(fb, table.predicates[i]), table.support[i]) == (relations, support)


@pytest.mark.parametrize("name", WN)
def test_wn18rr_has_the_reference_values(wn, name):
    table = rank_bodies(wn, pattern_named(name))
    for i, (relations, support) in enumerate(WN[name]):
        ties = np.flatnonzero(table.support == support)
        assert table.support[i] == support
        assert relations in [segments(wn, table.predicates[j]) for j in ties]
    if name == "triangle":
        assert np.count_nonzero(table.support == 1_308) == 3


@pytest.mark.parametrize("name", ["hierarchy", "composition", "intersection", "triangle"])
def test_the_general_path_agrees_with_the_kernels_on_fb15k_237(fb, name):
    one, two = rank_bodies(fb, pattern_named(name)), rank_general(fb, pattern_named(name))
    assert np.array_equal(one.predicates, two.predicates)
    assert np.array_equal(one.support, two.support)


@pytest.mark.parametrize("graph", ["fb", "wn"])
def test_pruning_finds_the_two_hundred_largest_diamonds(graph, request):
    graph = request.getfixturevalue(graph)
    pattern = pattern_named("diamond")
    pruned = rank_bodies(graph, pattern, 200, complete=False)
    whole = rank_bodies(graph, pattern, 200, complete=True)
    assert pruned.nonzero is None
    assert np.array_equal(pruned.predicates, whole.predicates)
    assert np.array_equal(pruned.support, whole.support)


def test_stars_and_inequalities_do_not_enumerate_witnesses(fb):
    star = rank_bodies(fb, parse_pattern("(x,_R,y), (x,_S,z), (x,_T,w) -> (y,_P,z)"), 10)
    degrees = np.zeros((len(fb.relations), len(fb.entities)))
    np.add.at(degrees, (fb.triples[:, 1], fb.triples[:, 0]), 1)
    for row, support in zip(star.predicates, star.support, strict=True):
        assert support == np.prod(degrees[row], axis=0).sum()
    composition = rank_bodies(fb, parse_pattern("(x,_R,y), (y,_S,z), x != z -> (x,_T,z)"), 1)
    assert composition.support.tolist() == [3_169_030]
