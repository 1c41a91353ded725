"""Entailment where it is easy to get wrong: each case with the reason for its answer."""

import pytest
from tests.support.entailment_definition import check_derivation

import loginfer
from loginfer.errors import InputError
from loginfer.logic import Atom, Constant, Rule, Variable, parse_pattern, parse_rule
from loginfer.logic.entailment import Entailment, entails

# Rules, the rule in question, whether it is entailed, and whether a single step is enough.
CASES = {
    "itself, with other variables": (["(x,R,y) -> (x,S,y)"], "(b,R,a) -> (b,S,a)", True, True),
    "another direction": (["(x,R,y) -> (x,S,y)"], "(x,R,y) -> (y,S,x)", False, False),
    "nothing entails nothing": ([], "(x,R,y) -> (x,S,y)", False, False),
    "the head is in the body": ([], "(x,R,y), (x,S,z) -> (x,R,y)", True, True),
    "more premises": (["(x,R,y) -> (x,S,y)"], "(x,R,y), (y,T,z) -> (x,S,y)", True, True),
    "fewer premises": (["(x,R,y), (y,T,z) -> (x,S,y)"], "(x,R,y) -> (x,S,y)", False, False),
    "two rules in a row": (
        ["(x,R,y) -> (x,S,y)", "(x,S,y) -> (x,T,y)"], "(x,R,y) -> (x,T,y)", True, False,
    ),
    "a conjunction of what two rules conclude": (
        ["(x,R,y) -> (x,S,y)", "(x,R,y) -> (y,T,x)", "(x,S,y), (y,T,x) -> (x,Q,y)"],
        "(x,R,y) -> (x,Q,y)", True, False,
    ),
    "a premise that nothing concludes": (
        ["(x,R,y) -> (x,S,y)", "(x,S,y), (y,T,x) -> (x,Q,y)"], "(x,R,y) -> (x,Q,y)", False, False,
    ),
    "variables that a homomorphism maps together": (
        ["(x,R,y), (x,R,z) -> (y,S,z)"], "(x,R,y) -> (y,S,y)", True, True,
    ),
    "a homomorphism in the wrong direction": (
        ["(x,R,x) -> (x,S,x)"], "(x,R,y), (y,R,x) -> (x,S,x)", False, False,
    ),
    # Recursion.
    "transitivity along a chain": (
        ["(x,R,y), (y,R,z) -> (x,R,z)"],
        "(x,R,y), (y,R,z), (z,R,w), (w,R,v), (v,R,u) -> (x,R,u)", True, False,
    ),
    "transitivity does not turn round": (
        ["(x,R,y), (y,R,z) -> (x,R,z)"], "(x,R,y), (y,R,z) -> (z,R,x)", False, False,
    ),
    "transitivity and symmetry": (
        ["(x,R,y), (y,R,z) -> (x,R,z)", "(x,R,y) -> (y,R,x)"], "(x,R,y) -> (x,R,x)", True, False,
    ),
    "two relations that need each other": (
        ["(x,S,y) -> (x,R,y)", "(x,R,y) -> (x,S,y)"], "(x,T,y) -> (x,R,y)", False, False,
    ),
    "round a cycle": (
        ["(x,E,y) -> (x,P,y)", "(x,P,y), (y,E,z) -> (x,P,z)"],
        "(x,E,y), (y,E,z), (z,E,x) -> (y,P,y)", True, False,
    ),
    # Inequalities in the rules: what holds for different elements need not hold for equal ones.
    "an inequality is forgotten": (["(x,R,y), x != y -> (x,S,y)"], "(x,R,y) -> (x,S,y)", False, False),
    "an inequality is added": (["(x,R,y) -> (x,S,y)"], "(x,R,y), x != y -> (x,S,y)", True, True),
    "the same inequality, turned round": (
        ["(x,R,y), x != y -> (x,S,y)"], "(x,R,y), y != x -> (x,S,y)", True, True,
    ),
    "both cases, by two rules": (
        ["(x,R,y), x != y -> (x,S,y)", "(x,R,x) -> (x,S,x)"], "(x,R,y) -> (x,S,y)", True, True,
    ),
    "both cases, one of them in two steps": (
        ["(x,R,y), x != y -> (x,S,y)", "(x,R,x) -> (x,T,x)", "(x,T,x) -> (x,S,x)"],
        "(x,R,y) -> (x,S,y)", True, False,
    ),
    "only two of three variables may be equal": (
        ["(x,R,y), (y,R,z), x != y, y != z -> (x,S,z)", "(x,R,y), (y,R,y) -> (x,S,y)"],
        "(x,R,y), (y,R,z) -> (x,S,z)", False, False,
    ),
    "all identifications of three variables": (
        ["(x,R,y), (y,R,z), x != y, y != z -> (x,S,z)", "(x,R,y), (y,R,y) -> (x,S,y)",
         "(x,R,x), (x,R,y) -> (x,S,y)"],
        "(x,R,y), (y,R,z) -> (x,S,z)", True, True,
    ),
    "an inequality that is needed only on the way": (
        ["(x,R,y), x != y -> (x,S,y)", "(x,S,y) -> (x,T,x)"], "(x,R,y) -> (x,T,x)", False, False,
    ),
    "another derivation without the inequality": (
        ["(x,R,y), x != y -> (x,S,y)", "(x,S,y) -> (x,T,y)", "(x,R,y) -> (x,T,y)"],
        "(x,R,y) -> (x,T,y)", True, True,
    ),
    "the inequality of the question forbids what would fail": (
        ["(x,R,y), (y,R,z), x != z -> (x,S,z)"], "(x,R,y), (y,R,z), x != z -> (x,S,z)", True, True,
    ),
    "the wrong inequality": (
        ["(x,R,y), (y,R,z), x != z -> (x,S,z)"], "(x,R,y), (y,R,z), x != y -> (x,S,z)", False, False,
    ),
    "equal elements are in the body anyway": (
        ["(x,R,y), (y,R,z), y != z -> (x,R,z)"], "(x,R,y), (y,R,z) -> (x,R,z)", True, True,
    ),
    # Constants.
    "a constant for a variable": (["(x,R,y) -> (x,S,y)"], "(x,R,Ann) -> (x,S,Ann)", True, True),
    "a variable for a constant": (["(x,R,Ann) -> (x,S,Ann)"], "(x,R,y) -> (x,S,y)", False, False),
    "a variable that must not be a constant": (
        ["(x,R,y), y != Ann -> (x,S,y)"], "(x,R,y) -> (x,S,y)", False, False,
    ),
    "a variable that must not be a constant, and the constant": (
        ["(x,R,y), y != Ann -> (x,S,y)", "(x,R,Ann) -> (x,S,Ann)"], "(x,R,y) -> (x,S,y)", True, True,
    ),
    "the question excludes the constant, too": (
        ["(x,R,y), y != Ann -> (x,S,y)"], "(x,R,y), y != Ann -> (x,S,y)", True, True,
    ),
    "the question excludes another constant": (
        ["(x,R,y), y != Ann -> (x,S,y)"], "(x,R,y), y != Bob -> (x,S,y)", False, False,
    ),
    "different constants differ": (["(x,R,y), x != y -> (x,S,y)"], "(Ann,R,Bob) -> (Ann,S,Bob)", True, True),
    "a constant differs not from itself": (
        ["(x,R,y), x != y -> (x,S,y)"], "(Ann,R,Ann) -> (Ann,S,Ann)", False, False,
    ),
    "one rule for all but each of two constants": (
        ["(x,R,y), x != Ann -> (x,S,y)", "(x,R,y), x != Bob -> (x,S,y)"], "(x,R,y) -> (x,S,y)", True, True,
    ),
    "a constant that a rule brings in": (
        ["(x,R,y) -> (x,H,Ann)", "(x,H,y), (z,H,y) -> (x,T,z)"],
        "(x,R,y), (z,R,w) -> (x,T,z)", True, False,
    ),
    "two constants that rules bring in do not meet": (
        ["(x,R,y) -> (x,H,Ann)", "(x,Q,y) -> (x,H,Bob)", "(x,H,y), (z,H,y) -> (x,T,z)"],
        "(x,R,y), (z,Q,w) -> (x,T,z)", False, False,
    ),
    "two constants that a third rule joins": (
        ["(x,R,y) -> (x,H,Ann)", "(x,Q,y) -> (x,H,Bob)", "(x,H,Bob) -> (x,H,Ann)",
         "(x,H,y), (z,H,y) -> (x,T,z)"],
        "(x,R,y), (z,Q,w) -> (x,T,z)", True, False,
    ),
    "a fact from nothing": (["-> (Ann,R,Bob)"], "(x,S,y) -> (Ann,R,Bob)", True, True),
    "a fact from nothing, used": (
        ["-> (Ann,R,Bob)", "(Ann,R,x), (y,S,z) -> (y,T,x)"], "(x,S,y) -> (x,T,Bob)", True, False,
    ),
    "a ground head": (["(x,S,y) -> (Ann,R,Bob)"], "(Cem,S,Cem) -> (Ann,R,Bob)", True, True),
    "a body without atoms": (["(x,S,y) -> (Ann,R,Bob)"], "-> (Ann,R,Bob)", False, False),
    # Types.
    "a hierarchy of types": (
        ["(x,type,A1) -> (x,type,B1)", "(x,type,B1) -> (x,type,C1)"],
        "(x,type,A1) -> (x,type,C1)", True, False,
    ),
    "another type": (["(x,type,A1) -> (x,type,B1)"], "(x,type,C1) -> (x,type,B1)", False, False),
    "domain and range": (
        ["(x,R,y) -> (x,type,A1)", "(x,R,y) -> (y,type,B1)", "(x,type,A1), (y,type,B1), (x,S,y) -> (x,T,y)"],
        "(x,R,y), (x,S,y) -> (x,T,y)", True, False,
    ),
    # Bodies that nothing satisfies.
    "x differs from itself": ([], "(x,R,y), x != x -> (x,S,y)", True, True),
    "a constant differs from itself": ([], "(x,R,y), Ann != Ann -> (x,S,y)", True, True),
    "constants that do differ": ([], "(x,R,y), Ann != Bob -> (x,S,y)", False, False),
    "a rule that never applies": (["(x,R,y), x != x -> (x,S,y)"], "(x,R,y) -> (x,S,y)", False, False),
    "a rule with constants that always differ": (
        ["(x,R,y), Ann != Bob -> (x,S,y)"], "(x,R,y) -> (x,S,y)", True, True,
    ),
}  # fmt: skip


