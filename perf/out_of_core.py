"""Building a benchmark from a graph that does not fit into the memory DuckDB is given.

A power-law graph is written as Parquet, unless it is there already, and in a process of its own a benchmark
of compositions is built from it: 20 rules, up to 2,000 conclusions of each, position-aware negatives, as many
as there are triples. Printed for each step: wall-clock and CPU seconds, memory of the process so far, files.

    python -m perf.out_of_core --triples 100000000 --memory-limit 4GB --folder somewhere-large
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from perf.child import cpu_seconds, peak_megabytes

RELATIONS = 1000
SETTINGS: dict[str, Any] = {"patterns": ("composition",), "k1": 20, "k2": 2000, "negatives": ("pa",)}
ROOT = Path(__file__).resolve().parent.parent


class Steps:
    """Notes what each step of a build cost.

    Parameters
    ----------
    folder
        Where the files are whose size is watched.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[dict[str, Any]] = []
        self.largest = 0
        self._started = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self, name: str) -> None:
        """Say that a step begins; one that goes on is not noted again."""
        name = name.replace("`", "").strip()
        if not self.rows or self.rows[-1]["step"] != name:
            self.rows.append({"step": name, "from": self._now()})
            print(json.dumps(self.rows[-1]), file=sys.stderr, flush=True)

    def show(self, what: str, done: int, total: int | None) -> None:
        """Note the progress of a build."""
        self.begin(what)
        if total:
            now = self._now()
            print(f"{what} {done}/{total}: {now}", file=sys.stderr, flush=True)

    def end(self) -> dict[str, Any]:
        """Return the figures of all steps, and of the whole."""
        return {"steps": self.rows, **self._now()}

    def _now(self) -> dict[str, float]:
        self._look()
        return {
            "seconds": round(time.monotonic() - self._started, 1),
            "cpu": round(cpu_seconds(), 1),
            "megabytes": round(peak_megabytes()),
            "disk_megabytes": round(self.largest / 2**20),
        }

    def _look(self) -> None:
        sizes = []
        for file in self.folder.rglob("*"):
            try:
                sizes.append(file.stat().st_size if file.is_file() else 0)
            except OSError:  # it has been removed in the meantime
                continue
        self.largest = max(self.largest, sum(sizes))

    def _watch(self) -> None:
        while True:
            self._look()
            time.sleep(2)


def build(graph: Path, folder: Path, memory_limit: str) -> dict[str, Any]:
    """Build in this process, and return what it cost."""
    from loginfer.benchmark import Recipe, build, write_benchmark
    from loginfer.engine.duckdb import DuckDBEngine

    steps = Steps(folder)
    steps.begin("reading the graph")
    engine = DuckDBEngine.from_files([graph], folder / "graph", force=True, memory_limit=memory_limit, directory=folder)
    with engine:
        made = build(Recipe(str(graph), **SETTINGS), engine.graph, engine="duckdb", progress=steps.show)
        steps.begin("writing")
        manifest = write_benchmark(made, folder / "benchmark", force=True)
    triples = {name: manifest[name] for name in ("positives", "conclusions")}
    return {"memory_limit": memory_limit, "rules": len(manifest["rules"]), **triples, **steps.end()}


def main() -> None:
    """Generate, build, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=100_000_000)
    parser.add_argument("--memory-limit", default="4GB")
    parser.add_argument("--folder", type=Path, required=True, help="for the graph and temporary files")
    parser.add_argument("--results", type=Path, default=ROOT / "perf" / "results" / "out-of-core.json")
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    graph = given.folder / f"power-law-{given.triples}.parquet"
    if given.in_this_process:
        print(json.dumps(build(graph, given.folder / "work", given.memory_limit)))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    if not graph.exists():
        command = [sys.executable, "-m", "perf.power_law_file", str(given.triples), str(graph)]
        subprocess.run([*command, "--relations", str(RELATIONS)], check=True, cwd=ROOT)
    (given.folder / "work").mkdir(exist_ok=True)
    try:
        command = [sys.executable, "-m", "perf.out_of_core", *sys.argv[1:], "--in-this-process"]
        ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    finally:
        shutil.rmtree(given.folder / "work")
    known = json.loads(given.results.read_text()) if given.results.exists() else {}
    known[f"{given.triples} {given.memory_limit}"] = json.loads(ran.stdout)
    given.results.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
