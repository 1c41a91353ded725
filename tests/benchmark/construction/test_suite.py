"""The suite of the paper: its sizes, and the audit's silence about it."""

import subprocess
import sys
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from loginfer.benchmark import audit
from loginfer.benchmark.construction import suite as run
from loginfer.benchmark.construction.pipeline import foundation
from loginfer.benchmark.construction.suite import (
    TOLERANCE,
    SuiteResult,
    build_suite,
    entries,
    groups,
    select,
    summary_text,
    write_summary,
)
from loginfer.errors import LimitError, OutputError

GROUPS = {group.name: group for group in groups()}


@pytest.fixture
def named_graphs(data_folder, monkeypatch):
    monkeypatch.setenv("LOGINFER_DATA", str(data_folder))


def sizes(group, protocol):
    recipe = group.recipe(group.methods, {"protocol": protocol})
    with foundation(recipe) as laid:
        return laid.positives.splits.sizes


@pytest.mark.data
@pytest.mark.parametrize("protocol", ["paper", "sound"])
def test_the_sizes_of_fb_symmetry_are_exactly_those_of_the_paper(named_graphs, protocol):
    assert sizes(GROUPS["FB-sym"], protocol) == {"train": 318_116, "valid": 1_000, "test": 1_000}


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in GROUPS if not name.startswith("LUBM")])
@pytest.mark.parametrize("protocol", ["paper", "sound"])
def test_sizes_differ_from_the_papers_by_little_or_for_a_reason(named_graphs, name, protocol):
    group = GROUPS[name]
    most = max(abs(size / group.paper[split] - 1) for split, size in sizes(group, protocol).items())
    assert most <= TOLERANCE or group.remark


def silent(folder):
    found = audit(folder)
    told = [finding for finding in found.findings if finding.severity != "note"]
    assert told == []
    assert all(outcome["accuracy"] == 1.0 for outcome in found.oracle.values())
    return len(found.oracle) == 1


@pytest.mark.parametrize("method", ["qg", *(pytest.param(method, marks=pytest.mark.slow) for method in ("rb", "pa"))])
def test_the_audit_is_silent_about_the_lubm_benchmarks(tmp_path, method):
    results = build_suite(tmp_path, select([f"LUBM-*-{method}"]))
    assert [built.state for built in results] == ["built"] * 2
    assert all(silent(tmp_path / built.name) for built in results)


@pytest.mark.data
@pytest.mark.slow
def test_the_audit_is_silent_about_benchmarks_of_wn18rr(named_graphs, tmp_path):
    results = build_suite(tmp_path, select(["WN-trian-qg", "WN-sym-pa", "WN-comp-rb"]))
    assert all(silent(tmp_path / built.name) for built in results)


def test_a_benchmark_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("LOGINFER_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    results = build_suite(tmp_path / "suite", select(["WN-sym-rb", "LUBM-no-type-rb"]))
    assert {built.name: built.state for built in results} == {
        "LogInfer-WN-sym-rb": "failed",
        "LogInfer-LUBM-no-type-rb": "built",
    }
    text = summary_text(results)
    assert "| LogInfer-WN-sym-rb | failed |" in text
    assert "only 9 of the 19 rules" in text


def test_a_folder_with_something_else_stops_the_suite_before_any_work(tmp_path):
    (tmp_path / "LogInfer-LUBM-no-type-pa").mkdir()
    (tmp_path / "LogInfer-LUBM-no-type-pa" / "notes.txt").write_text("mine")
    chosen = select(["LUBM-no-type-*"])
    for force in (False, True):
        with pytest.raises(OutputError):
            build_suite(tmp_path, chosen, force=force)
    assert [path.name for path in tmp_path.iterdir()] == ["LogInfer-LUBM-no-type-pa"]


def test_the_summary_tells_the_paper_what_differs():
    (entry,) = select(["FB-sym-pa"])
    manifest = {
        "positives": {"train": 318_116, "valid": 1_000, "test": 900},
        "conclusions": {"train": 8_000, "valid": 1_000, "test": 900},
        "rules": [{"sampled": 9_900}],
    }
    text = summary_text([SuiteResult(entry.name, "built", manifest)])
    assert "| -10.0 % |" in text
    assert "9,900 conclusions sampled from 1 rules, 9,900 distinct; paper 10,000." in text


def test_there_are_39_names_and_no_two_the_same():
    assert len({entry.name for entry in entries()}) == 39


def test_the_summary_covers_what_was_built_before(tmp_path):
    for only in ("LUBM-no-type-rb", "LUBM-no-type-pa"):
        write_summary(tmp_path, build_suite(tmp_path, select([only])))
    text = (tmp_path / "SUITE.md").read_text()
    assert "| LogInfer-LUBM-no-type-rb |" in text
    assert "| LogInfer-LUBM-no-type-pa |" in text


def test_a_worker_that_was_killed_is_told(tmp_path, monkeypatch):
    class Killed(ProcessPoolExecutor):
        def submit(self, *_):
            future = Future()
            future.set_exception(BrokenProcessPool())
            return future

    monkeypatch.setattr(run, "ProcessPoolExecutor", Killed)
    with pytest.raises(LimitError, match="was killed") as caught:
        build_suite(tmp_path, select(["LUBM-*-rb"]), jobs=2)
    assert "--jobs 1" in str(caught.value)


def test_several_processes_do_not_run_the_callers_script_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import loginfer\nprint('begin')\nprint(len(loginfer.suite('suite', only=['LUBM-*-rb'], jobs=2).rows()))\n"
    )
    ran = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "begin\n2\n"), ran.stderr
