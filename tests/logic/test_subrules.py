from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.logic_strategies import equivalent_by_definition, small_rules

from loginfer.errors import InputError, LimitError
from loginfer.logic import (
    Inequality,
    Rule,
    canonical_text,
    instantiate,
    parse_rule,
    pattern_named,
    subrules,
    subrules_of,
)


def by_definition(rule, equivalent=equivalent_by_definition):
    """Every proper subset of the body whose rule is safe; one per class of equivalent ones."""
    body = list({frozenset(p.terms) if isinstance(p, Inequality) else p: p for p in rule.body}.values())
    found = []
    for size in range(len(body)):
        for kept in combinations(body, size):
            try:
                candidate = Rule(kept, rule.head)
            except InputError:
                continue
            if not any(equivalent(candidate, known) for known in found):
                found.append(candidate)
    return found


def texts(rules):
    return sorted(canonical_text(rule) for rule in rules)


@settings(deadline=None, max_examples=120)
@given(small_rules())
def test_subrules_are_the_safe_proper_subsets_up_to_equivalence(rule):
    assert texts(subrules(rule)) == texts(by_definition(rule))


@settings(deadline=None, max_examples=80)
@given(st.lists(small_rules(max_parts=4, variables=3), max_size=4))
def test_the_subrules_of_a_program_leave_out_its_own_rules_and_say_where_they_came_from(rules):
    expected = {}
    for place, rule in enumerate(rules):
        for sub in by_definition(rule):
            if not any(equivalent_by_definition(sub, own) for own in rules):
                expected.setdefault(canonical_text(sub), []).append(place)
    found = subrules_of(rules)
    assert {canonical_text(sub.rule): list(sub.origins) for sub in found} == expected
    assert len(found) == len(expected)


def test_a_subrule_keeps_the_variables_of_its_rule_and_longer_ones_come_first():
    rule = instantiate(pattern_named("intersection"), ["p1", "q1"], "r1")
    assert [str(sub) for sub in subrules(rule)] == ["(x,<p1>,y) -> (x,<r1>,y)", "(x,<q1>,y) -> (x,<r1>,y)"]
    triangle = subrules(instantiate(pattern_named("triangle"), ["p1", "q1", "r1"], "s1"))
    assert [len(sub.body) for sub in triangle] == sorted((len(s.body) for s in triangle), reverse=True)


def test_a_disconnected_remainder_is_a_subrule():
    rule = instantiate(pattern_named("diamond"), ["p1", "q1", "r1", "s1"], "t1")
    assert canonical_text(parse_rule("(x,q1,z), (y,r1,w) -> (x,t1,y)")) in texts(subrules(rule))


def test_the_diamond_has_465_subrules_and_the_composition_none():
    rule = instantiate(pattern_named("diamond"), ["p1", "q1", "r1", "s1"], "t1")
    # No two of them are equivalent: the names differ, or the inequalities.
    assert len(subrules(rule)) == len(by_definition(rule, lambda one, two: False)) == 465
    assert subrules(instantiate(pattern_named("composition"), ["p1", "q1"], "t1")) == ()


def test_a_fact_remains_of_a_rule_with_a_ground_head():
    assert [str(s) for s in subrules(parse_rule("(x,R,y) -> (<c0>,S,<c1>)"))] == [" -> (<c0>,S,<c1>)"]


def test_a_body_with_too_many_subsets_is_refused():
    body = ", ".join(f"(x,R{i},y)" for i in range(19))
    with pytest.raises(LimitError, match="19 parts"):
        subrules(parse_rule(f"{body} -> (x,S,y)"))


def test_rules_with_many_interchangeable_variables_are_compared_all_the_same():
    one = parse_rule(", ".join(f"(x{i},R,<c0>)" for i in range(6)) + " -> (<c1>,S,<c2>)")
    # Dropping any atom but the last leaves the same rule; and so on down to the fact.
    assert len(subrules(one)) == 6
    shorter = parse_rule(", ".join(f"(y{i},R,<c0>)" for i in range(5)) + " -> (<c1>,S,<c2>)")
    assert len(subrules_of([one, shorter])) == 5
