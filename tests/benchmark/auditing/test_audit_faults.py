"""The audit finds every fault that is put into a folder, one test each, and is silent without one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.faults import (
    RELATIONS,
    TRIANGLE,
    changed_sums,
    errors,
    lines,
    put,
    put_rows,
    random_graph,
    rows_of,
    stamp,
    triple,
)

from loginfer.benchmark.auditing.audit import CHECKS, audit
from loginfer.benchmark.construction.pipeline import build
from loginfer.benchmark.folder.writing import write_benchmark
from loginfer.benchmark.recipe import Recipe


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark of our own, with every method."""
    folder = tmp_path_factory.mktemp("audit") / "benchmark"
    recipe = Recipe(
        kg="random", patterns=("symmetry", TRIANGLE), k1=3, k2=60, negatives=("rb", "pa", "qg", "rc"), seed=1
    )
    write_benchmark(build(recipe, random_graph()), folder)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy to put a fault into."""
    return Path(shutil.copytree(original, tmp_path / "benchmark"))


# -- silence ---------------------------------------------------------------------------------------


def test_a_benchmark_of_our_own_passes_every_check(original):
    found = audit(original)
    assert found.ok
    told = {f.check for f in found.findings if f.severity != "note"}
    assert told <= {"entailed-negatives"}, "one step is promised, on so small a graph several lead far"
    assert found.skipped == {"splits-alike": "train or test has fewer than 100 conclusions or negatives"}
    variants = ("balanced-heads", "inductive", "noise", "twins")
    assert found.passed == tuple(check for check in CHECKS if check not in (*told, *variants, *found.skipped))
    assert {figures["accuracy"] for figures in found.oracle.values()} == {1.0}


@pytest.mark.parametrize("pattern", ["hierarchy", "composition", "intersection", TRIANGLE])
def test_nothing_is_wrong_with_sound_benchmarks(pattern, tmp_path):
    methods = ("rb", "pa", "qg", "rc")
    recipe = Recipe(kg="random", patterns=(pattern,), k1=2, k2=40, negatives=methods, seed=3)
    benchmark = build(recipe, random_graph(seed=8))
    in_memory = audit(benchmark)
    write_benchmark(benchmark, tmp_path / "out")
    on_disk = audit(tmp_path / "out")
    for found in (in_memory, on_disk):
        assert [str(f) for f in found.findings if f.severity != "note"] == []
        assert set(found.oracle) == set(methods)
        for figures in found.oracle.values():
            assert figures == {"accuracy": 1.0, "recall": 1.0, "false_positive_rate": 0.0}
    assert in_memory.shortcuts == on_disk.shortcuts


def test_both_engines_find_the_same():
    recipe = Recipe(kg="random", patterns=("intersection",), k1=2, k2=20, negatives=("pa", "qg"), min_new=3)
    benchmark = build(recipe, random_graph(entities=20, triples=300))
    native, duckdb = audit(benchmark), audit(benchmark, engine="duckdb")
    assert native.as_dict() == duckdb.as_dict()
    assert native.found("undesired-rules") or "undesired-rules" in native.passed


def test_a_benchmark_by_the_letter_is_warned_about_its_derivable_negatives():
    recipe = Recipe(kg="random", patterns=("symmetry",), k1=3, k2=20, negatives=("pa",), protocol="paper", seed=1)
    found = audit(build(recipe, random_graph()))
    assert found.ok
    (finding,) = found.found("derivable-negatives")
    assert finding.severity == "warning"
    assert "in train" in finding.message


# -- files -----------------------------------------------------------------------------------------


def test_a_changed_byte_is_found(folder):
    data = bytearray((folder / "test.txt").read_bytes())
    data[0] ^= 1
    (folder / "test.txt").write_bytes(bytes(data))
    assert "test.txt" in errors(audit(folder), "changed-files")


def test_a_truncated_file_is_found(folder):
    data = (folder / "valid_neg_pa.txt").read_bytes()
    (folder / "valid_neg_pa.txt").write_bytes(data[: len(data) // 2])
    found = audit(folder)
    assert "valid_neg_pa.txt" in errors(found, "changed-files")
    assert "valid_neg_pa.txt" in errors(found, "sizes")


def test_a_removed_file_is_found(folder):
    (folder / "test_neg_qg.txt").unlink()
    assert "test_neg_qg.txt" in errors(audit(folder), "missing-files")


def test_a_removed_training_file_is_found(folder):
    (folder / "train.txt").unlink()
    assert "train.txt" in errors(audit(folder), "missing-files")


def test_a_truncated_table_is_found(folder):
    data = (folder / "provenance.parquet").read_bytes()
    (folder / "provenance.parquet").write_bytes(data[:-100])
    stamp(folder)
    found = audit(folder)
    assert "provenance.parquet" in errors(found, "readable")
    assert "witnesses" in found.skipped


def test_a_line_with_two_columns_is_found(folder):
    rows = lines(folder, "test.txt")
    put(folder, "test.txt", [*rows[:2], "\t".join(rows[2].split("\t")[:2]), *rows[3:]])
    stamp(folder)
    found = audit(folder)
    assert "line 3" in errors(found, "unreadable-lines")


def test_a_manifest_that_is_no_json_is_found(folder):
    (folder / "manifest.json").write_text("{")
    found = audit(folder)
    assert "manifest" in errors(found, "readable")
    assert "kg-sum" in found.skipped


def test_a_file_that_the_manifest_does_not_know_is_found(folder):
    shutil.copy(folder / "test_neg_pa.txt", folder / "test_neg_xx.txt")
    (finding,) = audit(folder).found("unlisted-files")
    assert finding.severity == "warning"
    assert "test_neg_xx.txt" in str(finding.examples[0])


def test_an_edited_candidate_file_is_found(folder):
    put(folder, "candidate_entities.txt", lines(folder, "candidate_entities.txt")[1:])
    stamp(folder)
    found = audit(folder)
    assert not changed_sums(found)
    assert "`e00` is missing" in errors(found, "candidate-files")


def test_a_wrong_count_in_the_manifest_is_found(folder):
    stamp(folder, lambda manifest: manifest["positives"].update(test=manifest["positives"]["test"] + 1))
    assert "P_test" in errors(audit(folder), "sizes")


def test_a_wrong_sum_of_the_graph_is_found(folder):
    stamp(folder, lambda manifest: manifest["kg"].update(sha256="0" * 64))
    assert "K" in errors(audit(folder), "kg-sum")


def test_a_method_that_the_recipe_does_not_ask_for_is_found(folder):
    stamp(folder, lambda manifest: manifest["recipe"].update(negatives=["rb", "pa", "qg"]))
    assert "rc" in errors(audit(folder), "recipe")


def test_settings_that_are_expected_are_compared(folder):
    assert audit(folder, settings={"k2": 60, "seed": 1}).ok
    assert "`k2` is 60, expected 61" in errors(audit(folder, settings={"k2": 61}), "recipe")


# -- sets ------------------------------------------------------------------------------------------


def test_a_leaked_test_triple_is_found(folder):
    leaked = lines(folder, "test.txt")[3]
    put(folder, "train.txt", sorted([*lines(folder, "train.txt"), leaked]))
    stamp(folder, lambda manifest: manifest["positives"].update(train=manifest["positives"]["train"] + 1))
    found = audit(folder)
    assert not changed_sums(found)
    assert "P_train and P_test share 1 triple" in errors(found, "disjoint")
    assert "test.txt:4" in errors(found, "disjoint")
    assert "1 triple of P_test" in errors(found, "conclusions-in-kg")
    assert errors(found, "kg-sum")


def test_swapped_columns_are_found(folder):
    rows = lines(folder, "train.txt")
    place = next(i for i, row in enumerate(rows) if swapped(row) not in rows)
    rows[place] = swapped(rows[place])
    put(folder, "train.txt", sorted(rows))
    stamp(folder)
    found = audit(folder)
    assert not changed_sums(found)
    assert errors(found, "kg-sum")


def swapped(row: str) -> str:
    subject, relation, object_ = row.split("\t")
    return f"{object_}\t{relation}\t{subject}"


def test_a_duplicated_line_is_found(folder):
    rows = lines(folder, "test_neg_rb.txt")
    put(folder, "test_neg_rb.txt", [*rows, rows[0]])
    stamp(folder)
    found = audit(folder)
    assert f"test_neg_rb.txt:{len(rows) + 1}" in errors(found, "duplicates")


def test_unequal_sizes_are_found(folder):
    rows = lines(folder, "test_neg_rb.txt")
    put(folder, "test_neg_rb.txt", rows[1:])
    stamp(folder, lambda m: m["negatives"]["rb"]["test"].update(reached=len(rows) - 1))
    found = audit(folder)
    assert "N_test of `rb`" in errors(found, "balance")
    assert errors(found, "negative-origins")


def test_a_positive_among_the_negatives_is_found(folder):
    rows = lines(folder, "train_neg_rc.txt")
    put(folder, "train_neg_rc.txt", sorted([*rows[1:], lines(folder, "test.txt")[0]]))
    stamp(folder)
    assert "P_test and N_train of `rc` share 1 triple" in errors(audit(folder), "disjoint")


def test_a_negative_of_two_splits_is_found(folder):
    rows = lines(folder, "test_neg_pa.txt")
    put(folder, "test_neg_pa.txt", sorted([*rows[1:], lines(folder, "train_neg_pa.txt")[0]]))
    stamp(folder)
    assert "N_train and N_test of `pa` share 1 triple" in errors(audit(folder), "disjoint")


def test_an_unknown_entity_in_test_is_found(folder):
    rows = lines(folder, "test.txt")
    put(folder, "test.txt", [rows[0].replace("\te", "\tunknown"), *rows[1:]])
    stamp(folder)
    assert "unknown" in errors(audit(folder), "signature")


def test_a_test_positive_in_valid_is_found(folder):
    moved, *rest = lines(folder, "test.txt")
    put(folder, "test.txt", rest)
    put(folder, "valid.txt", sorted([*lines(folder, "valid.txt"), moved]))

    def count(manifest: dict[str, Any]) -> None:
        manifest["positives"].update(test=len(rest), valid=manifest["positives"]["valid"] + 1)

    stamp(folder, count)
    assert "P_valid" in errors(audit(folder), "provenance")


# -- rules -----------------------------------------------------------------------------------------


def change_rule(folder: Path, number: int, new: str, **more: Any) -> None:
    """Put another rule into rules.txt and into the manifest."""
    manifest = json.loads((folder / "manifest.json").read_text())
    old = manifest["rules"][number]["rule"]
    (folder / "rules.txt").write_text((folder / "rules.txt").read_text().replace(old, new))
    stamp(folder, lambda m: m["rules"][number].update(rule=new, **more))


def test_a_rule_of_another_shape_is_found(folder):
    change_rule(folder, 0, "(x,knows,y) -> (y,likes,x)")
    assert "(x,knows,y) -> (y,likes,x)" in errors(audit(folder), "rule-shapes")


def test_a_rule_that_is_not_the_manifests_is_found(folder):
    text = (folder / "rules.txt").read_text()
    (folder / "rules.txt").write_text(text.replace("knows", "helps", 1))
    stamp(folder)
    assert "in the manifest" in errors(audit(folder), "rules")


def test_a_rule_that_does_not_parse_is_found(folder):
    text = (folder / "rules.txt").read_text()
    (folder / "rules.txt").write_text(text.replace("->", "-", 1))
    stamp(folder)
    found = audit(folder)
    assert "rules.txt" in errors(found, "rules")
    assert found.skipped["derivable"] == "rules.txt cannot be read"


def test_an_unsafe_rule_is_found(folder):
    change_rule(folder, 0, "(x,knows,y) -> (x,knows,z)")
    assert "not bound" in errors(audit(folder), "rules")


def test_a_rule_that_is_there_twice_is_found(folder):
    first = json.loads((folder / "manifest.json").read_text())["rules"][0]
    change_rule(folder, 1, first["rule"].replace("x", "w"), pattern=first["pattern"])
    assert "the same as rule 0" in errors(audit(folder), "equal-rules")


def test_a_wrong_support_is_found(folder):
    stamp(folder, lambda manifest: manifest["rules"][4].update(support=7))
    assert "not 7" in errors(audit(folder), "rule-counts")


def test_a_wrong_number_of_new_conclusions_is_found(folder):
    stamp(folder, lambda manifest: manifest["rules"][0].update(new=7, sampled=7))
    assert "not 7" in errors(audit(folder), "rule-counts")


def test_a_wrong_number_of_sampled_conclusions_is_found(folder):
    stamp(folder, lambda manifest: manifest["rules"][0].update(sampled=59))
    assert "59 conclusions were sampled, not 60" in errors(audit(folder), "rule-counts")


def test_a_missing_rule_is_found(folder):
    stamp(folder, lambda manifest: manifest["recipe"].update(k1=4))
    assert "has 3 rules; the recipe asks for 4" in errors(audit(folder), "rule-shapes")


def test_a_pattern_that_does_not_exist_is_found(folder):
    stamp(folder, lambda manifest: manifest["recipe"].update(patterns=["nosuch"]))
    assert "unknown pattern `nosuch`" in errors(audit(folder), "rule-shapes")


# -- conclusions -----------------------------------------------------------------------------------


def test_a_missing_premise_is_found(folder):
    row = next(r for r in rows_of(folder, "provenance.parquet") if r["split"] == "test")
    rule = json.loads((folder / "manifest.json").read_text())["rules"][row["rule"]]["rule"]
    relation = rule.split(",")[1]
    premise = f"{row['witness'][0]}\t{relation}\t{row['witness'][1]}"
    rows = lines(folder, "train.txt")
    assert premise in rows
    put(folder, "train.txt", [known for known in rows if known != premise])
    stamp(folder, lambda manifest: manifest["positives"].update(train=len(rows) - 1))
    found = audit(folder)
    assert not changed_sums(found)
    assert "P_train does not hold" in errors(found, "witnesses")
    assert errors(found, "kg-sum")


def test_a_conclusion_that_no_rule_derives_is_found(folder):
    rows = lines(folder, "valid.txt")
    manifest = json.loads((folder / "manifest.json").read_text())
    heads = {entry["rule"].rsplit(",", 2)[1] for entry in manifest["rules"]}
    known = {row for name in folder.glob("*.txt") for row in name.read_text().splitlines()}
    other = next(r for r in RELATIONS if r not in heads or len(heads) == 4)
    new = next(
        row
        for i in range(70)
        for j in range(70)
        if (row := f"e{i:02d}\t{other}\te{j:02d}") not in known and swapped(row) not in known
    )
    put(folder, "valid.txt", sorted([*rows[1:], new]))
    stamp(folder)
    found = audit(folder)
    assert new.split("\t")[0] in errors(found, "derivable")
    assert errors(found, "provenance")


def test_a_wrong_witness_is_found(folder):
    rows = rows_of(folder, "provenance.parquet")
    place = next(i for i, row in enumerate(rows) if len(row["witness"]) == 3)
    rows[place]["witness"][2] = rows[place]["witness"][0]
    put_rows(folder, "provenance.parquet", rows)
    stamp(folder)
    assert "inequality" in errors(audit(folder), "witnesses")


def test_a_witness_of_another_conclusion_is_found(folder):
    rows = rows_of(folder, "provenance.parquet")
    one, two = [row for row in rows if row["rule"] == 0][:2]
    one["witness"], two["witness"] = two["witness"], one["witness"]
    put_rows(folder, "provenance.parquet", rows)
    stamp(folder)
    found = [f for f in audit(folder).found("witnesses") if "another conclusion" in f.message]
    assert [f.count for f in found] == [2]


def test_a_witness_of_the_wrong_length_is_found(folder):
    rows = rows_of(folder, "provenance.parquet")
    rows[0]["witness"] = rows[0]["witness"][:-1]
    put_rows(folder, "provenance.parquet", rows)
    stamp(folder)
    assert "do not fit" in errors(audit(folder), "witnesses")


def test_a_removed_row_of_provenance_is_found(folder):
    rows = rows_of(folder, "provenance.parquet")
    place = next(i for i, row in enumerate(rows) if row["split"] == "test" and owners(rows, row) == 1)
    removed = rows.pop(place)
    put_rows(folder, "provenance.parquet", rows)
    stamp(folder)
    found = audit(folder)
    assert f"({removed['subject']}, " in errors(found, "provenance")


def test_a_rule_that_provenance_leaves_out_is_found(folder):
    rows = rows_of(folder, "provenance.parquet")
    place = next(i for i, row in enumerate(rows) if owners(rows, row) > 1)
    rows.pop(place)
    put_rows(folder, "provenance.parquet", rows)
    stamp(folder)
    assert "leaves out a rule" in errors(audit(folder), "provenance-rules")


def owners(rows: list[dict[str, Any]], row: dict[str, Any]) -> int:
    return sum(triple(other) == triple(row) for other in rows)


def test_a_conclusion_that_is_passed_off_as_a_triple_of_the_graph_is_found(folder):
    rows = rows_of(folder, "provenance.parquet")
    gone = triple(next(row for row in rows if row["split"] == "train"))
    put_rows(folder, "provenance.parquet", [row for row in rows if triple(row) != gone])
    conclusions = {triple(row) for row in rows if row["split"] == "train"}
    stamp(folder, lambda manifest: manifest["conclusions"].update(train=len(conclusions) - 1))
    assert errors(audit(folder), "kg-sum")


def test_conclusions_that_are_not_split_by_the_ratio_are_found(folder):
    stamp(folder, lambda manifest: manifest["recipe"].update(ratio="6:2:2"))
    assert "not split by 6:2:2" in errors(audit(folder), "split-shares")


# -- negatives -------------------------------------------------------------------------------------


def test_a_derivable_negative_is_found(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    relation = manifest["rules"][0]["rule"].split(",")[1]
    positives = {row for split in ("train", "valid", "test") for row in lines(folder, f"{split}.txt")}
    new = next(swapped(row) for row in sorted(positives) if f"\t{relation}\t" in row and swapped(row) not in positives)
    used = {row for path in folder.glob("*_neg_rc.txt") for row in path.read_text().splitlines()}
    assert new not in used
    rows = lines(folder, "test_neg_rc.txt")
    put(folder, "test_neg_rc.txt", sorted([*rows[1:], new]))
    stamp(folder)
    found = audit(folder)
    assert "1 negatives of `rc` follow from the rules and P_all in one step" in errors(found, "derivable-negatives")
    assert found.oracle["rc"]["false_positive_rate"] > 0
    assert errors(found, "oracle")


def test_a_wrong_sub_rule_of_a_negative_is_found(folder):
    rows = rows_of(folder, "negatives.parquet")
    row = next(r for r in rows if r["source"] == "sub-rule" and r["kept"] == 0b001)
    row["kept"] = 0b110
    wrong = [r for r in rows if r is row]
    put_rows(folder, "negatives.parquet", rows)
    stamp(folder)
    assert f"({wrong[0]['subject']}, " in errors(audit(folder), "true-origins")


def test_a_wrong_position_of_a_negative_is_found(folder):
    rows = rows_of(folder, "negatives.parquet")
    row = next(r for r in rows if r["method"] == "pa" and r["position"] == "subject")
    row["position"] = "object"
    put_rows(folder, "negatives.parquet", rows)
    stamp(folder)
    assert "in the position that is told" in errors(audit(folder), "true-origins")


def test_a_source_that_a_method_does_not_use_is_found(folder):
    rows = rows_of(folder, "negatives.parquet")
    next(r for r in rows if r["method"] == "rb").update(source="object", position="object")
    put_rows(folder, "negatives.parquet", rows)
    stamp(folder)
    assert "does not use" in errors(audit(folder), "true-origins")


def test_a_table_of_other_negatives_is_found(folder):
    rows = rows_of(folder, "negatives.parquet")
    rows[0]["object"], rows[0]["subject"] = rows[0]["subject"], rows[0]["object"]
    put_rows(folder, "negatives.parquet", rows)
    stamp(folder)
    assert "train_neg_rb.txt" in errors(audit(folder), "negative-origins")


def test_a_negative_of_no_relevance_is_found(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    heads = {entry["rule"].rsplit(",", 2)[1] for entry in manifest["rules"]}
    strange = next(r for r in RELATIONS if r not in heads)
    rows = lines(folder, "test_neg_rb.txt")
    old = rows[0].split("\t")
    new = "\t".join((old[0], strange, old[2]))
    put(folder, "test_neg_rb.txt", sorted([*rows[1:], new]))
    table = rows_of(folder, "negatives.parquet")
    row = next(r for r in table if r["method"] == "rb" and r["split"] == "test" and triple(r) == rows[0])
    row["relation"] = strange
    put_rows(folder, "negatives.parquet", table)
    stamp(folder)
    assert "no rule's head" in errors(audit(folder), "true-origins")
