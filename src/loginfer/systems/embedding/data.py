"""What a system learns from, as the kernels want it."""

from __future__ import annotations

import numpy as np

from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError
from loginfer.systems.embedding.state import Data
from loginfer.systems.embedding.system import EmbeddingSystem

__all__ = ["training_data"]


def training_data(system: EmbeddingSystem, benchmark: Benchmark) -> Data:
    """Return P_train, N_train and what random negatives are made of.

    Raises
    ------
    InputError
        If there is nothing to learn from.
    """
    graph = benchmark.graph
    if not len(graph):
        raise InputError(f"{benchmark.name} has no training triples to learn from")
    negatives = np.empty((0, 3), dtype=np.int32)
    if system.mode != "random":
        made = [found.splits.train for found in benchmark.negatives.values()]
        negatives = np.vstack([negatives, *made])
        if not len(negatives):
            raise InputError(
                f"{benchmark.name} has no negative training triples, and mode `{system.mode}` needs them",
                hint="train with random negatives only: --mode random",
            )
    type_relation = -1 if graph.type_relation is None else graph.type_relation
    return Data(
        positives=np.array(benchmark.positives.train, dtype=np.int32, order="C"),
        negatives=np.require(negatives, dtype=np.int32, requirements=["C", "W"]),
        constants=np.array(graph.consts, dtype=np.int32),
        types=np.array(graph.types, dtype=np.int32),
        relations=np.array(graph.rels, dtype=np.int32),
        type_relation=type_relation,
    )
