"""The overview: the answer in words, all systems beside the best shortcut; which differences are more than chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loginfer.report import vega
from loginfer.report.collection import Cell, Collection
from loginfer.report.facts import Figure, ReportContext, figures_of, once_per_report, paper_figure, rounded
from loginfer.report.pages.rules import verdict_bars, verdict_rows
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
from loginfer.report.values import Chart, Choice, DataFile, Page, Picker, Rows, loaded_rows
from loginfer.report.verdicts import ORACLE, cell_verdicts, ranked_in, system_title, verdicts_in

# More rows have a legend instead of their names.
_NAMED = 60
# So many systems have their sentence on the first screen.
_FIRST = 8


@dataclass(frozen=True, slots=True)
class _Statistics:
    """Statistics of one benchmark: intervals by system and metric, pairs of systems, number of test triples."""

    intervals: Mapping[str, Mapping[str, Interval]]
    pairs: Sequence[Pair]
    triples: int


def pages(context: ReportContext) -> Iterator[Page | DataFile]:
    """Make the overview, and a file with the pairs of systems for each benchmark."""
    collection = context.collection
    statistics = statistics_of(context)
    labels = context.labels
    compared = [name for name in collection.benchmark_names if statistics[name].pairs]
    for benchmark in compared:
        pairs = loaded_rows("pairs", map(_pair_row, statistics[benchmark].pairs))
        yield DataFile(context.data_file("pairs", benchmark), {"charts": {"pairs": pairs}})
    rows = figure_rows(context)
    judged = cell_verdicts(context)
    answer = verdicts_in(judged) if judged else ranked_in(collection.cells)
    titles = {cell.system: system_title(cell) for cell in collection.cells}
    links = {name: None if collection.light else context.system_page(name) for name in collection.systems}
    content = {
        "facts": _facts(collection),
        "answer": answer,
        "sentences": [(titles[name], links[name], sentence) for name, sentence in answer.systems.items()],
        "first": _FIRST,
        "accuracy": accuracy_chart(context) if judged else None,
        "learned": learned_chart(context) if any(verdict.rules for verdict in judged) else None,
        "figures": heat_map(context) if len(labels) >= vega.HEAT else None,
        "deltas": _delta_map(collection, labels, rows),
        "pairs": _pair_map(collection) if compared else None,
        "picker": Picker("benchmark", tuple((labels[b], context.data_file("pairs", b)) for b in compared)),
        "notes": collection.notes,
        "seeds": max(len(cell.runs) for cell in collection.cells),
        "alpha": ALPHA,
    }
    yield Page("index.html", "Overview", "overview.html", content, "overview")


@once_per_report
def statistics_of(context: ReportContext) -> dict[str, _Statistics]:
    """Return the statistics of each benchmark; empty ones where only figures were kept."""

    def make(name: str) -> _Statistics:
        context.tell(f"significance on {name}")
        return _statistics(context.collection.of_benchmark(name), name)

    empty, light = _Statistics({}, (), 0), context.collection.light
    return {name: empty if light else make(name) for name in context.collection.benchmark_names}


def _statistics(cells: Sequence[Cell], benchmark: str) -> _Statistics:
    """Read the first run of each cell once: for intervals over triples, and for the pairs."""
    decisions: dict[str, Decisions] = {}
    intervals = {}
    for cell in cells:
        decisions[cell.system] = decisions_of(cell.first)
        if len(cell.runs) == 1:
            intervals[cell.system] = triple_intervals(decisions[cell.system], cell.system, benchmark)
    compared = {cell.system: decisions[cell.system] for cell in cells if cell.name != ORACLE}
    first = next(iter(decisions.values()))
    return _Statistics(intervals, pairs_of(compared, benchmark), len(first.positive) + len(first.negative))


def _facts(collection: Collection) -> str:
    runs = sum(len(cell.runs) for cell in collection.cells)
    counted = ((len(collection.systems), "system"), (len(collection.benchmark_names), "benchmark"), (runs, "run"))
    return ", ".join(f"{count:,} {word}{'' if count == 1 else 's'}" for count, word in counted)


# -- accuracy and rules -------------------------------------------------------------------------

_SHORTCUT = "best shortcut"


def accuracy_chart(context: ReportContext) -> Chart:
    """Return the systems with their intervals, best first, beside the best shortcut and the oracle."""
    labels, statistics = context.labels, statistics_of(context)
    main = Figure("balanced_accuracy", "balanced accuracy")
    by_benchmark: dict[str, list[tuple[Any, ...]]] = {}
    best: dict[str, float | None] = {}
    for verdict in cell_verdicts(context):
        cell, shortcut = verdict.cell, verdict.shortcut
        rows = by_benchmark.setdefault(cell.benchmark, [])
        if shortcut is not None and not rows:
            low, high = shortcut.interval or (None, None)
            rows.append((_SHORTCUT, _SHORTCUT, rounded(shortcut.value), rounded(low), rounded(high)))
        best[cell.benchmark] = None if shortcut is None else rounded(shortcut.value)
        ends = bounds(_interval(cell, main, statistics[cell.benchmark]))
        rows.append((system_title(cell), cell.system, rounded(verdict.value), *ends))
    rows = [
        (labels[benchmark], place, *row, best[benchmark])
        for benchmark, of_benchmark in by_benchmark.items()
        for place, row in enumerate(sorted(of_benchmark, key=lambda row: -row[2]))
    ]
    known = any(value is not None for value in best.values())
    name = "accuracy-beside-shortcuts" if known else "accuracy"
    return Chart.declared(name, _accuracy_spec(rows, context.collection.systems), rows)


def _accuracy_spec(rows: Sequence[tuple[Any, ...]], systems: Sequence[str]) -> dict[str, Any]:
    benchmarks = list(dict.fromkeys(row[0] for row in rows))
    several, crowded = len(benchmarks) > 1, len(rows) > _NAMED
    bottom = min(0.4, *(int(20 * (row[5] or row[4])) / 20 for row in rows))
    axis = {"grid": False, "domain": False, "ticks": False} if several else None
    domain = {"domain": benchmarks, "paddingInner": 0.12}
    band = vega.ordinal("benchmark", title=None, axis=axis, scale=domain)
    places = {"domain": sorted({row[1] for row in rows})}
    position = {"y": band, **({} if crowded else {"yOffset": vega.ordinal("place", scale=places)})}
    scale = {"domain": [bottom, 1]}
    known = [_SHORTCUT] if any(row[2] == _SHORTCUT for row in rows) else []
    colour = vega.system_colours([*systems, *known])
    colour["scale"]["range"][len(systems) :] = [vega.GREY] * len(known)
    colour["legend"] = {"orient": "top", "columns": 4, "title": None} if crowded else None
    shown = {**position, "color": colour, "tooltip": vega.tooltip("accuracy")}
    right = f"(isValid(datum.low) ? datum.low : datum.value) > {bottom + 0.4 * (1 - bottom)}"

    def across(field: str) -> dict[str, Any]:
        return vega.share_axis(field, "balanced accuracy on test", scale=scale)

    def label(test: str, field: str, **mark: Any) -> dict[str, Any]:
        texts = [
            {"calculate": f"datum.name === '{_SHORTCUT}' ? 'shortcut' : datum.name", "as": "label"},
            {"calculate": f"isValid(datum.{field}) ? datum.{field} : datum.value", "as": "end"},
        ]
        mark = {"type": "text", "fontSize": 12, "baseline": "middle", **mark}
        drawn = vega.layer(mark, **position, x=across("end"), text=vega.nominal("label"))
        return {"transform": [*vega.filtered(test), *texts], **drawn}

    line = {"type": "rule", "strokeDash": [6, 4], "color": vega.GREY, "strokeWidth": 2}
    ends = {"y": {**band, "bandPosition": 0}, "y2": {"field": "benchmark", "bandPosition": 1}}
    layers = [
        vega.layer(line, "datum.place === 0 && isValid(datum.best)", **ends, x=across("best")),
        vega.layer({"type": "rule", "strokeWidth": 3}, **shown, x=across("low"), x2={"field": "high"}),
        vega.layer(vega.points(size=70, opacity=1), **shown, x=across("value")),
    ]
    if not crowded:
        layers += [label(right, "low", align="right", dx=-8), label(f"!({right})", "high", align="left", dx=8)]
    height = 28 * len(benchmarks) if crowded else 21 * len(rows) + 10
    return vega.sized({"layer": layers}, height=height)


def learned_chart(context: ReportContext) -> Chart:
    """Return how many rules each system learned, replaced by a shortcut, or did not learn."""
    judged, labels = [verdict for verdict in cell_verdicts(context) if verdict.rules], context.labels
    titles = {verdict.cell.system: system_title(verdict.cell) for verdict in judged}
    names = [titles[name] for name in verdicts_in(judged).systems]
    rows = verdict_rows([(v.cell, {"verdicts": v.rules}) for v in judged], labels)
    rows = [(titles[system], *more) for system, *more in rows]
    benchmarks = dict.fromkeys(labels[verdict.cell.benchmark] for verdict in judged)
    choices = [Choice.among("benchmark", benchmarks, everything=True)] if len(benchmarks) > 1 else []
    return verdict_bars(rows, "system", names, *choices)


# -- heat maps ----------------------------------------------------------------------------------


def figure_rows(context: ReportContext) -> Rows:
    """Return every share of every cell, with its interval and the paper's value."""
    collection, statistics = context.collection, statistics_of(context)
    rows = []
    for figure in figures_of(collection):
        for cell in collection.cells:
            value = cell.mean(figure.metric, figure.protocol)
            if value is not None:
                interval = _interval(cell, figure, statistics[cell.benchmark])
                rows.append(_row(cell, figure, value, interval, context.labels[cell.benchmark]))
    return Rows.declared("figures", rows)


