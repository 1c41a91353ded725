"""The story of one triple of a benchmark, as a value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

__all__ = ["Derivation", "Names", "NegativeStory", "Part", "Step", "TripleStory"]

Names: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a rule's body under a witness.

    Parameters
    ----------
    text
        The atom, inequality or negation, as in the rule.
    holds
        Whether it is true in K; None if the witness leaves one of its variables open.
    kept
        Whether the sub-rule keeps it, or the near miss leaves it as it is.
    triple
        The triple that an atom becomes, or one that a negation denies although it is there; None for another
        part, or with an open variable.
    absent
        Of a negation: what it denies, with variables like `?z` where there is no value.
    """

    text: str
    holds: bool | None
    kept: bool = True
    triple: Names | None = None
    absent: Names | None = None


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
    missing
        Those of them that are missing from P_train on purpose.
    absent
        What the rule denies: there is no such triple, whatever stands for a variable like `?z`.
    """

    rule: int
    text: str
    witness: dict[str, str]
    premises: tuple[Names, ...]
    missing: tuple[Names, ...] = ()
    absent: tuple[Names, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A triple on the way to one that follows in several steps.

    Parameters
    ----------
    triple
        Its names.
    depth
        In how many steps it follows.
    derivation
        A rule and a witness by which it does.
    """

    triple: Names
    depth: int
    derivation: Derivation


@dataclass(frozen=True, slots=True)
class NegativeStory:
    """How a triple became a negative.

    Parameters
    ----------
    method, split
        Whose negative it is.
    source
        `relevance`, `position`, `sub-rule`, `object` or `near-miss`; None if that is not known.
    position
        What was replaced: `subject`, `object` or `either`; None if nothing was, or it is not known.
    replaced
        A positive that it differs from in that position only.
    rule
        The rule whose sub-rule or near miss concludes it, as a place in the benchmark's rules.
    sub_rule
        The sub-rule.
    witness
        A witness of the sub-rule.
    parts
        All parts of the whole rule's body under that witness.
    near_miss
        The near miss of the rule that concludes it, with `witness` and `parts` as above.
    edit
        What was done to the rule: `replace`, `reverse`, `drop` or `drop-inequality`.
    edited, instead
        The part of the body to which that was done, and what stands there instead; None if nothing does.
    put
        The triple that `instead` becomes under the witness.
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
    near_miss: str | None = None
    edit: str | None = None
    edited: str | None = None
    instead: str | None = None
    put: Names | None = None


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
    noise
        What is wrong with it on purpose: `flipped-positive`, `flipped-negative`, `missing`; None if nothing.
    depth
        Where conclusions follow in several steps: in how many this one does; None if it does not.
    steps
        What follows on the way to it, from K on; the last is the triple itself.
    """

    triple: Names
    sets: tuple[str, ...]
    conclusion: bool | None
    derivations: tuple[Derivation, ...] = ()
    source: str | None = None
    negatives: tuple[NegativeStory, ...] = ()
    reason: str | None = None
    noise: str | None = None
    depth: int | None = None
    steps: tuple[Step, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the story as plain values, ready for JSON; depth and steps only where they are known."""
        found = asdict(self)
        if self.depth is None:
            del found["depth"], found["steps"]
        return found

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.benchmark.story_html import story_fragment

        return story_fragment(self)
