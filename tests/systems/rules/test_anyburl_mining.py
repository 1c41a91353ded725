"""AnyBURL from graph to rules: everything there is to find, reproducibly, and what cannot be mined."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sampled_rules import Edges, acyclic_rows, graph_of, graphs, is_trivial, mine, predictions, rows_of

from loginfer import load_graph
from loginfer.errors import InputError
from loginfer.kg import RDF_TYPE
from loginfer.systems.interface import Checkpoint
from loginfer.systems.rules import anyburl as anyburl_mining
from loginfer.systems.rules.anyburl import AnyBURL
from loginfer.systems.rules.mined import BOTH, NONE, as_benchmark, to_arrays
from loginfer.systems.rules.texts import rule_lines

# Where x likes y, y knows x; half of them also hate them. Enough for rules of every shape.
CROWD = [
    triple
    for i in range(12)
    for triple in (
        f"p{i:02} likes p{(i + 1) % 12:02}",
        f"p{(i + 1) % 12:02} knows p{i:02}",
        f"p{i:02} from {'ulm' if i % 3 else 'bonn'}",
        f"p{i:02} speaks {'swabian' if i % 3 else 'ripuarian'}",
    )
]


def mined_bytes(mined):
    return {name: array.tobytes() for name, array in to_arrays(mined).items()}


def texts(graph, mined):
    return {line.split("\t")[-1].replace(RDF_TYPE, "type") for line in rule_lines(mined, graph)}


@pytest.mark.parametrize("types", [False, True])
@settings(max_examples=8)
@given(data=st.data())
def test_every_acyclic_rule_there_is_is_found_with_all_its_predictions(types, data):
    graph = data.draw(graphs(types, most=14))
    found = mine(AnyBURL(steps=25, min_support=1, min_confidence=0), graph)
    expected, edges = {}, Edges(graph)
    for row in acyclic_rows(graph, 1):
        if is_trivial(row):
            continue
        predicted, correct = predictions(edges, row)
        if correct:
            expected[row] = (len(predicted), len(correct))
    with_loops = {row: counts for row, counts in expected.items() if edges.itself in row[2:4]}
    without = {row: counts for row, counts in expected.items() if row not in with_loops}
    assert {row: counts for row, counts in rows_of(found.paths).items() if row[1] != BOTH} == without
    assert sorted((s.predictions, s.correct) for s in found.others) == sorted(with_loops.values())


@settings(max_examples=8)
@given(graph=graphs(types=True, most=14))
def test_cyclic_rules_are_counted_from_both_ends_and_never_trivial(graph):
    found = mine(AnyBURL(steps=15, min_support=1, min_confidence=0, max_acyclic=0), graph)
    for row, (counted, right) in rows_of(found.paths).items():
        assert not is_trivial(row)
        if row[1] != BOTH:
            continue
        assert graph.type_relation not in {row[0], *(step >> 1 for step in row[4])}
        predicted, correct = predictions(graph, row)
        assert right <= counted <= 2 * len(predicted)
        assert 1 <= right <= 2 * len(correct)


def test_rules_of_all_shapes_are_found():
    graph = graph_of(CROWD)
    found = mine(AnyBURL(steps=40, min_zero_support=4, max_acyclic=2), graph)
    assert {
        "likes(X,Y) <= knows(Y,X)",
        "from(X,ulm) <= speaks(X,swabian)",
        "speaks(X,ripuarian) <= from(X,bonn)",
        "from(X,ulm) <= likes(X,A)",
        "from(X,ulm) <= likes(X,A), likes(A,B)",
        "from(X,ulm) <= likes(X,A), from(A,bonn)",
        "from(X,ulm) <= ",
        "from(X,Y) <= speaks(X,A), speaks(B,A), from(B,Y)",
    } <= texts(graph, found)
    assert all(length <= 2 for length in found.paths.length[found.paths.variables != BOTH])


def test_a_relation_that_holds_between_a_constant_and_the_same_others_becomes_a_rule_with_constants():
    graph = graph_of(["ann likes hub", "ann knows hub", "bob likes hub", "bob knows hub", "cid knows dan"])
    found = texts(graph, mine(AnyBURL(steps=10, max_acyclic=0), graph))
    assert {"likes(X,hub) <= knows(X,hub)", "knows(X,hub) <= likes(X,hub)", "likes(X,Y) <= knows(X,Y)"} <= found
    assert "likes(ann,Y) <= knows(ann,Y)" not in found, "it has one correct prediction only"


def test_loops_become_rules_about_loops_and_close_no_path():
    graph = graph_of([t for i in range(4) for t in (f"e{i} is e{i}", f"e{i} likes e{i}", f"e{i} has f{i}")])
    found = mine(AnyBURL(steps=20, max_acyclic=1), graph)
    assert texts(graph, found) == {
        "is(X,X) <= likes(X,X)",
        "likes(X,X) <= is(X,X)",
        "is(X,X) <= has(X,A)",
        "likes(X,X) <= has(X,A)",
    }
    assert {(s.predictions, s.correct, s.confidence) for s in found.others} == {(4, 4, 1.0)}


def test_types_only_end_paths_and_have_no_rules_for_their_members_alone():
    people = [t for i in range(5) for t in (f"p{i} type Person", f"p{i} type Agent", f"p{i} has h{i}")]
    graph = graph_of(people, "type")
    found = texts(graph, mine(AnyBURL(steps=20, min_zero_support=3), graph))
    assert found == {
        "type(X,Person) <= type(X,Agent)",
        "type(X,Agent) <= type(X,Person)",
        "type(X,Person) <= has(X,A)",
        "type(X,Agent) <= has(X,A)",
        "type(X,Person) <= ",
        "type(X,Agent) <= ",
    }


def test_only_rules_above_the_thresholds_are_kept():
    graph = graph_of(CROWD)
    found = mine(AnyBURL(steps=30, min_support=3, min_confidence=0.6, min_zero_support=5), graph).paths
    assert len(found)
    assert np.all(found.correct >= 3)
    assert np.all(found.correct >= 0.6 * found.predictions)
    zero = found.take(found.length == 0)
    assert np.all(zero.correct >= 5)
    assert len(zero) == 2
    assert np.array_equal(found.confidence, found.correct / found.predictions)
    weaker = rows_of(mine(AnyBURL(steps=30), graph).paths)
    assert rows_of(found.take(found.length > 0)).items() <= weaker.items()
    assert not any(row[4] == () for row in weaker), "no zero rule has more than 100 correct predictions"


def test_no_rule_is_found_twice():
    found = mine(AnyBURL(steps=40), graph_of(CROWD)).paths
    assert len(rows_of(found)) == len(found)


# -- reproducible --------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    graph = graph_of(CROWD)
    first, again, other = (mined_bytes(mine(AnyBURL(steps=12, seed=seed), graph)) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_a_mining_that_is_stopped_and_resumed_ends_with_the_same_bytes(monkeypatch):
    # A pause after every batch.
    monkeypatch.setattr(anyburl_mining, "_PAUSE", 0.0)
    monkeypatch.setattr(anyburl_mining.AnyBURLMining, "advance", advance_by_one_batch)
    system, benchmark = AnyBURL(steps=9, max_acyclic=2), as_benchmark(graph_of(CROWD), "crowd")
    whole = system.begin(benchmark)
    states = []
    while whole.advance():
        states.append(whole.checkpoint())
    assert len(states) == 8
    for state in (states[0], states[5]):
        kept = Checkpoint({name: array.copy() for name, array in state.arrays.items()}, dict(state.facts))
        resumed = system.begin(benchmark, kept)
        assert resumed.progress() == ("batches", state.facts["batch"], 9)
        while resumed.advance():
            pass
        assert mined_bytes(resumed.rules()) == mined_bytes(whole.rules())
        for name, array in whole.checkpoint().arrays.items():
            assert np.array_equal(resumed.checkpoint().arrays[name], array), name


def advance_by_one_batch(self):
    self._run_batch()
    return self._goes_on()


def test_rules_are_there_before_the_end_and_stay(monkeypatch):
    monkeypatch.setattr(anyburl_mining.AnyBURLMining, "advance", advance_by_one_batch)
    mining = AnyBURL(steps=10).begin(as_benchmark(graph_of(CROWD), "crowd"))
    assert len(mining.rules()) == 0
    before = {}
    while mining.advance():
        now = rows_of(mining.rules().paths)
        assert before.items() <= now.items()
        before = now
    assert before


def test_it_does_not_matter_how_much_room_there_is_at_first(monkeypatch):
    graph = graph_of(CROWD)
    plenty = mined_bytes(mine(AnyBURL(steps=15), graph))
    monkeypatch.setattr(anyburl_mining, "_CAPACITY", 4)
    assert mined_bytes(mine(AnyBURL(steps=15), graph)) == plenty


def test_a_time_ends_the_mining_instead_of_a_number_of_batches(monkeypatch):
    class Clock:
        now = 0.0

        def monotonic(self):
            self.now += 0.1
            return self.now

    monkeypatch.setattr(anyburl_mining, "time", Clock())
    mining = AnyBURL(seconds=3, steps=1).begin(as_benchmark(graph_of(CROWD), "crowd"))
    while mining.advance():
        pass
    what, done, total = mining.progress()
    assert (what, done, total) == ("seconds", 3, 3)
    assert mining.checkpoint().facts["batch"] > 1
    assert len(mining.rules()) > 0


def test_classes_of_walks_are_chosen_by_what_they_earned():
    mining = AnyBURL(steps=1).begin(as_benchmark(graph_of(CROWD), "crowd"))
    mining._batches[:] = 1
    mining._rewards[:] = [0, 0, 30, 0, 10]
    chosen = []
    for batch in range(400):
        mining._batch = batch + 5
        chosen.append(mining._choose())
    shares = np.bincount(chosen, minlength=5) / 400
    # One tenth is for all five alike.
    assert shares == pytest.approx([0.02, 0.02, 0.695, 0.02, 0.245], abs=0.06)
    mining._batch = 0
    mining._rewards[:] = 0
    assert mining._choose() in range(5)


# -- nothing to find -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "triples",
    [[], ["e1 ra e2"], ["e1 ra e1"], ["e1 ra e2", "e3 rb e4"], ["e1 type Thing"]],
    ids=["empty", "one triple", "one loop", "no path", "one type"],
)
def test_graphs_without_rules_are_mined_in_no_time(triples):
    graph = graph_of(triples, "type" if "type" in str(triples) else "")
    assert len(mine(AnyBURL(steps=20, max_acyclic=3), graph)) == 0


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"max_length": 4}, {"min_support": 0}, {"seconds": -1.0}])
def test_settings_out_of_bounds_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        AnyBURL(**wrong)


# -- the real graph ------------------------------------------------------------------------------


@pytest.mark.data
def test_counts_of_acyclic_rules_of_wn18rr_are_exact(data_folder, monkeypatch):
    monkeypatch.setenv("LOGINFER_DATA", str(data_folder))
    graph = load_graph("wn18rr")
    found = mine(AnyBURL(steps=12), graph).paths
    few = found.take((found.variables != BOTH) & (found.end_constant != NONE) & (found.predictions < 2000))
    assert len(few) > 5000
    pairs = {}
    for s, r, o in graph.triples.tolist():
        if s != o:
            pairs.setdefault((2 * r, o), set()).add(s)
            pairs.setdefault((2 * r + 1, s), set()).add(o)
    for (head, variables, constant, end, steps), counts in list(rows_of(few).items())[::50]:
        predicted = pairs[steps[0], end] - {constant}
        true = pairs[2 * head + (variables == 2), constant]
        assert counts == (len(predicted), len(predicted & true))
