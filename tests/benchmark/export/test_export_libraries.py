"""The libraries that exports are for read them: PyKEEN, `datasets`, DuckDB and pandas."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from tests.support.exported_benchmarks import benchmarks, inductive, named, noisy
from tests.support.made_up_benchmarks import family

from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.export.export import export_benchmark, read_export

# -- PyKEEN ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def triples_factory():
    pytest.importorskip("pykeen")
    from pykeen.triples import TriplesFactory

    return TriplesFactory


def ids_of(folder):
    return {
        f"{kind}_to_id": json.loads((folder / f"{kind}_to_id.json").read_text(encoding="utf-8"))
        for kind in ("entity", "relation")
    }


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(made=benchmarks())
def test_pykeen_reads_every_set_with_our_ids(triples_factory, made):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        about = export_benchmark(made, "pykeen", out)
        sets = {(None, split): triples for split, triples in made.positives.items()}
        for method, negatives in made.negatives.items():
            sets |= {(method, split): triples for split, triples in negatives.splits.items()}
        for told in about["sets"]:
            if told.get("context"):
                continue
            expected = sets[told["method"], told["split"]].tolist()
            if told["file"] is None:
                assert expected == []
            else:
                found = triples_factory.from_path(out / told["file"], **ids_of(out))
                assert sorted(found.mapped_triples.tolist()) == expected


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(made=benchmarks())
def test_pykeen_orders_names_as_we_do(triples_factory, made):
    """Its own ids are ours where train has every name."""
    used = set(made.graph.triples[:, [0, 2]].ravel().tolist())
    assume(len(used) == len(made.graph.entities) and len(made.graph.preds) == len(made.graph.relations))
    with tempfile.TemporaryDirectory() as folder:
        export_benchmark(made, "pykeen", Path(folder) / "out")
        found = triples_factory.from_path(Path(folder) / "out" / "train.txt")
        assert found.entity_to_id == {name: i for i, name in enumerate(made.graph.entities)}
        assert found.relation_to_id == {name: i for i, name in enumerate(made.graph.relations)}


def test_pykeen_takes_the_folder_for_a_data_set(triples_factory, tmp_path):
    from pykeen.datasets.base import PathDataset

    made = family()
    export_benchmark(made, "pykeen", tmp_path / "out")
    paths = {f"{what}_path": tmp_path / "out" / f"{split}.txt" for what, split in _PYKEEN.items()}
    dataset = PathDataset(**paths)
    for what, split in _PYKEEN.items():
        found = [tuple(row) for row in getattr(dataset, what).label_triples(getattr(dataset, what).mapped_triples)]
        assert sorted(found) == sorted(made.graph.names(made.positives[split]))


_PYKEEN = {"training": "train", "validation": "valid", "testing": "test"}


# -- datasets --------------------------------------------------------------------------------------

_LOAD = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
found = {}
for config in get_dataset_config_names(sys.argv[1]):
    splits = load_dataset(sys.argv[1], config, cache_dir=sys.argv[2])
    found[config] = {split: [dict(row) for row in rows] for split, rows in splits.items()}
    features = next(iter(splits.values())).features
    if "label" in features:
        assert features["label"].names == ["negative", "positive"]
assert load_dataset(sys.argv[1], cache_dir=sys.argv[2])["train"].num_rows == len(found["positives"]["train"])
print(json.dumps(found))
"""


