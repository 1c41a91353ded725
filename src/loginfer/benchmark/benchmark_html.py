"""What a notebook shows for a benchmark: its sets, its rules, what a user should know."""

from __future__ import annotations

from collections.abc import Iterator

from loginfer.benchmark.values import SPLITS, Benchmark, BenchmarkRule, Splits
from loginfer.logic.rule_html import clause_markup, prose
from loginfer.markup import Markup, element, facts, folded, fragment, joined, listing, percent, table

__all__ = ["MOST", "benchmark_fragment", "rule_fragment"]

# So many rules are shown; the table scrolls long before.
MOST = 100

_MEASURES = ("confidence", "overlap")


def benchmark_fragment(benchmark: Benchmark) -> str:
    """Return what a notebook shows for a benchmark."""
    return fragment(
        element("div", benchmark.name or "a benchmark", kind="title"),
        facts(_facts(benchmark)),
        _sets(benchmark),
        _rules(benchmark.rules),
        listing(_notes(benchmark)),
    )


def rule_fragment(known: BenchmarkRule) -> str:
    """Return what a notebook shows for one rule of a benchmark."""
    figures = (f"support {known.support:,}", f"new {known.new:,}", f"sampled {known.sampled:,}")
    return fragment(clause_markup(known.rule), facts(figures))


def _facts(benchmark: Benchmark) -> Iterator[str]:
    graph, recipe = benchmark.graph, benchmark.recipe
    yield f"{len(graph.entities):,} constants and types"
    yield f"{len(graph.relations) - (graph.type_relation is not None):,} relations"
    if recipe is not None:
        yield from (f"protocol {recipe.protocol}", f"seed {recipe.seed}")
    if benchmark.depth > 1:
        yield f"up to {benchmark.depth} steps"
    if benchmark.context is not None:
        yield f"inductive, {len(benchmark.context):,} triples in the context graph"
    if benchmark.noise is not None:
        yield "with noise"


def _sets(benchmark: Benchmark) -> Markup:
    def cells(title: str, splits: Splits) -> list[str]:
        return [title, *(f"{size:,}" for size in splits.sizes.values())]

    rows = [cells("positives", benchmark.positives)]
    rows += [cells(f"negatives {method}", made.splits) for method, made in benchmark.negatives.items()]
    return table(("triples", *SPLITS), rows, numbers=SPLITS)


def _rules(rules: tuple[BenchmarkRule, ...]) -> Markup:
    if not rules:
        return element("div", "the rules are not known", kind="quiet")
    measured = [name for name in _MEASURES if any(getattr(known, name) is not None for known in rules)]

    def row(place: int, known: BenchmarkRule) -> list[str]:
        cells = [f"{known.support:,}", f"{known.new:,}", f"{known.sampled:,}"]
        cells += [percent(getattr(known, name)) for name in measured]
        return [str(place), clause_markup(known.rule), *cells]

    columns = ["", "rule", "support", "new", "sampled", *(f"{name}, %" for name in measured)]
    shown = table(columns, [row(i, known) for i, known in enumerate(rules[:MOST])], numbers=columns[2:])
    left = len(rules) - MOST
    return joined(shown, element("div", f"and {left:,} more rules", kind="quiet")) if left > 0 else shown


def _notes(benchmark: Benchmark) -> Iterator[str]:
    yield from map(prose, benchmark.notes)
    for method, made in benchmark.negatives.items():
        yield from (prose(f"{method}: {note}") for note in made.notes)
    if benchmark.passed_over:
        count = f"{len(benchmark.passed_over):,} candidates were passed over"
        yield folded(count, listing(clause_markup(passed.rule) for passed in benchmark.passed_over[:MOST]))
