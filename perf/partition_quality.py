"""What parts of the entities cost in quality: the same system on the same benchmark with 1, 4 and 8 of them.

    python -m perf.partition_quality BENCH --system transe --parts 1,4,8 --seeds 0,1

Random negatives come from the two parts in memory, so that a positive meets fewer entities at a time. Other
settings are those tuned for the graph, as `loginfer evaluate` takes them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from perf.rows import add_row


def measured(benchmark: Any, system: str, partitions: int, seed: int) -> dict[str, Any]:
    """Train and evaluate once; returns figures on test."""
    import loginfer

    settings = {"partitions": partitions}
    made = loginfer.evaluate(
        benchmark, system, settings=settings, seed=seed, ranking=("filtered",), diagnosis=False
    ).as_dict()
    return {
        "balanced_accuracy": round(made["metrics"]["balanced_accuracy"], 4),
        "roc_auc": round(made["metrics"]["roc_auc"], 4),
        "c_mrr": round(made["ranking"]["filtered"]["c_mrr"], 4),
    }


def main() -> None:
    """Measure all settings, and print each as a line of JSON."""
    import loginfer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", type=Path)
    parser.add_argument("--system", default="transe")
    parser.add_argument("--parts", default="1,4,8")
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    benchmark = loginfer.load_benchmark(given.benchmark)
    for parts in map(int, given.parts.split(",")):
        for seed in map(int, given.seeds.split(",")):
            settings = {"benchmark": benchmark.name, "system": given.system, "partitions": parts, "seed": seed}
            row = {**settings, **measured(benchmark, given.system, parts, seed)}
            print(json.dumps(row), flush=True)
            if given.results is not None:
                add_row(given.results, "quality", settings, row)


if __name__ == "__main__":
    main()
