"""What several pages ask about benchmarks, systems and cells; found out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from loginfer.evaluation.values import Counts
from loginfer.report.collection import Cell
from loginfer.report.material import Material
from loginfer.report.scores import timing_of

if TYPE_CHECKING:
    from loginfer.systems.registry import Entry

__all__ = ["BenchmarkFacts", "Cost", "benchmark_facts", "cost_of", "entry_of", "ranked_by"]


@dataclass(frozen=True, slots=True)
class BenchmarkFacts:
    """What is known of a benchmark beyond its runs.

    Parameters
    ----------
    kinds
        The kinds of its negatives in test by name, and the kind of each; None if they are not known.
    supports
        For each rule as text its support; None if the benchmark's folder was not given.
    """

    kinds: tuple[Sequence[str], Counts] | None = None
    supports: Mapping[str, int] | None = None


def benchmark_facts(material: Material, benchmark: str) -> BenchmarkFacts:
    """Return what is known of a benchmark; its folder is read at most once for this."""
    return material.once(("facts", benchmark), lambda: _facts(material, benchmark))


def _facts(material: Material, name: str) -> BenchmarkFacts:
    from loginfer.evaluation.breakdown import negative_kinds

    benchmark = material.benchmark(name)
    if benchmark is None:
        return BenchmarkFacts()
    method = material.collection.of_benchmark(name)[0].method
    kinds = negative_kinds(benchmark, method) if method in benchmark.negatives else None
    return BenchmarkFacts(kinds, {str(known.rule): known.support for known in benchmark.rules})


def entry_of(system: str) -> Entry | None:
    """Return what the registry says about a system, by its own name; None for one that it does not know."""
    return _entries().get(system.casefold())


@lru_cache(maxsize=1)
def _entries() -> dict[str, Entry]:
    from loginfer.systems.registry import systems

    return {entry.name.casefold(): entry for entry in systems()}


def ranked_by(cells: Sequence[Cell]) -> str | None:
    """Return the ranking protocol to show for some cells: `filtered` if any has it; None without any."""
    known = {protocol for cell in cells for metrics in cell.metrics for protocol in metrics["ranking"]}
    return next((name for name in ("filtered", "unfiltered", "given") if name in known), None)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a cell took: the mean over its seeds, of memory the most; None if nobody wrote it down."""

    seconds: float | None
    cpu_seconds: float | None
    memory: int | None


def cost_of(material: Material, cell: Cell) -> Cost:
    """Return what a cell took."""
    return material.once(("cost", cell.system, cell.benchmark), lambda: _cost(cell))


def _cost(cell: Cell) -> Cost:
    known = [timing for timing in map(timing_of, cell.runs) if timing]
    wall = [sum(timing["seconds"].values()) for timing in known if timing.get("seconds")]
    cpu = [timing["cpu_seconds"] for timing in known if timing.get("cpu_seconds") is not None]
    memory = [timing["peak_memory_bytes"] for timing in known if timing.get("peak_memory_bytes")]
    return Cost(_mean(wall), _mean(cpu), max(memory, default=None))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
