import os
import subprocess
import sys
from importlib import resources

import pytest

from loginfer.errors import InputError, OutputError, ParseError, UnknownNameError
from loginfer.logic import (
    SHIPPED,
    ScoredRule,
    equivalent,
    format_rules,
    parse_rule,
    parse_rules,
    read_rules,
    write_rules,
)

RULES = [parse_rule("(x,R,y), x != y -> (y,R,x)"), parse_rule("(x,type,C) -> (x,type,<D e>)")]


def test_rules_are_written_and_read_back(tmp_path):
    for dialect in ("arrow", "rdfox", "nemo", "datalog"):
        path = tmp_path / dialect
        write_rules(RULES, path, dialect)
        found = read_rules(path)
        assert (found.dialect, found.path, len(found)) == (dialect, str(path), 2)
        assert all(equivalent(a, b) for a, b in zip(found.program, RULES, strict=True))


def test_the_shipped_rules_are_found_by_name():
    assert [len(read_rules(name)) for name in SHIPPED] == [107, 19]
    everything = read_rules("lubm-107").program
    assert all(rule in everything for rule in read_rules("lubm-19").program)


def test_every_shipped_file_has_a_name():
    data = resources.files("loginfer.logic") / "data"
    assert sorted(SHIPPED) == sorted(f.name.removesuffix(".rules") for f in data.iterdir())


def test_a_declaration_that_does_not_parse_is_an_error_and_one_to_pass_over_changes_nothing():
    with pytest.raises(ParseError, match=r"expected `@prefix p: <iri> \.` at column 1"):
        parse_rules("@prefix ub <http://a> .\n", path="r")
    program = '@prefix : <http://a#> .\n@import t :- csv{resource="x"} .\n:p(?x, ?y) :- q(?x, ?y) .'
    assert parse_rules(program).program[0].head.relation == "http://a#p"


def test_half_a_character_is_refused(tmp_path):
    with pytest.raises(InputError, match="half a character"):
        write_rules([parse_rule("(x,\ud800,y) -> (y,R,x)")], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_lines_are_counted_and_scores_kept():
    found = parse_rules("# c\n\n3\t2\t0.5\t(x,R,y) -> (y,R,x)\r\n(x,R,y) -> (x,S,y)  # d\n")
    assert found.rules[0] == ScoredRule(parse_rule("(x,R,y) -> (y,R,x)"), 3, 2, 0.5)
    assert [s.line for s in found.rules] == [3, 4]


def test_an_empty_file_has_no_rules(tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(b"\xef\xbb\xbf")
    assert read_rules(path).rules == ()


def test_an_error_names_file_line_and_column(tmp_path):
    path = tmp_path / "bad.rules"
    path.write_text("(x,R,y) -> (y,R,x)\n\n  (x,R,y -> (y,R,x)\n")
    with pytest.raises(ParseError) as caught:
        read_rules(path)
    assert (caught.value.where, caught.value.column) == (f"{path}:3", 8)


def test_an_error_in_a_rule_of_several_lines_points_at_the_right_one():
    with pytest.raises(ParseError) as caught:
        parse_rules("[?X, p, ?Y] :- [?X, q, ?Y] .\n[?X, p, ?Y] :-\n   [?X, q ?Y] .\n", path="r")
    assert (caught.value.where, caught.value.column, caught.value.text) == ("r:3", 11, "   [?X, q ?Y] .")


def test_bad_lines_can_be_skipped_and_are_reported():
    text = "(x,R,y) -> (y,R,x)\n(x,R)\n(x,R,y) -> (x,R,z)\n(x,S,y) -> (y,S,x)\n"
    found = parse_rules(text, "arrow", "skip", path="r")
    assert [s.line for s in found.rules] == [1, 4]
    assert found.skipped[0].startswith("r:2: expected `,`")
    assert found.skipped[1].startswith("r:3: variable `z` of the head is not bound")


def test_bad_statements_of_several_lines_can_be_skipped():
    found = parse_rules("p(?X) :- q(?X,,\n?Y) .\np(?x) :- q(?x, ?y) .", "nemo", "skip", path="r")
    assert ([s.line for s in found.rules], len(found.skipped)) == ([3], 1)


def test_a_missing_file_comes_with_the_nearest_names(tmp_path):
    (tmp_path / "family.rules").write_text("")
    with pytest.raises(UnknownNameError, match=r"family\.rules") as caught:
        read_rules(tmp_path / "famly.rules")
    assert "did you mean" in str(caught.value)
    with pytest.raises(UnknownNameError, match="`lubm-107`"):
        read_rules("lubm-170")


def test_a_folder_is_no_rule_file(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        read_rules(tmp_path)


def test_binary_junk_is_no_rule_file(tmp_path):
    path = tmp_path / "junk"
    path.write_bytes(b"(x,R,y) -> (y,R,x)\n\x80\xff\x00\x01")
    with pytest.raises(InputError, match="not a text file") as caught:
        read_rules(path)
    assert caught.value.where == f"{path}:2"


def test_a_long_line_without_sense_is_refused_at_once():
    code = 'from loginfer.logic import parse_rules; parse_rules("[?x," + "ud800<knows>," * 300 + " -> ")'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert "InputError" in done.stderr or "ParseError" in done.stderr


def test_a_table_of_two_columns_is_no_rule_file(tmp_path):
    path = tmp_path / "two.tsv"
    path.write_text("a\tb\nc\td\n")
    with pytest.raises(ParseError) as caught:
        read_rules(path)
    assert caught.value.where == f"{path}:1"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_an_input_error(tmp_path):
    path = tmp_path / "secret"
    path.write_text("")
    path.chmod(0)
    with pytest.raises(InputError, match="permission denied"):
        read_rules(path)


def test_an_existing_file_is_replaced_only_by_force(tmp_path):
    path = tmp_path / "out"
    write_rules(RULES[:1], path)
    with pytest.raises(OutputError, match="exists already"):
        write_rules(RULES, path)
    write_rules(RULES, path, force=True)
    assert len(read_rules(path)) == 2


def test_nothing_is_written_if_one_rule_cannot_be_expressed(tmp_path):
    with pytest.raises(InputError, match="cannot express"):
        write_rules(RULES, tmp_path / "out", "anyburl")
    assert list(tmp_path.iterdir()) == []


def test_formatted_rules_end_with_a_line_end():
    assert format_rules(RULES) == "(x,R,y), x != y -> (y,R,x)\n(x,type,C) -> (x,type,<D e>)\n"
    assert format_rules([]) == ""


def test_a_relation_called_like_a_directive_is_read_where_there_are_no_directives():
    assert str(parse_rules("@prefix(X,Y) <= ab(Y,X)", "anyburl").program[0]) == "(y,ab,x) -> (x,@prefix,y)"
