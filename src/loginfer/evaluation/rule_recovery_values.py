"""What the analysis of mined rules says, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from loginfer.logic.entailment import Step
from loginfer.logic.rule import Rule

__all__ = ["LearnedSubRule", "RecoveredRule", "RecoveryFigures", "RuleRecovery", "Status"]

# found      the rule itself was mined, up to renaming and atom order
# entailed   it follows from what was mined
# missed     it does not
# undecided  it depends on too many constants of the mined rules, or the rule has a negation
Status = Literal["found", "entailed", "missed", "undecided"]


@dataclass(frozen=True)
class LearnedSubRule:
    """A sub-rule of a benchmark rule, in R⁻.

    Parameters
    ----------
    rule
        The sub-rule.
    entailed
        Whether the mined rules entail it; None if that was not decided.
    """

    rule: Rule
    entailed: bool | None


@dataclass(frozen=True)
class RecoveredRule:
    """What became of one rule of a benchmark.

    Parameters
    ----------
    rule
        The rule.
    found
        Whether it was mined, up to renaming and atom order.
    entailed
        Whether the mined rules entail it; None if that was not decided.
    single_step
        Whether one application of one mined rule is enough.
    random_heads
        Share of the draws in which its body with a random head is entailed; None if there is no other head.
    derivation
        How it follows, rule by rule; empty if it does not.
    subrules
        Its sub-rules in R⁻: those that are entailed were learned instead of it, or with it.
    """

    rule: Rule
    found: bool
    entailed: bool | None
    single_step: bool
    random_heads: float | None
    derivation: tuple[Step, ...]
    subrules: tuple[LearnedSubRule, ...]

    @property
    def status(self) -> Status:
        """In one word: found, entailed, missed or undecided."""
        if self.found:
            return "found"
        if self.entailed is None:
            return "undecided"
        return "entailed" if self.entailed else "missed"

    @property
    def shortcuts(self) -> tuple[Rule, ...]:
        """The sub-rules that are entailed and have no entailed sub-rule themselves: all others follow."""
        learned = [(frozenset(s.rule.body), s.rule) for s in self.subrules if s.entailed]
        return tuple(rule for body, rule in learned if not any(other < body for other, _ in learned))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "rule": str(self.rule),
            "status": self.status,
            "found": self.found,
            "entailed": self.entailed,
            "single_step": self.single_step,
            "random_heads": self.random_heads,
            "derivation": [
                {
                    "rule": str(step.rule),
                    "premises": [str(premise) for premise in step.premises],
                    "conclusion": str(step.conclusion),
                }
                for step in self.derivation
            ],
            "subrules": [{"rule": str(s.rule), "entailed": s.entailed} for s in self.subrules],
        }


@dataclass(frozen=True)
class RecoveryFigures:
    """The shares for all mined rules, or for those of some confidence. None stands for a share of nothing.

    Parameters
    ----------
    confidence
        The least confidence of the rules; None for all of them.
    mined
        How many mined rules there are.
    eps_ent
        ε_ent, the share of benchmark rules that are entailed.
    eps_cont
        ε_cont, the share that was mined, up to renaming and atom order.
    eps_ent_single_step
        The share that follows by one application of one rule.
    eps_ent_random_heads
        ε_ent with random heads, the mean over all draws.
    subrules_entailed
        The share of R⁻ that is entailed.
    undecided
        Questions of all kinds that were not decided; they count as not entailed.
    """

    confidence: float | None
    mined: int
    eps_ent: float
    eps_cont: float
    eps_ent_single_step: float
    eps_ent_random_heads: float | None
    subrules_entailed: float | None
    undecided: int


@dataclass(frozen=True)
class RuleRecovery:
    """What mined rules say about the rules of a benchmark.

    Parameters
    ----------
    figures
        The shares for all mined rules.
    by_confidence
        The same for rules of some confidence, ascending.
    rules
        Rule by rule.
    subrules
        How many sub-rules R⁻ has.
    draws, seed
        Of random heads.
    """

    figures: RecoveryFigures
    by_confidence: tuple[RecoveryFigures, ...]
    rules: tuple[RecoveredRule, ...]
    subrules: int
    draws: int
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values, shares as fractions."""
        figures = dict(vars(self.figures))
        figures.pop("confidence")
        return {
            **figures,
            "benchmark_rules": len(self.rules),
            "subrules": self.subrules,
            "draws": self.draws,
            "seed": self.seed,
            "by_confidence": [dict(vars(figures)) for figures in self.by_confidence],
            "rules": [rule.as_dict() for rule in self.rules],
        }
