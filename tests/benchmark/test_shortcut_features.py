"""Features of a pair that know no rule, each against its definition over sets of triples."""

from __future__ import annotations

from itertools import pairwise, permutations, product
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.benchmark import Feature, FeatureBattery, register_feature, shortcut_features
from loginfer.benchmark.shortcut_features import FEATURES, feature_groups, features_named
from loginfer.errors import UnknownNameError
from loginfer.kg import KnowledgeGraph, Vocabulary, load_graph

STOP, REMAINDER = 0.15, 2e-4
PAGERANKS = ("pagerank-from-subject", "pagerank-from-object")
# `A` and `B` are mostly types; no triple has `unused`.
NAMES = ("A", "B", "a", "b", "c", "d", "e", "unused")

# -- the definition ------------------------------------------------------------------------------------


class Definition:
    """What each feature means, over a set of triples of ids."""

    def __init__(self, graph):
        self.graph = graph
        self.entities = range(len(graph.entities))
        self.triples = {tuple(triple) for triple in graph.triples.tolist()}
        self.edges = {(s, r, o) for s, r, o in self.triples if r != graph.type_relation}
        self.arrows = {(s, o) for s, _, o in self.edges}
        self.adjacent = self.arrows | {(o, s) for s, o in self.arrows}
        self.neighbours = [{o for s, o in self.adjacent if s == entity} for entity in self.entities]
        self.ranks = [self.walks(entity) for entity in self.entities]

    def walks(self, source):
        """Where a walk from a constant ends that stops with probability `STOP` at each step, solved exactly."""
        step = np.zeros((len(self.entities),) * 2)
        for entity, ends in enumerate(self.neighbours):
            step[entity, list(ends)] = 1 / max(len(ends), 1)
            step[entity, entity] += not ends  # who cannot leave stays
        return STOP * np.linalg.inv(np.eye(len(step)) - (1 - STOP) * step)[source]

    def types(self, entity):
        return {o for s, r, o in self.triples if (s, r) == (entity, self.graph.type_relation)}

    def profile(self, entity):
        forward = {(r, "forward") for s, r, _ in self.edges if s == entity}
        return forward | {(r, "backward") for _, r, o in self.edges if o == entity}

    def detour(self, x, y):
        others = set(self.entities) - {x, y}
        for length in (2, 3):
            for between in permutations(others, length - 1):
                path = (x, *between, y)
                if all(pair in self.adjacent for pair in pairwise(path)):
                    return length
        return 4

    def common(self, x, y):
        return (self.neighbours[x] & self.neighbours[y]) - {x, y}

    def most_of_a_type(self, h, column, entity):
        ends = [triple[column] for triple in self.triples if triple[1] == h]
        return max((sum(kind in self.types(end) for end in ends) for kind in self.types(entity)), default=0)

    def features(self, x, h, y):
        """The features of a triple by name."""
        arrows, common = self.arrows, self.common(x, y)
        of_h = [(s, o) for s, r, o in self.triples if r == h]
        relations = {(s, o): {r for a, r, b in self.edges if (a, b) == (s, o)} for s, o in ((x, y), (y, x))}
        at_x, at_y = self.profile(x), self.profile(y)
        is_type = h == self.graph.type_relation
        return {
            "relation-name": len(self.graph.relations) + y if is_type else h,
            "subject-out-degree": sum(s == x for s, _, _ in self.edges),
            "subject-in-degree": sum(o == x for _, _, o in self.edges),
            "object-out-degree": sum(s == y for s, _, _ in self.edges),
            "object-in-degree": sum(o == y for _, _, o in self.edges),
            "subject-as-subject": sum(s == x for s, _ in of_h),
            "subject-as-object": sum(o == x for _, o in of_h),
            "object-as-subject": sum(s == y for s, _ in of_h),
            "object-as-object": sum(o == y for _, o in of_h),
            "parallel": len(relations[x, y] - {h}),
            "reverse": len(relations[y, x]),
            "reverse-other": bool(relations[y, x] - {h}),
            "adjacent": (x, y) in self.adjacent,
            "common-neighbours": len(common),
            "common-forward": sum({(x, z), (z, y)} <= arrows for z in common),
            "common-backward": sum({(y, z), (z, x)} <= arrows for z in common),
            "common-objects": sum({(x, z), (y, z)} <= arrows for z in common),
            "common-subjects": sum({(z, x), (z, y)} <= arrows for z in common),
            "adamic-adar": sum(1 / log(max(len(self.neighbours[z]), 2)) for z in common),
            "profile-overlap": len(at_x & at_y) / max(len(at_x | at_y), 1),
            "subject-profile": len(at_x),
            "object-profile": len(at_y),
            "detour": self.detour(x, y),
            "pagerank-from-subject": self.ranks[x][y],
            "pagerank-from-object": self.ranks[y][x],
            "common-types": len(self.types(x) & self.types(y)),
            "subject-type-fit": self.most_of_a_type(h, 0, x),
            "object-type-fit": self.most_of_a_type(h, 2, y),
        }


