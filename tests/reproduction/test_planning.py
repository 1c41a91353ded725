"""Which cells a reproduction consists of."""

import pytest

from loginfer.errors import InputError, UnknownNameError
from loginfer.report.paper import SYSTEMS, paper_figures
from loginfer.reproduction import plan
from loginfer.reproduction.planning import PARTICIPANTS, Pace, benchmarks_of, cell_seconds, given_settings, in_words
from loginfer.systems.registry import find_system, tuned_graphs


def test_the_tables_are_about_the_benchmarks_that_the_paper_prints_figures_for():
    for table, paper in (("fb-wn", "result-fb-wn"), ("lubm", "result-lubm"), ("negatives", "result-neg")):
        printed = {f"LogInfer-{f.kg}-{f.pattern}-{f.negatives}" for f in paper_figures() if f.table == paper}
        assert set(benchmarks_of(table)) == printed
    assert len(benchmarks_of("fb-wn")) == 13
    assert len(benchmarks_of("sizes")) == 15
    rules = {f.pattern for f in paper_figures() if f.table == "result-rule"}
    assert {name.split("-")[2] for name in benchmarks_of("rules")} == rules


def test_every_system_meets_every_benchmark_once_a_seed_and_deterministic_ones_once():
    made = plan(tables=["lubm"], seeds=3)
    cells = {(cell.system, cell.benchmark, cell.seed) for cell in made.cells}
    assert len(cells) == len(made.cells)
    assert {cell.system for cell in made.cells} == set(PARTICIPANTS)
    for benchmark in benchmarks_of("lubm"):
        for system in PARTICIPANTS:
            seeds = [cell.seed for cell in made.cells if (cell.system, cell.benchmark) == (system, benchmark)]
            assert sorted(seeds) == ([0] if system in ("simpbl", "exact", "oracle") else [0, 1, 2])


def test_the_first_seed_and_small_benchmarks_come_first():
    made = plan(only=["WN-sym-*", "FB-sym-pa"], seeds=2)
    order = list(dict.fromkeys((cell.seed, cell.benchmark) for cell in made.cells))
    wn, fb = "LogInfer-WN-sym-pa", "LogInfer-FB-sym-pa"
    assert order == [(0, wn), (0, fb), (1, wn), (1, fb)]
    first = [cell.seconds for cell in made.cells if (cell.seed, cell.benchmark) == (0, wn)]
    assert first == sorted(first, reverse=True)


def test_the_table_of_rules_needs_miners_and_that_of_sizes_nobody():
    made = plan(tables=["rules", "sizes"], seeds=2)
    assert {cell.system for cell in made.cells} == {"anyburl", "rulen", "exact", "contrast"}
    assert all(cell.weights for cell in made.cells)
    assert {cell.seed for cell in made.cells if cell.analyse} == {0}
    assert len([cell for cell in made.cells if cell.analyse]) == 4 * 7
    assert not plan(tables=["sizes"]).cells
    assert len(plan(tables=["sizes"]).entries) == 15


def test_rules_are_kept_and_other_weights_are_not():
    made = plan(tables=["lubm"], seeds=1)
    kept = {cell.system for cell in made.cells if cell.weights}
    assert kept == {"anyburl", "rulen", "exact", "contrast"}
    assert not any(cell.analyse for cell in made.cells)


def test_a_system_that_says_yes_or_no_gets_no_threshold_from_valid():
    made = plan(tables=["lubm"], seeds=1)
    assert {cell.system: cell.threshold for cell in made.cells if cell.threshold is not None} == {"simpbl": 0.5}


def test_names_are_given_in_any_case_and_by_alias():
    made = plan(tables=["LUBM"], systems=["RGCN", " TransE", "oracle"], only=["lubm-ALL-*"], budget="Full")
    assert made.request.systems == ("transe", "r-gcn", "oracle")
    assert made.request.benchmarks == ("LogInfer-LUBM-all-qg",)
    assert made.request.budget == "full"


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"systems": ["trans"]}, "transe"),
        ({"tables": ["negative"]}, "negatives"),
        ({"budget": "quik"}, "quick"),
        ({"protocol": "papr"}, "paper"),
        ({"only": ["WN-simm-pa"]}, "WN-sym-pa"),
    ],
)
def test_an_unknown_name_comes_with_the_nearest(options, hint):
    with pytest.raises(UnknownNameError) as caught:
        plan(**options)
    assert hint in (caught.value.hint or "")


def test_benchmarks_that_no_table_is_about_are_refused():
    with pytest.raises(InputError, match="none of these benchmarks"):
        plan(tables=["lubm"], only=["WN-*"])
    with pytest.raises(InputError, match="none of these benchmarks"):
        plan(only=["FB-trian-rb"])
    with pytest.raises(InputError, match="at least one seed"):
        plan(seeds=0)


def test_the_full_budget_changes_nothing_and_the_quick_one_is_a_third():
    for system in PARTICIPANTS:
        assert given_settings(system, "wn18rr", "full") == {}
    shipped = tuned_graphs(find_system("transe"))["lubm"]["epochs"]
    assert given_settings("transe", "lubm", "quick") == {"epochs": round(shipped / 3)}
    for system in SYSTEMS:
        if system == "simpbl":
            continue
        for graph in ("fb15k-237", "wn18rr", "lubm"):
            assert given_settings(system, graph, "quick")
            assert cell_seconds(system, graph, "quick") < cell_seconds(system, graph, "full")


def test_the_quick_budget_for_wn_and_lubm_should_take_under_two_hours_on_two_cores():
    assert plan(only=["WN-*", "LUBM-*"], seeds=3, budget="quick").seconds / 2 < 2 * 3600


def test_the_remaining_time_follows_what_is_observed():
    pace = Pace(2, [100.0] * 10)
    assert pace.remaining() == 500
    for _ in range(5):
        pace.finished(100.0, 300.0)
    # 60 seconds count as expected; then (60 + 1500) / (60 + 500) of the rest.
    assert pace.remaining() == pytest.approx(250 * 1560 / 560)
    pace.finished(100.0, 1.0, counts=False)
    assert pace.remaining() == pytest.approx(200 * 1560 / 560)
    for _ in range(3):
        pace.finished(100.0, 300.0)
    assert pace.remaining() > 100
    pace.finished(100.0, 300.0)
    assert pace.remaining() == 0


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5370, "90 min"), (12000, "3 h 20 min")]
)
def test_times_are_told_in_words(seconds, words):
    assert in_words(seconds) in (words, words.replace("90 min", "1 h 30 min"))
