"""The overview: its heat maps, tables and pairs."""

import dataclasses

import pytest
from tests.support.chart_checks import check_chart, parts_of, rows_of
from tests.support.hostile_runs import hostile_runs
from tests.support.made_up_benchmarks import family

from loginfer.evaluation import evaluate
from loginfer.report import facts
from loginfer.report.collection import Cell, Collection, collect
from loginfer.report.facts import ReportContext
from loginfer.report.pages.overview import accuracy_chart, heat_map, learned_chart, pages
from loginfer.report.paper import paper_value
from loginfer.report.site import write_site
from loginfer.systems import registry

TITLES = {"simpbl": "SimpBL", "exact": "Exact"}


@pytest.fixture(scope="module")
def small(small_runs):
    collection = collect([small_runs])
    return collection, *parts_of(pages(ReportContext(collection)))


def test_every_figure_of_every_cell_is_in_the_heat_map(small):
    collection, page, _ = small
    rows = rows_of(heat_map(ReportContext(collection)))
    assert (page.path, page.section) == ("index.html", "overview")
    for cell in collection.cells:
        for metric, protocol in (("balanced_accuracy", None), ("c_mrr", "filtered"), ("r_hits@10", "given")):
            key = f"{metric} {protocol}" if protocol else metric
            mine = [
                row
                for row in rows
                if (row["system"], row["benchmark"], row["metric"]) == (cell.system, cell.benchmark, key)
            ]
            mean = cell.mean(metric, protocol)
            assert [row["value"] for row in mine] == ([] if mean is None else [pytest.approx(mean, abs=1e-5)])


def test_intervals_are_over_seeds_where_there_are_several_and_over_triples_where_there_is_one(small):
    rows = [row for row in rows_of(heat_map(ReportContext(small[0]))) if row["metric"] == "balanced_accuracy"]
    assert {(row["system"], row["seeds"], row["over"], row["count"]) for row in rows} == {
        ("simpbl", 1, "triples", 4),
        ("transe", 2, "seeds", 2),
        ("oracle", 1, "triples", 4),
    }
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)


def test_plots_of_the_overview_can_be_drawn(small, suite_runs):
    collection, page, data = small
    svg = check_chart(heat_map(ReportContext(collection)))
    assert "simpbl" in svg
    assert "Family" in svg
    for value in data.values():
        assert "transe" in check_chart(page.content["pairs"], value["charts"]["pairs"])
    other, _ = parts_of(pages(ReportContext(collect([suite_runs]))))
    check_chart(other.content["deltas"])


def test_the_papers_values_stand_beside_ours(suite_runs):
    collection = collect([suite_runs])
    page, _ = parts_of(pages(ReportContext(collection)))
    rows = rows_of(page.content["deltas"])
    assert {row["benchmark"] for row in rows} == {"FB-inter-pa", "FB-inter-qg"}
    for row in rows:
        name = f"LogInfer-{row['benchmark']}"
        assert row["paper"] == pytest.approx(paper_value(row["system"], name, row["metric"].split()[0]))
        assert row["delta"] == pytest.approx(row["value"] - row["paper"], abs=2e-5)
        assert row["metric"].endswith(" filtered") == ("mrr" in row["metric"])


def test_without_the_papers_benchmarks_there_is_no_map_of_differences(small):
    assert small[1].content["deltas"] is None


def test_there_is_a_heat_map_from_three_benchmarks_on(small):
    collection, page, _ = small
    assert page.content["figures"] is None
    third = [dataclasses.replace(cell, benchmark="third") for cell in collection.of_benchmark("Family & co, pa")]
    more, _ = parts_of(pages(ReportContext(Collection((*collection.cells, *third)))))
    check_chart(more.content["figures"])


def test_systems_stand_best_first_beside_the_best_shortcut_and_the_oracle(small):
    collection, page, _ = small
    chart = page.content["accuracy"]
    svg = check_chart(chart)
    assert all(f">{name}<" in svg for name in ("SimpBL", "TransE", "Oracle", "shortcut"))
    for benchmark in collection.benchmark_names:
        rows = [row for row in rows_of(chart) if row["benchmark"] == benchmark]
        assert [row["place"] for row in rows] == list(range(len(rows)))
        assert [row["value"] for row in rows] == sorted((row["value"] for row in rows), reverse=True)
        assert {row["name"] for row in rows} == {"SimpBL", "TransE", "Oracle", "best shortcut"}
        (shortcut,) = [row for row in rows if row["name"] == "best shortcut"]
        assert all(row["best"] == shortcut["value"] for row in rows)
        assert all(row["low"] <= row["value"] <= row["high"] for row in rows)


def test_many_rows_have_a_legend_instead_of_names(small):
    collection = small[0]
    cells = [dataclasses.replace(cell, benchmark=f"b{n}") for n in range(30) for cell in collection.cells[:3]]
    chart = accuracy_chart(ReportContext(Collection(tuple(cells))))
    svg = check_chart(chart)
    assert svg.count(">simpbl<") == 1
    assert not any(f">{name}<" in svg for name in ("SimpBL", "TransE", "shortcut"))


