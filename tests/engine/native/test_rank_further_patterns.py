"""rank_bodies of the patterns beyond Table 1: the definition on small graphs, two engines on real ones."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.random_rules import graphs

from loginfer.engine import open_engine
from loginfer.engine.bodies import predicate_names
from loginfer.kg import load_graph
from loginfer.logic import canonical_text, instantiate, pattern_named

NAMES = ("super-hierarchy", "cup", "fork")


def supports(pattern, graph):
    """The support of every body by its canonical text, from the definition."""
    found = {}
    for names in product(graph.relations.names(graph.rels), repeat=len(pattern.templates)):
        rule = instantiate(pattern, names, "_")
        if support := brute_force.support(rule, graph):
            found[canonical_text(rule)] = support
    return found


@settings(max_examples=30)
@given(graph=graphs(), name=st.sampled_from(NAMES), top=st.none() | st.integers(1, 4))
def test_both_engines_count_the_witnesses_of_every_body(graph, name, top):
    pattern = pattern_named(name)
    wanted = supports(pattern, graph)
    for kind in ("native", "duckdb"):
        table = open_engine(graph, kind).rank_bodies(pattern, top)
        bodies = [canonical_text(instantiate(pattern, n, "_")) for n in predicate_names(table, graph)]
        assert len(set(bodies)) == len(bodies) == min(len(wanted), len(wanted) if top is None else top)
        assert [wanted[text] for text in bodies] == table.support.tolist()
        assert table.support.tolist() == sorted(wanted.values(), reverse=True)[: len(bodies)]


@pytest.mark.data
@pytest.mark.parametrize("kg", ["WN18RR", "FB15k-237"])
@pytest.mark.parametrize("name", NAMES)
def test_both_engines_agree_on_real_graphs(data_folder, kg, name):
    graph = load_graph(data_folder / f"{kg}.tar.gz")
    pattern = pattern_named(name)
    one, two = (open_engine(graph, kind).rank_bodies(pattern, 50) for kind in ("native", "duckdb"))
    assert np.array_equal(one.predicates, two.predicates)
    assert np.array_equal(one.support, two.support)
    assert len(one) == 50
