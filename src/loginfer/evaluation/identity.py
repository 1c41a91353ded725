"""What makes two benchmarks the same, wherever they lie and whatever they are called."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.values import Benchmark

__all__ = ["benchmark_sum"]


def benchmark_sum(benchmark: Benchmark) -> str:
    """Return the sha256 of a benchmark's names, triples and rules."""
    digest = hashlib.sha256()

    def add(what: str, *arrays: npt.NDArray[Any]) -> None:
        digest.update(f"\0{what}\0".encode())
        for array in arrays:
            digest.update(f"{len(array)}\0".encode())
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(np.ascontiguousarray(little).view(np.uint8).data if array.size else b"")

    graph = benchmark.graph
    add("entities", graph.entities.data, graph.entities.offsets)
    add("relations", graph.relations.data, graph.relations.offsets)
    digest.update(f"\0type\0{graph.type_predicate or ''}".encode())
    for split, triples in benchmark.positives.items():
        add(split, triples)
    for method, made in sorted(benchmark.negatives.items()):
        for split, triples in made.splits.items():
            add(f"{split} {method}", triples)
    if benchmark.context is not None:
        add("context", benchmark.context.triples)
    for known in benchmark.rules:
        digest.update(f"\0rule\0{known.rule}".encode())
    return digest.hexdigest()
