"""The metrics of test conclusions by depth: in how many steps they follow."""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.benchmark.lookup import places_of
from loginfer.benchmark.values import Benchmark
from loginfer.evaluation.groups import Rows, group_metrics

__all__ = ["by_depth"]


def by_depth(benchmark: Benchmark, rows: Rows) -> dict[str, dict[str, Any]]:
    """Return the metrics of the positives of each depth against all negatives; none for a single step.

    Parameters
    ----------
    benchmark
        The benchmark.
    rows
        P_test and N_test with scores and predictions.
    """
    known = benchmark.provenance
    if known is None or not known.deep:
        return {}
    keys = benchmark.graph.keys
    found, places = places_of(keys.pack(known.triples), keys.pack(benchmark.positives.test))
    own = np.flatnonzero(found)
    depths, group = np.unique(known.depth[places[own]], return_inverse=True)
    against = np.arange(rows.positives, rows.positives + rows.negatives)
    made = group_metrics(
        rows,
        np.concatenate([group.ravel().astype(np.int64), np.repeat(np.arange(len(depths)), rows.negatives)]),
        np.concatenate([own, np.tile(against, len(depths))]),
        len(depths),
    )
    return {str(depth): metrics for depth, metrics in zip(depths.tolist(), made, strict=True)}
