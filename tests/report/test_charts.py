"""Plots of the report as values: Altair reads them, files hold them, notebooks show them."""

import json

import altair
import pytest
from tests.support.made_up_benchmarks import family

from loginfer.errors import InputError
from loginfer.evaluation import evaluate, load_run
from loginfer.report import charts, collect
from loginfer.report.scores import scores_of_test


@pytest.mark.parametrize("name", ["accuracy_chart", "learned_chart", "heat_map"])
def test_altair_accepts_each_plot_of_runs(small_runs, name):
    draw = getattr(charts, name)
    chart = draw(small_runs)
    plot = altair.Chart.from_dict(chart.to_dict())
    assert plot.to_dict()["data"]
    assert chart.to_dict() == draw(collect([small_runs])).to_dict() == json.loads(chart.to_json())


def test_altair_accepts_the_curve_of_a_run(small_runs):
    folder = small_runs / "runs" / "transe-pa-0"
    chart = charts.curve_chart(load_run(folder))
    altair.Chart.from_dict(chart.to_dict())
    assert chart.to_dict() == charts.curve_chart(str(folder)).to_dict()
    assert {row["part"] for row in chart.to_dict()["data"]["values"]} == {"curve", "threshold"}
    with pytest.raises(InputError, match="one run"):
        charts.curve_chart(small_runs)


def test_altair_accepts_the_reliability_of_a_run(small_runs):
    run = load_run(small_runs / "runs" / "transe-pa-0")
    chart = charts.reliability_chart(run)
    altair.Chart.from_dict(chart.to_dict())
    rows = chart.to_dict()["data"]["values"]
    assert sum(row["count"] for row in rows) == len(scores_of_test(run))
    assert all(row["low"] <= row["share"] <= row["high"] for row in rows)
    with pytest.raises(InputError, match="one run"):
        charts.reliability_chart(small_runs)


def test_what_evaluate_returned_is_drawn_without_a_folder():
    benchmark = family(methods=("pa",))
    evaluations = [evaluate(benchmark, system, ranking=()) for system in ("simpbl", "oracle")]
    rows = charts.accuracy_chart(evaluations).to_dict()["data"]["values"]
    assert {"SimpBL", "Oracle"} <= {row["name"] for row in rows}
    assert charts.accuracy_chart(evaluations[0]).rows.rows


@pytest.mark.parametrize(
    ("kind", "start"), [("json", b"{"), ("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE")]
)
def test_a_plot_is_saved_as_the_file_s_name_says(small_runs, tmp_path, kind, start):
    path = tmp_path / f"plot.{kind}"
    charts.accuracy_chart(small_runs).save(path)
    assert path.read_bytes().lstrip().startswith(start)


def test_another_kind_of_file_is_refused(small_runs, tmp_path):
    with pytest.raises(InputError, match=r"plot\.pdf") as refused:
        charts.heat_map(small_runs).save(tmp_path / "plot.pdf")
    assert ".svg" in refused.value.hint
    assert not list(tmp_path.iterdir())


def test_notebooks_get_vega_lite(small_runs):
    chart = charts.heat_map(small_runs)
    assert chart._repr_mimebundle_()["application/vnd.vegalite.v5+json"] == chart.to_dict()
    assert {row["metric"] for row in chart.to_dict()["data"]["values"]} == {"balanced_accuracy"}