def loaded(folder, cache):
    """Return all that `datasets` finds in a folder, by config and split; without any network."""
    pytest.importorskip("datasets")
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(cache), "PYTHONIOENCODING": "utf-8",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }  # fmt: skip
    words = [sys.executable, "-c", _LOAD, str(folder), str(cache)]
    done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("made", "more"),
    [
        (family(), {"rules", "provenance", "origins"}),
        (family(valid=False, types=False), {"rules", "provenance", "origins"}),
        (family(methods=()), {"rules", "provenance"}),
        (inductive(), {"rules", "provenance", "origins", "context"}),
        (noisy(), {"rules", "provenance", "origins", "noise"}),
    ],
    ids=["types", "empty valid", "no negatives", "inductive", "noisy"],
)
def test_datasets_loads_every_config(tmp_path, made, more):
    export_benchmark(made, "huggingface", tmp_path / "out")
    found = loaded(tmp_path / "out", tmp_path / "cache")
    assert set(found) == {"positives", *made.negatives, *more}
    positives, negatives, context = named(made)
    for config in ("positives", *made.negatives):
        for split, theirs in (("train", "train"), ("valid", "validation"), ("test", "test")):
            wrong = [] if config == "positives" else negatives[config][split]
            expected = [(*t, 1) for t in positives[split]] + [(*t, 0) for t in wrong]
            assert [tuple(row.values()) for row in found[config].get(theirs, [])] == expected
    assert [row["rule"] for row in found["rules"]["rules"]] == [str(rule) for rule in made.program]
    assert len(found["provenance"]["provenance"]) == 6
    if context is not None:
        assert [tuple(row.values()) for row in found["context"]["context"]] == [(*t, 1) for t in context]
    if made.noise is not None:
        assert [row["kind"] for row in found["noise"]["noise"]] == ["missing"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made", [family(), inductive()], ids=["transductive", "inductive"])
def test_mlcroissant_reads_every_set_of_triples(tmp_path, made):
    import mlcroissant

    export_benchmark(made, "huggingface", tmp_path / "out")
    dataset = mlcroissant.Dataset(jsonld=str(tmp_path / "out" / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    positives, negatives, context = named(made)
    expected = {} if context is None else {"context": [(*t, 1) for t in context]}
    for split, theirs in (("train", "train"), ("valid", "validation"), ("test", "test")):
        expected[f"positives_{theirs}"] = [(*t, 1) for t in positives[split]]
        for method, sets in negatives.items():
            expected[f"{method}_{theirs}"] = [(*t, 0) for t in sets[split]]
    assert {known.id for known in dataset.metadata.record_sets} == set(expected)
    for name, rows in expected.items():
        found = [list(record.values()) for record in dataset.records(name)]
        assert [(*(cell.decode() for cell in row[:3]), row[3]) for row in found] == rows


def test_the_front_matter_is_yaml_that_says_whose_terms_apply(tmp_path):
    import yaml

    export_benchmark(family(), "huggingface", tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    about = yaml.safe_load(text.split("---\n")[1])
    assert about["pretty_name"] == "Family & co"
    assert about["license"] == "unknown"
    assert about["size_categories"] == ["n<1K"]
    assert [config["config_name"] for config in about["configs"] if config.get("default")] == ["positives"]
    assert "`family.tsv`, whose terms apply" in text


# -- Parquet ---------------------------------------------------------------------------------------


def test_duckdb_and_pandas_read_all_sets_at_once(tmp_path):
    import duckdb
    import pandas

    made = family()
    export_benchmark(made, "parquet", tmp_path / "out")
    files = [f"{split}{kind}.parquet" for split in SPLITS for kind in ("", "_neg_pa", "_neg_qg")]
    paths = [str(tmp_path / "out" / file) for file in files]
    counted = "SELECT split, method, sum(label), count(*) FROM read_parquet(?) GROUP BY ALL"
    found = set(duckdb.execute(counted, [paths]).fetchall())
    expected = {(split, None, size, size) for split, size in made.positives.sizes.items()}
    for method, negatives in made.negatives.items():
        expected |= {(split, method, 0, size) for split, size in negatives.splits.sizes.items()}
    assert found == expected
    every = pandas.concat([pandas.read_parquet(path) for path in paths])
    assert len(every) == sum(row[-1] for row in expected)
    assert list(every) == ["subject", "relation", "object", "label", "method", "split"]


def test_our_own_reader_of_graphs_takes_the_positives_of_an_export(tmp_path):
    from loginfer.kg.load import read_graph

    made = family()
    for to in ("openke", "parquet", "rdf", "rotate"):
        export_benchmark(made, to, tmp_path / to)
        assert len(read_graph(tmp_path / to).graph) == len(made.everything)
    assert read_export(tmp_path / "rdf").negatives["pa"]["test"]
