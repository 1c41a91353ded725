"""What several pages need, each computed once: benchmarks, audits, figures, groups of cells, labels, paths."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from loginfer.benchmark.learned_shortcut import LEARNED, shortcut_results
from loginfer.benchmark.negatives.methods import method_or_unknown, method_phrases
from loginfer.errors import LogInferError
from loginfer.evaluation.metric_table import TEST_GROUPS, headlines, is_share, lower_is_better, shown_metrics
from loginfer.evaluation.predictions import PROTOCOLS, Counts
from loginfer.kg.vocabulary import shortened
from loginfer.logic import Inequality, Rule, parse_rule
from loginfer.logic.rule import short_text
from loginfer.report.collection import Cell, Collection
from loginfer.report.paper import benchmark_parts, paper_value
from loginfer.report.values import Column

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark
    from loginfer.systems.registry import SystemEntry


Cached = TypeVar("Cached")
Names = ParamSpec("Names")


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What a report should have in it.

    Parameters
    ----------
    title
        Its title.
    audits
        Audit the benchmarks for their cards; takes seconds each.
    explorer
        At most so many test triples of a benchmark in the explorer, positives and negatives together; 0: none.
    recovery
        Compare the rules that miners kept with those of the benchmarks; takes seconds each.
    """

    title: str = "LogInfer report"
    audits: bool = True
    explorer: int = 20_000
    recovery: bool = True


@dataclass
class ReportContext:
    """What pages are made from.

    Parameters
    ----------
    collection
        The runs.
    options
        What the report should have in it.
    tell
        Called with what is being made now.
    """

    collection: Collection
    options: ReportOptions = field(default_factory=ReportOptions)
    tell: Callable[[str], None] = lambda message: None

    def __post_init__(self) -> None:
        self._cache: dict[Hashable, Any] = {}
        self._slugs = _slugs([*self.collection.systems, *self.collection.benchmark_names])

    def benchmark(self, name: str) -> Benchmark | None:
        """Return a benchmark by the report's name for it; None if its folder was not given."""
        folder = self.collection.benchmarks.get(name)
        return None if folder is None else self.collection.library.load(folder)

    def audit(self, name: str) -> dict[str, Any] | None:
        """Return the audit of a benchmark, as `loginfer audit --json` prints it; None if there is none."""
        folder = self.collection.benchmarks.get(name) if self.options.audits else None
        return None if folder is None else self.once(("audit", folder), lambda: self._audit(name, folder))

    def _audit(self, name: str, folder: Path) -> dict[str, Any]:
        from loginfer.benchmark.auditing.audit import audit, saved_audit

        self.tell(f"audit of {name}")
        return saved_audit(folder) or audit(folder).as_dict()

    @cached_property
    def labels(self) -> dict[str, str]:
        """Short names of the benchmarks."""
        return benchmark_labels(self.collection.benchmark_names)

    def once(self, key: Hashable, make: Callable[[], Cached]) -> Cached:
        """Return what was made under this key before; make it the first time."""
        if key not in self._cache:
            self._cache[key] = make()
        return cast(Cached, self._cache[key])

    def system_page(self, system: str) -> str:
        """Return the path of a system's page."""
        return f"systems/{self._slugs[system]}.html"

    def benchmark_page(self, benchmark: str) -> str:
        """Return the path of a benchmark's page."""
        return f"benchmarks/{self._slugs[benchmark]}.html"

    def data_file(self, kind: str, *names: str) -> str:
        """Return the path of a file of data about systems and benchmarks."""
        return f"data/{kind}/{'-on-'.join(self._slugs.get(name) or slug(name) for name in names)}.js"


def once_per_report(make: Callable[Concatenate[ReportContext, Names], Cached]) -> Callable[..., Cached]:
    """Let a function of a report and names compute what it returns only once for each."""

    @wraps(make)
    def kept(context: ReportContext, *names: Names.args, **no_more: Names.kwargs) -> Cached:
        return context.once((make, names), lambda: make(context, *names, **no_more))

    return kept


def slug(name: str) -> str:
    """Return a name as a part of a file's name: small letters, digits and dashes; never empty."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
    return plain or hashlib.sha256(name.encode()).hexdigest()[:12]


def _slugs(names: Iterable[str]) -> dict[str, str]:
    """Name files: by the slug of the name, with a part of its hash where another name has the same slug."""
    slugs: dict[str, str] = {}
    used: set[str] = set()
    for name in names:
        short = slug(name)
        if short in used:
            short = f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        used.add(short)
        slugs[name] = short
    return slugs


@dataclass(frozen=True, slots=True)
class BenchmarkFacts:
    """What is known of a benchmark beyond its runs.

    Parameters
    ----------
    kinds
        The kinds of its negatives in test by name, and the kind of each; None if they are not known.
    supports
        For each rule as text its support; None if the benchmark's folder was not given.
    """

    kinds: tuple[Sequence[str], Counts] | None = None
    supports: Mapping[str, int] | None = None


@once_per_report
def benchmark_facts(context: ReportContext, name: str) -> BenchmarkFacts:
    """Return what is known of a benchmark."""
    from loginfer.evaluation.breakdown import negative_kinds

    benchmark = context.benchmark(name)
    if benchmark is None:
        return BenchmarkFacts()
    method = context.collection.of_benchmark(name)[0].method
    kinds = negative_kinds(benchmark, method) if method in benchmark.negatives else None
    return BenchmarkFacts(kinds, {str(rule.rule): rule.support for rule in benchmark.rules})


def entry_of(system: str) -> SystemEntry | None:
    """Return the registry's entry of a system, by its own name; None for one that is not registered."""
    return _entries().get(system.casefold())


