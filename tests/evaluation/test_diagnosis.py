"""Diagnosis: verdicts, and witnesses of sub-rules against brute force."""

from __future__ import annotations

import gc
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.support.brute_force import facts, one_step
from tests.support.definitions import undesired
from tests.support.made_up_benchmarks import family

from loginfer.benchmark.benchmark import Benchmark, Splits
from loginfer.benchmark.construction.pipeline import build
from loginfer.benchmark.learned_shortcut import LEARNED, SIMPBL, SKELETON, shortcut_results
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.shortcut_features import FeatureBattery
from loginfer.benchmark.shortcuts import OracleScorer
from loginfer.engine import open_engine
from loginfer.evaluation.diagnosis import Diagnosis, diagnose, standing
from loginfer.evaluation.predictions import LabelledScores, Predictions
from loginfer.evaluation.thresholds import Thresholds, fit_thresholds
from loginfer.kg import KnowledgeGraph, load_graph
from loginfer.logic import parse_rule

pytestmark = pytest.mark.usefixtures("all_rounds")

TRIANGLES = (
    "(x,likes,y), (x,near,z), (y,near,z), x != z, y != z -> (x,knows,y)",
    "(x,near,y), (x,likes,z), (y,likes,z), x != y -> (x,helps,y)",
)
SIMPLE = ("(x,likes,y) -> (y,fears,x)", "(x,near,y), (y,likes,z) -> (x,meets,z)")


def people(rules, size: int, share: float, method: str, **settings) -> Benchmark:
    rng = np.random.default_rng(5)
    known = [
        (f"p{a:02}", relation, f"p{b:02}")
        for relation in ("likes", "near")
        for a, b in itertools.product(range(size), repeat=2)
        if rng.random() < share
    ]
    graph = KnowledgeGraph.from_names(known, type_predicate="")
    return build(Recipe("people", rules=rules, negatives=(method,), **settings), graph)


@pytest.fixture(scope="module")
def triangles() -> Benchmark:
    return people(TRIANGLES, 40, 0.2, "qg", k2=500)


@pytest.fixture(scope="module")
def simple() -> Benchmark:
    return people(SIMPLE, 40, 0.06, "pa", k2=500)


def scored(made: Benchmark, score) -> Predictions:
    """What a function of triples says about a benchmark."""
    (method,) = made.negatives
    negatives = made.negatives[method].splits
    return Predictions(
        method,
        *(
            LabelledScores(np.asarray(score(made.positives[s]), float), np.asarray(score(negatives[s]), float))
            for s in ("valid", "test")
        ),
    )


def oracle(made: Benchmark):
    return OracleScorer(open_engine(made.graph), made.program).score


def feature(made: Benchmark, name: str):
    return lambda triples: FeatureBattery(made.kg, [name]).values(triples)[:, 0]


def holds(made: Benchmark, *relations: str):
    """Say true if another relation already holds, whatever is asked: (x R y) → (x T y)."""

    def score(triples):
        found = np.zeros(len(triples), dtype=bool)
        for relation in relations:
            asked = triples.copy()
            asked[:, 1] = made.graph.relation_id(relation)
            found |= made.graph.contains(asked)
        return found

    return score


HALF = Thresholds.fixed(0.5)


# -- verdicts on benchmarks ------------------------------------------------------------------------


def test_an_oracle_has_learned_every_rule(triangles):
    for made in (triangles, people(SIMPLE, 40, 0.12, "nm", k2=500)):
        found = diagnose(made, scored(made, oracle(made)), HALF)
        assert [rule.text for rule in found.rules] == ["learned the rule"] * 2
        assert [rule.recall for rule in found.rules] == [1.0, 1.0]
        assert all(known.rate in (0.0, None) for rule in found.rules for known in rule.shortcuts)
        assert found.summary()[0] == "of 2 rules: 2 learned"


def test_a_rule_that_no_negatives_tell_from_adjacency_is_untested(simple):
    negatives = simple.negatives["pa"]
    test = negatives.splits.test
    test = test[feature(simple, "adjacent")(test) == 0]
    apart = replace(negatives, splits=replace(negatives.splits, test=test), origins={})
    made = replace(simple, negatives={"pa": apart})
    first, second = diagnose(made, scored(made, oracle(made)), HALF).rules
    assert first.text == "learned the rule or the shortcut adjacent -> (y,fears,x), which no negatives test"
    assert [known.text for known in first.shortcuts[:2]] == ["every (y,fears,x)", "adjacent -> (y,fears,x)"]
    # The ends of a path of length two are hardly ever adjacent: adjacency would not find its conclusions.
    assert second.verdict == "learned"


