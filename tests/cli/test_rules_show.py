"""`loginfer rules show`, run as users run it."""

import json

import pytest

RULES = """\
20\t15\t0.75\t/a/member(X,Y) <= /b/works(X,A), /a/part(A,Y)
9\t9\t1.0\t/a/member(X,Y) <= /a/part(X,Y)
30\t16\t0.5333\t/b/works(X,/m/01) <= /a/part(X,/m/02)
200\t180\t0.9\t/a/member(X,/m/01) <=\x20
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rules.tsv"
    path.write_text(RULES)
    return path


def shown(loginfer, file, *words):
    code, answer, messages = loginfer("rules", "show", file, *words, "--json")
    assert code == 0, messages
    return [each["rule"] for each in json.loads(answer)["shown"]]


ALL = [
    "(x,/a/part,y) -> (x,/a/member,y)",
    "-> (x,/a/member,/m/01)",
    "(x,/b/works,a), (a,/a/part,y) -> (x,/a/member,y)",
    "(x,/a/part,/m/02) -> (x,/b/works,/m/01)",
]


def test_measures_that_no_rule_has_are_no_columns(loginfer, tmp_path):
    (tmp_path / "rules.txt").write_text("(x,r,y) -> (y,s,x)\n")
    assert loginfer("rules", "show", tmp_path / "rules.txt")[1] == "rule\nr(x,y) → s(y,x)\n"


def test_rules_are_shown_best_first_with_their_measures(loginfer, file):
    code, answer, messages = loginfer("rules", "show", file)
    assert code == 0
    rows = [line.split(maxsplit=3) for line in answer.splitlines()]
    assert rows[0] == ["predictions", "correct", "confidence", "rule"]
    assert rows[1:] == [
        ["9", "9", "1.0000", "part(x,y) → member(x,y)"],
        ["200", "180", "0.9000", "→ member(x,m/01)"],
        ["20", "15", "0.7500", "works(x,a) ∧ part(a,y) → member(x,y)"],
        ["30", "16", "0.5333", "part(x,m/02) → works(x,m/01)"],
    ]
    assert "4 rules in" in messages


def test_rules_are_sorted_and_filtered(loginfer, file):
    assert shown(loginfer, file) == ALL
    assert shown(loginfer, file, "--sort", "correct") == [ALL[1], ALL[3], ALL[2], ALL[0]]
    assert shown(loginfer, file, "--sort", "length") == [ALL[1], ALL[0], ALL[3], ALL[2]]
    assert shown(loginfer, file, "--top", "1") == ALL[:1]
    assert shown(loginfer, file, "--head", "/b/works") == [ALL[3]]
    assert shown(loginfer, file, "--head", "works") == [ALL[3]]
    assert shown(loginfer, file, "--relation", "works") == ALL[2:]
    assert shown(loginfer, file, "--length", "1") == [ALL[0], ALL[3]]
    assert shown(loginfer, file, "--min-confidence", "0.9") == ALL[:2]
    assert shown(loginfer, file, "--min-correct", "16", "--relation", "part") == [ALL[3]]


def test_names_are_shown_in_full_if_asked_for_and_lines_for_programs_never_folded(loginfer, file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    rows = [line.split(maxsplit=3) for line in loginfer("rules", "show", file, "--full-names")[1].splitlines()]
    assert [row[3] for row in rows[1:]] == ALL


def test_a_relation_is_found_by_what_is_shown(loginfer, tmp_path):
    path = tmp_path / "rules.tsv"
    path.write_text("9\t9\t1.0\t/film/film/genre(X,Y) <= /music/artist/genre(X,Y)\n")
    assert "artist/genre(x,y) → film/genre(x,y)" in loginfer("rules", "show", path)[1]
    assert len(shown(loginfer, path, "--head", "film/genre")) == 1
    assert loginfer("rules", "show", path, "--head", "artist/genre")[0] == 2


def test_the_answer_for_programs_has_the_measures_and_the_lines(loginfer, file):
    answer = json.loads(loginfer("rules", "show", file, "--head", "works", "--json")[1])
    assert answer == {
        "file": str(file),
        "dialect": "anyburl",
        "rules": 4,
        "fitting": 1,
        "skipped": 0,
        "shown": [{"predictions": 30, "correct": 16, "confidence": 0.5333, "length": 1, "rule": ALL[3], "line": 3}],
    }


def test_a_shipped_rule_set_and_other_dialects_are_shown_too(loginfer, tmp_path):
    answer = json.loads(loginfer("rules", "show", "lubm-107", "--json")[1])
    assert (answer["rules"], answer["dialect"]) == (107, "arrow")
    assert answer["shown"][0]["confidence"] is None
    path = tmp_path / "amie.tsv"
    path.write_text("?a  <one>  ?b  ?b  <two>  ?c   => ?a  <all>  ?c\t0.1\t0.75\t0.9\t15\t20\n")
    assert shown(loginfer, path) == ["(a,one,b), (b,two,c) -> (a,all,c)"]


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("", [], "holds no rule"),
        (RULES + "what is this\n", [], "rules.tsv:5: "),
        (RULES + "1\t1\t0.5\tr(X,Y) s(X,Y)\n", [], "rules.tsv:5: "),
        (RULES, ["--head", "wrks"], "did you mean `/b/works`"),
        (RULES, ["--sort", "conf"], "did you mean `confidence`"),
        (RULES, ["--from", "anyburll"], "did you mean `anyburl`"),
        (RULES, ["--top", "0"], "--top"),
        (RULES, ["--length", "-1"], "--length"),
    ],
)
def test_wrong_input_to_rules_show_is_answered_in_one_message(loginfer, tmp_path, text, words, message):
    path = tmp_path / "rules.tsv"
    path.write_text(text)
    code, answer, messages = loginfer("rules", "show", path, *words)
    assert (code, answer) == (2, "")
    assert message in messages


def test_a_missing_file_and_a_file_that_is_no_text_are_told(loginfer, tmp_path):
    assert "unknown rule file" in loginfer("rules", "show", tmp_path / "none.tsv")[2]
    (tmp_path / "b.tsv").write_bytes(b"9\t9\t1.0\tr(X,Y) <= s(X,\xff)\n")
    assert "b.tsv:1: not a text file" in loginfer("rules", "show", tmp_path / "b.tsv")[2]


def test_bad_lines_can_be_skipped_and_are_counted(loginfer, tmp_path):
    path = tmp_path / "rules.tsv"
    path.write_text("what is this\n" + RULES + "r(X\n")
    code, answer, messages = loginfer("rules", "show", path, "--on-error", "skip")
    assert code == 0
    assert "skipped 2 bad lines, e.g." in messages
    assert "rules.tsv:1: " in messages
    assert "part(x,y) → member(x,y)" in answer


def test_names_that_could_be_misread_are_read_with_care(loginfer, tmp_path):
    path = tmp_path / "rules.tsv"
    path.write_text("9\t8\t0.9\tlong (old)(X,Y) <= so, so(X,A), up(A,Y)\r\nlong(X,Y) <= up(X,Y)\n")
    odd = "(x,<so, so>,a), (a,up,y) -> (x,<long (old)>,y)"
    assert shown(loginfer, path) == [odd, "(x,up,y) -> (x,long,y)"]
    assert shown(loginfer, path, "--relation", "so, so", "--length", "2") == [odd]
