"""On which rules shortcuts rest, and the gate that refuses those which do too well."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.made_up_benchmarks import family

from loginfer.benchmark import audit
from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.construction.pipeline import build
from loginfer.benchmark.learned_shortcut import LEARNED, SKELETON, ShortcutDecisions, ShortcutResult, shortcut_results
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.shortcut_gate import check_limit, fits_head, gate, own_conclusions, rule_shares
from loginfer.benchmark.shortcuts import Cut
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph


@pytest.fixture(scope="module")
def small():
    """Hierarchies and compositions of a random graph, with negatives of two methods."""
    draw = np.random.default_rng(5)
    names = {(f"e{a}", f"r{r}", f"e{b}") for a, r, b in draw.integers(0, (60, 5, 60), size=(700, 3))}
    graph = KnowledgeGraph.from_names(sorted(names), type_predicate="")
    recipe = Recipe("small", ("hierarchy", "composition"), k1=3, k2=80, negatives=("pa", "rb"), ratio="6:2:2")
    return build(recipe, graph)


@pytest.fixture(scope="module")
def results(small):
    """How all shortcuts do, method by method."""
    return {method: shortcut_results(small, method) for method in small.negatives}


def test_the_balanced_accuracy_weighs_both_labels_alike():
    said = ShortcutDecisions(np.array([True, True, False, True]), np.array([True, False]))
    assert said.balanced_accuracy == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert said.accuracy == pytest.approx(4 / 6)


def shares_by_definition(benchmark, method, said):
    """Return rule -> (triples, right), triple by triple."""
    positives, negatives = benchmark.positives.test, benchmark.negatives[method].splits.test
    owners: dict[int, list[int]] = {}
    for rule, row in zip(*own_conclusions(benchmark), strict=True):
        owners.setdefault(int(row), []).append(int(rule))
    concluding = {rule for rules in owners.values() for rule in rules}
    recorded = benchmark.negatives[method].origins["test"].rule
    for number in range(len(negatives)):
        if recorded[number] >= 0:
            mine = [int(recorded[number])]
        else:
            triple = negatives[number : number + 1]
            fitting = [
                place
                for place, known in enumerate(benchmark.rules)
                if fits_head(known.rule.head, benchmark.graph, triple)[0]
            ]
            mine = [rule for rule in fitting if rule in concluding] or fitting
        owners[len(positives) + number] = mine
    found: dict[int, list[float]] = {}
    for row, rules in owners.items():
        for rule in rules:
            known = found.setdefault(rule, [0.0, 0.0])
            known[0] += 1 / len(rules)
            known[1] += said.right[row] / len(rules)
    return found


@pytest.mark.parametrize("method", ["pa", "rb"])
def test_each_rule_has_its_share_of_the_triples(small, results, method):
    decisions = {name: result.decisions for name, result in results[method].items()}
    for name, shares in rule_shares(small, method, decisions).items():
        wanted = shares_by_definition(small, method, decisions[name])
        assert {share.rule for share in shares} == set(wanted)
        for share in shares:
            triples, right = wanted[share.rule]
            assert share.triples == pytest.approx(triples)
            assert share.accuracy == pytest.approx(right / triples)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_what_the_rules_contribute_adds_up(seed):
    made = _MADE[0]
    draw = np.random.default_rng(seed)
    sizes = len(made.positives.test), len(made.negatives["pa"].splits.test)
    said = ShortcutDecisions(*(draw.random(size) < 0.6 for size in sizes))
    shares = rule_shares(made, "pa", {"any": said})["any"]
    assert sum(share.triples for share in shares) == pytest.approx(sum(sizes))
    assert sum(share.contribution for share in shares) == pytest.approx(said.accuracy - 0.5)
    order = [share.contribution for share in shares]
    assert order == sorted(order, reverse=True)


def _made():
    names = [(f"e{i}", "likes", f"e{(i * 7 + 3) % 50}") for i in range(50)]
    names += [(f"e{i}", "knows", f"e{(i * 11 + 5) % 50}") for i in range(50)]
    graph = KnowledgeGraph.from_names(names, type_predicate="")
    return build(Recipe("path", ("composition", "inversion"), k1=2, k2=60, min_new=1), graph)


_MADE = [_made()]


def test_the_gate_names_method_shortcuts_features_and_rules(small, results):
    found = {exceeded.method: exceeded for exceeded in gate(small, 0.6, results)}
    assert set(found) == set(small.negatives)
    for method in found:
        first, *others = found[method].results
        assert first.name == LEARNED
        alone = [other.balanced_accuracy for other in others if other.name != SKELETON]
        assert alone == sorted(alone, reverse=True)
        message = found[method].message
        assert message.startswith(f"{method}: the shortcut `learned` reaches ")
        assert f"most by {next(iter(first.features))} (" in message
        assert f"`{others[0].name}` alone " in message
        rules = found[method].rules
        assert f"for {len(found[method].over)} of {len(rules)} rules" in message
        assert f"most for rule {rules[0].rule} (" in message
        assert found[method].texts[0] == f"rule {rules[0].rule}: {small.rules[rules[0].rule].rule}"
        plain = found[method].as_dict()
        assert plain["accuracy"] == first.balanced_accuracy
        assert list(plain["shortcuts"]) == [result.name for result in found[method].results]
        assert plain["rules"][0]["rule"] == rules[0].rule
    assert gate(small, 1.0, results) == []


def result_with(name, on_valid, on_test):
    """Return a shortcut with these balanced accuracies, of a hundred positives and no wrong negative."""
    scores = np.repeat([1.0, 0.0, 0.0], [round(200 * on_test - 100), round(200 - 200 * on_test), 100])
    return ShortcutResult(name, scores, 100, Cut(0.5), on_valid)


@pytest.mark.parametrize(
    ("name", "on_valid", "on_test", "refused"),
    [
        ("parallel", 0.9, 0.9, True),
        ("parallel", 0.5, 0.9, False),
        ("parallel", 0.9, 0.5, False),
        ("parallel", None, 0.9, True),
        ("simpbl", 0.5, 0.9, False),
        ("learned", 0.5, 0.9, True),
        ("learned", 0.9, 0.5, False),
        ("skeleton", 0.5, 0.9, True),
    ],
)
def test_a_single_feature_must_be_above_the_limit_on_valid_and_on_test(name, on_valid, on_test, refused):
    made = family(methods=("pa",))
    made = Benchmark(made.name, made.graph, made.positives, made.negatives)
    assert bool(gate(made, 0.8, {"pa": {name: result_with(name, on_valid, on_test)}})) == refused


def test_a_benchmark_without_rules_is_judged_without_them(small):
    bare = Benchmark(small.name, small.graph, small.positives, small.negatives)
    found = gate(bare, 0.51)
    assert found
    for exceeded in found:
        assert exceeded.rules == ()
        assert SKELETON not in [result.name for result in exceeded.results]
        assert "rule" not in exceeded.message.replace("relation", "")


@pytest.mark.parametrize(("limit", "hint"), [(0.5, "0.6"), (60, "0.6"), (1.01, "0.6"), (float("nan"), "0.6")])
def test_a_limit_that_makes_no_sense_is_refused(limit, hint):
    with pytest.raises(InputError, match=r"must be above 0\.5") as caught:
        check_limit(limit)
    assert hint in caught.value.hint
    with pytest.raises(InputError):
        audit(family(), max_shortcut=limit)


def test_the_audit_warns_or_fails_and_tells_the_rules(small, results):
    fine = audit(small, closure=False, max_shortcut=1.0)
    assert "max-shortcut" in fine.passed
    assert not fine.found("max-shortcut")
    warned = audit(small, closure=False, max_shortcut=0.6)
    assert warned.ok
    assert {f.severity for f in warned.found("max-shortcut")} == {"warning"}
    failed = audit(small, closure=False, max_shortcut=0.6, strict=True)
    assert not failed.ok
    assert [f.message for f in failed.found("max-shortcut")] == [e.message for e in gate(small, 0.6, results)]
    rules = warned.as_dict()["shortcuts"]["pa"]["learned"]["rules"]
    assert 0 < len(rules) <= 3
    assert rules[0].keys() == {"rule", "triples", "accuracy", "contribution"}
