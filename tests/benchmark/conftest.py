"""What tests of near misses share: three benchmarks, and their folders. Nobody changes them."""

import pytest
from tests.support.near_miss_benchmarks import BARE, GIVEN, bare_graph, recipe_of, small_graph, typed_graph

from loginfer.benchmark import build, write_benchmark


@pytest.fixture(scope="session")
def near_misses():
    """A benchmark of four patterns."""
    return build(recipe_of(), small_graph())


@pytest.fixture(scope="session")
def typed_near_misses():
    """A benchmark of given rules with types and a negation."""
    return build(recipe_of(rules=GIVEN), typed_graph())


@pytest.fixture(scope="session")
def bare_near_misses():
    """A benchmark of given rules over a graph in which nothing can be replaced."""
    return build(recipe_of(rules=BARE), bare_graph())


@pytest.fixture(scope="session")
def near_miss_folder(near_misses, typed_near_misses, bare_near_misses, tmp_path_factory):
    """A folder with the folders of all three: `made`, `typed` and `bare`."""
    out = tmp_path_factory.mktemp("near misses")
    write_benchmark(near_misses, out / "made")
    write_benchmark(typed_near_misses, out / "typed")
    write_benchmark(bare_near_misses, out / "bare")
    return out
