"""Benchmarks with near misses, for tests of all that is said about them."""

from __future__ import annotations

import random

from loginfer.benchmark import Recipe
from loginfer.kg import KnowledgeGraph
from tests.support.faults import TRIANGLE, random_graph

TYPE = "rdf:type"
PATTERNS = ("hierarchy", "composition", "intersection", TRIANGLE)
GIVEN = (
    "(x,helps,y), (y,knows,z) -> (x,likes,z)",
    "(x,rdf:type,Fan), (x,likes,y) -> (y,rdf:type,Star)",
    "(x,helps,y), (x,rdf:type,Star), x != y -> (y,meets,x)",
    "(x,knows,y), not (y,helps,z) -> (x,meets,y)",
    "(x,helps,y), (y,likes,z), x != z -> (x,trusts,z)",
)
# Where one relation and one type are all there is, nothing can be replaced, and near misses come from other edits.
BARE = (
    "(x,likes,y), (y,likes,z), x != z -> (x,trusts,z)",
    "(x,rdf:type,Fan), (x,likes,y) -> (y,meets,x)",
    "(x,likes,y), not (y,likes,x) -> (x,helps,y)",
)


def bare_graph():
    rng = random.Random(3)
    names = [f"e{i:02d}" for i in range(60)]
    rows = {(rng.choice(names), "likes", rng.choice(names)) for _ in range(150)}
    rows |= {(name, TYPE, "Fan") for name in names[::2]}
    return KnowledgeGraph.from_names(sorted(rows), type_predicate=TYPE)


def typed_graph(seed=5, entities=45, triples=420):
    rng = random.Random(seed)
    names = [f"e{i:02d}" for i in range(entities)]
    kinds = ("helps", "knows", "likes", "meets")
    rows = {(rng.choice(names), rng.choice(kinds), rng.choice(names)) for _ in range(triples)}
    rows |= {(name, TYPE, rng.choice(("Fan", "Star", "Person"))) for name in names}
    return KnowledgeGraph.from_names(sorted(rows), type_predicate=TYPE)


def small_graph():
    return random_graph(entities=40, triples=700)


def recipe_of(**settings):
    values = {"k1": 2, "k2": 60, "negatives": ("nm",), "seed": 4}
    if "rules" not in settings:
        values["patterns"] = PATTERNS
    return Recipe("made up", **(values | settings))
