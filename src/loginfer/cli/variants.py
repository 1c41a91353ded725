"""Options of `loginfer build` for noisy and inductive benchmarks, and what is printed about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

__all__ = ["FlippedOption", "InductiveOption", "InductiveShareOption", "MissingOption", "variant_lines"]

FlippedOption = Annotated[
    float | None,
    typer.Option(
        "--flipped",
        help="Noise: share of train's conclusions that change places with negatives.",
        show_default=False,
    ),
]
MissingOption = Annotated[
    float | None,
    typer.Option(
        "--missing", help="Noise: share of premises that are removed from train.", show_default=False
    ),
]
InductiveOption = Annotated[
    bool | None,
    typer.Option(
        "--inductive", help="Test has constants of its own, and a context graph that tells of them."
    ),
]
InductiveShareOption = Annotated[
    float | None,
    typer.Option(
        "--inductive-share",
        help="Inductive: share of constants for test; 0.2 by default.",
        show_default=False,
    ),
]


def variant_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a manifest tells of noise or of a context graph."""
    if (noise := manifest.get("noise")) is not None:
        yield (
            f"noise: {noise['flipped-positive']:,} conclusions of train are negatives, "
            f"{noise['flipped-negative']:,} negatives positives, {noise['missing']:,} premises missing"
        )
        reached, wanted = noise["reached"]["test"], manifest["positives"]["test"]
        if wanted:
            yield f"from train as it is the rules themselves derive {reached / wanted:.1%} of test"
    if (sides := manifest.get("inductive")) is not None:
        yield (
            f"inductive: {sides['constants']['test']:,} constants of test, not among the "
            f"{sides['constants']['train']:,} of train; context graph of {sides['context']:,} triples"
        )
