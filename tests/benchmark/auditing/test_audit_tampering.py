"""The audit does not believe a folder whose manifest, sums and README were changed along with it."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.faults import RELATIONS, TRIANGLE, errors, lines, put, put_rows, random_graph, rows_of, stamp, triple
from tests.support.near_miss_benchmarks import recipe_of, small_graph

from loginfer.benchmark import Audit, Benchmark, Recipe, audit, build, write_benchmark
from loginfer.benchmark.benchmark import PassedOver
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_rule

GIVEN = ("(x,helps,y), (y,knows,z) -> (x,likes,z)", "(x,knows,y) -> (y,meets,x)")


def clustered_graph() -> KnowledgeGraph:
    """A graph of regions, which can be divided without losing much."""
    rng = random.Random(1)
    rows = set()
    for cluster in range(40):
        names = [f"c{cluster}e{i}" for i in range(12)]
        rows |= {(rng.choice(names), rng.choice(("helps", "knows", "meets")), rng.choice(names)) for _ in range(60)}
        rows.add((names[0], "helps", f"c{(cluster + 1) % 40}e0"))
    return KnowledgeGraph.from_names(sorted(rows), type_predicate="")


@pytest.fixture(scope="module")
def by_patterns() -> Benchmark:
    settings = {"patterns": ("hierarchy", TRIANGLE), "k1": 3, "k2": 60, "negatives": ("rc",), "min_new": 34}
    return build(Recipe(kg="random", **settings), random_graph())


@pytest.fixture(scope="module")
def by_rules() -> Benchmark:
    return build(Recipe(kg="random", rules=GIVEN, k2=60, negatives=("pa",)), random_graph())


@pytest.fixture(scope="module")
def inductive() -> Benchmark:
    settings = {"rules": GIVEN[1:], "k2": 100, "negatives": ("pa",), "inductive": True, "inductive_share": 0.3}
    return build(Recipe(kg="clusters", **settings), clustered_graph())


@pytest.fixture(scope="module")
def twins() -> Benchmark:
    return build(recipe_of(match=("popularity",)), small_graph())


@pytest.fixture(scope="module")
def original(by_patterns: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tampering") / "benchmark"
    write_benchmark(by_patterns, folder)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(original, tmp_path / "benchmark"))


def forged(benchmark: Benchmark, folder: Path, **settings: Any) -> Audit:
    """The audit of a folder that is written as if its recipe had other settings."""
    assert benchmark.recipe is not None
    write_benchmark(replace(benchmark, recipe=benchmark.recipe.changed(**settings)), folder / "forged")
    return audit(folder / "forged", closure=False)


def wrong_checks(found: Audit) -> set[str]:
    return {finding.check for finding in found.findings if finding.severity == "error"}


# -- evidence --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["by_patterns", "by_rules", "inductive", "twins"])
def test_nothing_is_wrong_before(name, request, tmp_path):
    found = forged(request.getfixturevalue(name), tmp_path)
    assert [f"{f.check}: {f.message}" for f in found.findings if f.severity == "error"] == []
    assert not found.found("signature")
    assert not found.found("inductive")


@pytest.mark.parametrize("name", ["rules.txt", "provenance.parquet", "negatives.parquet", "README.md"])
def test_a_file_that_is_gone_with_its_entry_is_missed(folder, name):
    (folder / name).unlink()
    stamp(folder, lambda manifest: manifest["files"].pop(name))
    assert f"`{name}`" in errors(audit(folder, closure=False), "missing-files")


def test_the_negatives_of_a_method_that_are_gone_with_their_entries_are_missed(folder):
    names = [f"{split}_neg_rc.txt" for split in ("train", "valid", "test")]
    for name in names:
        (folder / name).unlink()
    stamp(folder, lambda manifest: [manifest["files"].pop(name) for name in names])
    assert "there is no file with N_train" in errors(audit(folder, closure=False), "missing-files")


def test_a_context_graph_that_is_gone_with_its_entry_is_missed(inductive, tmp_path):
    write_benchmark(inductive, tmp_path / "out")
    (tmp_path / "out" / "context.txt").unlink()
    stamp(tmp_path / "out", lambda manifest: manifest["files"].pop("context.txt"))
    assert "`context.txt`" in errors(audit(tmp_path / "out", closure=False), "missing-files")


def test_wrong_sizes_of_the_graph_are_found(folder):
    figures = ("triples", "constants", "relations", "types")
    stamp(folder, lambda manifest: manifest["kg"].update(dict.fromkeys(figures, 7)))
    found = audit(folder, closure=False)
    assert [f"train.txt: {figure}" in errors(found, "kg-sum") for figure in figures] == [True] * 4
    assert errors(found, "kg-sum").count("expected 7") == 4
    assert wrong_checks(found) == {"kg-sum"}


def test_a_manifest_that_does_not_tell_of_the_graph_is_found(folder):
    stamp(folder, lambda manifest: manifest.update(kg=None))
    assert errors(audit(folder, closure=False), "kg-sum")


def test_a_false_size_in_the_readme_is_found(folder):
    text = (folder / "README.md").read_text()
    size = next(line for line in text.splitlines() if line.startswith("| positives"))
    (folder / "README.md").write_text(text.replace(size, "| positives | 1 | 2 | 3 |"))
    stamp(folder)
    found = audit(folder, closure=False)
    assert "README.md: | positives | 1 | 2 | 3 |" in errors(found, "sizes")
    assert wrong_checks(found) == {"sizes"}
    stamp(folder, lambda manifest: manifest["versions"].update(loginfer="0.0.1"))
    assert "README.md: | positives | 1 | 2 | 3 |" in errors(audit(folder, closure=False), "sizes")


def test_false_sums_in_the_description_are_found(folder):
    description = json.loads((folder / "croissant.json").read_text())
    files = {file["@id"]: file for file in description["distribution"]}
    files["test.txt"]["sha256"] = "0" * 64
    files["train.txt"]["contentSize"] = "7 B"
    files["valid.txt"]["@id"] = "other.txt"
    (folder / "croissant.json").write_text(json.dumps(description))
    rewrite_sum(folder)
    found = audit(folder, closure=False)
    assert "croissant.json: `other.txt` croissant.json: `test.txt` croissant.json: `train.txt` " in errors(
        found, "changed-files"
    )
    assert wrong_checks(found) == {"changed-files"}


def rewrite_sum(folder: Path) -> None:
    """Make the manifest's sum that of croissant.json, and change nothing else."""
    from hashlib import sha256

    data = (folder / "croissant.json").read_bytes()
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["croissant.json"] = {"bytes": len(data), "sha256": sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("text", ["{", '{"distribution": [{"@id": []}]}'])
def test_a_description_that_makes_no_sense_is_found(folder, text):
    (folder / "croissant.json").write_text(text)
    rewrite_sum(folder)
    assert errors(audit(folder, closure=False), "changed-files")


# -- the rules -------------------------------------------------------------------------------------


def test_other_rules_than_the_recipe_gives_are_found(by_rules, tmp_path):
    found = forged(by_rules, tmp_path, rules=(GIVEN[0], "(x,knows,y) -> (y,helps,x)"))
    assert f"rules.txt, rule 1: `{GIVEN[1]}`" in errors(found, "rules")
    assert wrong_checks(found) == {"rules"}


def test_a_rule_that_the_recipe_gives_but_the_folder_has_not_is_found(by_rules, tmp_path):
    assert wrong_checks(forged(by_rules, tmp_path, rules=(*GIVEN, "(x,likes,y) -> (y,likes,x)"))) == {"rules"}


def test_a_given_rule_over_an_unknown_relation_is_found(tmp_path):
    rules = (*GIVEN, "(x,hates,y) -> (y,hates,x)", "(x,fears,y) -> (y,meets,x)")
    found = audit(build(Recipe(kg="random", rules=rules, k2=60, negatives=("pa",)), random_graph()), closure=False)
    (finding,) = (f for f in found.found("rare-rules") if f.severity == "warning")
    assert [example.text for example in finding.examples] == ["`fears` in `(x,fears,y) -> (y,meets,x)`"]


def test_rules_that_are_not_those_with_the_largest_support_are_found(tmp_path):
    recipe = Recipe(kg="random", patterns=(TRIANGLE,), k1=3, k2=60, negatives=("pa",), select="random", seed=2)
    benchmark = build(recipe, random_graph())
    rules = tuple(replace(rule, confidence=None, overlap=None) for rule in benchmark.rules)
    found = forged(replace(benchmark, rules=rules), tmp_path, select="support")
    assert "was neither selected nor passed over" in errors(found, "rule-counts")
    assert wrong_checks(found) == {"rule-counts"}


def test_random_rules_of_another_seed_are_found(tmp_path):
    recipe = Recipe(kg="random", patterns=(TRIANGLE,), k1=3, k2=60, negatives=("pa",), select="random", seed=2)
    assert "rule-counts" in wrong_checks(forged(build(recipe, random_graph()), tmp_path, seed=3))


def test_fewer_rules_than_there_are_candidates_are_found(tmp_path):
    recipe = Recipe(kg="random", patterns=(TRIANGLE,), k1=3, k2=60, negatives=("pa",))
    found = forged(build(recipe, random_graph()), tmp_path, k1=4, allow_fewer=True)
    assert wrong_checks(found) == {"rule-counts"}


@pytest.mark.parametrize("bound", [{"min_support": 10**6}, {"max_support": 5}])
def test_supports_that_the_recipe_does_not_allow_are_found(by_patterns, tmp_path, bound):
    found = forged(by_patterns, tmp_path, **bound)
    assert "is none of the first candidates" in errors(found, "rule-counts")
    assert wrong_checks(found) == {"rule-counts"}


def test_supports_outside_are_found_where_candidates_are_not_ranked_again(tmp_path):
    settings = {"select": "interval", "select_by": "confidence", "interval": "0:0.9"}
    recipe = Recipe(kg="random", patterns=(TRIANGLE,), k1=3, k2=60, negatives=("pa",), **settings)
    found = forged(build(recipe, random_graph()), tmp_path, min_support=10**6)
    assert "which the recipe does not allow" in errors(found, "rule-counts")


def test_candidates_that_are_too_many_to_rank_are_noted(by_patterns, tmp_path, monkeypatch):
    monkeypatch.setattr("loginfer.benchmark.construction.rules.LISTED", 1)
    found = forged(by_patterns, tmp_path, max_support=10**6)
    assert {f.severity for f in found.found("rule-counts")} == {"note"}
    assert "were not ranked again" in found.found("rule-counts")[0].message


# -- what was passed over --------------------------------------------------------------------------


def passing_over(benchmark: Benchmark, folder: Path, *more: PassedOver, **changes: Any) -> str:
    """What the audit says when candidates are added to those passed over, and the first one is changed."""
    first, *rest = benchmark.passed_over
    found = forged(replace(benchmark, passed_over=(replace(first, **changes), *rest, *more)), folder)
    assert wrong_checks(found) <= {"rule-counts"}
    return errors(found, "rule-counts")


def test_a_candidate_that_is_invented_is_found(by_patterns, tmp_path):
    bodies = {rule.rule.body_text for rule in by_patterns.rules}
    body = next(body for relation in RELATIONS if (body := f"(x,{relation},y)") not in bodies)
    other = parse_rule(f"{body} -> (x,unlike,y)")
    invented = PassedOver(other, by_patterns.rules[0].pattern, 10**6, 3)
    assert f"`{other}` is none of the first candidates" in passing_over(by_patterns, tmp_path, invented)


def test_a_candidate_that_is_left_out_is_found(by_patterns, tmp_path):
    found = forged(replace(by_patterns, passed_over=by_patterns.passed_over[1:]), tmp_path)
    assert f"`{by_patterns.passed_over[0].rule}`" in errors(found, "rule-counts")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"support": 7}, "not with support 7"),
        ({"new": 7}, "and 7 new conclusions"),
        ({"reason": "it negates what it concludes"}, "not because it negates"),
        ({"reason": "3 conclusions have a twin"}, "not because 3 conclusions"),
        ({"pattern": "(x,_R,y) -> (y,_P,x)"}, "was passed over"),
    ],
)
def test_a_false_reason_is_found(by_patterns, tmp_path, change, message):
    assert message in passing_over(by_patterns, tmp_path, **change)


