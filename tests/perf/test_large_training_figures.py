"""The programs that measure training in parts and files, run small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from perf.rows import add_row

ROOT = Path(__file__).resolve().parents[2]


def test_a_training_in_parts_has_its_figures_and_leaves_no_files(tmp_path):
    results = tmp_path / "results.json"
    command = [sys.executable, "-m", "perf.large_training", "transe", "--entities", "2000"]
    command += ["--triples", "6000", "--sample", "3000", "--dimension", "8", "--partitions", "3"]
    command += ["--storage", "mapped", "--checkpoints", "--results", str(results)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(results.read_text())["training"]
    assert json.loads(done.stdout) == row
    assert row["positives_per_cpu_second"] > 0
    assert row["checkpoints_written"] > 0
    # The weights and both moments of all entities at least.
    assert row["disk_bytes"] >= 3 * 4 * 8 * 2000


def test_figures_for_the_same_settings_are_replaced_and_others_stay(tmp_path):
    path = tmp_path / "results.json"
    for seed, figure in ((0, 1), (1, 2), (0, 3)):
        add_row(path, "quality", {"seed": seed}, {"seed": seed, "figure": figure})
    add_row(path, "training", {"workers": 1}, {"workers": 1})
    assert json.loads(path.read_text()) == {
        "quality": [{"seed": 1, "figure": 2}, {"seed": 0, "figure": 3}],
        "training": [{"workers": 1}],
    }
