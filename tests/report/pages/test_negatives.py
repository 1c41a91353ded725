"""The page about the impact of negatives."""

import pytest
from tests.support.chart_checks import check_chart, parts_of, rows_of

from loginfer.report.collection import Collection, collect
from loginfer.report.facts import ReportContext
from loginfer.report.pages.negatives import pages
from loginfer.report.paper import paper_value
from loginfer.report.site import write_site


def test_a_folder_with_two_methods_is_one_line_for_each_system(small_runs):
    collection = collect([small_runs])
    page, _ = parts_of(pages(ReportContext(collection)))
    rows = [row for row in rows_of(page.content["chart_"]) if row["metric"] == "balanced_accuracy"]
    assert len(rows) == 6
    for row in rows:
        cell = collection.cell(row["system"], f"Family & co, {row['method']}")
        assert row["value"] == pytest.approx(cell.mean("balanced_accuracy"), abs=1e-5)
        assert (row["group"], row["source"]) == ("Family & co", "ours")
    assert "qg" in check_chart(page.content["chart_"])


def test_benchmarks_of_the_suite_are_lines_with_the_papers_beside_them(suite_runs):
    page, _ = parts_of(pages(ReportContext(collect([suite_runs]))))
    chart = page.content["chart_"]
    rows = [row for row in rows_of(chart) if row["metric"] == "balanced_accuracy"]
    assert {row["group"] for row in rows} == {"FB-inter"}
    assert {(row["system"], row["method"]) for row in rows if row["source"] == "ours"} == {
        (system, method) for system in ("simpbl", "transe") for method in ("pa", "qg")
    }
    printed = {row["method"]: row["value"] for row in rows if row["source"] == "paper" and row["system"] == "transe"}
    assert list(printed) == ["rc", "rb", "pa", "qg"]
    for method, value in printed.items():
        assert value == paper_value("transe", f"LogInfer-FB-inter-{method}", "balanced_accuracy")
    assert chart.spec["encoding"]["x"]["sort"] == ["rc", "rb", "pa", "qg"]
    check_chart(chart)


def test_the_table_has_ours_and_the_papers(suite_runs):
    page, _ = parts_of(pages(ReportContext(collect([suite_runs]))))
    grid = page.content["table"]
    titles = [column.title for column in grid.columns]
    assert titles == [
        "benchmark", "system", "pa", "qg", "rc, paper", "rb, paper", "pa, paper", "qg, paper",
    ]  # fmt: skip
    assert [row[:2] for row in grid.rows] == [("FB-inter", "simpbl"), ("FB-inter", "transe")]


def test_one_method_alone_is_told_what_to_do(small_runs, suite_runs, tmp_path):
    for folder, wanted in (
        (suite_runs, "loginfer suite build --only FB-inter-rc --out SUITE"),
        (small_runs, "loginfer build KG --pattern PATTERN --negatives rb --negatives pa --out BENCH"),
    ):
        found = collect([folder])
        cells = tuple(cell for cell in found.cells if cell.method == "pa")
        write_site(ReportContext(Collection(cells)), tmp_path / "site", makers=[pages], force=True)
        text = (tmp_path / "site" / "negatives.html").read_text()
        assert wanted in text
        assert "<figure" not in text


def test_two_builds_of_one_benchmark_are_not_mixed(small_runs):
    found = collect([small_runs])
    twice = tuple(cell for cell in found.cells if cell.method == "pa") * 2 + found.cells[3:4]
    page, _ = parts_of(pages(ReportContext(Collection(twice))))
    rows = [row for row in rows_of(page.content["chart_"]) if row["metric"] == "balanced_accuracy"]
    assert len(rows) == 4
    assert len(page.content["notes"]) == 3


def test_the_page_can_be_written(small_runs, tmp_path):
    write_site(ReportContext(collect([small_runs])), tmp_path / "site", makers=[pages])
    text = (tmp_path / "site" / "negatives.html").read_text()
    assert "Family &amp; co" in text
    assert "query-guided" in text