def test_given_rules_and_those_of_the_paper_pass_over_nothing(by_rules, tmp_path):
    candidate = PassedOver(parse_rule("(x,likes,y) -> (x,meets,y)"), "(x,_R,y) -> (x,_P,y)", 5, 3)
    found = forged(replace(by_rules, passed_over=(candidate,)), tmp_path)
    assert "was passed over" in errors(found, "rule-counts")


# -- negatives, sides and names --------------------------------------------------------------------


def test_two_corruptions_of_a_positive_and_none_of_another_are_found(folder):
    table = rows_of(folder, "negatives.parquet")
    in_test = [row for row in table if row["split"] == "test"]
    known = {row for path in folder.glob("*.txt") for row in path.read_text().splitlines()}
    rows = lines(folder, "test_neg_rc.txt")
    robbed = next(row for row in in_test if row["subject"] != in_test[0]["subject"])
    giver, old = in_test[0], triple(robbed)
    objects = lines(folder, "candidate_entities.txt")
    robbed.update(subject=giver["subject"], relation=giver["relation"])
    robbed["object"] = next(o for o in objects if "\t".join((giver["subject"], giver["relation"], o)) not in known)
    put(folder, "test_neg_rc.txt", sorted([*(row for row in rows if row != old), triple(robbed)]))
    put_rows(folder, "negatives.parquet", table)
    stamp(folder)
    found = audit(folder, closure=False)
    assert "1 triples of N_test of `rc` do not differ from a positive of their own" in errors(found, "true-origins")


