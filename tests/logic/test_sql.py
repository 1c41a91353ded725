"""Bodies as SQL text."""

from __future__ import annotations

import duckdb
import pytest

from loginfer.kg import RDF_TYPE
from loginfer.logic import Atom, Constant, Inequality, Rule, Variable
from loginfer.logic.dialects.arrow import parse_pattern, parse_rule
from loginfer.logic.dialects.queries import Layout, atom_factor, body_to_sql, join, quote_identifier, quote_text

x, y = Variable("x"), Variable("y")

NASTY = ["it's", "'; DROP TABLE triples; --", '"', "\\", "\\'", "''", "a\nb", "$$", "?", "é", "%s {t}"]


def run(query: str, triples: list[tuple[str, str, str]]) -> list[tuple[str, ...]]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE triples (s VARCHAR, r VARCHAR, o VARCHAR)").fetchall()
    for triple in triples:
        connection.execute("INSERT INTO triples VALUES (?, ?, ?)", triple).fetchall()
    found = sorted(connection.execute(query).fetchall())
    assert connection.execute("SELECT count(*) FROM triples").fetchall() == [(len(triples),)]
    connection.close()
    return found


def test_a_body_reads_like_sql():
    rule = parse_rule("(x,likes,y), (y,type,Person), (y,knows,Anna), x != y, y != Bob -> (x,knows,y)")
    assert body_to_sql(rule) == (
        'SELECT t0.s AS "x", t0.o AS "y"\n'
        "FROM triples AS t0, triples AS t1, triples AS t2\n"
        "WHERE t0.r = 'likes'\n"
        f"  AND t1.r = '{RDF_TYPE}'\n"
        "  AND t1.o = 'Person'\n"
        "  AND t1.s = t0.o\n"
        "  AND t2.r = 'knows'\n"
        "  AND t2.o = 'Anna'\n"
        "  AND t2.s = t0.o\n"
        "  AND t0.s <> t0.o\n"
        "  AND t0.o <> 'Bob'"
    )


@pytest.mark.parametrize("name", NASTY)
def test_no_name_can_leave_its_quotes(name):
    rule = Rule([Atom(x, name, Constant(name)), Inequality(x, Constant(name + name))], Atom(x, name, Constant(name)))
    triples = [("s", name, name), ("s", name, "other"), (name + name, name, name)]
    assert run(body_to_sql(rule), triples) == [("s",)]


def test_constants_loops_and_repeated_atoms():
    triples = [("a", "R", "a"), ("a", "R", "b"), ("b", "R", "a"), ("a", "S", "b")]
    for text, expected in (
        ("(x,R,x) -> (x,S,x)", [("a",)]),
        ("(x,R,y), (x,R,y) -> (x,S,y)", [("a", "a"), ("a", "b"), ("b", "a")]),
        ("(x,R,y), (y,R,x), x != y -> (x,S,y)", [("a", "b"), ("b", "a")]),
        ("(x,R,y), x != x -> (x,S,y)", []),
        ("(x,S,y), (z,R,z) -> (x,S,z)", [("a", "b", "a")]),
        ("(<a>,S,<b>) -> (<a>,R,<b>)", [(1,)]),
        ("(<b>,S,<b>) -> (<a>,R,<b>)", []),
        ("(<b>,S,x), x != <a> -> (<a>,R,<b>)", []),
    ):
        assert run(body_to_sql(parse_rule(text)), triples) == expected


def test_a_rule_without_body_has_one_empty_witness():
    rule = parse_rule("-> (<a>,R,<b>)")
    assert run(body_to_sql(rule), []) == [(1,)]


def test_a_relation_can_have_a_table_of_its_own():
    layout = Layout(table_of=lambda name: f'read_parquet("r={name}")', write_constant=lambda name: f"id({name})")
    rule = parse_rule("(x,R,y), (y,S,Anna) -> (x,R,y)")
    assert body_to_sql(rule, layout) == (
        'SELECT t0.s AS "x", t0.o AS "y"\n'
        'FROM read_parquet("r=R") AS t0, read_parquet("r=S") AS t1\n'
        "WHERE t1.o = id(Anna)\n"
        "  AND t1.s = t0.o"
    )


def test_templates_range_over_relations_and_types():
    pattern = parse_pattern("(x,_R,y), (x,type,_t) -> (y,type,_t)")
    layout = Layout(type_predicate="a")
    joined = join([atom_factor(atom, layout) for atom in pattern.atoms], (), layout)
    assert joined.conditions == ("t0.r <> 'a'", "t1.r = 'a'", "t1.s = t0.s")
    assert [joined.expressions[t] for t in pattern.templates] == ["t0.r", "t1.o"]


def test_without_a_type_predicate_there_are_no_types():
    pattern = parse_pattern("(x,_R,y), (x,type,_t) -> (y,type,_t)")
    layout = Layout(type_predicate=None)
    query = join([atom_factor(atom, layout) for atom in pattern.atoms], (), layout).text
    assert run(f"SELECT t0.s {query}", [("a", RDF_TYPE, "b"), ("a", "R", "b")]) == []
    first = join([atom_factor(pattern.atoms[0], layout)], (), layout).text
    assert len(run(f"SELECT t0.s {first}", [("a", RDF_TYPE, "b"), ("a", "R", "b")])) == 2


def test_quoting_doubles_what_would_end_the_quotes():
    assert quote_text("a'b\"") == "'a''b\"'"
    assert quote_identifier("a'b\"") == '"a\'b"""'
