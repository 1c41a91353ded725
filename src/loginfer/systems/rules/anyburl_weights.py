"""What AnyBURL's rules are worth when they are applied: less than their files say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from loginfer.logic.rule import Rule
from loginfer.logic.scored import ScoredRule
from loginfer.logic.terms import Constant
from loginfer.systems.rules.values import BOTH, NONE, MinedRules, RuleTable

__all__ = ["AC2_WEIGHT", "PSEUDO_COUNT", "ZERO_WEIGHT", "applied", "applied_confidence"]

# As AnyBURL has them.
PSEUDO_COUNT = 5.0
AC2_WEIGHT = 0.1
ZERO_WEIGHT = 0.01


def applied_confidence(
    table: RuleTable, *, pseudo: float = PSEUDO_COUNT, ac2: float = AC2_WEIGHT, zero: float = ZERO_WEIGHT
) -> npt.NDArray[np.float64]:
    """Return float64[m]: correct / (predictions + pseudo), times a weight for rules that say little.

    A rule without counts, as a file may hold, keeps the confidence it came with, weighted likewise.

    Parameters
    ----------
    table
        The rules, with the counts and confidences of AnyBURL's files.
    pseudo
        Wrong predictions that every rule is taken to have besides those that were seen.
    ac2
        Weight of h(X,c) ⇐ b1(X,A), …, bn(·,B).
    zero
        Weight of h(X,c) with an empty body.
    """
    predictions = table.predictions.astype(np.float64)
    counted = table.predictions > 0
    confidence = np.where(
        counted, table.correct / np.where(counted, predictions + pseudo, 1.0), table.confidence
    )
    acyclic = table.variables != BOTH
    confidence[acyclic & (table.length > 0) & (table.end_constant == NONE)] *= ac2
    confidence[table.length == 0] *= zero
    return np.asarray(confidence, dtype=np.float64)


def applied(
    rules: MinedRules, *, pseudo: float = PSEUDO_COUNT, ac2: float = AC2_WEIGHT, zero: float = ZERO_WEIGHT
) -> MinedRules:
    """Return the same rules, with the confidences that `applied_confidence` gives them.

    Rules of other shapes, such as those about loops, are weighted by the same formula.
    """
    table = rules.paths
    weighted = replace(table, confidence=applied_confidence(table, pseudo=pseudo, ac2=ac2, zero=zero))
    return replace(rules, paths=weighted, others=_others(rules.others, pseudo, ac2))


def _others(rules: Sequence[ScoredRule], pseudo: float, ac2: float) -> tuple[ScoredRule, ...]:
    found = []
    for scored in rules:
        confidence = scored.confidence or 0.0
        if scored.predictions and scored.correct is not None:
            confidence = scored.correct / (scored.predictions + pseudo)
        found.append(replace(scored, confidence=confidence * (ac2 if _says_little(scored.rule) else 1.0)))
    return tuple(found)


def _says_little(rule: Rule) -> bool:
    """Say whether a rule is about one variable, and anything may be at the end of its path."""
    last = rule.atoms[-1]
    loop = last.subject == last.object
    return len(rule.head.variables) == 1 and not loop and not any(isinstance(t, Constant) for t in last.terms)
