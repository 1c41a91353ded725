"""What a notebook shows for a benchmark, for the story of a triple, and for an audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from loginfer.benchmark.auditing.findings import Audit, Example, Finding
from loginfer.benchmark.benchmark import SPLITS, Benchmark, BenchmarkRule, Splits
from loginfer.benchmark.explain import Line, Names, RuleText, TripleStory
from loginfer.kg.vocabulary import short_names
from loginfer.logic.rule import clause_markup, names_in, prose, text_markup, triple_markup
from loginfer.notebook import Markup, element, facts, folded, fragment, joined, listing, percent, table

# So many rules are shown; the table scrolls long before.
MOST = 100

_MEASURES = ("confidence", "overlap")


def benchmark_fragment(benchmark: Benchmark) -> str:
    """Return what a notebook shows for a benchmark."""
    title = element("div", benchmark.name or "a benchmark", kind="title")
    rules = _rules(benchmark.rules, benchmark.graph.labels)
    return fragment(title, facts(_facts(benchmark)), _sets(benchmark), rules, listing(_notes(benchmark)))


def rule_fragment(rule: BenchmarkRule) -> str:
    """Return what a notebook shows for one rule of a benchmark."""
    figures = (f"support {rule.support:,}", f"new {rule.new:,}", f"sampled {rule.sampled:,}")
    return fragment(clause_markup(rule.rule), facts(figures))


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
    rows += [cells(f"negatives {method}", negatives.splits) for method, negatives in benchmark.negatives.items()]
    return table(("triples", *SPLITS), rows, numbers=SPLITS)


def _rules(rules: tuple[BenchmarkRule, ...], labels: Mapping[str, str]) -> Markup:
    if not rules:
        return element("div", "the rules are not known", kind="quiet")
    names = short_names(names_in(*(rule.rule for rule in rules[:MOST])), labels=labels)
    measured = [name for name in _MEASURES if any(getattr(rule, name) is not None for rule in rules)]

    def row(number: int, rule: BenchmarkRule) -> list[str]:
        cells = [f"{rule.support:,}", f"{rule.new:,}", f"{rule.sampled:,}"]
        cells += [percent(getattr(rule, name)) for name in measured]
        return [str(number), clause_markup(rule.rule, names), *cells]

    columns = ["", "rule", "support", "new", "sampled", *(f"{name}, %" for name in measured)]
    rule_table = table(columns, [row(i, rule) for i, rule in enumerate(rules[:MOST])], numbers=columns[2:])
    left = len(rules) - MOST
    return joined(rule_table, element("div", f"and {left:,} more rules", kind="quiet")) if left > 0 else rule_table


def _notes(benchmark: Benchmark) -> Iterator[str]:
    yield from map(prose, benchmark.notes)
    for method, negatives in benchmark.negatives.items():
        yield from (prose(f"{method}: {note}") for note in negatives.notes)
    if benchmark.passed_over:
        count = f"{len(benchmark.passed_over):,} candidates were passed over"
        yield folded(count, listing(clause_markup(candidate.rule) for candidate in benchmark.passed_over[:MOST]))


def story_fragment(story: TripleStory) -> str:
    """Return what a notebook shows for the story of a triple: the sentences that the terminal prints."""
    first, *lines = story.lines()
    parts = [story.triple, *(part for line in (first, *lines) for part in line.parts)]
    names = short_names(name for part in parts for name in (part if isinstance(part, tuple) else names_in(part)))
    title = element("div", triple_markup(story.triple, names), kind="title")
    return fragment(title, element("div", _line(first, names), kind="quiet"), listing(_nested(lines, names)))


def _nested(lines: Sequence[Line], names: Mapping[str, str]) -> Iterator[Markup]:
    """Yield the lines that are indented least, each with a list of those that belong to it."""
    starts = [i for i, line in enumerate(lines) if line.indent == lines[0].indent]
    for start, stop in pairwise([*starts, len(lines)]):
        below = list(_nested(lines[start + 1 : stop], names))
        yield joined(_line(lines[start], names), *([listing(below)] if below else []))


def _line(line: Line, names: Mapping[str, str]) -> Markup:
    def markup(part: str | Names) -> Markup:
        if isinstance(part, tuple):
            return triple_markup(part, names)
        return text_markup(part, names) if isinstance(part, RuleText) else joined(part)

    return joined(*map(markup, line.parts))


_KINDS = {"error": "bad", "warning": "middling", "note": "quiet"}


def audit_fragment(audit: Audit) -> str:
    """Return what a notebook shows for an audit."""
    skipped = [f"{', '.join(checks)}: {why}" for why, checks in audit.skipped_by_reason().items()]
    return fragment(
        element("div", f"{audit.name or 'a benchmark'}: ", _verdict(audit), kind="title"),
        element("div", _counts(audit), kind="quiet"),
        _findings(audit.findings),
        _shortcuts(audit),
        _checks("passed", audit.passed),
        folded(f"skipped ({len(audit.skipped)})", listing(skipped)) if audit.skipped else "",
    )


def _verdict(audit: Audit) -> Markup:
    return element("span", "ok" if audit.ok else "not ok", kind="good" if audit.ok else "bad")


def _counts(audit: Audit) -> str:
    severities = [finding.severity for finding in audit.findings]
    counts = {word: severities.count(word) for word in ("error", "warning", "note")}
    texts = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items()]
    return " · ".join([f"{len(audit.passed)} checks passed", *texts, f"{len(audit.skipped)} skipped"])


def _findings(findings: Sequence[Finding]) -> Markup:
    names = short_names(name for finding in findings for example in finding.examples for name in example.triple or ())
    rows = [
        (
            element("span", finding.severity, kind=_KINDS[finding.severity]),
            finding.check,
            joined(prose(finding.message), _examples(finding, names)),
        )
        for finding in findings
    ]
    return table(("finding", "check", "what was found"), rows) if rows else Markup("")


def _examples(finding: Finding, names: Mapping[str, str]) -> Markup:
    examples = [_example(example, names) for example in finding.examples if example.text != finding.message]
    return folded("example" if len(examples) == 1 else "examples", listing(examples)) if examples else Markup("")


def _example(example: Example, names: Mapping[str, str]) -> Markup:
    text = prose(example.text) if example.triple is None else triple_markup(example.triple, names)
    return text if example.where is None else joined(f"{example.where}: ", text)


def _shortcuts(audit: Audit) -> Markup:
    """Return the balanced accuracy on test of the best shortcuts, method by method, and of the oracle."""
    methods = list(audit.shortcuts)
    if not methods:
        return Markup("")
    rows = [[name, *map(percent, row)] for name, row in audit.accuracies().items()]
    if audit.oracle:
        rows[-1] = [element("b", cell) for cell in rows[-1]]
    columns = ("balanced accuracy on test, %", *methods)
    return table(columns, rows, numbers=columns[1:])


def _checks(word: str, names: tuple[str, ...]) -> Markup:
    return folded(f"{word} ({len(names)})", element("div", ", ".join(names))) if names else Markup("")
