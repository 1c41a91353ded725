from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from tests.support.logic_strategies import friendly_names, hostile_names, rules

from loginfer.errors import InputError, ParseError, UnknownNameError
from loginfer.logic import (
    ScoredRule,
    Variable,
    canonical,
    detect,
    dialect_named,
    dialects,
    format_rules,
    parse_rule,
    parse_rules,
    read_rules,
    write_rules,
)

GOLDEN = Path(__file__).parent / "golden"
READABLE = [d.name for d in dialects() if d.read_statement is not None]
WITH_INEQUALITIES = ["arrow", "rdfox", "nemo", "datalog"]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*.in")), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_golden_files_are_read_as_expected(path):
    found = read_rules(path)
    assert found.dialect == path.parent.name
    assert found.skipped == ()
    scored = [ScoredRule(s.rule, s.predictions, s.correct, s.confidence) for s in found.rules]
    scored = [s if None not in (s.predictions, s.correct) else ScoredRule(s.rule) for s in scored]
    assert format_rules(scored) == path.with_suffix(".out").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", READABLE)
def test_every_readable_dialect_has_a_golden_folder(name):
    assert list((GOLDEN / name).glob("*.in"))


def same(found, wanted):
    """Equal up to the names of variables; the order of the body must stay."""
    assert len(found.variables) == len(wanted.variables)
    names = {v: Variable(f"v{i}") for i, v in enumerate(found.variables)}
    theirs = {v: Variable(f"v{i}") for i, v in enumerate(wanted.variables)}
    assert [p.rename(names) for p in found.body] == [p.rename(theirs) for p in wanted.body]
    assert found.head.rename(names) == wanted.head.rename(theirs)
    assert canonical(found) == canonical(wanted)


@pytest.mark.parametrize("name", WITH_INEQUALITIES)
@settings(deadline=None, max_examples=60)
@given(program=st.lists(rules(), min_size=1, max_size=3))
def test_dialects_with_quotes_keep_every_rule(name, program):
    text = format_rules(program, name)
    found = parse_rules(text, name)
    for one, other in zip(found.program, program, strict=True):
        same(one, other)
    assert format_rules(found.rules, name) == text


@settings(deadline=None, max_examples=120)
@given(program=st.lists(rules(inequalities=False, relations=hostile_names), min_size=1, max_size=3))
def test_amie_keeps_every_rule_without_inequalities(program):
    found = parse_rules(format_rules(program, "amie"), "amie")
    for one, other in zip(found.program, program, strict=True):
        same(one, other)


@settings(deadline=None, max_examples=120)
@given(rule=rules(names=friendly_names, relations=friendly_names, inequalities=False, max_atoms=3))
def test_anyburl_keeps_rules_with_the_names_of_real_graphs(rule):
    # Two constants side by side are beyond its syntax where names hold commas.
    if all(atom.variables for atom in rule):
        same(dialect_named("anyburl").read(dialect_named("anyburl").write(rule)).rule, rule)


@settings(deadline=None, max_examples=150)
@given(rule=rules(inequalities=False))
def test_anyburl_refuses_what_it_would_not_read_back(rule):
    try:
        text = dialect_named("anyburl").write(rule)
    except InputError as error:
        if not error.message.startswith("AnyBURL cannot express"):
            raise
    else:
        same(parse_rules(text, "anyburl").program[0], rule)


@settings(deadline=None, max_examples=60)
@given(
    rules(names=friendly_names, relations=friendly_names, inequalities=False, max_atoms=2),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.floats(0, 1),
    st.sampled_from(["arrow", "amie", "anyburl"]),
)
def test_the_columns_of_a_rule_are_kept(rule, predictions, correct, confidence, name):
    if name == "anyburl" and not all(atom.variables for atom in rule):
        name = "arrow"
    scored = ScoredRule(rule, predictions, correct, confidence)
    found = parse_rules(format_rules([scored], name), name).rules[0]
    assert (found.predictions, found.correct, found.confidence) == (predictions, correct, confidence)
    same(found.rule, rule)


def test_amie_keeps_all_its_measures():
    line = "?a  <r>  ?b   => ?b  <s>  ?a\t0.25\t0.5\t0.75\t10\t20\t15\t?a\t0.1\t0.2\t0.3"
    scored = dialect_named("amie").read(line)
    assert scored.extra[0] == ("head_coverage", "0.25")
    assert dialect_named("amie").write(scored) == line


@pytest.mark.parametrize("name", READABLE)
def test_the_example_of_a_dialect_is_detected_and_read(name):
    dialect = dialect_named(name)
    assert detect(dialect.example) is dialect
    found = dialect.read(dialect.example).rule
    assert len(found.atoms) == 2
    assert dialect.keeps_scores or not dialect.example[0].isdigit()


