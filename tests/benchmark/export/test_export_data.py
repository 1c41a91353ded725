"""Benchmarks of real sizes: near misses and types over LUBM, and a benchmark of WN18RR."""

import pytest
from tests.support.exported_benchmarks import FORMATS, named

from loginfer.benchmark import Recipe, build
from loginfer.benchmark.export.export import export_benchmark, read_export


def check(made, folder):
    expected = named(made)
    for to in FORMATS:
        export_benchmark(made, to, folder / to)
        found = read_export(folder / to)
        assert (found.positives, found.negatives, found.context) == expected, to


def test_near_misses_over_a_graph_with_types_and_literals_are_read_back(tmp_path):
    recipe = Recipe("lubm", patterns=("composition",), negatives=("pa", "nm"), k1=3, k2=100)
    made = build(recipe)
    assert made.graph.type_relation is not None
    assert any(name.startswith('"') for name in made.graph.entities)
    check(made, tmp_path)


@pytest.mark.data
def test_a_benchmark_of_wordnet_is_read_back(tmp_path, data_folder, monkeypatch):
    monkeypatch.setenv("LOGINFER_DATA", str(data_folder))
    check(build(Recipe("wn18rr", patterns=("triangle",), negatives=("qg",), k1=5, k2=200)), tmp_path)
