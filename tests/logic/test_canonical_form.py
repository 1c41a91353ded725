import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.logic_strategies import equivalent_by_definition, rules, small_rules

from loginfer.logic import Inequality, Rule, Variable, canonical, canonical_text, equivalent, parse_rule


def disguised(rule, rng):
    """The same rule with other variables, in another order, inequalities turned, a part repeated."""
    names = [f"v{i}" for i in range(len(rule.variables))]
    rng.shuffle(names)
    renaming = {v: Variable(name) for v, name in zip(rule.variables, names, strict=True)}
    body = [part.rename(renaming) for part in rule.body]
    body = [Inequality(p.right, p.left) if isinstance(p, Inequality) and rng.random() < 0.5 else p for p in body]
    if body:
        body.append(rng.choice(body))
    rng.shuffle(body)
    return Rule(body, rule.head.rename(renaming))


@settings(deadline=None, max_examples=120)
@given(rules(), st.randoms(use_true_random=False))
def test_a_disguised_rule_has_the_same_canonical_form(rule, rng):
    form = canonical(rule)
    assert canonical(disguised(rule, rng)) == form
    assert canonical(form) == form
    assert equivalent_by_definition(rule, form)
    assert parse_rule(canonical_text(rule)) == form


@settings(deadline=None, max_examples=200)
@given(small_rules(), small_rules())
def test_canonical_forms_are_equal_exactly_for_equivalent_rules(left, right):
    assert (canonical(left) == canonical(right)) == equivalent_by_definition(left, right)


@settings(deadline=None, max_examples=120)
@given(small_rules(relations=1), st.data())
def test_one_changed_atom_is_noticed(rule, data):
    body = list(rule.body)
    place = data.draw(st.integers(0, len(body) - 1))
    part = body[place]
    swapped = part.rename(dict(zip(part.terms, part.terms[::-1], strict=True)))
    body[place] = swapped
    other = Rule(body, rule.head)
    assert equivalent(rule, other) == equivalent_by_definition(rule, other)


def clique(n):
    return ", ".join(f"x{i} != x{j}" for i in range(n) for j in range(i))


SYMMETRIC = {
    "star": ", ".join(f"(x{i},R,c0)" for i in range(10)) + f", {clique(10)} -> (c1,S,c2)",
    "cycle": ", ".join(f"(x{i},R,x{(i + 1) % 10})" for i in range(10)) + " -> (c1,S,c2)",
    "pairs": ", ".join(f"(x{i},R,y{i})" for i in range(8)) + " -> (c1,S,c2)",
    "cube": ", ".join(f"(x{i},R,x{i ^ b})" for i in range(8) for b in (1, 2, 4)) + " -> (c1,S,c2)",
    "two cycles": ", ".join(f"(x{i},R,x{(i + 1) % 4 + (i // 4) * 4})" for i in range(8)) + " -> (c1,S,c2)",
    "tournament": ", ".join(f"(x{i},R,x{(i + d) % 7})" for i in range(7) for d in (1, 2, 4)) + " -> (c1,S,c2)",
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_many_interchangeable_variables_are_no_problem(name):
    text = SYMMETRIC[name].replace("c0", "<c0>").replace("c1", "<c1>").replace("c2", "<c2>")
    rule = parse_rule(text)
    rng = random.Random(5)
    assert len({canonical(disguised(rule, rng)) for _ in range(4)} | {canonical(rule)}) == 1


def test_a_cycle_of_eight_differs_from_two_of_four():
    eight = parse_rule(", ".join(f"(x{i},R,x{(i + 1) % 8})" for i in range(8)) + " -> (<c1>,S,<c2>)")
    fours = parse_rule(
        ", ".join(f"(x{i},R,x{(i + 1) % 4 + i // 4 * 4})".replace("x8", "x4") for i in range(8)) + " -> (<c1>,S,<c2>)"
    )
    assert not equivalent(eight, fours)


def test_atoms_come_first_and_variables_are_named_as_they_come():
    rule = parse_rule("a != c, (b,S,c), c != a, (a,R,b), (b,S,c), a != c -> (a,T,c)")
    assert canonical_text(rule) == "(x,R,y), (y,S,z), x != z -> (x,T,z)"