@lru_cache(maxsize=1)
def _entries() -> dict[str, SystemEntry]:
    from loginfer.systems.registry import systems

    return {entry.name.casefold(): entry for entry in systems()}


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a cell.

    Parameters
    ----------
    metric
        Its name in `metrics.json`.
    title
        Its title on pages.
    protocol
        For a figure of the ranking, the protocol.
    """

    metric: str
    title: str
    protocol: str | None = None

    @property
    def key(self) -> str:
        """Its name in rows and menus."""
        return self.metric if self.protocol is None else f"{self.metric} {self.protocol}"

    @property
    def column(self) -> Column:
        """A column of a table for it."""
        return Column(self.title, "share" if is_share(self.metric) else "number")


def classification_figures(cells: Sequence[Cell]) -> list[Figure]:
    """Return the figures but those of ranking that are shown, the main ones first; newer ones if some cell has them."""
    always = shown_metrics("classification")
    figures = [Figure(metric, title) for metric, title in shown_metrics(*TEST_GROUPS).items()]
    return [f for f in figures if f.metric in always or any(cell.values(f.metric) for cell in cells)]


def headline_figures(cells: Sequence[Cell]) -> list[Figure]:
    """Return those of them that come first: balanced accuracy, and with twins twin accuracy."""
    return [f for f in classification_figures(cells) if f.metric in headlines("classification", "pairs")]


def ranking_figures(cells: Sequence[Cell]) -> list[Figure]:
    """Return the figures of the ranking that are shown, for the protocols that some run was ranked under."""
    return [
        Figure(metric, f"{title}, {protocol}", protocol)
        for protocol in protocols_of(cells)
        for metric, title in shown_metrics("ranking").items()
    ]


def protocols_of(cells: Sequence[Cell]) -> list[str]:
    """Return the protocols that some run was ranked under; the filtered one, which papers use, first."""
    present = {protocol for cell in cells for metrics in cell.metrics for protocol in metrics["ranking"]}
    order = sorted(PROTOCOLS, key=lambda protocol: protocol != "filtered")
    return [protocol for protocol in order if protocol in present]


def figures_of(collection: Collection) -> list[Figure]:
    """Return every share that some cell has, in the order of the menus; not where less is better, as of errors."""
    figures = (*classification_figures(collection.cells), *ranking_figures(collection.cells))
    shares = [f for f in figures if is_share(f.metric) and not lower_is_better(f.metric)]
    return [f for f in shares if any(c.values(f.metric, f.protocol) for c in collection.cells)]


def paper_figure(cell: Cell, figure: Figure) -> float | None:
    """Return the value in a paper for a figure of a cell: in ours, or in those about standard splits.

    Their MRR is held against the filtered protocol.
    """
    if figure.protocol not in (None, "filtered"):
        return None
    ours = paper_value(cell.name, cell.first.benchmark, figure.metric)
    if ours is not None or figure.protocol is None:
        return ours
    published: float | None = _published(cell.name, cell.first.request["benchmark"]["sha256"]).get(figure.metric)
    return published


@lru_cache
def _published(system: str, benchmark_sum: str) -> Mapping[str, Any]:
    from loginfer.systems.registry import published_figures

    return published_figures(system, benchmark_sum)


def benchmark_labels(names: Sequence[str]) -> dict[str, str]:
    """Return short names of benchmarks: without the suite's prefix, or without words that all begin and end with."""
    prefix = "LogInfer-" if all(re.match("LogInfer-.", name) for name in names) else ""
    if prefix or len(names) < 2 or not all(re.fullmatch(r"[\w-]+(, \w+)?", name) for name in names):
        return {name: name.removeprefix(prefix) for name in names}
    words = [name.split("-") for name in names]
    first = _shared([w[:-1] for w in words])
    last = _shared([w[:first:-1] for w in words])
    return {name: "-".join(w[first : len(w) - last]) for name, w in zip(names, words, strict=True)}


