"""The page about the impact of negatives: the same positives against harder and harder negatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loginfer.benchmark.construction.suite import entries
from loginfer.benchmark.negatives.methods import method_phrases
from loginfer.evaluation.metric_table import metric_title
from loginfer.report import vega
from loginfer.report.collection import Cell, Collection
from loginfer.report.facts import Figure, Groups, ReportContext, figures_of, grouped, method_order, rounded
from loginfer.report.paper import paper_value
from loginfer.report.values import Chart, Choice, Grid, Page, Rows, columns

_MAIN = Figure("balanced_accuracy", metric_title("balanced_accuracy"))


def pages(context: ReportContext) -> Iterator[Page]:
    """Make the page."""
    groups, notes = grouped(context.collection)
    compared = {group: methods for group, methods in groups.items() if len(methods) > 1}
    content = {
        "chart_": _chart(context.collection, compared) if compared else None,
        "table": _grid(compared, context.collection.systems) if compared else None,
        "single": [(group, next(iter(methods))) for group, methods in groups.items() if len(methods) == 1],
        "command": _command(groups),
        "notes": notes,
    }
    yield Page("negatives.html", "Impact of negatives", "negatives.html", content, "negatives")


def _command(groups: Groups) -> str:
    """Return a command that builds a benchmark of the report with another method."""
    suite = {entry.name for entry in entries()}
    for group, methods in groups.items():
        for method in method_phrases():
            if method not in methods and f"LogInfer-{group}-{method}" in suite:
                return f"loginfer suite build --only {group}-{method} --out SUITE"
    return "loginfer build KG --pattern PATTERN --negatives rb --negatives pa --out BENCH"


# -- the plot -----------------------------------------------------------------------------------

SOURCES = ("ours", "paper")
_FIELDS = ("group", "metric", "system", "source", "method", "value", "seeds")


def _chart(collection: Collection, groups: Groups) -> Chart:
    figures = figures_of(collection)
    rows: list[tuple[Any, ...]] = []
    for group, methods in groups.items():
        for figure in figures:
            rows += _our_rows(group, figure, methods)
            rows += _paper_rows(group, figure, methods)
    metrics = {row[1] for row in rows}
    methods_present = sorted({row[4] for row in rows}, key=method_order)
    return Chart(
        "negatives",
        "From replaced constants to query-guided negatives",
        _spec(collection.systems, methods_present),
        Rows.of(_FIELDS, rows),
        dict(zip(_FIELDS, ("benchmark", "metric", "system", "source", "negatives", "value", "seeds"), strict=True)),
        "The methods stand in the paper's order. Choose systems in the legend (several with the "
        "shift key). Dashed lines are the paper's, where it has them.",
        (
            Choice.among("group", groups, "benchmark"),
            Choice("metric", "metric", tuple((f.key, f.title) for f in figures if f.key in metrics)),
        ),
        packed=("group", "metric", "system", "source", "method"),
    )


def _our_rows(group: str, figure: Figure, methods: Mapping[str, Mapping[str, Cell]]) -> list[tuple[Any, ...]]:
    return [
        (group, figure.key, system, "ours", method, rounded(value), len(cell.runs))
        for method, cells in methods.items()
        for system, cell in cells.items()
        if (value := cell.mean(figure.metric, figure.protocol)) is not None
    ]


def _paper_rows(group: str, figure: Figure, methods: Mapping[str, Mapping[str, Cell]]) -> list[tuple[Any, ...]]:
    """Return the paper's values for the systems of this report, also for methods that the report does not have."""
    if figure.protocol not in (None, "filtered"):
        return []
    labels: dict[str, str] = {}  # one line for a system, even if the report has it with several settings
    for cells in methods.values():
        for system, cell in cells.items():
            labels.setdefault(cell.name, system)
    rows = [
        (group, figure.key, label, "paper", method, value, None)
        for name, label in labels.items()
        for method in method_phrases()
        if (value := paper_value(name, f"LogInfer-{group}-{method}", figure.metric)) is not None
    ]
    several = {row[2] for row in rows if sum(other[2] == row[2] for other in rows) > 1}
    return [row for row in rows if row[2] in several]  # a line needs two ends


def _spec(systems: Sequence[str], methods: Sequence[str]) -> dict[str, Any]:
    tooltip = [
        vega.nominal("system"),
        vega.nominal("source"),
        vega.nominal("method", title="negatives"),
        vega.quantity("value", format=".1%"),
    ]
    top = {"orient": "top"}
    dashes = vega.nominal("source", title="source", legend=top, scale=vega.scale_of(SOURCES, ([1, 0], [5, 4])))
    shapes = vega.nominal("source", title="source", scale=vega.scale_of(SOURCES, ("circle", "diamond")), legend=top)
    line = {
        "params": vega.pick_in_legend("system"),
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"strokeDash": dashes},
    }
    return vega.sized(
        {
            "encoding": {
                "x": vega.method_axis(methods),
                "y": vega.share_axis("value", "value of the metric"),
                **vega.picked_systems(systems),
                "tooltip": tooltip,
            },
            "layer": [line, {"mark": vega.points(size=50), "encoding": {"shape": shapes}}],
        },
        height=420,
    )


# -- the table ----------------------------------------------------------------------------------


def _grid(groups: Groups, systems: Sequence[str]) -> Grid:
    """Return balanced accuracy by method, ours and the paper's."""
    present = {method for methods in groups.values() for method in methods}
    methods = sorted(present, key=method_order)
    lines = list(_lines(groups, systems))
    paper_methods = [
        m for m in method_phrases() if any(_paper_value(group, cells, m) is not None for group, cells in lines)
    ]
    heads = columns("text", "benchmark", "system")
    heads += columns("share", *methods, *(f"{method}, paper" for method in paper_methods))
    rows = []
    for group, cells in lines:
        values = [rounded(cells[m].mean(_MAIN.metric)) if m in cells else None for m in methods]
        paper = [_paper_value(group, cells, method) for method in paper_methods]
        rows.append((group, next(iter(cells.values())).system, *values, *paper))
    return Grid(heads, tuple(rows), "Balanced accuracy in percent, by method for negatives.", True)


def _lines(groups: Groups, systems: Sequence[str]) -> Iterator[tuple[str, dict[str, Cell]]]:
    """Yield for each benchmark and system its cells by method."""
    for group, methods in groups.items():
        for system in systems:
            by_method = {method: cells[system] for method, cells in methods.items() if system in cells}
            if by_method:
                yield group, by_method


def _paper_value(group: str, cells: Mapping[str, Cell], method: str) -> float | None:
    return paper_value(next(iter(cells.values())).name, f"LogInfer-{group}-{method}", _MAIN.metric)
