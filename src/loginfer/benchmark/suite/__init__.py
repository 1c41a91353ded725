"""The suite of the paper's benchmarks."""

from loginfer.benchmark.suite.entries import Entry, Group, all_entries, entries, groups, near_misses, select
from loginfer.benchmark.suite.run import Built, build_suite
from loginfer.benchmark.suite.summary import difference, summary, summary_text, write_summary

__all__ = [
    "Built",
    "Entry",
    "Group",
    "all_entries",
    "build_suite",
    "difference",
    "entries",
    "groups",
    "near_misses",
    "select",
    "summary",
    "summary_text",
    "write_summary",
]
