"""Whether a system learned a rule, or something simpler that the rule's conclusions do not tell from it.

A shortcut of a rule says true to all conclusions of the rule, and to more. A system that learned the shortcut
shows it on the shortcut's witnesses: negatives to which the shortcut says true. What a verdict needs:

    not testable    fewer than `LEAST` conclusions in P_test
    not learned     recall of the rule's conclusions below `HALF`
    in part         recall below `HIGH`; or some false-positive rate above `LOW`, but none from `HALF` on
    shortcut        recall from `HIGH` on, and some false-positive rate from `HALF` on: the simplest such one
    untested        recall from `HIGH` on, all rates at most `LOW`, but a shortcut that had to be tested has
                    fewer than `LEAST` witnesses: either the rule was learned or that shortcut
    learned         recall from `HIGH` on, all rates at most `LOW`, all that had to be tested was

Rates of shortcuts with fewer than `LEAST` witnesses do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

__all__ = [
    "HALF",
    "HIGH",
    "LEAST",
    "LOW",
    "VERDICTS",
    "RuleDiagnosis",
    "Shortcut",
    "ShortcutKind",
    "Verdict",
    "diagnose_rule",
]

LEAST = 5
LOW, HALF, HIGH = 0.2, 0.5, 0.8

Verdict = Literal["learned", "untested", "shortcut", "in part", "not learned", "not testable"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

# sub-rule   a rule of R⁻
# relation   says true to whatever fits the head
# baseline   one of the audit's shortcut baselines, for triples that fit the head
ShortcutKind = Literal["sub-rule", "relation", "baseline"]


@dataclass(frozen=True, slots=True)
class Shortcut:
    """Something simpler than a rule that a system may have learned instead.

    Parameters
    ----------
    kind
        What kind of shortcut it is.
    text
        A sub-rule as text, or what else it says.
    size
        Number of ≠-free atoms and of all parts of the body: how simple it is.
    witnesses
        Negatives to which it says true although they do not follow from the rules.
    predicted
        How many of them the system predicts.
    needed
        Whether the rule does not count as learned unless this is tested.
    variants
        How many sub-rules of the same atoms it stands for: they differ in inequalities that none of the
        negatives tells apart.
    """

    kind: ShortcutKind
    text: str
    size: tuple[int, int]
    witnesses: int
    predicted: int
    needed: bool
    variants: int = 1

    @property
    def rate(self) -> float | None:
        """The false-positive rate on its witnesses; None without any."""
        return self.predicted / self.witnesses if self.witnesses else None

    @property
    def tested(self) -> bool:
        """Whether there are enough witnesses to tell."""
        return self.witnesses >= LEAST

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "shortcut": self.text,
            "kind": self.kind,
            "variants": self.variants,
            "witnesses": self.witnesses,
            "predicted": self.predicted,
            "false_positive_rate": self.rate,
            "tested": self.tested,
        }


@dataclass(frozen=True, slots=True)
class RuleDiagnosis:
    """What a system made of one rule.

    Parameters
    ----------
    rule, pattern
        The rule as text, and its pattern; None if the rule was given.
    conclusions, predicted
        Its conclusions in P_test, and how many of them the system predicts.
    shortcuts
        What it may have learned instead, simplest first.
    sub_rules
        How many rules of R⁻ came from it.
    verdict
        The verdict.
    instead
        With the verdict `shortcut`, the shortcut; with `untested`, the simplest that had to be tested.
    """

    rule: str
    pattern: str | None
    conclusions: int
    predicted: int
    shortcuts: tuple[Shortcut, ...]
    sub_rules: int
    verdict: Verdict
    instead: Shortcut | None = None

    @property
    def recall(self) -> float | None:
        """The share of its conclusions that the system predicts; None without any."""
        return self.predicted / self.conclusions if self.conclusions else None

    @property
    def text(self) -> str:
        """The verdict in words."""
        instead = "" if self.instead is None else self.instead.text
        return {
            "learned": "learned the rule",
            "untested": f"learned the rule or the shortcut {instead}, which no negatives test",
            "shortcut": f"learned the shortcut {instead}",
            "in part": "learned in part",
            "not learned": "not learned",
            "not testable": "too few conclusions in test to tell",
        }[self.verdict]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values, without shortcuts that have no witness unless they had to be tested."""
        return {
            "rule": self.rule,
            "pattern": self.pattern,
            "verdict": self.verdict,
            "text": self.text,
            "conclusions": self.conclusions,
            "predicted": self.predicted,
            "recall": self.recall,
            "sub_rules": self.sub_rules,
            "shortcuts": [known.as_dict() for known in self.shortcuts if known.witnesses or known.needed],
        }


def diagnose_rule(
    rule: str,
    pattern: str | None,
    conclusions: int,
    predicted: int,
    shortcuts: Sequence[Shortcut],
    sub_rules: int,
) -> RuleDiagnosis:
    """Judge one rule (see the head of this file); the arguments are those of `RuleDiagnosis`."""
    ordered = tuple(sorted(shortcuts, key=lambda known: (*known.size, -(known.rate or 0), known.text)))
    verdict, instead = _judge(conclusions, predicted, ordered)
    return RuleDiagnosis(rule, pattern, conclusions, predicted, ordered, sub_rules, verdict, instead)


def _judge(
    conclusions: int, predicted: int, shortcuts: tuple[Shortcut, ...]
) -> tuple[Verdict, Shortcut | None]:
    if conclusions < LEAST:
        return "not testable", None
    recall = predicted / conclusions
    if recall < HALF:
        return "not learned", None
    if recall < HIGH:
        return "in part", None
    rates = {known: known.rate or 0 for known in shortcuts if known.tested}
    for known, rate in rates.items():
        if rate >= HALF:
            return "shortcut", known
    if any(rate > LOW for rate in rates.values()):
        return "in part", None
    for known in shortcuts:
        if known.needed and not known.tested:
            return "untested", known
    return "learned", None
