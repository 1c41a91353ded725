"""The sections of a benchmark's card on its noise and on its context graph."""

from __future__ import annotations

from loginfer.benchmark.layout import CONTEXT, NEGATIVES, NOISE, PROVENANCE
from loginfer.benchmark.values import Benchmark, Split

__all__ = ["inductive_section", "noise_section"]

_LATER: tuple[Split, ...] = ("valid", "test")


def noise_section(benchmark: Benchmark) -> list[str]:
    """Return the lines on what is wrong on purpose; none for a benchmark without noise."""
    noise = benchmark.noise
    if noise is None:
        return []
    counts = noise.as_dict()
    sizes = benchmark.positives.sizes
    shares = [
        f"{noise.reached[split] / sizes[split]:.1%} of {split}"
        for split in _LATER
        if sizes[split] and split in noise.reached
    ]
    derived = (
        f"From `train.txt` as it is the rules themselves derive {' and '.join(shares)}. " if shares else ""
    )
    return [
        "## Noise",
        "",
        "The positives and negatives of train are wrong on purpose; valid and test are not.",
        "",
        f"- conclusions that stand among the negatives: {counts['flipped-positive']:,}",
        f"- negatives that stand among the positives: {counts['flipped-negative']:,}",
        f"- premises that are missing, though true: {counts['missing']:,}",
        "",
        f"{derived}`{NOISE}` lists all that is wrong. `{PROVENANCE}` and `{NEGATIVES}` tell of the benchmark "
        "without the noise.",
    ]


def inductive_section(benchmark: Benchmark) -> list[str]:
    """Return the lines on the two sides; none for a benchmark whose test has the constants of train."""
    context = benchmark.context
    if context is None:
        return []
    train, test = len(benchmark.graph.consts), len(context.consts)
    return [
        "## Inductive",
        "",
        f"The {test:,} constants of test are none of the {train:,} constants of train and valid. `{CONTEXT}` "
        f"({len(context):,} triples) tells of them: a positive of test follows from a rule and triples of "
        f"`{CONTEXT}`. Systems learn from `train.txt`, and rank test triples among the constants of the "
        "context graph. The size of the graph above, and the support and new conclusions of the rules below, "
        "are those of the two sides; what lies across is dropped.",
    ]
