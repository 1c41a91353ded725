"""The settings of a recipe that say which candidates become rules, and in how many steps they conclude."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Literal, get_args

from loginfer.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from loginfer.benchmark.recipe import Recipe

__all__ = [
    "HEADS",
    "MEASURES",
    "MOST_STEPS",
    "SELECTS",
    "Head",
    "Measure",
    "Select",
    "check_choice",
    "check_depth",
    "parse_interval",
]

# Which candidates of a pattern become rules.
#   support   those with the largest support
#   random    any, each as likely as the others
#   interval  any whose measure lies in an interval
Select = Literal["support", "random", "interval"]
# What an interval is about (see `measures`).
Measure = Literal["support", "confidence", "overlap"]
# Where the predicate of a head comes from that the body does not determine.
#   drawn  any predicate that the body does not have
#   best   the one with the largest confidence
Head = Literal["drawn", "best"]

SELECTS: tuple[Select, ...] = get_args(Select)
MEASURES: tuple[Measure, ...] = get_args(Measure)
HEADS: tuple[Head, ...] = get_args(Head)

# Depths are stored in 8 bits.
MOST_STEPS = 100


def check_choice(recipe: Recipe) -> None:
    """Complain about settings of the choice of rules that make no sense.

    Raises
    ------
    InputError
        With what to do about it.
    """
    for key, known, what in (
        ("select", SELECTS, "way to select rules"),
        ("select_by", MEASURES, "measure to select rules by"),
        ("head", HEADS, "way to find heads"),
    ):
        value = getattr(recipe, key)
        if value not in known:
            raise UnknownNameError(what, str(value), known)
    if not isinstance(recipe.interval, str | None):
        raise InputError(
            f"`interval` must be a text, not {recipe.interval!r}", hint='write it like "0.1:0.5"'
        )
    if recipe.rules is not None and (recipe.select != "support" or recipe.head != "drawn"):
        raise InputError("`select` and `head` are for patterns", hint="given rules are all taken as they are")
    if recipe.select == "interval" and recipe.interval is None:
        raise InputError("`select` asks for an interval, but there is none", hint='add interval = "0.1:0.5"')
    if recipe.select != "interval" and (recipe.interval is not None or recipe.select_by != "support"):
        raise InputError(
            '`interval` and `select_by` are for `select = "interval"`',
            hint='set select = "interval", or leave them out',
        )
    if recipe.interval is not None:
        low, high = parse_interval(recipe.interval)
        if recipe.select_by != "support" and (low > 1 or high < 0):
            raise InputError(
                f"no {recipe.select_by} lies in `{recipe.interval}`", hint="it is between 0 and 1"
            )


def check_depth(recipe: Recipe) -> None:
    """Complain about settings of benchmarks of several steps that make no sense.

    Raises
    ------
    InputError
        With what to do about it.
    """
    for key, least, most in (("depth", 1, MOST_STEPS), ("max_triples", 1, None)):
        value = getattr(recipe, key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f"`{key}` must be a whole number, not {value!r}")
        if value < least or (most is not None and value > most):
            bounds = f"at least {least}" if most is None else f"between {least} and {most}"
            raise InputError(f"`{key}` must be {bounds}, but is {value}")
    if recipe.depth > 1 and (recipe.inductive or recipe.flipped or recipe.missing):
        raise InputError(
            "a benchmark of several steps is neither noisy nor inductive",
            hint="leave out `depth`, or the others",
        )


def parse_interval(text: str) -> tuple[float, float]:
    """Return the two ends of an interval such as `0.1:0.5`; `0.1:` and `:0.5` are open to one side.

    Raises
    ------
    InputError
        For a text that is no interval, or an empty one.
    """
    low, colon, high = (piece.strip() for piece in text.partition(":"))
    hint = "write it like 0.1:0.5, 100:2000 or 0.5:"
    try:
        ends = (float(low) if low else -inf, float(high) if high else inf)
    except ValueError as error:
        raise InputError(f"`{text}` is no interval", hint=hint) from error
    if not colon or not (low or high) or any(end != end for end in ends):
        raise InputError(f"`{text}` is no interval", hint=hint)
    if ends[0] > ends[1]:
        raise InputError(f"nothing lies in the interval `{text}`", hint="exchange its two ends")
    return ends
