"""The pages about systems: a list of all, and for each its curves, scores, learning, time and memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loginfer.evaluation.metric_table import TEST_GROUPS, headlines, metric_title, published_text, shown_metrics
from loginfer.evaluation.runs import Run
from loginfer.report import vega
from loginfer.report.collection import Cell
from loginfer.report.facts import (
    Figure,
    ReportContext,
    benchmark_facts,
    benchmark_labels,
    classification_figures,
    diagnosis_of,
    entry_of,
    headline_figures,
    mean_of_known,
    protocols_of,
    rounded,
    rule_label,
)
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
from loginfer.report.values import Chart, Choice, DataFile, Grid, Page, Picker, Rows, columns, headings

_MB = 1_000_000
_THRESHOLD = "#b2182b"  # the colour of its mark
# A rule that a diagnosis quotes.
_RULE = re.compile(r"`([^`]*)`")
# What the plots of learning show, and what they are called.
_LEARNING = {"loss": "Loss", **VALID_FIGURES}


def pages(context: ReportContext) -> Iterator[Page | DataFile]:
    """Yield the files that the pages load, benchmark by benchmark, then the pages."""
    for benchmark in context.collection.benchmark_names:
        for cell in context.collection.of_benchmark(benchmark):
            context.tell(f"{cell.system} on {benchmark}")
            yield DataFile(context.data_file("scores", cell.system, benchmark), _cell_data(context, cell))
    yield _index(context)
    for system in context.collection.systems:
        yield _page(context, system)


# -- one system on one benchmark ----------------------------------------------------------------


def _cell_data(context: ReportContext, cell: Cell) -> dict[str, Any]:
    run = cell.first
    scores = scores_of_test(run)
    threshold, threshold_text = threshold_of(run)
    roc, precision_recall = curve_rows(scores, cell.metrics[0]["metrics"])
    histogram, axis_text = histogram_rows(scores, benchmark_facts(context, cell.benchmark).kinds, threshold)
    learning = learning_rows(cell.runs)
    diagnosis = diagnosis_of(cell)
    # A file or a baseline does not learn in steps.
    no_curve = "" if learning.rows else "This run has no learning curve: nothing was learned step by step."
    return {
        "charts": {
            "roc": roc.as_dict(),
            "pr": precision_recall.as_dict(),
            "reliability": reliability_rows(scores, run.calibration()).as_dict(),
            "scores": histogram.packed("kind", "bin", "weight"),
            **{_chart_name(measure): learning.packed("measure") for measure in _LEARNING},
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
    shortened = [_RULE.sub(lambda match: f"`{rule_label(match[1])}`", part) for part in parts]
    return "\n".join(f"{part[:1].upper()}{part[1:]}." for part in shortened)


# -- what runs took ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """What the runs of a cell took: mean time over the seeds, and the most memory; None if not recorded."""

    seconds: float | None
    cpu_seconds: float | None
    memory: int | None


def cost_of(context: ReportContext, cell: Cell) -> Cost:
    """Return what a cell took."""
    return context.once(("cost", cell.system, cell.benchmark), lambda: _cost(cell))


def _cost(cell: Cell) -> Cost:
    timings = [timing for timing in map(timing_of, cell.runs) if timing]
    wall = [sum(timing["seconds"].values()) for timing in timings if timing.get("seconds")]
    cpu = [timing["cpu_seconds"] for timing in timings if timing.get("cpu_seconds") is not None]
    memory = [timing["peak_memory_bytes"] for timing in timings if timing.get("peak_memory_bytes")]
    return Cost(mean_of_known(wall), mean_of_known(cpu), max(memory, default=None))


# -- the index ----------------------------------------------------------------------------------


def _index(context: ReportContext) -> Page:
    rows, dots = [], []
    main, *others = headline_figures(context.collection.cells)
    for system in context.collection.systems:
        cells = context.collection.of_system(system)
        entry = entry_of(cells[0].name)
        accuracy = mean_of_known([cell.mean(main.metric) for cell in cells])
        costs = [cost_of(context, cell) for cell in cells]
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
                *(mean_of_known([cell.mean(figure.metric) for cell in cells]) for figure in others),
                mean_of_known([cell.mean("c_mrr", "filtered") for cell in cells]),
                rounded(cpu, 1),
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
    fields = ("system", "kind", "benchmarks", "accuracy", "cpu")
    chart = overview_chart(Rows.of(fields, dots), context.collection.systems)
    content = {"grid": Grid(heads, tuple(rows), caption), "chart": chart if dots else None}
    return Page("systems.html", "Systems", "systems.html", content, "systems")


# -- one system ---------------------------------------------------------------------------------


def _page(context: ReportContext, system: str) -> Page:
    cells = context.collection.of_system(system)
    entry = entry_of(cells[0].name)
    number = context.collection.systems.index(system)
    colour = vega.PALETTE[number % len(vega.PALETTE)]
    labels = benchmark_labels(context.collection.benchmark_names)
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


def _grid(context: ReportContext, cells: Sequence[Cell], labels: dict[str, str]) -> Grid:
    protocol = next(iter(protocols_of(cells)), None)
    # There is no room for more: the text beside the plots has the others.
    figures = [f for f in classification_figures(cells) if f.metric in shown_metrics("classification", "pairs")]
    if protocol is not None:
        figures += [Figure(name, f"{title}, {protocol}", protocol) for name, title in headlines("ranking").items()]
    heads = (*columns("link", "benchmark"), *(figure.column for figure in figures))
    heads += columns("number", "seconds", "CPU seconds", "memory (MB)", "seeds")
    rows = []
    for cell in cells:
        cost = cost_of(context, cell)
        row: list[Any] = [(labels[cell.benchmark], context.benchmark_page(cell.benchmark))]
        row += [cell.mean(figure.metric, figure.protocol) for figure in figures]
        row += [rounded(cost.seconds, 1), rounded(cost.cpu_seconds, 1)]
        row += [None if cost.memory is None else round(cost.memory / _MB), len(cell.runs)]
        rows.append(tuple(row))
    caption = "In percent; means over the seeds."
    return Grid(heads, tuple(rows), caption, search=len(rows) > 20)


# -- all systems --------------------------------------------------------------------------------


def overview_chart(rows: Rows, systems: Sequence[str]) -> Chart:
    """Return how good the systems are against how long they take."""
    spec = {
        "mark": vega.points(size=130, opacity=0.9),
        "encoding": {
            "x": vega.quantity(
                "cpu", scale={"type": "log"}, axis={"title": "CPU seconds (log scale)", "format": ",~r", "tickCount": 6}
            ),
            "y": vega.share_axis("accuracy", "mean balanced accuracy"),
            "color": vega.system_colours(systems) | {"legend": {"orient": "top", "columns": 4}},
            "shape": vega.nominal("kind", title=None, legend=vega.SHAPES),
            "tooltip": [
                {"field": "system"},
                {"field": "kind"},
                vega.share_tip("accuracy", "balanced accuracy"),
                vega.number_tip("cpu", "CPU seconds", ",.1f"),
                {"field": "benchmarks"},
            ],
        },
    }
    return Chart(
        "quality-and-cost",
        "Quality against cost",
        vega.sized(spec, height=340),
        rows,
        headings("system", "kind", "benchmarks", accuracy="balanced accuracy", cpu="CPU seconds"),
        "Up and to the left is better. The time is that of the whole run: learning, scoring, ranking and the "
        "diagnosis. Systems that ran on fewer benchmarks took less time for that reason alone.",
    )


# -- one system, one benchmark ------------------------------------------------------------------


def roc_chart(colour: str) -> Chart:
    """Return the plot of a ROC curve; its rows are loaded."""
    caption = "The dashed line is what guessing gives; the red point is the threshold."
    names = ("negatives predicted (false-positive rate)", "positives predicted (recall)")
    return _curve_chart("roc", "ROC curve", caption, names, colour, [vega.diagonal("x", "y", strokeWidth=1)])


def precision_recall_chart(colour: str) -> Chart:
    """Return the plot of precision against recall; its rows are loaded."""
    caption = "The highest scores on the left, all test triples on the right; the red point is the threshold."
    names = ("positives predicted (recall)", "precision")
    return _curve_chart("pr", "Precision and recall", caption, names, colour, [])


def _curve_chart(
    name: str, title: str, caption: str, names: tuple[str, str], colour: str, under: list[dict[str, Any]]
) -> Chart:
    axes = dict(zip("xy", names, strict=True))
    position = {axis: vega.share_axis(axis, text, scale=vega.UNIT) for axis, text in axes.items()}
    curve = {
        "transform": vega.filtered("datum.part === 'curve'"),
        "mark": {"type": "line", "color": colour, "strokeWidth": 2.5},
        "encoding": {**position, "order": vega.quantity("place")},
    }
    mark = {
        "transform": vega.filtered("datum.part === 'threshold'"),
        "mark": vega.points(size=90, color=_THRESHOLD, opacity=1),
        "encoding": {**position, "tooltip": [vega.share_tip(axis, text) for axis, text in axes.items()]},
    }
    spec = {"transform": [{"window": [{"op": "row_number", "as": "place"}]}], "layer": [*under, curve, mark]}
    rows = Rows.of(("part", "x", "y"), ())
    return Chart(name, title, vega.sized(spec, height=320), rows, headings("part", **axes), caption)


def reliability_chart(colour: str) -> Chart:
    """Return the plot of how many triples are true against how likely they are said to be; its rows are loaded."""
    names = {"confidence": "mean confidence", "share": "positives among the test triples"}
    axes = {axis: vega.share_axis(name, names[name], scale=vega.UNIT) for axis, name in zip("xy", names, strict=True)}
    tooltip = [vega.share_tip(name, text) for name, text in names.items()]
    tooltip += [vega.share_tip("low", "95 % interval from"), vega.share_tip("high", "to")]
    layers = [
        vega.diagonal("confidence", "share", strokeWidth=1),
        {
            "mark": {"type": "rule", "color": colour, "strokeWidth": 2},
            "encoding": {**axes, "y": vega.share_axis("low", names["share"]), "y2": {"field": "high"}},
        },
        {
            "mark": vega.points(size=90, color=colour, opacity=1),
            "encoding": {**axes, "tooltip": [*tooltip, vega.number_tip("count", "test triples")]},
        },
    ]
    return Chart(
        "reliability",
        "Reliability of the confidences",
        vega.sized({"layer": layers}, height=320),
        Rows.of(("confidence", "share", "low", "high", "count"), ()),
        headings(**names, low="interval from", high="to", count="test triples"),
        "Each point: a tenth of the test triples and a 95 % interval. Below the dashed line the system is too sure.",
    )


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
    bars = {
        "transform": vega.filtered("datum.kind !== 'threshold'"),
        "mark": {"type": "bar", "binSpacing": 0},
        "encoding": {
            "x": bin_axis,
            "y": vega.quantity(
                "share",
                stack="zero",
                title="negatives ↓   share   positives ↑",
                axis={"labelExpr": "format(abs(datum.value), '.0%')"},
            ),
            # Positives come first; the kinds differ from benchmark to benchmark.
            "color": vega.nominal(
                "kind",
                title="test triples",
                sort=None,
                scale={"range": list(vega.PALETTE)},
                legend={"orient": "top", "columns": 2, "title": None},
            ),
            "order": vega.ordinal("kind"),
            "tooltip": [
                {"field": "kind", "title": "test triples"},
                *(vega.quantity(end, format=".4g") for end in ("from", "to")),
                vega.quantity("count", format=","),
            ],
        },
    }
    mark = {
        "transform": vega.filtered("datum.kind === 'threshold'"),
        "mark": {"type": "rule", "color": _THRESHOLD, "strokeWidth": 2, "strokeDash": [6, 3]},
        "encoding": {
            "x": {**bin_axis, "bandPosition": 0},
            "tooltip": [{"field": "from", "title": "threshold", "type": "quantitative"}],
        },
    }
    columns = {"kind": "test triples", "from": "score from", **headings("to", count="number", share="share")}
    weights = (("all", "as many as there are"), ("kind", "each kind the same"))
    return Chart(
        "scores",
        "Scores of positives against each kind of negative",
        vega.sized({"layer": [bars, mark]}, height=340),
        Rows.of(("kind", "bin", "place", "from", "to", "count", "share", "weight"), ()),
        columns,
        "Positives upwards, negatives downwards. What stands to the right of the dashed line is predicted to "
        "be true: bars upwards on its left were missed, bars downwards on its right are false alarms.",
        (Choice("weight", "negatives", weights),),
    )


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
        "tooltip": [
            {"field": "seed"},
            {"field": "step", "title": step},
            vega.number_tip("value", title, ".1%" if share else ".4g"),
        ],
    }
    line = {"mark": {"type": "line", "strokeWidth": 1.2, "color": colour, "opacity": 0.85}, "encoding": encoding}
    point = {"mark": vega.points(size=70, color=colour, opacity=1), "encoding": encoding}
    kept_point = {"transform": vega.filtered("datum.kept"), **point}
    spec = {"transform": vega.filtered(f"datum.measure === '{measure}'"), "layer": [line, kept_point]}
    return Chart(
        _chart_name(measure),
        title,
        vega.sized(spec, height=220),
        Rows.of(("seed", "step", "measure", "value", "kept"), ()),
        headings("seed", step=step) | headings("measure", "value", "kept"),
        "A line for each seed. The point marks the weights that were kept, where that is known.",
    )
