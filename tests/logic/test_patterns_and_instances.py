import importlib
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.logic_strategies import equivalent_by_definition

from loginfer.errors import InputError, ParseError, UnknownNameError
from loginfer.logic import (
    PATTERN_NAMES,
    Atom,
    Constant,
    Pattern,
    Template,
    Variable,
    collapses,
    equivalent,
    instantiate,
    parse_pattern,
    parse_rule,
    pattern_named,
    patterns,
    register_pattern,
    symmetries,
)
from loginfer.logic.patterns import SHORT_NAMES


def test_table_1_is_here():
    assert [f"{p.name}: {p}" for p in patterns()] == [
        "symmetry: (x,_R,y) -> (y,_R,x)",
        "inversion: (x,_R,y) -> (y,_S,x)",
        "hierarchy: (x,_R,y) -> (x,_S,y)",
        "composition: (x,_R,y), (y,_S,z) -> (x,_T,z)",
        "intersection: (x,_R,y), (x,_S,y) -> (x,_T,y)",
        "triangle: (x,_R,y), (x,_S,z), (y,_T,z), x != y, x != z, y != z -> (x,_P,y)",
        "diamond: (x,_R,y), (x,_S,z), (y,_T,w), (z,_P,w), x != y, x != z, x != w, y != z, y != w, z != w -> (x,_Q,y)",
    ]


def test_patterns_have_long_and_short_names_and_are_read_from_their_text():
    for short, long in SHORT_NAMES.items():
        assert pattern_named(short) is pattern_named(long) is parse_pattern(f" {long.upper()} ")
        assert parse_pattern(str(pattern_named(long))) == pattern_named(long)
    assert tuple(SHORT_NAMES.values()) == PATTERN_NAMES


def test_an_unknown_pattern_comes_with_the_nearest_names():
    with pytest.raises(UnknownNameError, match="did you mean `diamond`"):
        parse_pattern("dimond")
    with pytest.raises(ParseError, match="expected `,` or `->`"):
        parse_pattern("(x,_R,y)")


def test_the_symmetries_and_collapses_of_table_1():
    found = {p.name: (symmetries(p), collapses(p)) for p in patterns()}
    assert found == {
        "symmetry": (((0,),), ()),
        "inversion": (((0,),), ()),
        "hierarchy": (((0,),), ()),
        "composition": (((0, 1),), ()),
        "intersection": (((0, 1), (1, 0)), ((0, 1),)),
        "triangle": (((0, 1, 2),), ()),
        "diamond": (((0, 1, 2, 3),), ()),
    }


def test_types_are_exchanged_with_types_only():
    pattern = parse_pattern("(x,type,_t), (x,type,_s), (x,_R,y), (x,_S,y) -> (x,type,C1)")
    assert symmetries(pattern) == ((0, 1, 2, 3), (0, 1, 3, 2), (1, 0, 2, 3), (1, 0, 3, 2))
    assert collapses(pattern) == ((0, 1), (2, 3))


@st.composite
def small_patterns(draw):
    variable = st.sampled_from([Variable(n) for n in "xyz"])
    template = st.sampled_from([Template(n) for n in ("_R", "_S", "_T", "_P")])
    body = draw(st.lists(st.builds(Atom, variable, template, variable), min_size=1, max_size=4, unique=True))
    bound = sorted({v for atom in body for v in atom.variables})
    head = Atom(draw(st.sampled_from(bound)), draw(template), draw(st.sampled_from(bound)))
    return Pattern(body, head)


@settings(deadline=None, max_examples=80)
@given(small_patterns())
def test_symmetries_are_the_permutations_that_give_equivalent_instances(pattern):
    names = [f"r{i}" for i in range(len(pattern.templates))]
    head = None if pattern.head_in_body else "h0"
    plain = instantiate(pattern, names, head)
    expected = tuple(
        order
        for order in permutations(range(len(names)))
        if equivalent_by_definition(instantiate(pattern, [names[i] for i in order], head), plain)
    )
    assert symmetries(pattern) == expected


@settings(deadline=None, max_examples=60)
@given(small_patterns())
def test_collapses_are_the_pairs_whose_equality_merges_atoms(pattern):
    count = len(pattern.templates)
    expected = []
    for i in range(count):
        for j in range(i + 1, count):
            names = [f"r{i if k == j else k}" for k in range(count)]
            rule = instantiate(pattern, names, None if pattern.head_in_body else "h0")
            if len(set(rule.atoms)) < len(set(pattern.atoms)):
                expected.append((i, j))
    assert collapses(pattern) == tuple(expected)


def test_an_instance_has_names_in_the_places_of_templates():
    rule = instantiate(pattern_named("composition"), ["p", "q"], head="r")
    assert rule == parse_rule("(x,<p>,y), (y,<q>,z) -> (x,<r>,z)")
    assert (
        instantiate(pattern_named("composition"), {Template("_S"): "q", Template("_R"): "p", Template("_T"): "r"})
        == rule
    )
    typed = instantiate(parse_pattern("(x,type,_t) -> (x,type,_s)"), ["Cat"], "Animal")
    assert typed.body[0] == Atom(Variable("x"), typed.head.relation, Constant("Cat"))


@pytest.mark.parametrize(
    ("pattern", "predicates", "head", "message"),
    [
        ("composition", ["p"], "r", "2 templates, but 1 predicates"),
        ("composition", "pq", "r", "2 templates"),
        ("composition", ["p", "q"], None, "needs a predicate"),
        ("symmetry", ["p"], "r", "`r` has no place"),
        ("composition", {Template("_R"): "p"}, "r", "no predicate for `_S`"),
        ("symmetry", {Template("_R"): "p", Template("_X"): "p"}, None, "no template `_X`"),
        ("inversion", {Template("_R"): "p", Template("_S"): "q"}, "r", "two predicates for the head"),
    ],
)
def test_predicates_that_do_not_fit_the_pattern_are_refused(pattern, predicates, head, message):
    with pytest.raises(InputError, match=message):
        instantiate(pattern_named(pattern), predicates, head)


def test_patterns_are_compared_up_to_templates_if_asked():
    one = parse_pattern("(x,_R,y), (y,_S,z) -> (x,_T,z)")
    two = parse_pattern("(b,_A,c), (a,_B,b) -> (a,_C,c)")
    assert not equivalent(one, two)
    assert equivalent(one, two, rename_templates=True)
    assert not equivalent(one, parse_pattern("(x,_R,y), (y,_S,z) -> (z,_T,x)"), rename_templates=True)
    assert not equivalent(one, parse_pattern("(x,_R,y), (y,_S,z) -> (x,_S,z)"), rename_templates=True)


def test_a_pattern_of_ones_own_has_a_name_everywhere(monkeypatch):
    module = importlib.import_module("loginfer.logic.patterns")
    for table in ("_PATTERNS", "_NAMES"):
        monkeypatch.setattr(module, table, dict(getattr(module, table)))
    made = register_pattern("two-steps", "(x,_R,y), (y,_R,z) -> (x,_R,z)", short="two")
    assert parse_pattern("two") == parse_pattern("two-steps") == made
    with pytest.raises(InputError, match="cannot be the name"):
        register_pattern("diamond", "(x,_R,y) -> (y,_R,x)")
