"""Entailment against its definition on all small graphs, and the compiled way against the plain one."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support.entailment_definition import check_derivation, entailed_on_all_small_graphs
from tests.support.logic_strategies import small_rules

from loginfer.kg import RDF_TYPE
from loginfer.logic import Atom, Constant, Inequality, Rule, Variable
from loginfer.logic.entailment import Entailment, PathRules

few = small_rules(max_parts=3, variables=3)


@st.composite
def in_two_cases(draw):
    """A rule as two: two of its terms differ, or they are one. Together they entail it, one alone hardly."""
    rule = draw(few)
    terms = [*rule.variables, Constant("c0")]
    assume(rule.variables)
    left = draw(st.sampled_from(rule.variables))
    right = draw(st.sampled_from([t for t in terms if t != left]))
    same = Rule([part.rename({left: right}) for part in rule.body], rule.head.rename({left: right}))
    cases = [Rule([*rule.body, Inequality(left, right)], rule.head), same]
    return rule, draw(st.sampled_from([cases, cases, cases[:1], cases[1:]]))


@st.composite
def in_two_steps(draw):
    """A rule by way of another relation; an inequality or a constant on the way may be too much."""
    rule = draw(small_rules(max_parts=2, variables=2))
    assume(isinstance(rule.head.subject, Variable))
    x, y = Variable("x"), Variable("y")
    both = isinstance(rule.head.object, Variable) and rule.head.object != rule.head.subject
    middle = Atom(rule.head.subject, "M", rule.head.object)
    then = Rule([Atom(x, "M", y)], Atom(x, rule.head.relation, y))
    more = draw(st.sampled_from([(), (), (Inequality(x, y),), (Inequality(x, Constant("c0")),)]))
    last = Rule([*then.body, *more], then.head)
    program = [Rule(rule.body, middle), last]
    if more and both and draw(st.booleans()):
        left, right = more[0].terms
        program.append(Rule([part.rename({left: right}) for part in then.body], then.head.rename({left: right})))
    return rule, program


@st.composite
def questions(draw):
    """A program and a rule that it entails about as often as not."""
    kind = draw(st.integers(0, 2))
    if kind == 0:
        rule, program = draw(in_two_steps())
    elif kind == 1:
        rule, program = draw(in_two_cases())
        program = program + draw(st.lists(few, max_size=1))
    else:
        program = draw(st.lists(few, min_size=1, max_size=3))
        rule = draw(few)
        if draw(st.booleans()):
            # The body of a rule with something else that may follow.
            body = draw(st.sampled_from(program)).body[:3]
            bound = sorted({v for part in body if isinstance(part, Atom) for v in part.variables})
            ends = st.sampled_from([*bound, *bound, Constant("c0")])
            rule = Rule(body, Atom(draw(ends), draw(st.sampled_from(["R0", "R1"])), draw(ends)))
    return program, rule


@settings(max_examples=150)
@given(questions())
def test_both_ways_agree_with_the_definition_on_all_small_graphs(question):
    program, rule = question
    expected = entailed_on_all_small_graphs(program, rule)
    for compiled in (False, True):
        ask = Entailment(program, compiled=compiled)
        assert ask.entails(rule) is expected
        steps = ask.derivation(rule)
        assert (steps is not None) is expected
        if steps:
            check_derivation(steps, rule, program)
        elif not expected:
            # The counterexample is one: a rule that says only this much is not entailed either.
            instance = ask.counterexample(rule)
            assert not entailed_on_all_small_graphs(program, Rule(instance.facts, instance.goal))


def test_the_definition_tells_entailed_from_not_entailed():
    """A second opinion that says yes to everything would be none."""
    x, y = Variable("x"), Variable("y")
    different = Rule([Atom(x, "R0", y), Inequality(x, y)], Atom(y, "R0", x))
    same = Rule([Atom(x, "R0", y)], Atom(y, "R0", x))
    assert entailed_on_all_small_graphs([different], same)
    other = Rule([Atom(x, "R0", y), Inequality(x, y)], Atom(y, "R1", x))
    assert not entailed_on_all_small_graphs([other], Rule([Atom(x, "R0", y)], Atom(y, "R1", x)))


# -- many path rules -----------------------------------------------------------------------------------

RELATIONS = ["R", "S", "T", RDF_TYPE]
CONSTANTS = ["ann", "bob", "cem"]


@st.composite
def tables(draw):
    """Path rules of all shapes as arrays, over few names so that they feed each other."""
    size = draw(st.integers(1, 8))
    code = st.integers(0, 2 * 3 - 1)
    rows = []
    for _ in range(size):
        path = draw(st.lists(code, min_size=1, max_size=3))
        variables = draw(st.sampled_from([0, 0, 1, 2]))
        constant = draw(st.integers(0, 2)) if variables else -1
        end = draw(st.integers(-1, 2)) if variables else -1
        head = draw(st.integers(0, 2))
        rows.append((head, variables, constant, end, *path, *[-1] * (3 - len(path))))
    table = np.array(rows)
    return {
        "head": table[:, 0],
        "variables": table[:, 1],
        "head_constant": table[:, 2],
        "end_constant": table[:, 3],
        "body": table[:, 4:],
        "relations": RELATIONS,
        "constants": CONSTANTS,
    }


@st.composite
def path_questions(draw):
    terms = [Variable("x"), Variable("y"), Variable("z"), Constant("ann")]
    ends = st.sampled_from(terms)
    body = draw(st.lists(st.builds(Atom, ends, st.sampled_from("RST"), ends), min_size=1, max_size=3))
    bound = sorted({v for a in body for v in a.variables}) or [Constant("bob")]
    head = Atom(draw(st.sampled_from(bound)), draw(st.sampled_from("RST")), draw(st.sampled_from(bound)))
    return Rule(body, head)


@settings(max_examples=200)
@given(tables(), st.lists(small_rules(max_parts=3, variables=3), max_size=2), path_questions())
def test_arrays_mean_what_the_same_rules_mean_one_by_one(table, others, rule):
    paths = PathRules(
        *(np.asarray(table[c], dtype=t) for c, t in (("head", "i4"), ("variables", "i1"))),
        *(np.asarray(table[c], dtype="i4") for c in ("head_constant", "end_constant", "body")),
        RELATIONS,
        CONSTANTS,
    )
    program = [*(paths.rule(i) for i in range(len(paths))), *others]
    plain = Entailment(program, compiled=False)
    for ask in (Entailment.of_table(others=others, **table), Entailment(program, compiled=True)):
        assert ask.entails(rule) is plain.entails(rule)
        assert ask.one_step(rule) is plain.one_step(rule)
        heads = [Atom(rule.head.subject, relation, rule.head.object) for relation in "RSTQ"]
        assert ask.entails_heads(rule, heads) == plain.entails_heads(rule, heads)
        steps = ask.derivation(rule)
        assert (steps is None) is (plain.derivation(rule) is None)
        if steps:
            check_derivation(steps, rule, program)


@settings(max_examples=100)
@given(tables())
def test_path_rules_are_recognised_among_rules(table):
    arrays = [np.asarray(table[c], dtype="i4") for c in ("head_constant", "end_constant", "body")]
    paths = PathRules(
        np.asarray(table["head"], dtype="i4"), np.asarray(table["variables"], dtype="i1"), *arrays, RELATIONS, CONSTANTS
    )
    rules = [paths.rule(i) for i in range(len(paths))]
    found, others = PathRules.of(rules)
    assert not others
    assert [str(found.rule(i)) for i in range(len(found))] == [str(rule) for rule in rules]
    assert found.body.shape == (len(rules), 3)
    columns = ("head", "variables", "head_constant", "end_constant", "body", "relations", "constants")
    again = PathRules(*(getattr(found, column) for column in columns))
    assert [str(again.rule(i)) for i in range(len(again))] == [str(rule) for rule in rules]


@pytest.mark.parametrize("seed", range(25))
def test_many_rules_that_feed_each_other_derive_the_same_either_way(seed):
    """Derivations of a dozen steps, many of them through constants that rules bring in."""
    random = np.random.default_rng(seed)
    size, names = 25, [f"R{i}" for i in range(6)]
    body = random.integers(0, 2 * len(names), (size, 3))
    body[np.arange(3) >= random.integers(1, 4, size)[:, None]] = -1
    variables = random.choice([0, 0, 1, 2], size)
    table = {
        "head": random.integers(0, len(names), size),
        "body": body,
        "variables": variables,
        "head_constant": np.where(variables > 0, random.integers(0, 3, size), -1),
        "end_constant": np.where(variables > 0, random.integers(-1, 3, size), -1),
    }
    ask = Entailment.of_table(relations=names, constants=CONSTANTS, **table)
    columns = [np.asarray(table[c], "i4") for c in ("head_constant", "end_constant", "body")]
    paths = PathRules(np.asarray(table["head"], "i4"), np.asarray(table["variables"], "i1"), *columns, names, CONSTANTS)
    program = [paths.rule(i) for i in range(size)]
    plain = Entailment(program, compiled=False)
    x, y, z = Variable("x"), Variable("y"), Variable("z")
    for first, second in random.integers(0, len(names), (4, 2)):
        rule = Rule([Atom(x, names[first], y), Atom(y, names[second], z)], Atom(x, names[0], z))
        heads = [Atom(left, name, right) for name in names for left, right in ((x, z), (z, x), (y, y))]
        answers = plain.entails_heads(rule, heads)
        assert ask.entails_heads(rule, heads) == answers
        for head, answer in zip(heads[:6], answers, strict=False):
            variant = Rule(rule.body, head)
            steps = ask.derivation(variant)
            assert (steps is not None) is answer
            if steps:
                check_derivation(steps, variant, program)