def parsed(text: str) -> Rule:
    """Our syntax has no empty body; the language has."""
    if text.startswith("-> "):
        return Rule([], parse_rule(f"(x,R,y) {text}").head)
    return parse_rule(text)


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("name", CASES)
def test_entailment(name, compiled):
    texts, question, entailed, in_one_step = CASES[name]
    program = [parsed(text) for text in texts]
    rule = parsed(question)
    ask = Entailment(program, compiled=compiled)
    assert ask.entails(rule) is entailed
    assert ask.one_step(rule) is in_one_step
    assert (ask.counterexample(rule) is None) is entailed
    steps = ask.derivation(rule)
    assert (steps is not None) is entailed
    if steps:
        check_derivation(steps, rule, program)


def test_a_counterexample_says_which_variables_are_identified():
    ask = Entailment([parse_rule("(x,R,y), y != Ann -> (x,S,y)")])
    instance = ask.counterexample(parse_rule("(x,R,y) -> (x,S,y)"))
    assert instance.identifications == {Variable("y"): Constant("Ann")}
    assert [str(fact) for fact in instance.facts] == ["(x,R,Ann)"]
    assert str(instance.goal) == "(x,S,Ann)"


def test_a_derivation_names_the_rules_in_the_order_of_their_use():
    program = [parse_rule(t) for t in ("(x,S,y) -> (x,T,y)", "(x,R,y) -> (x,S,y)", "(x,R,y) -> (y,R,x)")]
    (first, second) = Entailment(program).derivation(parse_rule("(a,R,b) -> (a,T,b)"))
    assert (first.rule, second.rule) == (program[1], program[0])
    assert str(second) == "(a,S,b) -> (a,T,b)  by  (x,S,y) -> (x,T,y)"
    assert Entailment(program).derivation(parse_rule("(a,T,b) -> (a,R,b)")) is None
    assert Entailment(program).derivation(parse_rule("(a,T,b) -> (a,T,b)")) == ()


