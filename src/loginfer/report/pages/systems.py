"""The pages about systems: a list of all, and for each its curves, scores, learning, time and memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loginfer.evaluation.metric_table import TEST_GROUPS, headlines, metric_title, published_text, shown_metrics
from loginfer.evaluation.runs import Run
from loginfer.report import facts, vega
from loginfer.report.collection import Cell
from loginfer.report.scores import (
    VALID_FIGURES,
    curve_rows,
    histogram_rows,
    learning_rows,
    reliability_rows,
    scores_of_test,
    threshold_of,
    timing_of,
)
from loginfer.report.values import Chart, Choice, DataFile, Grid, Page, Picker, columns, loaded_rows

_MB = 1_000_000
_THRESHOLD = "#b2182b"  # the colour of its mark
# A rule that a diagnosis quotes.
_RULE = re.compile(r"`([^`]*)`")
# What the plots of learning show, and what they are called.
_LEARNING = {"loss": "Loss", **VALID_FIGURES}


def pages(context: facts.ReportContext) -> Iterator[Page | DataFile]:
    """Yield the files that the pages load, benchmark by benchmark, then the pages."""
    for benchmark in context.collection.benchmark_names:
        for cell in context.collection.of_benchmark(benchmark):
            context.tell(f"{cell.system} on {benchmark}")
            yield DataFile(context.data_file("scores", cell.system, benchmark), _cell_data(context, cell))
    yield _index(context)
    for system in context.collection.systems:
        yield _page(context, system)


# -- one system on one benchmark ----------------------------------------------------------------


def _cell_data(context: facts.ReportContext, cell: Cell) -> dict[str, Any]:
    run = cell.first
    scores = scores_of_test(run)
    threshold, threshold_text = threshold_of(run)
    roc, precision_recall = curve_rows(scores, cell.metrics[0]["metrics"])
    histogram, axis_text = histogram_rows(scores, facts.benchmark_facts(context, cell.benchmark).kinds, threshold)
    learning = learning_rows(cell.runs)
    diagnosis = facts.diagnosis_of(cell)
    # A file or a baseline does not learn in steps.
    no_curve = "" if learning.rows else "This run has no learning curve: nothing was learned step by step."
    return {
        "charts": {
            "roc": roc.as_dict(),
            "pr": precision_recall.as_dict(),
            "reliability": reliability_rows(scores, run.calibration()).as_dict(),
            "scores": loaded_rows("scores", histogram),
            **{_chart_name(measure): loaded_rows("learning", learning) for measure in _LEARNING},
        },
        "texts": {
            "chosen": f"{_benchmark_text(cell)} {_confidences(run)}",
            "scores": f"{axis_text} {threshold_text}" if histogram.rows else "",
            "learning": no_curve,
            "diagnosis": _sentences(diagnosis.get("summary") or ["this run has no diagnosis"]),
        },
    }


def _confidences(run: Run) -> str:
    if run.method is None:
        return "Without negatives there are no confidences, and nothing is decided: ranks are the result."
    if (calibration := run.calibration()) is None:
        return "No confidences: valid lacks positives or negatives, or an earlier version wrote the run."
    way = "Platt scaling" if calibration.kind == "platt" else "isotonic regression"
    return f"Confidences come from {way} on valid."


def _benchmark_text(cell: Cell) -> str:
    figures = [f"{name} {100 * value:.1f} %" for name, value in _headline(cell)]
    if text := published_text(cell.first.as_dict()):
        figures.append(text)
    seeds = "" if len(cell.runs) == 1 else f"; curves and scores are those of seed {cell.first.seed}"
    return f"{cell.benchmark}: {', '.join(figures) or 'no figures'}{seeds}."


def _headline(cell: Cell) -> list[tuple[str, float]]:
    metrics = cell.metrics[0]["metrics"]
    names = (*headlines(*TEST_GROUPS), "roc_auc", "average_precision", *shown_metrics("calibration"))
    return [(metric_title(name), metrics[name]) for name in names if metrics.get(name) is not None]


def _sentences(parts: Sequence[str]) -> str:
    """Return the sentences of a diagnosis, one a line, with short names in its rules."""
    shortened = [_RULE.sub(lambda match: f"`{facts.rule_label(match[1])}`", part) for part in parts]
    return "\n".join(f"{part[:1].upper()}{part[1:]}." for part in shortened)


# -- what runs took ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """What the runs of a cell took: mean time over the seeds, and the most memory; None if not recorded."""

    seconds: float | None
    cpu_seconds: float | None
    memory: int | None


def cost_of(cell: Cell) -> Cost:
    """Return what a cell took."""
    timings = [timing for timing in map(timing_of, cell.runs) if timing]
    wall = [sum(timing["seconds"].values()) for timing in timings if timing.get("seconds")]
    cpu = [timing["cpu_seconds"] for timing in timings if timing.get("cpu_seconds") is not None]
    memory = [timing["peak_memory_bytes"] for timing in timings if timing.get("peak_memory_bytes")]
    return Cost(facts.mean_of_known(wall), facts.mean_of_known(cpu), max(memory, default=None))


# -- the index ----------------------------------------------------------------------------------


def _index(context: facts.ReportContext) -> Page:
    rows, dots = [], []
    main, *others = facts.headline_figures(context.collection.cells)
    for system in context.collection.systems:
        cells = context.collection.of_system(system)
        entry = facts.entry_of(cells[0].name)
        accuracy = facts.mean_of_known([cell.mean(main.metric) for cell in cells])
        costs = [cost_of(cell) for cell in cells]
        cpu_seconds = [cost.cpu_seconds for cost in costs if cost.cpu_seconds is not None]
        cpu = sum(cpu_seconds) if cpu_seconds else None
        memory = max((cost.memory for cost in costs if cost.memory), default=None)
        kind = "own system" if entry is None else entry.kind
        rows.append(
            (
                (system, context.system_page(system)),
                kind,
                len(cells),
                accuracy,
                *(facts.mean_of_known([cell.mean(figure.metric) for cell in cells]) for figure in others),
                facts.mean_of_known([cell.mean("c_mrr", "filtered") for cell in cells]),
                facts.rounded(cpu, 1),
                None if memory is None else round(memory / _MB),
                "" if entry is None else entry.summary,
            )
        )
        if accuracy is not None and cpu is not None:
            dots.append((system, kind, len(cells), accuracy, max(cpu, 0.001)))
    heads = (*columns("link", "system"), *columns("text", "kind"), *columns("number", "benchmarks"))
    heads += (main.column, *(figure.column for figure in others), *columns("share", "C-MRR, filtered"))
    heads += (*columns("number", "CPU seconds", "peak memory (MB)"), *columns("text", "what it does"))
    caption = (
        "Means over the benchmarks that a system ran on, in percent; of each benchmark the mean over the "
        "seeds. CPU seconds are added up over the benchmarks, memory is the most that any run took."
    )
    chart = overview_chart(dots, context.collection.systems)
    content = {"grid": Grid(heads, tuple(rows), caption), "chart": chart if dots else None}
    return Page("systems.html", "Systems", "systems.html", content, "systems")


# -- one system ---------------------------------------------------------------------------------


def _page(context: facts.ReportContext, system: str) -> Page:
    cells = context.collection.of_system(system)
    entry = facts.entry_of(cells[0].name)
    number = context.collection.systems.index(system)
    colour = vega.PALETTE[number % len(vega.PALETTE)]
    labels = context.labels
    options = [(labels[cell.benchmark], context.data_file("scores", system, cell.benchmark)) for cell in cells]
    content = {
        "entry": entry,
        "settings": _settings(cells, labels),
        "grid": _grid(context, cells, labels),
        "picker": Picker("benchmark", tuple(options)),
        "roc": roc_chart(colour),
        "pr": precision_recall_chart(colour),
        "reliability": reliability_chart(colour),
        "scores": histogram_chart(),
        "learning": _learning(cells, colour),
        "notes": list(dict.fromkeys(note for cell in cells for run in cell.runs for note in run.manifest["notes"])),
    }
    title = system if entry is None or cells[0].name != system else entry.title
    return Page(context.system_page(system), title, "system.html", content, "systems")


def _learning(cells: Sequence[Cell], colour: str) -> list[Chart]:
    """Return the plots of learning; none if no run has a learning curve."""
    curves = [run.curve() or [] for cell in cells for run in cell.runs]
    first = next((rows[0] for rows in curves if rows), None)
    if first is None:
        return []
    step = "epoch" if "epoch" in first else "step"
    measures = {name for rows in curves for row in rows for name in row}
    return [learning_chart(name, title, step, colour) for name, title in _LEARNING.items() if name in measures]


def _settings(cells: Sequence[Cell], labels: dict[str, str]) -> Grid | None:
    """Return the settings and where they came from; those that differ between benchmarks, one a row."""
    values: dict[str, dict[tuple[str, str], list[str]]] = {}
    for cell in cells:
        manifest = cell.first.manifest
        origin = manifest.get("settings_from") or {}
        for name, value in manifest["request"]["settings"].items():
            source = next((kind for kind in ("user", "tuned") if name in origin.get(kind, ())), "default")
            source += f" for {origin['graph']}" if source == "tuned" and "graph" in origin else ""
            ways = values.setdefault(name, {})
            ways.setdefault((_setting_text(value), source), []).append(labels[cell.benchmark])
    if not values:
        return None
    rows = [
        (name, value, source, "all" if len(ways) == 1 else ", ".join(where))
        for name, ways in values.items()
        for (value, source), where in ways.items()
    ]
    heads = columns("text", "setting", "value", "from", "benchmarks")
    caption = "From: the user gave it, it was tuned for a graph, or it is the system's default."
    return Grid(heads, tuple(rows), caption)


def _setting_text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _grid(context: facts.ReportContext, cells: Sequence[Cell], labels: dict[str, str]) -> Grid:
    protocol = next(iter(facts.protocols_of(cells)), None)
    # There is no room for more: the text beside the plots has the others.
    figures = [f for f in facts.classification_figures(cells) if f.metric in shown_metrics("classification", "pairs")]
    if protocol is not None:
        figures += [
            facts.Figure(name, f"{title}, {protocol}", protocol) for name, title in headlines("ranking").items()
        ]
    heads = (*columns("link", "benchmark"), *(figure.column for figure in figures))
    heads += columns("number", "seconds", "CPU seconds", "memory (MB)", "seeds")
    rows = []
    for cell in cells:
        cost = cost_of(cell)
        row: list[Any] = [(labels[cell.benchmark], context.benchmark_page(cell.benchmark))]
        row += [cell.mean(figure.metric, figure.protocol) for figure in figures]
        row += [facts.rounded(cost.seconds, 1), facts.rounded(cost.cpu_seconds, 1)]
        row += [None if cost.memory is None else round(cost.memory / _MB), len(cell.runs)]
        rows.append(tuple(row))
    caption = "In percent; means over the seeds."
    return Grid(heads, tuple(rows), caption, search=len(rows) > 20)


# -- all systems --------------------------------------------------------------------------------


def overview_chart(rows: Sequence[tuple[Any, ...]], systems: Sequence[str]) -> Chart:
    """Return how good the systems are against how long they take."""
    axis = {"title": "CPU seconds (log scale)", "format": ",~r", "tickCount": 6}
    spec = vega.layer(
        vega.points(size=130, opacity=0.9),
        x=vega.quantity("cpu", scale={"type": "log"}, axis=axis),
        y=vega.share_axis("accuracy", "mean balanced accuracy"),
        color=vega.system_colours(systems) | {"legend": {"orient": "top", "columns": 4}},
        shape=vega.nominal("kind", title=None, legend=vega.SHAPES),
        tooltip=vega.tooltip("quality-and-cost"),
    )
    return Chart.declared("quality-and-cost", vega.sized(spec, height=340), rows)


# -- one system, one benchmark ------------------------------------------------------------------


def roc_chart(colour: str) -> Chart:
    """Return the plot of a ROC curve; its rows are loaded."""
    return _curve_chart("roc", colour, vega.diagonal("x", "y", strokeWidth=1))


def precision_recall_chart(colour: str) -> Chart:
    """Return the plot of precision against recall; its rows are loaded."""
    return _curve_chart("pr", colour)


def _curve_chart(name: str, colour: str, *under: dict[str, Any]) -> Chart:
    axes = {axis: vega.declared(name)["columns"][axis] for axis in "xy"}
    position = {axis: vega.share_axis(axis, text, scale=vega.UNIT) for axis, text in axes.items()}
    line = {"type": "line", "color": colour, "strokeWidth": 2.5}
    point = vega.points(size=90, color=_THRESHOLD, opacity=1)
    curve = vega.layer(line, "datum.part === 'curve'", **position, order=vega.quantity("place"))
    tooltip = [vega.share_tip(axis, text) for axis, text in axes.items()]
    mark = vega.layer(point, "datum.part === 'threshold'", **position, tooltip=tooltip)
    spec = {"transform": [{"window": [{"op": "row_number", "as": "place"}]}], "layer": [*under, curve, mark]}
    return Chart.declared(name, vega.sized(spec, height=320))


def reliability_chart(colour: str) -> Chart:
    """Return the plot of how many triples are true against how likely they are said to be; its rows are loaded."""
    names, fields = vega.declared("reliability")["columns"], ("confidence", "share")
    axes = {axis: vega.share_axis(name, names[name], scale=vega.UNIT) for axis, name in zip("xy", fields, strict=True)}
    ends = {**axes, "y": vega.share_axis("low", names["share"]), "y2": {"field": "high"}}
    layers = [
        vega.diagonal("confidence", "share", strokeWidth=1),
        vega.layer({"type": "rule", "color": colour, "strokeWidth": 2}, **ends),
        vega.layer(vega.points(size=90, color=colour, opacity=1), **axes, tooltip=vega.tooltip("reliability")),
    ]
    return Chart.declared("reliability", vega.sized({"layer": layers}, height=320))


# Labels of bins are long where only many digits tell them apart.
_SHORT = "length(datum.label) > 8 ? format(toNumber(replace(datum.label, '−', '-')), '.3~g') : datum.label"


def histogram_chart() -> Chart:
    """Return the plot of the scores of positives, upwards, and negatives by kind, downwards."""
    bin_axis = vega.ordinal(
        "bin",
        sort={"field": "place", "op": "min"},
        title="score",
        scale={"paddingInner": 0.1, "paddingOuter": 0.1},
        axis={
            "labelOverlap": "greedy",
            "labelSeparation": 6,
            "labelAngle": 0,
            "ticks": False,
            "labelBound": True,
            "labelExpr": _SHORT,
        },
    )
    share_axis, title = {"labelExpr": "format(abs(datum.value), '.0%')"}, "negatives ↓   share   positives ↑"
    kinds, legend = {"range": list(vega.PALETTE)}, {"orient": "top", "columns": 2, "title": None}
    bars = vega.layer(
        {"type": "bar", "binSpacing": 0},
        "datum.kind !== 'threshold'",
        x=bin_axis,
        y=vega.quantity("share", stack="zero", title=title, axis=share_axis),
        # Positives come first; the kinds differ from benchmark to benchmark.
        color=vega.nominal("kind", title="test triples", sort=None, scale=kinds, legend=legend),
        order=vega.ordinal("kind"),
        tooltip=vega.tooltip("scores"),
    )
    mark = vega.layer(
        {"type": "rule", "color": _THRESHOLD, "strokeWidth": 2, "strokeDash": [6, 3]},
        "datum.kind === 'threshold'",
        x={**bin_axis, "bandPosition": 0},
        tooltip=[{"field": "from", "title": "threshold", "type": "quantitative"}],
    )
    weights = (("all", "as many as there are"), ("kind", "each kind the same"))
    spec = vega.sized({"layer": [bars, mark]}, height=340)
    return Chart.declared("scores", spec, None, Choice("weight", "negatives", weights))


def _chart_name(measure: str) -> str:
    return measure.replace("_", "-")


def learning_chart(measure: str, title: str, step: str, colour: str) -> Chart:
    """Return the plot of the loss or the figure on valid, a line for each seed."""
    share = measure in VALID_FIGURES
    loss = vega.quantity("value", title="loss", scale={"zero": False})
    encoding = {
        "x": vega.quantity("step", title=step, axis={"tickMinStep": 1}),
        "y": vega.share_axis("value", title) if share else loss,
        "detail": vega.nominal("seed"),
        "tooltip": vega.tooltip("learning", step=step, title=title, format=".1%" if share else ".4g"),
    }
    line = vega.layer({"type": "line", "strokeWidth": 1.2, "color": colour, "opacity": 0.85}, **encoding)
    kept_point = vega.layer(vega.points(size=70, color=colour, opacity=1), "datum.kept", **encoding)
    spec = {"transform": vega.filtered(f"datum.measure === '{measure}'"), "layer": [line, kept_point]}
    chart = Chart.declared("learning", vega.sized(spec, height=220), title=title, step=step)
    return replace(chart, name=_chart_name(measure))
