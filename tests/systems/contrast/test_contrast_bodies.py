"""The kernels that list and follow bodies, against the definition of each shape and against the engine."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.engine import open_engine
from loginfer.kg import KnowledgeGraph, Vocabulary
from loginfer.systems.contrast import kernels as shapes
from loginfer.systems.contrast.kernels import (
    Bodies,
    BodyCounter,
    add_where_fired,
    enumerate_pairs,
    enumerate_threes,
    enumerate_types,
    fired,
    steps_between,
    typed_graph,
)
from loginfer.systems.rules.paths import new_scratch

PEOPLE, RELATIONS, TYPES = 5, 2, 2


def graph_of(triples, typed):
    entities = Vocabulary.of([f"p{i}" for i in range(PEOPLE)] + [f"t{i}" for i in range(TYPES)])
    relations = Vocabulary.of([*(f"r{i}" for i in range(RELATIONS)), "rdf:type"])
    rows = [(f"p{s}", f"r{r}", f"p{o}") for s, r, o in triples]
    rows += [(f"p{s}", "rdf:type", f"t{t}") for s, t in typed]
    ids = [(list(entities).index(s), list(relations).index(r), list(entities).index(o)) for s, r, o in rows]
    return KnowledgeGraph(entities, relations, np.array(ids, dtype=np.int32).reshape(-1, 3))


person = st.integers(0, PEOPLE - 1)
graphs = st.builds(
    graph_of,
    st.sets(st.tuples(person, st.integers(0, RELATIONS - 1), person), min_size=1, max_size=14),
    st.sets(st.tuples(person, st.integers(0, TYPES - 1)), min_size=1, max_size=6),
)


def steps_of(graph, hidden):
    """Return the steps of a graph as (start, step, end), without one triple."""
    found = set()
    for s, r, o in map(tuple, graph.triples.tolist()):
        if r != graph.type_relation and (s, r, o) != hidden:
            found |= {(s, 2 * r, o), (o, 2 * r + 1, s)}
    return found


def types_of(graph, hidden):
    """Return (constant, place of its type), without one triple."""
    places = {int(t): i for i, t in enumerate(graph.types)}
    return {
        (s, places[o])
        for s, r, o in map(tuple, graph.triples.tolist())
        if r == graph.type_relation and (s, r, o) != hidden
    }


def defined(bodies, s, o, hidden):
    """Return the codes of all bodies that fire for (s, o), by the definition of each shape."""
    steps, types = steps_of(bodies.graph, hidden), types_of(bodies.graph, hidden)
    edges = [a for x, a, y in steps if (x, y) == (s, o)]
    two = [(a, b, z) for x, a, z in steps if x == s for z2, b, y in steps if (z2, y) == (z, o)]
    three = [(a, b, c, z, w) for x, a, z in steps if x == s for b, c, w in _two(steps, z, o)]
    found = {bodies.pack(shapes.EDGE, a) for a in edges}
    found |= {bodies.pack(shapes.PATH2, a, b) for a, b, _ in two}
    found |= {bodies.pack(shapes.BOTH, a, b) for a, b in itertools.product(edges, edges) if a < b}
    found |= {bodies.pack(shapes.TRIANGLE, e, a, b) for e in edges for a, b, z in two if len({s, o, z}) == 3}
    found |= {bodies.pack(shapes.PATH3, a, b, c) for a, b, c, _, _ in three}
    found |= {
        bodies.pack(shapes.DIAMOND, e, a, b, c) for e in edges for a, b, c, z, w in three if len({s, o, z, w}) == 4
    }
    for side, at in enumerate((s, o)):
        found |= {bodies.pack(shapes.EDGE_TYPE, e, side, t) for e in edges for x, t in types if x == at}
    return found


def _two(steps, x, y):
    return [(a, b, z) for x2, a, z in steps if x2 == x for z2, b, y2 in steps if (z2, y2) == (z, y)]


def defined_for_types(bodies, s, hidden):
    steps, types = steps_of(bodies.graph, hidden), types_of(bodies.graph, hidden)
    found = set()
    for own in [t for x, t in types if x == s] + [bodies.absent]:
        if own != bodies.absent:
            found.add(bodies.pack(shapes.TYPED, own, bodies.absent, bodies.absent))
        for x, a, z in steps:
            if x == s:
                ends = [t for y, t in types if y == z] + [bodies.absent]
                found |= {bodies.pack(shapes.TYPED, own, a, end) for end in ends}
    return found


def listed(kernel, bodies, rows, *arguments):
    table = BodyCounter(4096)
    groups = np.zeros(len(rows), dtype=np.int64)
    graph = typed_graph(bodies.graph)
    kernel(rows, groups, len(rows), *arguments, graph, bodies.base, table.for_kernel())
    return {int(code): int(count) for code, count in zip(table.codes, table.counts[:, 0], strict=True)}


@settings(max_examples=60)
@given(graphs, person, person, st.integers(0, RELATIONS - 1))
def test_the_bodies_of_a_pair_are_those_of_the_graph_without_its_triple(graph, s, o, relation):
    bodies = Bodies(graph)
    row = np.array([[s, o]], dtype=np.int32)
    everywhere = np.ones(bodies.steps, dtype=np.bool_)
    found = set(listed(enumerate_pairs, bodies, row, relation, everywhere, True))
    found |= set(listed(enumerate_threes, bodies, row, relation, everywhere, True, 10**9))
    assert found == defined(bodies, s, o, (s, relation, o))


@settings(max_examples=40)
@given(graphs, person, st.integers(0, TYPES - 1))
def test_the_bodies_of_a_typed_constant_are_those_of_the_graph_without_its_triple(graph, s, number):
    bodies = Bodies(graph)
    type_ = graph.entity_id(f"t{number}")
    row = np.array([[s, type_]], dtype=np.int32)
    found = set(listed(enumerate_types, bodies, row, bodies.type_index(type_)))
    assert found == defined_for_types(bodies, s, (s, graph.type_relation, type_))


@settings(max_examples=30)
@given(graphs, st.lists(st.tuples(person, person), min_size=1, max_size=6))
def test_counts_and_lists_of_rows_agree(graph, pairs):
    bodies = Bodies(graph)
    rows = np.array(pairs, dtype=np.int32)
    everywhere = np.ones(bodies.steps, dtype=np.bool_)
    counts = listed(enumerate_pairs, bodies, rows, 0, everywhere, True)
    codes = np.sort(np.array(list(counts), dtype=np.int64))
    table = BodyCounter.holding(codes)
    out = np.empty((len(rows) * len(codes) + 1, 2), dtype=np.int32)
    graph_arrays, wanted = typed_graph(graph), np.arange(len(codes), dtype=np.int32)
    groups = np.zeros(len(rows), dtype=np.int64)
    enumerate_pairs(rows, groups, 0, 0, everywhere, True, graph_arrays, bodies.base, table.for_kernel(wanted, out))
    found = {(int(row), int(codes[column])) for row, column in out[: table.written()]}
    assert len(found) == table.written() == sum(counts.values())
    for row, (s, o) in enumerate(pairs):
        wanted_codes = np.array(sorted(defined(bodies, s, o, (s, 0, o))), dtype=np.int64)
        small = ~np.isin(bodies.unpack(wanted_codes)[:, 0], (shapes.PATH3, shapes.DIAMOND))
        assert {code for r, code in found if r == row} == set(wanted_codes[small].tolist())


@settings(max_examples=40)
@given(graphs, st.data())
def test_a_body_fires_where_its_rule_derives_the_triple_and_only_there(graph, data):
    bodies, arrays = Bodies(graph), typed_graph(graph)
    everyone = list(itertools.product(range(PEOPLE), repeat=2))
    codes = sorted(set().union(*(defined(bodies, s, o, None) for s, o in everyone)))
    codes = data.draw(st.lists(st.sampled_from(codes), min_size=1, max_size=12)) if codes else []
    if not codes:
        return
    rows = np.array(everyone, dtype=np.int32)
    parts = bodies.unpack(np.array(codes, dtype=np.int64))
    out = np.zeros((len(rows), len(codes)), dtype=np.bool_)
    fired(rows, parts, -1, bodies.absent, arrays, out)
    engine = open_engine(graph)
    triples = np.insert(rows, 1, 0, axis=1).astype(np.int32)
    for j, code in enumerate(codes):
        rule = bodies.rule(code, 0, -1)
        assert bodies.rule(bodies.code_of(rule), 0, -1) == rule
        assert np.array_equal(out[:, j], engine.derives([rule], triples)), rule
    # From one end, and from the other.
    weights = 2.0 ** np.arange(len(codes))
    sums = (out @ weights).reshape(PEOPLE, PEOPLE)
    starts = np.arange(PEOPLE, dtype=np.int32)
    for turned, wanted in ((parts, sums), (bodies.turned(parts), sums.T)):
        ends = np.zeros((PEOPLE, len(graph.entities)))
        add_where_fired(starts, turned, weights, arrays, new_scratch(len(graph.entities)), ends)
        assert np.array_equal(ends[:, :PEOPLE], wanted)


@settings(max_examples=40)
@given(graphs, person, person, st.integers(0, RELATIONS - 1))
def test_a_hidden_triple_is_hidden_from_bodies_that_are_followed_too(graph, s, o, relation):
    bodies, arrays = Bodies(graph), typed_graph(graph)
    codes = sorted(defined(bodies, s, o, None))
    row = np.array([[s, o]], dtype=np.int32)
    out = np.zeros((1, len(codes)), dtype=np.bool_)
    parts = bodies.unpack(np.array(codes, dtype=np.int64))
    fired(row, parts, relation, bodies.absent, arrays, out)
    hidden = defined(bodies, s, o, (s, relation, o))
    assert [code in hidden for code in codes] == out[0].tolist()
    between = steps_between(row, relation, arrays, bodies.steps)[0]
    edges = {int(p[1]) for p in bodies.unpack(np.array(sorted(hidden), dtype=np.int64)) if p[0] == shapes.EDGE}
    assert set(np.flatnonzero(between)) == edges


@settings(max_examples=30)
@given(graphs, st.integers(0, TYPES - 1))
def test_bodies_for_types_fire_where_their_rules_derive_the_type(graph, number):
    bodies, arrays = Bodies(graph), typed_graph(graph)
    type_ = graph.entity_id(f"t{number}")
    codes = sorted(set().union(*(defined_for_types(bodies, s, None) for s in range(PEOPLE))))
    rows = np.array([(s, type_) for s in range(PEOPLE)], dtype=np.int32)
    out = np.zeros((PEOPLE, len(codes)), dtype=np.bool_)
    parts = bodies.unpack(np.array(codes, dtype=np.int64))
    fired(rows, parts, -1, bodies.absent, arrays, out)
    engine = open_engine(graph)
    triples = np.insert(rows, 1, graph.type_relation, axis=1).astype(np.int32)
    for j in range(0, len(codes), 3):
        rule = bodies.rule(codes[j], graph.type_relation, type_)
        assert bodies.rule(bodies.code_of(rule), graph.type_relation, type_) == rule
        assert np.array_equal(out[:, j], engine.derives([rule], triples)), rule


def test_a_full_table_takes_no_more_bodies_and_counts_those_it_has():
    graph = graph_of([(0, 0, 1), (0, 1, 1), (0, 0, 2), (2, 0, 1)], [])
    bodies = Bodies(graph)
    table = BodyCounter(2)
    rows, groups = np.array([[0, 1]] * 3, dtype=np.int32), np.zeros(3, dtype=np.int64)
    everywhere = np.ones(bodies.steps, dtype=np.bool_)
    arrays = typed_graph(graph)
    enumerate_pairs(rows, groups, 3, 9, everywhere, True, arrays, bodies.base, table.for_kernel())
    assert len(table) == 2
    assert table.counts[:, 0].tolist() == [3, 3]
    table.clear()
    assert len(table) == 0
