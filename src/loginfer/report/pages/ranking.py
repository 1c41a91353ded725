"""The page about ranking: how much figures depend on the tie rule, and how many competitors there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.evaluation.metric_table import shown_metrics
from loginfer.evaluation.predictions import TIES
from loginfer.report import vega
from loginfer.report.collection import Cell
from loginfer.report.facts import (
    Figure,
    ReportContext,
    benchmark_labels,
    mean_of_known,
    paper_figure,
    protocols_of,
    rounded,
)
from loginfer.report.values import Chart, Choice, DataFile, Grid, Page, Picker, Rows, columns, headings
from loginfer.systems.interface import POSITIONS

# Numbers of competitors that are counted together, by the first of them.
_BINS = (0, 1, 2, 4, 11, 101, 1001, 10_001, 100_001)

_RANGE_FIELDS = ("protocol", "metric", "system", *TIES, "paper", "seeds")
_BIN_FIELDS = ("position", "protocol", "competitors", "share", "triples")


def pages(context: ReportContext) -> Iterator[Page | DataFile]:
    """Make a file of data for each benchmark that has ranks, and the page if there are any."""
    collection = context.collection
    protocols = protocols_of(collection.cells)
    labels = benchmark_labels(collection.benchmark_names)
    options, counted = [], []
    for benchmark in collection.benchmark_names:
        cells = collection.of_benchmark(benchmark)
        ranges = _range_rows(cells, protocols)
        if not ranges:
            continue
        bins: list[tuple[Any, ...]] = []
        link = (labels[benchmark], context.benchmark_page(benchmark))
        for protocol, position, competitors in _competitors(cells, protocols):
            bins += _bin_rows(protocol, position, competitors)
            counted.append((link, protocol, position, *_summary(competitors)))
        path = context.data_file("ranking", benchmark)
        charts = {
            "ranges": Rows.of(_RANGE_FIELDS, ranges).as_dict(),
            "competitors": Rows.of(_BIN_FIELDS, bins).as_dict(),
        }
        yield DataFile(path, {"charts": charts})
        options.append((labels[benchmark], path))
    if not options:
        return
    content = {
        "picker": Picker("benchmark", tuple(options)),
        "ranges": _range_chart(collection.systems, protocols),
        "competitors": _bin_chart(protocols),
        "table": _grid(counted),
        "given": _given(counted),
    }
    yield Page("ranking.html", "Ranking", "ranking.html", content, "ranking")


# -- from optimistic to pessimistic -------------------------------------------------------------


def _range_rows(cells: Sequence[Cell], protocols: Sequence[str]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for protocol in protocols:
        for metric, title in shown_metrics("ranking").items():
            for cell in cells:
                values = [_tied_mean(cell, protocol, tie, metric) for tie in TIES]
                if values[0] is not None:
                    paper = paper_figure(cell, Figure(metric, title, protocol))
                    rows.append((protocol, metric, cell.system, *map(rounded, values), rounded(paper), len(cell.runs)))
    return rows


def _tied_mean(cell: Cell, protocol: str, tie: str, metric: str) -> float | None:
    """Return the mean over the seeds by one tie rule."""
    values = [run["ranking"][protocol]["ties"][tie].get(metric) for run in cell.metrics if protocol in run["ranking"]]
    return mean_of_known(values)


def _range_chart(systems: Sequence[str], protocols: Sequence[str]) -> Chart:
    tooltip = [vega.nominal("system"), *(vega.quantity(tie, format=".1%") for tie in TIES), vega.quantity("seeds")]
    across: dict[str, Any] = {"title": None, "axis": {"format": ".0%", "orient": "top"}}
    colour = {**vega.system_colours(systems), "legend": None}
    diamond = {"type": "point", "shape": "diamond", "size": 55, "strokeWidth": 1.5, "color": "#888888"}
    spec = vega.sized(
        {
            "encoding": {"y": vega.nominal("system", sort=list(systems), title=None), "tooltip": tooltip},
            "layer": [
                {
                    "mark": {"type": "bar", "height": 12, "cornerRadius": 3, "opacity": 0.45},
                    "encoding": {
                        "x": vega.quantity("pessimistic", **across, scale=vega.UNIT),
                        "x2": {"field": "optimistic"},
                        "color": colour,
                    },
                },
                {
                    "mark": {"type": "tick", "thickness": 3, "size": 18},
                    "encoding": {"x": vega.quantity("realistic", **across), "color": colour},
                },
                {
                    "transform": vega.filtered("isValid(datum.paper)"),
                    "mark": diamond,
                    "encoding": {
                        "x": vega.quantity("paper", **across),
                        "tooltip": [vega.nominal("system"), vega.quantity("paper", format=".1%", title="paper")],
                    },
                },
            ],
        },
        height=26 * len(systems) + 20,
    )
    return Chart(
        "ranges",
        "From pessimistic to optimistic",
        spec,
        Rows.of(_RANGE_FIELDS, []),
        headings("protocol", "metric", "system", "pessimistic", "realistic", "optimistic", "paper", "seeds"),
        "The bar goes from pessimistic (competitors with the same score come first) to optimistic (they come "
        "last); the tick is realistic, the mean of both ranks. A diamond is the value in a paper.",
        (Choice.among("protocol", protocols), Choice("metric", "metric", tuple(shown_metrics("ranking").items()))),
    )


# -- competitors --------------------------------------------------------------------------------


def _competitors(cells: Sequence[Cell], protocols: Sequence[str]) -> Iterator[tuple[str, str, npt.NDArray[np.int64]]]:
    """Yield how many competitors each test triple has; one run is enough, since the benchmark decides that."""
    remaining = set(protocols)
    for cell in cells:
        present = remaining & set(cell.metrics[0]["ranking"])
        if present:
            remaining -= present
            for ranks in cell.first.ranks():
                if ranks.protocol in present and len(ranks.competitors):
                    yield ranks.protocol, ranks.position, ranks.competitors


def _summary(competitors: npt.NDArray[np.int64]) -> tuple[int, float, float, float]:
    return (
        len(competitors),
        float(competitors.mean()),
        float(np.median(competitors)),
        float((competitors == 0).mean()),
    )


def _bin_names() -> list[str]:
    names = [f"{low:,}" if low + 1 == high else f"{low:,} to {high - 1:,}" for low, high in pairwise(_BINS)]
    return [*names, f"{_BINS[-1]:,} and more"]


def _bin_rows(
    protocol: str, position: str, competitors: npt.NDArray[np.int64]
) -> list[tuple[str, str, str, float, int]]:
    bins = np.searchsorted(_BINS, competitors, side="right") - 1
    counts = np.bincount(bins, minlength=len(_BINS)).tolist()
    return [
        (position, protocol, name, round(count / len(competitors), 5), count)
        for name, count in zip(_bin_names(), counts, strict=True)
    ]


def _bin_chart(protocols: Sequence[str]) -> Chart:
    colour = vega.system_colours(protocols, field="protocol", title="protocol")
    spec = vega.sized(
        {
            "mark": {"type": "bar"},
            "encoding": {
                "y": vega.ordinal("competitors", sort=_bin_names(), title="competitors"),
                "yOffset": {"field": "protocol", "sort": list(protocols)},
                "x": vega.share_axis("share", "test triples", zero=True),
                "color": {**colour, "legend": {"orient": "top"}},
                "tooltip": [
                    vega.nominal("protocol"),
                    vega.nominal("competitors"),
                    vega.quantity("share", format=".1%"),
                    vega.quantity("triples", format=","),
                ],
            },
        },
        height=300,
    )
    return Chart(
        "competitors",
        "How many competitors a test triple has",
        spec,
        Rows.of(_BIN_FIELDS, []),
        headings("position", "protocol", "competitors", share="share of the test triples", triples="test triples"),
        "The position is the one that is replaced. A triple without any competitor has rank 1 whatever the "
        "system says.",
        (Choice.among("position", ("object", "subject", "relation")),),
    )


def _grid(counted: Sequence[tuple[Any, ...]]) -> Grid:
    heads = (*columns("link", "benchmark"), *columns("text", "protocol", "position"))
    heads += (*columns("number", "test triples", "competitors, mean", "median"), *columns("share", "without any, %"))
    return Grid(heads, tuple(counted), "Competitors of the test triples.", True)


def _given(counted: Sequence[tuple[Any, ...]]) -> dict[str, Any] | None:
    """Return the competitors under the protocol `given`, over all benchmarks and positions; None without it."""
    given_rows = [row for row in counted if row[1] == "given"]
    if not given_rows:
        return None
    ranks = sum(row[3] for row in given_rows)
    alone = sum(row[3] * row[6] for row in given_rows) / ranks
    by_position = {position: [row for row in given_rows if row[2] == position] for position in POSITIONS}
    means = [
        (position, sum(row[3] * row[4] for row in rows) / sum(row[3] for row in rows))
        for position, rows in by_position.items()
        if rows
    ]
    return {"alone": alone, "means": means}
