"""Cost against size: synthetic power-law graphs with 500 relations, up to 10 million triples.

Measured are loading, ranking the bodies of patterns, and building a benchmark: 20 rules of composition with
2,000 conclusions each, and position-aware negatives, as many as there are triples in train.

Writes all figures as JSON and draws them. `python -m perf.pattern_growth --help` has the options.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from perf.case import OURS, Case
from perf.runner import run_once

SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
RELATIONS = 500
TOP = 200
STEPS = ("composition", "intersection", "triangle", "diamond", "build")
ROOT = Path(__file__).resolve().parent.parent
LIMIT = 1800.0
BUILD = {"patterns": ("composition",), "k1": 20, "k2": 2000, "negatives": ("pa",)}


def generate(triples: int, file: str) -> Any:
    """Prepare to write a graph as text."""

    def call() -> int:
        from loginfer import write_graph
        from perf.power_law import power_law_graph

        graph = power_law_graph(triples, relations=RELATIONS)
        write_graph(graph, file, force=True)
        return len(graph)

    return call, int


def load(file: str) -> Any:
    """Prepare to load a graph."""
    from loginfer import load_graph

    def two_paths(graph: Any) -> int:
        import numpy as np

        ends = (np.bincount(graph.triples[:, column], minlength=len(graph.entities)) for column in (0, 2))
        return int(np.dot(*ends))

    return lambda: load_graph(file), lambda graph: {"triples": len(graph), "two_paths": two_paths(graph)}


def rank(file: str, pattern: str) -> Any:
    """Prepare to rank the bodies of a pattern. Each call starts without indexes of the graph."""
    from loginfer import load_graph, open_engine, parse_pattern

    graph = load_graph(file)

    def call() -> Any:
        return open_engine(graph.with_triples(graph.triples)).rank_bodies(parse_pattern(pattern), TOP)

    return call, lambda table: {"largest": int(table.support[0]), "complete": table.nonzero is not None}


def build(file: str) -> Any:
    """Prepare nothing: the graph is loaded, the benchmark is built and written."""

    def call() -> Any:
        from loginfer import load_graph
        from loginfer.benchmark import Recipe, write_benchmark
        from loginfer.benchmark import build as build_benchmark

        made = build_benchmark(Recipe(file, name="growth", **BUILD), load_graph(file))
        with tempfile.TemporaryDirectory(prefix="loginfer-growth-", dir=Path(file).parent) as folder:
            return write_benchmark(made, Path(folder) / "made")

    return call, lambda manifest: {"positives": manifest["positives"], "rules": len(manifest["rules"])}


def measure(sizes: list[int], wanted: list[str], limit: float) -> list[dict[str, Any]]:
    """Return a record for each size and step; `build` is a benchmark, other names are patterns."""
    records = []
    with tempfile.TemporaryDirectory(prefix="loginfer-growth-") as folder:
        for size in sizes:
            file = str(Path(folder) / "graph.tsv")
            made = run_once(_case("generate", limit, triples=size, file=file), {})
            if made.failure:
                sys.exit(f"error: no graph of {size:,} triples: {made.failure}")
            steps = [("loading", _case("load", limit, file=file))]
            for name in wanted:
                if name == "build":
                    steps.append((name, _case("build", limit, file=file)))
                else:
                    steps.append((name, _case("rank", limit, file=file, pattern=name)))
            for name, case in steps:
                result = run_once(case, {})
                records.append({"triples": size, "step": name, **result.as_json()})
                print(_line(records[-1]), flush=True)
    return records


def _case(function: str, limit: float, **arguments: Any) -> Case:
    return Case(OURS, f"perf.pattern_growth:{function}", arguments, limit=limit)


def _line(record: dict[str, Any]) -> str:
    cost = record["failure"] or f"{record['warm']:9.2f} CPU-s {record['megabytes']:7.0f} MB"
    return f"{record['triples']:>11,} triples  {record['step']:<13}{cost}"


def plot(records: list[dict[str, Any]], file: Path) -> None:
    """Draw CPU seconds and peak memory against the number of triples."""
    import matplotlib as mpl

    mpl.use("svg")
    # The same figures give the same file; text stays text.
    mpl.rcParams.update({"svg.hashsalt": "loginfer", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    panels = (("warm", "CPU seconds"), ("megabytes", "peak memory, MB"))
    for axis, (figure_name, label) in zip(axes, panels, strict=True):
        for step in dict.fromkeys(record["step"] for record in records):
            done = [r for r in records if r["step"] == step and not r["failure"]]
            axis.plot([r["triples"] for r in done], [r[figure_name] for r in done], marker="o", label=step)
        axis.set(xscale="log", yscale="log", xlabel="triples", ylabel=label)
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Measure and draw."""
    parser = argparse.ArgumentParser(prog="python -m perf.pattern_growth", description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of triples")
    parser.add_argument(
        "--steps", default=",".join(STEPS), help="patterns whose bodies to rank, and `build` for a benchmark"
    )
    parser.add_argument("--keep", action="store_true", help="keep figures of other steps and sizes")
    parser.add_argument("--limit", type=float, default=LIMIT, help="CPU seconds for one measurement")
    parser.add_argument("--json", type=Path, default=ROOT / "perf" / "results" / "pattern-growth.json")
    parser.add_argument("--plot", type=Path, default=ROOT / "docs" / "growth.svg")
    parser.add_argument("--no-plot", action="store_true", help="only write the figures")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    records = measure(sizes, options.steps.split(","), options.limit)
    if options.keep and options.json.exists():
        # Only some steps were measured: figures of the others stay.
        done = {(record["triples"], record["step"]) for record in records}
        old = json.loads(options.json.read_text())
        records = sorted(
            [record for record in old if (record["triples"], record["step"]) not in done] + records,
            key=lambda record: record["triples"],
        )
    for path in (options.json, options.plot):
        path.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(records, indent=1) + "\n")
    if not options.no_plot:
        plot(records, options.plot)


if __name__ == "__main__":
    main()
