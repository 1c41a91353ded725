"""How notebooks show a benchmark, a story, an audit.

What a notebook shows for a benchmark: its sets, its rules, what a user should know.

What a notebook shows for the story of a triple: where it is, what it follows from, or what it lacks.

What a notebook shows for an audit: the verdict, findings, shortcuts beside the oracle, checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from loginfer.benchmark.auditing.report import Audit, Example, Finding
from loginfer.benchmark.benchmark import SPLITS, Benchmark, BenchmarkRule, Splits
from loginfer.benchmark.explain import Derivation, NegativeStory, TripleStory
from loginfer.logic.rule import clause_markup, prose, text_markup, triple_markup
from loginfer.notebook import Markup, element, facts, folded, fragment, joined, listing, percent, table

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


def story_fragment(story: TripleStory) -> str:
    """Return what a notebook shows for the story of a triple."""
    return fragment(
        element("div", triple_markup(story.triple), kind="title"),
        element("div", "is in " + (", ".join(story.sets) or "none of the sets"), kind="quiet"),
        listing(_lines(story)),
    )


def _lines(story: TripleStory) -> Iterator[Markup]:
    if story.noise is not None:
        yield joined(f"wrong on purpose: {story.noise}")
    for derivation in story.derivations:
        source = "" if story.source is None else f" from {story.source}"
        yield joined(f"follows{source} by rule {derivation.rule}: ", *_derived(derivation))
    if len(story.steps) > 1:
        steps = [joined(triple_markup(s.triple), f", by rule {s.derivation.rule}") for s in story.steps]
        yield folded(f"in {story.depth} steps", listing(steps))
    for negative in story.negatives:
        yield joined(f"negative by {negative.method} for {negative.split}", *_told(negative))
    if story.reason is not None:
        yield joined(f"does not follow: {story.reason}")


def _derived(derivation: Derivation) -> Iterator[Markup]:
    yield text_markup(derivation.text)
    gone = [joined("missing on purpose: ", triple_markup(premise)) for premise in derivation.missing]
    there = [triple_markup(p) for p in derivation.premises if p not in derivation.missing]
    absent = [joined("there is no ", triple_markup(denied)) for denied in derivation.absent]
    yield listing([*(joined("because ", made) for made in there), *gone, *absent])


def _told(negative: NegativeStory) -> Iterator[Markup]:
    if negative.near_miss is not None:
        yield joined(f": a near miss of rule {negative.rule} ({negative.edit}): ")
        yield text_markup(negative.near_miss)
        yield listing(_premises(negative))
    elif negative.sub_rule is not None:
        yield joined(f": a sub-rule of rule {negative.rule} concludes it: ", text_markup(negative.sub_rule))
        yield listing(_premises(negative))
    elif negative.replaced is not None:
        what = f"the {negative.position} replaced" if negative.position else "a part replaced"
        yield joined(f": {what} in ", triple_markup(negative.replaced))
    elif negative.source is not None:
        yield joined(f": {negative.source}")


def _premises(negative: NegativeStory) -> Iterator[Markup]:
    """Say part by part of the rule's body what is there and what is not."""
    for part in negative.parts:
        written = text_markup(part.text) if part.triple is None else triple_markup(part.triple)
        if part.holds is None:
            yield joined(written, " is left open")
        else:
            yield joined(written, " is ", _there(part.holds))
    if negative.put is not None:
        yield joined("instead there is ", triple_markup(negative.put))


def _there(holds: bool) -> Markup:
    return element("span", "there", kind="good") if holds else element("span", "not there", kind="bad")


_KINDS = {"error": "bad", "warning": "middling", "note": "quiet"}


def audit_fragment(audit: Audit) -> str:
    """Return what a notebook shows for an audit."""
    return fragment(
        element("div", f"{audit.name or 'a benchmark'}: ", _verdict(audit), kind="title"),
        element("div", _counts(audit), kind="quiet"),
        _findings(audit.findings),
        _shortcuts(audit),
        _checks("passed", audit.passed),
        folded(f"skipped ({len(audit.skipped)})", listing(_skipped(audit))) if audit.skipped else "",
    )


def _verdict(audit: Audit) -> Markup:
    return element("span", "ok" if audit.ok else "not ok", kind="good" if audit.ok else "bad")


def _counts(audit: Audit) -> str:
    severities = [finding.severity for finding in audit.findings]
    counts = {word: severities.count(word) for word in ("error", "warning", "note")}
    told = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items()]
    return " · ".join([f"{len(audit.passed)} checks passed", *told, f"{len(audit.skipped)} skipped"])


def _findings(findings: Iterable[Finding]) -> Markup:
    rows = [
        (
            element("span", finding.severity, kind=_KINDS[finding.severity]),
            finding.check,
            joined(prose(finding.message), _examples(finding)),
        )
        for finding in findings
    ]
    return table(("finding", "check", "what was found"), rows) if rows else Markup("")


def _examples(finding: Finding) -> Markup:
    told = [example for example in finding.examples if example.text != finding.message]
    if not told:
        return Markup("")
    return folded("example" if len(told) == 1 else "examples", listing(_example(one) for one in told))


def _example(example: Example) -> Markup:
    what = prose(example.text) if example.triple is None else triple_markup(example.triple)
    return what if example.where is None else joined(f"{example.where}: ", what)


def _shortcuts(audit: Audit) -> Markup:
    """Return the accuracy on test of each shortcut, method by method, and of the oracle."""
    methods = list(audit.shortcuts)
    if not methods:
        return Markup("")
    names = list(dict.fromkeys(name for method in methods for name in audit.shortcuts[method]))
    rows = [[name, *(_accuracy(audit.shortcuts[m].get(name)) for m in methods)] for name in names]
    if audit.oracle:
        cells = [_accuracy(audit.oracle.get(method)) for method in methods]
        rows.append([element("b", "oracle"), *(element("b", cell) for cell in cells)])
    columns = ("accuracy on test, %", *methods)
    return table(columns, rows, numbers=columns[1:])


def _accuracy(figures: Mapping[str, Any] | None) -> str:
    return percent(None if figures is None else figures.get("accuracy"))


def _checks(word: str, names: tuple[str, ...]) -> Markup:
    return folded(f"{word} ({len(names)})", element("div", ", ".join(names))) if names else Markup("")


def _skipped(audit: Audit) -> Iterable[str]:
    reasons: dict[str, list[str]] = {}
    for check, why in audit.skipped.items():
        reasons.setdefault(why, []).append(check)
    return [f"{', '.join(checks)}: {why}" for why, checks in reasons.items()]
