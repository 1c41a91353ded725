"""Near-miss negatives of FB15k-237, 200 rules of a pattern: drawn by kernels, and in plain Python; twins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

HERE = "perf.tasks.near_misses"
# Plain Python fills one slot in so many.
PART = 50


def context_of(folder: str, pattern: str) -> Any:
    """Return what negatives of 200 rules of a pattern are made from."""
    from loginfer import load_graph
    from loginfer.benchmark import Recipe, foundation

    recipe = Recipe("fb15k-237", (pattern,), k1=200, k2=200, negatives=("nm",))
    with foundation(recipe, load_graph(folder)) as laid:
        return laid.context


def near_misses(folder: str, pattern: str) -> Any:
    """Prepare rules and positives. Each call makes the context anew, what is true included."""
    from loginfer.benchmark import sample_negatives

    context = context_of(folder, pattern)
    return lambda: sample_negatives(replace(context), "nm"), lambda made: made.splits.sizes


def twins(folder: str, pattern: str) -> Any:
    """Prepare the graph. Each call selects rules, pairs their conclusions and distributes them."""
    from loginfer import load_graph
    from loginfer.benchmark import Recipe, build

    graph = load_graph(folder)
    recipe = Recipe("fb15k-237", (pattern,), k1=200, k2=200, allow_fewer=True, negatives=("nm",), match=("all",))
    return lambda: build(recipe, graph), lambda benchmark: benchmark.negatives["nm"].splits.sizes


def tasks(space: Workspace) -> list[Task]:
    """Return near misses of compositions, triangles and diamonds, and twins of the patterns with most candidates."""
    patterns = (("composition", "comp"), ("triangle", "trian"), ("diamond", "diam"))
    paired = (("hierarchy", "hier"), ("composition", "comp"))
    return [
        *(_task(space, pattern, short) for pattern, short in patterns),
        *(_twins_task(space, pattern, short) for pattern, short in paired),
    ]


def _twins_task(space: Workspace, pattern: str, short: str) -> Task:
    # The goal is 60 s of wall time on two cores; what is measured is CPU time. Nobody else pairs such triples.
    ours = Case(OURS, f"{HERE}:twins", {"folder": space.fb, "pattern": pattern}, seconds=120, megabytes=2000, limit=240)
    return Task(f"twins-{short}", f"FB-{short}: twins", (ours,), ("fb15k-237",))


def _task(space: Workspace, pattern: str, short: str) -> Task:
    arguments = {"folder": space.fb, "pattern": pattern}
    peer = Case(
        f"plain Python, 1 slot in {PART} times {PART}",
        "perf.peers.plain_near_misses:plain",
        arguments | {"part": PART},
        same=False,
        limit=120,
    )
    # The goal is 30 s of wall time on two cores; what is measured is CPU time.
    ours = Case(OURS, f"{HERE}:near_misses", arguments, seconds=60, megabytes=2000, limit=120)
    return Task(f"near-misses-{short}", f"FB-{short}: near misses", (ours, peer), ("fb15k-237",))
