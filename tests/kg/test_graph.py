import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.errors import LimitError, UnknownNameError
from loginfer.kg import RDF_TYPE, KnowledgeGraph, Vocabulary, sorted_unique
from loginfer.kg.graph import FORWARD, INVERSE, RelationIndex, TripleKeys, even_parts

ENTITIES, RELATIONS = 5, 3
ids = st.lists(
    st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)), max_size=40
)
quick = settings(max_examples=60, deadline=None)


def graph_of(rows, **more):
    return KnowledgeGraph(
        Vocabulary.of("abcde"), Vocabulary.of("rst"), np.array(rows, dtype=np.int32).reshape(-1, 3), **more
    )


@quick
@given(ids)
def test_triples_are_sorted_and_unique_however_they_come(rows):
    graph = graph_of(rows)
    assert list(map(tuple, graph.triples.tolist())) == sorted(set(rows))
    assert graph.triples.dtype == np.int32
    assert graph == graph_of(sorted(rows)) == graph_of([*rows, *rows])
    assert not graph.triples.flags.writeable


@quick
@given(ids)
def test_a_graph_of_keys_is_the_graph_of_their_triples(rows):
    graph = graph_of(rows)
    keys = graph.keys.pack(np.array(rows, dtype=np.int32).reshape(-1, 3))
    assert KnowledgeGraph.from_keys(graph.entities, graph.relations, keys) == graph


@quick
@given(ids)
def test_keys_keep_the_order_of_triples_and_unpack_to_them(rows):
    triples = np.array(rows, dtype=np.int32).reshape(-1, 3)
    keys = TripleKeys(ENTITIES, RELATIONS)
    assert keys.unpack(keys.pack(triples)).tolist() == triples.tolist()
    assert np.argsort(keys.pack(triples), kind="stable").tolist() == sorted(range(len(rows)), key=rows.__getitem__)


@quick
@given(ids, ids)
def test_contains_tells_members_from_others(rows, asked):
    graph = graph_of(rows)
    assert graph.contains(asked).tolist() == [row in set(rows) for row in asked]


def test_ids_outside_the_vocabularies_are_in_no_graph():
    # (0, 0, -1) packs to the key before (0, 0, 0), and (0, 1, -1) to that of (0, 0, 4).
    graph = graph_of([(0, 0, 4), (1, 0, 0)])
    assert graph.contains([(0, 1, -1), (0, 3, 0), (0, 0, 4), (-1, 0, 0)]).tolist() == [False, False, True, False]


@pytest.mark.parametrize("row", [(-1, 0, 0), (5, 0, 0), (0, 3, 0), (0, 0, 5)])
def test_a_graph_refuses_ids_outside_its_vocabularies(row):
    with pytest.raises(ValueError, match="outside the vocabularies"):
        graph_of([row])


def test_a_graph_refuses_keys_outside_its_vocabularies():
    with pytest.raises(ValueError, match="outside the vocabularies"):
        KnowledgeGraph.from_keys(Vocabulary.of("ab"), Vocabulary.of("r"), np.array([4], dtype=np.int64))


def test_triples_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"shape \(n, 3\)"):
        sorted_unique(np.zeros((2, 2), dtype=np.int32), TripleKeys(1, 1))


def test_keys_that_would_not_fit_64_bits_are_refused():
    with pytest.raises(LimitError, match="too large"):
        TripleKeys(2**30, 2**10)


@quick
@given(ids)
def test_the_index_holds_each_relation_in_both_directions(rows):
    graph = graph_of(rows)
    index = graph.index
    for r in range(RELATIONS):
        pairs = sorted({(s, o) for s, q, o in rows if q == r})
        assert list(zip(*(a.tolist() for a in index.pairs(r)), strict=True)) == pairs
        swapped = sorted((o, s) for s, o in pairs)
        assert list(zip(*(a.tolist() for a in index.inverse_pairs(r)), strict=True)) == swapped
        for x in range(ENTITIES):
            forward, inverse = index.pointers(r, FORWARD), index.pointers(r, INVERSE)
            assert index.columns[forward[x] : forward[x + 1]].tolist() == [o for s, o in pairs if s == x]
            assert index.columns[inverse[x] : inverse[x + 1]].tolist() == sorted(s for s, o in pairs if o == x)


@quick
@given(ids)
def test_the_steps_of_an_entity_are_its_triples_in_both_directions(rows):
    graph = graph_of(rows)
    view = graph.steps
    assert [view.pointers.dtype, view.steps.dtype, view.ends.dtype] == [np.int64, np.int32, np.int32]
    assert len(view.pointers) == ENTITIES + 1
    assert view.pointers[-1] == len(view.steps) == 2 * len(graph)
    for x in range(ENTITIES):
        part = slice(view.pointers[x], view.pointers[x + 1])
        forward = [(2 * r + FORWARD, o) for s, r, o in set(rows) if s == x]
        inverse = [(2 * r + INVERSE, s) for s, r, o in set(rows) if o == x]
        assert list(zip(view.steps[part].tolist(), view.ends[part].tolist(), strict=True)) == sorted(forward + inverse)


