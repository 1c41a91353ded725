"""The overview: all systems on all benchmarks, beside the paper; which differences are more than chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loginfer.report import vega
from loginfer.report.collection import Cell, Collection
from loginfer.report.facts import (
    Figure,
    ReportContext,
    benchmark_labels,
    figures_of,
    headline_figures,
    paper_figure,
    rounded,
)
from loginfer.report.statistics import (
    ALPHA,
    Decisions,
    Interval,
    Pair,
    bounds,
    decisions_of,
    pairs_of,
    seed_interval,
    triple_intervals,
)
from loginfer.report.values import Chart, Choice, DataFile, Grid, Page, Picker, Rows, columns, headings

MAIN = "balanced_accuracy"

# The oracle knows the rules, so that it is not compared with the others.
_REFERENCE = "oracle"


@dataclass(frozen=True, slots=True)
class _Statistics:
    """Statistics of one benchmark: intervals by system and metric, pairs of systems, number of test triples."""

    intervals: Mapping[str, Mapping[str, Interval]]
    pairs: Sequence[Pair]
    triples: int


def pages(context: ReportContext) -> Iterator[Page | DataFile]:
    """Make the overview, and a file with the pairs of systems for each benchmark."""
    collection = context.collection
    statistics: dict[str, _Statistics] = {}
    for benchmark in collection.benchmark_names:
        context.tell(f"significance on {benchmark}")
        statistics[benchmark] = (
            _Statistics({}, (), 0) if collection.light else _statistics(collection.of_benchmark(benchmark), benchmark)
        )
    labels = benchmark_labels(collection.benchmark_names)
    compared = [name for name in collection.benchmark_names if statistics[name].pairs]
    for benchmark in compared:
        pairs = _pair_rows(statistics[benchmark].pairs).as_dict()
        yield DataFile(context.data_file("pairs", benchmark), {"charts": {"pairs": pairs}})
    rows = _rows(collection, statistics, labels)
    content = {
        "facts": _facts(collection),
        "figures": _heat_map(collection, labels, rows),
        "deltas": _delta_map(collection, labels, rows),
        "values": _value_grid(context, labels),
        "systems": [] if collection.light else [(name, context.system_page(name)) for name in collection.systems],
        "best": _best_grid(context, statistics, labels),
        "pairs": _pair_map(collection) if compared else None,
        "picker": Picker("benchmark", tuple((labels[b], context.data_file("pairs", b)) for b in compared)),
        "notes": collection.notes,
        "seeds": max(len(cell.runs) for cell in collection.cells),
        "alpha": ALPHA,
    }
    yield Page("index.html", "Overview", "overview.html", content, "overview")


def _statistics(cells: Sequence[Cell], benchmark: str) -> _Statistics:
    """Read the first run of each cell once: for intervals over triples, and for the pairs."""
    decisions: dict[str, Decisions] = {}
    intervals = {}
    for cell in cells:
        decisions[cell.system] = decisions_of(cell.first)
        if len(cell.runs) == 1:
            intervals[cell.system] = triple_intervals(decisions[cell.system], cell.system, benchmark)
    compared = {cell.system: decisions[cell.system] for cell in cells if cell.name != _REFERENCE}
    first = next(iter(decisions.values()))
    return _Statistics(intervals, pairs_of(compared, benchmark), len(first.positive) + len(first.negative))


def _facts(collection: Collection) -> str:
    runs = sum(len(cell.runs) for cell in collection.cells)
    counted = ((len(collection.systems), "system"), (len(collection.benchmark_names), "benchmark"), (runs, "run"))
    return ", ".join(f"{count:,} {word}{'' if count == 1 else 's'}" for count, word in counted)


# -- heat maps ----------------------------------------------------------------------------------

_FIELDS = (
    "system", "benchmark", "metric", "value", "low", "high", "over", "count", "seeds", "paper", "delta",
)  # fmt: skip


def _rows(collection: Collection, statistics: Mapping[str, _Statistics], labels: Mapping[str, str]) -> Rows:
    rows = []
    for figure in figures_of(collection):
        for cell in collection.cells:
            value = cell.mean(figure.metric, figure.protocol)
            if value is not None:
                interval = _interval(cell, figure, statistics[cell.benchmark])
                rows.append(_row(cell, figure, value, interval, labels[cell.benchmark]))
    return Rows.of(_FIELDS, rows)


def _interval(cell: Cell, figure: Figure, statistics: _Statistics) -> Interval | None:
    if len(cell.runs) > 1:
        return seed_interval(cell, figure.metric, figure.protocol)
    return statistics.intervals.get(cell.system, {}).get(figure.metric) if figure.protocol is None else None


def _row(cell: Cell, figure: Figure, value: float, interval: Interval | None, label: str) -> tuple[Any, ...]:
    paper = paper_figure(cell, figure)
    ends = (*bounds(interval), *((None, None) if interval is None else (interval.over, interval.count)))
    delta = None if paper is None else rounded(value - paper)
    return cell.system, label, figure.key, rounded(value), *ends, len(cell.runs), rounded(paper), delta


_TEXTS = [
    {"calculate": "format(100 * datum.value, '.1f')", "as": "shown"},
    {
        "calculate": "isValid(datum.low) ? format(100 * datum.low, '.1f') + ' to ' + "
        "format(100 * datum.high, '.1f') + ' over ' + format(datum.count, ',') + ' ' + datum.over : 'none'",
        "as": "interval",
    },
    {"calculate": "isValid(datum.paper) ? format(100 * datum.paper, '.1f') : 'none'", "as": "printed"},
    {"calculate": "isValid(datum.delta) ? format(100 * datum.delta, '+.1f') : 'none'", "as": "apart"},
]

_TOOLTIP = [
    vega.nominal("system"),
    vega.nominal("benchmark"),
    vega.nominal("shown", title="ours, %"),
    vega.nominal("interval", title="95 % interval"),
    vega.quantity("seeds", title="seeds"),
    vega.nominal("printed", title="paper, %"),
    vega.nominal("apart", title="ours minus paper"),
]


_COLUMNS = headings(
    "benchmark", "system", "metric", value="ours", low="interval from", high="to", over="over", count="how many",
    seeds="seeds", paper="paper", delta="ours minus paper",
)  # fmt: skip


def _heat_map(collection: Collection, labels: Mapping[str, str], rows: Rows) -> Chart:
    axes = vega.heat_axes(("system", collection.systems), ("benchmark", list(labels.values())))
    colour = vega.quantity(
        "value",
        title=None,
        # Most values are high: the power shows differences among them, on a scale that is always the same.
        scale={"type": "pow", "exponent": 3, "domain": [0, 1], "scheme": "viridis"},
        legend={"format": ".0%", "gradientLength": 160, "values": [0, 0.6, 0.8, 0.9, 1]},
    )
    return Chart(
        "figures",
        "All systems on all benchmarks",
        vega.heat_map(axes, colour, "shown", "datum.value < 0.84", transforms=_TEXTS, tooltip=_TOOLTIP),
        rows,
        _COLUMNS,
        "In percent, the mean over the seeds. Point at a cell for its interval and the paper's value.",
        (Choice("metric", "metric", tuple((f.key, f.title) for f in figures_of(collection))),),
        packed=("system", "benchmark", "metric", "over"),
    )


def _red_to_blue(field: str, most: float) -> dict[str, Any]:
    """Return the colours of differences; those of at least `most` have the strongest."""
    scale = {"domain": [-most, most], "domainMid": 0, "scheme": "redblue", "clamp": True}
    return vega.quantity(field, title=None, scale=scale, legend={"format": "+.0%", "gradientLength": 160})


def _delta_map(collection: Collection, labels: Mapping[str, str], rows: Rows) -> Chart | None:
    """Return ours minus the paper's; None if the paper has none of the cells."""
    delta, metric = _FIELDS.index("delta"), _FIELDS.index("metric")
    compared = [row for row in rows.rows if row[delta] is not None]
    metrics = {row[metric] for row in compared}
    figures = [figure for figure in figures_of(collection) if figure.key in metrics]
    if not figures:
        return None
    systems = [s for s in collection.systems if any(row[0] == s for row in compared)]
    names = [label for label in labels.values() if any(row[1] == label for row in compared)]
    axes = vega.heat_axes(("system", systems), ("benchmark", names))
    colour = _red_to_blue("delta", 0.3)
    titles = {"balanced_accuracy": "balanced accuracy (its AUC)"}
    return Chart(
        "deltas",
        "Ours minus the paper's",
        vega.heat_map(axes, colour, "apart", "abs(datum.delta) > 0.2", transforms=_TEXTS, tooltip=_TOOLTIP),
        Rows(_FIELDS, tuple(compared)),
        _COLUMNS,
        "In percentage points; blue where ours is higher, red where it is lower. The paper's AUC is computed "
        "on hard decisions, so it is held against balanced accuracy; its MRR against the filtered protocol.",
        (Choice("metric", "metric", tuple((f.key, titles.get(f.key, f.title)) for f in figures)),),
    )


