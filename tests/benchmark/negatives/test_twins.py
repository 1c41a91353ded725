"""Twins: every conclusion has one near miss of its own, and nobody who knows no rule can tell the two apart."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.support import brute_force
from tests.support.random_rules import cases

from loginfer.benchmark import Recipe, audit, build, load_benchmark, write_benchmark
from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.negatives import SOURCES
from loginfer.errors import InputError
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.subrules import EDITS, Edit, edits_of, near_miss

TYPE = "rdf:type"
NAMES = tuple(f"e{i:02d}" for i in range(24))
RELATIONS = ("R", "S", "T", "U")
# One kind of rule each: chains, types, constants of the body and the head, inequalities, negations that other rules
# do and do not conclude, heads that K does not have, two rules with one head.
RULES = (
    "(x,R,y) -> (x,S,y)",
    "(x,R,y) -> (y,R,x)",
    "(x,R,y), (y,S,z) -> (x,T,z)",
    "(x,R,y), (y,S,z), x != z -> (x,New,z)",
    "(x,U,y), (y,U,z), (x,T,z), x != y, y != z -> (x,R,z)",
    "(x,type,<t>), (x,R,y) -> (y,type,<u>)",
    "(x,R,y), (y,type,<t>) -> (x,S,y)",
    "(x,R,y), (y,type,?k) -> (x,type,?k)",
    "(x,S,<e00>) -> (x,T,<e01>)",
    "(x,S,y) -> (x,T,nobody)",
    "(x,S,y), y != <e00> -> (<e02>,U,y)",
    "(x,R,y), not (x,U,y) -> (x,T,y)",
    "(x,T,y), not (x,S,y) -> (x,U,y)",
    "(x,R,y), not (y,S,z) -> (x,New,y)",
    "(x,T,y), not (y,type,<u>) -> (x,R,y)",
)


def random_graph(seed, constants, triples):
    rng = random.Random(seed)
    names, weight = NAMES[:constants], [1 / (i + 1) for i in range(constants)]

    def some():
        return rng.choices(names, weight)[0] if rng.random() < 0.4 else rng.choice(names)

    rows = {(some(), rng.choice(RELATIONS), some()) for _ in range(triples)}
    rows |= {(name, TYPE, rng.choice("tuv")) for name in names if rng.random() < 0.7}
    return KnowledgeGraph.from_names(sorted(rows), type_predicate=TYPE)


@st.composite
def recipes(draw, rules):
    """Recipes for twins of some rules: matched on everything or less, deep, noisy, inductive, materialised."""
    settings = draw(
        st.sampled_from([{}, {}, {}, {"depth": 2}, {"flipped": 0.2, "missing": 0.2}, {"materialised": True},
                         {"inductive": True, "inductive_share": 0.5}])
    )  # fmt: skip
    match = draw(st.sampled_from([("all",), ("all",), ("adjacency",), ("popularity", "head"), ("types",)]))
    values = {"k2": draw(st.sampled_from([3, 12, 40])), "ratio": draw(st.sampled_from(["8:1:1", "4:3:3"]))}
    return Recipe("made up", rules=rules, min_new=1, negatives=("nm",), match=match, seed=draw(st.integers(0, 3)),
                  **values, **settings)  # fmt: skip


@st.composite
def small_cases(draw):
    rules = draw(st.lists(st.sampled_from(RULES), min_size=1, max_size=4, unique=True))
    graph = random_graph(draw(st.integers(0, 10**6)), draw(st.sampled_from([8, 16, 24])), draw(st.integers(20, 160)))
    return graph, draw(recipes(tuple(rules)))


@st.composite
def odd_cases(draw):
    """Rules of every kind, over graphs in which hardly anything has a twin."""
    graph, rules = draw(cases(most_rules=3))
    return graph, draw(recipes(tuple(map(str, rules))))


def built(graph, recipe):
    """The benchmark, or None where it is refused with a reason."""
    try:
        return build(recipe, graph)
    except InputError as refused:
        assert refused.message
        event(refused.message.split(":")[0][:40])
        return None


def check(benchmark):
    """What is promised of twins, by loops over sets of names."""
    recipe, clean = benchmark.recipe, benchmark.clean
    kg, everything = brute_force.facts(benchmark.kg), brute_force.facts(benchmark.everything)
    rules, premises, true = benchmark.program, kg, everything | brute_force.one_step(benchmark.program, everything)
    if any(rule.negations for rule in rules):
        train = brute_force.facts(clean.seen)
        true |= brute_force.one_step(rules, kg) | brute_force.one_step(rules, train)
    for _ in range(recipe.depth - 1):
        premises = premises | brute_force.one_step(rules, premises)
    if recipe.depth > 1 or recipe.materialised:
        closure = list(brute_force.closure(rules, benchmark.kg))
        true |= brute_force.facts(benchmark.kg.with_triples(np.array(closure, dtype=np.int32).reshape(-1, 3)))
    concluded, twins = {}, Counter()
    for split in SPLITS:
        triples, origins = clean.negatives["nm"].splits[split], clean.negatives["nm"].origins[split]
        positives = named(clean, clean.positives[split])
        pairs = [(positives[row], twin) for row, twin in zip(origins.twin, named(clean, triples), strict=True)]
        assert (origins.twin >= 0).all()
        assert Counter(conclusion for conclusion, _ in pairs) == Counter(t for t in positives if t not in kg)
        twins.update(twin for _, twin in pairs)
        assert (origins.source == SOURCES.index("near-miss")).all()
        for row, (conclusion, twin) in enumerate(pairs):
            assert head_of(twin) == head_of(conclusion)
            key = tuple(int(column[row]) for column in (origins.rule, origins.edit, origins.part, origins.predicate))
            if key not in concluded:
                concluded[key] = brute_force.one_step([edited(benchmark, *key)], premises)
            assert twin in concluded[key], (twin, key)
            if recipe.match == ("all",) or "adjacency" in recipe.match:
                assert adjacency(kg, conclusion) == adjacency(kg, twin)
            if benchmark.context is not None:
                on_test = {name for t in brute_force.facts(benchmark.context) for name in constants(t)}
                assert {name in on_test for name in constants(twin)} == {split == "test"}
    assert set(twins.values()) <= {1}
    assert not set(twins) & true
    return twins


def pairs_of(benchmark):
    """Each split's conclusions with their twins, by names."""
    clean, negatives = benchmark.clean, benchmark.clean.negatives["nm"]
    return {
        split: {
            positive: twin
            for positive, twin in zip(
                named(clean, clean.positives[split][negatives.origins[split].twin]),
                named(clean, negatives.splits[split]),
                strict=True,
            )
        }
        for split in SPLITS
    }


