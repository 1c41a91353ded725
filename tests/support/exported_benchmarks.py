"""Benchmarks for tests of exports: with names that files find hard, with noise, with a context graph."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from loginfer.benchmark.benchmark import SPLITS, Benchmark, NegativeSet, Splits
from loginfer.benchmark.construction.noise import KINDS, Noise
from loginfer.kg import RDF_TYPE, KnowledgeGraph
from tests.support.made_up_benchmarks import family

FORMATS = ("anyburl", "huggingface", "libkge", "openke", "parquet", "pykeen", "rdf", "rotate")
# Those that hold every name, even one with a tab.
ANY_NAME = ("rdf", "parquet", "huggingface")

# What programs stumble over: quotes, white space of all kinds, percent signs, brackets, what ends a line
# for some, what is empty or a number for some.
_HARD = (
    " ", "  a  ", "a b", '"', '"a"', '"a', 'a"b', '""', "'", "%", "%20", "a%20b", "%zz", "100%", "a,b",
    "f(x)", "A", "X", "me_myself_i", "\\", "a\\n", "#", "# a", "_:b", "_:b 1", '"text"@en', '"1"^^<x:int>',
    "<http://x.org/a>", "http://x.org/a b", "http://x.org/é", "http://x.org/a%20b", "urn:loginfer:a",
    "urn:loginfer:%2", "a:b", "rdf:type", "type", RDF_TYPE, "NA", "null", "nan", "1", "01", "1.0", "-1", "é",
    "日本", "🙂", "\u00a0", "\u3000a", "x:\u3000", "\u2028", "\x85", "\x0b", "\x1c", "\x7f", "a\x01", "- a",
    "a: b", "{a}", "~", "yes", "n" * 3_000,
)  # fmt: skip
_LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0")


def names(*, any_name: bool = False) -> st.SearchStrategy[str]:
    """Names, hard ones among them; with `any_name` also those that lines cannot hold."""
    if any_name:
        return st.sampled_from([*_HARD, "a\tb", "\n", "a\r", "\0", ""]) | st.text(max_size=6)
    plain = st.text(_LETTERS, min_size=1, max_size=6).filter(lambda name: not name.startswith("\ufeff"))
    return st.sampled_from(_HARD) | plain


@st.composite
def benchmarks(draw, *, any_name: bool = False) -> Benchmark:
    """A benchmark over such names: any triples, some methods, perhaps a context graph."""
    entities = draw(st.lists(names(any_name=any_name), min_size=1, max_size=8, unique=True))
    relations = draw(st.lists(names(any_name=any_name), min_size=1, max_size=4, unique=True))
    graph = KnowledgeGraph.from_names(
        [(e, relations[0], e) for e in entities] + [(entities[0], r, entities[0]) for r in relations],
        type_predicate=draw(st.sampled_from(["", *relations])),
    )
    size = st.integers(0, len(entities) - 1), st.integers(0, len(relations) - 1)
    triples = st.lists(st.tuples(size[0], size[1], size[0]), max_size=8)

    def some(least: int = 0) -> np.ndarray:
        rows = draw(triples)
        rows = rows or [(0, 0, 0)] * least
        return graph.with_triples(np.array(rows, dtype=np.int32).reshape(-1, 3)).triples

    train = graph.with_triples(some(least=1))
    methods = draw(st.lists(st.sampled_from(["pa", "my-own", "a.b", "1e5"]), max_size=3, unique=True))
    return Benchmark(
        name=draw(names(any_name=True)),
        graph=train,
        positives=Splits(train.triples, some(), some()),
        negatives={method: NegativeSet(method, Splits(some(), some(), some())) for method in methods},
        context=draw(st.none() | st.builds(lambda: train.with_triples(some()))),
    )


def inductive() -> Benchmark:
    """The family with a context graph."""
    made = family()
    return replace(made, context=made.graph.with_triples(made.positives.test[:1]))


def noisy() -> Benchmark:
    """The family, of whose premises one is missing."""
    made = family(methods=("pa",))
    missing = made.graph.triples[:1]
    assert made.graph.names(missing) == [("Bob ⟨x⟩", "hears of", "ada")]
    kind = np.full(1, KINDS.index("missing"), dtype=np.int8)
    train = made.graph.with_triples(made.graph.triples[1:])
    return replace(
        made,
        graph=train,
        positives=replace(made.positives, train=train.triples),
        noise=Noise(missing, kind, made.negatives["pa"], {"missing": 1}, {"test": 1}),
    )


def named(benchmark: Benchmark) -> tuple[dict, dict, list | None]:
    """The sets of a benchmark by name: positives, negatives, the context graph."""
    graph = benchmark.graph
    positives = {split: graph.names(benchmark.positives[split]) for split in SPLITS}
    negatives = {
        method: {split: graph.names(made.splits[split]) for split in SPLITS}
        for method, made in benchmark.negatives.items()
    }
    context = None if benchmark.context is None else graph.names(benchmark.context.triples)
    return positives, negatives, context
