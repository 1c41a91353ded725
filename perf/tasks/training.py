"""One epoch of each embedding model on FB15k-237: d = 100, batches of 1024, 8 random negatives, one thread.

Ours also makes the weights, PyKEEN's model is there before. `python -m perf.training_quality` compares
what both have learned after some epochs.
"""

from __future__ import annotations

from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

SETTINGS = {"dimension": 100, "batch": 1024, "negatives": 8, "learning_rate": 0.01, "adversarial": 1.0}
# γ in both systems; products have none.
MARGINS = {"TransE": 6.0, "RotatE": 6.0, "ComplEx": 0.0, "DistMult": 0.0, "BoxE": 6.0}
MODELS = tuple(MARGINS)


def ours(triples: str, model: str) -> Any:
    """Prepare the triples."""
    import numpy as np

    known = benchmark_of(np.load(triples))
    system = ours_of(model, epochs=1)
    return lambda: system.fit(known), lambda _: None


def ours_of(model: str, **more: Any) -> Any:
    """Return our system with the settings of the comparison: random negatives only."""
    from loginfer.systems import find_system

    return find_system(model).load()(**SETTINGS, mode="random", relation_weight=0.0, **more)


def benchmark_of(triples: Any, sizes: tuple[int, int] | None = None) -> Any:
    """Return a benchmark of an array of ids, to train on all of it."""
    import numpy as np

    from loginfer.benchmark.benchmark import Benchmark, Splits
    from loginfer.kg import KnowledgeGraph
    from loginfer.kg.vocabulary import Vocabulary

    entities, relations = sizes or sizes_of(triples)
    graph = KnowledgeGraph(
        Vocabulary.of([f"e{i:06}" for i in range(entities)]),
        Vocabulary.of([f"r{i:06}" for i in range(relations)]),
        triples,
        type_predicate="",
    )
    nothing = np.empty((0, 3), dtype=np.int32)
    return Benchmark("FB15k-237", graph, Splits(graph.triples, nothing, nothing), {})


def sizes_of(triples: Any) -> tuple[int, int]:
    """Return how many entities and relations an array of ids has."""
    return int(triples[:, [0, 2]].max()) + 1, int(triples[:, 1].max()) + 1


def tasks(space: Workspace) -> list[Task]:
    """Return one task for each model."""
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    found = []
    for model in MODELS:
        arguments = {"triples": space.triples, "model": model}
        cases = (
            Case(OURS, "perf.tasks.training:ours", arguments, environment=threads, limit=120),
            Case(
                "PyKEEN",
                "perf.peers.pykeen_training:train",
                arguments,
                faster=8,
                same=False,
                environment=threads,
                limit=600,
            ),
        )
        name = f"{model}: an epoch on FB15k-237, d = {SETTINGS['dimension']}"
        found.append(Task(f"train-{model.lower()}", name, cases, needs=("fb15k-237",)))
    return found
