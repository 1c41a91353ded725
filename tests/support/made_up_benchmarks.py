"""Small benchmarks made by hand, for tests that need one and not the steps that build it."""

import itertools
from dataclasses import replace

import numpy as np

from loginfer.benchmark.benchmark import Benchmark, BenchmarkRule, NegativeSet, Origins, PassedOver, Provenance, Splits
from loginfer.benchmark.construction.pipeline import build
from loginfer.benchmark.negatives import SOURCES
from loginfer.benchmark.recipe import Recipe
from loginfer.kg import KnowledgeGraph
from loginfer.logic import parse_rule

RULES = (
    "(x,likes,y), (y,likes,z), x != z -> (x,knows,z)",
    "(x,likes,y) -> (y,hears of,x)",
    "(x,rdf:type,Fan), (x,likes,y) -> (x,supports,y)",
)


def family(types: bool = True, *, methods: tuple[str, ...] = ("pa", "qg"), valid: bool = True) -> Benchmark:
    """Return a benchmark over a chain of five people; with types one rule has a head that no triple has."""
    people = ["ada", "Bob ⟨x⟩", "cy,d", "dée", 'e"e']
    graph = [(a, "likes", b) for a, b in itertools.pairwise(people)]
    if types:
        graph += [("ada", "rdf:type", "Fan"), ("cy,d", "rdf:type", "Person")]
    rules = [parse_rule(text.replace("hears of", "<hears of>")) for text in RULES[: 3 if types else 2]]
    # triple, split, [(rule, witness)]
    conclusions = [
        ((people[0], "knows", people[2]), 0, [(0, people[0:3])]),
        ((people[1], "knows", people[3]), 2, [(0, people[1:4])]),
        ((people[1], "hears of", people[0]), 0, [(1, people[0:2])]),
        ((people[2], "hears of", people[1]), 1 if valid else 2, [(1, people[1:3])]),
        ((people[3], "hears of", people[2]), 2, [(0, [people[3], people[2], people[2]]), (1, people[2:4])]),
    ]
    names = [*graph, *(triple for triple, _, _ in conclusions)]
    whole = KnowledgeGraph.from_names(names, type_predicate="rdf:type" if types else "")
    whole = whole.with_names(relations=["supports"] if types else [])

    def ids(triples):
        rows = [(whole.entity_id(s), whole.relation_id(r), whole.entity_id(o)) for s, r, o in triples]
        return whole.with_triples(np.array(rows, dtype=np.int32).reshape(-1, 3)).triples

    def split_of(number):
        return ids([triple for triple, split, _ in conclusions if split == number])

    train = ids([*graph, *(triple for triple, split, _ in conclusions if split == 0)])
    positives = Splits(train, split_of(1), split_of(2))
    wrong = [(o, r, s) for s, r, o in graph[:4]] + [("ada", "knows", "ada"), ("dée", "knows", "cy,d")]
    negatives = {}
    for number, method in enumerate(methods):
        mine = wrong[number:] + wrong[:number]
        splits = Splits(ids(mine[:3]), ids(mine[3 : 4 if valid else 3]), ids(mine[4:]))
        negatives[method] = NegativeSet(
            method,
            splits,
            {split: _origins(method, len(triples), number) for split, triples in splits.items()},
            {"train": len(splits.train) + number, "valid": len(splits.valid), "test": len(splits.test)},
            ("candidates ran out",) if number else (),
        )
    known = [BenchmarkRule(rule, "a pattern" if i else None, 4 - i, 3, 2) for i, rule in enumerate(rules)]
    return Benchmark(
        name="Family & co",
        graph=whole.with_triples(train),
        positives=positives,
        negatives=negatives,
        rules=tuple(known),
        provenance=_provenance(whole, conclusions),
        recipe=Recipe("family.tsv", patterns=("composition",), negatives=("pa", "qg"), name="Family & co"),
        passed_over=(PassedOver(parse_rule("(x,likes,y) -> (x,hates,y)"), "hierarchy", 4, 0),),
        notes=("a rule was hard to find",),
    )