def _shared(lists: Sequence[Sequence[str]]) -> int:
    """Return how many words all lists begin with."""
    return sum(1 for _ in takewhile(lambda words: len(set(words)) == 1, zip(*lists, strict=False)))


def rounded(value: float | None, digits: int = 5) -> float | None:
    """Return a fraction with few digits, which keeps pages small."""
    return None if value is None else round(value, digits)


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known; None without any."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def share_text(value: float | None, *, sign: bool = False) -> str:
    """Return a fraction in percent with one digit."""
    if value is None:
        return ""
    text = f"{100 * value:{'+' if sign else ''}.1f}"
    return text.replace("-", "−") if text not in ("-0.0", "+0.0") else "0.0"


# By graph and pattern, then by method, then by system.
Groups = dict[str, dict[str, dict[str, Cell]]]


def group_and_method(cell: Cell) -> tuple[str, str | None]:
    """Return a cell's group and method; benchmarks of the suite that differ only in the method are one group."""
    name, bracket, difference = cell.benchmark.partition(" (")
    parts = benchmark_parts(name)
    if parts is not None and parts[2] in method_or_unknown(cell.method or "").names:
        return f"{parts[0]}-{parts[1]}{bracket}{difference}", parts[2]
    return cell.benchmark.removesuffix(f", {cell.method}"), cell.method


def method_order(method: str) -> tuple[int, str]:
    """Return the sort key of methods: their order in tables, matched ones after the others; then by name."""
    methods = list(method_phrases())
    return methods.index(method) if method in methods else len(methods), method


def method_words(method: str) -> str:
    """Return a method for negatives in plain words, with its name behind them."""
    phrase = method_phrases().get(method)
    return method if phrase is None else f"{phrase} ({method})"


def grouped(collection: Collection) -> Groups:
    """Return the cells by group, method and system."""
    groups: Groups = {}
    for cell in collection.cells:
        group, method = group_and_method(cell)
        if method is not None:
            groups.setdefault(group, {}).setdefault(method, {})[cell.system] = cell
    return {
        group: {method: methods[method] for method in sorted(methods, key=method_order)}
        for group, methods in groups.items()
    }


@lru_cache(maxsize=20_000)  # each system has the same rules
def rule_label(text: str, length: int = 300) -> str:
    """Return a rule for a tooltip: short names, without inequalities, cut if it is still long."""
    try:
        rule = parse_rule(text)
        short = short_text(Rule((part for part in rule.body if not isinstance(part, Inequality)), rule.head))
    except LogInferError:
        short = shortened(text)
    return short if len(short) <= length else f"{short[: length - 1]}…"


def diagnosis_of(cell: Cell) -> Mapping[str, Any]:
    """Return the diagnosis of a cell's first run; empty if it has none."""
    return cell.first.diagnosis() or {}


# -- shortcuts ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShortcutFigure:
    """What a shortcut reaches on a benchmark.

    Parameters
    ----------
    name
        Its name.
    value, interval
        Its balanced accuracy on test, and where that lies with 95 % confidence. Runs of earlier versions have the plain
        accuracy, and no interval.
    features
        Of the learned shortcut: what it rests on most.
    """

    name: str
    value: float
    interval: tuple[float, float] | None = None
    features: tuple[str, ...] = ()

    @property
    def interval_text(self) -> str:
        """The interval in percent."""
        return "" if self.interval is None else " to ".join(map(share_text, self.interval))


@once_per_report
def shortcut_figures(context: ReportContext, name: str) -> list[ShortcutFigure]:
    """Return what shortcuts reach on a benchmark: the learned one first, then the best; empty if not known.

    From the audit, from a run's diagnosis, or measured now; runs of earlier versions say less, and come last.
    """
    cells, benchmark = context.collection.of_benchmark(name), context.benchmark(name)
    method = cells[0].method
    audited = (context.audit(name) or {}).get("shortcuts", {}).get(method, {})
    diagnoses = (diagnosis_of(cell).get("baselines") for cell in cells)
    diagnosed: Mapping[str, Mapping[str, Any]] = next(filter(None, diagnoses), {})
    measured = [rows for rows in (audited, diagnosed) if any("interval" in row for row in rows.values())]
    rows: Mapping[str, Mapping[str, Any]] = measured[0] if measured else {}
    if not rows and benchmark is not None and method is not None and method in benchmark.negatives:
        context.tell(f"shortcuts on {name}")
        rows = {shortcut: result.as_dict() for shortcut, result in shortcut_results(benchmark, method).items()}
    figures = []
    for shortcut, row in (rows or diagnosed).items():
        value, interval = row.get("balanced_accuracy", row["accuracy"]), row.get("interval")
        if value is not None:
            features = tuple(row.get("features", ()))[:3]
            figures.append(ShortcutFigure(shortcut, value, None if interval is None else tuple(interval), features))
    return sorted(figures, key=lambda figure: (figure.name != LEARNED, -figure.value, figure.name))
