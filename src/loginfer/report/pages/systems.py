"""The systems' pages: which there are, and of each the curves, scores, learning, time and memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from loginfer.evaluation.diagnosis import VERDICTS
from loginfer.evaluation.metric_table import headlines, metric_title
from loginfer.report import charts
from loginfer.report.charts import PALETTE
from loginfer.report.collection import Cell
from loginfer.report.facts import (
    Figure,
    ReportContext,
    benchmark_facts,
    benchmark_labels,
    classification_figures,
    cost_of,
    entry_of,
    ranked_by,
    rule_label,
)
from loginfer.report.scores import curve_rows, histogram_rows, learning_rows, scores_of_test, threshold_of
from loginfer.report.values import Chart, Column, DataFile, Grid, Page, Picker, Rows

_MB = 1_000_000
# What a diagnosis quotes.
_RULE = re.compile(r"`([^`]*)`")


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
    threshold, told = threshold_of(run)
    roc, precision_recall = curve_rows(scores, cell.metrics[0]["metrics"])
    histogram, axis = histogram_rows(scores, benchmark_facts(context, cell.benchmark).kinds, threshold)
    learning = learning_rows(cell.runs)
    diagnosis = run.diagnosis() or {}
    verdicts = diagnosis.get("verdicts", {})
    # A file or a baseline does not learn in steps.
    no_curve = "" if learning.rows else "This run has no learning curve: nothing was learned step by step."
    return {
        "charts": {
            "roc": roc.as_dict(),
            "pr": precision_recall.as_dict(),
            "scores": histogram.packed("kind", "bin", "weight"),
            "loss": learning.packed("measure"),
            "valid-accuracy": learning.packed("measure"),
            "verdicts": Rows.of(
                ("verdict", "rules"),
                [(verdict, verdicts.get(verdict, 0)) for verdict in VERDICTS] if any(verdicts.values()) else (),
            ).as_dict(),
        },
        "texts": {
            "chosen": _chosen(cell),
            "scores": f"{axis} {told}",
            "learning": no_curve,
            "diagnosis": _sentences(diagnosis.get("summary") or ["this run has no diagnosis"]),
        },
    }


def _chosen(cell: Cell) -> str:
    sizes = [f"{name} {100 * value:.1f} %" for name, value in _headline(cell)]
    seeds = "" if len(cell.runs) == 1 else f"; curves and scores are those of seed {cell.first.seed}"
    return f"{cell.benchmark}: {', '.join(sizes) or 'no figures'}{seeds}."


def _headline(cell: Cell) -> list[tuple[str, float]]:
    known = cell.metrics[0]["metrics"]
    names = ("balanced_accuracy", "roc_auc", "average_precision")
    return [(metric_title(name), known[name]) for name in names if known.get(name) is not None]


def _sentences(parts: Sequence[str]) -> str:
    """Return the sentences of a diagnosis, one a line, with short names in its rules."""
    shortened = [_RULE.sub(lambda found: f"`{rule_label(found[1])}`", part) for part in parts]
    return "\n".join(f"{part[:1].upper()}{part[1:]}." for part in shortened)


# -- the index ----------------------------------------------------------------------------------


def _index(context: ReportContext) -> Page:
    rows, points = [], []
    for system in context.collection.systems:
        cells = context.collection.of_system(system)
        entry = entry_of(cells[0].name)
        accuracy = _mean([cell.mean("balanced_accuracy") for cell in cells])
        costs = [cost_of(context, cell) for cell in cells]
        cpu = _total([cost.cpu_seconds for cost in costs])
        memory = max((cost.memory for cost in costs if cost.memory), default=None)
        kind = "own system" if entry is None else entry.kind
        rows.append(
            (
                (system, context.system_page(system)),
                kind,
                len(cells),
                accuracy,
                _mean([cell.mean("c_mrr", "filtered") for cell in cells]),
                None if cpu is None else round(cpu, 1),
                None if memory is None else round(memory / _MB),
                "" if entry is None else entry.summary,
            )
        )
        if accuracy is not None and cpu is not None:
            points.append((system, kind, len(cells), accuracy, max(cpu, 0.001)))
    columns = (
        Column("system", "link"),
        Column("kind"),
        Column("benchmarks", "number"),
        Column("balanced accuracy", "share"),
        Column("C-MRR, filtered", "share"),
        Column("CPU seconds", "number"),
        Column("peak memory (MB)", "number"),
        Column("what it does"),
    )
    caption = (
        "Means over the benchmarks that a system ran on, in percent; of each benchmark the mean over the "
        "seeds. CPU seconds are added up over the benchmarks, memory is the most that any run took."
    )
    fields = ("system", "kind", "benchmarks", "accuracy", "cpu")
    chart = charts.overview_chart(Rows.of(fields, points), context.collection.systems)
    content = {"grid": Grid(columns, tuple(rows), caption), "chart": chart if points else None}
    return Page("systems.html", "Systems", "systems.html", content, "systems")


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


# -- one system ---------------------------------------------------------------------------------


def _page(context: ReportContext, system: str) -> Page:
    cells = context.collection.of_system(system)
    entry = entry_of(cells[0].name)
    place = context.collection.systems.index(system)
    colour = PALETTE[place % len(PALETTE)]
    labels = benchmark_labels(context.collection.benchmark_names)
    options = [(labels[cell.benchmark], context.data_file("scores", system, cell.benchmark)) for cell in cells]
    content = {
        "entry": entry,
        "settings": _settings(cells, labels),
        "grid": _grid(context, cells, labels),
        "picker": Picker("benchmark", tuple(options)),
        "roc": charts.roc_chart(colour),
        "pr": charts.precision_recall_chart(colour),
        "scores": charts.histogram_chart(),
        "learning": _learning(cells, colour),
        "verdicts": charts.verdict_chart(),
        "costs": _costs(context, cells, labels, colour),
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
    wanted = {"loss": "Loss", "valid_accuracy": "Accuracy on valid"}
    return [charts.learning_chart(name, title, step, colour) for name, title in wanted.items() if name in measures]


def _settings(cells: Sequence[Cell], labels: dict[str, str]) -> Grid | None:
    """Return the settings and where they came from; those that differ between benchmarks, one a row."""
    found: dict[str, dict[tuple[str, str], list[str]]] = {}
    for cell in cells:
        manifest = cell.first.manifest
        origin = manifest.get("settings_from") or {}
        for name, value in manifest["request"]["settings"].items():
            source = next((kind for kind in ("user", "tuned") if name in origin.get(kind, ())), "default")
            ways = found.setdefault(name, {})
            ways.setdefault((_shown(value), source), []).append(labels[cell.benchmark])
    if not found:
        return None
    rows = [
        (name, value, source, "all" if len(ways) == 1 else ", ".join(where))
        for name, ways in found.items()
        for (value, source), where in ways.items()
    ]
    columns = (Column("setting"), Column("value"), Column("from"), Column("benchmarks"))
    caption = "From: `user` was given, `tuned` comes with the system for a graph, `default` is the system's own."
    return Grid(columns, tuple(rows), caption)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _grid(context: ReportContext, cells: Sequence[Cell], labels: dict[str, str]) -> Grid:
    protocol = ranked_by(cells)
    figures = classification_figures()
    if protocol is not None:
        figures += [Figure(name, f"{title}, {protocol}", protocol) for name, title in headlines("ranking").items()]
    columns = [Column("benchmark", "link"), *(figure.column for figure in figures)]
    columns += [Column(name, "number") for name in ("seconds", "CPU seconds", "memory (MB)", "seeds")]
    rows = []
    for cell in cells:
        cost = cost_of(context, cell)
        row: list[Any] = [(labels[cell.benchmark], context.benchmark_page(cell.benchmark))]
        row += [cell.mean(figure.metric, figure.protocol) for figure in figures]
        row += [_rounded(cost.seconds), _rounded(cost.cpu_seconds)]
        row += [None if cost.memory is None else round(cost.memory / _MB), len(cell.runs)]
        rows.append(tuple(row))
    caption = "In percent; means over the seeds."
    return Grid(tuple(columns), tuple(rows), caption, search=len(rows) > 20)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _costs(context: ReportContext, cells: Sequence[Cell], labels: dict[str, str], colour: str) -> list[Chart]:
    costs = [(labels[cell.benchmark], cost_of(context, cell)) for cell in cells]
    time = [(label, round(cost.cpu_seconds, 3)) for label, cost in costs if cost.cpu_seconds is not None]
    memory = [(label, round(cost.memory / _MB, 1)) for label, cost in costs if cost.memory is not None]
    made = (
        ("time", "Time", time, "CPU seconds", "Learning, scoring, ranking and diagnosis; the mean over the seeds."),
        ("memory", "Memory", memory, "peak memory (MB)", "The most that a run took, the benchmark included."),
    )
    return [
        charts.bar_chart(name, title, Rows.of(("benchmark", name), rows), name, heading, colour, caption)
        for name, title, rows, heading, caption in made
        if rows
    ]
