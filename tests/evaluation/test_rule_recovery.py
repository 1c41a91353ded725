"""The analysis of mined rules, against rules made for it and against the engine."""

import numpy as np
import pytest
from tests.support.made_up_benchmarks import family

from loginfer.engine import extend, open_engine
from loginfer.errors import InputError
from loginfer.evaluation import rule_recovery
from loginfer.evaluation.rule_recovering import CONFIDENCES, contained
from loginfer.kg import KnowledgeGraph
from loginfer.logic import ScoredRule, parse_rule, subrules_of
from loginfer.logic.rule import Constant
from loginfer.systems.rules.mined import MinedRules, RuleTable
from loginfer.systems.rules.texts import path_rule

RELATIONS = ["likes", "knows", "hates", "sees", "hears", "feels"]
GRAPH = KnowledgeGraph.from_names([("ann", r, "bob") for r in RELATIONS] + [("bob", "rdf:type", "Fan")])


def scored(text, confidence=None):
    return ScoredRule(parse_rule(text), 10, 5, confidence)


BENCHMARK_RULES = [
    parse_rule("(x,likes,y), (y,likes,z) -> (x,knows,z)"),
    parse_rule("(x,likes,y), (x,sees,y) -> (x,hears,y)"),
    parse_rule("(x,hates,y) -> (y,hates,x)"),
]
MINED = [
    scored("(b,likes,c), (a,likes,b) -> (a,knows,c)", 0.9),
    scored("(x,likes,y) -> (y,feels,x)", 0.06),
    scored("(x,feels,y) -> (y,hears,x)", 0.5),
]


def test_rules_are_found_entailed_or_missed():
    found = rule_recovery(BENCHMARK_RULES, MINED, GRAPH)
    assert [rule.status for rule in found.rules] == ["found", "entailed", "missed"]
    assert [rule.single_step for rule in found.rules] == [True, False, False]
    figures = found.figures
    assert (figures.eps_ent, figures.eps_cont, figures.eps_ent_single_step) == (2 / 3, 1 / 3, 1 / 3)
    assert figures.mined == 3
    assert figures.undecided == 0
    derivation = found.rules[1].derivation
    assert [str(step.rule) for step in derivation] == [str(MINED[1].rule), str(MINED[2].rule)]
    assert found.rules[2].derivation == ()


def test_sub_rules_that_were_learned_instead_are_named():
    found = rule_recovery(BENCHMARK_RULES, MINED, GRAPH)
    subrules = found.rules[1].subrules
    assert {str(s.rule): s.entailed for s in subrules} == {
        "(x,likes,y) -> (x,hears,y)": True,
        "(x,sees,y) -> (x,hears,y)": False,
    }
    assert [str(rule) for rule in found.rules[1].shortcuts] == ["(x,likes,y) -> (x,hears,y)"]
    assert found.subrules == len(subrules_of(BENCHMARK_RULES)) == 2
    assert found.figures.subrules_entailed == 0.5
    # Nothing can be left out of a body of one atom.
    assert rule_recovery(BENCHMARK_RULES[2:], MINED, GRAPH).figures.subrules_entailed is None


def test_only_rules_of_some_confidence_count():
    found = rule_recovery(BENCHMARK_RULES, MINED, GRAPH, confidences=(0.5, 0, 0.1, 1))
    assert [(f.confidence, f.mined, f.eps_ent) for f in found.by_confidence] == [
        (0, 3, 2 / 3), (0.1, 2, 1 / 3), (0.5, 2, 1 / 3), (1, 0, 0),
    ]  # fmt: skip
    assert [f.subrules_entailed for f in found.by_confidence] == [0.5, 0, 0, 0]
    # A rule without a confidence is taken at its word.
    certain = [ScoredRule(rule.rule) for rule in MINED]
    found = rule_recovery(BENCHMARK_RULES, certain, GRAPH)
    assert [f.mined for f in found.by_confidence] == [3] * len(CONFIDENCES)


def test_random_heads_are_seeded_and_never_the_right_one():
    rules = [parse_rule("(x,likes,y) -> (x,knows,y)")]
    mined = [scored("(x,likes,y) -> (x,knows,y)"), scored("(x,likes,y) -> (x,hates,y)")]
    found = rule_recovery(rules, mined, GRAPH, draws=200)
    # Of hates, sees, hears and feels one is entailed.
    assert 0.15 < found.figures.eps_ent_random_heads < 0.35
    assert found.rules[0].random_heads == found.figures.eps_ent_random_heads
    assert rule_recovery(rules, mined, GRAPH, draws=200) == found
    others = {rule_recovery(rules, mined, GRAPH, draws=20, seed=s).figures.eps_ent_random_heads for s in range(9)}
    assert len(others) > 1
    everything = [scored(f"(x,likes,y) -> (x,<{r}>,y)") for r in RELATIONS]
    assert rule_recovery(rules, everything, GRAPH).figures.eps_ent_random_heads == 1
    only = rule_recovery(rules, mined[:1], GRAPH)
    assert (only.figures.eps_ent, only.figures.eps_ent_random_heads) == (1, 0)


