"""R⁻ with the rules it came from: what a system should not learn although it is simpler than R.

A sub-rule is written down as a rule's place in R and a bit mask: bit i is set if part i of that rule's body
is kept. That is how the origins of negatives are stored, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loginfer.errors import LimitError
from loginfer.logic.rule import Rule
from loginfer.logic.subrules import kept_parts

__all__ = ["Undesired", "kept_masks", "minimal", "places", "sub_rule", "undesired"]

# Masks are stored in int32.
_MOST_PARTS = 31


@dataclass(frozen=True, slots=True)
class Undesired:
    """A sub-rule in R⁻ of one rule of R.

    Parameters
    ----------
    rule
        Place of the rule in R.
    kept
        Bit i is set if the sub-rule keeps part i of that rule's body.
    sub_rule
        The sub-rule.
    """

    rule: int
    kept: int
    sub_rule: Rule


def undesired(rules: Sequence[Rule]) -> list[Undesired]:
    """Return R⁻ as pairs of a rule and a sub-rule of it, in the order of the rules, longest sub-rules first.

    A sub-rule that came from several rules is there once for each of them.
    """
    return [
        Undesired(place, kept, sub_rule(rules[place], kept))
        for place, masks in enumerate(kept_masks(rules))
        for kept in masks
    ]


def kept_masks(rules: Sequence[Rule]) -> tuple[tuple[int, ...], ...]:
    """Return for each rule the masks of its sub-rules in R⁻, longest first.

    Raises
    ------
    LimitError
        For a body of more than 31 parts, or of more than 18 distinct ones.
    """
    for rule in rules:
        if len(rule.body) > _MOST_PARTS:
            raise LimitError(
                f"a rule has a body of {len(rule.body)} parts; query-guided sampling takes {_MOST_PARTS}",
                where=str(rule),
                hint="drop repeated parts, or choose another method for negatives",
            )
    made: dict[tuple[tuple[int, ...], ...], tuple[int, ...]] = {}  # rules of one shape share their subsets
    found = []
    for kept in kept_parts(rules):
        if kept not in made:
            # A head without variables is safe with no body at all; that is a fact, not a rule.
            made[kept] = tuple(sum(1 << place for place in subset) for subset in kept if subset)
        found.append(made[kept])
    return tuple(found)


def sub_rule(rule: Rule, kept: int) -> Rule:
    """Return the rule that keeps only some parts of a rule's body."""
    return Rule.known_safe(tuple(rule.body[place] for place in places(kept)), rule.head)


def places(mask: int) -> list[int]:
    """Return the places of the bits that are set."""
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def minimal(masks: Iterable[int]) -> list[int]:
    """Return those masks that contain no other one, in the order given.

    Dropping parts of a body only adds conclusions, so these conclude all that the others do.
    """
    ordered = list(masks)
    found: list[int] = []
    for mask in sorted(ordered, key=int.bit_count):
        if not any(small & mask == small for small in found):
            found.append(mask)
    return [mask for mask in ordered if mask in found]
