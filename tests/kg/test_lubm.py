"""LUBM against the reference numbers of its original generator, and its rules against their axioms."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import groupby, islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.errors import InputError, OutputError
from loginfer.kg import RDF_TYPE
from loginfer.kg.load import read_graph, write_graph
from loginfer.kg.lubm import ONTOLOGY, JavaRandom, LubmCounts, generate_lubm, statements, write_lubm
from loginfer.logic.rule_files import read_rules

# sha256 of the sorted, distinct N-Triples of LUBM(1,0), each line with its line end.
SHA256 = "d28d8017c82ff50164650690e2e1a600bd7cf07e223bf43b91f666e8545ae0bd"

TRIPLES_PER_RELATION = {
    "takesCourse": 21489,
    "name": 15972,
    "publicationAuthor": 10634,
    "emailAddress": 8330,
    "telephone": 8330,
    "memberOf": 7790,
    "advisor": 3101,
    "undergraduateDegreeFrom": 2414,
    "teacherOf": 1627,
    "worksFor": 540,
    "doctoralDegreeFrom": 540,
    "mastersDegreeFrom": 540,
    "researchInterest": 447,
    "teachingAssistantOf": 407,
    "subOrganizationOf": 239,
    "headOf": 15,
}
ENTITIES_PER_TYPE = {
    "Publication": 5999,
    "UndergraduateStudent": 5916,
    "GraduateStudent": 1874,
    "University": 979,
    "Course": 828,
    "GraduateCourse": 799,
    "ResearchAssistant": 547,
    "TeachingAssistant": 407,
    "ResearchGroup": 224,
    "AssociateProfessor": 176,
    "AssistantProfessor": 146,
    "FullProfessor": 125,
    "Lecturer": 93,
    "Department": 15,
}
LITERAL_RELATIONS = {"emailAddress", "name", "researchInterest", "telephone"}


@pytest.fixture(scope="module")
def lubm():
    return generate_lubm()


@pytest.fixture(scope="module")
def named(lubm):
    return [(s, r.removeprefix(ONTOLOGY), o) for s, r, o in lubm.names(lubm.triples)]


def line(s, r, o):
    return f"<{s}> <{r}> {o if o.startswith(chr(34)) else f'<{o}>'} .\n"


# -- random numbers -----------------------------------------------------------------------------------


def test_seed_42_draws_what_java_draws():
    # The first values of `new Random(42).nextInt(10)` and of `new Random(42).nextInt(8)`, well known.
    ten = JavaRandom(42)
    assert [ten.below(10) for _ in range(10)] == [0, 3, 8, 4, 0, 5, 5, 8, 9, 3]


def test_one_out_of_one_still_takes_a_step():
    drawn, stepped = JavaRandom(7), JavaRandom(7)
    assert drawn.below(1) == 0
    assert drawn.between(5, 5) == 5
    stepped.below(10)
    stepped.below(10)
    assert drawn.state == stepped.state


def test_an_output_in_the_incomplete_last_run_is_drawn_again():
    # With n = 2^30 + 1, almost half of all outputs lie beyond the only complete run.
    n = 2**30 + 1
    drawn, raw = JavaRandom(0), JavaRandom(0)
    values = [drawn.below(n) for _ in range(200)]
    outputs = []
    while raw.state != drawn.state:
        outputs.append(raw.below(2**31 - 1 + 1))
    assert len(outputs) > 250
    assert values == [u for u in outputs if u < n]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 200), st.data())
@settings(max_examples=50, deadline=None)
def test_distinct_draws_are_distinct_and_in_range(seed, n, data):
    count = data.draw(st.integers(0, n))
    drawn = JavaRandom(seed).distinct(count, n)
    assert len(drawn) == len(set(drawn)) == count
    assert all(0 <= value < n for value in drawn)


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
@settings(max_examples=50, deadline=None)
def test_a_seed_moves_a_university_by_a_negative_multiple_of_two_to_the_31(university, seed):
    signed = university - seed * 2**31
    assert JavaRandom(signed).state == ((signed % 2**64) ^ 0x5DEECE66D) % 2**48


# -- LUBM(1,0) ----------------------------------------------------------------------------------------


def test_sorted_distinct_n_triples_have_the_reference_checksum(lubm):
    lines = sorted(line(*names).encode() for names in lubm.names(lubm.triples))
    assert hashlib.sha256(b"".join(lines)).hexdigest() == SHA256


def test_the_signature_has_the_reference_sizes(lubm):
    assert len(lubm) == 100_543
    assert len(lubm.rels) == 16
    assert len(lubm.preds) == 17
    assert len(lubm.types) == 14
    assert lubm.type_predicate == RDF_TYPE
    literals = [name for name in lubm.entities.names(lubm.consts) if name.startswith('"')]
    assert len(literals) == 9_249
    assert len(lubm.consts) - len(literals) == 17_174


def test_every_relation_has_its_reference_count(named):
    counts = Counter(r for _, r, _ in named)
    assert counts.pop(RDF_TYPE) == 18_128
    assert counts == TRIPLES_PER_RELATION


def test_every_type_has_its_reference_count(named):
    counts = Counter(o.removeprefix(ONTOLOGY) for _, r, o in named if r == RDF_TYPE)
    assert counts == ENTITIES_PER_TYPE


def test_every_entity_has_a_type_and_assistants_have_two(named):
    types = Counter(s for s, r, _ in named if r == RDF_TYPE)
    entities = {s for s, _, _ in named} | {o for _, r, o in named if r != RDF_TYPE and o[0] != '"'}
    assert set(types) == entities
    assert Counter(types.values()) == {1: 17_174 - 954, 2: 954}


def test_literals_stand_behind_four_relations_only(named):
    assert {r for _, r, o in named if o.startswith('"')} == LITERAL_RELATIONS
    assert sum(not o.startswith('"') for _, _, o in named) == 67_464
    assert sum(not o.startswith('"') and r != RDF_TYPE for _, r, o in named) == 49_336


def test_statements_come_in_the_order_of_the_original():
    university, department = "http://www.University0.edu", "http://www.Department0.University0.edu"
    first = list(islice(statements(), 8))
    assert first == [
        (university, RDF_TYPE, ONTOLOGY + "University"),
        (university, ONTOLOGY + "name", '"University0"'),
        (department, RDF_TYPE, ONTOLOGY + "Department"),
        (department, ONTOLOGY + "name", '"Department0"'),
        (department, ONTOLOGY + "subOrganizationOf", university),
        (university, RDF_TYPE, ONTOLOGY + "University"),
        (department + "/FullProfessor0", RDF_TYPE, ONTOLOGY + "FullProfessor"),
        (department + "/FullProfessor0", ONTOLOGY + "name", '"FullProfessor0"'),
    ]


def test_a_department_states_its_members_kind_by_kind():
    department = "http://www.Department1.University0.edu"
    types = [o for s, r, o in statements() if s.startswith(department) and r == RDF_TYPE]
    assert [kind.removeprefix(ONTOLOGY) for kind, _ in groupby(types)] == [
        "Department",
        "FullProfessor",
        "AssociateProfessor",
        "AssistantProfessor",
        "Lecturer",
        "UndergraduateStudent",
        "GraduateStudent",
        "ResearchGroup",
        "Publication",
        "Course",
        "GraduateCourse",
        "TeachingAssistant",
        "ResearchAssistant",
    ]


def test_only_types_of_universities_are_stated_repeatedly():
    counts = Counter(statements())
    assert counts.total() == 103_074
    repeated = {statement: n - 1 for statement, n in counts.items() if n > 1}
    assert sum(repeated.values()) == 2_531
    assert {(r, o) for _, r, o in repeated} == {(RDF_TYPE, ONTOLOGY + "University")}


def test_statements_are_made_while_they_are_read():
    # Two thousand million universities: only what is asked for is made.
    assert len(list(islice(statements(2**31 - 1), 1_000))) == 1_000


# -- other sizes, starts and seeds --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("universities", "start", "seed", "with_header", "distinct"),
    [
        (1, 0, 0, 103_104, 100_543),
        (2, 0, 0, 237_210, 230_061),
        (1, 0, 7, 141_719, 137_899),
        (2, 0, 7, 308_878, 299_344),
        (1, 3, 7, 97_931, 95_436),
        (5, 10, 123_456, 728_761, 704_630),
    ],
)
def test_a_written_file_has_the_reference_counts(tmp_path, universities, start, seed, with_header, distinct):
    path = tmp_path / "lubm.nt"
    counts = write_lubm(path, universities, start, seed)
    assert counts.universities == universities
    # The original writes one file a department, each with two statements about the ontology.
    assert counts.statements + 2 * counts.departments == with_header
    assert counts.triples == distinct
    with path.open("rb") as stream:
        lines = stream.readlines()
    assert len(lines) == distinct
    assert all(before < after for before, after in pairwise(lines))


def test_two_universities_are_one_after_the_other():
    apart = [statement for university in (4, 5) for statement in statements(1, university, 3)]
    assert list(statements(2, 4, 3)) == apart


def test_writing_department_by_department_gives_the_bytes_of_the_sorted_graph(tmp_path):
    # Indices around a change of digits: Department1 and Department10, University9 and University10.
    graph = generate_lubm(2, 9, 5)
    lines = sorted(line(*names).encode() for names in graph.names(graph.triples))
    streamed, whole = tmp_path / "streamed.nt", tmp_path / "whole.nt"
    write_lubm(streamed, 2, 9, 5)
    write_graph(graph, whole)
    assert streamed.read_bytes() == b"".join(lines)
    assert whole.read_bytes() == streamed.read_bytes()


def test_a_written_file_is_read_back_as_the_generated_graph(tmp_path, lubm):
    path = tmp_path / "lubm.nt.zst"
    write_lubm(path)
    assert read_graph(path).graph == lubm


def test_the_first_file_has_the_reference_checksum_also_when_compressed(tmp_path):
    plain, packed, again = (tmp_path / name for name in ("a.nt", "b.nt.gz", "c.nt.gz"))
    assert write_lubm(plain) == LubmCounts(1, 15, 103_074, 100_543)
    write_lubm(packed)
    write_lubm(again)
    assert hashlib.sha256(plain.read_bytes()).hexdigest() == SHA256
    assert hashlib.sha256(gzip.decompress(packed.read_bytes())).hexdigest() == SHA256
    assert packed.read_bytes() == again.read_bytes()


def test_the_graph_does_not_depend_on_the_hash_seed():
    program = (
        "import hashlib; from loginfer.kg.lubm import generate_lubm; g = generate_lubm();"
        "print(hashlib.sha256(g.triples.tobytes() + g.entities.data.tobytes()).hexdigest())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(runs) == 1


def test_progress_counts_universities_and_departments(tmp_path):
    seen = []
    generate_lubm(1, 0, 0, progress=lambda *args: seen.append(args))
    assert seen == [("universities", 0, 1), ("universities", 1, 1)]
    seen.clear()
    write_lubm(tmp_path / "lubm.nt", progress=lambda *args: seen.append(args))
    assert seen == [("departments", done, 15) for done in range(16)]


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [((0, 0, 0), "0 universities"), ((1, -1, 0), "-1"), ((1, 0, -1), "seed -1"), ((1, 0, 2**31), "seed")],
)
def test_impossible_parameters_are_refused_before_anything_is_made(arguments, culprit, tmp_path):
    for refuse in (statements, generate_lubm, lambda *a: write_lubm(tmp_path / "x.nt", *a)):
        with pytest.raises(InputError, match=culprit):
            refuse(*arguments)
    assert not list(tmp_path.iterdir())


def test_existing_files_and_other_formats_are_refused(tmp_path):
    path = tmp_path / "lubm.nt"
    path.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        write_lubm(path)
    with pytest.raises(OutputError, match=r"lubm\.tsv"):
        write_lubm(tmp_path / "lubm.tsv")
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


# -- the rules ----------------------------------------------------------------------------------------


def shape(rule):
    """Say which kind of axiom a rule is: relations become R, types C."""

    def atom(a):
        return f"({a.subject},type,C)" if a.is_type else f"({a.subject},R,{a.object})"

    return ", ".join(map(atom, rule.atoms)) + " -> " + atom(rule.head)


def test_the_107_rules_are_of_the_kinds_they_should_be():
    rules = read_rules("lubm-107").program
    assert len(rules) == len(set(rules)) == 107
    shapes = Counter(map(shape, rules))
    assert shapes["(x,type,C) -> (x,type,C)"] == 39
    assert shapes["(x,R,y) -> (x,type,C)"] == 25
    assert shapes["(x,R,y) -> (y,type,C)"] == 18
    assert shapes["(x,R,y) -> (x,R,y)"] == 5
    assert shapes["(x,R,y) -> (y,R,x)"] == 6
    assert sum(len(rule.atoms) > 1 for rule in rules) == 14


def test_the_19_rules_are_those_of_the_107_that_mention_no_type():
    untyped = [rule for rule in read_rules("lubm-107").program if not any(atom.is_type for atom in rule)]
    assert list(read_rules("lubm-19").program) == untyped
    assert len(untyped) == 19


def test_all_names_in_the_rules_are_of_the_university_ontology(lubm):
    rules = read_rules("lubm-107").program
    names = {name for rule in rules for name in (*rule.relations, *rule.constants)} - {RDF_TYPE}
    assert all(re.fullmatch(re.escape(ONTOLOGY) + r"\w+", name) for name in names)
    # What LUBM(1,0) has is in the rules under the same name, but for two relations no rule mentions.
    used = set(lubm.relations.names(lubm.rels)) | set(lubm.entities.names(lubm.types))
    assert {name.removeprefix(ONTOLOGY) for name in used - names} == {"name", "researchInterest"}
