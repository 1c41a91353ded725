"""The same recipe gives the same bytes: again, elsewhere, with another engine, in several processes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from loginfer import load_graph, read_rules
from loginfer.benchmark import METHODS, Recipe, build, load_benchmark, write_benchmark
from loginfer.benchmark.recipe import PROTOCOLS, write_recipe

PROGRAM = [sys.executable, "-c", "from loginfer.cli import main; main()"]
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """Names of files that are not the same; shorter to read than the files."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A random graph with types: dense enough for every pattern, small enough for every test."""
    rng = np.random.default_rng(5)
    lines = {
        f"e{s}\tr{r}\te{o}"
        for s, r, o in zip(
            rng.integers(80, size=1500), rng.integers(6, size=1500), rng.integers(80, size=1500), strict=True
        )
    }
    lines |= {f"e{e}\t{TYPE}\tt{rng.integers(4)}" for e in range(80)}
    path = tmp_path_factory.mktemp("small") / "small.tsv"
    path.write_text("\n".join(sorted(lines)) + "\n")
    return path


def methods_of(protocol: str) -> tuple[str, ...]:
    """All methods for negatives that go with a protocol."""
    return tuple(method for method in METHODS if method != "nm" or protocol == "sound")


def recipe_of(kg: object, *patterns: str, **settings) -> Recipe:
    methods = methods_of(settings.get("protocol", "sound"))
    values = {"k1": 4, "k2": 30, "negatives": methods, "name": "made"} | settings
    return Recipe(str(kg), patterns, **values)


def built(recipe: Recipe, out: Path, **options) -> dict[str, bytes]:
    write_benchmark(build(recipe, **options), out)
    return content(out)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_twice_the_same_recipe_gives_the_same_bytes_and_another_seed_others(small, tmp_path, protocol):
    recipe = recipe_of(small, "composition", "diamond", protocol=protocol)
    first = built(recipe, tmp_path / "first")
    assert differing(first, built(recipe, tmp_path / "second")) == []
    assert "train.txt" in differing(first, built(recipe.changed(seed=1), tmp_path / "third"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("patterns", [("composition", "symmetry"), ("triangle", "diamond")])
def test_both_engines_give_the_same_bytes(small, tmp_path, patterns, protocol):
    recipe = recipe_of(small, *patterns, protocol=protocol, k1=2)
    native = built(recipe, tmp_path / "native")
    assert differing(native, built(recipe, tmp_path / "duckdb", engine="duckdb", threads=1)) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_both_engines_give_the_same_bytes_for_rules_with_types(tmp_path, protocol):
    graph = load_graph("lubm")
    some = tuple(str(rule) for rule in read_rules("lubm-107").program[::9])
    recipe = Recipe("lubm", rules=some, k2=20, negatives=methods_of(protocol), protocol=protocol, name="made")
    native = built(recipe, tmp_path / "native", graph=graph)
    assert differing(native, built(recipe, tmp_path / "duckdb", graph=graph, engine="duckdb")) == []


@pytest.mark.data
@pytest.mark.parametrize("protocol", ["paper", pytest.param("sound", marks=pytest.mark.slow)])
def test_both_engines_give_the_same_bytes_for_a_benchmark_of_the_paper(data_folder, tmp_path, protocol):
    archive = data_folder / "WN18RR.tar.gz"
    graph = load_graph(archive)
    recipe = recipe_of(archive, "triangle", k1=20, k2=2000, allow_fewer=True, protocol=protocol)
    native = built(recipe, tmp_path / "native", graph=graph)
    assert differing(native, built(recipe, tmp_path / "duckdb", graph=graph, engine="duckdb")) == []


def test_hash_seeds_and_threads_of_a_process_do_not_matter(small, tmp_path):
    words = ["build", str(small), "--pattern", "triangle", "--k1", "4", "--k2", "30", "--name", "made"]
    words += itertools.chain.from_iterable(("--negatives", method) for method in METHODS)
    threads = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS")
    found = []
    for number, engine in ((1, "native"), (3, "duckdb")):
        out = tmp_path / str(number)
        environment = dict.fromkeys(threads, str(number)) | {"PYTHONHASHSEED": str(number)}
        subprocess.run(
            [*PROGRAM, *words, "--engine", engine, "--out", str(out)],
            env=os.environ | environment,
            check=True,
            capture_output=True,
        )
        found.append(content(out))
    here = recipe_of(small, "triangle")
    assert differing(found[0], built(here, tmp_path / "here")) == []
    assert differing(found[0], found[1]) == []


@pytest.mark.parametrize("threads", [2, 5])
def test_the_threads_of_duckdb_do_not_matter(small, tmp_path, threads):
    recipe = recipe_of(small, "intersection", negatives=("rb", "pa", "qg"))
    several = built(recipe, tmp_path / "several", engine="duckdb", threads=threads)
    assert differing(several, built(recipe, tmp_path / "native")) == []


def test_processes_of_a_suite_do_not_matter(tmp_path, loginfer):
    words = ["suite", "build", "--only", "LUBM-all-rb", "--only", "LUBM-no-type-pa"]
    for jobs in ("1", "2"):
        code, _, messages = loginfer(*words, "--jobs", jobs, "--out", tmp_path / jobs)
        assert code == 0, messages
    assert differing(content(tmp_path / "1"), content(tmp_path / "2")) == []


def test_the_recipe_in_a_manifest_builds_the_same_folder(small, tmp_path, loginfer):
    recipe = recipe_of(small, "composition", negatives=("pa", "qg"), seed=7, ratio="6:2:2")
    first = built(recipe, tmp_path / "first")
    manifest = json.loads(first["manifest.json"])
    write_recipe(Recipe.from_dict(manifest["recipe"]), tmp_path / "recipe.toml")
    code, _, messages = loginfer("build", "--recipe", tmp_path / "recipe.toml", "--out", tmp_path / "second")
    assert code == 0, messages
    assert differing(first, content(tmp_path / "second")) == []


def test_a_benchmark_that_was_loaded_is_written_with_the_same_bytes(small, tmp_path):
    first = built(recipe_of(small, "composition"), tmp_path / "first")
    loaded = load_benchmark(tmp_path / "first")
    write_benchmark(loaded, tmp_path / "second")
    triples = [name for name in first if name.endswith((".txt", ".parquet"))]
    second = content(tmp_path / "second")
    assert [name for name in triples if second.get(name) != first[name]] == []
