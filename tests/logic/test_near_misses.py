"""Near misses of rules: which edits there are, what they leave, and which of them are special."""

import pytest
from hypothesis import given
from tests.support.logic_strategies import small_rules

from loginfer.logic import Rule, canonical_text, instantiate, parse_rule, pattern_named
from loginfer.logic.rule import Atom, Inequality
from loginfer.logic.subrules import EDITS, Edit, edits_of, is_own_complement, near_miss, tears_apart


def told(rule):
    """The edits of a rule, or of the text of one: kind and part."""
    rule = parse_rule(rule) if isinstance(rule, str) else rule
    return [f"{edit.kind} {edit.part}" for edit in edits_of(rule)]


def instance(name):
    """A rule of a pattern, with a relation of its own for each template."""
    pattern = pattern_named(name)
    templates = dict.fromkeys([*pattern.templates, *pattern.head.templates])
    return instantiate(pattern, {template: f"r{i}" for i, template in enumerate(templates)})


def all_of(*parts):
    return [f"{kind} {part}" for part in parts for kind in ("replace", "reverse", "drop")]


# -- which edits there are --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        # Reversed, the body is the head; without its atom nothing is left.
        ("symmetry", ["replace 0"]),
        ("inversion", ["replace 0", "reverse 0"]),
        ("hierarchy", ["replace 0", "reverse 0"]),
        ("composition", ["replace 0", "reverse 0", "replace 1", "reverse 1"]),
        ("intersection", all_of(0, 1)),
        ("triangle", [*all_of(0, 1, 2), *(f"drop-inequality {i}" for i in (3, 4, 5))]),
        ("diamond", [*all_of(0, 1, 2, 3), *(f"drop-inequality {i}" for i in range(4, 10))]),
        ("super-hierarchy", ["replace 0", "reverse 0", *all_of(1)]),
        # Without (x,R,y) the other two share no variable.
        ("cup", ["replace 0", "reverse 0", *all_of(1, 2)]),
        # Without (y,S,z) nothing would bind z in the inequality.
        ("fork", [*(f"{kind} {part}" for part in range(3) for kind in ("replace", "reverse")), "drop-inequality 3"]),
        ("nonmonotonic-hierarchy", ["replace 0", "reverse 0", "drop 1"]),
    ],
)
def test_the_edits_of_named_patterns(name, edits):
    assert told(instance(name)) == edits


def test_an_edit_of_every_kind_is_made():
    rule = parse_rule("(x,R,y), (y,S,z), x != z, (x,type,A), not (z,T,w) -> (x,P,z)")
    edited = {
        "replace 0": "(x,Q,y), (y,S,z), x != z, (x,type,A), not (z,T,w) -> (x,P,z)",
        "reverse 0": "(y,R,x), (y,S,z), x != z, (x,type,A), not (z,T,w) -> (x,P,z)",
        "replace 1": "(x,R,y), (y,Q,z), x != z, (x,type,A), not (z,T,w) -> (x,P,z)",
        "reverse 1": "(x,R,y), (z,S,y), x != z, (x,type,A), not (z,T,w) -> (x,P,z)",
        "drop-inequality 2": "(x,R,y), (y,S,z), (x,type,A), not (z,T,w) -> (x,P,z)",
        "replace 3": "(x,R,y), (y,S,z), x != z, (x,type,Q), not (z,T,w) -> (x,P,z)",
        "drop 3": "(x,R,y), (y,S,z), x != z, not (z,T,w) -> (x,P,z)",
        "drop 4": "(x,R,y), (y,S,z), x != z, (x,type,A) -> (x,P,z)",
    }
    # Without (x,R,y) x is still bound by its type, but in a piece of its own.
    assert told(rule) == list(edited)
    for edit, text in zip(edits_of(rule), edited.values(), strict=True):
        assert near_miss(rule, edit, "Q") == parse_rule(text)


def test_constants_stay_where_they_are():
    rule = parse_rule("(x,R,Q1), (x,S,y), y != Q2 -> (y,T,x)")
    assert told(rule) == [*all_of(0), "replace 1", "reverse 1", "drop-inequality 2"]
    assert near_miss(rule, Edit("reverse", 0)) == parse_rule("(Q1,R,x), (x,S,y), y != Q2 -> (y,T,x)")


def test_a_type_is_replaced_by_a_type_and_never_reversed():
    rule = parse_rule("(x,type,A), (x,R,y) -> (y,type,B)")
    assert told(rule) == ["replace 0", "drop 0", "replace 1", "reverse 1"]
    assert near_miss(rule, Edit("replace", 0), "C") == parse_rule("(x,type,C), (x,R,y) -> (y,type,B)")


def test_a_type_that_is_a_variable_cannot_be_replaced():
    assert told("(x,type,?t) -> (x,R,?t)") == []
    assert told("(x,R,y), (x,type,?t), (y,type,?t) -> (x,S,y)") == [
        "replace 0", "reverse 0", "drop 0", "drop 1", "drop 2",
    ]  # fmt: skip


def test_edits_that_make_no_sense_are_refused():
    rule = parse_rule("(x,R,y), x != y, not (x,S,y) -> (y,P,x)")
    with pytest.raises(ValueError, match="needs another"):
        near_miss(rule, Edit("replace", 0))
    for part in (1, 2):
        with pytest.raises(ValueError, match="cannot be edited"):
            near_miss(rule, Edit("reverse", part))


# -- what an edit may leave -------------------------------------------------------------------------


