"""No line that people read is wider than the terminal, or than COLUMNS, whatever names a graph has."""

import os
import pty
import re
import subprocess
import sys

import pytest
from rich.cells import cell_len
from tests.support.real_program import PROGRAM

UNIVERSITY = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def triples():
    """A university with departments: IRIs that end alike, a literal, and names that are wide on the screen."""
    for d in range(3):
        department = f"http://www.Department{d}.University0.edu"
        yield department, f"{UNIVERSITY}subOrganizationOf", "http://www.University0.edu/学部/理学研究科・理学部"
        for p in range(8):
            person = f"{department}/AssociateProfessorOfArtificialIntelligence{p}"
            yield person, TYPE, f"{UNIVERSITY}AssociateProfessor"
            yield person, f"{UNIVERSITY}worksFor", department
            yield person, f"{UNIVERSITY}teacherOf", f"{department}/Course{p}"
            yield person, f"{UNIVERSITY}emailAddress", f'"AssociateProfessor{p}@Department{d}.University0.edu"'
            for n in range(3):
                publication = f"{person}/PublicationOnKnowledgeGraphCompletion{n}"
                yield publication, f"{UNIVERSITY}publicationAuthor", person
                yield publication, f"{UNIVERSITY}cites", f"{department}/Course{(p + n) % 8}"


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("widths") / "a-university-with-a-name-of-some-length.tsv"
    path.write_text("".join("\t".join(triple) + "\n" for triple in triples()), encoding="utf-8")
    return path


