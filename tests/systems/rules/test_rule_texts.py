"""Mined rules by name, as lines of a file, and back."""

from dataclasses import fields
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.rule_brute_force import ENTITIES, RELATIONS, path_tables, scored_rules

from loginfer.errors import InputError, UnknownNameError
from loginfer.kg import RDF_TYPE, KnowledgeGraph, Vocabulary
from loginfer.logic.dialects.arrow import parse_rule
from loginfer.logic.rule import ScoredRule
from loginfer.logic.rule_files import format_rules, parse_rules
from loginfer.systems.rules.listing import list_rules
from loginfer.systems.rules.mined import BOTH, NONE, OBJECT, SUBJECT, MinedRules, RuleTable
from loginfer.systems.rules.texts import mined_from, parse_path_rules, read_path_rules, rule_lines


def graph_of(entities, relations, type_predicate=None) -> KnowledgeGraph:
    return KnowledgeGraph(
        Vocabulary.of(entities), Vocabulary.of(relations), np.empty((0, 3)), type_predicate=type_predicate
    )


PLAIN = graph_of([f"ent{i}" for i in range(ENTITIES)], [f"rel{i}" for i in range(RELATIONS)])
# Names as some graphs have them: with spaces, commas, brackets in pairs, quotes.
ODD = graph_of(
    ["Paris, Texas", "Python (language)", '"42"^^<int>', "two words", "ünï"],
    ["born in", "/people/person.place/of-birth", "is(a)"],
)


def same(first: RuleTable, second: RuleTable) -> bool:
    return all(np.array_equal(getattr(first, f.name), getattr(second, f.name)) for f in fields(RuleTable))


def best_first(table: RuleTable) -> RuleTable:
    return table.take(table.best_first)


def row(table: RuleTable) -> tuple:
    return (
        *(int(getattr(table, name)[0]) for name in ("head", "variables", "head_constant", "end_constant")),
        table.body[0].tolist(),
    )


# -- lines -----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(path_tables(), st.sampled_from([PLAIN, ODD]))
def test_lines_of_anyburl_are_read_back_quickly_and_by_the_dialect(table, graph):
    lines = list(rule_lines(MinedRules(table), graph))
    text = "".join(f"{line}\n" for line in lines)
    found, skipped = parse_path_rules(text, graph)
    assert not skipped
    assert same(found.paths, best_first(table))
    file = parse_rules(text, "anyburl")
    other, skipped = mined_from(file, graph, distinct=True)
    assert not skipped
    assert same(best_first(other.paths), best_first(table))


@settings(max_examples=40)
@given(path_tables(), st.sampled_from([PLAIN, ODD]))
def test_lines_of_arrow_are_read_back(table, graph):
    table = table.take(table.length > 0)
    lines = list(rule_lines(MinedRules(table), graph, "arrow"))
    found, skipped = mined_from(parse_rules("\n".join(lines), "arrow"), graph, distinct=False)
    assert not skipped
    assert same(found.paths, best_first(table))
    assert not found.others
    assert found.distinct is False


@settings(max_examples=40)
@given(path_tables(), st.sampled_from([PLAIN, ODD]))
def test_rules_by_name_are_recognised_again(table, graph):
    rules, zero = scored_rules(MinedRules(table), graph)
    assert len(rules) + len(zero) == len(table)
    text = format_rules(rules)
    found, _ = mined_from(parse_rules(text, "arrow"), graph, distinct=True)
    assert same(found.paths, best_first(table.take(table.length > 0)))
    assert [rule.head.variables for rule in zero] == [(rule.head.variables[0],) for rule in zero]