# -- random graphs -------------------------------------------------------------------------------------


@st.composite
def graphs(draw):
    """Graphs with loops, parallel edges, types that are constants too, and names that no triple has."""
    used = range(len(NAMES) - 1)
    ends = st.sampled_from([*used[2:], *used])
    triples = draw(st.sets(st.tuples(ends, st.integers(0, 2), ends), max_size=draw(st.sampled_from([0, 4, 9, 25]))))
    if has_types := draw(st.booleans()):
        types = st.sampled_from([0, 0, 1, 1, *used])
        triples |= draw(st.sets(st.tuples(ends, st.just(3), types), max_size=8))
    relations = Vocabulary.of(["R", "S", "T", *(["type"] if has_types else [])])
    rows = np.array(sorted(triples), dtype=np.int32).reshape(-1, 3)
    return KnowledgeGraph(Vocabulary.of(NAMES), relations, rows)


def every_triple(graph):
    entities, relations = range(len(graph.entities)), range(len(graph.relations))
    return np.array(list(product(entities, relations, entities)), dtype=np.int32).reshape(-1, 3)


@settings(max_examples=200)
@given(graph=graphs())
def test_features_are_what_they_are_said_to_be(graph):
    battery, triples, definition = FeatureBattery(graph), every_triple(graph), Definition(graph)
    values = battery.values(triples)
    assert values.dtype == np.float32
    for triple, line in zip(triples.tolist(), values.tolist(), strict=True):
        expected = definition.features(*triple)
        for name, value in zip(battery.names, line, strict=True):
            # Of PageRank, at most the remainder is missing.
            source = definition.neighbours[triple[2 if name == "pagerank-from-subject" else 0]]
            missing = REMAINDER * len(source) if name in PAGERANKS else 0
            assert expected[name] - missing - 1e-6 <= value <= expected[name] + 1e-6, (name, triple)
    typed = graph.type_relation is not None
    assert battery.names == tuple(name for name in FEATURES if typed or FEATURES[name].group != "types")


def test_all_features_have_a_definition():
    graph = KnowledgeGraph.from_names([("a", "R", "b")])
    assert set(Definition(graph).features(0, 0, 1)) == set(FEATURES)
    assert (shortcut_features._STOP, shortcut_features._REMAINDER) == (STOP, REMAINDER)


@given(graph=graphs())
def test_pagerank_from_the_object_is_that_of_a_walk_from_there(graph):
    triples, battery = every_triple(graph), FeatureBattery(graph, PAGERANKS)
    from_object, walked = battery.values(triples)[:, 1], battery.values(triples[:, ::-1])[:, 0]
    neighbours = np.array([len(ends) for ends in Definition(graph).neighbours])
    # Both are too small by at most the remainder at x, so they differ by no more than that.
    assert (abs(from_object - walked) <= REMAINDER * neighbours[triples[:, 0]] + 1e-6).all()


