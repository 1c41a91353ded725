"""RuleN: its bodies and confidences against trying everything, its orders, and what it keeps."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sampled_rules import Edges, graph_of, graphs, mine, predictions, rows_of

from loginfer.errors import InputError
from loginfer.systems.rules import rulen as rulen_mining
from loginfer.systems.rules.mined import BOTH, NONE, OBJECT, SUBJECT, as_benchmark, to_arrays
from loginfer.systems.rules.rulen import HEAD_SIDE, TAIL_SIDE, RuleN
from loginfer.systems.rules.texts import rule_lines


def run(system, graph):
    mining = system.begin(as_benchmark(graph, "made up"))
    while mining.advance():
        pass
    return mining


def texts(graph, mined):
    return {line.split("\t")[-1] for line in rule_lines(mined, graph)}


def explained(graph, head, length):
    """Return for each body how many triples of a relation it explains, by trying all paths."""
    edges = Edges(graph)
    found = Counter()
    for x, y in edges.along[2 * head]:
        paths = [((x,), ())]
        for _ in range(length):
            paths = [
                ((*path, b), (*steps, step))
                for path, steps in paths
                for step, pairs in edges.along.items()
                for a, b in pairs
                if a == path[-1] and b not in path
            ]
        found.update({steps for path, steps in paths if path[-1] == y} - {(2 * head,)})
    return found


def sides_of(mining):
    """Return the confidences of the rules so far, counted from either side."""
    predicted, correct = np.moveaxis(mining.checkpoint().arrays["counts"], 2, 0)
    share = correct / np.maximum(predicted, 1)
    return SimpleNamespace(head=share[:, HEAD_SIDE], tail=share[:, TAIL_SIDE])


@settings(max_examples=25)
@given(graph=graphs(types=True), length=st.integers(1, 3))
def test_bodies_are_those_of_all_paths_and_both_sides_count_all_their_pairs(graph, length):
    mining = run(RuleN(max_length=length, min_support=1), graph)
    table, sides = mining.rules().paths, sides_of(mining)
    found = {row: place for place, row in enumerate(rows_of(table)) if row[1] == BOTH}
    expected = {
        (head, BOTH, NONE, NONE, steps)
        for head in graph.rels.tolist()
        for size in range(1, length + 1)
        for steps in explained(graph, head, size)
    }
    assert set(found) == expected
    for row, place in found.items():
        predicted, correct = predictions(graph, row)
        # With fewer than s2 pairs each side has all of them.
        share = len(correct) / len(predicted)
        assert (sides.head[place], sides.tail[place]) == (share, share)
        assert table.confidence[place] == share
        assert (table.predictions[place], table.correct[place]) == (len(predicted), len(correct))


@settings(max_examples=25)
@given(graph=graphs(loops=False, least=6), enough=st.integers(1, 4))
def test_a_side_is_counted_until_there_are_enough_pairs_each_start_with_all_its_own(graph, enough):
    mining = run(RuleN(min_support=1, s2=enough, order="file"), graph)
    sides = sides_of(mining)
    for place, row in enumerate(rows_of(mining.rules().paths)):
        if row[1] != BOTH:
            continue
        predicted, correct = predictions(graph, row)
        for side, column in ((sides.tail, 0), (sides.head, 1)):
            seen = set()
            for start in sorted({pair[column] for pair in predicted}):
                if len(seen) >= enough:
                    break
                seen |= {pair for pair in predicted if pair[column] == start}
            assert side[place] == len(seen & correct) / len(seen)


def test_constants_have_their_share_of_the_triples_on_the_side_that_they_predict():
    graph = graph_of(["e1 likes hub", "e2 likes hub", "e3 likes hub", "e3 likes e4"])
    mining = run(RuleN(), graph)
    table, sides = mining.rules().paths, sides_of(mining)
    rows = list(rows_of(table))
    assert texts(graph, mining.rules()) == {"likes(X,hub) <= ", "likes(e3,Y) <= "}
    hub = next(place for place, row in enumerate(rows) if row[1] == SUBJECT)
    subject = next(place for place, row in enumerate(rows) if row[1] == OBJECT)
    assert (sides.head[hub], sides.tail[hub], table.confidence[hub]) == (0, 0.75, 0.75)
    assert (sides.head[subject], sides.tail[subject], table.confidence[subject]) == (0.5, 0, 0.5)
    assert (table.predictions[hub], table.correct[hub]) == (4, 3)


def test_the_more_confident_side_counts():
    # From each X there are many Y, only one of which is right; from each of those Y there is one X.
    pairs = [f"x{i} has y{i}{j}" for i in range(4) for j in range(5)]
    graph = graph_of([*pairs, *(f"x{i} loves y{i}0" for i in range(4))])
    mining = run(RuleN(s2=5, order="file", min_support=1), graph)
    table, sides = mining.rules().paths, sides_of(mining)
    row = (graph.relation_id("loves"), BOTH, NONE, NONE, (2 * graph.relation_id("has"),))
    place = list(rows_of(table)).index(row)
    assert (sides.tail[place], sides.head[place]) == (0.2, 0.2)
    fewer = run(RuleN(s2=1, order="file", min_support=1), graph)
    place = list(rows_of(fewer.rules().paths)).index(row)
    assert (sides_of(fewer).tail[place], sides_of(fewer).head[place]) == (0.2, 1.0)
    assert fewer.rules().paths.confidence[place] == 1.0
    assert (fewer.rules().paths.predictions[place], fewer.rules().paths.correct[place]) == (1, 1)


# Triples are held in the order of their names: all that follows from `made` comes behind the rest.
LATE = [
    *(f"a{i:02} knows b{i:02}" for i in range(30)),
    *(f"z{i:02} knows y{i:02}" for i in range(10)),
    *(f"z{i:02} made y{i:02}" for i in range(10)),
]


def test_conclusions_that_come_last_are_hidden_by_the_order_of_the_file():
    graph = graph_of(LATE)
    assert "knows(X,Y) <= made(X,Y)" in texts(graph, mine(RuleN(s1=20, order="shuffled"), graph))
    assert "knows(X,Y) <= made(X,Y)" not in texts(graph, mine(RuleN(s1=20, order="file"), graph))
    assert "knows(X,Y) <= made(X,Y)" in texts(graph, mine(RuleN(s1=31, order="file", min_support=1), graph))


def test_only_the_bodies_that_explain_most_are_kept():
    graph = graph_of([f"e{i} {r} f{i}" for i in range(6) for r in ("ra", "rb")] + [f"e{i} rc f{i}" for i in range(4)])
    heads = [row[0] for row in rows_of(mine(RuleN(s1=1), graph).paths) if row[1] == BOTH]
    assert sorted(heads) == [0, 1, 2]
    found = texts(graph, mine(RuleN(s1=1, order="file"), graph))
    # With one triple all bodies explain as much, and the first ones come first.
    assert {"ra(X,Y) <= rb(X,Y)", "rb(X,Y) <= ra(X,Y)", "rc(X,Y) <= ra(X,Y)"} <= found


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    random = np.random.default_rng(5)
    triples = [f"e{a:02} r{r}x e{b:02}" for a, r, b in random.integers(0, (40, 3, 40), size=(400, 3))]
    graph = graph_of(triples)

    def kept(seed):
        mined = mine(RuleN(s1=30, s2=20, seed=seed), graph)
        return {name: array.tobytes() for name, array in to_arrays(mined).items()}

    assert kept(1) == kept(1)
    assert kept(1) != kept(2)


def test_a_mining_that_is_stopped_and_resumed_ends_with_the_same_bytes(monkeypatch):
    monkeypatch.setattr(rulen_mining, "_PAUSE", -1.0)
    monkeypatch.setattr(rulen_mining.RuleNMining, "advance", advance_by_one_relation)
    graph = graph_of([*LATE, *(f"b{i:02} likes a{i:02}" for i in range(9))])
    system, benchmark = RuleN(), as_benchmark(graph, "made up")
    whole = system.begin(benchmark)
    states = []
    while whole.advance():
        states.append(whole.checkpoint())
    assert [state.facts["relations"] for state in states] == [1, 2]
    for state in states:
        resumed = system.begin(benchmark, state)
        while resumed.advance():
            pass
        for name, array in to_arrays(whole.rules()).items():
            assert array.tobytes() == to_arrays(resumed.rules())[name].tobytes(), name


def advance_by_one_relation(self):
    self._mine(self._relations[self._done])
    self._done += 1
    return self._done < len(self._relations)


def test_types_are_constants_of_heads_and_nothing_else():
    people = [t for i in range(4) for t in (f"p{i} type Person", f"p{i} has h{i}", f"h{i} of p{i}")]
    graph = graph_of(people, "type")
    mined = mine(RuleN(max_length=3), graph)
    assert "has(X,Y) <= of(Y,X)" in texts(graph, mined)
    with_types = [row for row in rows_of(mined.paths) if row[0] == graph.type_relation]
    assert with_types == [(graph.type_relation, SUBJECT, graph.entity_id("Person"), NONE, ())]
    assert not any(step >> 1 == graph.type_relation for row in rows_of(mined.paths) for step in row[4])


def test_a_triple_scores_its_best_rule_and_a_little_for_each_further_one():
    graph = graph_of([t for i in range(6) for t in (f"e{i} ra f{i}", f"e{i} rb f{i}", f"f{i} rc e{i}")])
    graph = graph.with_triples(
        np.delete(graph.triples, np.flatnonzero(graph.triples[:, 1] == graph.relation_id("ra"))[:1], axis=0)
    )
    benchmark, system = as_benchmark(graph, "made up"), RuleN(max_length=1)
    asked = np.array([[graph.entity_id("e0"), graph.relation_id("ra"), graph.entity_id("f0")]], dtype=np.int32)
    assert np.isclose(system.fit(benchmark).score(asked)[0], 5 / 6 + 1e-4)


@pytest.mark.parametrize("triples", [[], ["e1 ra e2"], ["e1 ra e1"], ["e1 ra e2", "e3 rb e4"]])
def test_graphs_without_rules_are_mined_in_no_time(triples):
    assert len(mine(RuleN(max_length=3), graph_of(triples))) == 0


@pytest.mark.parametrize("wrong", [{"s1": 0}, {"s2": 0}, {"max_length": 4}, {"order": "any"}])
def test_settings_out_of_bounds_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        RuleN(**wrong)
