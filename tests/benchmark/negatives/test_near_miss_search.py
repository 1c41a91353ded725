"""The search for near misses: what it finds is what near misses conclude, in an order that is uniform."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.benchmark.negatives.near_miss_kernels import every_end, first_witness, propose
from loginfer.benchmark.negatives.near_miss_search import SearchIndex, ends_of, plan
from loginfer.engine import open_engine
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_rule
from loginfer.logic.subrules import Edit, edits_of, near_miss

UNEQUAL = "x != y, x != z, y != z"
TEXTS = [
    "(x,R,y) -> (y,R,x)",
    "(x,R,y) -> (x,S,y)",
    "(x,R,y), (y,S,z) -> (x,T,z)",
    f"(x,R,y), (x,S,z), (y,T,z), {UNEQUAL} -> (x,P,y)",
    f"(x,R,y), (x,S,z), (y,T,w), (z,R,w), {UNEQUAL}, x != w, y != w, z != w -> (x,P,y)",
    "(x,type,A), (x,R,y) -> (y,type,B)",
    "(x,R,y), (x,type,A) -> (x,S,y)",
    "(x,type,A) -> (x,type,B)",
    "(x,R,x), (x,S,y) -> (x,T,y)",
    "(x,R,Q1), (x,S,y), y != Q2 -> (y,T,x)",
    "(x,S,z), (y,T,w) -> (x,P,y)",
    "(x,R,y), not (y,S,z) -> (x,T,y)",
    "(x,R,y), (y,S,z), not (x,T,z), not (z,R,z) -> (x,P,z)",
    "(x,R,y), not (z,S,z) -> (x,T,y)",
    "(x,R,y), not (y,type,A) -> (y,P,x)",
    "(x,R,y), not (x,Nowhere,y), not (x,S,Nobody) -> (x,T,y)",
    "(x,R,y) -> (x,P,x)",
]


def random_graph(seed, entities=6, sizes=(8, 14, 22)):
    rng = random.Random(seed)
    names = [f"Q{i}" for i in range(entities)]
    triples = [(rng.choice(names), rng.choice("RSTP"), rng.choice(names)) for _ in range(rng.choice(sizes))]
    triples += [(rng.choice(names), "rdf:type", rng.choice("ABC")) for _ in range(5)]
    triples += [("Q0", "rdf:type", "A"), ("Q0", "rdf:type", "B")]
    graph = KnowledgeGraph.from_names(triples)
    return graph.with_names(relations=list("RSTP"), entities=["Q1", "Q2", "A", "B"])


def concluded(graph, rule, edit):
    """What the near misses of an edit conclude, all of them together, by an engine."""
    part, engine = rule.body[edit.part], open_engine(graph)
    others = [None]
    if edit.kind == "replace" and part.is_type:
        others = [graph.entities[t] for t in graph.types.tolist() if graph.entities[t] != part.object.name]
    elif edit.kind == "replace":
        others = [graph.relations[r] for r in graph.rels.tolist() if graph.relations[r] != part.relation]
    return {tuple(t) for other in others for t in engine.conclusions(near_miss(rule, edit, other)).tolist()}


def proposed(graph, rule, edit, side, anchors, *, salts=None, known=(), budget=10**9, most=16):
    """What the kernel finds from one end: ends, counts, spent; None if it need not even look."""
    index, ends = SearchIndex(graph), ends_of(rule)
    made = plan(rule, edit, index, [ends.free[side]])
    if made is None:
        return None
    numbers = (made.numbers[ends.free[side]], made.numbers[ends.free[1 - side]])
    row = [0, len(made.steps), 0, len(made.unequal), made.size, *numbers, 0, 1, 1000]
    anchors = np.array(anchors, dtype=np.int64)
    salts = np.arange(len(anchors)) if salts is None else salts
    seen = np.full(len(graph.entities), -1, dtype=np.int64)
    return propose(
        index.arrays, made.steps, made.unequal, np.array([row], dtype=np.int64),
        np.zeros(len(anchors), dtype=np.int64), anchors, np.asarray(salts, dtype=np.uint64),
        np.array(sorted(known), dtype=np.int64), budget, seen, 0, most,
    )  # fmt: skip


def found_from(graph, rule, edit, side, **options):
    """The triples that the kernel finds from all constants at one end."""
    columns, relation = ends_of(rule).columns, graph.relation_id(str(rule.head.relation))
    found = proposed(graph, rule, edit, side, range(len(graph.entities)), **options)
    triples = set()
    for anchor, row in enumerate([] if found is None else found[0].tolist()):
        for end in row:
            triple = [anchor, relation, anchor]
            triple[columns[1 - side]] = end
            triples |= {tuple(triple)} if end >= 0 else set()
    return triples


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_found_from_either_end_is_what_near_misses_conclude(text):
    rule = parse_rule(text)
    looked = 0
    for seed in range(12):
        graph = random_graph(seed)
        for edit in edits_of(rule):
            want = concluded(graph, rule, edit)
            # Without an inequality, two variables are made equal: the others are the rule's own.
            own = {tuple(t) for t in open_engine(graph).conclusions(rule).tolist()}
            least = want - own if edit.kind == "drop-inequality" else want
            if len(ends_of(rule).free) == 2:
                for side in (0, 1):
                    assert least <= found_from(graph, rule, edit, side) <= want, (edit, side, seed)
            else:
                assert every_one(graph, rule, edit) == want, (edit, seed)
            looked += len(want)
    assert looked


def every_one(graph, rule, edit):
    """All conclusions of a near miss with one end, by the kernel."""
    index, ends = SearchIndex(graph), ends_of(rule)
    made = plan(rule, edit, index, [])
    if made is None:
        return set()
    seen = np.full(len(graph.entities), -1, dtype=np.int64)
    target = made.numbers[ends.free[0]]
    values = every_end(index.arrays, made.steps, made.unequal, made.size, target, seen, 0).tolist()
    relation, terms = graph.relation_id(str(rule.head.relation)), rule.head.terms
    return {
        (*(v if t == ends.free[0] else graph.entity_id(t.name) for t in terms[:1]), relation,
         *(v if t == ends.free[0] else graph.entity_id(t.name) for t in terms[1:]))
        for v in values
    }  # fmt: skip


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), text=st.sampled_from(TEXTS))
def test_a_witness_is_found_for_what_is_concluded_and_for_nothing_else(seed, text):
    rule, graph = parse_rule(text), random_graph(seed, entities=5)
    ends = ends_of(rule)
    if len(ends.free) != 2:
        return
    index = SearchIndex(graph)
    pairs = np.array([(a, b) for a in graph.consts for b in graph.consts], dtype=np.int64).reshape(-1, 2)
    seen = np.full(len(graph.entities), -1, dtype=np.int64)
    for edit in edits_of(rule):
        if edit.kind != "replace":
            continue
        want = {(s, o) for s, _, o in concluded(graph, rule, edit)}
        made = plan(rule, edit, index, ends.free)
        if made is None:
            assert not want
            continue
        first, second = (made.numbers[v] for v in ends.free)
        rows = first_witness(index.arrays, made.steps, made.unequal, made.size, first, second, pairs, 2**40, seen)
        there = (rows >= 0)[:, : len(rule.variables)].all(axis=1)
        found = {tuple(pair[list(np.argsort(ends.columns))].tolist()) for pair in pairs[there]}
        assert found == want, edit
        # The relation that is told instead connects the pair in the witness, and is not the rule's own.
        subject, relation, object_ = made.wildcard
        part = rule.body[edit.part]
        if not part.is_type:
            s, o = (rows[there][:, t] if t >= 0 else np.full(there.sum(), ~t) for t in (subject, object_))
            instead = index.another(relation, s, o)
            assert (instead != relation).all()
            assert graph.contains(np.stack([s, instead, o], axis=1).astype(np.int32)).all()


def test_the_relation_instead_is_the_least_one_that_connects_a_pair():
    graph = KnowledgeGraph.from_names([("a", r, "b") for r in "RST"] + [("b", "S", "a")])
    index = SearchIndex(graph)
    a, b = graph.entity_id("a"), graph.entity_id("b")
    ids = {r: graph.relation_id(r) for r in "RST"}
    subjects, objects = np.array([a, b, a]), np.array([b, a, a])
    assert index.another(ids["R"], subjects, objects).tolist() == [ids["S"], ids["S"], -1]
    assert index.another(ids["S"], subjects, objects).tolist() == [ids["R"], -1, -1]


def test_triples_that_are_known_are_no_candidates():
    graph = random_graph(3)
    rule, edit = parse_rule("(x,R,y), (y,S,z) -> (x,T,z)"), Edit("replace", 1)
    everyone = range(len(graph.entities))
    ends, counts, _ = proposed(graph, rule, edit, 0, everyone)
    first = int(np.argmax(counts))
    known = ends[first, 0]
    fewer, less, _ = proposed(graph, rule, edit, 0, everyone, known=[first + 1000 * known])
    assert less[first] == counts[first] - 1
    assert set(fewer[first]) == set(ends[first]) - {known} | {-1}


# -- the budget ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 5, 12])
def test_with_a_small_budget_less_is_found_and_that_is_said(budget):
    rule = parse_rule(TEXTS[3])
    cut = 0
    for seed in range(6):
        graph = random_graph(seed, sizes=(40,))
        for edit in edits_of(rule):
            everyone = range(len(graph.entities))
            whole, some = (proposed(graph, rule, edit, 0, everyone, budget=most) for most in (10**9, budget))
            if whole is None:
                assert some is None
                continue
            assert not whole[2].any()
            for mine, everything, spent in zip(some[0], whole[0], some[2], strict=True):
                assert set(mine) <= {*everything, -1}
                assert spent or np.array_equal(mine, everything)
            cut += int((some[1] < whole[1]).sum())
    assert cut


# -- the order ----------------------------------------------------------------------------------------


def fan(middles, leaves):
    """x has middles by R; the i-th of them has leaves[i] objects by S, and all of them one by T."""
    triples = [("x", "R", f"m{i}") for i in range(middles)]
    triples += [(f"m{i}", "S", f"e{i}.{j}") for i in range(middles) for j in range(leaves[i])]
    return KnowledgeGraph.from_names(triples).with_names(relations=["T", "P"])


def firsts(graph, draws, budget, rule="(x,R,y), (y,T,z) -> (x,P,z)"):
    """How often each end comes first, over many salts."""
    x = graph.entity_id("x")
    salts = np.random.default_rng(7).integers(0, 2**63, size=draws, dtype=np.int64)
    found = proposed(graph, parse_rule(rule), Edit("replace", 1), 0, [x] * draws, salts=salts, budget=budget, most=2)
    return found[0], found[2]


def test_candidates_come_in_an_order_that_is_uniform():
    """Chi-square with 14 degrees of freedom: 36.1 is exceeded once in a thousand times."""
    graph = fan(5, [1, 2, 3, 4, 5])
    ends, spent = firsts(graph, 15_000, 10**6)
    assert not spent.any()
    for place in (0, 1):
        counts = np.unique(ends[:, place], return_counts=True)[1]
        assert len(counts) == 15
        assert ((counts - 1000) ** 2 / 1000).sum() < 36.1
    pairs = np.unique(ends[:, 0] * 10**6 + ends[:, 1], return_counts=True)[1]
    expected = 15_000 / (15 * 14)
    # 209 degrees of freedom
    assert len(pairs) == 15 * 14
    assert ((pairs - expected) ** 2 / expected).sum() < 277


@pytest.mark.parametrize(("part", "most"), [(1, 0.03), (2, 0.13), (4, 0.30)])
def test_the_bias_of_a_search_that_is_given_up_is_bounded(part, most):
    """A hub holds half of the ends, and the budget is enough for all, half or a quarter of the work.

    Which ends are met is random, and of those that are met each is first with the same probability. But ends
    behind the hub are met less often than others. The bounds are for the total variation distance between
    the first end and a uniform one; 0.03 is what chance makes of 16,000 draws.
    """
    leaves = [40, *[4] * 10]
    graph = fan(len(leaves), leaves)
    whole = sum(leaves) + 2 * len(leaves) + 2
    ends, spent = firsts(graph, 16_000, whole // part)
    assert spent.all() == (part > 1)
    every = [graph.entity_id(f"e{i}.{j}") for i, n in enumerate(leaves) for j in range(n)]
    share = np.bincount(ends[:, 0], minlength=len(graph.entities))[every] / len(ends)
    assert share.sum() == pytest.approx(1)
    assert (share > 0).all()
    assert np.abs(share - 1 / len(share)).sum() / 2 < most
