"""Training: one epoch of DistMult on the built benchmark, with its explicit negatives and 8 random ones."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from perf.growth.building import benchmark_folder
from perf.growth.meter import metered

__all__ = ["DIMENSION", "MODEL", "train"]

MODEL = "DistMult"
DIMENSION = 64


def train(folder: str) -> Any:
    """Prepare a benchmark; the epoch itself, without the start before it, is told besides."""
    from loginfer import load_benchmark
    from loginfer.systems import find_system
    from perf.tasks.large_training import Clock

    known = load_benchmark(benchmark_folder(folder))
    system = find_system(MODEL).load()(dimension=DIMENSION, epochs=1, workers=1)

    def call() -> Clock:
        with tempfile.TemporaryDirectory(dir=folder) as room:
            clock = Clock(Path(room), checkpoints=False)
            system.fit(known, clock)
        return clock

    def told(clock: Clock) -> dict[str, Any]:
        return {"positives": len(known.positives.train), "epoch_cpu": clock.cpu, "epoch_wall": clock.wall}

    return metered(call, told)