def test_a_random_part_is_that_which_is_recorded_and_that_which_the_recipe_names(tmp_path):
    settings = {"rules": GIVEN, "k2": 60, "negatives": ("rc",), "corrupt": ("relation", "subject")}
    made = build(Recipe(kg="random", **settings), random_graph())
    found = forged(made, tmp_path, corrupt=("subject",))
    assert "have a random relation, which the recipe does not ask for" in errors(found, "true-origins")
    write_benchmark(made, tmp_path / "made")
    assert wrong_checks(audit(tmp_path / "made", closure=False)) == set()
    table = rows_of(tmp_path / "made", "negatives.parquet")
    for row in [row for row in table if row["split"] == "test"][:9]:
        row["source"] = "subject" if row["source"] == "relation" else "relation"
    put_rows(tmp_path / "made", "negatives.parquet", table)
    stamp(tmp_path / "made")
    found = audit(tmp_path / "made", closure=False)
    assert "do not differ from a positive of their own in the relation alone" in errors(found, "true-origins")
    assert "do not differ from a positive of their own in the subject alone" in errors(found, "true-origins")


def test_twins_that_do_not_look_alike_are_found(twins, tmp_path):
    found = forged(twins, tmp_path, match=("all",))
    assert "do not look like the conclusion" in errors(found, "twins")
    assert wrong_checks(found) == {"twins"}