@given(graph=graphs(), cores=st.sampled_from([None, 1, 2, 3, 50]), data=st.data())
def test_neither_threads_nor_order_nor_duplicates_change_values(graph, cores, data):
    triples, battery = every_triple(graph), FeatureBattery(graph)
    rows = np.array(data.draw(st.lists(st.integers(0, len(triples) - 1), max_size=60)), dtype=np.int64)
    expected = battery.values(triples)[rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.cpu_count", lambda: cores)
        assert FeatureBattery(graph).values(triples[rows]).tolist() == expected.tolist()


# -- single cases --------------------------------------------------------------------------------------


def test_a_type_triple_is_no_parallel_edge():
    graph = KnowledgeGraph.from_names([("a", "R", "b"), ("b", "S", "a"), ("a", "type", "b"), ("b", "type", "a")])
    triple = np.array([[graph.entity_id("a"), graph.relation_id("type"), graph.entity_id("b")]], dtype=np.int32)
    names = ("parallel", "reverse", "reverse-other", "subject-out-degree", "subject-as-subject")
    assert FeatureBattery(graph, names).values(triple).tolist() == [[1, 1, 1, 1, 1]]


def test_a_constant_alone_is_where_its_walk_ends():
    graph = KnowledgeGraph(Vocabulary.of(["a", "b"]), Vocabulary.of(["R"]), np.empty((0, 3), dtype=np.int32))
    triples = np.array([[0, 0, 0], [0, 0, 1]], dtype=np.int32)
    assert FeatureBattery(graph, PAGERANKS).values(triples).tolist() == [[1, 1], [0, 0]]


def test_walks_come_to_and_from_a_constant_with_very_many_neighbours():
    leaves = 30_000
    rows = np.column_stack([np.zeros(leaves), np.zeros(leaves), np.arange(1, leaves + 1)]).astype(np.int32)
    graph = KnowledgeGraph(Vocabulary.of([f"{i:05}" for i in range(leaves + 1)]), Vocabulary.of(["R"]), rows)
    values = FeatureBattery(graph, PAGERANKS).values(np.array([[0, 0, 0], [5, 0, 0]], dtype=np.int32))
    # The walk stops at once, or after the one step from a leaf: more than the remainder would allow for.
    assert values == pytest.approx(np.array([[STOP, STOP], [STOP * (1 - STOP), STOP * (1 - STOP) / leaves]]))


@pytest.mark.parametrize("names", [(), ("a", "b")])
def test_no_triples_and_a_graph_without_any_have_features(names):
    relations = Vocabulary.of(["R"] if names else [])
    graph = KnowledgeGraph(Vocabulary.of(names), relations, np.empty((0, 3), dtype=np.int32))
    assert FeatureBattery(graph).values(graph.triples).shape == (0, len(FeatureBattery(graph).names))
    if names:
        values = FeatureBattery(graph).values(np.array([[0, 0, 1]], dtype=np.int32))[0]
        assert dict(zip(FeatureBattery(graph).names, values.tolist(), strict=True))["detour"] == 4
        assert values.sum() == 4


def test_chosen_features_stand_in_the_order_of_their_names():
    graph = KnowledgeGraph.from_names([("a", "R", "b"), ("a", "S", "b"), ("b", "type", "A")])
    names = ("detour", "relation-name", "object-type-fit", "parallel")
    battery, whole = FeatureBattery(graph, names), FeatureBattery(graph)
    assert battery.names == names
    columns = [whole.names.index(name) for name in names]
    assert battery.values(graph.triples).tolist() == whole.values(graph.triples)[:, columns].tolist()
    assert FeatureBattery(graph, ["relation-name"]).values(graph.triples).shape == (3, 1)
    assert FeatureBattery(graph, []).values(graph.triples).shape == (3, 0)


def test_features_about_types_are_left_out_where_there_are_none():
    graph = KnowledgeGraph.from_names([("a", "R", "b")])
    assert FeatureBattery(graph, ["common-types", "adjacent"]).names == ("adjacent",)


def test_an_unknown_feature_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="`adjacen`") as caught:
        FeatureBattery(KnowledgeGraph.from_names([("a", "R", "b")]), ["adjacen"])
    assert "adjacent" in caught.value.hint


# -- names ---------------------------------------------------------------------------------------------


def test_groups_name_their_features_and_the_relation():
    groups = ("popularity", "head", "adjacency", "neighbours", "profile", "distance", "types")
    assert feature_groups() == groups
    assert features_named(["all"]) == features_named(groups) == features_named(["types", "all"]) == tuple(FEATURES)
    assert features_named([]) == ("relation-name",)
    assert features_named(["distance", "profile"]) == ("relation-name", "profile-overlap", "subject-profile",
        "object-profile", "detour", *PAGERANKS)  # fmt: skip


