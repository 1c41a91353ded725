"""The programs behind `make bench` and `make growth`, run small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIP_DATA = {k: v for k, v in os.environ.items() if k != "LOGINFER_DATA"}


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_one_table_has_figures_a_goal_and_a_mark(tmp_path):
    figures = tmp_path / "figures.json"
    done = run("benchmarks", "--only", "import", "--repeats", "1", "--json", str(figures))
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
    done = run("benchmarks", "--only", "import,triangle", "--repeats", "1", env=SKIP_DATA)
    assert done.returncode == 0, done.stderr
    assert "LOGINFER_DATA" in done.stderr
    assert "triangle" not in done.stdout


def test_an_unknown_task_is_refused_with_the_known_ones():
    done = run("benchmarks", "--only", "squares")
    assert done.returncode != 0
    assert "`squares`" in done.stderr
    assert "triangle" in done.stderr


def test_a_process_that_takes_too_long_is_stopped_and_says_so():
    code = (
        "from benchmarks.case import Case; from benchmarks.runner import run_once;"
        "print(run_once(Case('slow', command=('-c', 'while True: pass'), limit=1), {}).failure)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "> 1 s", done.stderr


def test_an_answer_that_differs_from_ours_is_shown():
    code = (
        "from benchmarks.case import Case, Task; from benchmarks.runner import Result;"
        "from benchmarks.table import Row, format_table;"
        "a, b = Case('LogInfer', 'm:f'), Case('peer', 'm:g', faster=2);"
        "task = Task('t', 'question', (a, b)); ours = Result(cold=1, warm=1, summary=[1]);"
        "print(format_table([Row(task, b, Result(cold=3, warm=3, summary=[s]), ours) for s in (1, 2)]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    same, different = done.stdout.splitlines()[2:]
    assert "reached" in same
    assert "ANSWER DIFFERS" in different
