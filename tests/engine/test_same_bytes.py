"""The same recipe gives the same checksums by every engine, on real graphs."""

from __future__ import annotations

import json

import pytest

SETTINGS = ["--k2", 300, "-n", "pa", "--seed", 5]


@pytest.mark.parametrize(
    ("graph", "recipe"),
    [
        pytest.param(
            "wn18rr",
            ["-p", "composition", "-p", "symmetry", "--k1", 2, "-n", "qg"],
            marks=[pytest.mark.data, pytest.mark.slow],
        ),
        ("lubm", ["-p", "hierarchy", "-p", "composition", "--k1", 2]),
    ],
)
def test_all_engines_build_the_same_bytes(spark, request, loginfer, tmp_path, graph, recipe):
    if graph != "lubm":
        request.getfixturevalue("data_folder")
    checksums = {}
    for engine in ("native", "duckdb", "spark"):
        out = tmp_path / engine
        code, _, err = loginfer("build", graph, *recipe, *SETTINGS, "--engine", engine, "--out", out)
        assert code == 0, err
        manifest = json.loads((out / "manifest.json").read_text())
        assert len(manifest["files"]) > 8
        checksums[engine] = manifest["files"]
        assert {file.name: file.read_bytes() for file in out.iterdir()} == {
            file.name: file.read_bytes() for file in (tmp_path / "native").iterdir()
        }
    assert checksums["native"] == checksums["duckdb"] == checksums["spark"]