def test_a_system_that_knows_one_atom_of_the_body_has_learned_a_shortcut(triangles):
    found = diagnose(triangles, scored(triangles, holds(triangles, "likes", "near")), HALF)
    assert [rule.text for rule in found.rules] == [
        "learned the shortcut (x,likes,y) -> (x,knows,y)",
        "learned the shortcut (x,near,y) -> (x,helps,y)",
    ]
    instead = found.rules[1].instead
    assert (instead.kind, instead.rate) == ("sub-rule", 1.0)
    assert instead.witnesses >= 5
    counted, example = found.summary()[:2]
    assert counted == "of 2 rules: 2 replaced by a shortcut"
    assert "`(x,near,y) -> (x,helps,y)`" in example
    assert f"{instead.witnesses} of {instead.witnesses} wrong ones" in example


def test_a_system_that_knows_two_atoms_has_learned_the_longer_shortcut(triangles):
    rule = parse_rule("(x,near,z), (y,near,z) -> (x,knows,y)")
    engine = open_engine(triangles.graph)
    found = diagnose(triangles, scored(triangles, lambda asked: engine.derives([rule], asked)), HALF)
    first, second = found.rules
    assert (first.verdict, first.instead.text) == ("shortcut", "(x,near,z), (y,near,z) -> (x,knows,y)")
    assert (second.verdict, second.recall) == ("not learned", 0.0)


def test_where_no_sub_rule_has_witnesses_the_heads_relation_is_looked_at():
    made = people(TRIANGLES, 40, 0.06, "rb", k2=500, min_new=1, ratio="1:1:2")
    negatives = made.negatives["rb"]
    engine = open_engine(made.graph)
    test = negatives.splits.test
    test = test[~engine.derives([known.sub_rule for known in undesired(made.program)], test)]
    apart = replace(negatives, splits=replace(negatives.splits, test=test), origins={})
    made = replace(made, negatives={"rb": apart})
    found = diagnose(made, scored(made, lambda asked: np.ones(len(asked))), HALF)
    assert [rule.instead.text for rule in found.rules] == ["every (x,knows,y)", "every (x,helps,y)"]
    # Whoever says no to them may still have learned something simpler than the rule.
    found = diagnose(made, scored(made, oracle(made)), HALF)
    assert [(rule.verdict, rule.instead.text) for rule in found.rules] == [
        ("untested", "(x,likes,y) -> (x,knows,y)"),
        ("untested", "(x,near,y) -> (x,helps,y)"),
    ]


def test_an_inequality_need_not_be_tested():
    made = people(("(x,near,y), (y,likes,z), x != z -> (x,meets,z)",), 40, 0.06, "pa", k2=500)
    (rule,) = diagnose(made, scored(made, oracle(made)), HALF).rules
    forgets = next(known for known in rule.shortcuts if known.kind == "sub-rule")
    assert (forgets.text, forgets.tested) == ("(x,near,y), (y,likes,z) -> (x,meets,z)", False)
    assert rule.verdict == "learned"


def test_guessing_learns_nothing(triangles, simple):
    rng = np.random.default_rng(0)
    for made in (triangles, simple):
        found = diagnose(made, scored(made, lambda asked: rng.random(len(asked))), HALF)
        assert {rule.verdict for rule in found.rules} <= {"in part", "not learned"}


def test_saying_yes_to_everything_is_a_shortcut(triangles, simple):
    for made in (triangles, simple):
        found = diagnose(made, scored(made, lambda asked: np.ones(len(asked))), HALF)
        assert {rule.verdict for rule in found.rules} == {"shortcut"}
    assert found.rules[0].text == "learned the shortcut every (y,fears,x)"
    assert all(row["correlation"] is None for row in found.baselines.values())


def test_a_threshold_from_validation_does_as_well(triangles):
    predictions = scored(triangles, oracle(triangles))
    assert diagnose(triangles, predictions, fit_thresholds(predictions, triangles)) == diagnose(
        triangles, predictions, HALF
    )


