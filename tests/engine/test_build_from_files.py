"""`loginfer build` from files that are too large for memory: the same bytes, by any engine."""

from __future__ import annotations

import contextlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Heads with a relation and a type that the graph does not have, with ids in the midst of the others'.
RULES = """\
(x,r0,y), (y,r1,z) -> (x,r1a,z)
(x,r1,y), (y,r2,z) -> (x,r2,z)
(x,r0,y), (y,type,T0) -> (x,type,T0a)
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    rng = np.random.default_rng(3)
    ends, relation = rng.integers(60, size=(400, 2)), rng.integers(3, size=400)
    rows = {(f"e{s}", f"r{r}", f"e{o}") for (s, o), r in zip(ends, relation, strict=True)}
    rows |= {(f"e{i}", "rdf:type", f"T{i % 3}") for i in range(60)}
    (folder / "graph.tsv").write_text("".join("\t".join(row) + "\n" for row in sorted(rows)))
    columns = dict(zip(("subject", "relation", "object"), zip(*sorted(rows), strict=True), strict=True))
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), folder / "graph.parquet")
    (folder / "rules.txt").write_text(RULES)
    return folder


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def words(files, name, recipe):
    asked = {
        "pattern": ["-p", "composition", "--k1", 2, "-n", "pa"],
        "rules": ["--rules", files / "rules.txt", "-n", "qg"],
    }
    return ["build", files / name, *asked[recipe], "--k2", 40]


@pytest.fixture(scope="module")
def in_memory(files, tmp_path_factory):
    """What the native engine builds, by the file and the recipe."""
    from loginfer.cli import main

    built = {}
    for name, recipe in (("graph.tsv", "pattern"), ("graph.parquet", "rules")):
        out = tmp_path_factory.mktemp("native") / "out"
        with contextlib.suppress(SystemExit):
            main([str(word) for word in [*words(files, name, recipe), "--out", out]])
        built[name, recipe] = content(out)
    return built


@pytest.fixture(params=["duckdb", "spark"])
def engine(request):
    """The engines that leave a graph where it is."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param


@pytest.mark.parametrize(("name", "recipe"), [("graph.tsv", "pattern"), ("graph.parquet", "rules")])
def test_a_large_file_gives_the_same_bytes_and_is_never_loaded(
    files, in_memory, engine, loads, monkeypatch, loginfer, tmp_path, name, recipe
):
    monkeypatch.setattr("loginfer.cli.common.OUT_OF_CORE_BYTES", 1)
    scratch = tmp_path / "scratch"
    asked = [*words(files, name, recipe), "--engine", engine, "--scratch", scratch]
    code, _, err = loginfer(*asked, "--out", tmp_path / "out")
    assert code == 0, err
    assert content(tmp_path / "out") == in_memory[name, recipe]
    assert not loads
    assert list(scratch.iterdir()) == []


def test_a_mistake_in_a_large_file_is_told_and_nothing_is_left(engine, monkeypatch, loginfer, tmp_path):
    monkeypatch.setattr("loginfer.cli.common.OUT_OF_CORE_BYTES", 1)
    (tmp_path / "graph.tsv").write_text("a\tR\tb\na\tR\n")
    code, out, err = loginfer(
        *("build", tmp_path / "graph.tsv", "-p", "composition", "--engine", engine),
        *("--scratch", tmp_path / "scratch", "--out", tmp_path / "out"),
    )
    assert (code, out) == (2, "")
    assert "graph.tsv:2" in err
    assert not (tmp_path / "out").exists()
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["-n", "rc", "--select", "random"], "--negatives rc, --select random"),
        (["--flipped", 0.1], "--flipped"),
        (["--max-shortcut", 0.9], "--max-shortcut"),
        (["--depth", 2, "--materialised"], None),
    ],
)
def test_what_needs_the_graph_in_memory_says_so(files, loads, monkeypatch, loginfer, tmp_path, more, said):
    monkeypatch.setattr("loginfer.cli.common.OUT_OF_CORE_BYTES", 1)
    asked = [*words(files, "graph.tsv", "pattern"), *more, "--engine", "duckdb"]
    code, _, err = loginfer(*asked, "--out", tmp_path / "out")
    assert code == 0, err
    assert bool(loads) == (said is not None)
    told = [line for line in err.splitlines() if "into memory" in line]
    assert told == ([] if said is None else [f"the whole graph comes into memory, for {said}"])


def test_triples_and_derivations_of_a_large_file_are_those_of_one_in_memory(
    files, loads, monkeypatch, loginfer, tmp_path
):
    rules = tmp_path / "rules.txt"
    rules.write_text("(x,r0,y) -> (y,back,x)\n(x,back,y), (y,r1,z) -> (x,far,z)\n")
    lines = (line.split("\t") for line in (files / "graph.tsv").read_text().splitlines())
    triples = [tuple(line) for line in lines]
    (s, _, y) = next(t for t in triples if t[1] == "r0")
    z = next(o for x, r, o in triples if r == "r1" and x == s)
    explain = ["rules", "explain", files / "graph.tsv", rules, y, "far", z, "--closure"]
    apply = ["rules", "apply", files / "graph.tsv", rules, "--include-graph", "--out"]
    expected = loginfer(*explain)
    assert loginfer(*apply, tmp_path / "memory.tsv")[0] == 0
    monkeypatch.setattr("loginfer.cli.common.OUT_OF_CORE_BYTES", 1)
    assert loginfer(*explain, "--engine", "duckdb") == expected
    assert expected[0] == 0
    assert not loads
    code, _, err = loginfer(*apply, tmp_path / "stored.tsv", "--engine", "duckdb")
    assert code == 0
    assert err.startswith("the whole graph comes into memory, for --include-graph\n")
    assert (tmp_path / "stored.tsv").read_bytes() == (tmp_path / "memory.tsv").read_bytes()


def test_a_cluster_that_is_to_read_a_large_file_needs_a_path_for_it(files, monkeypatch, loginfer, tmp_path):
    monkeypatch.setattr("loginfer.cli.common.OUT_OF_CORE_BYTES", 1)
    monkeypatch.setattr("loginfer.cli.common.EngineChoice.running", lambda self: contextlib.nullcontext())
    asked = [*words(files, "graph.tsv", "pattern"), "--engine", "spark", "--master", "spark://far:7077"]
    code, out, err = loginfer(*asked, "--scratch", "hdfs://far/tmp", "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert "--scratch is `hdfs://far/tmp`" in err
    assert "that all workers see" in err
