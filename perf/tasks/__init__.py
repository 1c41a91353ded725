"""What is measured: one file a task."""

from __future__ import annotations

from perf.tasks import (
    anyburl,
    building,
    conclusions,
    entailment,
    exact_mining,
    large_training,
    loading,
    materialise,
    near_misses,
    ranking,
    report,
    rgcn,
    rule_scoring,
    shortcut_features,
    single_body,
    startup,
    support,
    training,
)

# In the order of the table.
MODULES = (
    support,
    single_body,
    conclusions,
    materialise,
    building,
    near_misses,
    shortcut_features,
    ranking,
    training,
    large_training,
    rgcn,
    rule_scoring,
    exact_mining,
    anyburl,
    entailment,
    report,
    loading,
    startup,
)
