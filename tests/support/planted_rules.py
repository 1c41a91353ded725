"""Benchmarks with one planted rule, and negatives that witness its sub-rules."""

import numpy as np

from loginfer.benchmark.benchmark import Benchmark, NegativeSet, Splits
from loginfer.engine import open_engine
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_rule, subrules

_DIFFERENT = "x != y, x != z, y != z"
PLANTED = {
    "symmetry": "(y,helps,x) -> (x,helps,y)",
    "inversion": "(y,likes,x) -> (x,helps,y)",
    "hierarchy": "(x,likes,y) -> (x,helps,y)",
    "composition": "(x,likes,z), (z,knows,y) -> (x,helps,y)",
    "intersection": "(x,likes,y), (x,knows,y) -> (x,helps,y)",
    "triangle": f"(x,likes,y), (x,knows,z), (y,hears,z), {_DIFFERENT} -> (x,helps,y)",
    "diamond": (
        f"(x,likes,y), (x,knows,z), (y,hears,w), (z,likes,w), {_DIFFERENT}, x != w, y != w, z != w -> (x,helps,y)"
    ),
    "typed": "(x,likes,y), (y,rdf:type,Fan) -> (x,helps,y)",
    "long path": "(x,likes,z), (w,knows,z), (w,hears,y) -> (x,helps,y)",
    "type head": "(x,likes,y), (y,rdf:type,Fan) -> (x,type,Friend)",
}


def planted(text: str, people: int | None = None, edges: int = 5, seed: int = 0) -> Benchmark:
    """Return a random graph with the conclusions of a rule, and as many negatives.

    Half of the negatives are conclusions of sub-rules that the rule itself does not have, the others random
    pairs; none is derivable.
    """
    rule = parse_rule(text.replace("type,Friend", "rdf:type,Friend"))
    random = np.random.default_rng(seed)
    people = people or (400 if rule.head.is_type else 90)
    names = [f"p{i:03}" for i in range(people)]
    rows = []
    for relation in ("likes", "knows", "hears"):
        for s, o in random.integers(people, size=(edges * people, 2)):
            rows.append((names[s], relation, names[o]))
            if relation == "knows" and random.random() < 0.3:  # so that intersections are not too few
                rows.append((names[s], "likes", names[o]))
    for s, o in random.integers(people, size=(6 * people if "helps,x)" in text else people, 2)):
        rows.append((names[s], "helps", names[o]))
    rows += [(name, "rdf:type", "Fan" if random.random() < 0.15 else "Critic") for name in names]
    rows.append((names[0], "rdf:type", "Friend"))
    graph = KnowledgeGraph.from_names(rows, type_predicate="rdf:type")
    engine = open_engine(graph)

    def shuffled(triples):
        return triples[random.permutation(len(triples))]

    derived = engine.conclusions(rule, new=True)
    positive = shuffled(derived)[:600]
    near = [engine.conclusions(sub, new=True) for sub in subrules(rule) if _small(sub)]
    head = derived[0].copy()
    far = np.tile(head, (4000, 1))
    far[:, 0] = random.integers(len(graph.entities), size=len(far))
    if not rule.head.is_type:
        far[:, 2] = random.integers(len(graph.entities), size=len(far))
    constants = np.isin(far[:, 0], graph.consts) & (np.isin(far[:, 2], graph.consts) | rule.head.is_type)
    everything = graph.with_triples(np.vstack([graph.triples, derived]))
    wrong = [_outside(part, everything) for part in (np.vstack([far[:0], *near]), far[constants])]
    half = len(positive) // 2
    wrong[0] = shuffled(wrong[0])[:half]
    negative = np.unique(np.vstack([wrong[0], shuffled(wrong[1])[: len(positive) - len(wrong[0])]]), axis=0)
    parts = [_split(shuffled(triples), graph) for triples in (positive, negative)]
    train = graph.with_triples(np.vstack([graph.triples, parts[0][0]]))
    return Benchmark(
        "planted", train, Splits(train.triples, *parts[0][1:]), {"qg": NegativeSet("qg", Splits(*parts[1]))}
    )


def _small(rule):
    """Whether x and y are joined by the atoms: products are left to the random pairs."""
    groups = [set(atom.variables) for atom in rule.atoms]
    joined = set(rule.head.variables[:1])
    for _ in groups:
        for group in groups:
            if group & joined:
                joined |= group
    return set(rule.head.variables) <= joined


def _outside(triples, graph):
    triples = np.unique(triples, axis=0)
    return triples[~np.isin(graph.keys.pack(triples), graph.packed)]


def _split(triples, graph):
    first, second = int(0.7 * len(triples)), int(0.85 * len(triples))
    return [graph.with_triples(part).triples for part in np.split(triples, [first, second])]