def test_several_heads_are_asked_about_at_once():
    heads = [Atom(Variable("x"), relation, Variable("z")) for relation in ("R", "S", "T", "Q")]
    rule = parse_rule("(x,R,y), (y,R,z), x != z -> (x,R,z)")
    for texts, answers in (
        (["(x,R,y), (y,R,z) -> (x,S,z)", "(x,S,y) -> (x,T,y)"], [False, True, True, False]),
        (["(x,R,y), (y,R,z), x != z -> (x,S,z)", "(x,S,y), x != y -> (y,T,x)"], [False, True, False, False]),
    ):
        for compiled in (False, True):
            ask = Entailment([parse_rule(t) for t in texts], compiled=compiled)
            assert ask.entails_heads(rule, heads) == answers


def test_path_rules_may_be_given_as_arrays():
    names = {"relations": ["R", "S", "T"], "constants": ["ann", "bob"]}
    ask = Entailment.of_table(
        [2, 1, 1, 0], [[0, 3], [1, -1], [0, -1], [-1, -1]], variables=[0, 1, 2, 1],
        head_constant=[-1, 0, 1, 0], end_constant=[-1, -1, 0, -1], **names,
    )  # fmt: skip
    assert len(ask) == 4
    assert ask.entails(parse_rule("(x,R,y), (z,S,y) -> (x,T,z)"))
    assert not ask.entails(parse_rule("(x,R,y), (y,S,z) -> (x,T,z)"))
    assert ask.entails(parse_rule("(x,R,y) -> (y,S,ann)"))
    assert ask.entails(parse_rule("(x,R,ann) -> (bob,S,x)"))
    assert not ask.entails(parse_rule("(x,R,bob) -> (bob,S,x)"))
    # A row without a body is no rule.
    assert not ask.entails(parse_rule("(x,S,y) -> (x,R,ann)"))
    (step,) = ask.derivation(parse_rule("(x,R,y), (z,S,y) -> (x,T,z)"))
    assert str(step.rule) == "(x,R,a1), (y,S,a1) -> (x,T,y)"
    both = Entailment.of_table([1], [[0]], relations=["R", "S"], others=[parse_rule("(x,S,y), x != y -> (y,T,x)")])
    assert both.entails(parse_rule("(x,R,y), x != y -> (y,T,x)"))
    assert not both.entails(parse_rule("(x,R,y) -> (y,T,x)"))
    assert not Entailment.of_table([], [], relations=["R"]).entails(parse_rule("(x,R,y) -> (y,R,x)"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"head": [5], "body": [[0]]}, "`head` is not between 0 and 1"),
        ({"head": [0], "body": [[4]]}, "`body` is not between -1 and 3"),
        ({"head": [0], "body": [[0]], "variables": [1]}, "no `head_constant`"),
        ({"head": [0], "body": [[0]], "variables": [1], "head_constant": [1]}, "`head_constant` is not between"),
        ({"head": [0], "body": [[0]], "variables": [0, 0]}, "`variables` has 2 rows, `head` has 1"),
    ],
)
def test_codes_that_mean_nothing_are_told(columns, message):
    with pytest.raises(InputError, match=message):
        Entailment.of_table(relations=["R", "S"], constants=["ann"], **columns)


def test_a_pattern_is_not_a_rule():
    pattern = parse_pattern("symmetry")
    with pytest.raises(InputError, match="is not a rule"):
        entails([], pattern)
    with pytest.raises(InputError, match="is not a rule"):
        entails([pattern], parse_rule("(x,R,y) -> (y,R,x)"))


def test_a_question_with_more_variables_than_a_machine_word_has_bits():
    body = ", ".join(f"(x{i},R,x{i + 1})" for i in range(70))
    rule = parse_rule(f"{body} -> (x0,S,x3)")
    program = [parse_rule("(x,R,y), (y,R,z), (z,R,w) -> (x,S,w)")]
    for compiled in (False, True):
        ask = Entailment(program, compiled=compiled)
        assert ask.entails(rule)
        assert ask.one_step(rule)
        assert not ask.entails(parse_rule(f"{body} -> (x3,S,x0)"))


def test_entails_is_public():
    program = [loginfer.parse_rule("(x,R,y) -> (y,S,x)")]
    assert loginfer.entails(program, loginfer.parse_rule("(x,R,y) -> (y,S,x)"))
    assert loginfer.logic.entails is loginfer.entails
