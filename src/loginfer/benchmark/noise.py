"""The noise of a benchmark as a value: which labels of train are wrong, and which premises are missing.

Noise is put on a benchmark that is complete, and recorded triple by triple, so that it can be undone: K, the
provenance, and where negatives came from are always those of the benchmark without noise. Valid and test have
none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.values import Benchmark, NegativeSet, Splits
from loginfer.kg import Triples
from loginfer.kg.triples import keys_without, merged_keys

__all__ = ["KINDS", "Noise", "exchanged", "without_noise"]

# What can be wrong with a triple; `Noise.kind` holds places in this list.
#   flipped-positive  a conclusion of train that stands in N_train
#   flipped-negative  a negative of train that stands in P_train
#   missing           a premise, a triple of K, that P_train does not have; it is true all the same
KINDS = ("flipped-positive", "flipped-negative", "missing")


@dataclass(frozen=True, slots=True)
class Noise:
    """What is wrong with P_train and N_train.

    Parameters
    ----------
    triples
        int32[n, 3], sorted and unique.
    kind
        int8[n], places in `KINDS`.
    negatives
        The negatives without the noise, and where they came from.
    asked
        How many the recipe's shares are: `flipped` conclusions, `missing` premises.
    reached
        How many conclusions of valid and test the rules still derive from P_train as it is.
    """

    triples: Triples
    kind: npt.NDArray[np.int8]
    negatives: NegativeSet
    asked: Mapping[str, int] = field(default_factory=dict)
    reached: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.triples)

    def of(self, kind: str) -> Triples:
        """Return the triples of one kind, sorted."""
        return np.asarray(self.triples[self.kind == KINDS.index(kind)])

    def as_dict(self) -> dict[str, Any]:
        """Return the counts, as the manifest has them."""
        counts = {kind: int((self.kind == i).sum()) for i, kind in enumerate(KINDS)}
        return {**counts, "asked": dict(self.asked), "reached": dict(self.reached)}


def exchanged(keys: npt.NDArray[np.int64], out: npt.NDArray[np.int64], new: npt.NDArray[np.int64]) -> Any:
    """Return sorted keys without some and with others, sorted."""
    return merged_keys(keys_without(keys, out), new)


def without_noise(benchmark: Benchmark, noise: Noise) -> Benchmark:
    """Return the benchmark as it was before the noise.

    Parameters
    ----------
    benchmark
        A benchmark with noise.
    noise
        Its noise.
    """
    keys = benchmark.graph.keys
    true = np.vstack([noise.of("flipped-positive"), noise.of("missing")])
    train = exchanged(
        benchmark.graph.packed, keys.pack(noise.of("flipped-negative")), np.sort(keys.pack(true))
    )
    graph = benchmark.graph.with_triples(keys.unpack(train))
    positives = Splits(graph.triples, benchmark.positives.valid, benchmark.positives.test)
    negatives = {noise.negatives.method: noise.negatives}
    return replace(benchmark, graph=graph, positives=positives, negatives=negatives, noise=None)
