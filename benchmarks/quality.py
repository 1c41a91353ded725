"""The paper's table, run again: systems against benchmarks of the suite, beside the paper's figures.

    python -m benchmarks.quality --suite SUITE --runs RUNS --jobs 2
    python -m benchmarks.quality --runs RUNS --markdown docs/results.md --json benchmarks/results/quality.json

A cell is one `loginfer evaluate`, run as its users run it; a cell that is there already is not run again, and
one that was killed goes on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SYSTEMS = {
    "transe": "TransE",
    "rotate": "RotatE",
    "complex": "ComplEx",
    "distmult": "DistMult",
    "boxe": "BoxE",
    "r-gcn": "R-GCN",
    "anyburl": "AnyBURL",
    "rulen": "RuleN",
    # Not in the paper: rules with exact counts, rules learned from the negatives, and the rules themselves.
    "exact": "exact",
    "contrast": "contrast",
    "oracle": "oracle",
}
# The benchmarks of the paper's two tables of results.
METHODS = {"sym": "pa", "inver": "pa", "hier": "pa", "comp": "pa", "inter": "qg", "trian": "qg", "diam": "qg"}
BENCHMARKS = [
    *(("FB", pattern, method) for pattern, method in METHODS.items()),
    *(("WN", pattern, method) for pattern, method in METHODS.items() if pattern != "inter"),
    ("LUBM", "all", "qg"),
    ("LUBM", "no-type", "qg"),
]
# How far a figure may lie below the paper's, in points; more for miners, which draw at random.
ALLOWED = {"balanced_accuracy": 1.0, "c_mrr": 3.0}
MINERS = {"AnyBURL": {"balanced_accuracy": 2.0}, "RuleN": {"balanced_accuracy": 2.0}}
PAPER_NAMES = {"balanced_accuracy": "AUC", "c_mrr": "C-MRR", "r_mrr": "R-MRR"}


@dataclass(frozen=True)
class Cell:
    """One system on one benchmark."""

    system: str
    kg: str
    pattern: str
    method: str

    @property
    def benchmark(self) -> str:
        """The name of its folder in the suite."""
        return f"LogInfer-{self.kg}-{self.pattern}-{self.method}"

    def run(self, runs: Path) -> Path:
        """Where its run is kept."""
        return runs / self.system / self.benchmark


def cells(systems: list[str], only: list[str]) -> list[Cell]:
    """Return the cells that are wanted, the largest first."""
    found = [Cell(system, *benchmark) for benchmark in BENCHMARKS for system in systems]
    return [cell for cell in found if not only or any(word in cell.benchmark for word in only)]


def run_cell(cell: Cell, suite: Path, runs: Path) -> str:
    """Run one cell unless it is there; return what went wrong, if something did."""
    out = cell.run(runs)
    if (out / "manifest.json").exists():
        return ""
    started = time.monotonic()
    words = ["evaluate", suite / cell.benchmark, "--system", cell.system, "--out", out, "--json"]
    command = [sys.executable, "-m", "loginfer", *map(str, words)]
    # One core a cell: threads of linear algebra would only get in the other cell's way.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    print(
        f"{cell.system:9} {cell.benchmark:24} {time.monotonic() - started:6.0f} s",
        file=sys.stderr,
        flush=True,
    )
    return "" if done.returncode == 0 else f"{cell.system} on {cell.benchmark}: {done.stderr.strip()}"


def paper_figures() -> dict[tuple[str, str, str, str], float]:
    with (Path(__file__).parent / "paper.csv").open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["table"] != "result-neg"]
    return {(row["system"], row["kg"], row["pattern"], row["metric"]): float(row["value"]) for row in rows}


def collect(wanted: list[Cell], runs: Path) -> list[dict[str, object]]:
    """Return a row for each cell that was run: our figures and the paper's, in percent."""
    paper, rows = paper_figures(), []
    for cell in wanted:
        folder = cell.run(runs)
        if not (folder / "manifest.json").exists():
            continue
        metrics = json.loads((folder / "metrics.json").read_text())
        timing = json.loads((folder / "timing.json").read_text())
        ours = {"balanced_accuracy": metrics["metrics"]["balanced_accuracy"]}
        ours["roc_auc"] = metrics["metrics"]["roc_auc"]
        ours |= {name: metrics["ranking"]["filtered"][name] for name in ("c_mrr", "r_mrr")}
        row: dict[str, object] = {"system": SYSTEMS[cell.system], "benchmark": cell.benchmark}
        row |= {name: round(100 * value, 2) for name, value in ours.items()}
        for name, theirs in PAPER_NAMES.items():
            key = (SYSTEMS[cell.system], cell.kg, cell.pattern, theirs)
            row[f"paper_{name}"] = paper.get(key)
        row["cpu_seconds"] = timing.get("cpu_seconds")
        row["peak_megabytes"] = round(timing["peak_memory_bytes"] / 1e6)
        rows.append(row)
    return rows


def short_of(row: dict[str, object], name: str) -> bool:
    """Whether a figure lies further below the paper's than is allowed."""
    ours, theirs = row[name], row[f"paper_{name}"]
    allowed = MINERS.get(str(row["system"]), {}).get(name, ALLOWED[name])
    return isinstance(ours, float) and isinstance(theirs, float) and ours < theirs - allowed


def markdown(rows: list[dict[str, object]]) -> str:
    """Return one table a metric: ours, and the paper's in brackets; bold where ours falls short."""
    parts = []
    for name, title in (("balanced_accuracy", "Balanced accuracy"), ("c_mrr", "C-MRR, filtered")):
        systems = list(dict.fromkeys(str(row["system"]) for row in rows))
        parts.append(f"### {title}, in percent (paper)\n")
        parts.append("| benchmark | " + " | ".join(systems) + " |")
        parts.append("|---" * (len(systems) + 1) + "|")
        for benchmark in dict.fromkeys(str(row["benchmark"]) for row in rows):
            found = {row["system"]: row for row in rows if row["benchmark"] == benchmark}
            shown = [_entry(found.get(system), name) for system in systems]
            parts.append(f"| {benchmark.removeprefix('LogInfer-')} | " + " | ".join(shown) + " |")
        parts.append("")
    return "\n".join(parts)


def _entry(row: dict[str, object] | None, name: str) -> str:
    if row is None:
        return ""
    theirs = row[f"paper_{name}"]
    text = f"{row[name]:.1f}" if theirs is None else f"{row[name]:.1f} ({theirs:.1f})"
    return f"**{text}**" if short_of(row, name) else text


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument(
        "--suite", type=Path, help="a suite built with `loginfer suite build --protocol paper`"
    )
    parser.add_argument("--runs", type=Path, required=True, help="where the runs are kept")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="names, separated by commas")
    parser.add_argument("--only", default="", help="parts of benchmarks' names, e.g. WN,FB-sym")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time (default 2)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    options = parser.parse_args()
    only = [word for word in options.only.split(",") if word]
    wanted = cells(options.systems.split(","), only)
    failures = []
    if options.suite:
        with ThreadPoolExecutor(options.jobs) as pool:
            failures = [f for f in pool.map(lambda c: run_cell(c, options.suite, options.runs), wanted) if f]
    rows = collect(wanted, options.runs)
    print(markdown(rows))
    for row in rows:
        for name in filter(lambda name: short_of(row, name), ALLOWED):
            print(f"short: {row['system']}, {row['benchmark']}: {name} {row[name]} ({row['paper_' + name]})")
    print("\n".join(failures), file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(markdown(rows))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