def _interval(cell: Cell, figure: Figure, statistics: _Statistics) -> Interval | None:
    if len(cell.runs) > 1:
        return seed_interval(cell, figure.metric, figure.protocol)
    return statistics.intervals.get(cell.system, {}).get(figure.metric) if figure.protocol is None else None


def _row(cell: Cell, figure: Figure, value: float, interval: Interval | None, label: str) -> tuple[Any, ...]:
    paper = paper_figure(cell, figure)
    ends = (*bounds(interval), *((None, None) if interval is None else (interval.over, interval.count)))
    delta = None if paper is None else rounded(value - paper)
    return cell.system, label, figure.key, rounded(value), *ends, len(cell.runs), rounded(paper), delta


def heat_map(context: ReportContext) -> Chart:
    """Return all systems on all benchmarks, one metric at a time."""
    collection = context.collection
    axes = vega.heat_axes(("system", collection.systems), ("benchmark", list(context.labels.values())))
    colour = vega.quantity(
        "value",
        title=None,
        # Most values are high: the power shows differences among them, on a scale that is always the same.
        scale={"type": "pow", "exponent": 3, "domain": [0, 1], "scheme": "viridis"},
        legend={"format": ".0%", "gradientLength": 160, "values": [0, 0.6, 0.8, 0.9, 1]},
    )
    choice = Choice("metric", "metric", tuple((f.key, f.title) for f in figures_of(collection)))
    spec = vega.heat_map("figures", axes, colour, "datum.value < 0.84")
    return Chart.declared("figures", spec, figure_rows(context).rows, choice)


