"""A rule with what a miner says about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from loginfer.logic.rule import Atom, Rule

__all__ = ["ScoredRule", "ZeroRule"]


@dataclass(frozen=True, slots=True)
class ScoredRule:
    """A rule as it stands in a file, with its measures where the file has some.

    Parameters
    ----------
    rule
        The rule.
    predictions
        How many pairs the body yields for the head.
    correct
        How many of those are in the training set.
    confidence
        What the miner makes of the two; for AMIE the standard confidence.
    extra
        Further measures by name, as text: those only AMIE has.
    line
        The line of the file; not part of equality.
    """

    rule: Rule
    predictions: int | None = None
    correct: int | None = None
    confidence: float | None = None
    extra: tuple[tuple[str, str], ...] = ()
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ZeroRule:
    """AnyBURL's `h(X,c) <= `: a head that holds of everything.

    It is no Datalog rule, because X is not bound; so it is kept apart from those.

    Parameters
    ----------
    head
        The head, with one variable.
    predictions, correct, confidence, line
        As for a `ScoredRule`.
    """

    head: Atom
    predictions: int | None = None
    correct: int | None = None
    confidence: float | None = None
    line: int | None = field(default=None, compare=False)
