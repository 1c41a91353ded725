"""The suite of the paper's benchmarks."""

from loginfer.benchmark.suite.entries import Entry, Group, entries, groups, select
from loginfer.benchmark.suite.run import Built, build_suite
from loginfer.benchmark.suite.summary import difference, summary, summary_text, write_summary

__all__ = [
    "Built",
    "Entry",
    "Group",
    "build_suite",
    "difference",
    "entries",
    "groups",
    "select",
    "summary",
    "summary_text",
    "write_summary",
]