# -- tables -------------------------------------------------------------------------------------


def _value_grid(context: ReportContext, labels: Mapping[str, str]) -> Grid:
    collection = context.collection
    rows: list[tuple[Any, ...]] = []
    for benchmark in collection.benchmark_names:
        cells = [collection.cell(system, benchmark) for system in collection.systems]
        values = [None if cell is None else rounded(cell.mean(MAIN)) for cell in cells]
        label = labels[benchmark]
        rows.append((label if collection.light else (label, context.benchmark_page(benchmark)), *values))
    heads = columns("text" if collection.light else "link", "benchmark") + columns("share", *collection.systems)
    return Grid(heads, tuple(rows), "Balanced accuracy in percent, the mean over the seeds.")


def _best_grid(context: ReportContext, statistics: Mapping[str, _Statistics], labels: Mapping[str, str]) -> Grid | None:
    """Return for each benchmark the best system, and those that are not significantly different from it."""
    rows = []
    figures = headline_figures(context.collection.cells)
    for benchmark, on_benchmark in statistics.items():
        cells = [c for c in context.collection.of_benchmark(benchmark) if c.name != _REFERENCE]
        ranked = [(value, cell) for cell in cells if (value := cell.mean(MAIN)) is not None]
        if not ranked or not on_benchmark.pairs:
            continue
        _, best = max(ranked, key=lambda pair: pair[0])
        values = (rounded(best.mean(figure.metric)) for figure in figures)
        link = (best.system, context.system_page(best.system))
        page = (labels[benchmark], context.benchmark_page(benchmark))
        tied = _tied(best.system, on_benchmark.pairs)
        rows.append((page, link, *values, ", ".join(tied) or "none", len(ranked), on_benchmark.triples))
    heads = columns("link", "benchmark", "best system") + tuple(figure.column for figure in figures)
    heads += columns("text", "not significantly different from it") + columns("number", "systems", "test triples")
    return Grid(heads, tuple(rows)) if rows else None


