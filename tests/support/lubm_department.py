"""A benchmark on one department of LUBM, small enough to be learned from in seconds."""

from functools import cache

import numpy as np

from loginfer.benchmark import Benchmark, Recipe, build
from loginfer.kg import generate_lubm


@cache
def department(pattern: str = "hierarchy") -> Benchmark:
    """Return a benchmark with explicit negatives, over the relations between constants of the department."""
    graph = generate_lubm()
    names = list(graph.entities)
    inside = np.array(["Department0.University0" in name for name in names])
    typed = graph.triples[:, 1] == graph.type_relation
    keep = inside[graph.triples[:, 0]] & inside[graph.triples[:, 2]] & ~typed
    small = type(graph).from_names(graph.names(graph.triples[keep]), type_predicate="")
    recipe = Recipe("lubm", patterns=(pattern,), k1=5, k2=400, ratio="6:2:2", negatives=("pa",), name="department")
    return build(recipe, small)
