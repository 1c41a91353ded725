"""CPU seconds until an embedding model has a filtered MRR on FB15k-237, one thread: ours and PyKEEN's loops.

The MRR is that of 500 triples of valid, subjects and objects, after each epoch; measuring it counts. `python -m
perf.training_quality` draws MRR against CPU seconds for as long as you like.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

# What each model must reach. A dimension of 100, as the defaults have; epochs for ours, in which its rate falls to 0.
TARGETS = {"TransE": 0.23, "RotatE": 0.22, "ComplEx": 0.25, "DistMult": 0.24, "BoxE": 0.18}
MODELS = tuple(TARGETS)
LOOPS = ("LCWA", "sLCWA")
DIMENSION, EPOCHS = 100, 15
# PyKEEN's processes are stopped after so many CPU seconds.
LIMIT = 600.0

# CPU seconds since the beginning, and the MRR, after each epoch.
Curve = list[tuple[float, float]]


class Clock:
    """Takes the MRR of each epoch with the time, and says when it is enough."""

    def __init__(self, target: float) -> None:
        self.curve: Curve = []
        self._target, self._started = target, time.process_time()

    def enough(self, mrr: float) -> bool:
        """Add a point; say whether the target is reached."""
        self.curve.append((round(time.process_time() - self._started, 2), round(mrr, 4)))
        return mrr >= self._target


class _Enough(Exception):  # noqa: N818 - not an error
    """The target is reached."""


def standard_split(folder: str) -> Any:
    """Return FB15k-237 as it is published."""
    from loginfer import load_benchmark

    return load_benchmark(folder)


def learn(benchmark: Any, model: str, clock: Clock) -> Curve:
    """Train our model with the defaults, until it is enough."""
    from loginfer.systems import find_system
    from loginfer.systems.interface import Unwatched

    class Watch(Unwatched):
        def record(self, row: Any) -> None:
            if clock.enough(row["valid_mrr"]):
                raise _Enough

    system = find_system(model).load()(dimension=DIMENSION, epochs=EPOCHS)
    with suppress(_Enough):
        system.fit(benchmark, Watch())
    return clock.curve


def ours(folder: str, model: str) -> tuple[Callable[[], Curve], Callable[[Curve], Any], Callable[[Curve], float]]:
    """Prepare the triples; a call trains until the target is reached."""
    benchmark = standard_split(folder)
    return lambda: learn(benchmark, model, Clock(TARGETS[model])), summary, seconds


def summary(curve: Curve) -> Any:
    """Return how many epochs it took, and the MRR after them."""
    return {"epochs": len(curve), "mrr": curve[-1][1]}


def seconds(curve: Curve) -> float:
    """Return the CPU seconds that it took."""
    return curve[-1][0]


def tasks(space: Workspace) -> list[Task]:
    """Return one task for each model."""
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    found = []
    for model, target in TARGETS.items():
        arguments = {"folder": space.fb, "model": model}
        peer, shared = "perf.peers.pykeen_training:train", {"same": False, "environment": threads}
        cases = (
            Case(OURS, "perf.tasks.training:ours", arguments, environment=threads, limit=LIMIT),
            *(
                Case(f"PyKEEN, {loop}", peer, {**arguments, "loop": loop}, faster=5, limit=LIMIT, **shared)
                for loop in LOOPS
            ),
        )
        name = f"{model}: an MRR of {target} on FB15k-237"
        found.append(Task(f"train-{model.lower()}", name, cases, needs=("fb15k-237",)))
    return found
