"""How AnyBURL counts predictions, against trying everything."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support.sampled_rules import graph_of, graphs, predictions

from loginfer.systems.rules.anyburl import Limits, count, new_scratch
from loginfer.systems.rules.mined import BOTH, LONGEST, NONE, OBJECT, SUBJECT
from loginfer.systems.rules.walks import walk_graph

# So many repeats that no pair is overlooked on graphs of a few triples.
ALL = Limits(pairs=1000, repeats=2000, starts=20_000, predictions=2000)


def counted(graph, row, limits=ALL, salt=1):
    head, variables, constant, end, steps = row
    rule = np.array([head, variables, constant, end, len(steps), *steps, *[NONE] * (LONGEST - len(steps))])
    room = new_scratch(len(graph.entities), limits)
    room.random[0] = salt
    found, correct, _ = count(walk_graph(graph), rule, limits, room)
    return found, correct


def drawn_row(data, graph, length):
    """Draw a rule of a length that the miner may make."""
    itself = len(graph.entities)
    type_step = -2 if graph.type_relation is None else 2 * graph.type_relation
    along = [s for s in range(2 * len(graph.relations)) if s >> 1 != type_step >> 1]
    steps = [data.draw(st.sampled_from(along)) for _ in range(length)]
    variables = data.draw(st.sampled_from([BOTH, SUBJECT, OBJECT]))
    head = data.draw(st.integers(0, len(graph.relations) - 1))
    if variables == BOTH:
        assume(2 * head != type_step)
        return head, BOTH, NONE, NONE, tuple(steps)
    assume(2 * head != type_step or variables == SUBJECT)
    constant = data.draw(st.integers(0, itself - (variables == OBJECT)))
    end = data.draw(st.sampled_from([NONE, *range(itself + 1)]))
    if end == itself:
        steps[-1] &= -2
    elif end != NONE and type_step >= 0 and data.draw(st.booleans()):
        steps[-1] = type_step
    return head, variables, constant, end, tuple(steps)


@pytest.mark.parametrize("types", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3])
@settings(max_examples=40)
@given(data=st.data())
def test_all_predictions_are_counted_where_there_are_few(data, length, types):
    graph = data.draw(graphs(types))
    row = drawn_row(data, graph, length)
    found, correct = predictions(graph, row)
    # Cyclic rules are counted from both ends.
    times = 2 if row[1] == BOTH else 1
    assert counted(graph, row) == (times * len(found), times * len(correct))


def test_a_zero_rule_predicts_as_often_as_its_relation_holds():
    graph = graph_of(["e1 ra e9", "e2 ra e9", "e3 ra e8", "e9 ra e9", "e1 rb e9"])
    relation, constant = graph.relation_id("ra"), graph.entity_id("e9")
    assert counted(graph, (relation, SUBJECT, constant, NONE, ())) == (4, 2)
    assert counted(graph, (relation, OBJECT, constant, NONE, ())) == (4, 0)


def test_repeats_in_a_row_end_the_sampling_of_a_cyclic_rule():
    graph = graph_of(["e1 rb e2", "e1 ra e2", "e1 rc e3"])
    row = (graph.relation_id("ra"), BOTH, NONE, NONE, (2 * graph.relation_id("rb"),))
    assert counted(graph, row, Limits()) == (2, 2)
    assert counted(graph, row, Limits(repeats=0)) == (0, 0)
    assert counted(graph, row, Limits(starts=0)) == (0, 0)


def test_no_more_pairs_and_predictions_are_counted_than_the_limits_say():
    graph = graph_of([f"e{i} rb f{i}" for i in range(60)] + [f"e{i} rc hub" for i in range(60)] + ["e7 ra hub"])
    ra, rb, rc, hub = (*map(graph.relation_id, ("ra", "rb", "rc")), graph.entity_id("hub"))
    limits = Limits(pairs=7, predictions=9)
    assert counted(graph, (ra, BOTH, NONE, NONE, (2 * rb,)), limits)[0] == 14
    assert counted(graph, (ra, SUBJECT, hub, hub, (2 * rc,)), limits)[0] == 9
    assert counted(graph, (ra, SUBJECT, hub, NONE, (2 * rb,)), limits)[0] == 9
    # Which of them are seen is random, and depends on the salt alone.
    seen = [counted(graph, (ra, SUBJECT, hub, hub, (2 * rc,)), limits, salt)[1] for salt in range(1, 60)]
    assert set(seen) == {0, 1}
    assert seen == [counted(graph, (ra, SUBJECT, hub, hub, (2 * rc,)), limits, s)[1] for s in range(1, 60)]


def test_starts_without_a_way_on_are_no_predictions():
    graph = graph_of(["e1 rb e2", "e3 rc e4"])
    rb, rc = graph.relation_id("rb"), graph.relation_id("rc")
    assert counted(graph, (rb, BOTH, NONE, NONE, (2 * rb, 2 * rc))) == (0, 0)