@pytest.mark.parametrize("name", ["object-in-degree", "adjacent", "parallel"])
def test_the_scores_of_a_feature_follow_it(triangles, name):
    found = diagnose(triangles, scored(triangles, feature(triangles, name)), HALF)
    assert list(found.baselines) == list(shortcut_results(triangles, "qg"))
    assert found.baselines[name]["correlation"] == pytest.approx(1.0)
    (followed,) = (line for line in found.summary() if "the scores follow" in line)
    assert "(ρ = 1.00)" in followed
    assert found.baselines["simpbl"]["correlation"] is None  # everybody has every relation


def baseline(accuracy: float, correlation: float, turned: bool = False) -> dict:
    interval = [accuracy - 0.02, accuracy + 0.02]
    return {"balanced_accuracy": accuracy, "interval": interval, "correlation": correlation, "reversed": turned}


def followed(system: float, **baselines: dict) -> list[str]:
    best = {
        "standing": "below", "shortcut": LEARNED, "system": system, "balanced_accuracy": 1.0, "interval": [0.97, 1.0],
        "agreement": 0.9,
    }  # fmt: skip
    return [line for line in Diagnosis((), baselines, best).summary() if line.startswith("the scores")]


def test_scores_are_said_to_follow_a_shortcut_only_by_a_system_that_is_not_above_it():
    (line,) = followed(0.76, name=baseline(0.75, 0.8), other=baseline(0.6, 0.9))
    assert line == "the scores follow `name` (ρ = 0.80); `name` alone has a balanced accuracy of 75.0%"
    assert followed(0.8, name=baseline(0.75, 0.8)) == []


def test_who_makes_no_mistake_is_not_said_to_follow_a_shortcut():
    assert followed(1.0, skeleton=baseline(0.99, 1.0)) == []


def test_a_shortcut_that_is_reversed_is_called_so():
    (line,) = followed(0.7, degree=baseline(0.72, -0.6, turned=True))
    assert line == (
        "the scores run against `degree` (ρ = -0.60); `degree` alone, reversed, has a balanced accuracy of 72.0%"
    )


def test_who_decides_as_the_learned_shortcut_does_is_at_it(triangles):
    learned = shortcut_results(triangles, "qg")[LEARNED]
    scores = np.split(learned.scores, [learned.positives])
    found = diagnose(
        triangles,
        Predictions("qg", LabelledScores(*scores), LabelledScores(*scores)),
        Thresholds.fixed(learned.cut.threshold),
    )
    best = found.best_shortcut
    assert (best["shortcut"], best["standing"], best["agreement"]) == (LEARNED, "at", 1.0)
    assert best["system"] == best["balanced_accuracy"] == learned.balanced_accuracy
    assert found.baselines[LEARNED]["agreement"] == 1.0
    assert any(line.startswith("at the learned shortcut, which knows no rule: ") for line in found.summary())


def test_the_oracle_is_above_the_learned_shortcut_and_guessing_is_below_it(triangles):
    rng = np.random.default_rng(0)
    for score, words in ((oracle(triangles), "above"), (lambda asked: rng.random(len(asked)), "below")):
        found = diagnose(triangles, scored(triangles, score), HALF)
        assert found.best_shortcut["standing"] == words
        assert any(line.startswith(f"{words} the learned shortcut, ") for line in found.summary())
    assert [standing(value, (0.6, 0.7)) for value in (0.59, 0.6, 0.7, 0.71)] == ["below", "at", "at", "above"]


def test_agreement_counts_triples_with_the_same_decision(simple):
    rng = np.random.default_rng(3)
    predictions = scored(simple, lambda asked: rng.random(len(asked)))
    found = diagnose(simple, predictions, HALF)
    mine = np.concatenate([predictions.test.positive, predictions.test.negative]) >= 0.5
    for name, result in shortcut_results(simple, "pa").items():
        said = np.concatenate([result.decisions.positive, result.decisions.negative])
        assert found.baselines[name]["agreement"] == pytest.approx((mine == said).mean())


def test_a_rule_that_no_negatives_tell_from_the_learned_shortcut_is_untested(simple):
    learned = shortcut_results(simple, "pa")[LEARNED]
    negatives = simple.negatives["pa"]
    # Only negatives that the learned shortcut calls false are left.
    test = negatives.splits.test[~learned.decisions.negative]
    made = replace(
        simple, negatives={"pa": replace(negatives, splits=replace(negatives.splits, test=test), origins={})}
    )
    first, _ = diagnose(made, scored(made, oracle(made)), HALF).rules
    by_text = {known.text: known for known in first.shortcuts}
    assert by_text["learned shortcut -> (y,fears,x)"].witnesses == 0
    assert first.verdict == "untested"