def named(benchmark, triples):
    return [(s, RDF_TYPE if r == benchmark.graph.type_predicate else r, o) for s, r, o in benchmark.graph.names(triples)]


def head_of(triple):
    return triple[1:] if triple[1] == RDF_TYPE else triple[1]


def constants(triple):
    return triple[:1] if triple[1] == RDF_TYPE else triple[::2]


def edited(benchmark, number, kind, part, predicate):
    rule, edit, name = benchmark.program[number], Edit(EDITS[kind], part), None
    assert edit in edits_of(rule)
    if edit.kind == "replace":
        names = benchmark.graph.entities if rule.body[part].is_type else benchmark.graph.relations
        name = names[predicate]
        assert near_miss(rule, edit, name) != rule
    return near_miss(rule, edit, name)


def adjacency(kg, triple):
    """How many other relations join the ends, up to three in a direction."""
    subject, relation, object_ = triple
    if relation == RDF_TYPE:
        return None
    there = [r for s, r, o in kg if (s, o) == (subject, object_) and r not in (relation, RDF_TYPE)]
    back = [r for s, r, o in kg if (s, o) == (object_, subject) and r != RDF_TYPE]
    return min(len(there), 3), min(len(back), 3), any(r != relation for r in back)


@given(case=small_cases())
@settings(max_examples=30)
def test_each_conclusion_has_a_twin_of_its_own_or_the_build_is_refused(case, tmp_path_factory):
    benchmark = built(*case)
    if benchmark is None:
        return
    event("built")
    assert check(benchmark)
    folder = tmp_path_factory.mktemp("twins") / "out"
    write_benchmark(benchmark, folder)
    assert [finding for finding in audit(folder).findings if finding.severity == "error"] == []
    assert pairs_of(load_benchmark(folder)) == pairs_of(benchmark)


@given(case=odd_cases())
@settings(max_examples=40)
def test_rules_of_every_kind_have_twins_or_are_refused(case):
    benchmark = built(*case)
    if benchmark is not None:
        event("built")
        check(benchmark)
