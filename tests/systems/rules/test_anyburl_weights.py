"""What AnyBURL's rules are worth when they are applied."""

import numpy as np
from tests.support.sampled_rules import graph_of, mine

from loginfer.logic import parse_rule
from loginfer.logic.rule import ScoredRule
from loginfer.systems.rules.anyburl import AnyBURL
from loginfer.systems.rules.mined import (
    BOTH,
    NONE,
    OBJECT,
    SUBJECT,
    MinedRules,
    RuleTable,
    applied,
    applied_confidence,
    as_benchmark,
)

# cyclic, AC1, AC2 of either side, zero
TABLE = RuleTable.of(
    head=[0, 0, 0, 0, 0],
    variables=[BOTH, SUBJECT, SUBJECT, OBJECT, SUBJECT],
    head_constant=[NONE, 1, 1, 1, 1],
    end_constant=[NONE, 2, NONE, NONE, NONE],
    body=[[2, 4, NONE], [2, NONE, NONE], [2, NONE, NONE], [2, 3, NONE], [NONE, NONE, NONE]],
    predictions=[15, 5, 15, 45, 495],
    correct=[10, 5, 10, 25, 250],
    confidence=[0.7, 1, 0.7, 0.6, 0.5],
)


def test_wrong_predictions_are_added_and_rules_that_say_little_are_worth_less():
    assert np.allclose(applied_confidence(TABLE), [10 / 20, 5 / 10, 0.1 * 10 / 20, 0.1 * 25 / 50, 0.005])
    plain = applied_confidence(TABLE, pseudo=0, ac2=1, zero=1)
    assert np.allclose(plain, TABLE.correct / TABLE.predictions)


def test_rules_without_counts_keep_the_confidence_that_they_came_with():
    table = RuleTable.of(head=[0, 0], body=[[2], [NONE]], variables=[BOTH, SUBJECT], confidence=[0.4, 0.4])
    assert np.allclose(applied_confidence(table), [0.4, 0.004])


def test_rules_about_loops_are_weighted_like_the_others():
    def scored(text, predictions=15, correct=9, confidence=0.6):
        return ScoredRule(parse_rule(text), predictions, correct, confidence)

    others = (
        scored("(x,r,x1) -> (x,s,x)"),
        scored("(x,r,Ulm) -> (x,s,x)"),
        scored("(x,r,x) -> (x,s,x)"),
        scored("(x,r,x) -> (x,s,Ulm)", None, None, 0.25),
    )
    worth = [rule.confidence for rule in applied(MinedRules(TABLE, others)).others]
    assert np.allclose(worth, [0.1 * 9 / 20, 9 / 20, 9 / 20, 0.25])


def test_a_scorer_uses_the_weights_and_the_files_do_not():
    triples = [t for i in range(9) for t in (f"a{i} likes b{i}", f"b{i} knows a{i}")]
    graph = graph_of([*triples, "a9 likes b9", "b8 likes a8"])
    benchmark = as_benchmark(graph, "made up")
    system = AnyBURL(steps=20, max_acyclic=0)
    rules = mine(system, graph)
    mirror = rules.paths.take((rules.paths.head == graph.relation_id("knows")) & (rules.paths.length == 1))
    assert mirror.confidence[0] == mirror.correct[0] / mirror.predictions[0]
    asked = np.array([[graph.entity_id("b9"), graph.relation_id("knows"), graph.entity_id("a9")]], dtype=np.int32)
    scorer = system.scorer(benchmark, rules)
    expected = mirror.correct[0] / (mirror.predictions[0] + 5)
    assert np.isclose(scorer.score(asked)[0], expected, rtol=1e-3)
    # What was kept is not weighted once more when it is brought back.
    assert np.array_equal(system.restore(benchmark, scorer.arrays()).score(asked), scorer.score(asked))
    bold = AnyBURL(steps=20, max_acyclic=0, pseudo_count=0, aggregation="noisy-or")
    assert bold.scorer(benchmark, rules).score(asked)[0] > expected