def test_lines_are_as_anyburl_writes_them():
    table = RuleTable.of(
        head=[0, 0, 1, 1, 2],
        variables=[BOTH, SUBJECT, OBJECT, OBJECT, SUBJECT],
        head_constant=[NONE, 1, 2, 3, 4],
        end_constant=[NONE, 3, NONE, 0, NONE],
        body=[[1, 4, 3], [2, NONE, NONE], [0, 3, 4], [0, 3, NONE], [NONE, NONE, NONE]],
        predictions=[10, 20, 30, 40, 50],
        correct=[5, 4, 3, 2, 1],
        confidence=[0.5, 0.2, 0.1, 0.05, 0.02],
    )
    assert list(rule_lines(MinedRules(table), PLAIN)) == [
        "10\t5\t0.5\trel0(X,Y) <= rel0(A,X), rel2(A,B), rel1(Y,B)",
        "20\t4\t0.2\trel0(X,ent1) <= rel1(X,ent3)",
        "30\t3\t0.1\trel1(ent2,Y) <= rel0(Y,A), rel1(B,A), rel2(B,C)",
        "40\t2\t0.05\trel1(ent3,Y) <= rel0(Y,A), rel1(ent0,A)",
        "50\t1\t0.02\trel2(X,ent4) <= ",
    ]


def test_lines_are_best_first_whatever_the_shape():
    table = RuleTable.of(head=[0, 0], body=[[2], [4]], confidence=[0.1, 0.9])
    others = (
        ScoredRule(parse_rule("(x,rel0,y), (x,rel1,y) -> (x,rel2,y)"), 2, 1, 0.5),
        ScoredRule(parse_rule("(x,rel0,x) -> (x,rel2,x)")),
    )
    lines = list(rule_lines(MinedRules(table, others), PLAIN))
    assert [line.rpartition("\t")[2].partition("(")[0] for line in lines] == ["rel2", "rel0", "rel2", "rel0"]
    found, _ = parse_path_rules("\n".join(lines), PLAIN)
    assert same(found.paths, best_first(table))
    assert found.others == (others[1], others[0])


@pytest.mark.parametrize("name", ["a\tb", "x", "me_myself_i", "aa) <= rel1(X,bb"])
def test_a_name_that_anyburl_cannot_express_is_refused_with_a_way_out(name):
    graph = graph_of([name, "ent1"], ["rel0", "rel1"])
    place = graph.entity_id(name)
    for end, body in ((1 - place, [2]), (NONE, [NONE])):
        table = RuleTable.of(head=[0], variables=[SUBJECT], head_constant=[place], end_constant=[end], body=[body])
        with pytest.raises(InputError, match="AnyBURL cannot express") as caught:
            list(rule_lines(MinedRules(table), graph))
        assert "--to arrow" in caught.value.hint


def test_inequalities_are_refused_by_anyburl_and_written_by_arrow():
    rules = MinedRules(RuleTable.empty(), (ScoredRule(parse_rule("(x,rel0,y), x != y -> (y,rel0,x)"), 2, 1, 0.5),))
    with pytest.raises(InputError, match="inequality") as caught:
        list(rule_lines(rules, PLAIN))
    assert "--to arrow" in caught.value.hint
    assert list(rule_lines(rules, PLAIN, "arrow")) == ["2\t1\t0.5\t(x,rel0,y), x != y -> (y,rel0,x)"]


def test_rules_without_a_body_are_refused_by_arrow():
    table = RuleTable.of(head=[0], variables=[OBJECT], head_constant=[1], body=[[NONE]], confidence=[0.5])
    with pytest.raises(InputError, match="arrow cannot express a rule without a body") as caught:
        list(rule_lines(MinedRules(table), PLAIN, "arrow"))
    assert "anyburl" in caught.value.hint


def test_an_unknown_dialect_is_refused():
    with pytest.raises(UnknownNameError, match="anyburl"):
        list(rule_lines(MinedRules(RuleTable.empty()), PLAIN, "anybrul"))


@pytest.mark.parametrize("type_name", [RDF_TYPE, "type", "is a"])
def test_types_are_written_as_types_whatever_the_graph_calls_them(type_name):
    graph = graph_of(["Person", "bob"], ["knows", type_name], type_name)
    kind, knows = graph.type_relation, graph.relation_id("knows")
    table = RuleTable.of(
        head=[knows, kind],
        variables=[SUBJECT, SUBJECT],
        head_constant=[graph.entity_id("bob"), graph.entity_id("Person")],
        end_constant=[graph.entity_id("Person"), NONE],
        body=[[2 * kind], [2 * knows]],
        confidence=[0.5, 0.25],
    )
    lines = list(rule_lines(MinedRules(table), graph))
    assert f"{RDF_TYPE}(X,Person)" in lines[0]
    assert same(parse_path_rules("\n".join(lines), graph)[0].paths, table)
    arrow = list(rule_lines(MinedRules(table), graph, "arrow"))
    assert "(x,type,Person)" in arrow[0]
    assert same(mined_from(parse_rules("\n".join(arrow)), graph, distinct=True)[0].paths, table)


