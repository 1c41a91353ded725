"""What is measured: one file a task."""

from __future__ import annotations

from benchmarks.tasks import (
    building,
    conclusions,
    loading,
    materialise,
    ranking,
    rgcn,
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
    ranking,
    training,
    rgcn,
    loading,
    startup,
)
