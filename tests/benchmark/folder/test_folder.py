"""Writing a benchmark's folder and reading it back."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.support.made_up_benchmarks import family, same

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.folder.reading import load_benchmark
from loginfer.benchmark.folder.writing import check_output, write_benchmark
from loginfer.errors import OutputError
from loginfer.kg import KnowledgeGraph

THREE = ("rc", "pa", "my-own")


def files_of(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize(
    "made",
    [family(), family(types=False), family(valid=False), family(methods=()), family(methods=("rb", "pa", "rc"))],
    ids=["types", "no types", "empty valid", "no negatives", "three methods"],
)
def test_what_was_written_is_read_back(tmp_path, made):
    manifest = write_benchmark(made, tmp_path / "new" / "folder")
    found = load_benchmark(tmp_path / "new" / "folder")
    assert same(found, made)
    assert found.manifest == manifest
    assert found.path == tmp_path / "new" / "folder"
    assert found.kg == made.kg
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["folder"]


def test_a_benchmark_saves_and_loads_itself(tmp_path):
    family().save(tmp_path / "out")
    assert same(Benchmark.load(tmp_path / "out"), family())


def test_the_files_are_those_that_users_of_loginfer_know(tmp_path):
    made = family()
    write_benchmark(made, tmp_path / "out")
    files = files_of(tmp_path / "out")
    negatives = {f"{split}_neg_{z}.txt" for split in ("train", "valid", "test") for z in ("pa", "qg")}
    assert set(files) == negatives | {
        "train.txt", "valid.txt", "test.txt", "rules.txt", "provenance.parquet", "negatives.parquet",
        "candidate_entities.txt", "candidate_relations.txt", "candidate_types.txt",
        "README.md", "croissant.json", "manifest.json",
    }  # fmt: skip
    names = made.graph.names(made.positives.train)
    assert files["train.txt"].decode() == "".join(f"{s}\t{r}\t{o}\n" for s, r, o in names)
    constants = {e for s, r, o in names for e in ((s,) if r == "rdf:type" else (s, o))}
    assert files["candidate_entities.txt"].decode().splitlines() == sorted(constants, key=str.encode)
    assert files["candidate_relations.txt"].decode().splitlines() == ["hears of", "knows", "likes"]
    assert files["candidate_types.txt"].decode().splitlines() == ["Fan", "Person"]
    rules = [line for line in files["rules.txt"].decode().splitlines() if not line.startswith("#")]
    assert rules == [str(rule) for rule in made.program]


def test_without_types_there_are_no_candidate_types(tmp_path):
    write_benchmark(family(types=False), tmp_path / "out")
    assert not (tmp_path / "out" / "candidate_types.txt").exists()


def test_the_tables_can_be_read_by_anybody(tmp_path):
    made = family()
    write_benchmark(made, tmp_path / "out")
    provenance = pq.read_table(tmp_path / "out" / "provenance.parquet").to_pylist()
    assert len(provenance) == 6
    assert {
        "subject": "dée",
        "relation": "hears of",
        "object": "cy,d",
        "split": "test",
        "rule": 1,
        "witness": ["cy,d", "dée"],
    } in provenance
    negatives = pq.read_table(tmp_path / "out" / "negatives.parquet").to_pylist()
    assert len(negatives) == 12
    assert {tuple(row[key] for key in ("source", "method", "rule", "kept")) for row in negatives} == {
        ("position", "pa", None, None),
        ("sub-rule", "qg", 0, 1),
        ("sub-rule", "qg", 1, 2),
    }
    assert {row["position"] for row in negatives if row["method"] == "qg"} == {None}
    for split, triples in made.negatives["pa"].splits.items():
        rows = [r for r in negatives if (r["method"], r["split"]) == ("pa", split)]
        found = [(r["subject"], r["relation"], r["object"]) for r in rows]
        assert found == made.graph.names(triples)


def test_tables_of_several_row_groups_are_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr("loginfer.benchmark.folder.tables.ROW_GROUP", 2)
    write_benchmark(family(), tmp_path / "out")
    with pq.ParquetFile(tmp_path / "out" / "provenance.parquet") as file:
        assert file.num_row_groups == 3
    assert same(load_benchmark(tmp_path / "out"), family())


def test_the_manifest_says_what_was_asked_for_and_reached(tmp_path):
    import hashlib

    made = family()
    manifest = write_benchmark(made, tmp_path / "out")
    assert manifest == json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["format"] == "loginfer-benchmark"
    assert manifest["positives"] == {"train": 8, "valid": 1, "test": 2}
    assert manifest["conclusions"] == {"train": 2, "valid": 1, "test": 2}
    assert manifest["negatives"]["qg"]["train"] == {"asked": 4, "reached": 3}
    assert manifest["negatives"]["qg"]["notes"] == ["candidates ran out"]
    assert manifest["recipe"] == made.recipe.as_dict()
    assert [rule["rule"] for rule in manifest["rules"]] == [str(rule) for rule in made.program]
    names = "".join(f"{s}\t{r}\t{o}\n" for s, r, o in made.graph.names(made.kg.triples))
    assert manifest["kg"] == {
        "triples": 6,
        "constants": 5,
        "relations": 1,
        "types": 2,
        "sha256": hashlib.sha256(names.encode()).hexdigest(),
    }
    files = files_of(tmp_path / "out")
    assert set(manifest["files"]) == set(files) - {"manifest.json"}
    for name, entry in manifest["files"].items():
        assert entry == {"bytes": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}


def test_the_same_benchmark_gives_the_same_bytes(tmp_path):
    write_benchmark(family(), tmp_path / "a")
    write_benchmark(family(), tmp_path / "b")
    write_benchmark(load_benchmark(tmp_path / "a"), tmp_path / "c")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b") == files_of(tmp_path / "c")


def test_the_card_shows_figures_rules_and_files(tmp_path):
    write_benchmark(family(), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("# Family & co\n")
    assert "| positives | 8 | 1 | 2 |" in card
    assert "| negatives qg | 3 of 4 asked for | 1 | 2 |" in card
    assert "likes(x,y) ∧ likes(y,z) ∧ x≠z → knows(x,z)" in card
    for name in files_of(tmp_path / "out"):
        assert name == "README.md" or f"| `{name}` |" in card


def test_a_graph_of_the_catalogue_is_named_with_its_terms(tmp_path):
    from dataclasses import replace

    made = family()
    made = replace(made, recipe=made.recipe.changed(kg="wn18rr"))
    write_benchmark(made, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "WordNet licence" in card
    assert "Dettmers" in card
    croissant = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert "Dettmers" in croissant["citeAs"]
    assert "WordNet licence" in croissant["description"]


def test_a_benchmark_of_which_little_is_known_can_be_written(tmp_path):
    made = family()
    bare = Benchmark("bare", made.graph, made.positives, {})
    manifest = write_benchmark(bare, tmp_path / "out")
    assert manifest["kg"] is None
    assert manifest["recipe"] is None
    assert manifest["conclusions"] is None
    found = load_benchmark(tmp_path / "out")
    assert found.provenance is None
    assert found.rules == ()
    assert np.array_equal(found.positives.test.shape, made.positives.test.shape)


# -- what is never written ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\rb", ""])
def test_a_name_that_lines_cannot_hold_is_refused_before_anything_is_written(tmp_path, name):
    made = family()
    graph = KnowledgeGraph.from_names([*made.graph.names(made.graph.triples), ("ada", "likes", name)])
    wrong = Benchmark("wrong", graph, made.positives, {})
    with pytest.raises(OutputError, match="cannot hold the name"):
        write_benchmark(wrong, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_stays_unless_replacing_is_asked_for(tmp_path):
    write_benchmark(family(), tmp_path / "out")
    before = files_of(tmp_path / "out")
    with pytest.raises(OutputError, match="--force"):
        write_benchmark(family(types=False), tmp_path / "out")
    assert files_of(tmp_path / "out") == before
    write_benchmark(family(types=False), tmp_path / "out", force=True)
    assert same(load_benchmark(tmp_path / "out"), family(types=False))
    assert "candidate_types.txt" not in files_of(tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_is_replaced_when_asked_for(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError, match="exists already"):
        check_output(tmp_path / "out")
    check_output(tmp_path / "out", force=True)
    write_benchmark(family(), tmp_path / "out", force=True)
    assert same(load_benchmark(tmp_path / "out"), family())


@pytest.mark.parametrize("foreign", [["thesis.tex"], ["train.txt", "valid.txt", "test.txt"], ["sub/train.txt"]])
def test_what_is_no_benchmark_is_never_replaced(tmp_path, foreign):
    for name in foreign:
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text("a\tb\tc\n")
    for attempt in (lambda: check_output(tmp_path / "out", force=True), lambda: force_into(tmp_path / "out")):
        with pytest.raises(OutputError, match="is not replaced"):
            attempt()
    for name in foreign:
        assert (tmp_path / "out" / name).read_text() == "a\tb\tc\n"


def force_into(folder):
    write_benchmark(family(), folder, force=True)


def test_a_benchmark_with_other_files_beside_it_is_never_replaced(tmp_path):
    write_benchmark(family(), tmp_path / "out")
    (tmp_path / "out" / "my results.csv").write_text("precious")
    with pytest.raises(OutputError, match=r"my results\.csv"):
        write_benchmark(family(), tmp_path / "out", force=True)
    assert (tmp_path / "out" / "my results.csv").read_text() == "precious"


def test_a_damaged_benchmark_can_be_replaced(tmp_path):
    write_benchmark(family(), tmp_path / "out")
    (tmp_path / "out" / "manifest.json").write_text("{")
    (tmp_path / "out" / "test.txt").unlink()
    (tmp_path / "out" / ".DS_Store").write_bytes(b"")
    write_benchmark(family(), tmp_path / "out", force=True)
    assert same(load_benchmark(tmp_path / "out"), family())


def test_a_file_in_the_way_is_told(tmp_path):
    (tmp_path / "out").write_text("x")
    with pytest.raises(OutputError, match="is a file, not a folder"):
        write_benchmark(family(), tmp_path / "out", force=True)


def test_reading_the_package_loads_no_heavy_library():
    code = (
        "import sys, loginfer.benchmark, loginfer.benchmark.folder\n"
        "print([m for m in ('numba', 'duckdb', 'pyarrow', 'mlcroissant') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_a_benchmark_does_not_load_pandas(tmp_path):
    write_benchmark(family(), tmp_path / "out")
    code = f"import sys, loginfer; loginfer.load_benchmark({str(tmp_path / 'out')!r}); print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# -- Croissant ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_the_description_is_valid_croissant_and_its_records_can_be_read(tmp_path):
    import mlcroissant

    made = plain()
    write_benchmark(made, tmp_path / "out")
    dataset = mlcroissant.Dataset(jsonld=os.fspath(tmp_path / "out" / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    assert "not standard" not in dataset.metadata.ctx.issues.report()
    for split, triples in made.positives.items():
        rows = [
            tuple(record[f"{split}/{column}"].decode() for column in ("subject", "relation", "object"))
            for record in dataset.records(split)
        ]
        assert rows == made.graph.names(triples)
    provenance = list(dataset.records("provenance"))
    assert len(provenance) == len(made.provenance.rule)
    assert provenance[0]["provenance/witness"] == [
        name.encode() for name in made.graph.entities.names(made.provenance.values[: made.provenance.offsets[1]])
    ]
    negatives = list(dataset.records("negatives"))
    assert {record["negatives/method"] for record in negatives} == {b"pa", b"qg"}
    assert sum(record["negatives/rule"] is not None for record in negatives) == 6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made", [family(methods=()), family(valid=False)], ids=["no negatives", "empty valid"])
def test_unusual_benchmarks_have_valid_descriptions_too(tmp_path, made):
    import mlcroissant

    write_benchmark(made, tmp_path / "out")
    jsonld = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert not mlcroissant.Dataset(jsonld=jsonld).metadata.ctx.issues.errors
    assert {file["@id"] for file in jsonld["distribution"]} == set(files_of(tmp_path / "out")) - {
        "croissant.json",
        "manifest.json",
    }


def plain():
    """Return a benchmark whose names have no commas and quotes: mlcroissant reads lines as CSV."""
    from dataclasses import replace

    made = family()
    names = [name.replace(",", " ").replace('"', "'") for name in made.graph.entities]
    vocabulary = type(made.graph.entities).of(names)
    assert list(vocabulary) == names  # the order, and so the ids, stay
    graph = KnowledgeGraph(vocabulary, made.graph.relations, made.graph.triples, type_predicate="rdf:type")
    return replace(made, graph=graph)


@pytest.mark.data
def test_a_benchmark_of_wordnet_is_read_back(tmp_path, data_folder):
    from loginfer.benchmark import Recipe, build
    from loginfer.kg import load_graph

    path = data_folder / "WN18RR.tar.gz"
    recipe = Recipe("wn18rr", patterns=("composition",), k1=5, k2=200, negatives=("pa",))
    made = build(recipe, load_graph(path))
    write_benchmark(made, tmp_path / "a")
    found = load_benchmark(tmp_path / "a")
    assert same(found, made)
    write_benchmark(found, tmp_path / "b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