def test_a_type_is_replaced_by_a_type():
    rules = [parse_rule("(x,likes,y) -> (x,type,Person)")]
    graph = KnowledgeGraph.from_names([("a", "likes", "b"), ("a", "type", "Person"), ("b", "type", "Fan")])
    found = rule_recovery(rules, [scored("(x,likes,y) -> (x,type,Fan)")], graph)
    assert (found.figures.eps_ent, found.figures.eps_ent_random_heads) == (0, 1)
    no_other = KnowledgeGraph.from_names([("a", "likes", "b"), ("a", "type", "Person")])
    found = rule_recovery(rules, [scored("(x,likes,y) -> (x,type,Person)")], no_other)
    assert (found.figures.eps_ent, found.figures.eps_ent_random_heads) == (1, None)


def test_inequalities_of_mined_rules_count():
    rules = [parse_rule("(x,likes,y), (y,likes,z) -> (x,knows,z)"),
             parse_rule("(x,likes,y), (y,likes,z), x != z -> (x,knows,z)")]  # fmt: skip
    found = rule_recovery(rules, [scored("(x,likes,y), (y,likes,z), x != z -> (x,knows,z)")], GRAPH)
    assert [rule.status for rule in found.rules] == ["missed", "found"]
    # And those of a benchmark rule make no difference to mined rules without any.
    found = rule_recovery(rules, [scored("(x,likes,y), (y,likes,z) -> (x,knows,z)")], GRAPH)
    assert [rule.status for rule in found.rules] == ["found", "entailed"]


def random_table(seed, size=120):
    random = np.random.default_rng(seed)
    people = [GRAPH.entity_id(name) for name in ("ann", "bob")]
    body = random.integers(0, 2 * len(GRAPH.relations), (size, 3))
    body = np.where(body // 2 == GRAPH.type_relation, 0, body)
    body[np.arange(3) >= random.integers(1, 4, size)[:, None]] = -1
    variables = random.choice([0, 0, 1, 2], size)
    constants = random.choice(people, size)
    return RuleTable.of(
        head=np.array([GRAPH.relation_id(r) for r in RELATIONS])[random.integers(0, len(RELATIONS), size)],
        variables=variables,
        body=body,
        head_constant=np.where(variables > 0, constants, -1),
        end_constant=np.where((variables > 0) & (random.random(size) < 0.7), constants[::-1], -1),
        confidence=random.random(size),
    )


@pytest.mark.parametrize("seed", range(12))
def test_shares_are_those_that_the_engine_finds_on_frozen_bodies(seed):
    """The canonical instance as a graph of its own, materialised by the engine."""
    table = random_table(seed, 25)
    mined = MinedRules(table)
    program = [path_rule(table, place, GRAPH).rule for place in range(len(table))]
    triples = (("likes", "sees", "knows"), ("hates", "hates", "feels"), ("sees", "knows", "likes"))
    rules = [parse_rule(f"(x,{a},y), (y,{b},z) -> (x,{c},z)") for a, b, c in triples]
    found = rule_recovery(rules, mined, GRAPH, confidences=())
    for rule, answer in zip(rules, found.rules, strict=True):
        frozen = {v: Constant(f"frozen {v}") for v in rule.variables}
        facts = [atom.rename(frozen) for atom in rule.atoms]
        goal = rule.head.rename(frozen)
        graph = KnowledgeGraph.from_names([(a.subject.name, a.relation, a.object.name) for a in facts])
        graph = extend(graph, [*program, rule])
        closed = open_engine(graph).materialise(program)
        names = set(graph.names(closed.triples)) | set(graph.names(graph.triples))
        assert answer.entailed is ((goal.subject.name, goal.relation, goal.object.name) in names)
    assert found.figures.eps_ent == sum(rule.entailed for rule in found.rules) / 3


def test_rows_of_a_table_are_found_however_a_rule_is_written():
    table = random_table(0)
    rules = [path_rule(table, place, GRAPH).rule for place in range(len(table))]
    turned = [parse_rule(f"{', '.join(str(a) for a in r.atoms[::-1])} -> {r.head}") for r in rules]
    mined = MinedRules(table)
    assert all(contained(turned, mined, GRAPH))
    kept = np.arange(len(table)) % 2 == 0
    half = contained(rules, MinedRules(table.take(kept)), GRAPH)
    texts = {str(rule) for rule, k in zip(rules, kept, strict=True) if k}
    assert half == [str(rule) in texts for rule in rules]
    assert contained([parse_rule("(x,smells,y) -> (y,smells,x)")], mined, GRAPH) == [False]


def test_a_benchmark_recovers_its_own_rules():
    benchmark = family()
    own = [ScoredRule(rule) for rule in benchmark.program]
    found = rule_recovery(benchmark.program, own, benchmark.graph)
    assert (found.figures.eps_cont, found.figures.eps_ent) == (1, 1)
    assert {rule.status for rule in found.rules} == {"found"}


def test_nothing_to_compare_is_told():
    with pytest.raises(InputError, match="the benchmark has no rules"):
        rule_recovery([], MINED, GRAPH)
    for nothing in ([], MinedRules(RuleTable.of(head=[0], variables=[1], head_constant=[0], body=[[-1]]))):
        with pytest.raises(InputError, match="no rules were mined"):
            rule_recovery(BENCHMARK_RULES, nothing, GRAPH)
    with pytest.raises(InputError, match="between 0 and 1"):
        rule_recovery(BENCHMARK_RULES, MINED, GRAPH, confidences=(2,))


def test_zero_rules_are_passed_over():
    table = RuleTable.of(
        head=[1, 0], variables=[1, 0], head_constant=[0, -1], body=[[-1, -1], [2, -1]], confidence=[1, 1]
    )
    found = rule_recovery(BENCHMARK_RULES, MinedRules(table), GRAPH)
    assert found.figures.mined == 1
