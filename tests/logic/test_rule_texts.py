"""Rules as people read them: short names, and nothing lost but namespaces."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loginfer.kg import RDF_TYPE
from loginfer.logic import Atom, Constant, Inequality, Negation, Rule, Variable, parse_rule
from loginfer.logic.rule import names_in, short_sentences, short_text

UNIVERSITY = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            f"(x,{UNIVERSITY}publicationAuthor,y), (y,{UNIVERSITY}teacherOf,z) -> (x,{UNIVERSITY}emailAddress,z)",
            "publicationAuthor(x,y) ∧ teacherOf(y,z) → emailAddress(x,z)",
        ),
        ("(x,/film/film/genre,y), x != y -> (y,/music/artist/genre,x)", "film/genre(x,y) ∧ x≠y → artist/genre(y,x)"),
        (f"(x,type,{UNIVERSITY}Chair) -> (x,headOf,a/b)", "type(x,Chair) → headOf(x,a/b)"),
        ("(x,r,y), not (x,<hears of>,y) -> (x,s,<a, b>)", "r(x,y) ∧ not hears of(x,y) → s(x,<a, b>)"),
        ("(?who,knows,http://a.org/x) -> (?who,s,x1)", "knows(?who,<x>) → s(?who,x1)"),
        ("-> (x,/a/r,/b/c)", "→ r(x,<c>)"),
        ("x != y", "x≠y"),
        ("(x,_R,y), (y,_S,z) -> (x,_T,z)", "_R(x,y) ∧ _S(y,z) → _T(x,z)"),
        ("nothing of the kind, or -> at all", "nothing of the kind, or -> at all"),
    ],
)
def test_rules_and_parts_of_them_read_like_logic(text, shown):
    assert short_text(text) == shown


TERMS = st.sampled_from([Variable("x"), Variable("y"), Variable("who")]) | st.builds(
    Constant,
    st.sampled_from(["a", "x", "not", "AC/DC", "a -> b", "a, b", '"lit, (x)"@en', "<>\\", "line\nend", "http://a/b#c"]),
)
RELATIONS = st.sampled_from(["r", "type", RDF_TYPE, "x", "_R", "!= ", "http://a/b#r", "http://c/b#r", "/a/b./c/d"])
ATOMS = st.builds(Atom, TERMS, RELATIONS, TERMS)


@given(st.lists(ATOMS | st.builds(Negation, ATOMS) | st.builds(Inequality, TERMS, TERMS), min_size=1), ATOMS)
def test_every_name_of_a_rule_is_seen_in_its_text(body, head):
    rule = Rule.known_safe(tuple(body), head)
    atoms = [part.atom if isinstance(part, Negation) else part for part in (*body, head)]
    names = {a.relation for a in atoms if isinstance(a, Atom)} | {
        t.name for a in atoms for t in a.terms if isinstance(t, Constant)
    }
    assert set(names_in(rule)) == names - {RDF_TYPE}
    marked = {name: f"«{i}»" for i, name in enumerate(sorted(names))}
    shown = short_text(rule, marked)
    assert set(re.findall("«[0-9]+»", shown)) == {marked[name] for name in names - {RDF_TYPE}}
    assert "->" not in shown
    assert shown.count("(") == sum(isinstance(atom, Atom) for atom in atoms)


def test_sentences_show_rules_between_backticks_and_the_same_name_for_the_same_thing():
    rule = parse_rule(f"(x,{UNIVERSITY}name,y) -> (x,http://other.org/name,y)")
    assert short_sentences([f"instead of `{rule}` (3 of 3)", "see http://other.org/name, and 0.5 (1,2,3)"]) == [
        "instead of `univ-bench.owl#name(x,y) → other.org/name(x,y)` (3 of 3)",
        "see other.org/name, and 0.5 (1,2,3)",
    ]
    assert short_sentences(["one ` of (x,/a/r,y)"]) == ["one ` of (x,/a/r,y)"]
    assert short_sentences(["`(x,/a/r,y)`"], {"/a/r": "runs"}) == ["`runs(x,y)`"]
