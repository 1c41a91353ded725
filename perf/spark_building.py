"""Building a benchmark on Spark, from a file that never comes into memory: what it costs, step by step.

20 compositions, up to 2,000 conclusions of each, position-aware negatives, as many as there are triples.
Printed for each step: seconds on the clock, CPU seconds and peak megabytes of Java and Python, queries.

    python -m perf.spark_building graph.parquet --folder somewhere --master local[2] --heap 4g
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

from loginfer.benchmark import Recipe, build, write_benchmark
from loginfer.engine.spark import session as application
from loginfer.engine.spark.engine import SparkEngine
from loginfer.engine.spark.session import spark_application


class Steps:
    """Prints what has been used so far whenever a step begins."""

    def __init__(self) -> None:
        self.queries = 0
        self._begun = time.monotonic()
        self._last = ""

    def show(self, what: str, done: int = 0, total: int | None = None) -> None:
        """Note that a step begins; one that goes on is not noted again."""
        if what == self._last:
            return
        self._last = what
        java, python = used(java_process()), used(os.getpid())
        row: dict[str, Any] = {"step": what, "seconds": round(time.monotonic() - self._begun, 1)}
        row |= {"cpu": round(java[0] + python[0], 1), "java_megabytes": java[1], "python_megabytes": python[1]}
        print(json.dumps(row | {"queries": self.queries}), flush=True)

    def count(self) -> None:
        """Count all queries from now on."""
        from pyspark.sql import SparkSession

        ask = SparkSession.sql

        def counted(session: Any, *words: Any, **named: Any) -> Any:
            self.queries += 1
            return ask(session, *words, **named)

        SparkSession.sql = counted


def java_process() -> int:
    """Return the process that Spark runs in."""
    (running,) = application._running.values()
    return int(running.context._gateway.proc.pid)


def used(process: int) -> tuple[float, int]:
    """Return the CPU seconds and the peak megabytes of a process."""
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM")).split()[1]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), int(peak) // 1024


def main() -> None:
    """Build, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=Path, help="a TSV or Parquet file")
    parser.add_argument("--folder", type=Path, required=True, help="for temporary files and the benchmark")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--heap", default="4g", help="memory that Java may use")
    parser.add_argument("--negatives", nargs="+", default=["pa"])
    given = parser.parse_args()
    work = given.folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    recipe = Recipe(str(given.graph), patterns=("composition",), k1=20, k2=2000, negatives=tuple(given.negatives))
    steps = Steps()
    try:
        with spark_application(given.master, {"spark.driver.memory": given.heap}, work):
            steps.count()
            steps.show("reading the graph")
            with SparkEngine.from_files([given.graph], work / "graph") as engine:
                made = build(recipe, engine.graph, engine="spark", progress=steps.show)
                steps.show("writing")
                write_benchmark(made, given.folder / "benchmark", force=True)
                steps.show("done")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
