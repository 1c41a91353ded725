"""The comparison of two runs."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import binomtest, rankdata
from tests.support.chart_checks import check_chart, parts_of, rows_of
from tests.support.hostile_runs import hostile_runs
from tests.support.made_up_benchmarks import family

from loginfer.errors import InputError
from loginfer.evaluation import evaluate, load_run
from loginfer.report.collection import Cell, Collection, collect
from loginfer.report.facts import ReportContext
from loginfer.report.pages import compare
from loginfer.report.pages.compare import compare_pages, relation_parts, rule_parts
from loginfer.report.site import write_site
from loginfer.report.statistics import decisions_of


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return collect([hostile_runs(tmp_path_factory.mktemp("compared"))])


def compared(collection, a, b):
    page, data = parts_of(compare_pages(ReportContext(collection), a, b))
    assert not data
    return page


@pytest.fixture(scope="module")
def two(hostile):
    simpbl, transe, _ = hostile.cells
    return simpbl, transe, compared(hostile, simpbl, transe)


def single(path, name=None):
    run = load_run(path)
    return Cell(name or run.system, run.benchmark, (run,))


def test_figures_stand_side_by_side_with_their_difference(two):
    a, b, page = two
    grid = page.content["figures"]
    assert [column.title for column in grid.columns][:4] == [
        "metric", "simpbl", "transe", "simpbl minus transe",
    ]  # fmt: skip
    rows = {row[0]: row[1:] for row in grid.rows}
    for title, metric, protocol in (
        ("balanced accuracy", "balanced_accuracy", None),
        ("ROC AUC", "roc_auc", None),
        ("C-MRR, filtered", "c_mrr", "filtered"),
    ):
        mine, theirs = a.mean(metric, protocol), b.mean(metric, protocol)
        found, *ends = rows[title][:3], *rows[title][3:]
        assert found == pytest.approx((mine, theirs, mine - theirs), abs=2e-5)
        if protocol is None:
            assert ends[0] <= mine - theirs <= ends[1]
        else:
            assert ends == [None, None]


def test_mcnemars_test_is_told(two):
    a, b, page = two
    mine, theirs = decisions_of(a.first).right, decisions_of(b.first).right
    test = page.content["test"]
    table = [[int(((mine == x) & (theirs == y)).sum()) for y in (True, False)] for x in (True, False)]
    assert [[test["both"], test["only_a"]], [test["only_b"], test["none"]]] == table
    p = binomtest(test["only_a"], test["only_a"] + test["only_b"], 0.5).pvalue
    assert test["p"] == ("below 0.001" if p < 0.001 else f"{p:.3f}")


def test_places_are_shares_of_triples_with_lower_scores(two):
    a, b, page = two
    rows = rows_of(page.content["scatter"])
    for field, cell in (("a", a), ("b", b)):
        decisions = decisions_of(cell.first)
        ranks = rankdata(np.concatenate([decisions.positive, decisions.negative]))
        assert [row[field] for row in rows] == pytest.approx((ranks - 0.5) / len(ranks), abs=1e-4)
    assert [row["label"] for row in rows].count("positive") == len(decisions.positive)
    right = decisions_of(a.first).right
    assert [row["right"] in ("both", "simpbl") for row in rows] == right.tolist()


def test_many_triples_are_sampled_the_same_way_each_time(two, hostile, monkeypatch):
    monkeypatch.setattr(compare, "POINTS", 7)
    samples = [rows_of(compared(hostile, *two[:2]).content["scatter"]) for _ in range(2)]
    assert len(samples[0]) == 7
    assert samples[0] == samples[1]
    everything = rows_of(two[2].content["scatter"])
    assert all(row in everything for row in samples[0])


def test_plots_of_the_comparison_can_be_drawn(two):
    _, _, page = two
    assert "simpbl" in check_chart(page.content["scatter"])
    for part in ("rules", "relations"):
        check_chart(page.content[part][0])


def test_rules_and_relations_are_those_of_the_runs(two):
    a, b, page = two
    sides = [cell.first.diagnosis()["rules"] for cell in (a, b)]
    wanted = [(x["conclusions"], x["recall"], y["recall"]) for x, y in zip(*sides, strict=True)]
    rows = rows_of(page.content["rules"][0])
    assert [(row["count"], row["a"], row["b"]) for row in rows] == [
        pytest.approx(row, abs=1e-5) for row in wanted if row[1] is not None
    ]
    parts = [cell.metrics[0]["breakdown"]["relations"] for cell in (a, b)]
    wanted = [(parts[0][name]["accuracy"], parts[1][name]["accuracy"]) for name in parts[0]]
    rows = rows_of(page.content["relations"][0])
    assert [(row["a"], row["b"]) for row in rows] == [pytest.approx(row, abs=1e-5) for row in wanted]


def test_the_largest_differences_come_first():
    def diagnosed(*recalls):
        rules = [
            {"rule": f"r{i}", "conclusions": 5, "recall": recall, "verdict": "learned"}
            for i, recall in enumerate(recalls)
        ]
        return {"rules": rules}

    _, grid = rule_parts(("A", "B"), (diagnosed(1.0, 0.5, None, 0.9), diagnosed(0.9, 0.9, 0.1, 0.9)))
    assert [(row[0], row[4]) for row in grid.rows] == [("r1", -0.4), ("r0", 0.1)]
    assert rule_parts(("A", "B"), ({}, diagnosed(1.0))) is None
    assert rule_parts(("A", "B"), (diagnosed(None), diagnosed(None))) is None
    assert relation_parts(("A", "B"), ({}, {})) is None


def test_listed_triples_are_decided_rightly_by_the_one_that_is_named(two):
    a, _, page = two
    benchmark, predictions = a.first.labelled()
    sides = (benchmark.positives.test, benchmark.negatives[predictions.method].splits.test)
    rows = rows_of(page.content["scatter"])
    assert len(rows) == sum(map(len, sides))
    only = {"simpbl": 0, "transe": 0}
    for row in page.content["triples"].rows:
        only[row[0]] += 1
        assert any(
            (each["label"], each["right"]) == (row[1], row[0])
            and (each["a"], each["b"]) == pytest.approx(row[2:4], abs=1e-4)
            for each in rows
        )
    test = page.content["test"]
    assert only == {"simpbl": min(25, test["only_a"]), "transe": min(25, test["only_b"])}
    apart = [abs(row[2] - row[3]) for row in page.content["triples"].rows if row[0] == "transe"]
    assert apart == sorted(apart, reverse=True)


def test_names_cannot_break_out_of_the_comparison(hostile, tmp_path):
    a, b, _ = (dataclasses.replace(cell, system="</script><b>" + cell.system) for cell in hostile.cells)
    write_site(ReportContext(hostile), tmp_path / "site", makers=[lambda context: compare_pages(context, a, b)])
    text = (tmp_path / "site" / "index.html").read_text()
    assert "<script>alert" not in text
    assert "</script><b>" not in text
    assert "<img src=x" not in text
    assert "&lt;/script&gt;" in text


def test_two_seeds_and_two_equal_runs_can_be_told_apart(small_runs, tmp_path):
    seeds = [single(small_runs / "runs" / f"transe-pa-{seed}") for seed in (0, 1)]
    context = ReportContext(Collection(tuple(seeds)))
    page, _ = parts_of(compare_pages(context, *seeds))
    assert (page.content["a"], page.content["b"]) == ("transe, seed 0", "transe, seed 1")
    page, _ = parts_of(compare_pages(context, seeds[0], seeds[0]))
    assert (page.content["a"], page.content["b"]) == ("transe (A)", "transe (B)")
    assert page.content["test"]["p"] == "1.000"
    assert page.content["triples"] is None
    assert page.content["rules"][1].rows == ()
    made = [lambda context: compare_pages(context, seeds[0], seeds[0])]
    write_site(context, tmp_path / "site", makers=made)
    assert "p = 1.000" in (tmp_path / "site" / "index.html").read_text()


def test_runs_about_other_triples_are_refused(small_runs, suite_runs):
    context = ReportContext(collect([small_runs]))
    mine = single(small_runs / "runs" / "simpbl-pa-0")
    with pytest.raises(InputError, match="have other negatives: pa and qg"):
        list(compare_pages(context, mine, single(small_runs / "runs" / "oracle-qg-0")))
    with pytest.raises(InputError, match="not about the same benchmark: Family & co and LogInfer-FB-inter-pa"):
        list(compare_pages(context, mine, single(suite_runs / "simpbl-pa")))


def test_runs_without_thresholds_and_diagnosis_are_compared_as_far_as_they_go(tmp_path):
    for name, epochs in (("a", 1), ("b", 2)):
        settings, out = {"epochs": epochs}, tmp_path / name
        evaluate(family(valid=False), "transe", settings=settings, negatives="pa", diagnosis=False, out=out)
    cells = [single(tmp_path / name, name) for name in "ab"]
    context = ReportContext(Collection(tuple(cells)))
    write_site(context, tmp_path / "site", makers=[lambda context: compare_pages(context, *cells)])
    text = (tmp_path / "site" / "index.html").read_text()
    assert "no decisions to compare" in text
    assert "ROC AUC" in text
    assert "balanced accuracy" not in text
