"""Filtered MRR against CPU seconds: our training loop and both of PyKEEN's, one thread each.

    python -m perf.training_quality --seconds 300
    python -m perf.training_quality --draw

The first command trains what is missing among the kept results, each in a process of its own that ends with the first
epoch after so many CPU seconds. The second prints the table of docs/performance.md and draws its figure. The MRR is
that of 500 triples of valid, subjects and objects, after each epoch; measuring it counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from perf.case import OURS
from perf.large_training import add_row
from perf.tasks.training import LOOPS, MODELS, Clock, Curve

GRAPH = "fb15k-237"
RESULTS = Path(__file__).parent / "results" / "training-quality.json"
FIGURE = Path(__file__).parent.parent / "docs" / "images" / "training-quality.svg"
# What no loop is to take longer for, in times of ours.
GOAL = 5
COLOURS = {OURS: "#0072b2", "LCWA": "#d55e00", "sLCWA": "#009e73"}
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def run(model: str, loop: str, seconds: float) -> Curve:
    """Train until the time is up; ours also ends after its last epoch."""
    from loginfer import load_benchmark
    from perf.peers import pykeen_training
    from perf.tasks.training import learn

    benchmark, clock = load_benchmark(GRAPH), Clock(1.0, seconds)
    return learn(benchmark, model, clock) if loop == OURS else pykeen_training.learn(benchmark, model, loop, clock)


def compare(ours: Curve, theirs: Curve) -> tuple[float, float, float]:
    """Return the highest MRR that both have, and when theirs and ours first had as much."""
    mrr = min(max(mrr for _, mrr in curve) for curve in (ours, theirs))
    reached = (next(seconds for seconds, had in curve if had >= mrr) for curve in (theirs, ours))
    return mrr, *reached


def table(curves: dict[tuple[str, str], Curve]) -> str:
    """Return for each model and loop when it and ours first had the highest MRR that both have, in Markdown."""
    lines = [
        "| model | PyKEEN's loop | CPU s | epochs | its MRR | ours | both reach | its CPU s | ours | ratio |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for model in MODELS:
        ours = curves.get((model, OURS))
        for loop in LOOPS:
            theirs = curves.get((model, loop))
            if not ours or not theirs:
                continue
            mrr, long, short = compare(ours, theirs)
            best = [max(mrr for _, mrr in curve) for curve in (theirs, ours)]
            verdict = "" if long >= GOAL * short else " (short)"
            lines.append(
                f"| {model} | {loop} | {theirs[-1][0]:.0f} | {len(theirs)} | {best[0]:.3f} | {best[1]:.3f} "
                f"| {mrr:.3f} | {long:.0f} | {short:.1f} | {long / short:.1f}{verdict} |"
            )
    return "\n".join(lines)


def draw(curves: dict[tuple[str, str], Curve], file: Path) -> None:
    """Draw a panel a model."""
    import matplotlib as mpl

    mpl.use("svg")
    # The same figures give the same file; text stays text.
    mpl.rcParams.update({"svg.hashsalt": "loginfer", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    from loginfer.files import atomic_path

    figure, panels = plt.subplots(1, len(MODELS), figsize=(12, 3), sharex=True, sharey=True, layout="constrained")
    for panel, model in zip(panels, MODELS, strict=True):
        for loop, colour in COLOURS.items():
            if curve := curves.get((model, loop)):
                label = loop if loop == OURS else f"PyKEEN, {loop}"
                panel.plot(*zip(*curve, strict=True), marker="o", ms=3, color=colour, label=label)
        panel.set(title=model, xscale="log", xlabel="CPU seconds")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("filtered MRR on valid")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    with atomic_path(file, force=True) as part:
        figure.savefig(part, format="svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300, help="CPU seconds a loop may train")
    parser.add_argument("--only", action="append", help="runs with such words: a model or loop; repeatable")
    parser.add_argument("--again", action="store_true", help="also runs whose results are kept")
    parser.add_argument("--draw", action="store_true", help="print the table and draw the figure of what is kept")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        print(json.dumps(run(**given.child)))
        return
    kept: list[dict[str, Any]] = json.loads(RESULTS.read_text())["curves"] if RESULTS.exists() else []
    curves = {(row["model"], row["loop"]): [(t, mrr) for t, mrr in row["curve"]] for row in kept}
    if given.draw:
        print(table(curves))
        draw(curves, FIGURE)
        return
    for model in MODELS:
        for loop in (OURS, *LOOPS):
            if ((model, loop) in curves and not given.again) or not {model, loop}.issuperset(given.only or []):
                continue
            key = {"model": model, "loop": loop}
            child = json.dumps({**key, "seconds": given.seconds})
            command = [sys.executable, "-m", "perf.training_quality", "--child", child]
            made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **THREADS})
            row = {**key, "graph": GRAPH, "curve": json.loads(made.stdout.splitlines()[-1])}
            add_row(RESULTS, "curves", key, row)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
