"""Triples with names as PyKEEN has them; the ids are ours."""

from __future__ import annotations

import numpy as np
import torch
from pykeen.triples import TriplesFactory

from loginfer.benchmark.values import Benchmark
from loginfer.kg import Triples

__all__ = ["as_mapped", "triples_factories"]


def as_mapped(triples: Triples) -> torch.Tensor:
    """Return triples as PyKEEN's `mapped_triples`: int64[n, 3]."""
    return torch.from_numpy(np.array(triples, dtype=np.int64).reshape(-1, 3))


def triples_factories(
    benchmark: Benchmark, *triples: Triples, create_inverse_triples: bool = False
) -> list[TriplesFactory]:
    """Return one factory for each set of triples; the first one alone has inverse triples, if any has.

    The id of a constant, type or relation is its place in the vocabularies of `benchmark.graph`; so every
    factory knows every name of the benchmark, whether its triples use it or not.
    """
    entities = {name: i for i, name in enumerate(benchmark.graph.entities)}
    relations = {name: i for i, name in enumerate(benchmark.graph.relations)}
    return [
        TriplesFactory(
            as_mapped(chosen),
            entity_to_id=entities,
            relation_to_id=relations,
            create_inverse_triples=create_inverse_triples and place == 0,
            metadata={"name": benchmark.name},
        )
        for place, chosen in enumerate(triples)
    ]
