"""Benchmarks that were read, so that every page maker need not read them again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loginfer.benchmark import Benchmark

__all__ = ["Library"]

# Benchmarks are kept while they hold so many triples together: some hundred megabytes.
MOST_TRIPLES = 20_000_000


class Library:
    """Reads benchmarks, and keeps as many as fit.

    Parameters
    ----------
    most
        How many triples may be kept, all benchmarks together; the one read last always is.
    """

    def __init__(self, most: int = MOST_TRIPLES) -> None:
        self._most = most
        self._kept: dict[Path, Benchmark] = {}
        self._sums: dict[Path, str] = {}

    def load(self, folder: Path) -> Benchmark:
        """Return the benchmark in a folder."""
        from loginfer.benchmark import load_benchmark

        if folder not in self._kept:
            found = load_benchmark(folder)
            held = sum(_triples(kept) for kept in self._kept.values())
            if held + _triples(found) > self._most:
                self._kept.clear()
            self._kept[folder] = found
        return self._kept[folder]

    def sum_of(self, folder: Path) -> str:
        """Return the sum by which runs know the benchmark in a folder."""
        from loginfer.evaluation.identity import benchmark_sum

        if folder not in self._sums:
            self._sums[folder] = benchmark_sum(self.load(folder))
        return self._sums[folder]


def _triples(benchmark: Benchmark) -> int:
    sets = [benchmark.positives, *(made.splits for made in benchmark.negatives.values())]
    return sum(sum(splits.sizes.values()) for splits in sets)