def test_what_is_left_is_safe_and_as_connected_as_before():
    assert "drop 0" not in told("(x,R,y), (x,S,z) -> (x,P,y)")  # y
    assert "drop 1" not in told("(x,R,y), (y,S,w), w != x -> (x,P,y)")  # w
    assert "drop 1" not in told("(x,R,y), (y,S,z), (z,T,w) -> (x,P,w)")  # in two pieces
    assert "drop 1" in told("(x,R,y), (y,S,z), (z,T,x) -> (x,P,z)")
    # In two pieces from the beginning: it may stay in two.
    assert told("(x,R,z), (z,S,v), (y,T,w) -> (x,P,y)")[:5] == ["replace 0", "reverse 0", *all_of(1)]


def test_a_negation_says_the_same_after_an_edit():
    # Without (y,S,z) it would say that T connects nothing at all with x.
    assert "drop 1" not in told("(x,R,y), (y,S,z), not (z,T,x) -> (x,P,y)")
    # Where z stands for anything from the beginning, an atom without it may go.
    assert "drop 1" in told("(x,R,y), (y,S,v), not (x,T,z) -> (x,P,y)")


def test_the_same_rule_is_no_near_miss():
    assert "reverse 0" not in told("(x,R,x), (x,S,y) -> (x,T,y)")
    assert "drop 0" not in told("(x,R,y), (x,R,y) -> (x,S,y)")
    assert told("(x,R,y), x != y, y != x -> (x,S,y)") == ["replace 0", "reverse 0"]
    # Both ways round, the body is the same for both ends.
    assert told("(x,R,y), (y,R,x) -> (x,S,x)")[:2] == ["replace 0", "reverse 0"]


def test_a_body_with_the_head_in_it_is_no_near_miss():
    assert told("(x,R,y), (y,P,x), (x,S,y) -> (x,P,y)") == [*all_of(0), "replace 1", "drop 1", *all_of(2)]
    assert told("(x,R,y), (x,P,y) -> (x,P,y)") == ["replace 1", "reverse 1", "drop 1"]


@given(rule=small_rules(negations=1))
def test_every_edit_leaves_another_rule_that_is_safe(rule):
    for edit in edits_of(rule):
        edited = near_miss(rule, edit, "a relation or type of no rule")
        checked = Rule(edited.body, edited.head)  # safe, or this fails
        assert edit.kind in EDITS[1:]
        assert canonical_text(checked) != canonical_text(rule)
        assert rule.head not in checked.body
        assert edit.kind.startswith("drop") == (len(checked.body) < len(rule.body))
        assert edit.kind == "drop-inequality" or checked.inequalities == rule.inequalities
        kept = [part for i, part in enumerate(rule.body) if i != edit.part]
        assert all(part in checked.body for part in kept)
        # What was bound in a negation before is bound now.
        for negation in checked.negations:
            assert checked.existential(negation) == rule.existential(negation)


@given(rule=small_rules())
def test_no_edit_is_forgotten(rule):
    """Whatever is not among the edits leaves nothing that is safe, whole, new and no tautology."""
    found = edits_of(rule)
    for place, part in enumerate(rule.body):
        if isinstance(part, Atom) and Edit("reverse", place) not in found:
            turned = (*rule.body[:place], Atom(part.object, part.relation, part.subject), *rule.body[place + 1 :])
            new = canonical_text(Rule(turned, rule.head)) != canonical_text(rule)
            assert rule.head in turned or not new
        kind = "drop-inequality" if isinstance(part, Inequality) else "drop"
        if Edit(kind, place) in found:
            continue
        left = (*rule.body[:place], *rule.body[place + 1 :])
        bound = {v for atom in left if not isinstance(atom, Inequality) for v in atom.variables}
        safe = bound.issuperset(v for p in (rule.head, *left) for v in p.variables)
        if not safe or not any(not isinstance(p, Inequality) for p in left):
            continue
        pieces = components(left) <= max(components(rule.body), 1)
        new = canonical_text(Rule(left, rule.head)) != canonical_text(rule)
        assert not (pieces and new and rule.head not in left)


def components(body):
    """Into how many pieces that share no variable a body falls; an atom without variables is one."""
    atoms = [set(part.variables) for part in body if not isinstance(part, Inequality)]
    reached, pieces = set(), 0
    for start in range(len(atoms)):
        if start in reached:
            continue
        pieces += 1
        waiting = [start]
        while waiting:
            reached.add(here := waiting.pop())
            waiting += [i for i, a in enumerate(atoms) if i not in reached and a & atoms[here]]
    return pieces


# -- special ones -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("(x,R,y), (x,S,z), (y,T,z) -> (x,P,y)", [0]),
        ("(x,R,y), (x,S,y) -> (x,P,y)", []),
        ("(x,R,y), (y,S,x), (y,T,z) -> (x,P,y)", []),
        ("(x,R,y), (y,S,z) -> (x,T,z)", []),
    ],
)
def test_dropping_the_only_atom_between_the_ends_tears_them_apart(text, apart):
    rule = parse_rule(text)
    assert [edit.part for edit in edits_of(rule) if tears_apart(rule, edit)] == apart
    assert not any(tears_apart(rule, edit) for edit in edits_of(rule) if edit.kind != "drop")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("(x,R,y) -> (y,R,x)", True),
        ("(x,R,y), x != y -> (y,R,x)", True),
        ("(x,R,Q1) -> (Q1,R,x)", True),
        ("(x,R,y) -> (y,S,x)", False),
        ("(x,R,y) -> (x,R,x)", False),
        ("(x,R,y), x != Q1 -> (y,R,x)", False),  # without the inequality, other pairs connected by R follow
        ("(x,R,y), (x,S,y) -> (y,R,x)", False),
        ("(x,R,y), not (x,S,y) -> (y,R,x)", False),
        ("(x,type,A) -> (x,type,A)", False),
    ],
)
def test_symmetry_is_its_own_complement(text, is_one):
    assert is_own_complement(parse_rule(text)) is is_one
