"""The page about ranking: tie rules and competitors."""

import numpy as np
import pytest
from tests.support.chart_checks import check_chart, parts_of, rows_of

from loginfer.report.collection import Collection, collect
from loginfer.report.facts import ReportContext
from loginfer.report.pages.ranking import _BINS, _bin_names, _bin_rows, pages
from loginfer.report.site import write_site


@pytest.fixture(scope="module")
def small(small_runs):
    collection = collect([small_runs])
    return collection, *parts_of(pages(ReportContext(collection)))


def test_bars_go_from_the_pessimistic_to_the_optimistic_mean_over_seeds(small):
    collection, page, data = small
    assert [text for text, _ in page.content["picker"].options] == list(collection.benchmark_names)
    for benchmark, path in page.content["picker"].options:
        rows = rows_of(data[path]["charts"]["ranges"])
        assert {row["protocol"] for row in rows} == {"filtered", "given", "unfiltered"}
        for row in rows:
            cell = collection.cell(row["system"], benchmark)
            for tie in ("optimistic", "realistic", "pessimistic"):
                known = [run["ranking"][row["protocol"]]["ties"][tie][row["metric"]] for run in cell.metrics]
                assert row[tie] == pytest.approx(np.mean(known), abs=1e-5)
            assert row["pessimistic"] <= row["realistic"] <= row["optimistic"]
            assert row["seeds"] == len(cell.runs)


def test_competitors_are_counted_for_every_test_triple(small):
    collection, page, data = small
    for benchmark, path in page.content["picker"].options:
        rows = rows_of(data[path]["charts"]["competitors"])
        for ranks in collection.of_benchmark(benchmark)[0].first.ranks():
            mine = {
                row["competitors"]: row["triples"]
                for row in rows
                if (row["protocol"], row["position"]) == (ranks.protocol, ranks.position)
            }
            assert sum(mine.values()) == len(ranks.competitors)
            assert mine["0"] == (ranks.competitors == 0).sum()
            told = [
                row
                for row in page.content["table"].rows
                if (row[0][0], row[1], row[2]) == (benchmark, ranks.protocol, ranks.position)
            ]
            assert [row[3:] for row in told] == [
                (
                    len(ranks.competitors),
                    pytest.approx(ranks.competitors.mean()),
                    pytest.approx(np.median(ranks.competitors)),
                    pytest.approx((ranks.competitors == 0).mean()),
                )
            ]


def test_each_number_of_competitors_has_one_place():
    numbers = np.array([0, 1, 2, 3, 4, 10, 11, 100, 101, 1000, 1001, 10_000, 10_001, 100_000, 100_001, 10**9])
    counts = {row[2]: row[4] for row in _bin_rows("given", "object", numbers)}
    assert list(counts) == _bin_names()
    assert list(counts.values()) == [1, 1, 2, 2, 2, 2, 2, 2, 2]
    assert list(counts)[:4] == ["0", "1", "2 to 3", "4 to 10"]
    assert len(counts) == len(_BINS)


def test_what_the_protocol_given_comes_to_is_told(small):
    _, page, _ = small
    rows = [row for row in page.content["table"].rows if row[1] == "given"]
    alone = sum(row[3] * row[6] for row in rows) / sum(row[3] for row in rows)
    assert page.content["given"]["alone"] == pytest.approx(alone)
    assert [position for position, _ in page.content["given"]["means"]] == ["subject", "relation", "object"]


def test_plots_of_the_ranking_can_be_drawn(small):
    _, page, data = small
    for value in data.values():
        assert "transe" in check_chart(page.content["ranges"], value["charts"]["ranges"])
        assert "filtered" in check_chart(page.content["competitors"], value["charts"]["competitors"])


def test_the_papers_mrr_stands_at_the_filtered_protocol_only(suite_runs):
    page, data = parts_of(pages(ReportContext(collect([suite_runs]))))
    _, path = page.content["picker"].options[-1]
    rows = [row for row in rows_of(data[path]["charts"]["ranges"]) if row["paper"] is not None]
    assert {(row["protocol"], row["metric"]) for row in rows} == {("filtered", "c_mrr"), ("filtered", "r_mrr")}


def test_runs_without_ranks_have_no_page(tmp_path):
    from tests.support.made_up_benchmarks import family

    from loginfer.evaluation import evaluate

    evaluate(family(), "simpbl", negatives="pa", ranking=(), diagnosis=False, out=tmp_path / "a")
    evaluate(family(), "oracle", negatives="pa", ranking=("given",), diagnosis=False, out=tmp_path / "b")
    found = collect([tmp_path])
    write_site(ReportContext(found), tmp_path / "both", makers=[pages])
    assert "has hardly any competitors" in (tmp_path / "both" / "ranking.html").read_text()
    assert list(pages(ReportContext(Collection(found.cells[:1])))) == []