def paired(benchmark: Benchmark | None = None) -> Benchmark:
    """Return a benchmark with the negatives of one method, of which some are twins of positives.

    The twins of every second positive of a relation, the last one first, are the first negatives of that relation.
    """
    benchmark = couples() if benchmark is None else benchmark
    ((method, made),) = benchmark.negatives.items()
    origins = {}
    for split, triples in made.splits.items():
        twin = np.full(len(triples), -1, dtype=np.int32)
        relations = benchmark.positives[split][:, 1]
        for relation in np.unique(relations).tolist():
            conclusions, negatives = (np.flatnonzero(r == relation) for r in (relations, triples[:, 1]))
            count = min(len(conclusions[::2]), len(negatives))
            twin[negatives[:count]] = conclusions[::2][::-1][:count]
        origins[split] = replace(made.origins[split], twin=twin)
    return replace(benchmark, negatives={method: replace(made, origins=origins)})


def couples(size: int = 60, **options: object) -> Benchmark:
    """Return a benchmark of three rules over people in a ring, with many conclusions and negatives of each head."""
    names = [f"p{i:02}" for i in range(size)]
    facts = [(a, "likes", names[(i + 1) % size]) for i, a in enumerate(names)]
    facts += [(a, "near", names[(i + 3) % size]) for i, a in enumerate(names)]
    facts += [(names[0], "knows", names[5]), (names[0], "meets", names[5])]
    rules = ("(x,likes,y), (y,likes,z) -> (x,knows,z)", "(x,near,y) -> (x,knows,y)", "(x,near,y) -> (y,meets,x)")
    recipe = Recipe("couples", rules=rules, k2=200, negatives=("pa",), min_new=1, **options)
    return build(recipe, KnowledgeGraph.from_names(facts))


def _origins(method, count, number):
    source = SOURCES.index("position" if method == "pa" else "sub-rule")
    pa = method == "pa"
    return Origins(
        np.full(count, source, dtype=np.int8),
        np.array([1 + i % 3 if pa else 0 for i in range(count)], dtype=np.int8),
        np.array([-1 if pa else i % 2 for i in range(count)], dtype=np.int32),
        np.array([0 if pa else 1 + i % 2 for i in range(count)], dtype=np.int32),
        np.zeros(count, dtype=np.int8),
        np.full(count, -1, dtype=np.int32),
        np.full(count, -1, dtype=np.int32),
        np.full(count, -1, dtype=np.int32),
    )


def _provenance(whole, conclusions):
    rows = sorted(
        (
            (whole.entity_id(s), whole.relation_id(r), whole.entity_id(o)),
            split,
            [(rule, [whole.entity_id(name) for name in witness]) for rule, witness in sorted(pairs)],
        )
        for (s, r, o), split, pairs in conclusions
    )
    pairs = [(i, rule, witness) for i, (_, _, found) in enumerate(rows) for rule, witness in found]
    lengths = [len(witness) for _, _, witness in pairs]
    return Provenance(
        np.array([triple for triple, _, _ in rows], dtype=np.int32),
        np.array([split for _, split, _ in rows], dtype=np.int8),
        np.array([i for i, _, _ in pairs], dtype=np.int64),
        np.array([rule for _, rule, _ in pairs], dtype=np.int32),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.array([value for _, _, witness in pairs for value in witness], dtype=np.int32),
    )


def same(a: Benchmark, b: Benchmark) -> bool:
    """Whether two benchmarks say the same, wherever they were read from; fails where they differ."""
    assert (a.name, a.rules, a.recipe, a.passed_over, a.notes) == (b.name, b.rules, b.recipe, b.passed_over, b.notes)
    assert a.graph == b.graph
    for split, triples in a.positives.items():
        assert np.array_equal(triples, b.positives[split]), split
    assert list(a.negatives) == list(b.negatives)
    for method, made in a.negatives.items():
        other = b.negatives[method]
        assert (made.method, made.notes) == (other.method, other.notes)
        assert dict(made.asked) == dict(other.asked)
        assert set(made.origins) == set(other.origins)
        for split, triples in made.splits.items():
            assert np.array_equal(triples, other.splits[split]), (method, split)
        for split, origins in made.origins.items():
            for column in Origins.__slots__:
                mine, theirs = getattr(origins, column), getattr(other.origins[split], column)
                assert mine.dtype == theirs.dtype
                assert np.array_equal(mine, theirs), (method, split, column)
    assert (a.provenance is None) == (b.provenance is None)
    if a.provenance is not None and b.provenance is not None:
        for column in Provenance.__slots__:
            mine, theirs = getattr(a.provenance, column), getattr(b.provenance, column)
            assert mine.dtype == theirs.dtype, column
            assert np.array_equal(mine, theirs), column
    return True
