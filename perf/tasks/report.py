"""A report on 500 runs: 5 benchmarks of FB15k-237, 20 systems, 5 seeds."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

HERE = "perf.tasks.report"

PATTERNS = ("symmetry", "inversion", "hierarchy", "composition", "intersection")
SYSTEMS, SEEDS = 20, 5
MINUTE = 60


def ours(folder: str) -> Any:
    """Prepare benchmarks and runs; a page is made for every one of them, audits of the benchmarks included.

    One real run a benchmark stands for all: its copies have other names, seeds and scores.
    """
    from loginfer import Recipe, build, load_graph, write_benchmark

    place = Path(tempfile.mkdtemp(prefix="loginfer-bench-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    graph = load_graph(folder)
    for pattern in PATTERNS:
        recipe = Recipe("fb15k-237", (pattern,), k1=50, k2=200, negatives=("pa",), allow_fewer=True)
        made = build(recipe.changed(name=f"FB-{pattern}"), graph)
        write_benchmark(made, place / "benchmarks" / pattern)
        _runs(made, place / "runs" / pattern)

    def call() -> Any:
        from loginfer.report.collection import collect
        from loginfer.report.facts import ReportContext, ReportOptions
        from loginfer.report.site import write_site

        found = collect([place / "runs", place / "benchmarks"])
        return write_site(ReportContext(found, ReportOptions()), place / "site", force=True)

    def summary(pages: Any) -> Any:
        runs = len(list((place / "runs").rglob("manifest.json")))
        return [runs, len(pages)]

    return call, summary


def _runs(benchmark: Any, folder: Path) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from loginfer import evaluate

    first = folder / "0-0"
    evaluate(benchmark, "adjacent", negatives="pa", out=first)
    scores = pq.read_table(first / "predictions.parquet")
    for system in range(SYSTEMS):
        for seed in range(SEEDS):
            run = folder / f"{system}-{seed}"
            if run != first:
                shutil.copytree(first, run)
            manifest = json.loads((run / "manifest.json").read_text())
            manifest["request"] |= {"system": f"system {system:02}", "seed": seed}
            (run / "manifest.json").write_text(json.dumps(manifest))
            noise = np.random.default_rng([system, seed]).normal(size=len(scores))
            changed = np.asarray(scores["score"]) + 0.1 * noise
            place = scores.column_names.index("score")
            pq.write_table(scores.set_column(place, "score", pa.array(changed)), run / "predictions.parquet")


def tasks(space: Workspace) -> list[Task]:
    """Return the task; nobody else makes such a report."""
    case = Case(OURS, f"{HERE}:ours", {"folder": space.fb}, seconds=MINUTE)
    return [Task("report-500", "report: 500 runs, 5 benchmarks", (case,), needs=("fb15k-237",))]