def test_shortcuts_are_measured_once_for_a_benchmark_in_memory(triangles, monkeypatch):
    from loginfer.benchmark import learned_shortcut

    made, measured, calls = replace(triangles), learned_shortcut._measured, []
    monkeypatch.setattr(learned_shortcut, "_measured", lambda *about: calls.append(about) or measured(*about))
    for _ in range(3):
        diagnose(made, scored(made, oracle(made)), HALF)
    assert len(calls) == 1
    # They are forgotten with it.
    (key,) = (key for key in learned_shortcut._MEASURED if key[0] == id(made))
    calls.clear()
    del made
    gc.collect()
    assert key not in learned_shortcut._MEASURED


# -- witnesses by brute force ----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["qg", "pa", "rb"])
def test_witnesses_are_the_negatives_that_sub_rules_conclude(method):
    made = people(TRIANGLES, 18, 0.2, method, k2=50, ratio="1:1:2", min_new=1, protocol="paper")
    rng = np.random.default_rng(2)
    predictions = scored(made, lambda asked: rng.random(len(asked)))
    found = diagnose(made, predictions, HALF)

    train = facts(made.graph)
    negatives = made.graph.names(made.negatives[method].splits.test)
    said = dict(zip(negatives, (predictions.test.negative >= 0.5).tolist(), strict=True))
    true = one_step(made.program, train)
    assert found.derivable == len(true & set(negatives))
    false = set(negatives) - true
    own = [[known for known in undesired(made.program) if known.rule == place] for place in range(2)]
    for diagnosis, sub_rules in zip(found.rules, own, strict=True):
        listed = [known for known in diagnosis.shortcuts if known.kind == "sub-rule"]
        assert diagnosis.sub_rules == len(sub_rules) == sum(known.variants for known in listed)
        by_text = {known.text: known for known in listed}
        alike: dict[tuple, set[str]] = {}
        for known in sub_rules:
            witnesses = one_step([known.sub_rule], train) & false
            alike.setdefault((known.sub_rule.atoms, frozenset(witnesses)), set()).add(str(known.sub_rule))
        assert len(alike) == len(listed)
        for (atoms, witnesses), texts in alike.items():
            (shown,) = (by_text[text] for text in texts & by_text.keys())
            assert len(shown.text) == min(map(len, texts))
            assert (shown.witnesses, shown.variants) == (len(witnesses), len(texts))
            assert shown.predicted == sum(said[triple] for triple in witnesses)
            assert shown.size[0] == len(atoms)


@pytest.mark.parametrize("written_down", [True, False])
def test_recall_is_that_of_a_rules_own_conclusions(written_down):
    made = people(TRIANGLES, 16, 0.2, "qg", k2=60, ratio="1:1:2", min_new=1)
    rng = np.random.default_rng(4)
    predictions = scored(made, lambda asked: rng.random(len(asked)))
    known = facts(made.kg)
    made = made if written_down else replace(made, provenance=None)
    names = made.graph.names(made.positives.test)
    for rule, diagnosis in zip(made.program, diagnose(made, predictions, HALF).rules, strict=True):
        derived = one_step([rule], known)
        own = [i for i, triple in enumerate(names) if triple in derived]
        assert diagnosis.conclusions == len(own) > 0
        assert diagnosis.predicted == sum(predictions.test.positive[i] >= 0.5 for i in own)


def test_negatives_that_follow_from_the_rules_are_left_out():
    made = people(SIMPLE, 16, 0.2, "rb", k2=60, min_new=1, protocol="paper")
    found = diagnose(made, scored(made, oracle(made)), HALF)
    derived = one_step(made.program, facts(made.graph))
    assert found.derivable == sum(t in derived for t in made.graph.names(made.negatives["rb"].splits.test)) > 0
    assert any("follow" in line and "left out" in line for line in found.summary())
    assert all(known.predicted == 0 for rule in found.rules for known in rule.shortcuts)


# -- what is not known -----------------------------------------------------------------------------


