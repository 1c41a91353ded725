"""The paper's section 5.3: what the choice of negatives does."""

from __future__ import annotations

from itertools import pairwise

from loginfer.reproduction.claims.comparing import ACCURACY, EIGHT, above, at_least, mean_of, short
from loginfer.reproduction.claims.values import Check, Claim, Comparison
from loginfer.reproduction.figures import Source, stated_averages
from loginfer.reproduction.participants import title

__all__ = ["NEGATIVES"]

# Methods from coarse to fine.
METHODS = {"sym": ("rc", "rb", "pa"), "inter": ("rc", "rb", "pa", "qg")}
# What we take for a high score, in percent.
HIGH = 90.0
# How far an average may lie from the one that the paper states, in points.
NEAR = 3.0


def _benchmark(pattern: str, method: str) -> str:
    return f"LogInfer-FB-{pattern}-{method}"


def _random_corruption(source: Source) -> list[Check]:
    places = [_benchmark(pattern, "rc") for pattern in METHODS]
    average = [at_least(short(place), mean_of(source, EIGHT, [place]), HIGH) for place in places]
    each = [
        at_least(f"{title(system)} on {short(place)}", source.mean(system, place, ACCURACY), HIGH)
        for place in places
        for system in EIGHT
    ]
    return [Check("On average", tuple(average)), Check("System by system", tuple(each))]


def _degradation(source: Source) -> list[Check]:
    steps = [
        (pattern, coarse, fine) for pattern, methods in METHODS.items() for coarse, fine in pairwise(methods)
    ]
    average = [
        above(
            f"FB-{pattern}, {coarse} to {fine}",
            mean_of(source, EIGHT, [_benchmark(pattern, coarse)]),
            mean_of(source, EIGHT, [_benchmark(pattern, fine)]),
            strict=True,
        )
        for pattern, coarse, fine in steps
    ]
    each = [
        above(
            f"{title(system)} on FB-{pattern}, {coarse} to {fine}",
            source.mean(system, _benchmark(pattern, coarse), ACCURACY),
            source.mean(system, _benchmark(pattern, fine), ACCURACY),
            strict=True,
        )
        for pattern, coarse, fine in steps
        for system in EIGHT
    ]
    return [Check("On average", tuple(average)), Check("System by system", tuple(each))]


def _averages(source: Source) -> list[Check]:
    compared = []
    for benchmark, stated in stated_averages().items():
        found = mean_of(source, EIGHT, [benchmark])
        if found is None:
            compared.append(Comparison(short(benchmark), "", None))
            continue
        near = round(100 * abs(found - stated), 6) <= NEAR
        compared.append(Comparison(short(benchmark), f"{100 * found:.1f}, stated {100 * stated:.1f}", near))
    return [Check("Averages", tuple(compared))]


NEGATIVES = (
    Claim(
        "6",
        "5.3",
        "With random corruption of the object, systems get high scores: such negatives are trivial.",
        f"The balanced accuracy on FB-sym-rc and FB-inter-rc is at least {HIGH:g} %: in the mean over "
        "the eight systems, and for each of them.",
        _random_corruption,
    ),
    Claim(
        "7",
        "5.3",
        "The finer the method for negatives, the lower the scores, consistently: random, relevance-based, "
        "position-aware, query-guided.",
        "The balanced accuracy falls with each step rc, rb, pa on FB-sym and rc, rb, pa, qg on "
        "FB-inter: in the mean over the eight systems, and for each of them.",
        _degradation,
    ),
    Claim(
        "8",
        "5.3",
        "The averages over the systems are 90.9, 88.0 and 85.5 % on FB-sym and 96.0, 91.7, 89.3 and "
        "85.6 % on FB-inter.",
        f"The mean balanced accuracy over the eight systems is within {NEAR:g} points of each of these.",
        _averages,
    ),
)