@pytest.fixture
def fits(loginfer, monkeypatch):
    """Run a command and look at the width of all it says; returns what it prints."""

    def run(*words, code=0, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        answered, out, err = loginfer(*words)
        assert answered == code, err
        wide = [line for line in f"{out}\n{err}".splitlines() if cell_len(line) > columns]
        assert not wide, wide
        return " ".join(out.split())

    return run


def first_triple(file):
    return file.read_text(encoding="utf-8").splitlines()[0].split("\t")


@pytest.mark.parametrize("names", [(), ("--full-names",)], ids=["short", "full"])
def test_from_a_graph_to_an_evaluation_every_line_fits(fits, graph, tmp_path, names, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ("rdf:type" in fits("kg", "show", graph, *names)) == (not names)
    assert "publicationAuthor" in fits("rules", "rank", graph, "--pattern", "composition", *names)
    fits("build", graph, "-p", "composition", "--k1", 2, "--k2", 40, "--negatives", "pa",
         "--negatives", "qg", "--out", "b", *names)  # fmt: skip
    fits("audit", "b", "--verbose", *names)
    for file in ("test.txt", "test_neg_qg.txt", "train.txt"):
        fits("explain", "b", *first_triple(tmp_path / "b" / file), *names)
    fits("evaluate", "b", "--negatives", "qg", "--system", "simpbl", "--out", "run", *names)
    fits("score", "run", "--benchmark", "b", *names)
    fits("evaluate", "b", "--negatives", "qg", "--system", "transe", "--set", "epochs=1", "--seeds", 2, *names)
    fits("mine", "b", "--out", "mined.tsv", *names)
    fits("evaluate", "b", "--negatives", "qg", "--system", "exact", "--out", "rules", "--ranking", "none", *names)
    fits("predict", "rules", "--relation", "cites", "--explain", *names)
    assert "emailAddress" in fits("predict", "rules", "--relation", "emailAddress", "--known", *names)
    fits("rules", "analyse", "b", "--rules", "mined.tsv", *names)
    rule = f"(x,{UNIVERSITY}publicationAuthor,y), (y,{UNIVERSITY}teacherOf,z) -> (x,{UNIVERSITY}mentions,z)"
    person = "http://www.Department0.University0.edu/AssociateProfessorOfArtificialIntelligence0"
    publication, course = (
        f"{person}/PublicationOnKnowledgeGraphCompletion1",
        "http://www.Department0.University0.edu/Course0",
    )
    printed = fits("rules", "explain", graph, rule, publication, "mentions", course, *names)
    shown = rule if names else "publicationAuthor(x,y) ∧ teacherOf(y,z) → mentions(x,z)"
    assert shown.replace(" ", "") in printed.replace(" ", "")


@pytest.mark.parametrize(
    "words",
    [["kg", "list"], ["suite", "list"], ["systems", "list"], ["systems", "show", "transe"], ["rules", "patterns"],
     ["reproduce", "--plan", "--tables", "lubm"], ["build", "--help"], ["evaluate", "--help"]],
    ids=" ".join,
)  # fmt: skip
def test_lists_and_help_fit(fits, words):
    fits(*words)


@pytest.mark.parametrize(
    "words",
    [
        ["rules", "apply", "lubm", f"(x,{UNIVERSITY}adviser,y), (y,{UNIVERSITY}teacherOf,z) -> (x,knows,z)"],
        ["rules", "apply", "lubm", f"(x,{UNIVERSITY}advisor,y), (y,{UNIVERSITY}teacherOf,z) => (x,knows,z)->"],
        ["rules", "explain", "lubm", "lubm-107", "Lecturer0", "type", "Faculty"],
        ["audit", "a-folder/with/a-rather-long-path/that-does-not/exist-anywhere-on-this-machine/so-it-is-an-error"],
        ["evaluate", "nowhere", "--system", "simpbl", "--scores", "x"],
        ["mine", "lubm", "--out", "x.tsv", "--set", "nothing=1"],
    ],
)  # fmt: skip
def test_errors_and_hints_fit(fits, words):
    fits(*words, code=2)


def test_the_mark_stays_below_the_place_where_reading_stopped(loginfer):
    text = f"(x,{UNIVERSITY}advisor,y), (y,{UNIVERSITY}teacherOf,z) ; (x,{UNIVERSITY}knows,z) -> (x,r,z)"
    line, mark = loginfer("rules", "apply", "lubm", text)[2].splitlines()[1:3]
    assert line[mark.index("^")] == ";"
    assert len(line) <= 80


def test_answers_for_programs_are_not_folded(loginfer, graph, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "40")
    rules = tmp_path / "rules.rules"
    rule = f"(x,{UNIVERSITY}publicationAuthor,y), (y,{UNIVERSITY}teacherOf,z) -> (x,{UNIVERSITY}mentions,z)"
    rules.write_text(f"{rule}\n")
    assert rule in loginfer("rules", "show", rules, "--full-names")[1]
    assert "publicationAuthor(x,y) ∧ teacherOf(y,z) → mentions(x,z)" in loginfer("rules", "show", rules)[1]
    assert loginfer("rules", "convert", rules, "--to", "arrow")[1] == f"{rule}\n"
    assert f"{UNIVERSITY}teacherOf" in loginfer("rules", "rank", graph, "-p", "composition", "--json")[1]


def test_what_explain_shows_can_be_typed(loginfer, graph, tmp_path):
    out = tmp_path / "b"
    words = ("-p", "composition", "--k1", 2, "--k2", 40, "--negatives", "pa", "--out", out)
    assert loginfer("build", graph, *words)[0] == 0
    triple = first_triple(out / "test.txt")
    printed = loginfer("explain", out, *triple)[1]
    shown = printed.splitlines()[0].strip("()").split(", ")
    assert shown != triple
    assert loginfer("explain", out, *shown)[1] == printed


def test_on_a_terminal_its_width_counts(graph):
    first, second = pty.openpty()
    os.set_inheritable(second, True)
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
    resize = "import fcntl, struct, termios; fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 50, 0, 0))\n"
    done = subprocess.run(
        [sys.executable, "-c", resize + PROGRAM[2], "rules", "rank", graph, "-p", "composition", "--full-names"],
        stdout=second, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment, check=False,
    )  # fmt: skip
    os.close(second)
    assert done.returncode == 0, done.stderr
    printed = re.sub(r"\x1b\[[0-9;]*m", "", os.read(first, 65536).decode())
    os.close(first)
    assert max(map(cell_len, printed.splitlines())) == 50
