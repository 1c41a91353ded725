"""The programs behind `make bench`, and the growth of patterns, run small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIP_DATA = {k: v for k, v in os.environ.items() if k != "LOGINFER_DATA"}


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_one_table_has_figures_a_goal_and_a_mark(tmp_path):
    figures = tmp_path / "figures.json"
    done = run("perf", "--only", "import", "--repeats", "1", "--json", str(figures))
    assert done.returncode == 0, done.stderr
    header, _, ours, python = done.stdout.splitlines()[:4]
    assert "warm s" in header
    assert "cold s" in header
    assert "MB" in header
    assert "< 0.5 s" in ours
    assert "Python alone" in python
    rows = json.loads(figures.read_text())["rows"]
    assert [row["system"] for row in rows] == ["LogInfer", "Python alone"]
    assert all(row["cold"] > 0 and row["megabytes"] > 1 for row in rows)


def test_tasks_on_a_graph_that_is_missing_are_left_out_with_a_reason():
    done = run("perf", "--only", "import,triangle", "--repeats", "1", env=SKIP_DATA)
    assert done.returncode == 0, done.stderr
    assert "LOGINFER_DATA" in done.stderr
    assert "triangle" not in done.stdout


def test_an_unknown_task_is_refused_with_the_known_ones():
    done = run("perf", "--only", "squares")
    assert done.returncode != 0
    assert "`squares`" in done.stderr
    assert "triangle" in done.stderr


def test_a_process_that_takes_too_long_is_stopped_and_says_so():
    code = (
        "from perf.case import Case; from perf.runner import run_once;"
        "print(run_once(Case('slow', command=('-c', 'while True: pass'), limit=1), {}).failure)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "> 1 s", done.stderr


def test_an_answer_that_differs_from_ours_is_shown():
    code = (
        "from perf.case import Case, Task; from perf.runner import Result;"
        "from perf.table import Row, format_table;"
        "a, b = Case('LogInfer', 'm:f'), Case('peer', 'm:g', faster=2);"
        "task = Task('t', 'question', (a, b)); ours = Result(cold=1, warm=1, summary=[1]);"
        "print(format_table([Row(task, b, Result(cold=3, warm=3, summary=[s]), ours) for s in (1, 2)]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    same, different = done.stdout.splitlines()[2:]
    assert "reached" in same
    assert "ANSWER DIFFERS" in different


def test_a_goal_of_seconds_and_memory_is_reached_only_if_both_are():
    code = (
        "from perf.case import Case, Task; from perf.runner import Result;"
        "from perf.table import Row;"
        "case = Case('LogInfer', 'm:f', seconds=10, megabytes=100); task = Task('t', 'question', (case,));"
        "several = {'all_megabytes': 150.0};"
        "results = [Result(warm=9, megabytes=90), Result(warm=11, megabytes=90),"
        "           Result(warm=9, megabytes=110), Result(warm=9, megabytes=90, summary=several)];"
        "rows = [Row(task, case, result, result) for result in results];"
        "print(rows[0].goal, [row.reached for row in rows], rows[3].megabytes)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "< 10 s, < 100 MB [True, False, False, False] 150.0", done.stderr


def test_an_estimate_says_what_it_is_for_and_how_long_that_takes():
    code = (
        "from perf.case import Case, Estimate, Task; from perf.runner import Result;"
        "from perf.table import Row;"
        "case = Case('peer', 'm:f'); task = Task('t', 'question', (case,), estimate=Estimate(5000, 'all'));"
        "print(Row(task, case, Result(warm=2), Result(warm=2)).estimate)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "peer: about 2.8 CPU hours for all", done.stderr


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_the_memory_of_a_family_holds_that_of_its_children():
    child = "import time; a = b'x' * 80_000_000; print(1, flush=True); time.sleep(9)"
    code = (
        "import subprocess, sys, time; from perf.family import Family\n"
        "with Family() as family:\n"
        f"    with subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE) as process:\n"
        "        process.stdout.readline(); time.sleep(0.3); process.kill()\n"
        "print(family.megabytes > 80)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr


def test_growth_of_patterns_builds_a_benchmark_and_keeps_figures_of_other_steps(tmp_path):
    figures = tmp_path / "pattern-growth.json"
    other = {"triples": 5, "step": "diamond", "warm": 1.0, "megabytes": 1.0, "failure": None}
    figures.write_text(json.dumps([other]))
    options = ("--keep", "--json", str(figures), "--no-plot")
    done = run("perf.pattern_growth", "--sizes", "30000", "--steps", "build", *options)
    assert done.returncode == 0, done.stderr
    first, loading, build = json.loads(figures.read_text())
    assert first == other
    assert loading["step"] == "loading"
    assert build["failure"] is None
    assert build["summary"]["rules"] == 20
    assert build["summary"]["positives"]["train"] > 30_000
