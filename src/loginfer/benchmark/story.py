"""The story of one triple of a benchmark, as a value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

__all__ = ["Derivation", "Names", "NegativeStory", "Part", "TripleStory"]

Names: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a rule's body under a witness.

    Parameters
    ----------
    text
        The atom or inequality, as in the rule.
    holds
        Whether it is true in K; None if the witness leaves one of its variables open.
    kept
        Whether the sub-rule keeps it.
    triple
        The triple that an atom becomes; None for an inequality, or with an open variable.
    """

    text: str
    holds: bool | None
    kept: bool = True
    triple: Names | None = None


@dataclass(frozen=True, slots=True)
class Derivation:
    """A rule that derives the triple, with one witness.

    Parameters
    ----------
    rule
        Place of the rule in the benchmark's rules, counted from 0.
    text
        The rule.
    witness
        Names of constants by variable.
    premises
        The premise triples, in the order of the body.
    """

    rule: int
    text: str
    witness: dict[str, str]
    premises: tuple[Names, ...]


@dataclass(frozen=True, slots=True)
class NegativeStory:
    """How a triple became a negative.

    Parameters
    ----------
    method, split
        Whose negative it is.
    source
        `relevance`, `position`, `sub-rule` or `object`; None if that is not known.
    position
        What was replaced: `subject`, `object` or `either`; None if nothing was, or it is not known.
    replaced
        A positive that it differs from in that position only.
    rule
        The rule whose sub-rule concludes it, as a place in the benchmark's rules.
    sub_rule
        The sub-rule.
    witness
        A witness of the sub-rule.
    parts
        All parts of the whole rule's body under that witness.
    """

    method: str
    split: str
    source: str | None = None
    position: str | None = None
    replaced: Names | None = None
    rule: int | None = None
    sub_rule: str | None = None
    witness: dict[str, str] | None = None
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class TripleStory:
    """Everything a benchmark knows about a triple.

    Parameters
    ----------
    triple
        Its names.
    sets
        The sets it is in: `K`, `P_train`, `P_valid`, `P_test`, `N_train of pa`, …; empty if in none.
    conclusion
        Whether it is one of the conclusions that were distributed; None if that is not known.
    derivations
        The rules that derive it in one step, with witnesses.
    source
        What they derive it from: `K`, or `P_train` where K is not known, or `P_all` for what only follows
        from that. None without derivations.
    negatives
        How it became a negative, for each set of negatives it is in.
    reason
        Why no rule derives it; None if one does, or the rules are not known.
    """

    triple: Names
    sets: tuple[str, ...]
    conclusion: bool | None
    derivations: tuple[Derivation, ...] = ()
    source: str | None = None
    negatives: tuple[NegativeStory, ...] = ()
    reason: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the story as plain values, ready for JSON."""
        return asdict(self)