@pytest.mark.parametrize(
    ("text", "file_name", "expected"),
    [
        ("p(a,b).", "facts.rls", "nemo"),
        ("p(a,b).", "facts.dl", "datalog"),
        ("", "x.dlog", "rdfox"),
        ("# only a comment\n", "x", "arrow"),
        ("(x,<a <= b>,y) -> (y,R,x)", "x", "arrow"),
        ("(x,<a :- b>,y) -> (y,R,x)", "x", "arrow"),
        ("% c\n@prefix a: <b> .\np(?x,?y) :- q(?x,?y) .", "x", "nemo"),
        ("binary \x00 junk", "x", "arrow"),
    ],
)
def test_the_first_rule_or_the_ending_tells_the_dialect(text, file_name, expected):
    assert detect(text, file_name).name == expected


@pytest.mark.parametrize("name", READABLE)
@settings(max_examples=150, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(data=st.data())
def test_a_file_that_we_wrote_is_read_back_without_naming_its_dialect(name, data):
    full = name in WITH_INEQUALITIES
    one = rules(inequalities=full, negations=int(full))
    friendly = rules(names=friendly_names, relations=friendly_names, inequalities=False)
    program = data.draw(st.lists(one if full else one | friendly, min_size=1, max_size=3))
    try:
        text = format_rules(program, name)
    except InputError:  # the dialect cannot say it
        reject()
    if name == "nemo" and "?" not in text:  # without variables it is Datalog, too
        reject()
    assert parse_rules(text) == parse_rules(text, name)


def test_a_rule_that_begins_with_an_inequality_is_ours(tmp_path):
    rule = parse_rule("x != y, (x,R,y) -> (y,S,x)")
    write_rules([rule], tmp_path / "rules.txt")
    assert read_rules(tmp_path / "rules.txt").program == (rule,)


def test_an_unknown_dialect_comes_with_the_nearest_names():
    with pytest.raises(UnknownNameError, match="did you mean `rdfox`"):
        dialect_named("rdfx")


@pytest.mark.parametrize("name", ["anyburl", "amie"])
def test_what_a_dialect_cannot_express_is_said_and_never_dropped(name):
    with pytest.raises(InputError, match="cannot express the inequality `x != y`"):
        dialect_named(name).write(parse_rule("(x,R,y), x != y -> (x,S,y)"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("anyburl", "(x,R,y) -> (x,S,<c>)", "shorter than two characters"),
        ("anyburl", "(x,R,y) -> (x,S,<a\\tb>)", "told apart"),
        ("anyburl", "(x,<a(X,b>,y) -> (x,S,y)", None),
        ("rdfox", '(x,"R",y) -> (x,S,y)', "as a relation"),
        ("nemo", '(x,type,"C") -> (x,S,x)', "as a predicate"),
        ("sparql", "(x,<a b>,y) -> (x,S,y)", "as an IRI"),
        ("sparql", '("a",R,y) -> (y,S,y)', "as an IRI"),
    ],
)
def test_names_that_a_dialect_cannot_hold_are_refused(name, text, message):
    if message is None:
        same(dialect_named(name).read(dialect_named(name).write(parse_rule(text))).rule, parse_rule(text))
        return
    with pytest.raises(InputError, match=message):
        dialect_named(name).write(parse_rule(text))


def test_half_of_the_columns_cannot_be_written():
    with pytest.raises(InputError, match="give all three or none"):
        format_rules([ScoredRule(parse_rule("(x,R,y) -> (y,R,x)"), predictions=3)])


@pytest.mark.parametrize(
    ("name", "text", "column", "expected"),
    [
        ("rdfox", "[?X, p, ?Y] :- [?X, ?q, ?Y] .", 21, "the name of a relation"),
        ("rdfox", "[?X, p, ?Y] [?X, q, ?Y] .", 13, "`:-` or `.`"),
        ("rdfox", "[?X, p, ?Y], [?Y, p, ?X] :- [?X, q, ?Y] .", 12, "`:-`"),
        ("rdfox", "[?X, p, ?Y] :- [?X, p, ?Y], NOT q .", 35, "`[`"),
        ("rdfox", "[?X, p, ?X] :- [?X, p, ?X], NOT EXISTS ?Y ([?X, q, ?Y]) .", 43, "`,` or `IN`"),
        ("rdfox", "[?X, p, ?Y] :- [?X, q, ?Y], FILTER(?X < ?Y) .", 39, "`!=`"),
        ("rdfox", "[?X, p, ?Y] :- [?X, q, ?Y . ", 27, "`]`"),
        ("rdfox", "p[?X, ?Y, ?Z] :- [?X, q, ?Y] .", 9, "`]`"),
        ("nemo", "p(?X, ?Y) :- q(?X, ?Y, ?Z) .", 22, "`)`"),
        ("nemo", "p(?X, !V) :- q(?X, ?X) .", 7, "a variable like"),
        ("nemo", "p(?X, ?X) :- ~?X != ?X .", 15, "an atom like"),
        ("nemo", "p(?X, ?X) :- q(?X, ?X) r(?X) .", 24, "`,` or `.`"),
        ("nemo", "p(?X, ?X) :- ?X .", 17, "`!=`"),
        ("nemo", 'p(?X, "a) :- q(?X, ?X) .', 7, "a literal"),
        ("datalog", "p(X,Y) :- q(X Y).", 15, "`,` or `)`"),
        ("datalog", "p(X,Y) :- not X != Y.", 17, "`(`"),
        ("datalog", "p(X,Y) :- q(X,Y), X.", 20, "`(` or `!=`"),
        ("anyburl", "1\t1\t0.5\tp(X,Y)", 15, "`<=`"),
        ("anyburl", "1\t1\t0.5\tX,Y) <= q(X,Y)", 9, "the head"),
        ("anyburl", "p(X,Y) <= q(X,A), rA,Y", 19, "an atom like"),
        ("amie", "?a  <r>   => ?a  <s>  ?a", 11, "subject, relation and object"),
        ("amie", "?a  <r>  ?b   => ?a  <s>", 25, "subject, relation and object of the head"),
        ("amie", "?a  <r>  ?b   => ?a  <s>  ?b  ?c", 31, "the end of the rule"),
        ("amie", "?a  ?r  ?b   => ?a  <s>  ?b", 5, "the name of a relation"),
        ("amie", "?a  <r>  ?b   => ?a  <s>  ?b\t0.1\tx", 30, "measures"),
        ("amie", "?a  <r>  ?b   => ?a  <s>  ?b\t0.1\t0.2\t0.3\t1.5", 30, "whole numbers"),
    ],
)
def test_parse_errors_point_at_the_column_in_every_dialect(name, text, column, expected):
    with pytest.raises(ParseError) as caught:
        dialect_named(name).read(text, "f:1")
    assert (caught.value.column, caught.value.where) == (column, "f:1")
    assert caught.value.expected.startswith(expected)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rdfox", "[?X, p, ?Z] :- [?X, q, ?Y] ."),
        ("nemo", "p(?X, ?Z) :- q(?X, ?Y) ."),
        ("datalog", "p(X,Z) :- q(X,Y)."),
        ("anyburl", "p(X,Z) <= q(X,Y)"),
        ("amie", "?a  <r>  ?b   => ?a  <s>  ?c"),
    ],
)
def test_an_unbound_head_variable_is_refused_in_every_dialect(name, text):
    with pytest.raises(InputError, match="is not bound") as caught:
        dialect_named(name).read(text, "f:1")
    assert caught.value.where == "f:1"


