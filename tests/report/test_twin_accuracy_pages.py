"""Twin accuracy in the report: columns where some run has it, and intervals over pairs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.made_up_benchmarks import couples, paired

from loginfer.benchmark import load_benchmark, write_benchmark
from loginfer.evaluation import evaluate, load_run
from loginfer.report.collection import collect
from loginfer.report.facts import ReportContext
from loginfer.report.pages import benchmarks, overview, systems
from loginfer.report.pages.compare import compare_pages
from loginfer.report.statistics import RESAMPLES, Decisions, decisions_of, triple_intervals, twin_difference
from loginfer.report.tables import result_table
from loginfer.report.values import Page


@pytest.fixture(scope="module", params=["global", "relation"])
def collection(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write_benchmark(paired(), folder / "bench")
    benchmark = load_benchmark(folder / "bench")
    for system, options in (("simpbl", {}), ("transe", {"epochs": 3})):
        evaluate(benchmark, system, settings=options, threshold=request.param, out=folder / "runs" / system)
    return collect([folder])


def grids(pages):
    """The titles of the columns of each table, and its rows."""
    pages = [page for page in pages if isinstance(page, Page)]
    tables = [value for page in pages for value in page.content.values() if hasattr(value, "columns")]
    tables = [table for table in tables if hasattr(table, "rows") and not hasattr(table, "spec")]
    return [([column.title for column in table.columns], table.rows) for table in tables]


@pytest.mark.parametrize(("page", "tables"), [(systems, 3), (benchmarks, 1)])
def test_it_is_a_column_next_to_balanced_accuracy(collection, page, tables):
    context = ReportContext(collection)
    titles = [titles for titles, _ in grids(page.pages(context)) if "balanced accuracy" in titles]
    assert len(titles) == tables
    assert all("twin accuracy" in columns for columns in titles)
    value = collection.cell("transe", collection.benchmark_names[0]).mean("twin_accuracy")
    assert any(
        row[columns.index("twin accuracy")] == pytest.approx(value, abs=1e-5)
        for columns, rows in grids(page.pages(context))
        if "twin accuracy" in columns
        for row in rows
        if any("transe" in str(cell) for cell in row) or page is systems
    )


def test_tables_for_papers_have_it(collection):
    table = result_table(collection, "twin_accuracy")
    assert table.title == "Twin accuracy, in percent"


def test_the_overview_has_its_interval_over_pairs(collection):
    rows = overview_rows(collection)
    for cell in collection.cells:
        (row,) = [r for r in rows if (r["system"], r["metric"]) == (cell.system, "twin_accuracy")]
        assert row["over"] == "pairs"
        assert row["count"] == len(decisions_of(cell.first).twins) > 5
        assert row["low"] <= row["value"] <= row["high"]


def overview_rows(collection):
    rows = overview.figure_rows(ReportContext(collection))
    return [dict(zip(rows.fields, row, strict=True)) for row in rows.rows]


def test_two_systems_are_compared_by_it(collection):
    a, b = collection.cells
    (page,) = [page for page in compare_pages(ReportContext(collection), a, b) if isinstance(page, Page)]
    (row,) = [row for row in page.content["figures"].rows if row[0] == "twin accuracy"]
    mine, theirs = a.mean("twin_accuracy"), b.mean("twin_accuracy")
    assert row[1:4] == pytest.approx((mine, theirs, mine - theirs), abs=2e-5)
    assert row[4] <= row[3] <= row[5]


def test_intervals_are_those_of_plain_resampling_of_the_pairs():
    draw = np.random.default_rng(0)
    first, second = (draw.choice([0, 0.5, 1], 200, p=p) for p in ((0.2, 0.1, 0.7), (0.4, 0.2, 0.4)))
    sides = (np.ones(2), np.zeros(2), None, None)
    found = triple_intervals(Decisions(*sides, first), "a")["twin_accuracy"]
    rows = draw.integers(200, size=(20 * RESAMPLES, 200))
    assert (found.low, found.high) == pytest.approx(np.quantile(first[rows].mean(axis=1), (0.025, 0.975)), abs=0.02)
    difference, interval = twin_difference(Decisions(*sides, first), Decisions(*sides, second), "a", "b")
    assert difference == pytest.approx(first.mean() - second.mean())
    ends = np.quantile((first - second)[rows].mean(axis=1), (0.025, 0.975))
    assert (interval.low, interval.high) == pytest.approx(ends, abs=0.02)


def test_a_run_without_twins_has_no_difference():
    sides = (np.ones(2), np.zeros(2), None, None)
    assert twin_difference(Decisions(*sides), Decisions(*sides), "a") is None
    assert twin_difference(Decisions(*sides, np.ones(3)), Decisions(*sides), "a") is None


def test_without_twins_no_page_tells_of_them(tmp_path):
    evaluate(couples(16), "simpbl", out=tmp_path / "run")
    collection = collect([tmp_path])
    assert "twin_accuracy" not in {row["metric"] for row in overview_rows(collection)}
    assert not len(decisions_of(load_run(tmp_path / "run")).twins)
    for page in (systems, benchmarks, overview):
        assert all("twin accuracy" not in titles for titles, _ in grids(page.pages(ReportContext(collection))))
