"""Building, from file to folder: 20 compositions, 2,000 conclusions each, position-aware negatives."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from perf.growth.graphs import graph_file, spark_running, stored, until_the_end
from perf.growth.meter import metered

__all__ = ["BUILD", "benchmark_folder", "build"]

BUILD: dict[str, Any] = {"patterns": ("composition",), "k1": 20, "k2": 2000, "negatives": ("pa",)}


def benchmark_folder(folder: str) -> Path:
    """Return where the benchmark is that the native engine built."""
    return Path(folder) / "benchmark"


def build(folder: str, engine: str) -> Any:
    """Prepare nothing, but that Spark runs: the file is read, the benchmark is built and written.

    What the native engine builds is kept for training and evaluating.
    """
    until_the_end(spark_running(engine))
    target = benchmark_folder(folder) if engine == "native" else Path(folder) / f"benchmark-{engine}"

    def call() -> Any:
        from loginfer import load_graph
        from loginfer.benchmark import Recipe, write_benchmark
        from loginfer.benchmark import build as build_benchmark

        file = graph_file(folder)
        shutil.rmtree(target, ignore_errors=True)
        recipe = Recipe(str(file), name="growth", **BUILD)
        if engine == "native":
            return write_benchmark(build_benchmark(recipe, load_graph(file)), target)
        with stored(folder, engine, again=True) as made:
            return write_benchmark(build_benchmark(recipe, made.graph, engine=engine), target)

    def told(manifest: Any) -> dict[str, Any]:
        if engine != "native":
            shutil.rmtree(target)
        made = {"rules": len(manifest["rules"]), "positives": manifest["positives"]["train"]}
        return made | {"checksum": _checksum(manifest["files"])}

    return metered(call, told)


def _checksum(files: dict[str, dict[str, str]]) -> str:
    """Return one checksum for all files of triples: engines that build the same benchmark have the same."""
    data = [name for name in sorted(files) if name.endswith((".txt", ".parquet"))]
    sums = [f"{name} {files[name]['sha256']}\n" for name in data]
    return hashlib.sha256("".join(sums).encode()).hexdigest()[:12]
