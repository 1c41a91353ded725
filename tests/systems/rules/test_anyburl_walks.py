"""Walks, and the rules that are made of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sampled_rules import Edges, graph_of, graphs

from loginfer.kg import RDF_TYPE
from loginfer.systems.rules.anyburl import RULE, as_rules, generalise_closed, generalise_open
from loginfer.systems.rules.texts import rule_lines
from loginfer.systems.rules.walks import NODES, RELATION, STEPS, TURNED, WALK_SIZE, closed_walk, open_walk, walk_graph

FAMILY = ["ann likes bob", "bob knows cid", "cid hates ann", "bob hates ann", "ann is ann", "ann type Person"]


def made(graph, closed, turned, nodes, steps):
    """Return the texts of the rules that a walk yields; a node `itself` is the special constant."""
    walk = np.zeros(WALK_SIZE, dtype=np.int64)
    relation, *nodes = nodes.split()
    walk[RELATION] = graph.relation_id(relation)
    walk[TURNED] = turned
    for place, name in enumerate(nodes):
        walk[NODES + place] = len(graph.entities) if name == "itself" else graph.entity_id(name)
    steps = steps.split()
    for place, name in enumerate(steps):
        walk[STEPS + place] = 2 * graph.relation_id(name.strip("-")) + name.startswith("-")
    rule = np.zeros(RULE, dtype=np.int64)
    generalise = generalise_closed if closed else generalise_open
    texts = []
    for which in range(3):
        if generalise(walk_graph(graph), walk, len(steps), which, rule):
            rows = rule[None].astype(np.int32)
            mined = as_rules(graph, rows, np.array([[4, 2]], dtype=np.int64))
            texts += [line.split("\t")[-1].replace(RDF_TYPE, "type") for line in rule_lines(mined, graph)]
    return texts


@pytest.mark.parametrize(
    ("turned", "nodes", "steps", "rules"),
    [
        # From the object back to the subject: the body is turned round.
        (0, "likes ann bob", "hates", ["likes(X,Y) <= hates(Y,X)", "likes(ann,Y) <= hates(Y,ann)",
                                       "likes(X,bob) <= hates(bob,X)"]),
        (1, "likes bob ann", "-hates", ["likes(X,Y) <= hates(Y,X)", "likes(X,bob) <= hates(bob,X)",
                                        "likes(ann,Y) <= hates(Y,ann)"]),
        (0, "likes ann bob cid", "knows hates", ["likes(X,Y) <= hates(A,X), knows(Y,A)"]),
        (1, "likes bob ann cid", "-hates -knows", ["likes(X,Y) <= hates(A,X), knows(Y,A)"]),
        # Of loops only what is about loops: they close no path.
        (0, "is itself ann", "is", ["is(X,X) <= is(X,X)"]),
    ],
)  # fmt: skip
def test_a_closed_walk_becomes_a_cyclic_rule_and_two_with_a_constant(turned, nodes, steps, rules):
    assert made(graph_of(FAMILY, "type"), True, turned, nodes, steps) == rules


@pytest.mark.parametrize(
    ("turned", "nodes", "steps", "rules"),
    [
        (1, "likes bob ann cid", "-hates", ["likes(X,bob) <= hates(cid,X)", "likes(X,bob) <= hates(A,X)"]),
        (0, "likes ann bob cid", "knows", ["likes(ann,Y) <= knows(Y,cid)", "likes(ann,Y) <= knows(Y,A)"]),
        (0, "knows bob cid ann bill", "hates likes", ["knows(bob,Y) <= hates(Y,A), likes(A,bill)",
                                                      "knows(bob,Y) <= hates(Y,A), likes(A,B)"]),
        # Types and loops are ends, not things that may be any.
        (1, "likes bob ann Person", "type", ["likes(X,bob) <= type(X,Person)"]),
        (1, "likes bob ann itself", "-is", ["likes(X,bob) <= is(X,X)"]),
        (0, "is itself ann bob", "likes", ["is(X,X) <= likes(X,bob)", "is(X,X) <= likes(X,A)"]),
        (1, "type Person ann bob", "likes", ["type(X,Person) <= likes(X,bob)",
                                             "type(X,Person) <= likes(X,A)"]),
        # Without a body.
        (1, "likes bob ann", "", ["likes(X,bob) <= "]),
        (0, "likes ann bob", "", ["likes(ann,Y) <= "]),
        (1, "type Person ann", "", ["type(X,Person) <= "]),
        (1, "is itself ann", "", []),
    ],
)  # fmt: skip
def test_an_open_walk_becomes_a_rule_with_both_constants_and_one_with_that_of_the_head(turned, nodes, steps, rules):
    assert made(graph_of([*FAMILY, "ann likes bill"], "type"), False, turned, nodes, steps) == rules


@pytest.mark.parametrize("closed", [True, False])
@settings(max_examples=40)
@given(graph=graphs(types=True), length=st.integers(0, 3))
def test_walks_follow_edges_meet_nobody_twice_and_do_not_pass_types_or_loops(closed, graph, length):
    if closed and not length:
        return
    edges = Edges(graph)
    walk, random = np.zeros(WALK_SIZE, dtype=np.int64), np.array([5, 0], dtype=np.uint64)
    arranged = walk_graph(graph)
    for _ in range(200):
        if not (closed_walk if closed else open_walk)(arranged, length, random, walk):
            continue
        nodes = [int(n) for n in walk[NODES : NODES + 1 + length + (not closed)]]
        steps = [int(s) for s in walk[STEPS : STEPS + length]]
        s, o = (nodes[1], nodes[0]) if walk[TURNED] else (nodes[0], nodes[1])
        relation = int(walk[RELATION])
        assert (s, relation, o) in edges.facts or ((o, relation, s) in edges.facts and edges.itself in (s, o))
        assert len(set(nodes)) == len(nodes)
        if closed:
            nodes.append(nodes[0])
        for place, step in enumerate(steps):
            edge = (nodes[place + 1], nodes[place + 2])
            allowed = edges.along[step]
            if place == length - 1:
                allowed = allowed | edges.ending[step]
                if step >> 1 != graph.type_relation:
                    allowed = allowed | edges.ending[step & -2]
            assert edge in allowed


def test_every_triple_and_orientation_is_drawn():
    graph = graph_of(["e1 ra e2", "e3 ra e4", "e5 rb e5"])
    walk, random = np.zeros(WALK_SIZE, dtype=np.int64), np.array([5, 0], dtype=np.uint64)
    arranged = walk_graph(graph)
    seen = set()
    for _ in range(300):
        if open_walk(arranged, 0, random, walk):
            seen.add((int(walk[RELATION]), int(walk[TURNED]), int(walk[NODES]), int(walk[NODES + 1])))
    ra, rb = graph.relation_id("ra"), graph.relation_id("rb")
    e1, e2, e3, e4, e5 = map(graph.entity_id, ("e1", "e2", "e3", "e4", "e5"))
    loops = {(rb, 1, len(graph.entities), e5), (rb, 0, len(graph.entities), e5)}
    assert seen == {(ra, 0, e1, e2), (ra, 1, e2, e1), (ra, 0, e3, e4), (ra, 1, e4, e3)} | loops
