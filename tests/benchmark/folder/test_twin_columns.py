"""Twins in a benchmark's folder: two columns of `negatives.parquet`, there only if some negative is a twin."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.made_up_benchmarks import couples, family, paired, same

from loginfer.benchmark.benchmark import SPLITS
from loginfer.benchmark.export import FORMATS, export_benchmark
from loginfer.benchmark.folder.reading import load_benchmark, read_folder
from loginfer.benchmark.folder.writing import write_benchmark
from loginfer.errors import InputError

TWINS = ["twin_subject", "twin_object"]


def twins(benchmark):
    return {split: origins.twin for split, origins in benchmark.negatives["pa"].origins.items()}


@pytest.fixture(scope="module")
def made():
    return paired()


def test_twins_are_read_back_as_rows_of_the_positives(made, tmp_path):
    assert all((twin >= 0).any() and (twin < 0).any() for twin in twins(made).values())
    write_benchmark(made, tmp_path / "out")
    assert same(load_benchmark(tmp_path / "out"), made)


def test_the_columns_name_the_conclusion(made, tmp_path):
    write_benchmark(made, tmp_path / "out")
    names = {split: made.graph.names(triples) for split, triples in made.positives.items()}
    expected = []
    for split in SPLITS:
        expected += [(None, None) if row < 0 else names[split][row][::2] for row in twins(made)[split].tolist()]
    rows = pq.read_table(tmp_path / "out" / "negatives.parquet").to_pylist()
    assert [(row["twin_subject"], row["twin_object"]) for row in rows] == expected
    card = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert all(f'"{name}"' in json.dumps(card) for name in TWINS)


def test_type_triples_have_twins_too(tmp_path):
    benchmark = family(methods=("pa",))
    ids = [benchmark.graph.entity_id(name) for name in ("dée", "Fan")]
    wrong = np.array([[ids[0], benchmark.graph.type_relation, ids[1]]], dtype=np.int32)
    negatives = benchmark.negatives["pa"]
    splits = replace(negatives.splits, train=wrong)
    origins = {**negatives.origins, "train": negatives.origins["train"][np.arange(1)]}
    typed = replace(benchmark, negatives={"pa": replace(negatives, splits=splits, origins=origins)})
    with_twins = paired(typed)
    (row,) = twins(with_twins)["train"].tolist()
    assert with_twins.graph.names(with_twins.positives.train[[row]])[0][1] == "rdf:type"
    write_benchmark(with_twins, tmp_path / "out")
    assert same(load_benchmark(tmp_path / "out"), with_twins)


def test_with_noise_twins_are_those_of_the_benchmark_without_it(tmp_path):
    benchmark = couples(flipped=0.1, missing=0.1)
    clean = paired(benchmark.clean).negatives["pa"]
    later = {split: clean.origins[split] for split in ("valid", "test")}
    negatives = {"pa": replace(benchmark.negatives["pa"], origins=later)}
    benchmark = replace(benchmark, noise=replace(benchmark.noise, negatives=clean), negatives=negatives)
    rows = clean.origins["train"].twin[clean.origins["train"].twin >= 0]
    assert not np.isin(
        benchmark.graph.keys.pack(benchmark.clean.positives.train[rows]), benchmark.graph.packed
    ).all(), "the conclusions of some twins are no longer in train"
    write_benchmark(benchmark, tmp_path / "out")
    found = load_benchmark(tmp_path / "out")
    assert same(found, benchmark)
    assert same(found.clean, benchmark.clean)


def test_without_twins_the_files_are_what_they_were(tmp_path):
    benchmark = couples(16)
    write_benchmark(benchmark, tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "negatives.parquet")
    assert table.column_names == [
        "subject", "relation", "object", "split", "method", "source", "position", "rule", "kept",
    ]  # fmt: skip
    assert "twin" not in (tmp_path / "out" / "croissant.json").read_text()
    assert same(load_benchmark(tmp_path / "out"), benchmark)


def changed(folder, change):
    """Read the table, change its rows and columns, and write it again."""
    path = folder / "negatives.parquet"
    table = pq.read_table(path)
    pq.write_table(change(table), path)


def with_cell(name, value):
    """A change of one cell: that of the first twin of test."""

    def change(table):
        rows = table.to_pylist()
        row = next(row for row in rows if row["split"] == "test" and row["twin_subject"])
        row[name] = value(row) if callable(value) else value
        return pa.Table.from_pylist(rows, schema=table.schema)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_cell("twin_subject", "nobody"), "1 negatives are twins of what is no positive of their split"),
        (with_cell("twin_object", lambda row: row["twin_subject"]), "1 negatives are twins of what is no positive"),
        (with_cell("twin_subject", None), "only one of `twin_subject` and `twin_object`"),
        (with_cell("twin_object", None), "only one of `twin_subject` and `twin_object`"),
        (lambda table: table.drop_columns(["twin_object"]), "there is no column `twin_object`"),
        (lambda table: table.drop_columns(["twin_subject"]), "there is no column `twin_subject`"),
        (
            lambda table: table.set_column(
                table.column_names.index("twin_object"), "twin_object", pa.array([1] * len(table), pa.int32())
            ),
            "column `twin_object` holds int32",
        ),
    ],
)
def test_damaged_columns_are_told(made, tmp_path, change, message):
    folder = tmp_path / "out"
    write_benchmark(made, folder)
    changed(folder, change)
    with pytest.raises(InputError, match=message) as caught:
        load_benchmark(folder, verify=False)
    assert "negatives.parquet" in str(caught.value.where)


def test_a_conclusion_of_another_split_or_relation_is_no_twin(made, tmp_path):
    names = made.graph.names
    train = names(made.positives.train)
    by_relation = {relation: (s, o) for s, relation, o in names(made.positives.test)}
    for number, pair in enumerate(("train", "relation")):
        folder = tmp_path / str(number)
        write_benchmark(made, folder)

        def change(table, pair=pair):
            rows = table.to_pylist()
            row = next(row for row in rows if row["split"] == "test" and row["twin_subject"])
            other = next(r for r in by_relation if r != row["relation"])
            in_train = next((s, o) for s, r, o in train if r == row["relation"])
            row["twin_subject"], row["twin_object"] = in_train if pair == "train" else by_relation[other]
            return pa.Table.from_pylist(rows, schema=table.schema)

        changed(folder, change)
        problems = read_folder(folder, verify=False).problems
        assert [problem.file for problem in problems] == ["negatives.parquet"]


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_export_takes_a_benchmark_with_twins(made, tmp_path, name):
    export_benchmark(made, name, tmp_path / "out")
    tables = list((tmp_path / "out").rglob("origins.parquet"))
    for table in tables:
        assert pq.read_table(table).column_names[-2:] == TWINS
    assert name not in ("parquet", "huggingface") or tables