def test_zero_rules_are_kept_apart():
    found = parse_rules("100\t20\t0.2\th(X,cc) <= \n3\t2\t0.6\th(X,Y) <= g(Y,X)\n")
    assert [(str(z.head), z.predictions, z.line) for z in found.zero] == [("(x,<h>,cc)", 100, 1)]
    assert [s.line for s in found.rules] == [2]
    with pytest.raises(InputError, match="no Datalog rule"):
        dialect_named("anyburl").read("h(X,cc) <= ")


def test_anyburls_word_for_a_loop_is_read_as_one():
    found = parse_rules("p(X,Y) <= q(X,me_myself_i), r(me_myself_i,A), s(X,A), s(A,Y)").program[0]
    assert str(found) == "(x,<q>,x), (a,<r>,a), (x,<s>,a), (a,<s>,y) -> (x,<p>,y)"


def test_nemo_itself_reads_what_is_written_for_it():
    nemo = pytest.importorskip("nmo_python")
    lubm = read_rules("lubm-107").rules
    awkward = parse_rule("(x,_hypernym,00260881), (x,/a./b,y), x != y, (y,type,<C>) -> (x,type,http://a.b/c#d)")
    fact = parse_rule(' -> (<x>,says,"hello"@en)')
    nemo.load_string(format_rules([*lubm, awkward, fact], "nemo"))


def test_a_dialect_of_ones_own_is_found_by_name_and_by_ending(monkeypatch):
    from loginfer.logic import register_dialect
    from loginfer.logic.dialects import base

    def read(text, prefixes, where):
        head, body = (part.split() for part in text.split(" if "))
        return ScoredRule(parse_rule(f"({','.join(body)}) -> ({','.join(head)})"))

    monkeypatch.setattr(base, "_DIALECTS", [*base._DIALECTS])
    register_dialect(
        base.Dialect(
            name="words",
            about="atoms as words",
            example="x R y if x S y",
            endings=(".words",),
            read_statement=read,
            write_statement=lambda scored: " if ".join(
                " ".join(map(str, (a.subject, a.relation, a.object))) for a in (scored.rule.head, *scored.rule.atoms)
            ),
            looks_like=lambda text: " if " in text,
        )
    )
    assert detect("x R y if x S y", "my.words").name == "words"
    (rule,) = parse_rules("x R y if x S y\n", path="my.words").program
    assert rule == parse_rule("(x,S,y) -> (x,R,y)")
    assert format_rules([rule], "words") == "x R y if x S y\n"
