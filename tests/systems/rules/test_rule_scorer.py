"""Scores by path rules: every shape, aggregation and position against trying everything."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.rule_brute_force import (
    ENTITIES,
    RELATIONS,
    expected_order,
    graphs,
    path_tables,
    row_predicts,
    scored_rules,
    small_graph,
)

from loginfer import load_graph
from loginfer.engine import open_engine
from loginfer.engine.native.engine import NativeEngine
from loginfer.errors import InputError, LimitError, UnknownNameError
from loginfer.kg import KnowledgeGraph
from loginfer.logic.dialects.arrow import parse_rule
from loginfer.logic.rule import Constant, ScoredRule
from loginfer.systems.rules.application import AGGREGATIONS, ConfidenceLevels, add_rule, running_scores
from loginfer.systems.rules.mined import BOTH, NONE, OBJECT, SUBJECT, MinedRules, RuleTable, from_arrays
from loginfer.systems.rules.scorer import RuleScorer
from loginfer.systems.rules.texts import path_rule

EVERYTHING = np.array(list(product(range(ENTITIES), range(RELATIONS), range(ENTITIES))), dtype=np.int32)


def expected(aggregation: str, order: list[float]) -> float:
    if not order:
        return 0.0
    if aggregation == "noisy-or":
        return 1.0 - float(np.prod([1.0 - c for c in order[:5]]))
    if aggregation == "sum":
        return order[0] + 1e-4 * (len(order) - 1)
    return order[0]


@settings(max_examples=150)
@given(graphs(), path_tables(), st.booleans(), st.sampled_from(AGGREGATIONS))
def test_scores_are_those_of_the_rules_that_predict_a_triple(graph, table, distinct, aggregation):
    rules = MinedRules(table, distinct=distinct)
    scores = RuleScorer(graph, rules, aggregation).score(EVERYTHING)
    orders = [expected_order(graph, rules, triple) for triple in EVERYTHING]
    wanted = np.array([expected(aggregation, order) for order in orders])
    if aggregation == "maximum":
        known = np.append(np.unique(wanted), np.inf)
        assert (scores >= wanted).all()
        assert (scores < known[np.searchsorted(known, wanted) + 1])[wanted > 0].all()
        # With so few different confidences the floats are good for all rules of a triple.
        ranked = sorted(set(map(tuple, orders)))
        assert np.array_equal(
            np.unique(scores, return_inverse=True)[1], [ranked.index(tuple(order)) for order in orders]
        )
    else:
        assert np.allclose(scores, wanted, rtol=0, atol=1e-12)


@settings(max_examples=150)
@given(
    graphs(),
    path_tables(),
    st.booleans(),
    st.sampled_from(AGGREGATIONS),
    st.lists(st.integers(0, ENTITIES - 1), min_size=1, max_size=7),
)
def test_candidates_score_what_their_triples_do(graph, table, distinct, aggregation, entities):
    scorer = RuleScorer(graph, MinedRules(table, distinct=distinct), aggregation)
    relations = [entity % RELATIONS for entity in entities]
    queries = EVERYTHING[::4]
    for position, column, candidates in (("subject", 0, entities), ("relation", 1, relations), ("object", 2, entities)):
        wanted = np.array(candidates, dtype=np.int32)
        found = scorer.score_candidates(queries, position, wanted)
        triples = np.repeat(queries[:, None], len(wanted), axis=1)
        triples[:, :, column] = wanted
        assert np.array_equal(found, scorer.score(triples.reshape(-1, 3)).reshape(found.shape))


@settings(max_examples=60)
@given(graphs(), path_tables(), st.booleans())
def test_an_explanation_names_all_rules_that_predict_a_triple_best_first(graph, table, distinct):
    rules = MinedRules(table, distinct=distinct)
    scorer = RuleScorer(graph, rules)
    for triple in EVERYTHING[::3]:
        reasons = scorer.explain(triple)
        fired = [i for i in range(len(table)) if row_predicts(graph, rules, i, triple)]
        names = sorted(str(path_rule(table, i, graph)) for i in fired)
        assert sorted(str(reason.rule) for reason in reasons) == names
        assert [reason.confidence for reason in reasons] == expected_order(graph, rules, triple)
        assert all(reason.distinct == distinct for reason in reasons)


# -- rules of other shapes -------------------------------------------------------------------------

OTHERS = (
    "(x,r0,y), (x,r1,y) -> (x,r2,y)",
    "(x,r0,z), (z,r1,y), (x,r1,y), x != z -> (x,r0,y)",
    "(x,r0,x), (y,r1,y) -> (x,r1,y)",
    "(x,r0,a), (y,r1,b), x != y -> (x,r2,y)",
    "(x,r0,a), (x,r1,b) -> (x,r2,<e1>)",
    "(x,r0,a), (x,r1,b) -> (<e1>,r2,x)",
    "(x,r0,y) -> (y,r1,y)",
    "(<e0>,r0,<e1>) -> (<e2>,r2,<e3>)",
    "(x,r0,y) -> (x,nowhere,y)",
    "(x,r0,y) -> (x,r0,nobody)",
)


def conclusions(rule, graph) -> set[tuple[str, str, str]]:
    """Return what a rule of any shape predicts, by trying all substitutions."""
    facts = {(s, r, o) for s, r, o in graph.names(graph.triples)}
    found = set()
    for values in product(graph.entities, repeat=len(rule.variables)):
        names = {variable: Constant(value) for variable, value in zip(rule.variables, values, strict=True)}
        if any(names.get(i.left, i.left) == names.get(i.right, i.right) for i in rule.inequalities):
            continue
        *body, head = [(a.subject.name, a.relation, a.object.name) for a in (a.rename(names) for a in rule)]
        if facts.issuperset(body):
            found.add(head)
    return found


def best_confidence(score: float, known) -> float:
    return max(value for value in known if value <= score)


@settings(max_examples=25)
@given(graphs(), path_tables(4), st.sampled_from(AGGREGATIONS), st.integers(0, 2**10 - 1))
def test_rules_of_other_shapes_count_in_all_positions(graph, table, aggregation, chosen):
    others = tuple(
        ScoredRule(parse_rule(text), confidence=None if i == 4 else (i + 1) / 10)
        for i, text in enumerate(OTHERS)
        if chosen >> i & 1
    )
    rules = MinedRules(table, others)
    scorer = RuleScorer(graph, rules, aggregation)
    scores = scorer.score(EVERYTHING)
    # Without what breaks ties between equal best confidences.
    known = [0.0, *table.confidence, *(other.confidence or 1.0 for other in others)]
    known = known if aggregation == "maximum" else scores
    predicted = [(conclusions(other.rule, graph), other.confidence or 1.0) for other in others]
    for place, (triple, name) in enumerate(zip(EVERYTHING, graph.names(EVERYTHING), strict=True)):
        order = expected_order(graph, rules, triple) + [c for found, c in predicted if name in found]
        order.sort(reverse=True)
        assert best_confidence(scores[place], known) == pytest.approx(expected(aggregation, order), abs=1e-12)
        if place % 11 == chosen % 11:
            assert [reason.confidence for reason in scorer.explain(triple)] == order
    by_position = {
        "object": scorer.score_candidates(EVERYTHING[::ENTITIES], "object", np.arange(ENTITIES)),
        "relation": scorer.score_candidates(
            EVERYTHING.reshape(ENTITIES, RELATIONS, ENTITIES, 3)[:, 0].reshape(-1, 3), "relation", np.arange(RELATIONS)
        )
        .reshape(ENTITIES, ENTITIES, RELATIONS)
        .transpose(0, 2, 1),
        "subject": scorer.score_candidates(EVERYTHING[: RELATIONS * ENTITIES], "subject", np.arange(ENTITIES)).T,
    }
    for found in by_position.values():
        assert np.array_equal(found.ravel(), scores)


def test_a_rule_with_too_many_conclusions_to_list_is_asked_about_each_candidate(monkeypatch):
    graph = small_graph([(i, 0, j) for i in range(4) for j in range(3)] + [(1, 1, 2)])
    rules = MinedRules(RuleTable.empty(), (ScoredRule(parse_rule("(x,r0,z), (y,r0,z) -> (x,r1,y)")),))
    wanted = RuleScorer(graph, rules).score_candidates(EVERYTHING, "subject", np.arange(ENTITIES))

    def refuse(self, rule):
        raise LimitError("too many")

    monkeypatch.setattr(NativeEngine, "projection", refuse)
    scorer = RuleScorer(graph, rules)
    assert np.array_equal(scorer.score_candidates(EVERYTHING, "subject", np.arange(ENTITIES)), wanted)
    assert (wanted > 0).any()
    objects = scorer.score_candidates(EVERYTHING[::ENTITIES], "object", np.arange(ENTITIES))
    assert np.array_equal(objects.ravel(), scorer.score(EVERYTHING))


# -- what else must hold ---------------------------------------------------------------------------


def one_rule(confidence: float, **columns) -> RuleTable:
    return RuleTable.of(head=[0], body=[[2]], confidence=[confidence], **columns)


def test_without_rules_all_triples_score_nothing():
    scorer = RuleScorer(small_graph([(0, 0, 1)]), MinedRules(RuleTable.empty()))
    assert not scorer.score(EVERYTHING).any()
    assert scorer.score(EVERYTHING[:0]).shape == (0,)
    for position, size in (("subject", ENTITIES), ("relation", RELATIONS), ("object", ENTITIES)):
        found = scorer.score_candidates(EVERYTHING[:4], position, np.arange(size))
        assert found.shape == (4, size)
        assert not found.any()
        assert scorer.score_candidates(EVERYTHING[:0], position, np.arange(size)).shape == (0, size)
        assert scorer.score_candidates(EVERYTHING[:2], position, np.arange(0)).shape == (2, 0)
    assert scorer.explain([0, 0, 1]) == []


def test_a_graph_without_triples_has_no_predictions_but_those_of_zero_rules():
    table = RuleTable.of(
        head=[0, 1], body=[[2], [NONE]], variables=[BOTH, SUBJECT], head_constant=[NONE, 3], confidence=[1, 0.5]
    )
    scores = RuleScorer(small_graph([]), MinedRules(table)).score(EVERYTHING)
    assert np.array_equal(scores > 0, (EVERYTHING[:, 1] == 1) & (EVERYTHING[:, 2] == 3) & (EVERYTHING[:, 0] != 3))


@pytest.mark.parametrize("confidence", [0.0, -0.5, float("nan")])
def test_a_rule_without_worth_predicts_nothing(confidence):
    scorer = RuleScorer(small_graph([(0, 1, 2)]), MinedRules(one_rule(confidence)))
    assert not scorer.score(EVERYTHING).any()
    assert scorer.explain([0, 0, 2]) == []


def test_a_type_ends_an_acyclic_rule_and_begins_none():
    names = [("ann", "type", "Person"), ("bob", "type", "Person"), ("ann", "knows", "bob")]
    graph = KnowledgeGraph.from_names(names)
    kind = graph.relation_id("type")
    person, knows = graph.entity_id("Person"), graph.relation_id("knows")
    ann, bob = graph.entity_id("ann"), graph.entity_id("bob")
    table = RuleTable.of(
        head=[knows, kind],
        variables=[SUBJECT, SUBJECT],
        head_constant=[bob, person],
        body=[[2 * kind], [2 * knows + 1]],
        end_constant=[person, NONE],
        confidence=[0.25, 0.5],
    )
    scorer = RuleScorer(graph, MinedRules(table))
    assert scorer.score([[ann, knows, bob], [bob, knows, bob]]).tolist() == [0.25, 0.0]
    assert scorer.score([[bob, kind, person], [ann, kind, person]]).tolist() == [0.5, 0.0]
    found = scorer.score_candidates(np.array([[0, kind, person]]), "subject", np.array([ann, bob]))
    assert found.tolist() == [[0.0, 0.5]]


def test_triples_of_the_graph_are_scored_like_any_others():
    scorer = RuleScorer(small_graph([(0, 0, 1), (0, 1, 1)]), MinedRules(one_rule(0.5)))
    assert scorer.score([[0, 0, 1]]).tolist() == [0.5]


def test_maximum_breaks_ties_several_rules_deep_among_many_confidences():
    # One head, one body relation each: triple k is predicted by the rules that `fires` says.
    draw = np.random.default_rng(3)
    confidence = np.sort(draw.choice(np.arange(1, 10**6), 20_000, replace=False)) / 10**6
    levels, rank = ConfidenceLevels.of(confidence, "maximum")
    sequences = [tuple(sorted(draw.choice(20_000, 6).tolist(), reverse=True)) for _ in range(500)]
    sequences += [(*sequence[:2], *other[2:]) for sequence in sequences[:100] for other in sequences[100:103]]
    sequences = [tuple(sorted(sequence, reverse=True)) for sequence in sequences]
    scores = []
    for sequence in sequences:
        running, count = running_scores(levels, 1), 0
        for place in sequence:
            count = add_rule.py_func(running, count, 0, int(rank[place]))
        scores.append(float(running.scores[0]))
        assert confidence[sequence[0]] <= scores[-1]
        assert sequence[0] == 19_999 or scores[-1] < confidence[sequence[0] + 1]
    order = sorted(range(len(sequences)), key=lambda i: sequences[i])
    ordered = [scores[i] for i in order]
    assert ordered == sorted(ordered)
    # Three rules deep at least: sequences that differ there have different scores.
    assert len(set(scores)) >= len({sequence[:3] for sequence in sequences})


def test_the_best_rule_of_all_is_hardly_exceeded():
    table = RuleTable.of(head=[0] * 300, body=[[2]] * 300, confidence=[1.0] * 300)
    score = RuleScorer(small_graph([(0, 1, 2)]), MinedRules(table)).score([[0, 0, 2]])
    assert 1 < score[0] < 1.001


def test_rules_over_another_graph_are_refused():
    table = RuleTable.of(head=[RELATIONS], body=[[0]], confidence=[1.0])
    with pytest.raises(InputError, match="another graph"):
        RuleScorer(small_graph([(0, 0, 1)]), MinedRules(table))


def test_an_unknown_aggregation_is_refused_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="noisy-or"):
        RuleScorer(small_graph([]), MinedRules(RuleTable.empty()), "noisy-and")


def test_a_scorer_comes_back_from_its_arrays():
    others = (ScoredRule(parse_rule("(x,r0,x) -> (x,r1,x)"), confidence=0.5),)
    rules = MinedRules(one_rule(0.5), others, distinct=False)
    graph = small_graph([(0, 1, 2), (3, 0, 3)])
    scorer = RuleScorer(graph, rules)
    again = RuleScorer(graph, from_arrays(scorer.arrays()))
    assert np.array_equal(again.score(EVERYTHING), scorer.score(EVERYTHING))


@pytest.mark.data
def test_on_a_real_graph_the_engine_agrees_rule_by_rule(data_folder):
    graph = load_graph("fb15k-237")
    draw = np.random.default_rng(5)
    steps = np.concatenate([graph.triples, graph.triples[:, ::-1]]).astype(np.int64)
    steps[:, 1] = 2 * steps[:, 1] + (np.arange(len(steps)) >= len(graph))
    steps = steps[np.argsort(steps[:, 0], kind="stable")]
    starts = np.searchsorted(steps[:, 0], np.arange(len(graph.entities) + 1))
    rows, asked = [], []
    for number in range(240):
        entity = start = int(draw.choice(graph.consts))
        body = [NONE] * 3
        for k in range(1 + number % 3):
            _, body[k], entity = steps[draw.integers(starts[entity], starts[entity + 1])].tolist()
        kind, relation = (BOTH, SUBJECT, OBJECT)[number // 3 % 3], int(draw.choice(graph.rels))
        constant = NONE if kind == BOTH else int(draw.choice(graph.consts))
        end = entity if kind != BOTH and number % 2 else NONE
        rows.append((relation, kind, constant, end, body))
        other = entity if kind == BOTH else constant
        asked.append((other, relation, start) if kind == OBJECT else (start, relation, other))
    head, variables, constants, ends, bodies = zip(*rows, strict=True)
    table = RuleTable.of(
        head=head,
        variables=variables,
        head_constant=constants,
        end_constant=ends,
        body=bodies,
        confidence=draw.permutation(len(rows)) + 1,
    )
    triples = np.concatenate([asked, graph.triples[draw.integers(0, len(graph), 2000)]]).astype(np.int32)
    rules, _ = scored_rules(MinedRules(table), graph)
    found = open_engine(graph).derivations([rule.rule for rule in rules], triples)
    wanted = np.zeros(len(triples))
    np.maximum.at(wanted, found.triple, np.array([rule.confidence for rule in rules])[found.rule])
    scores = RuleScorer(graph, MinedRules(table, distinct=False)).score(triples)
    # Confidences are whole numbers here, and what breaks ties does not reach the next one.
    assert np.array_equal(np.floor(scores), wanted)
    assert (wanted[: len(asked)] > 0).all()
