"""Several seeds: each a run of its own, and their mean with an interval."""

import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.made_up_benchmarks import family
from tests.support.run_systems import Learner

from loginfer.errors import InputError, OutputError
from loginfer.evaluation import MetricOptions, load_run
from loginfer.evaluation.evaluating import wrap_system
from loginfer.evaluation.seeds import run_seeds, summarise

BENCHMARK = family()


def seeds(path, numbers=(0, 1, 2), wanted=None, **options):
    def make(seed):
        return wrap_system(Learner(seed=seed), name="learner")

    return run_seeds(make, numbers, BENCHMARK, "pa", wanted or MetricOptions(), path, **options)


def content(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name != "timing.json"
    }


def test_each_seed_is_a_complete_run_and_the_summary_their_mean(tmp_path):
    found = seeds(tmp_path / "runs")
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["seed-0", "seed-1", "seed-2", "summary.json"]
    assert json.loads((tmp_path / "runs" / "summary.json").read_text()) == found
    runs = [load_run(tmp_path / "runs" / f"seed-{seed}").as_dict() for seed in range(3)]
    for name in ("roc_auc", "accuracy"):
        values = [run["metrics"][name] for run in runs]
        assert found["metrics"][name] == pytest.approx(statistics.mean(values))
        assert found["deviation"]["metrics"][name] == pytest.approx(statistics.stdev(values))
    values = [run["ranking"]["filtered"]["c_mrr"] for run in runs]
    assert found["ranking"]["filtered"]["c_mrr"] == pytest.approx(statistics.mean(values))
    assert found["ranking"]["filtered"]["tie"] == "realistic"
    assert [each["seed"] for each in found["seeds"]] == [0, 1, 2]
    assert found["seeds"][1]["metrics"] == runs[1]["metrics"]


def test_without_a_folder_the_figures_are_the_same(tmp_path):
    assert seeds(None) == seeds(tmp_path / "runs")


def test_finished_seeds_are_kept_and_the_rest_is_run(tmp_path):
    seeds(tmp_path / "whole")
    told = []
    seeds(tmp_path / "runs", (0, 1))
    since = (tmp_path / "runs" / "seed-1" / "manifest.json").stat().st_mtime_ns
    (tmp_path / "runs" / "seed-0" / "metrics.json").write_text("{}")  # damaged: it is run again
    with pytest.raises(OutputError, match=r"seed-0` is there, but is no complete run: .*metrics\.json"):
        seeds(tmp_path / "runs")
    seeds(tmp_path / "runs", tell=told.append, force=True)
    assert told == ["seed 0 (1 of 3)", "seed 1 (2 of 3): kept", "seed 2 (3 of 3)"]
    assert (tmp_path / "runs" / "seed-1" / "manifest.json").stat().st_mtime_ns == since
    assert content(tmp_path / "runs") == content(tmp_path / "whole")


def test_seeds_of_another_request_are_not_taken_for_these(tmp_path):
    seeds(tmp_path / "runs", (0,))
    with pytest.raises(OutputError, match="exists already"):
        seeds(tmp_path / "runs", (0,), wanted=MetricOptions(threshold=0.5))
    with pytest.raises(OutputError, match="a run or a benchmark of its own"):
        seeds(tmp_path / "runs" / "seed-0")


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_the_interval_is_students(values):
    from scipy import stats

    answers = [
        {"system": "s", "benchmark": "b", "seed": i, "threshold": None, "metrics": {"accuracy": v}, "ranking": {}}
        for i, v in enumerate(values)
    ]
    found = summarise(answers)
    low, high = found["interval"]["metrics"]["accuracy"]
    spread = stats.sem(values)
    expected = (
        stats.t.interval(0.95, len(values) - 1, loc=statistics.mean(values), scale=spread)
        if spread > 0
        else (values[0], values[0])
    )
    expected = (max(expected[0], 0), min(expected[1], 1))  # figures are shares
    assert (low, high) == pytest.approx(expected, abs=1e-9)
    assert low <= found["metrics"]["accuracy"] + 1e-12


def test_one_seed_has_no_interval_and_undefined_figures_stay_undefined():
    one = {"system": "s", "benchmark": "b", "seed": 3, "threshold": 0.5, "metrics": {"accuracy": 1.0}, "ranking": {}}
    found = summarise([one])
    assert found["interval"]["metrics"]["accuracy"] is None
    assert found["metrics"]["accuracy"] == 1.0
    other = {**one, "metrics": {"accuracy": None}}
    assert summarise([one, other])["metrics"]["accuracy"] is None
    with pytest.raises(InputError, match="at least one"):
        summarise([])
