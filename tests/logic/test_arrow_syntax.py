import pytest
from hypothesis import given, settings
from tests.support.logic_strategies import hostile_names, rules

from loginfer.errors import InputError, ParseError
from loginfer.kg import RDF_TYPE
from loginfer.logic import Atom, Constant, Inequality, Rule, Template, Variable, parse_pattern, parse_rule
from loginfer.logic.rule import quote

X, Y, Z = Variable("x"), Variable("y"), Variable("z")


@settings(deadline=None, max_examples=150)
@given(rules(relations=hostile_names))
def test_what_is_printed_is_read_back_exactly(rule):
    assert parse_rule(str(rule)) == rule
    assert "\n" not in str(rule)


@settings(deadline=None, max_examples=120)
@given(hostile_names)
def test_every_name_can_be_a_constant_a_relation_a_type_and_a_side_of_an_inequality(name):
    rule = Rule(
        [Atom(X, name, Constant(name)), Atom(X, RDF_TYPE, Constant(name)), Inequality(Constant(name), X)],
        Atom(Constant(name), name, X),
    )
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    "name",
    [
        "_hypernym",
        "00260881",
        "/people/person/nationality",
        "/award/award_winner/awards_won./award/award_honor/award_winner",
        "http://swat.cse.lehigh.edu/onto/univ-bench.owl#worksFor",
        "http://a.b/c;d=e?f=g",
    ],
)
def test_names_of_real_graphs_need_no_brackets(name):
    assert quote(name) == name
    assert parse_rule(f"({name}, {name}, y) -> (y,{name},{name})").constants == (name,)


def test_the_text_of_a_rule_is_as_documented():
    rule = Rule([Atom(X, "_hypernym", Y), Atom(Y, "S", Z), Inequality(X, Z)], Atom(X, "T", Z))
    assert str(rule) == "(x,_hypernym,y), (y,S,z), x != z -> (x,T,z)"


@pytest.mark.parametrize(
    "text",
    [
        "(x,R,y) & (y,S,z) ∧ (x ≠ z) → (x,T,z)",
        "  ( x , R , y ) ,( y,S,z ),( x != z )->( x,T,z ) . # why not",
        "(?x,<R>,?y), (?y,S,?z), ?x != ?z -> (?x,<\\u0054>,?z)",
        "(x,R,y),(y,S,z),x!=z->(x,T,z)",
    ],
)
def test_the_syntax_is_tolerant_about_spaces_and_symbols(text):
    assert str(parse_rule(text)) == "(x,R,y), (y,S,z), x != z -> (x,T,z)"


@pytest.mark.parametrize("word", ["type", "a", "rdf:type", RDF_TYPE, f"<{RDF_TYPE}>"])
def test_the_type_predicate_has_five_spellings(word):
    rule = parse_rule(f"(x,{word},C) -> (x,type,<D>)")
    assert rule == Rule([Atom(X, RDF_TYPE, Constant("C"))], Atom(X, RDF_TYPE, Constant("D")))


def test_a_relation_called_type_is_written_in_brackets():
    assert parse_rule("(x,<type>,y) -> (y,<a>,x)").relations == ("type", "a")


def test_a_prefix_is_expanded_where_it_is_declared_and_else_part_of_the_name():
    assert parse_rule("(x,ub:p,y) -> (y,q:r,x)", prefixes={"ub": "http://u#"}).relations == ("http://u#p", "q:r")


def test_a_fact_has_an_empty_body():
    assert parse_rule("-> (bob,likes,jazz)") == Rule([], Atom(Constant("bob"), "likes", Constant("jazz")))


def test_a_literal_keeps_its_quotes_and_datatype():
    text = '(x,age,"42"^^<http://www.w3.org/2001/XMLSchema#integer>), x != "a, b"@en -> (x,type,Adult)'
    assert str(parse_rule(text)) == text


