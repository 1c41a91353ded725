import numpy as np

from loginfer.engine.bodies import body_texts, finish_table, predicate_names
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_pattern


def graph_with(*relations: str) -> KnowledgeGraph:
    return KnowledgeGraph.from_names([("a", r, "b") for r in relations])


def table(graph, pattern, rows, **options):
    predicates = np.array([r for r, _ in rows], dtype=np.int32)
    support = np.array([n for _, n in rows], dtype=np.int64)
    return finish_table(graph, parse_pattern(pattern), predicates, support, **options)


def test_of_symmetric_bodies_one_stays_and_collapsed_ones_go():
    graph = graph_with("R", "S", "T")
    rows = [((i, j), 5) for i in range(3) for j in range(3)]
    found = table(graph, "intersection", rows)
    assert predicate_names(found, graph) == [("R", "S"), ("R", "T"), ("S", "T")]
    assert found.nonzero == 3


def test_composition_keeps_ordered_pairs_and_equal_relations():
    graph = graph_with("R", "S")
    rows = [((i, j), 1) for i in range(2) for j in range(2)]
    assert len(table(graph, "composition", rows)) == 4


def test_bodies_are_sorted_by_support_then_by_their_text():
    # '!' and ' ' sort before ',' in the text, and names that need brackets before all others.
    graph = graph_with("R", "R-1", "R+", "Q x", "R#")
    n = len(graph.relations)
    rows = [((i, j), 1 + (i == j)) for i in range(n) for j in range(n)]
    found = table(graph, "composition", rows)
    keys = list(zip((-found.support).tolist(), body_texts(found, graph), strict=True))
    assert keys == sorted(keys)
    assert len(keys) == n * n


def test_the_top_is_the_beginning_of_the_whole_table():
    graph = graph_with(*"ABCDEFG")
    rng = np.random.default_rng(0)
    rows = [((i, j), int(rng.integers(0, 4))) for i in range(7) for j in range(7)]
    whole = table(graph, "composition", rows)
    assert (whole.support > 0).all()
    for top in (0, 1, 5, 20, 100):
        part = table(graph, "composition", rows, top=top)
        assert part.predicates.tolist() == whole.predicates[:top].tolist()
        assert part.nonzero == whole.nonzero


def test_type_templates_are_named_by_the_vocabulary_of_entities():
    graph = KnowledgeGraph.from_names([("a", "type", "C"), ("a", "R", "b")])
    c = graph.entities.index("C")
    r = graph.relations.index("R")
    found = table(graph, "(x,type,_t), (x,_R,y) -> (y,type,_t)", [((c, r), 1)])
    assert body_texts(found, graph) == ["(x,type,C), (x,R,y)"]
