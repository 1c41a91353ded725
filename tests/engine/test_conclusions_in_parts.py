"""Conclusions in parts are the conclusions, whatever the size of a part."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.random_rules import graphs, rules

from loginfer.engine import extend, open_engine
from loginfer.engine.bodies import predicate_names
from loginfer.engine.native import engine as native
from loginfer.kg import KnowledgeGraph, generate_lubm
from loginfer.logic import instantiate, parse_pattern, parse_rule, pattern_named


@settings(max_examples=100)
@given(data=st.data(), graph=graphs(), new=st.booleans())
def test_parts_are_disjoint_and_make_up_the_conclusions(data, graph, new):
    rule = data.draw(rules(graph))
    graph = extend(graph, [rule])
    parts = list(open_engine(graph).conclusions_in_parts(rule, new=new))
    triples = [tuple(t) for part in parts for t in part.tolist()]
    assert sorted(triples) == brute_force.conclusions(rule, graph, new=new)


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("name", ["composition", "triangle", "(x,_R,z), (y,_S,w), x != y -> (x,_T,y)"])
def test_small_parts_of_many_conclusions_are_put_together_again(monkeypatch, name, new):
    monkeypatch.setattr(native, "PART", 2**10)
    graph = generate_lubm()
    engine = open_engine(graph)
    if "->" in name:
        texts = ["headOf", "subOrganizationOf"]
        base = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
        made = [instantiate(parse_pattern(name), [base + text for text in texts], base + "advisor")]
    else:
        pattern = pattern_named(name)
        table = engine.rank_bodies(pattern, 5)
        made = [instantiate(pattern, names, graph.relations[0]) for names in predicate_names(table, graph)]
    for rule in made:
        parts = list(engine.conclusions_in_parts(rule, new=new))
        keys = np.concatenate([graph.keys.pack(part) for part in parts])
        assert len(np.unique(keys)) == len(keys)
        assert np.array_equal(np.sort(keys), graph.keys.pack(engine.conclusions(rule, new=new)))


@pytest.mark.parametrize("body", ["(x,R,y), (y,S,z)", "(z,R,y), (x,S,y)", "(x,R,y), (y,S,z), (x,S,w), x != z"])
def test_a_search_that_stops_for_each_part_misses_nothing(monkeypatch, body):
    monkeypatch.setattr(native, "PART", 2**10)
    rng = np.random.default_rng(0)
    names = [(f"e{s}", r, f"e{o}") for r in "RS" for s, o in rng.integers(0, 400, size=(4000, 2)).tolist()]
    engine = open_engine(KnowledgeGraph.from_names(names))
    rule = parse_rule(f"{body} -> (x,R,z)")
    for new in (False, True):
        parts = list(engine.conclusions_in_parts(rule, new=new))
        assert len(parts) >= 3
        keys = np.concatenate([engine.graph.keys.pack(part) for part in parts])
        assert np.array_equal(np.sort(keys), engine.graph.keys.pack(engine.conclusions(rule, new=new)))