def _tied(system: str, pairs: Sequence[Pair]) -> list[str]:
    ties = [pair for pair in pairs if system in (pair.first, pair.second) and not pair.significant]
    return [pair.second if pair.first == system else pair.first for pair in ties]


# -- pairs --------------------------------------------------------------------------------------

_PAIR_COLUMNS = {
    "first": "system (row)",
    "second": "system (column)",
    "difference": "balanced accuracy, row minus column",
    "low": "interval from",
    "high": "to",
    "only_first": "only the row is right",
    "only_second": "only the column is right",
    "p": "p (McNemar)",
    "adjusted": "p after Holm",
    "verdict": "",
}


def _pair_rows(pairs: Sequence[Pair]) -> Rows:
    return Rows.of(
        tuple(_PAIR_COLUMNS),
        [
            (
                pair.first,
                pair.second,
                rounded(pair.difference),
                *bounds(pair.interval),
                pair.only_first,
                pair.only_second,
                float(f"{pair.p:.3g}"),
                float(f"{pair.adjusted:.3g}"),
                "significant" if pair.significant else "not significant",
            )
            for pair in pairs
        ],
    )


def _pair_map(collection: Collection) -> Chart:
    names = [c.system for c in collection.cells if c.name != _REFERENCE]
    systems = [system for system in collection.systems if system in names]
    axes = vega.heat_axes(("second", systems[1:]), ("first", systems[:-1]))
    colour = {
        "condition": {"test": "datum.verdict === 'not significant'", "value": "#c9ced4"},
        **_red_to_blue("difference", 0.5),
    }
    texts = [
        {"calculate": "isValid(datum.difference) ? format(100 * datum.difference, '+.1f') : ''", "as": "shown"},
        {
            "calculate": "isValid(datum.low) ? format(100 * datum.low, '+.1f') + ' to ' + "
            "format(100 * datum.high, '+.1f') : 'none'",
            "as": "interval",
        },
        {"calculate": "datum.adjusted < 0.001 ? 'below 0.001' : format(datum.adjusted, '.3f')", "as": "chance"},
    ]
    tooltip = [
        vega.nominal("first", title="row"),
        vega.nominal("second", title="column"),
        vega.nominal("shown", title="row minus column"),
        vega.nominal("interval", title="95 % interval"),
        vega.quantity("only_first", title="only row right"),
        vega.quantity("only_second", title="only column right"),
        vega.nominal("chance", title="p after Holm"),
    ]
    light = "datum.verdict === 'significant' && abs(datum.difference) > 0.33"
    return Chart(
        "pairs",
        "Pairs of systems",
        vega.heat_map(axes, colour, "shown", light, transforms=texts, tooltip=tooltip),
        Rows.of(tuple(_PAIR_COLUMNS), []),
        _PAIR_COLUMNS,
        "Balanced accuracy of the row's system minus the column's, in percentage points; grey where the two "
        "are not significantly different.",
    )
