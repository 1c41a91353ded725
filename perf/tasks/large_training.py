"""Training on synthetic graphs of a million entities and with Wikidata5M's numbers: a part of an epoch.

Learned from is a sample of the triples, with random corruptions among all entities, so that positives a
second are those of a whole epoch. Where weights are split into parts, a sample pays for swapping all of them.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

HERE = "perf.tasks.large_training"

MILLION = 10**6
# Entities, triples and relations of Wikidata5M, and a graph of a fifth of it.
WIKIDATA5M = {"entities": 5 * MILLION, "triples": 21 * MILLION}
FIFTH = {"entities": MILLION, "triples": 4_200_000}
RELATIONS = 822
SAMPLE = MILLION


def ours(
    entities: int,
    triples: int,
    model: str = "transe",
    sample: int = SAMPLE,
    valid: int = 10_000,
    checkpoints: bool = False,
    **settings: Any,
) -> Any:
    """Prepare a graph; one epoch is measured from after its start, positives a second are in the summary.

    With `checkpoints` these are asked for all the time, and come as often as weights in files allow.
    """
    from loginfer.systems import find_system

    kind = find_system(model).load()
    system = kind(**{"mode": "random", "epochs": 1, "workers": 1} | settings)
    # Kernels are compiled beforehand.
    kind(mode="random", epochs=1, dimension=4, workers=system.workers).fit(benchmark_of(3000, 9000, 400, 10))
    known = benchmark_of(entities, triples, sample, valid)

    def call() -> Clock:
        folder = Path(tempfile.mkdtemp())
        try:
            clock = Clock(folder, checkpoints)
            system.fit(known, clock)
            clock.look()
        finally:
            shutil.rmtree(folder)
        return clock

    return call, lambda clock: clock.summary(len(known.positives.train)), lambda clock: clock.cpu


class Clock:
    """A watch that takes the time of the first epoch, without the start before it, and looks at the disk."""

    def __init__(self, folder: Path, checkpoints: bool) -> None:
        self.cpu = self.wall = 0.0
        self.disk = self.saved = 0
        self.own = 0.0
        self._folder = folder
        self._checkpoints = checkpoints
        self._start = (0.0, 0.0)
        self._figures: dict[str, Any] = {}

    def restore(self) -> None:
        """Every run is a new one."""

    def folder(self) -> Path:
        """Return where weights may be."""
        return self._folder

    def look(self) -> None:
        """Take note of the room on the disk and of memory without mapped files, if it was never more."""
        used = 0
        for file in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                used += 512 * file.stat().st_blocks
        self.disk = max(self.disk, used)
        self.own = max(self.own, own_megabytes())

    def due(self) -> bool:
        """Ask for a checkpoint always or never."""
        return self._checkpoints

    def save(self, checkpoint: Any) -> None:
        """Keep nothing; what was written for it has been."""
        self.saved += 1
        self.look()

    def record(self, row: Any) -> None:
        """Take the time at the end."""
        self.look()
        self.cpu, self.wall = time.process_time() - self._start[0], time.monotonic() - self._start[1]
        self._figures = {key: round(float(value), 4) for key, value in row.items()}

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Take the time at the start."""
        self.look()
        if done == 0:
            self._start = (time.process_time(), time.monotonic())

    def summary(self, positives: int) -> dict[str, Any]:
        """Return what came out."""
        return {
            "positives": positives,
            "cpu_seconds": round(self.cpu, 2),
            "wall_seconds": round(self.wall, 2),
            "positives_per_cpu_second": round(positives / self.cpu),
            "positives_per_second": round(positives / self.wall),
            "disk_bytes": self.disk,
            "own_megabytes": round(self.own),
            "checkpoints_written": self.saved,
            **self._figures,
        }


def own_megabytes() -> float:
    """Return the memory that only this process can free: pages of mapped files go when others need room."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


def benchmark_of(entities: int, triples: int, sample: int, valid: int) -> Any:
    """Return a benchmark whose train is a sample of a graph, and whose valid has random negatives."""
    import numpy as np

    from loginfer.benchmark.benchmark import Benchmark, Splits
    from perf.power_law import power_law_graph

    graph = power_law_graph(triples, relations=RELATIONS, entities=entities)
    random = np.random.default_rng(0)
    # Drawn with replacement: a permutation of all would need memory that training does not.
    drawn = np.unique(random.integers(0, triples, min(sample + valid, triples)))
    chosen = drawn if sample < triples else np.arange(triples)
    held = random.choice(chosen, min(valid, len(chosen) // 10), replace=False) if valid else chosen[:0]
    train = graph.triples[np.setdiff1d(chosen, held, assume_unique=True)]
    return Benchmark("synthetic", graph, Splits(train, graph.triples[np.sort(held)], train[:0]), {})


def tasks(space: Workspace) -> list[Task]:
    """Return a task for a million entities, in memory and in files, and one with Wikidata5M's numbers."""
    return [
        _task("train-million", "1 million entities", FIFTH, {"storage": "memory"}, 2500),
        _task("train-million-mapped", "1 million entities, mapped", FIFTH, {"storage": "mapped"}, 2000),
        _task("train-wikidata5m", "5 million entities, mapped", WIKIDATA5M, {"storage": "mapped"}, 9000),
    ]


def _task(key: str, name: str, graph: dict[str, int], settings: dict[str, Any], megabytes: float) -> Task:
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    cases = []
    for workers in (1, 2):
        arguments = {**graph, **settings, "model": "transe", "dimension": 100, "workers": workers}
        cases.append(
            Case(
                OURS if workers == 1 else f"{OURS}, {workers} workers",
                f"{HERE}:ours",
                arguments,
                megabytes=megabytes,
                same=False,  # the summary has times
                environment=threads,
                limit=900,
            )
        )
    return Task(key, f"TransE: a million positives, {name}, d = 100", tuple(cases))
