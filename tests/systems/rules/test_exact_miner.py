"""The exact miner against the definition, and against DuckDB on the real graph."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer import load_graph
from loginfer.errors import InputError, LimitError
from loginfer.kg import KnowledgeGraph
from loginfer.systems.rules import exact as exact_long
from loginfer.systems.rules.exact import Exact
from loginfer.systems.rules.mined import as_benchmark

NAMES = "abcdefg"


def graphs(types=False):
    relations = ["r", "s", "t", *(["type"] if types else [])]
    triple = st.tuples(st.sampled_from(NAMES), st.sampled_from(relations), st.sampled_from(NAMES))
    return st.lists(triple, min_size=1, max_size=25).map(KnowledgeGraph.from_names)


def mined(graph, **settings):
    """Return {(head, *body): (predictions, correct, confidence)}."""
    found = Exact(**settings).mine(as_benchmark(graph, "made up"))
    assert found.distinct
    assert not found.others
    table = found.paths
    rules = {}
    for place in range(len(table)):
        key = (int(table.head[place]), *(int(step) for step in table.body[place] if step >= 0))
        assert key not in rules
        rules[key] = (table.predictions[place], table.correct[place], table.confidence[place])
    return rules


def by_definition(graph, length, min_support, min_confidence, smoothing=5):
    """Walk through all paths without repeated entities."""
    edges = {}
    for s, r, o in graph.triples.tolist():
        if r != graph.type_relation:
            edges.setdefault(2 * r, set()).add((s, o))
            edges.setdefault(2 * r + 1, set()).add((o, s))
    rules = {}
    for size in range(1, length + 1):
        for body in product(edges, repeat=size):
            paths = [(x,) for x in range(len(graph.entities))]
            for step in body:
                paths = [(*p, y) for p in paths for x, y in edges[step] if x == p[-1] and y not in p]
            pairs = {(path[0], path[-1]) for path in paths}
            for head in edges:
                if head % 2 or (size == 1 and body[0] == head):
                    continue
                correct = len(pairs & edges[head])
                confidence = correct / (len(pairs) + smoothing)
                if correct >= min_support and confidence >= min_confidence:
                    rules[(head // 2, *body)] = (len(pairs), correct, confidence)
    return rules


@settings(max_examples=60)
@given(graphs(types=True), st.integers(1, 3), st.sampled_from([0.0, 0.01, 0.2]))
def test_rules_up_to_length_2_are_those_of_the_definition(graph, support, confidence):
    found = mined(graph, min_support=support, min_confidence=confidence)
    assert found == by_definition(graph, 2, support, confidence)


@settings(max_examples=30)
@given(graphs(), st.integers(1, 3), st.sampled_from([0.0, 0.25]))
def test_rules_of_length_3_are_those_of_the_definition_within_the_budget(graph, support, confidence):
    found = mined(graph, max_length=3, min_support=support, min_confidence=confidence)
    assert found == by_definition(graph, 3, support, confidence)


@settings(max_examples=30)
@given(graphs(), st.integers(1, 300))
def test_a_sample_of_length_3_has_only_rules_that_hold_with_no_more_than_the_exact_counts(graph, budget):
    sampled = mined(graph, max_length=3, min_support=1, min_confidence=0, budget=budget)
    exact = by_definition(graph, 3, 1, 0)
    for rule, (predictions, correct, _) in sampled.items():
        assert rule in exact
        assert correct <= exact[rule][1]
        assert predictions <= exact[rule][0]
    assert {rule for rule in exact if len(rule) < 4} <= sampled.keys()


def chains(count):
    """Return a graph in which h(X,Y) follows from r(X,A), s(A,B), t(B,Y)."""
    rows = []
    for i in range(count):
        rows += [(f"w{i}", "r", f"x{i}"), (f"x{i}", "s", f"y{i}"), (f"y{i}", "t", f"z{i}")]
        rows += [(f"w{i}", "h", f"z{i}")]
    return KnowledgeGraph.from_names(rows)


def test_sampling_finds_what_is_frequent_and_depends_on_the_seed_alone():
    graph = chains(5000)
    wanted = (graph.relation_id("h"), *(2 * graph.relation_id(name) for name in "rst"))
    sampled = mined(graph, max_length=3, budget=20_000, seed=1)
    predictions, correct, _ = sampled[wanted]
    assert 0 < predictions == correct < 5000
    assert sampled == mined(graph, max_length=3, budget=20_000, seed=1)
    assert sampled != mined(graph, max_length=3, budget=20_000, seed=2)


def test_a_loop_neither_closes_a_path_nor_is_a_prediction():
    rows = [(x, r, x) for x in "abc" for r in ("r", "s")]
    assert mined(KnowledgeGraph.from_names(rows), min_support=1, min_confidence=0) == {}


def test_confidence_has_the_smoothing_that_is_set():
    graph = KnowledgeGraph.from_names([("a", "r", "b"), ("c", "r", "d"), ("a", "s", "b"), ("e", "s", "f")])
    r, s = graph.relation_id("r"), graph.relation_id("s")
    assert mined(graph, min_support=1, max_length=1)[r, 2 * s] == (2, 1, 1 / 7)
    assert mined(graph, min_support=1, max_length=1, smoothing=0)[r, 2 * s] == (2, 1, 1 / 2)


def test_an_empty_graph_has_no_rules():
    graph = KnowledgeGraph.from_names([("a", "r", "b")])
    nothing = graph.with_triples(graph.triples[:0])
    assert mined(nothing, max_length=3, min_support=1, min_confidence=0) == {}


def test_mining_goes_on_in_pieces_and_gives_what_it_has_found_in_between():
    mining = Exact(max_length=3, min_support=1).begin(as_benchmark(chains(5), "made up"))
    sizes = [len(mining.rules())]
    while mining.advance():
        what, done, total = mining.progress()
        assert what.startswith("length")
        assert done <= total
        sizes.append(len(mining.rules()))
    assert sizes[0] == 0
    assert sizes == sorted(sizes)
    assert len(sizes) > 8
    assert mining.checkpoint() is None


def test_rules_come_best_first():
    table = Exact(max_length=3, min_support=1).mine(as_benchmark(chains(5), "made up")).paths
    assert (table.best_first == np.arange(len(table))).all()


def test_a_graph_that_is_too_large_for_length_3_is_refused(monkeypatch):
    monkeypatch.setattr(exact_long, "POINTER_BYTES", 10)
    with pytest.raises(LimitError, match="--max-length 2"):
        mined(chains(3), max_length=3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"max_length": 4}, "at most 3"), ({"min_support": 0}, "at least 1"), ({"min_confidence": 2}, "most 1")],
)
def test_bad_settings_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        Exact(**wrong)


# -- the real graph --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fb(data_folder):
    return load_graph("fb15k-237")


@pytest.fixture(scope="module")
def fb_rules(fb):
    return Exact().mine(as_benchmark(fb, "fb15k-237")).paths


@pytest.mark.data
def test_fb15k_237_has_696_rules_of_length_1_and_12611_of_length_2(fb_rules):
    assert np.bincount(fb_rules.length).tolist() == [0, 696, 12_611]


@pytest.mark.data
def test_the_counts_of_300_rules_of_fb15k_237_are_those_of_duckdb(fb, fb_rules):
    duckdb = pytest.importorskip("duckdb")
    triples = fb.triples[fb.triples[:, 0] != fb.triples[:, 2]]
    connection = duckdb.connect(config={"threads": 1})
    connection.register("triples", dict(zip("sro", np.ascontiguousarray(triples.T), strict=True)))
    connection.execute("CREATE TABLE e AS SELECT s, 2 * r AS d, o FROM triples")
    connection.execute("INSERT INTO e SELECT o, d + 1, s FROM e")
    for place in np.random.default_rng(0).choice(len(fb_rules), 300, replace=False):
        head, (first, second, _) = int(fb_rules.head[place]), fb_rules.body[place].tolist()
        pairs = f"SELECT s, o FROM e WHERE d = {first}"
        if second >= 0:
            pairs = f"""SELECT DISTINCT a.s, b.o FROM e a JOIN e b ON a.o = b.s
                WHERE a.d = {first} AND b.d = {second} AND a.s <> b.o"""
        counted = connection.execute(
            f"SELECT count(*), count(h.s) FROM ({pairs}) p "
            f"LEFT JOIN (SELECT s, o FROM e WHERE d = {2 * head}) h ON h.s = p.s AND h.o = p.o"
        ).fetchone()
        assert counted == (fb_rules.predictions[place], fb_rules.correct[place])
