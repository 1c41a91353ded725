"""Filtered MRR against CPU seconds: our training loop and both of PyKEEN's, one thread each.

    python -m perf.training_quality --seconds 300
    python -m perf.training_quality --draw

The first command trains what is missing among the kept results, each in a process of its own that is stopped after so
many CPU seconds. The second prints the table of docs/performance.md and draws its figure. The MRR is that of 500
triples of valid, subjects and objects, after each epoch; measuring it counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from perf.case import OURS
from perf.rows import THREADS, add_row, read_rows
from perf.tasks.training import LOOPS, MODELS, Clock, Curve

GRAPH = "fb15k-237"
RESULTS = Path(__file__).parent / "results" / "training-quality.json"
FIGURE = Path(__file__).parent.parent / "docs" / "images" / "training-quality.svg"
# What no loop is to take longer for, in times of ours.
GOAL = 5
COLOURS = {OURS: "#0072b2", "LCWA": "#d55e00", "sLCWA": "#009e73"}


class Told(Clock):
    """Prints each point as it comes, for whoever stops this process."""

    def enough(self, mrr: float) -> bool:
        """Print what it adds."""
        over = super().enough(mrr)
        print(json.dumps(self.curve[-1]), flush=True)
        return over


def run(model: str, loop: str) -> None:
    """Train until this process is stopped; ours also ends after its last epoch."""
    from perf.peers import pykeen_training
    from perf.tasks.training import learn, standard_split

    benchmark, clock = standard_split(GRAPH), Told(1.0)
    if loop == OURS:
        learn(benchmark, model, clock)
    else:
        pykeen_training.learn(benchmark, model, loop, clock)


def curve_of(model: str, loop: str, seconds: int) -> Curve:
    """Train in a process that is stopped after so many CPU seconds; return what it had printed."""
    command = [sys.executable, "-m", "perf.training_quality", "--child", json.dumps({"model": model, "loop": loop})]
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (seconds, seconds + 1))
    made = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **THREADS}, preexec_fn=limit, check=False
    )
    if made.returncode not in (0, -signal.SIGXCPU, -signal.SIGKILL):
        sys.exit(f"{model} by {loop} failed")
    return [(spent, mrr) for spent, mrr in map(json.loads, made.stdout.splitlines())]


def compare(ours: Curve, theirs: Curve) -> tuple[float, float, float]:
    """Return the highest MRR that both have, and when theirs and ours first had as much."""
    mrr = min(max(mrr for _, mrr in curve) for curve in (ours, theirs))
    reached = (next(seconds for seconds, had in curve if had >= mrr) for curve in (theirs, ours))
    return mrr, *reached


def table(curves: dict[tuple[str, str], Curve]) -> str:
    """Return for each model and loop when it and ours first had the highest MRR that both have, in Markdown."""
    lines = [
        "| model | PyKEEN's loop | epochs | its MRR | ours | both reach | its CPU s | ours | ratio |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for model in MODELS:
        ours = curves.get((model, OURS))
        for loop in LOOPS:
            theirs = curves.get((model, loop))
            if not ours or theirs is None:
                continue
            if theirs:
                mrr, long, short = compare(ours, theirs)
                verdict = "" if long >= GOAL * short else " (short)"
                ends = f"{max(mrr for _, mrr in theirs):.3f} | {max(mrr for _, mrr in ours):.3f}"
                row = f"{len(theirs)} | {ends} | {mrr:.3f} | {long:.0f} | {short:.1f} | {long / short:.1f}{verdict}"
            else:
                row = f"0 | – | {max(mrr for _, mrr in ours):.3f} | – | – | – | –"
            lines.append(f"| {model} | {loop} | {row} |")
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
    parser.add_argument("--seconds", type=int, default=300, help="CPU seconds a process may take")
    parser.add_argument("--only", action="append", help="runs with such words: a model or loop; repeatable")
    parser.add_argument("--again", action="store_true", help="also runs whose results are kept")
    parser.add_argument("--draw", action="store_true", help="print the table and draw the figure of what is kept")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        run(**given.child)
        return
    kept = read_rows(RESULTS).get("curves", [])
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
            row = {**key, "graph": GRAPH, "seconds": given.seconds, "curve": curve_of(model, loop, given.seconds)}
            add_row(RESULTS, "curves", key, row)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
