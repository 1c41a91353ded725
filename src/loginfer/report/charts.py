"""Plots of the report for notebooks and papers: Vega-Lite that Altair reads.

>>> from loginfer.report import charts
>>> charts.accuracy_chart("runs").save("accuracy.svg")  # doctest: +SKIP
>>> altair.Chart.from_dict(charts.heat_map("runs").to_dict())  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from loginfer.errors import InputError
from loginfer.evaluation.evaluating import Evaluation
from loginfer.evaluation.runs import Run, write_run
from loginfer.report import vega
from loginfer.report.collection import Collection, collect
from loginfer.report.facts import ReportContext, ReportOptions
from loginfer.report.pages import overview, systems
from loginfer.report.scores import curve_rows, reliability_rows, scores_of_test
from loginfer.report.values import Chart

# A folder of runs (and of benchmarks, which say what shortcuts reach), a run, or what `evaluate` returned.
Source = str | Path | Run | Evaluation
Sources = Source | Collection | Iterable[Source]


def accuracy_chart(runs: Sources) -> Chart:
    """Return the systems with their intervals, best first, beside the best shortcut and the oracle."""
    return _drawn(runs, overview.accuracy_chart)


def learned_chart(runs: Sources) -> Chart:
    """Return how many rules each system learned, replaced by a shortcut, or did not learn."""
    return _drawn(runs, overview.learned_chart)


def heat_map(runs: Sources) -> Chart:
    """Return the balanced accuracy of all systems on all benchmarks."""
    return _drawn(runs, overview.heat_map)


def curve_chart(run: Sources) -> Chart:
    """Return the ROC curve of one run, with its threshold."""
    return _drawn(run, _curve)


def _curve(context: ReportContext) -> Chart:
    run = _only_run(context)
    roc, _ = curve_rows(scores_of_test(run), run.metrics()["metrics"])
    return replace(systems.roc_chart(vega.PALETTE[0]), rows=roc)


def reliability_chart(run: Sources) -> Chart:
    """Return how many triples are true against how likely one run says they are."""
    return _drawn(run, _reliability)


def _reliability(context: ReportContext) -> Chart:
    run = _only_run(context)
    rows = reliability_rows(scores_of_test(run), run.calibration())
    return replace(systems.reliability_chart(vega.PALETTE[0]), rows=rows)


def _only_run(context: ReportContext) -> Run:
    cells = context.collection.cells
    if len(cells) > 1 or context.collection.light:
        raise InputError("a curve is that of one run with its scores", hint="give the run's folder")
    return cells[0].first


def _drawn(runs: Sources, draw: Callable[[ReportContext], Chart]) -> Chart:
    if isinstance(runs, Collection):
        return draw(ReportContext(runs, ReportOptions(audits=False)))
    sources = [runs] if isinstance(runs, Source) else list(runs)
    paths: list[str | Path] = []
    with TemporaryDirectory() as folder:
        for number, source in enumerate(sources):
            path = Path(folder) / str(number)
            if isinstance(source, Evaluation):
                write_run(source, path, weights=False)
            paths.append(source if isinstance(source, str | Path) else source.path if isinstance(source, Run) else path)
        return draw(ReportContext(collect(paths), ReportOptions(audits=False)))