def test_twins_that_the_recipe_does_not_ask_for_are_found(twins, tmp_path):
    assert "the recipe does not ask for any" in errors(forged(twins, tmp_path, match=()), "twins")


def test_near_misses_that_are_no_twins_though_the_recipe_says_so_are_found(near_misses, tmp_path):
    assert "are the twin of no conclusion" in errors(forged(near_misses, tmp_path, match=("popularity",)), "twins")


@pytest.mark.parametrize("share", [0.05, 0.9])
def test_another_share_of_constants_is_found(inductive, tmp_path, share):
    found = forged(inductive, tmp_path, inductive_share=share)
    assert f"the recipe asks for a share of {share}" in errors(found, "inductive")
    assert wrong_checks(found) == {"inductive"}


def test_a_share_that_is_not_likely_is_warned_about(inductive, tmp_path):
    (finding,) = forged(inductive, tmp_path, inductive_share=0.4).found("inductive")
    assert finding.severity == "warning"
    assert "the recipe asks for a share of 0.4" in finding.message


def test_a_division_that_is_not_noted_is_found(inductive, tmp_path):
    notes = tuple(note for note in inductive.notes if "dropped" not in note)
    assert "how K was divided" in errors(forged(replace(inductive, notes=notes), tmp_path), "inductive")


def test_names_that_differ_in_normalisation_only_are_warned_about():
    rows = [
        ("caf\u00e9", "knows", "tea"),
        ("cafe\u0301", "knows", "tea"),
        ("tea", "\ufb01nds", "x"),
        ("x", "finds", "é"),
    ]
    rows += [(f"e{i}", "knows", f"e{i + 1}") for i in range(40)]
    recipe = Recipe(kg="cafés", rules=("(x,knows,y), (y,knows,z) -> (x,finds,z)",), negatives=("pa",))
    found = audit(build(recipe, KnowledgeGraph.from_names(rows, type_predicate="")), closure=False).found("signature")
    assert [finding.severity for finding in found] == ["warning", "warning"]
    texts = [example.text for finding in found for example in finding.examples]
    assert texts == [r"'cafe\u0301' and 'caf\xe9'", r"'finds' and '\ufb01nds'"]


# -- manifests that make no sense --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda manifest: manifest["recipe"].update(depth=3), "provenance-rules"),
        (lambda manifest: manifest.update(files={}), "missing-files"),
        (lambda manifest: manifest["rules"][0].pop("pattern"), "readable"),
        (lambda manifest: manifest.update(type_predicate="\ud800"), "readable"),
        (lambda manifest: manifest["recipe"].update(type_predicate="helps"), "recipe"),
        (lambda manifest: manifest["recipe"].update(k1="many"), "readable"),
        (lambda manifest: manifest["recipe"].update(patterns=[["symmetry"]]), "readable"),
    ],
    ids=[
        "depth",
        "no files",
        "no pattern",
        "half a character",
        "other types",
        "a word for a number",
        "a list in a list",
    ],
)
def test_a_manifest_that_makes_no_sense_is_a_finding_not_a_traceback(folder, change, check):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    assert check in wrong_checks(audit(folder, closure=False))
