"""Noisy and inductive benchmarks of WordNet, with DuckDB as a second opinion."""

from __future__ import annotations

import pytest

from loginfer.benchmark import Recipe, audit, build
from loginfer.kg import load_graph

VARIANTS = {
    "noisy": {"negatives": ("qg",), "flipped": 0.1, "missing": 0.1},
    "inductive": {"negatives": ("pa", "qg"), "inductive": True},
}


@pytest.mark.data
@pytest.mark.parametrize("variant", VARIANTS)
def test_both_engines_build_the_same_bytes_and_find_nothing_wrong(variant, data_folder, tmp_path):
    archive = data_folder / "WN18RR.tar.gz"
    graph = load_graph(archive)
    recipe = Recipe(str(archive), patterns=("triangle",), k1=5, k2=500, **VARIANTS[variant])
    for engine in ("native", "duckdb"):
        build(recipe, graph, engine=engine).save(tmp_path / engine)
    for path in (tmp_path / "native").iterdir():
        assert path.read_bytes() == (tmp_path / "duckdb" / path.name).read_bytes(), path.name
    found = audit(tmp_path / "native", engine="duckdb", closure=False)
    assert found.ok, [finding.message for finding in found.findings]
    assert {figures["accuracy"] for figures in found.oracle.values()} == {1.0}
