"""Metrics of parts of a test set, against plain loops over the triples and scikit-learn."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.made_up_benchmarks import family

from loginfer.benchmark.benchmark import POSITIONS, Benchmark
from loginfer.benchmark.construction.pipeline import build
from loginfer.benchmark.negatives import SOURCES
from loginfer.benchmark.recipe import Recipe
from loginfer.evaluation.breakdown import GIVEN, LabelledRows, breakdown, group_metrics
from loginfer.evaluation.metric_table import metric_titles
from loginfer.evaluation.metrics import classification
from loginfer.evaluation.predictions import LabelledScores, Predictions
from loginfer.evaluation.thresholds import Thresholds
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import Atom

METRICS = tuple(metric_titles("classification"))
COUNTS = ("tp", "fp", "tn", "fn")


def one_group(rows: LabelledRows, chosen: list[int]) -> dict:
    """The metrics of some rows, by `classification`."""
    own = np.array(sorted(chosen), dtype=np.int64)
    true = rows.true[own]
    parts = (rows.scores[own], rows.predicted[own])
    (p, n), (said_p, said_n) = ((part[true], part[~true]) for part in parts)
    return {**classification(p, n, said_p, said_n), **confusion(said_p, said_n)}


def confusion(said_p: np.ndarray, said_n: np.ndarray) -> dict:
    tp, fp = sum(said_p.tolist()), sum(said_n.tolist())
    return {"tp": tp, "fp": fp, "tn": len(said_n) - fp, "fn": len(said_p) - tp}


def same(found: dict, expected: dict) -> bool:
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, abs=1e-12)
    return True


# A row: its score, whether it is predicted, and the groups that it is in.
row = st.tuples(st.integers(0, 3).map(float), st.booleans(), st.sets(st.integers(0, 4)))


@given(st.lists(row, max_size=20), st.lists(row, max_size=20))
@settings(max_examples=30)
def test_the_metrics_of_groups_are_those_of_their_rows(positive, negative):
    def columns(part):
        return np.array([s for s, _, _ in part], dtype=float), np.array([said for _, said, _ in part], dtype=bool)

    (p, said_p), (n, said_n) = columns(positive), columns(negative)
    rows = LabelledRows(p, n, said_p, said_n)
    pairs = [(g, i) for i, (_, _, groups) in enumerate([*positive, *negative]) for g in groups]
    group, place = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    found = group_metrics(rows, group, place, 5)
    for number in range(5):
        assert same(found[number], one_group(rows, [i for g, i in pairs if g == number]))
        assert list(found[number]) == [*METRICS, *COUNTS]


def test_many_groups_with_many_scores_agree_with_scikit_learn():
    rng = np.random.default_rng(3)
    rows = LabelledRows(rng.normal(1, 1, 900), rng.normal(0, 1, 800), rng.random(900) < 0.7, rng.random(800) < 0.4)
    group = rng.integers(0, 12, 1700)
    found = group_metrics(rows, group, np.arange(1700), 12)
    for number in range(12):
        assert same(found[number], one_group(rows, np.flatnonzero(group == number).tolist()))


# -- of benchmarks ---------------------------------------------------------------------------------

RULES = (
    "(x,likes,y), (y,likes,z), x != z -> (x,knows,z)",
    "(x,near,y) -> (x,knows,y)",
    "(x,near,y), (x,likes,y) -> (y,near,x)",
    "(x,type,Fan), (x,likes,y) -> (y,type,Star)",
)


def people(method: str) -> Benchmark:
    rng = np.random.default_rng(7)
    facts = [
        (f"p{a:02}", relation, f"p{b:02}")
        for relation, share in (("likes", 0.12), ("near", 0.12), ("knows", 0.02))
        for a, b in itertools.permutations(range(24), 2)
        if rng.random() < share
    ]
    facts += [(f"p{a:02}", "type", "Fan") for a in range(0, 24, 2)] + [("p01", "type", "Star")]
    graph = KnowledgeGraph.from_names(facts, type_predicate="type")
    return build(Recipe("people", rules=RULES, k2=200, negatives=(method,), min_new=1), graph)


def random_predictions(made: Benchmark, method: str) -> Predictions:
    rng = np.random.default_rng(1)
    negatives = made.negatives[method].splits

    def drawn(split):
        sizes = len(made.positives[split]), len(negatives[split])
        # Few distinct values, so that there are many ties.
        return LabelledScores(*(rng.integers(2 - label, 10 - label, n) * 1.0 for label, n in enumerate(sizes)))

    return Predictions(method, drawn("valid"), drawn("test"))


def all_rows(made: Benchmark, predictions: Predictions, thresholds: Thresholds) -> LabelledRows:
    test = predictions.test
    value = thresholds.value
    return LabelledRows(test.positive, test.negative, test.positive >= value, test.negative >= value)


def rows_of_rule(made: Benchmark, method: str, place: int) -> set[int]:
    """The rows of one rule: its conclusions, then its negatives."""
    names = made.graph.names
    known = made.provenance
    own = {
        triple
        for triple, number, rule in zip(
            (names(known.triples)[i] for i in known.conclusion.tolist()),
            known.conclusion.tolist(),
            known.rule.tolist(),
            strict=True,
        )
        if rule == place and known.split[number] == 2
    }
    positives = names(made.positives.test)
    found = {i for i, triple in enumerate(positives) if triple in own}
    assert len(found) == len(own)
    head = made.rules[place].rule.head
    origins = made.negatives[method].origins["test"]
    for i, (_, relation, obj) in enumerate(names(made.negatives[method].splits.test)):
        fits = (relation, obj) == ("type", "Star") if head.is_type else relation == head.relation
        if origins.rule[i] == place or (origins.rule[i] == -1 and fits):
            found.add(len(positives) + i)
    return found


@pytest.mark.parametrize("method", ["pa", "qg", "rb", "rc"])
def test_parts_are_those_of_plain_loops(method):
    made = people(method)
    predictions, thresholds = random_predictions(made, method), Thresholds.fixed(4.0)
    rows = all_rows(made, predictions, thresholds)
    found = breakdown(made, predictions, thresholds)
    triples = made.graph.names(np.vstack([made.positives.test, made.negatives[method].splits.test]))

    relations = sorted({relation for _, relation, _ in triples})
    assert list(found["relations"]) == relations
    for relation in relations:
        own = [i for i, triple in enumerate(triples) if triple[1] == relation]
        assert same(found["relations"][relation], one_group(rows, own))

    everything: set[int] = set()
    assert len(found["rules"]) == len(made.rules) == len(RULES)
    for place, known in enumerate(made.rules):
        part = dict(found["rules"][place])
        assert part.pop("rule") == str(known.rule)
        assert part.pop("pattern") == GIVEN
        own = rows_of_rule(made, method, place)
        assert same(part, one_group(rows, list(own)))
        everything |= own
    assert list(found["patterns"]) == [GIVEN]
    assert same(found["patterns"][GIVEN], one_group(rows, list(everything)))

    assert json.loads(json.dumps(found)) == found


def kind_of(made: Benchmark, method: str, i: int) -> str:
    origins = made.negatives[method].origins["test"]
    words = [SOURCES[origins.source[i]]]
    if origins.position[i]:
        words.append(POSITIONS[origins.position[i]])
    if origins.kept[i]:
        body = made.rules[origins.rule[i]].rule.body
        kept = [part for place, part in enumerate(body) if origins.kept[i] >> place & 1]
        atoms = [sum(isinstance(part, Atom) for part in parts) for parts in (kept, body)]
        words.append(f"{atoms[0]} of {atoms[1]} atoms")
    return ": ".join(words)


@pytest.mark.parametrize("method", ["pa", "qg", "rb", "rc"])
def test_each_kind_of_negative_is_held_against_all_positives(method):
    made = people(method)
    predictions, thresholds = random_predictions(made, method), Thresholds.fixed(4.0)
    rows = all_rows(made, predictions, thresholds)
    found = breakdown(made, predictions, thresholds)["negatives"]
    kinds = [kind_of(made, method, i) for i in range(rows.negatives)]
    assert list(found) == sorted(set(kinds))
    for kind, part in found.items():
        own = [i for i, other in enumerate(kinds) if other == kind]
        rate = sum(bool(rows.predicted[rows.positives + i]) for i in own) / len(own)
        expected = one_group(rows, [*range(rows.positives), *(rows.positives + i for i in own)])
        assert same(part, {"false_positive_rate": rate, **expected})


def test_the_sub_rules_of_query_guided_negatives_are_kinds():
    made = people("qg")
    kinds = breakdown(made, random_predictions(made, "qg"), Thresholds.fixed(4.0))["negatives"]
    assert "sub-rule: 1 of 2 atoms" in kinds
    assert "sub-rule: 2 of 2 atoms" in kinds  # what forgets x != z


def test_rules_of_a_pattern_count_together():
    made = family()
    scores = LabelledScores(np.ones(2), np.zeros(2))
    found = breakdown(made, Predictions("pa", scores, scores), Thresholds.fixed(0.5))
    assert [rule["pattern"] for rule in found["rules"]] == [GIVEN, "a pattern", "a pattern"]
    assert list(found["patterns"]) == ["a pattern", GIVEN]
    # A triple of test that the first two rules conclude counts for both, and once for each pattern.
    assert [rule["tp"] for rule in found["rules"]] == [2, 1, 0]
    assert [part["tp"] for part in found["patterns"].values()] == [1, 2]


def test_a_folder_without_rules_and_origins_has_relations_only():
    made = family()
    bare = {name: replace(known, origins={}) for name, known in made.negatives.items()}
    made = replace(made, rules=(), provenance=None, recipe=None, negatives=bare)
    scores = LabelledScores(np.ones(2), np.zeros(2))
    found = breakdown(made, Predictions("pa", scores, scores), Thresholds.fixed(0.5))
    assert (found["rules"], found["patterns"], found["negatives"]) == ([], {}, {})
    assert found["relations"]["knows"]["recall"] == 1.0


def test_without_negatives_there_are_still_positives():
    made = replace(family(), negatives={})
    scores = LabelledScores(np.array([1.0, 0.0]), np.zeros(0))
    found = breakdown(made, Predictions(None, scores, scores), Thresholds.fixed(0.5))
    assert sum(part["tp"] for part in found["relations"].values()) == 1
    assert all(part["roc_auc"] is None for part in found["relations"].values())
    assert found["negatives"] == {}


def test_an_empty_test_set_has_no_figures():
    made = replace(family(), negatives={})
    nothing = made.positives.test[:0]
    made = replace(made, positives=replace(made.positives, test=nothing))
    scores = LabelledScores(np.zeros(0), np.zeros(0))
    found = breakdown(made, Predictions(None, scores, scores), Thresholds.fixed(0.5))
    assert found["relations"] == {}
    assert all(part["recall"] is None for part in found["rules"])
