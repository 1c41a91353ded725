"""The story of one triple."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.support.brute_force import facts, substitutions
from tests.support.faults import TRIANGLE, random_graph

from loginfer.benchmark.benchmark import Benchmark, Splits
from loginfer.benchmark.construction.pipeline import build
from loginfer.benchmark.explain import TripleStory, explain_triple
from loginfer.benchmark.recipe import Recipe
from loginfer.errors import InputError, UnknownNameError
from loginfer.kg import KnowledgeGraph


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    recipe = Recipe(
        kg="random", patterns=("symmetry", TRIANGLE), k1=3, k2=60, negatives=("rb", "pa", "qg", "rc"), seed=1
    )
    return build(recipe, random_graph())


def story(benchmark: Benchmark, triple: np.ndarray, **more: int) -> TripleStory:
    (names,) = benchmark.graph.names(triple)
    told = explain_triple(benchmark, names, **more)
    assert told == explain_triple(benchmark, [int(part) for part in triple], **more)
    assert told.triple == names
    json.dumps(told.as_dict())
    return told


def places(benchmark: Benchmark, method: str, split: str, source: str) -> np.ndarray:
    from loginfer.benchmark.negatives import SOURCES

    made = benchmark.negatives[method]
    return np.flatnonzero(made.origins[split].source == SOURCES.index(source))


def test_a_triple_of_the_graph_is_told_as_such(benchmark):
    triple = benchmark.kg.triples[~np.isin(benchmark.kg.packed, concluded_keys(benchmark))][0]
    told = story(benchmark, triple)
    assert told.sets[:2] == ("K", "P_train")
    assert told.conclusion is False
    assert told.negatives == ()


def concluded_keys(benchmark: Benchmark) -> np.ndarray:
    return benchmark.graph.keys.pack(benchmark.provenance.triples)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_conclusion_has_all_its_rules_with_true_premises(benchmark, split):
    number = ("train", "valid", "test").index(split)
    known = facts(benchmark.kg)
    for place in np.flatnonzero(benchmark.provenance.split == number)[:5]:
        told = story(benchmark, benchmark.provenance.triples[place])
        assert told.sets == (f"P_{split}",)
        assert told.conclusion is True
        assert told.source == "K"
        assert told.reason is None
        rules = benchmark.provenance.rule[benchmark.provenance.conclusion == place]
        assert [derivation.rule for derivation in told.derivations] == rules.tolist()
        for derivation in told.derivations:
            assert set(derivation.premises) <= known
            assert derivation.text == str(benchmark.program[derivation.rule])
            head = benchmark.program[derivation.rule].head
            assert derivation.witness[str(head.subject)] == told.triple[0]
            assert derivation.witness[str(head.object)] == told.triple[2]


def test_more_witnesses_are_told_on_demand(benchmark):
    known = facts(benchmark.kg)
    counts = []
    for triple in benchmark.positives.test:
        told = story(benchmark, triple, limit=1000)
        expected = sum(
            (str(s[rule.head.subject]), rule.head.relation, str(s[rule.head.object])) == told.triple
            for rule in {benchmark.program[d.rule] for d in told.derivations}
            for s in substitutions(rule, known)
        )
        assert len(told.derivations) == expected
        counts.append(expected)
        if expected > 1:
            break
    assert max(counts) > 1


def test_a_corrupted_conclusion_names_it(benchmark):
    for place in places(benchmark, "pa", "test", "position")[:20]:
        told = story(benchmark, benchmark.negatives["pa"].splits.test[place])
        (negative,) = [n for n in told.negatives if n.method == "pa"]
        assert (negative.split, negative.source) == ("test", "position")
        assert negative.replaced in benchmark.graph.names(benchmark.positives.test)
        differs = [a != b for a, b in zip(negative.replaced, told.triple, strict=True)]
        expected = {"subject": [True, False, False], "object": [False, False, True]}
        assert differs == expected.get(negative.position, [True, False, False])
        assert told.derivations == ()
        assert "no witness" in told.reason


def test_a_random_object_names_the_positive_it_replaces(benchmark):
    told = story(benchmark, benchmark.negatives["rc"].splits.test[0])
    (negative,) = [n for n in told.negatives if n.method == "rc"]
    assert negative.replaced[:2] == told.triple[:2]
    assert negative.replaced in benchmark.graph.names(benchmark.positives.test)


def test_a_negative_of_a_sub_rule_shows_which_parts_of_the_rule_fail(benchmark):
    known = facts(benchmark.kg)
    for place in places(benchmark, "qg", "test", "sub-rule")[:20]:
        triple = benchmark.negatives["qg"].splits.test[place]
        told = story(benchmark, triple)
        (negative,) = [n for n in told.negatives if n.method == "qg"]
        origins = benchmark.negatives["qg"].origins["test"]
        rule = benchmark.program[int(origins.rule[place])]
        assert negative.rule == origins.rule[place]
        assert [part.text for part in negative.parts] == [str(part) for part in rule.body]
        assert [part.kept for part in negative.parts] == [
            bool(int(origins.kept[place]) >> i & 1) for i in range(len(rule.body))
        ]
        for part in negative.parts:
            assert part.holds or not part.kept
            if part.triple is not None:
                assert part.holds == (part.triple in known)
        # The triple is not derivable, so something that was forgotten is false or cannot be completed.
        assert any(not part.holds for part in negative.parts)


def test_a_triple_in_no_set_is_told_whether_it_follows(benchmark):
    rules = benchmark.program
    derived = np.concatenate([_opened(benchmark).conclusions(rule, new=True) for rule in rules])
    keys = benchmark.graph.keys.pack(derived)
    sets = [benchmark.everything.packed]
    sets += [benchmark.graph.keys.pack(t) for made in benchmark.negatives.values() for _, t in made.splits.items()]
    unsampled = derived[~np.isin(keys, np.concatenate(sets))]
    told = story(benchmark, unsampled[0])
    assert told.sets == ()
    assert told.conclusion is False
    assert told.derivations


def _opened(benchmark: Benchmark):
    from loginfer.engine import open_engine

    return open_engine(benchmark.kg)


def test_a_relation_of_no_head_is_the_reason_why_nothing_follows():
    graph = KnowledgeGraph.from_names([(f"e{i}", "likes", f"e{i + 1}") for i in range(30)], type_predicate="")
    made = build(Recipe("path", rules=("(x,likes,y) -> (y,knows,x)",), k2=30, negatives=("rb",)), graph)
    told = explain_triple(made, ("e0", "likes", "e9"))
    assert told.sets == ()
    assert told.reason == "none of the 1 rules has this head"


def test_without_rules_and_provenance_only_the_sets_are_known():
    graph = random_graph()
    made = Benchmark("plain", graph, Splits(graph.triples, graph.triples[:0], graph.triples[:0]), {})
    told = explain_triple(made, [int(part) for part in graph.triples[0]])
    assert told.sets == ("P_train",)
    assert told.conclusion is None
    assert told.reason is None


def test_what_is_no_triple_of_the_benchmark_is_refused(benchmark):
    with pytest.raises(UnknownNameError, match="knowz"):
        explain_triple(benchmark, ("e00", "knowz", "e01"))
    with pytest.raises(InputError, match="three parts"):
        explain_triple(benchmark, ("e00", "knows"))
    with pytest.raises(InputError, match="no name with the id 999"):
        explain_triple(benchmark, (999, 0, 0))


def test_both_engines_tell_the_same(benchmark):
    for split in ("valid", "test"):
        for triple in (benchmark.positives[split][0], benchmark.negatives["qg"].splits[split][0]):
            ids = [int(part) for part in triple]
            assert explain_triple(benchmark, ids) == explain_triple(benchmark, ids, engine="duckdb")


@pytest.mark.parametrize("kept", [0, 2, 1 << 20])
def test_a_sub_rule_that_the_rule_does_not_have_is_not_explained(kept: int) -> None:
    # Masks that no benchmark of ours holds: no part, a part without the head's variables, no such part.
    from dataclasses import replace

    from tests.support.made_up_benchmarks import family

    benchmark = family(methods=("qg",))
    made = benchmark.negatives["qg"]
    wrong = {
        split: replace(o, rule=np.zeros_like(o.rule), kept=np.full_like(o.kept, kept))
        for split, o in made.origins.items()
    }
    damaged = replace(benchmark, negatives={"qg": replace(made, origins=wrong)})
    for triple in made.splits.test:
        (told,) = story(damaged, triple).negatives
        assert told.source == "sub-rule"
        assert told.witness is None
        assert told.parts == ()
