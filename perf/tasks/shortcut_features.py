"""All features of the triples of FB15k-237 and of as many others; beside them, the part that sparse matrices give."""

from __future__ import annotations

from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

HERE = "perf.tasks.shortcut_features"
# So many triples of the graph, and as many with another object.
COUNT = 340_000
NEIGHBOURS = (
    "common-neighbours", "common-forward", "common-backward", "common-objects", "common-subjects", "adamic-adar",
)  # fmt: skip


def triples_of(graph: Any) -> Any:
    """Return the triples of which features are asked for; some are there twice."""
    import numpy as np

    random = np.random.default_rng(0)
    rows = np.concatenate([np.arange(len(graph)), random.integers(len(graph), size=COUNT - len(graph))])
    triples = np.vstack([graph.triples[rows]] * 2)
    triples[COUNT:, 2] = random.permutation(triples[COUNT:, 2])
    return triples


def features(folder: str) -> Any:
    """Prepare the triples. Each call makes the graph's structures anew."""
    from loginfer import load_graph
    from loginfer.benchmark import FeatureBattery

    graph = load_graph(folder)
    triples = triples_of(graph)

    def call() -> Any:
        battery = FeatureBattery(graph.with_triples(graph.triples))
        return dict(zip(battery.names, battery.values(triples).T, strict=True))

    return call, lambda columns: [round(float(columns[name].sum(dtype=float))) for name in NEIGHBOURS]


def tasks(space: Workspace) -> list[Task]:
    """Return all features of 680,000 triples."""
    arguments = {"folder": space.fb}
    ours = Case(OURS, f"{HERE}:features", arguments, seconds=20, megabytes=2000)
    peer = Case(
        f"scipy.sparse, {len(NEIGHBOURS)} of them",
        "perf.peers.sparse_neighbours:common_neighbours",
        arguments,
        faster=1,
        limit=120,
    )
    return [Task("features", "FB15k-237: features of 680,000", (ours, peer), ("fb15k-237",))]