def test_the_index_of_a_graph_with_very_many_relations_is_the_same():
    rows = np.array([[1, 70_000, 0], [0, 3, 1], [0, 70_000, 1]], dtype=np.int32)
    index = RelationIndex(sorted_unique(rows, TripleKeys(2, 80_000)), 2, 80_000)
    assert [a.tolist() for a in index.pairs(70_000)] == [[0, 1], [1, 0]]
    assert [a.tolist() for a in index.inverse_pairs(70_000)] == [[0, 1], [1, 0]]


@pytest.mark.parametrize("name", [RDF_TYPE, f"<{RDF_TYPE}>", "rdf:type", "type"])
def test_the_type_predicate_is_recognised_and_types_are_no_constants(name):
    graph = KnowledgeGraph.from_names([("ann", name, "Person"), ("ann", "knows", "bob")])
    assert graph.type_predicate == name
    assert graph.entities.names(graph.types) == ["Person"]
    assert graph.entities.names(graph.consts) == ["ann", "bob"]
    assert graph.relations.names(graph.rels) == ["knows"]
    assert len(graph.preds) == 2
    assert graph.relation_id("rdf:type") == graph.type_relation


def test_a_type_that_is_used_as_a_constant_is_one_too():
    graph = KnowledgeGraph.from_names([("ann", "type", "Person"), ("Person", "label", "x")])
    assert "Person" in graph.entities.names(graph.consts)
    assert graph.entities.names(graph.types) == ["Person"]


def test_the_type_predicate_can_be_set_or_denied():
    rows = [("ann", "isa", "Person"), ("ann", "type", "x")]
    assert KnowledgeGraph.from_names(rows, type_predicate="isa").type_predicate == "isa"
    assert KnowledgeGraph.from_names(rows, type_predicate="").type_predicate is None
    with pytest.raises(UnknownNameError, match="did you mean `isa`"):
        KnowledgeGraph.from_names(rows, type_predicate="is")


def test_a_denied_type_predicate_stays_denied_in_larger_vocabularies():
    graph = KnowledgeGraph.from_names([("ann", "type", "x")], type_predicate="")
    assert graph.with_names(relations=["knows"]).type_predicate is None
    assert graph.with_triples([]).type_predicate is None


def test_a_graph_without_types_gains_the_predicate_when_given_it():
    graph = KnowledgeGraph.from_names([("ann", "knows", "bob")])
    assert graph.with_names(relations=[RDF_TYPE]).type_predicate == RDF_TYPE


@quick
@given(ids)
def test_larger_vocabularies_hold_the_same_triples_by_name(rows):
    graph = graph_of(rows)
    larger = graph.with_names(entities=["aa", "c", "z"], relations=["q"])
    assert larger.names(larger.triples) == graph.names(graph.triples)
    assert graph.with_names(entities=["a"]) is graph


def test_unknown_names_come_with_the_nearest_known_ones():
    graph = KnowledgeGraph.from_names([("ann", "/people/person/nationality", "uk")])
    with pytest.raises(UnknownNameError, match="did you mean `/people/person/nationality`"):
        graph.relation_id("nationality")
    with pytest.raises(UnknownNameError, match="unknown constant `anne`"):
        graph.entity_id("anne")
    assert graph.entities[graph.entity_id("uk")] == "uk"


def test_an_empty_graph_has_everything_empty():
    graph = KnowledgeGraph.from_names([])
    assert len(graph) == len(graph.consts) == len(graph.types) == len(graph.rels) == 0
    assert graph.contains([(0, 0, 0)]).tolist() == [False]
    assert graph.index.columns.tolist() == []
    assert "0 triples" in repr(graph)


@given(
    keys=st.lists(st.integers(0, 40), unique=True).map(sorted),
    others=st.lists(st.integers(0, 40), unique=True).map(sorted),
)
def test_sorted_keys_are_merged_and_subtracted_as_sets(keys, others):
    from loginfer.kg.graph import keys_without, merged_keys

    left, right = np.array(keys, dtype=np.int64), np.array(others, dtype=np.int64)
    assert keys_without(left, right).tolist() == sorted(set(keys) - set(others))
    assert merged_keys(left, right).tolist() == sorted(set(keys) | set(others))


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40).map(sorted), count=st.integers(1, 9))
def test_even_parts_hold_all_rows_and_keep_equal_ones_together(rows, count):
    columns = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    parts = even_parts(count, *columns)
    assert [row for part in parts for row in rows[part]] == rows
    assert len({row for part in parts for row in set(rows[part])}) == sum(len(set(rows[part])) for part in parts)
    assert len(parts) <= count
    distinct = np.arange(60)
    assert {len(distinct[part]) for part in even_parts(6, distinct)} == {10}
