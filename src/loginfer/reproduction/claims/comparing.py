"""How figures are compared: systems and benchmarks of the claims, means, and comparisons in points."""

from __future__ import annotations

from collections.abc import Sequence

from loginfer.report.paper import SYSTEMS
from loginfer.reproduction.claims.values import Comparison
from loginfer.reproduction.figures import Source
from loginfer.reproduction.participants import title

__all__ = [
    "ACCURACY", "BENCHMARKS", "COMPLEX", "EIGHT", "EMBEDDING", "MINING", "SIMPLE", "above", "at_least",
    "mean_of", "named", "short",
]  # fmt: skip

ACCURACY = "balanced_accuracy"

# The eight systems that the paper evaluates; SimpBL is its baseline.
EIGHT = tuple(name for name in SYSTEMS if name != "simpbl")
EMBEDDING = ("transe", "rotate", "complex", "distmult", "boxe")
MINING = ("anyburl", "rulen")

# The paper's words: simple patterns, and complex ones "involving conjunctions and inequalities in bodies".
SIMPLE = {
    kg: tuple(f"LogInfer-{kg}-{pattern}-pa" for pattern in ("sym", "inver", "hier")) for kg in ("FB", "WN")
}
COMPLEX = {
    kg: (f"LogInfer-{kg}-comp-pa", f"LogInfer-{kg}-trian-qg", f"LogInfer-{kg}-diam-qg") for kg in ("FB", "WN")
}
# All benchmarks of the two main tables.
BENCHMARKS = (
    *SIMPLE["FB"], "LogInfer-FB-comp-pa", "LogInfer-FB-inter-qg", *COMPLEX["FB"][1:],
    *SIMPLE["WN"], *COMPLEX["WN"], "LogInfer-LUBM-all-qg", "LogInfer-LUBM-no-type-qg",
)  # fmt: skip


def short(benchmark: str) -> str:
    """Return a benchmark's name without the suite's."""
    return benchmark.removeprefix("LogInfer-")


def mean_of(
    source: Source, systems: Sequence[str], benchmarks: Sequence[str], metric: str = ACCURACY
) -> float | None:
    """Return the mean of a metric over systems and benchmarks; None unless all figures are there."""
    found = [source.mean(system, benchmark, metric) for system in systems for benchmark in benchmarks]
    values = [value for value in found if value is not None]
    return sum(values) / len(values) if values and len(values) == len(found) else None


def above(
    case: str, larger: float | None, smaller: float | None, points: float = 0.0, strict: bool = False
) -> Comparison:
    """Compare two figures: the first must be larger by at least so many points.

    Parameters
    ----------
    case
        What is compared.
    larger, smaller
        Fractions.
    points
        By how many percentage points at least.
    strict
        Whether more than that is needed.
    """
    if larger is None or smaller is None:
        return Comparison(case, "", None)
    # Figures of the paper have one decimal; their differences are no better than that.
    distance = round(100 * (larger - smaller), 6)
    holds = distance > points if strict else distance >= points
    return Comparison(case, f"{100 * larger:.1f} against {100 * smaller:.1f}", holds)


def at_least(case: str, value: float | None, least: float, strict: bool = False) -> Comparison:
    """Compare a figure with a number of percent."""
    if value is None:
        return Comparison(case, "", None)
    percent = round(100 * value, 6)
    shown = f"{percent:.1f}"
    if float(shown) == least != percent:  # it would look like what it is not
        shown = f"{percent:.2f}"
    return Comparison(case, shown, percent > least if strict else percent >= least)


def named(system: str, benchmark: str) -> str:
    """Return what people call a system on a benchmark."""
    return f"{title(system)} on {short(benchmark)}"