@pytest.mark.parametrize("group", ["popularty", "name"])
def test_an_unknown_group_is_refused_with_the_nearest(group):
    with pytest.raises(UnknownNameError, match=f"`{group}`") as caught:
        features_named(["adjacency", group])
    assert "popularity" in caught.value.hint


def test_a_feature_from_outside_is_one_like_any_other():
    def same_letter(graph, triples):
        return [subject[0] == object_[0] for subject, _, object_ in graph.names(triples)]

    graph = KnowledgeGraph.from_names([("anna", "R", "alan"), ("anna", "R", "bert")])
    feature = Feature("same-letter", "whether both names begin alike", "letters", same_letter)
    before = feature_groups()
    try:
        assert register_feature(feature) is feature
        assert feature_groups() == (*before, "letters")
        assert features_named(["letters"]) == ("relation-name", "same-letter")
        battery = FeatureBattery(graph)
        assert battery.values(graph.triples)[:, battery.names.index("same-letter")].tolist() == [1, 0]
        with pytest.raises(ValueError, match="`same-letter` already"):
            register_feature(feature)
    finally:
        del FEATURES["same-letter"]


def test_a_feature_that_cannot_be_computed_or_has_a_name_of_ours_is_refused():
    with pytest.raises(ValueError, match="does not say how"):
        register_feature(Feature("new", "nothing", "none"))
    with pytest.raises(ValueError, match="`adjacent` already"):
        register_feature(Feature("adjacent", "anything", "adjacency", lambda graph, triples: triples[:, 0]))
    assert "new" not in FEATURES


# -- real graphs ---------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("name", ["WN18RR", "FB15k-237"])
def test_features_of_real_graphs_are_those_of_matrices(data_folder, name):
    sparse = pytest.importorskip("scipy.sparse", reason="the second opinion is SciPy's")
    graph = load_graph(data_folder / f"{name}.tar.gz")
    size = len(graph.entities)
    triples = np.vstack([graph.triples[::20]] * 2)
    triples[::2, 2] = np.random.default_rng(0).integers(size, size=len(triples[::2]))
    subjects, objects = triples[:, 0], triples[:, 2]
    arrows = sparse.csr_matrix((np.ones(len(graph), dtype=bool), graph.triples[:, ::2].T), (size, size)).astype(float)
    either = (arrows + arrows.T).sign()
    degrees = either.sum(axis=1)
    step = (sparse.diags_array(1 / degrees.A1) @ either).tocsr()
    # A constant that is adjacent to itself is no common neighbour of itself and another one.
    arrows, either = ((matrix - sparse.diags_array(matrix.diagonal())).tocsr() for matrix in (arrows, either))
    back = arrows.T.tocsr()

    def common(of_subject, of_object):
        return of_subject[subjects].multiply(of_object[objects]).sum(axis=1).A1

    expected = {
        "common-neighbours": common(either, either),
        "common-forward": common(arrows, back),
        "common-backward": common(back, arrows),
        "common-objects": common(arrows, arrows),
        "common-subjects": common(back, back),
        "adamic-adar": common((either / np.log(np.maximum(degrees.A1, 2))).tocsr(), either),
        "subject-out-degree": np.bincount(graph.triples[:, 0], minlength=size)[subjects],
        "object-in-degree": np.bincount(graph.triples[:, 2], minlength=size)[objects],
    }
    values = FeatureBattery(graph, tuple(expected)).values(triples)
    for column, (feature, of_matrix) in enumerate(expected.items()):
        np.testing.assert_allclose(values[:, column], of_matrix, rtol=1e-5, err_msg=feature)
        assert of_matrix.any(), feature

    sources = triples[:: len(triples) // 10, 0]
    exact, walk = np.zeros((2, len(sources), size))
    walk[np.arange(len(sources)), sources] = STOP
    for _ in range(100):
        exact, walk = exact + walk, (1 - STOP) * (walk @ step)
    pairs = np.array(list(product(sources, [0], range(size))), dtype=np.int32)
    missing = exact - FeatureBattery(graph, PAGERANKS[:1]).values(pairs).reshape(exact.shape)
    assert (missing > -1e-6).all()
    assert (missing < REMAINDER * degrees.A1 + 1e-6).all()
