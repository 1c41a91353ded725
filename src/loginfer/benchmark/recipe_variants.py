"""Checks of the recipe's settings for benchmarks that are noisy or inductive."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from loginfer.errors import InputError

if TYPE_CHECKING:
    from loginfer.benchmark.recipe import Recipe

__all__ = ["check_variants", "share_of"]


def share_of(share: float, size: int) -> int:
    """Return how many a share of so many is, rounded down: 0.29 of 100 is 29."""
    return int(Fraction(str(share)) * size)


def check_variants(recipe: Recipe) -> None:
    """Complain about settings of noise and of inductive benchmarks that make no sense."""
    for key, most in (("flipped", 0.5), ("missing", 1), ("inductive_share", 1)):
        value = getattr(recipe, key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise InputError(f"`{key}` must be a number, not {value!r}")
        if not 0 <= value < most:
            hint = "as many wrong labels as right ones say nothing" if key == "flipped" else None
            raise InputError(f"`{key}` must be a share from 0 to below {most}, not {value}", hint=hint)
    if not isinstance(recipe.inductive, bool):
        raise InputError(f"`inductive` must be true or false, not {recipe.inductive!r}")
    if recipe.inductive and recipe.inductive_share == 0:
        raise InputError("`inductive_share` is 0: no constants are left for test")
    if not recipe.inductive and recipe.inductive_share != 0.2:
        raise InputError("`inductive_share` is for inductive benchmarks", hint="set inductive = true")
    if not (recipe.flipped or recipe.missing):
        return
    if len(recipe.negatives) > 1:
        raise InputError(
            f"a benchmark with noise has the negatives of one method, not of {', '.join(recipe.negatives)}",
            hint="labels are exchanged between P_train and N_train: build one benchmark a method",
        )
    if recipe.inductive:
        raise InputError(
            "a benchmark is either noisy or inductive, not both", hint="leave out `inductive`, or the noise"
        )
