"""Negation as failure in rules: what it is written like, what it means, and where it has no place."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.logic_strategies import equivalent_by_definition, friendly_names, rules, small_rules

from loginfer.errors import InputError, ParseError
from loginfer.logic import (
    Atom,
    Entailment,
    Inequality,
    Negation,
    Rule,
    Variable,
    canonical,
    canonical_text,
    dialect_named,
    dialects,
    entails,
    equivalent,
    instantiate,
    parse_pattern,
    parse_rule,
    parse_rules,
    pattern_named,
    stratified,
    subrules,
    symmetries,
)

EXAMPLE = parse_rule("(x,R,y), not (y,S,z), x != y -> (x,T,y)")


# -- syntax ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["not (y,S,z)", "not(y,S,z)", "¬(y,S,z)", "¬ (y,S,z)", "!(y,S,z)", "! (y,S,z)"])
def test_a_negated_atom_can_be_written_in_several_ways(text):
    rule = parse_rule(f"(x,R,y), {text}, x != y -> (x,T,y)")
    assert rule == EXAMPLE
    assert str(rule) == "(x,R,y), not (y,S,z), x != y -> (x,T,y)"


@given(rules(negations=2))
def test_what_is_printed_is_read_back(rule):
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize("name", [d.name for d in dialects() if d.read_statement and d.name not in ("anyburl", "amie")])
@given(rule=rules(names=friendly_names, relations=friendly_names, negations=2))
def test_dialects_that_know_negation_keep_it(name, rule):
    dialect = dialect_named(name)
    assert equivalent(dialect.read(dialect.write(rule)).rule, rule)


def test_each_dialect_has_its_own_word_for_no():
    rule = parse_rule("(x,R,y), not (y,S,z), not (y,type,C), not (x,Q,y) -> (x,T,y)")
    written = {name: dialect_named(name).write(rule) for name in ("datalog", "nemo", "rdfox", "sparql", "sql")}
    assert "not 'S'(Y,_), not 'C'(Y), not 'Q'(X,Y)" in written["datalog"]
    assert "~S(?y, ?z), ~C(?y), ~Q(?x, ?y)" in written["nemo"]
    assert "NOT EXISTS ?z IN ([?y, <S>, ?z])" in written["rdfox"]
    assert "NOT [?x, <Q>, ?y]" in written["rdfox"]
    assert "FILTER NOT EXISTS { ?y <S> ?z }" in written["sparql"]
    assert "NOT EXISTS (SELECT 1 FROM triples AS neg WHERE neg.r = 'S' AND neg.s = t0.o)" in written["sql"]


@pytest.mark.parametrize("name", ["anyburl", "amie"])
def test_dialects_without_negation_say_so(name):
    with pytest.raises(InputError, match="cannot express the negation `not "):
        dialect_named(name).write(parse_rule("(x,R,y), not (y,S,z) -> (x,T,y)"))


def test_other_spellings_of_negation_are_read():
    wanted = parse_rule("(x,p,y), not (y,q,z) -> (x,r,y)")
    for dialect, text in (
        ("datalog", r"r(X,Y) :- p(X,Y), \+ q(Y,_)."),
        ("datalog", "r(X,Y) :- p(X,Y), !q(Y,Z)."),
        ("datalog", "r(X,Y) :- p(X,Y), not(q(Y,Z))."),
        ("nemo", "r(?x, ?y) :- p(?x, ?y), ~q(?y, _), ~ q(?y, _ ) ."),
        ("rdfox", "[?x, r, ?y] :- [?x, p, ?y], NOT [?y, q, ?z] ."),
        ("rdfox", "[?x, r, ?y] :- [?x, p, ?y], not exists ?z in [?y, q, ?z] ."),
    ):
        assert equivalent(dialect_named(dialect).read(text).rule, wanted)


def test_a_quantified_variable_must_not_be_bound_outside():
    with pytest.raises(InputError, match="`z` is quantified"):
        dialect_named("rdfox").read("[?x, r, ?z] :- [?x, p, ?z], NOT EXISTS ?z IN ([?x, q, ?z]) .")


def test_a_rule_file_may_begin_with_a_negation():
    assert parse_rules("not (<a>,R,z) -> (<a>,S,<b>)\n").dialect == "arrow"


# -- safety ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(x,R,y), not (y,S,z), not (x,T,z) -> (x,P,y)", "variable `z` is under two negations"),
        ("(x,R,y), not (y,S,z) -> (x,P,z)", "variable `z` of the head is not bound"),
        ("(x,R,y), not (y,S,z), x != z -> (x,P,y)", "variable `z` of the inequality"),
        ("not (x,R,y) -> (x,P,y)", "variable `x` of the head is not bound"),
    ],
)
def test_only_atoms_bind_variables(text, message):
    with pytest.raises(InputError, match=message):
        parse_rule(text)


def test_only_atoms_can_be_negated():
    with pytest.raises(ParseError, match="a negated atom") as caught:
        parse_rule("(x,R,y), not (x != y) -> (x,P,y)")
    assert caught.value.hint == "only atoms are negated"


def test_variables_are_those_of_atoms():
    assert EXAMPLE.variables == (Variable("x"), Variable("y"))
    (negation,) = EXAMPLE.negations
    assert EXAMPLE.existential(negation) == (Variable("z"),)
    assert EXAMPLE.relations == ("R", "S", "T")
    same_twice = parse_rule("(x,R,y), not (y,S,z), not (y,S,z) -> (x,T,y)")
    assert len(same_twice.negations) == 2


# -- canonical form and sub-rules ------------------------------------------------------------------


@given(small_rules(max_parts=3, variables=3, negations=2), small_rules(max_parts=3, variables=3, negations=2))
def test_canonical_forms_are_equal_exactly_for_equivalent_rules(left, right):
    assert equivalent_by_definition(left, canonical(left))
    assert equivalent(left, right) == equivalent_by_definition(left, right)


def test_names_of_existential_variables_do_not_count():
    one = parse_rule("(x,R,y), not (y,S,z), not (y,S,w) -> (x,T,y)")
    assert canonical_text(one) == "(x,R,y), not (y,S,z) -> (x,T,y)"
    assert not equivalent(parse_rule("(x,R,y), not (z,S,z) -> (x,T,y)"), parse_rule("(x,R,y), not (z,S,w) -> (x,T,y)"))


@settings(max_examples=60)
@given(small_rules(max_parts=3, variables=3, negations=2))
def test_subrules_are_proper_parts_in_which_negations_mean_the_same(rule):
    distinct = list({_meaning(part, rule): part for part in reversed(rule.body)}.values())[::-1]
    wanted: list[Rule] = []
    for size in range(len(distinct)):
        for body in combinations(distinct, size):
            try:
                smaller = Rule(body, rule.head)
            except InputError:
                continue
            if all(smaller.existential(n) == rule.existential(n) for n in smaller.negations) and not any(
                equivalent_by_definition(smaller, other) for other in wanted
            ):
                wanted.append(smaller)
    assert sorted(map(canonical_text, subrules(rule))) == sorted(map(canonical_text, wanted))


def _meaning(part, rule):
    """What a part says, whatever its existential variables are called."""
    if isinstance(part, Inequality):
        return frozenset(part.terms)
    if isinstance(part, Negation):
        own = Variable("itself" if part.terms[0] == part.terms[1] else "anything")
        return part.rename(dict.fromkeys(rule.existential(part), own))
    return part


def test_a_negation_goes_with_the_atom_that_binds_it():
    rule = parse_rule("(x,R,y), (y,S,w), not (w,Q,x) -> (x,T,y)")
    assert [str(sub) for sub in subrules(rule)] == ["(x,R,y), (y,S,w) -> (x,T,y)", "(x,R,y) -> (x,T,y)"]


# -- patterns --------------------------------------------------------------------------------------


def test_templates_under_a_negation_are_templates():
    pattern = pattern_named("nmhier")
    assert pattern.name == "nonmonotonic-hierarchy"
    assert [t.name for t in pattern.templates] == ["_R", "_S"]
    assert str(instantiate(pattern, ["likes", "hates"], "knows")) == ("(x,likes,y), not (y,hates,z) -> (x,knows,y)")
    assert symmetries(pattern) == ((0, 1),)
    assert symmetries(parse_pattern("(x,_R,y), not (y,_S,z), not (y,_T,z2) -> (x,_R,y)")) == ((0, 1, 2), (0, 2, 1))
    typed = parse_pattern("(x,_R,y), not (y,type,_t) -> (x,_P,y)")
    assert typed.is_type_template(typed.templates[1])


def test_a_template_cannot_stand_for_a_relation_and_a_negated_type():
    with pytest.raises(InputError, match="stands for a relation and for a type"):
        parse_pattern("(x,_R,y), not (y,type,_R) -> (x,_P,y)")


# -- strata ----------------------------------------------------------------------------------------


def program(*texts: str) -> list[Rule]:
    return [parse_rule(text) for text in texts]


def test_without_negation_there_is_one_stratum():
    rules_ = program("(x,R,y) -> (y,S,x)", "(x,S,y) -> (y,R,x)")
    assert stratified(rules_) == (tuple(rules_),)
    assert stratified([]) == ()


def test_what_is_negated_comes_first():
    a, b, c, d = program(
        "(x,A,y), not (x,B,y) -> (x,C,y)",
        "(x,D,y) -> (x,B,y)",
        "(x,C,y), not (y,E,z) -> (x,F,y)",
        "(x,F,y), not (y,C,x) -> (x,G,y)",
    )
    assert stratified([a, b, c, d]) == ((b,), (a, c), (d,))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("(x,A,y), not (y,B,x) -> (x,B,y)",), "`B` needs `not B`"),
        (
            ("(x,A,y), not (x,B,y) -> (x,C,y)", "(x,C,y) -> (x,D,y)", "(x,D,y) -> (x,B,y)"),
            "`C` needs `not B`, `B` needs `D`, `D` needs `C`",
        ),
        (
            ("(x,R,y), not (x,type,A) -> (x,type,B)", "(x,type,B) -> (x,type,A)"),
            "`type B` needs `not type A`, `type A` needs `type B`",
        ),
        (("(x,R,y), not (x,type,A) -> (x,type,y)",), "`type` needs `not type`"),
    ],
)
def test_a_predicate_that_needs_its_own_negation_is_named(texts, message):
    with pytest.raises(InputError) as caught:
        stratified(program(*texts))
    assert message in caught.value.message


@given(st.data())
def test_strata_are_found_exactly_if_there_are_levels(data):
    names = "ABC"
    made = []
    for _ in range(data.draw(st.integers(1, 4))):
        one, two, head = (data.draw(st.sampled_from(names)) for _ in range(3))
        negated = data.draw(st.booleans())
        second = Atom(Variable("x"), two, Variable("y"))
        parts = [Atom(Variable("x"), one, Variable("y")), Negation(second) if negated else second]
        made.append(Rule(parts, Atom(Variable("x"), head, Variable("y"))))

    def fits(levels: dict[str, int]) -> bool:
        return all(
            levels[str(rule.head.relation)] >= levels[str(atom.relation)] for rule in made for atom in rule.atoms
        ) and all(
            levels[str(rule.head.relation)] > levels[str(n.atom.relation)] for rule in made for n in rule.negations
        )

    possible = any(fits(dict(zip(names, levels, strict=True))) for levels in product(range(4), repeat=3))
    try:
        strata = stratified(made)
    except InputError:
        assert not possible
        return
    assert possible
    assert sorted(map(str, made)) == sorted(str(rule) for stratum in strata for rule in stratum)
    place = {str(rule.head.relation): i for i, stratum in enumerate(strata) for rule in stratum}
    for rule in made:
        own = place[str(rule.head.relation)]
        assert all(place.get(str(atom.relation), -1) <= own for atom in rule.atoms)
        assert all(place.get(str(n.atom.relation), -1) < own for n in rule.negations)


# -- entailment ------------------------------------------------------------------------------------


def test_entailment_is_not_for_negation():
    plain = parse_rule("(x,R,y) -> (x,T,y)")
    for premises, question in (([EXAMPLE], plain), ([plain], EXAMPLE)):
        with pytest.raises(InputError, match="entailment is for rules without negation"):
            entails(premises, question)
    for ask in ("one_step", "derivation", "counterexample"):
        with pytest.raises(InputError, match="without negation"):
            getattr(Entailment([plain]), ask)(EXAMPLE)