def test_without_rules_only_baselines_are_compared(triangles):
    made = replace(triangles, rules=(), provenance=None)
    found = diagnose(made, scored(made, oracle(triangles)), HALF)
    assert found.rules == ()
    assert list(found.baselines) == [name for name in shortcut_results(triangles, "qg") if name != SKELETON]
    assert found.summary()[-1] == "the rules of this benchmark are not known"


def test_without_negatives_there_is_recall(triangles):
    made = replace(triangles, negatives={})
    ones = LabelledScores(np.ones(len(made.positives.test)), np.zeros(0))
    found = diagnose(made, Predictions(None, ones, ones), HALF)
    assert (found.baselines, found.best_shortcut) == ({}, {})
    assert [(rule.recall, rule.verdict) for rule in found.rules] == [(1.0, "untested")] * 2


def test_without_valid_shortcuts_are_fitted_on_train(triangles):
    nothing = triangles.positives.valid[:0]
    positives = Splits(triangles.positives.train, nothing, triangles.positives.test)
    negatives = triangles.negatives["qg"]
    splits = Splits(negatives.splits.train, nothing, negatives.splits.test)
    made = replace(triangles, positives=positives, negatives={"qg": replace(negatives, splits=splits)})
    found = diagnose(made, scored(made, oracle(triangles)), HALF)
    assert {rule.verdict for rule in found.rules} == {"learned"}
    assert {LEARNED, SKELETON, SIMPBL} < set(found.baselines)
    assert found.best_shortcut["shortcut"] == LEARNED
    assert any(line.startswith("above the learned shortcut") for line in found.summary())


def test_a_body_too_long_for_sub_rules_is_noted(triangles):
    body = ", ".join(f"(v{i},likes,v{i + 1})" for i in range(20))
    long = parse_rule(f"{body} -> (v0,knows,v1)")
    rules = (*triangles.rules, replace(triangles.rules[0], rule=long))
    made = replace(triangles, rules=rules)
    found = diagnose(made, scored(made, lambda asked: np.ones(len(asked))), HALF)
    assert found.summary()[-1].startswith("sub-rules were not looked at: ")
    assert [rule.sub_rules for rule in found.rules] == [0, 0, 0]
    assert found.rules[2].verdict == "not testable"


def test_names_with_quotes_and_types_are_no_obstacle():
    made = family()
    scores = LabelledScores(np.ones(2), np.zeros(2))
    found = diagnose(made, Predictions("qg", scores, scores), HALF)
    assert [rule.verdict for rule in found.rules] == ["not testable"] * 3
    assert [rule.conclusions for rule in found.rules] == [2, 1, 0]


def test_a_diagnosis_is_json_and_the_same_each_time(triangles):
    rng = np.random.default_rng(6)
    predictions = scored(triangles, lambda asked: rng.random(len(asked)))
    found = diagnose(triangles, predictions, HALF).as_dict()
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text) == found
    again = diagnose(triangles, predictions, HALF, engine=open_engine(triangles.graph))
    assert json.dumps(again.as_dict()) == text
    assert sum(found["verdicts"].values()) == 2


# -- a real graph ----------------------------------------------------------------------------------


@pytest.mark.data
def test_adjacency_is_exposed_on_the_triangles_of_wordnet(data_folder):
    recipe = Recipe("wn18rr", patterns=("triangle",), k1=20, k2=10_000, negatives=("qg",))
    made = build(recipe, load_graph("wn18rr"))
    honest = diagnose(made, scored(made, oracle(made)), HALF)
    assert honest.verdicts["learned"] == 20
    adjacent = diagnose(made, scored(made, feature(made, "adjacent")), HALF)
    assert adjacent.verdicts["shortcut"] == 20
    assert all(len(parse_rule(rule.instead.text).body) == 1 for rule in adjacent.rules)


def test_scores_that_are_the_opposite_of_a_baseline_run_against_it():
    found = Diagnosis((), {"adjacent": {"correlation": -0.9, "balanced_accuracy": 0.6, "interval": [0.5, 0.7]}})
    sentence = "the scores run against `adjacent` (ρ = -0.90); `adjacent` alone has a balanced accuracy of 60.0%"
    assert found.summary() == [sentence]
    best = {"shortcut": "learned", "system": 0.7, "balanced_accuracy": 0.7, "interval": [0.6, 0.8], "agreement": 0.5}
    for standing_, count in (("above", 1), ("at", 2), ("below", 2)):
        assert len(replace(found, best_shortcut={**best, "standing": standing_}).summary()) == count
