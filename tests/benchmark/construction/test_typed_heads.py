"""Heads that look like their bodies: drawn, recorded and audited."""

import json
import random

import pytest

from loginfer.benchmark import Recipe, audit, build, load_benchmark, write_benchmark
from loginfer.benchmark.construction.rules import TypedHeads, select_rules
from loginfer.engine import open_engine
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_rule

PEOPLE, PROJECTS = [f"p{i:02d}" for i in range(40)], [f"q{i:02d}" for i in range(15)]
# Which kinds of things each relation connects.
KINDS = {
    "reportsTo": (PEOPLE, PEOPLE), "mentors": (PEOPLE, PEOPLE), "trusts": (PEOPLE, PEOPLE),
    "manages": (PEOPLE, PROJECTS), "helps": (PEOPLE, PROJECTS), "assignedTo": (PEOPLE, PROJECTS),
    "birthDate": (PEOPLE, ["1980", "1990"]),
    "dependsOn": (PROJECTS, PROJECTS), "blocks": (PROJECTS, PROJECTS), "extends": (PROJECTS, PROJECTS),
}  # fmt: skip


def company(types=True, everything=()):
    rng = random.Random(2)
    rows = {(rng.choice(one), name, rng.choice(two)) for name, (one, two) in KINDS.items() for _ in range(60)}
    if types:
        rows |= {
            (name, "rdf:type", kind) for kind, names in (("Person", PEOPLE), ("Project", PROJECTS)) for name in names
        }
    rows |= {(name, "rdf:type", kind) for kind in everything for name in (*PEOPLE, *PROJECTS)}
    return KnowledgeGraph.from_names(sorted(rows))


def recipe_of(**settings):
    return Recipe("company.nt", ("composition",), k2=60, min_new=5, head="typed", **settings)


@pytest.mark.parametrize("graph", [company(), company(types=False), company(everything=["owl:Thing"])])
def test_a_typed_head_connects_what_its_body_connects(graph):
    chosen = select_rules(recipe_of(k1=12), open_engine(graph)).rules
    assert len(chosen) == 12
    for rule in (chosen_rule.rule for chosen_rule in chosen):
        first, last = rule.atoms
        assert KINDS[str(rule.head.relation)] == (KINDS[str(first.relation)][0], KINDS[str(last.relation)][1])


def test_relations_fit_by_their_types_even_where_constants_do_not_overlap():
    rows = [("a", "r", "b"), ("b", "r", "c"), ("d", "same", "e"), ("d", "other", "x"), ("x", "back", "d")]
    types = [*((name, "rdf:type", "Person") for name in "abcde"), ("x", "rdf:type", "Thing")]
    heads = TypedHeads(open_engine(KnowledgeGraph.from_names(rows + types)))
    body = parse_rule("(x,r,y), (y,r,z) -> (x,same,z)")
    assert heads.fitting(body, ["back", "other", "same"]) == (["same"], True)


def test_where_no_relation_fits_the_best_overlaps_remain_and_that_is_noted():
    rows = [(f"a{i}", "r", f"b{i}") for i in range(9)] + [(f"b{i}", "s", f"c{i}") for i in range(9)]
    rows += [("a0", "near", "c0"), *((f"x{i}", "near", f"y{i}") for i in range(9))]
    rows += [(f"u{i}", "far", f"v{i}") for i in range(9)]
    graph = KnowledgeGraph.from_names(rows)
    body = parse_rule("(x,r,y), (y,s,z) -> (x,far,z)")
    assert TypedHeads(open_engine(graph)).fitting(body, ["far", "near"]) == (["near"], False)
    selection = select_rules(recipe_of(k1=1), open_engine(graph))
    assert [str(rule.rule.head.relation) for rule in selection.rules] == ["near"]
    assert any(note.startswith("1 of 1 rules of `composition` have a head") for note in selection.notes)


def test_bodies_that_no_relation_fits_come_last_whatever_their_support():
    graph = company()
    rows = {row for row in graph.names(graph.triples) if row[1] not in ("trusts", "mentors")}
    # Nothing else connects people with dates.
    rows |= {(person, "birthDate", date) for person in PEOPLE for date in ("1980", "1990")}
    engine = open_engine(KnowledgeGraph.from_names(sorted(rows)))
    *fitting, last = select_rules(recipe_of(k1=22), engine).rules
    assert all("birthDate" not in str(rule.rule) for rule in fitting)
    assert "birthDate" in str(last.rule)
    assert last.support > fitting[-1].support
    assert select_rules(recipe_of(k1=21), engine).notes == ()


def test_heads_that_fit_nowhere_are_noted_of_rules_with_twins_too():
    graph = company()
    rows = [row for row in graph.names(graph.triples) if row[1] in ("reportsTo", "manages", "birthDate", "rdf:type")]
    recipe = recipe_of(k1=2, negatives=("nm",), match=("popularity",), select="twins", allow_fewer=True)
    benchmark = build(recipe, KnowledgeGraph.from_names(rows))
    assert any("rules of `composition` have a head that does not fit" in note for note in benchmark.notes)


def test_heads_depend_on_the_seed_alone_and_not_on_the_engine():
    graph = company()
    first = select_rules(recipe_of(k1=8), open_engine(graph)).program
    assert select_rules(recipe_of(k1=8), open_engine(graph)).program == first
    assert select_rules(recipe_of(k1=8), open_engine(graph, "duckdb")).program == first
    assert select_rules(recipe_of(k1=4), open_engine(graph)).program == first[:4]
    assert select_rules(recipe_of(k1=8, seed=1), open_engine(graph)).program != first


def test_a_head_that_is_a_type_is_refused():
    with pytest.raises(InputError, match="is a type, which is always drawn"):
        select_rules(Recipe("g", ("(x,_R,y) -> (x,type,_t)",), head="typed"), open_engine(company()))


@pytest.mark.parametrize("types", [True, False])
def test_the_audit_accepts_typed_heads_and_finds_others(tmp_path, types):
    write_benchmark(build(recipe_of(k1=4), company(types)), tmp_path / "typed")
    assert load_benchmark(tmp_path / "typed").recipe.head == "typed"
    assert audit(tmp_path / "typed").ok
    write_benchmark(build(recipe_of(k1=4).changed(head="drawn", seed=3), company(types)), tmp_path / "drawn")
    manifest = json.loads((tmp_path / "drawn" / "manifest.json").read_text())
    manifest["recipe"]["head"] = "typed"
    (tmp_path / "drawn" / "manifest.json").write_text(json.dumps(manifest))
    messages = [finding.message for finding in audit(tmp_path / "drawn").findings if finding.severity == "error"]
    assert any("do not look like the ends of their bodies" in message for message in messages)