def test_a_relation_called_type_that_is_none_cannot_be_written_for_anyburl():
    graph = graph_of(["aa", "bb"], ["knows", "type"], "")
    table = RuleTable.of(head=[0], body=[[2]], confidence=[0.5])
    with pytest.raises(InputError, match="AnyBURL cannot express"):
        list(rule_lines(MinedRules(table), graph))


# -- shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(s,rel0,o) -> (s,rel1,o)", (1, BOTH, NONE, NONE, [0, -1, -1])),
        ("(o,rel0,s) -> (s,rel1,o)", (1, BOTH, NONE, NONE, [1, -1, -1])),
        ("(z,rel0,y), (x,rel1,z) -> (x,rel2,y)", (2, BOTH, NONE, NONE, [2, 0, -1])),
        ("(w,rel2,y), (z,rel0,x), (w,rel1,z) -> (x,rel0,y)", (0, BOTH, NONE, NONE, [1, 3, 4])),
        ("(ent1,rel0,z), (y,rel1,z) -> (y,rel0,ent3)", (0, SUBJECT, 3, 1, [2, 1, -1])),
        ("(z,rel0,ent2) -> (ent2,rel0,z)", (0, OBJECT, 2, 2, [0, -1, -1])),
        ("(z,rel0,w), (q,rel1,w), (q,rel2,v) -> (ent0,rel0,z)", (0, OBJECT, 0, NONE, [0, 3, 4])),
    ],
)
def test_paths_are_recognised_in_any_order_and_direction(text, expected):
    body, _, head = text.rpartition(" -> ")
    parts = body.split("), ")
    atoms = [part.rstrip(")") + ")" for part in parts]
    for order in permutations(atoms):
        file = parse_rules(f"{', '.join(order)} -> {head}")
        found, skipped = mined_from(file, PLAIN, distinct=True)
        assert not skipped
        assert row(found.paths) == expected
        # A rule that nobody has scored is taken at its word.
        assert found.paths.confidence.tolist() == [1.0]


@pytest.mark.parametrize(
    "text",
    [
        "(x,rel0,y), (x,rel1,y) -> (x,rel2,y)",
        "(x,rel0,y), x != y -> (y,rel0,x)",
        "(x,rel0,x) -> (x,rel1,x)",
        "(x,rel0,z), (z,rel1,z), (z,rel0,y) -> (x,rel2,y)",
        "(x,rel0,a), (a,rel0,b), (b,rel0,c), (c,rel0,y) -> (x,rel2,y)",
        "(x,rel0,ent1), (ent1,rel0,y) -> (x,rel2,y)",
        "(x,rel0,z), (y,rel1,w) -> (x,rel2,y)",
        "(x,rel0,ent1), (x,rel1,ent2) -> (x,rel2,ent3)",
        "(x,rel0,a), (a,rel1,x) -> (x,rel2,ent3)",
        "(x,rel0,y) -> (ent1,rel2,ent3)",
        "-> (ent1,rel2,ent3)",
    ],
)
def test_other_shapes_stay_as_they_are(text):
    found, skipped = mined_from(parse_rules(text), PLAIN, distinct=True)
    assert not skipped
    assert len(found.paths) == 0
    assert found.others == (ScoredRule(parse_rule(text)),)


# -- what is left out ------------------------------------------------------------------------------