def test_templates_are_read_in_patterns_only():
    pattern = parse_pattern("(x,_R,y), (x,type,_t), (y,_hypernym,_x1) -> (y,_R,x)".replace("_x1", "z"))
    assert pattern.templates == (Template("_R"), Template("_t"))
    with pytest.raises(ParseError, match="`_R` is a template") as caught:
        parse_rule("(x,_R,y) -> (y,S,x)")
    assert caught.value.column == 4
    assert parse_rule("(x,<_R>,y) -> (y,S,x)").relations == ("_R", "S")


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 1, "an atom"),
        ("(x,R,y)", 8, "`,` or `->`"),
        ("(x,R,y) (y,S,z) -> (x,T,z)", 9, "`,` or `->`"),
        ("(x,R,y), -> (x,T,y)", 10, "an atom"),
        ("(x R y) -> (x,T,y)", 4, "`,` or `!=`"),
        ("(x,R y) -> (x,T,y)", 6, "`,`"),
        ("(x,R,y -> (x,T,y)", 8, "`)`"),
        ("(x,,y) -> (x,T,y)", 4, "the name of a relation"),
        ("(x,?r,y) -> (x,T,y)", 4, "the name of a relation"),
        ("(x,R,) -> (x,T,y)", 6, "a variable or a name"),
        ("(x,R,<y) → (x,T,y)", 6, "a name in angle brackets"),
        ('(x,R,"y) -> (x,T,y)', 6, "a literal"),
        ("(x,R,?) -> (x,T,y)", 6, "a variable like"),
        ("(x,R,y) -> ", 12, "the head"),
        ("(x,R,y) -> x != y", 12, "the head"),
        ("(x,R,y) -> (x != y)", 15, "`,`"),
        ("(x,R,y) -> (x,T,y), (x,S,y)", 19, "the end of the rule"),
        ("(x,R,y), x y -> (x,T,y)", 12, "`!=`"),
        ("(x,R,y), not (x != y) -> (x,T,y)", 10, "a negated atom"),
        ("(x,R,y), not x -> (x,T,y)", 14, "`!=`"),
        ("(x,R,<\\UFFFFFFFF>) -> (x,T,x)", 6, "a name in angle brackets"),
    ],
)
def test_a_parse_error_says_the_column_and_what_was_expected(text, column, expected):
    with pytest.raises(ParseError) as caught:
        parse_rule(text, where="rules.txt:3")
    assert (caught.value.column, caught.value.where) == (column, "rules.txt:3")
    assert caught.value.expected.startswith(expected)


@pytest.mark.parametrize(
    ("text", "column"),
    [("(_R,S,y) -> (y,S,y)", 2), ("(x,_R,_S) -> (x,_R,x)", 7), ("(x,_R,y), x != _S -> (x,_R,y)", 16)],
)
def test_a_template_in_the_place_of_a_term_is_an_error(text, column):
    with pytest.raises(ParseError, match="templates stand for relations") as caught:
        parse_pattern(text)
    assert caught.value.column == column


@pytest.mark.parametrize("text", ["(x,R,y) -> (x,R,z)", "(x,R,y), y != z -> (x,R,y)", "-> (x,R,a1b)"])
def test_an_unsafe_rule_is_refused_with_its_place(text):
    with pytest.raises(InputError, match="is not bound") as caught:
        parse_rule(text, where="rules.txt:7")
    assert caught.value.where == "rules.txt:7"


@pytest.mark.parametrize("name", ["", "has space", "?x", "1", "x-y"])
def test_a_variable_that_could_not_be_read_back_is_refused(name):
    with pytest.raises(InputError, match="cannot be the name of a variable"):
        Variable(name)


@pytest.mark.parametrize("name", ["R", "_", "_RS", "_R "])
def test_a_template_that_could_not_be_read_back_is_refused(name):
    with pytest.raises(InputError, match="cannot be the name of a template"):
        Template(name)