def test_bars_say_how_many_rules_are_learned(small):
    collection, page, _ = small
    chart = page.content["learned"]
    svg = check_chart(chart)
    assert "TransE" in svg
    for cell in collection.cells:
        counts = {
            row["verdict"]: row["rules"]
            for row in rows_of(chart)
            if (row["system"].lower(), row["benchmark"]) == (cell.system, cell.benchmark)
        }
        assert counts == {verdict: n for verdict, n in cell.first.diagnosis()["verdicts"].items() if n}
    assert rows_of(learned_chart(ReportContext(collection))) == rows_of(chart)


def test_pairs_leave_the_oracle_out(small):
    data = small[2]
    assert len(data) == 2
    for value in data.values():
        assert [(row["first"], row["second"]) for row in rows_of(value["charts"]["pairs"])] == [("simpbl", "transe")]


def test_the_same_runs_give_the_same_pages(small_runs, tmp_path):
    for name in ("one", "two"):
        write_site(ReportContext(collect([small_runs])), tmp_path / name, makers=[pages])
    files = [
        {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*") if p.is_file()}
        for name in ("one", "two")
    ]
    assert files[0] == files[1]


def test_names_cannot_break_out_of_the_page(tmp_path):
    found = collect([hostile_runs(tmp_path / "in")])
    named = [dataclasses.replace(cell, system="</script><b>" + cell.system) for cell in found.cells]
    write_site(ReportContext(Collection(tuple(named), {}, ("<u>note</u>",))), tmp_path / "site", makers=[pages])
    text = (tmp_path / "site" / "index.html").read_text()
    assert "</script><b>" not in text
    assert "<i>Hostile" not in text
    assert "&lt;u&gt;note&lt;/u&gt;" in text
    for script in (tmp_path / "site" / "data").rglob("*.js"):
        assert "</script" not in script.read_text()


def test_runs_without_negatives_ranks_or_thresholds_have_a_page_too(tmp_path):
    evaluate(family(methods=()), "simpbl", ranking=("filtered",), out=tmp_path / "a")
    evaluate(
        dataclasses.replace(family(valid=False), name="other"),
        "transe",
        settings={"epochs": 1},
        negatives="pa",
        ranking=(),
        diagnosis=False,
        out=tmp_path / "b",
    )
    write_site(ReportContext(collect([tmp_path])), tmp_path / "site", makers=[pages])
    text = (tmp_path / "site" / "index.html").read_text()
    assert "Which differences are more than chance" not in text
    page, data = parts_of(pages(ReportContext(collect([tmp_path / "a", tmp_path / "b"]))))
    assert not data
    assert page.content["accuracy"] is None
    assert page.content["answer"].headline == "SimpBL ranks best on Family & co."
    page, _ = parts_of(pages(ReportContext(collect([tmp_path / "b"]))))
    assert page.content["answer"].headline == "No run decides about triples: nothing to say."


def test_on_standard_splits_systems_stand_beside_what_is_published(tmp_path, monkeypatch):
    for name in ("first", "second"):
        for system in ("simpbl", "exact"):
            benchmark = dataclasses.replace(family(methods=()), name=name)
            evaluate(benchmark, system, ranking=("filtered",), out=tmp_path / name / system)
    known = {"c_mrr": 0.9, "source": "a paper"}
    monkeypatch.setattr(registry, "published_figures", lambda system, _: known if system == "exact" else {})
    facts._published.cache_clear()
    collection = collect([tmp_path])
    page, _ = parts_of(pages(ReportContext(collection)))
    facts._published.cache_clear()
    figures = {(cell.name, cell.benchmark): 100 * cell.mean("c_mrr", "filtered") for cell in collection.cells}
    best = max(("simpbl", "exact"), key=lambda system: figures[system, "first"])
    assert page.content["answer"].headline == f"{TITLES[best]} ranks best on first and second."
    sentences = {title: text for title, _, text in page.content["sentences"]}
    assert sentences["SimpBL"] == "; ".join(f"C-MRR on {b} {figures['simpbl', b]:.1f} %" for b in ("first", "second"))
    first, second = (f"C-MRR on {b} {figures['exact', b]:.1f} %, published 90.0 %" for b in ("first", "second"))
    assert sentences["Exact"] == f"{first}; {second}"
    assert {row[2] for row in page.content["deltas"].rows.rows} == {"c_mrr filtered"}


def test_one_run_is_enough(small_runs):
    run = collect([small_runs]).cells[0].first
    page, data = parts_of(pages(ReportContext(Collection((Cell("my own", "mine", (run,)),)))))
    assert page.content["facts"] == "1 system, 1 benchmark, 1 run"
    assert page.content["pairs"] is None
    assert not data
