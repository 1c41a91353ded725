"""Filtered ranking of a test set, subjects and objects, beside PyKEEN's evaluator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perf.case import OURS, Case, Task
from perf.workspace import Workspace

HERE = "perf.tasks.ranking"
PEER = "perf.peers.pykeen_ranking:evaluate"
DIMENSION = 100


def weights(entities: int, relations: int) -> dict[str, Any]:
    """Return the weights of a DistMult model, small whole numbers.

    Their products and sums are exact, in whatever order they are added: systems that rank right then agree to
    the last tie, of which there are many.
    """
    import numpy as np

    draw = np.random.default_rng(0)
    return {
        "entities": draw.integers(-3, 4, (entities, DIMENSION)).astype(np.float32),
        "relations": draw.integers(-3, 4, (relations, DIMENSION)).astype(np.float32),
    }


def ours(benchmark: str) -> Any:
    """Prepare a model. Each call starts without what is derived from the benchmark."""
    from loginfer import load_benchmark
    from loginfer.evaluation.metrics import ranking_metrics
    from loginfer.evaluation.ranking import rank
    from loginfer.systems.embedding.distmult import DistMult

    loaded = load_benchmark(benchmark)
    graph = loaded.graph
    scorer = DistMult(dimension=DIMENSION).restore(loaded, weights(len(graph.entities), len(graph.relations)))

    def call() -> Any:
        fresh = replace(loaded, graph=graph.with_triples(graph.triples))
        return ranking_metrics(rank(scorer, fresh, ranking=["filtered"], positions=["subject", "object"]))

    def summary(found: Any) -> Any:
        return {tie: summarise(figures["c_mrr"], figures["c_mr"]) for tie, figures in found["ties"].items()}

    return call, summary


def summarise(mrr: float, mean_rank: float) -> list[float]:
    """Return figures as exact as single precision, which PyKEEN computes means in, has them."""
    return [round(mrr, 6), round(mean_rank, 1)]


def tasks(space: Workspace) -> list[Task]:
    """Return the task."""
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    folder = {"benchmark": space.benchmark}

    def peer(system: str, products: bool, faster: float) -> Case:
        arguments = {**folder, "products": products}
        return Case(system, PEER, arguments, faster=faster, environment=one_thread, limit=300)

    cases = (
        Case(OURS, f"{HERE}:ours", folder, megabytes=500),
        peer("PyKEEN, given matrix products", True, 15),
        peer("PyKEEN", False, 40),
    )
    name = f"filtered ranking of FB-trian, d = {DIMENSION}"
    return [Task("ranking", name, cases, needs=("fb15k-237", "benchmark"))]