def _red_to_blue(field: str, most: float) -> dict[str, Any]:
    """Return the colours of differences; those of at least `most` have the strongest."""
    scale = {"domain": [-most, most], "domainMid": 0, "scheme": "redblue", "clamp": True}
    return vega.quantity(field, title=None, scale=scale, legend={"format": "+.0%", "gradientLength": 160})


def _delta_map(collection: Collection, labels: Mapping[str, str], rows: Rows) -> Chart | None:
    """Return ours minus the paper's; None if the paper has none of the cells."""
    delta, metric = map(rows.fields.index, ("delta", "metric"))
    compared = [row for row in rows.rows if row[delta] is not None]
    metrics = {row[metric] for row in compared}
    figures = [figure for figure in figures_of(collection) if figure.key in metrics]
    if not figures:
        return None
    systems = [s for s in collection.systems if any(row[0] == s for row in compared)]
    names = [label for label in labels.values() if any(row[1] == label for row in compared)]
    axes = vega.heat_axes(("system", systems), ("benchmark", names))
    spec = vega.heat_map("deltas", axes, _red_to_blue("delta", 0.3), "abs(datum.delta) > 0.2", text="apart")
    titles = {"balanced_accuracy": "balanced accuracy (its AUC)"}
    choice = Choice("metric", "metric", tuple((f.key, titles.get(f.key, f.title)) for f in figures))
    return Chart.declared("deltas", spec, compared, choice)


# -- pairs --------------------------------------------------------------------------------------


def _pair_row(pair: Pair) -> tuple[Any, ...]:
    difference = (rounded(pair.difference), *bounds(pair.interval))
    chances = [float(f"{p:.3g}") for p in (pair.p, pair.adjusted)]
    verdict = "significant" if pair.significant else "not significant"
    return pair.first, pair.second, *difference, pair.only_first, pair.only_second, *chances, verdict


def _pair_map(collection: Collection) -> Chart:
    systems = collection.systems_of(cell for cell in collection.cells if cell.name != ORACLE)
    axes = vega.heat_axes(("second", systems[1:]), ("first", systems[:-1]))
    colour = {
        "condition": {"test": "datum.verdict === 'not significant'", "value": "#c9ced4"},
        **_red_to_blue("difference", 0.5),
    }
    dark = "datum.verdict === 'significant' && abs(datum.difference) > 0.33"
    return Chart.declared("pairs", vega.heat_map("pairs", axes, colour, dark))