FILE = """\
5\t3\t0.6\trel0(X,Y) <= rel1(Y,X)

4\t2\t0.5\tother(X,Y) <= rel1(X,Y)
4\t2\t0.5\trel0(X,nobody) <= rel1(X,A)
4\t2\t0.5\trel0(X,Y) <= rel1(X,A), another(A,Y)
this is no rule
4\t2\t0.5\trel0(X,Y) <= rel1(X,A), rel1(A
3\t1\t0.25\trel0(X,ent1) <= rel1(X,X)
3\t1\t0.25\trel0(X,ent1) <= rel1(X,me_myself_i)
9\t9\t0.01\trel0(X,Y) <=\x20
9\t9\t0.01\trel0(ent1,Y) <=
1\t1\tnan\trel0(X,Y) <= rel2(X,Y)
rel2(X,Y) <= rel0(X,Y)
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_what_cannot_be_used_is_left_out_counted_and_located(tmp_path, line_end):
    path = tmp_path / "rules.txt"
    path.write_bytes(b"\xef\xbb\xbf" + FILE.replace("\n", line_end).encode())
    found, skipped = read_path_rules(path, PLAIN)
    assert found.paths.head.tolist() == [0, 0, 2]
    assert found.paths.predictions.tolist() == [5, 9, 0]
    assert found.paths.confidence.tolist() == [0.6, 0.01, 1.0]
    assert [str(rule.rule) for rule in found.others] == ["(x,rel1,x) -> (x,rel0,ent1)"] * 2
    assert sorted(skipped.counts.items()) == [
        ("a constant that the graph does not have", 1),
        ("a head of variables only, without a body", 1),
        ("a relation that the graph does not have", 2),
    ]
    assert skipped.examples["a relation that the graph does not have"] == f"{path}:3: `other`"
    assert skipped.examples["a constant that the graph does not have"] == f"{path}:4: `nobody`"
    assert [line.split(": ")[0] for line in skipped.malformed] == [f"{path}:{n}" for n in (6, 7, 12)]
    assert len(skipped) == 7


@pytest.mark.parametrize(
    "columns",
    ["1\t1\tnan", "1\t1\tinf", "1\t1\t1.5", "1\t1\t-0.5", "-1\t1\t0.5", "1\t1", "1\tx\t0.5", "1\t1\t1.2.3",
     "9" * 19 + "\t1\t0.5", "9" * 5000 + "\t1\t0.5", "1\t1\t0.5\t7"],
)  # fmt: skip
def test_columns_that_are_no_measures_make_a_line_no_rule_whoever_reads_it(tmp_path, columns):
    for name, rule in (("anyburl", "rel0(X,Y) <= rel2(X,Y)"), ("arrow", "(x,rel2,y) -> (x,rel0,y)")):
        text = f"5\t3\t0.6\t{rule}\n{columns}\t{rule}\n"
        file = parse_rules(text, None, "skip", path="rules")
        assert (file.dialect, len(file.rules)) == (name, 1)
        assert [line.split(": ")[0] for line in file.skipped] == ["rules:2"]
        path = tmp_path / "rules.txt"
        path.write_text(text)
        listed = list_rules(path, "skip")
        assert (len(listed), [line.split(": ")[0] for line in listed.skipped]) == (1, [f"{path}:2"])
    found, skipped = parse_path_rules(f"{columns}\trel0(X,Y) <= rel2(X,Y)\n", PLAIN)
    assert (len(found), len(skipped.malformed)) == (0, 1)


def test_both_readers_leave_out_the_same():
    quick, skipped = parse_path_rules(FILE, PLAIN)
    careful, other = mined_from(parse_rules(FILE, "anyburl", "skip"), PLAIN, distinct=True)
    assert sorted(map(str, quick.paths.predictions)) == sorted(map(str, careful.paths.predictions))
    assert quick.others == careful.others
    assert skipped.counts == other.counts
    assert skipped.examples == other.examples
    assert skipped.malformed == other.malformed


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="nothing-here"):
        read_path_rules(tmp_path / "nothing-here", PLAIN)
    (tmp_path / "binary").write_bytes(b"5\t3\t0.6\trel0(X,Y) <= rel1(Y,X)\n\xff\xfe")
    with pytest.raises(InputError, match="binary:2: not a text file"):
        read_path_rules(tmp_path / "binary", PLAIN)


def test_an_empty_text_has_no_rules():
    found, skipped = parse_path_rules("", PLAIN)
    assert len(found) == 0
    assert not skipped
