"""What tests of near misses share: two benchmarks, and their folders. Nobody changes them."""

import pytest
from tests.support.near_miss_benchmarks import GIVEN, recipe_of, small_graph, typed_graph

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
def near_miss_folder(near_misses, typed_near_misses, tmp_path_factory):
    """A folder with the folders of both: `made` and `typed`."""
    out = tmp_path_factory.mktemp("near misses")
    write_benchmark(near_misses, out / "made")
    write_benchmark(typed_near_misses, out / "typed")
    return out
