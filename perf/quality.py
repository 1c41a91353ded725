"""Where our figures fall short of the paper's: the goals, held against the results of a reproduction.

    loginfer reproduce --budget full --out again
    python -m perf.quality again/results

Prints the tables of the page `results`: balanced accuracy against the paper's AUC, and filtered C-MRR; bold where ours
lies further below the paper's figure than the goal allows, and † where the oracle does so, too.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from loginfer.benchmark.construction.suite import entries
from loginfer.report.paper import SYSTEMS

VECTORS = ("transe", "rotate", "complex", "distmult", "boxe", "r-gcn")
MINERS = ("anyburl", "rulen", "exact", "contrast")
# How far a figure may lie below the paper's, in points; more for miners, which draw at random.
ALLOWED = {"balanced_accuracy": 1.0, "c_mrr": 3.0}
FOR_MINERS = {"balanced_accuracy": 2.0, "c_mrr": 3.0}
TITLES = {"balanced_accuracy": "Balanced accuracy", "c_mrr": "C-MRR, filtered"}

Results = dict[tuple[str, str], dict[str, Any]]


def read_results(folder: Path) -> Results:
    """Return all results of a reproduction, by system and benchmark."""
    files = sorted(folder.glob("*/*.json"))
    return {(file.parent.name, file.stem): json.loads(file.read_bytes()) for file in files}


def figure(result: dict[str, Any], metric: str) -> float | None:
    """Return our figure in percent: the mean over the seeds."""
    mean = result["mean"]
    part = mean["metrics"] if metric in mean["metrics"] else mean["ranking"].get("filtered", {})
    value = part.get(metric)
    return None if value is None else 100 * float(value)


def judge(result: dict[str, Any], oracle: dict[str, Any] | None, metric: str) -> str | None:
    """Say whether a figure is `reached`, `short` or `impossible`, for the oracle too; None without the paper's."""
    ours, theirs = figure(result, metric), result["paper"].get(metric)
    if ours is None or theirs is None:
        return None
    goal = 100 * float(theirs) - (FOR_MINERS if result["system"] in MINERS else ALLOWED)[metric]
    highest = None if oracle is None else figure(oracle, metric)
    if ours >= goal:
        return "reached"
    return "impossible" if highest is not None and highest < goal else "short"


def table(results: Results, systems: tuple[str, ...], metric: str) -> str:
    """Return a table in Markdown: ours, and the paper's in brackets."""
    titles = [SYSTEMS.get(system, system) for system in systems]
    lines = ["| benchmark | " + " | ".join(titles) + " |", "|---" * (len(systems) + 1) + "|"]
    for entry in entries():
        found = [results.get((system, entry.name)) for system in systems]
        if any(result is not None and result["paper"] for result in found):
            name = entry.name.removeprefix("LogInfer-")
            oracle = results.get(("oracle", entry.name))
            lines.append(f"| {name} | " + " | ".join(_cell(result, oracle, metric) for result in found) + " |")
    return "\n".join(lines)


def _cell(result: dict[str, Any] | None, oracle: dict[str, Any] | None, metric: str) -> str:
    ours = None if result is None else figure(result, metric)
    if result is None or ours is None:
        return ""
    theirs = result["paper"].get(metric)
    text = f"{ours:.1f}" if theirs is None else f"{ours:.1f} ({100 * theirs:.1f})"
    return {"short": f"**{text}**", "impossible": f"{text} †"}.get(judge(result, oracle, metric) or "", text)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m perf.quality", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="the folder `results` of a reproduction")
    results = read_results(parser.parse_args().results)
    for systems, group in ((VECTORS, "vector systems"), (MINERS, "miners")):
        for metric in ALLOWED:
            print(f"### {TITLES[metric]} of {group}, in percent (paper)\n")
            print(table(results, (*systems, "oracle"), metric) + "\n")
            mine = [result for (system, _), result in results.items() if system in systems]
            oracles = [results.get(("oracle", benchmark)) for system, benchmark in results if system in systems]
            verdicts = Counter(judge(*pair, metric) for pair in zip(mine, oracles, strict=True))
            spent = sum(run["timing"]["cpu_seconds"] or 0 for result in mine for run in result["seeds"])
            reached, short, impossible = (verdicts[word] for word in ("reached", "short", "impossible"))
            print(f"Goal reached in {reached} of {reached + short + impossible}, in {impossible} the oracle is short,")
            print(f"too; {spent / 60:.0f} CPU minutes.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
