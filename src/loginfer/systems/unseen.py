"""Which systems can score constants that they have not seen while learning."""

from __future__ import annotations

from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError
from loginfer.systems.registry import systems

__all__ = ["able_systems", "refuse_unseen"]

# Kinds of systems that learn something about each constant, such as a vector.
_BOUND = ("embedding", "graph neural network")


def able_systems() -> list[str]:
    """Return the names of the built-in systems that can be evaluated on inductive benchmarks."""
    return [entry.name for entry in systems() if entry.kind not in (*_BOUND, "plug-in")]


def refuse_unseen(benchmark: Benchmark, name: str) -> None:
    """Complain if a benchmark is inductive and the system learns a vector for each constant.

    Parameters
    ----------
    benchmark
        The benchmark.
    name
        The system, as users know it.
    """
    if benchmark.context is None:
        return
    raise InputError(
        f"{name} learns a vector for each constant, and {benchmark.name} is inductive: none of its test "
        "constants is in train",
        hint=f"systems that can: {', '.join(able_systems())}, and your own (see `benchmark.context`)",
    )
