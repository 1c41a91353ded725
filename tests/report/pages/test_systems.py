"""The pages of the systems."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.support.made_up_benchmarks import family

from loginfer.benchmark import load_benchmark
from loginfer.evaluation import PROTOCOLS, evaluate
from loginfer.evaluation.runs import Run
from loginfer.report.collection import collect
from loginfer.report.facts import ReportContext
from loginfer.report.pages import benchmarks, systems
from loginfer.report.scores import chosen_step, histogram_rows, learning_rows, scores_of_test, threshold_of, timing_of
from loginfer.report.site import Renderer
from loginfer.report.values import Chart, DataFile, Page


@pytest.fixture(scope="module")
def context(small_runs: Path) -> ReportContext:
    return ReportContext(collect([small_runs]))


def made(context: ReportContext) -> tuple[dict[str, Page], dict[str, DataFile]]:
    parts = list(systems.pages(context))
    pages = {part.path: part for part in parts if isinstance(part, Page)}
    return pages, {part.path: part for part in parts if isinstance(part, DataFile)}


def html(page: Page) -> str:
    return Renderer("a report", frozenset({"systems"})).page(page)


def edited(source: Path, target: Path, name: str, change) -> Path:
    """Copy a run, with one of its JSON files changed."""
    shutil.copytree(source, target)
    path = target / name
    value = json.loads(path.read_text())
    path.write_text(json.dumps(change(value)))
    return target


# -- scores -------------------------------------------------------------------------------------


def test_the_scores_of_test_are_those_of_the_run(small_runs: Path) -> None:
    for folder in (small_runs / "runs").iterdir():
        run = Run.load(folder)
        wanted = run.labelled()[1].test
        found = scores_of_test(run)
        assert np.array_equal(found.positive, wanted.positive)
        assert np.array_equal(found.negative, wanted.negative)


def test_negatives_are_counted_by_kind_and_shares_add_up(context: ReportContext) -> None:
    from loginfer.report.facts import benchmark_facts

    for cell in context.collection.cells:
        kinds = benchmark_facts(context, cell.benchmark).kinds
        scores = scores_of_test(cell.first)
        assert kinds is not None
        assert len(kinds[1]) == len(scores.negative)
        known = cell.first.metrics()["breakdown"]["negatives"]
        rows, _ = histogram_rows(scores, kinds, 0.5)
        found = [dict(zip(rows.fields, row, strict=True)) for row in rows.rows]
        for weight in ("all", "kind"):
            bars = [row for row in found if row["weight"] == weight and row["kind"] != "threshold"]
            for kind, metrics in known.items():
                count = sum(row["count"] for row in bars if row["kind"] == kind)
                assert count == metrics["fp"] + metrics["tn"]
            assert sum(row["share"] for row in bars if row["share"] > 0) == pytest.approx(1, abs=1e-3)
            assert sum(row["share"] for row in bars if row["share"] < 0) == pytest.approx(-1, abs=1e-3)


def test_without_the_benchmark_all_negatives_are_alike(small_runs: Path) -> None:
    scores = scores_of_test(Run.load(small_runs / "runs" / "transe-pa-0"))
    rows, _ = histogram_rows(scores, None, None)
    assert {row[0] for row in rows.rows} == {"positive", "negative"}


def test_a_threshold_for_each_relation_is_told_and_not_drawn(small_runs: Path, tmp_path: Path) -> None:
    def change(value):
        return {**value, "kind": "relation", "relations": {"likes": 0.1, "knows": 0.2}}

    source = small_runs / "runs" / "transe-pa-0"
    run = Run(edited(source, tmp_path / "run", "thresholds.json", change), Run.load(source).manifest)
    value, told = threshold_of(run)
    assert value is None
    assert "2 thresholds, one for each relation" in told


def test_a_run_without_timing_or_thresholds_can_be_shown(small_runs: Path, tmp_path: Path) -> None:
    source = edited(small_runs / "runs" / "oracle-pa-0", tmp_path / "run", "thresholds.json", lambda v: None)
    (source / "timing.json").unlink()
    run = Run.load(source, verify=False)
    assert threshold_of(run)[0] is None
    assert timing_of(run) == {}
    pages, _ = made(ReportContext(collect([source])))
    assert "Time and memory" not in html(pages["systems/oracle.html"])
    assert pages["systems.html"].content["chart"] is None


def test_the_kept_epoch_is_the_last_of_the_best_and_the_kept_step_the_first() -> None:
    curve = [{"epoch": i, "valid_accuracy": a} for i, a in enumerate((0.5, 0.9, 0.9, 0.7))]
    assert chosen_step(curve, {"keep": "best"}) == 2
    assert chosen_step(curve, {"keep": "last"}) == 3
    assert chosen_step(curve, {}) is None
    steps = [{"step": 10 * i, "loss": 1.0} | ({"valid_accuracy": 0.9} if i % 2 else {}) for i in range(6)]
    assert chosen_step(steps, {"validate_every": 2}) == 10
    assert chosen_step([], {"keep": "best"}) is None


def test_a_long_learning_curve_keeps_its_ends_and_its_best_step(small_runs: Path, tmp_path: Path) -> None:
    def change(_):
        return [{"epoch": i, "loss": 1 / (i + 1), "valid_accuracy": float(i == 777)} for i in range(2000)]

    source = edited(small_runs / "runs" / "transe-pa-0", tmp_path / "run", "curve.json", change)
    rows = learning_rows([Run.load(source, verify=False)]).rows
    loss = [row for row in rows if row[2] == "loss"]
    assert 200 <= len(loss) <= 201
    assert (loss[0][1], loss[-1][1]) == (0, 1999)
    assert [row[1] for row in loss if row[4]] == [777]


# -- pages --------------------------------------------------------------------------------------


def test_there_is_a_page_for_each_system_and_a_file_for_each_cell(context: ReportContext) -> None:
    pages, files = made(context)
    assert set(pages) == {"systems.html", "systems/simpbl.html", "systems/transe.html", "systems/oracle.html"}
    asked = {path for page in pages.values() for _, path in getattr(page.content.get("picker"), "options", ())}
    assert asked == set(files)
    assert len(files) == len(context.collection.cells)


def test_each_file_brings_rows_and_texts_for_the_plots_of_the_page(context: ReportContext) -> None:
    pages, files = made(context)
    page = pages["systems/transe.html"]
    charts = {value.name for value in _charts(page)}
    shown = html(page)
    for _, path in page.content["picker"].options:
        value = files[path].value
        # Systems choose by accuracy here; the page passes over rows that it has no plot for.
        assert {"roc", "pr", "reliability", "scores", "loss", "valid-accuracy"} == charts
        assert set(value["charts"]) == charts | {"valid-mrr"}
        for name in value["texts"]:
            assert f'data-text="{name}"' in shown
        # Two seeds have two lines.
        assert {row[0] for row in value["charts"]["loss"]["rows"]} == {0, 1}


def test_without_negatives_there_are_ranks_and_learning_and_nothing_else(tmp_path: Path) -> None:
    benchmark = family(methods=())
    evaluate(benchmark, "transe", settings={"epochs": 3}, ranking="filtered", out=tmp_path / "transe")
    context = ReportContext(collect([tmp_path]))
    pages, files = made(context)
    page, (value,) = pages["systems/transe.html"], (file.value for file in files.values())
    rows = {name: data["rows"] for name, data in value["charts"].items()}
    assert not any(rows[name] for name in ("roc", "pr", "reliability", "scores"))
    assert [chart.name for chart in page.content["learning"]] == ["loss", "valid-mrr"]
    words = value["charts"]["valid-mrr"]["words"]["measure"]
    assert [words[row[2]] for row in rows["valid-mrr"]].count("valid_mrr") == 3
    assert "ranks are the result" in value["texts"]["chosen"]
    assert value["texts"]["scores"] == ""
    # Columns that would be empty are left out.
    assert "C-MRR" in html(page)
    assert "precision" not in html(page).split("On one benchmark")[0]
    (card,) = (part for part in benchmarks.pages(context) if getattr(part, "title", "") == benchmark.name)
    (row,) = card.content["results"].rows
    assert row[-1] == pytest.approx(context.collection.cells[0].mean("c_mrr", "filtered"))
    assert [column.title for column in card.content["results"].columns] == ["system", "seeds", "C-MRR, filtered"]


def test_the_index_has_means_over_benchmarks(context: ReportContext) -> None:
    grid = made(context)[0]["systems.html"].content["grid"]
    row = next(row for row in grid.rows if row[0][0] == "transe")
    cells = context.collection.of_system("transe")
    wanted = [np.mean(cell.values("balanced_accuracy")) for cell in cells]
    assert row[1:3] == ("embedding", 2)
    assert row[3] == pytest.approx(np.mean(wanted))
    assert row[5] > 0


def test_settings_say_where_they_came_from(context: ReportContext) -> None:
    grid = made(context)[0]["systems/transe.html"].content["settings"]
    rows = {row[0]: row[1:] for row in grid.rows}
    assert rows["epochs"] == ("1", "user", "all")
    assert rows["norm"][1] == "default"


def test_baselines_say_that_they_have_no_learning_curve(context: ReportContext) -> None:
    pages, files = made(context)
    assert "There is no learning curve" in html(pages["systems/simpbl.html"])
    path = pages["systems/simpbl.html"].content["picker"].options[0][1]
    assert "no learning curve" in files[path].value["texts"]["learning"]


def test_somebody_s_own_system_without_rules_negatives_or_ranking_has_a_page(small_runs: Path, tmp_path: Path) -> None:
    def change(manifest):
        manifest["request"]["system"] = "<script>alert(1)</script> a\"b'c"
        return manifest

    source = edited(small_runs / "runs" / "simpbl-pa-0", tmp_path / "run", "manifest.json", change)
    (source / "diagnosis.json").write_text("null")
    metrics = json.loads((source / "metrics.json").read_text())
    metrics |= {"ranking": {}, "metrics": dict.fromkeys(metrics["metrics"])}
    (source / "metrics.json").write_text(json.dumps(metrics))
    pages, files = made(ReportContext(collect([source])))
    shown = "".join(html(page) for page in pages.values())
    assert "<script>alert(1)" not in shown
    assert "A system that LogInfer does not know" in shown
    value = next(iter(files.values())).value
    assert value["texts"]["diagnosis"] == "This run has no diagnosis."


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_ranks_of_any_protocol_are_shown(small_runs: Path, tmp_path: Path, protocol: str) -> None:
    evaluate(small_runs / "family", "simpbl", negatives="pa", ranking=protocol, diagnosis=False, out=tmp_path / "run")
    page = made(ReportContext(collect([tmp_path])))[0]["systems/simpbl.html"]
    assert f"C-MRR, {protocol}" in [column.title for column in page.content["grid"].columns]


def test_a_system_that_gives_all_triples_the_same_score_has_a_page(small_runs: Path, tmp_path: Path) -> None:
    benchmark = load_benchmark(small_runs / "family")

    class Halves:
        def fit(self, benchmark):
            return self

        def score(self, triples):
            return np.full(len(triples), 0.5)

    evaluate(benchmark, Halves(), negatives="pa", ranking=("given",), out=tmp_path / "halves")
    context = ReportContext(collect([tmp_path, small_runs / "family"]))
    pages, files = made(context)
    assert (len(pages), len(files)) == (2, 1)
    titles = [c.title for c in next(p for p in pages.values() if "picker" in p.content).content["grid"].columns]
    assert "C-MRR, given" in titles
    for page in pages.values():
        html(page)


# -- plots --------------------------------------------------------------------------------------


def _charts(page: Page) -> list[Chart]:
    found = []
    for value in page.content.values():
        found += [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, Chart)]
    return found


def expanded(data):
    words = data.get("words", {})
    return [
        {
            field: words[field][value] if field in words and value is not None else value
            for field, value in zip(data["fields"], row, strict=True)
        }
        for row in data["rows"]
    ]


def test_all_plots_are_vega_lite(context: ReportContext) -> None:
    altair = pytest.importorskip("altair")
    pages, files = made(context)
    seen = 0
    for page in pages.values():
        picker = page.content.get("picker")
        loaded = files[picker.options[0][1]].value["charts"] if picker else {}
        for chart in _charts(page):
            rows = expanded(loaded.get(chart.name, chart.rows.as_dict()))
            altair.Chart.from_dict({**chart.spec, "data": {"values": rows}})
            assert not rows or set(chart.columns) <= set(rows[0])
            seen += 1
    assert seen >= 12


def test_histogram_roc_curve_and_reliability_can_be_drawn(context: ReportContext) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    pages, files = made(context)
    page = pages["systems/transe.html"]
    loaded = files[page.content["picker"].options[0][1]].value["charts"]
    for name in ("scores", "roc", "reliability"):
        chart = next(chart for chart in _charts(page) if chart.name == name)
        spec = {**chart.spec, "width": 500, "data": {"values": expanded(loaded[name])}}
        assert "<svg" in vl_convert.vegalite_to_svg(spec)


def test_the_same_runs_give_the_same_pages(small_runs: Path) -> None:
    first, second = (made(ReportContext(collect([small_runs]))) for _ in range(2))
    assert {path: html(page) for path, page in first[0].items()} == {
        path: html(page) for path, page in second[0].items()
    }
    assert {p: f.value for p, f in first[1].items()} == {p: f.value for p, f in second[1].items()}
