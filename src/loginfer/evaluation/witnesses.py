"""Which negatives each shortcut of a rule says true to.

The shortcuts of a rule are its sub-rules in R⁻. To be learned for sure, a rule must be told from the simplest
of them: those of which no other keeps fewer atoms. Sub-rules that forget inequalities only are looked at, but
there need not be any witness of those. A rule that has no sub-rule with fewer atoms, such as a symmetry, must
be told from its head's relation alone, and from the baselines of the audit that say true to its conclusions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.sub_rules import SubRules, by_atoms, concluded
from loginfer.benchmark.negatives.undesired import sub_rule
from loginfer.engine import Engine
from loginfer.evaluation.verdicts import HIGH, Shortcut
from loginfer.kg import Triples
from loginfer.logic.rule import Rule

__all__ = ["Negatives", "head_shortcuts", "sub_rule_shortcuts"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Negatives:
    """The negatives that fit a rule's head and do not follow from the rules.

    Parameters
    ----------
    triples
        int32[n, 3].
    predicted
        bool[n], which of them the system predicts.
    baselines
        By name, bool[n]: to which of them each baseline says true.
    """

    triples: Triples
    predicted: Mask
    baselines: Mapping[str, Mask]


def sub_rule_shortcuts(
    engine: Engine, rule: Rule, masks: Sequence[int], negatives: Negatives
) -> list[Shortcut]:
    """Return the sub-rules of a rule with their witnesses.

    Parameters
    ----------
    engine
        An engine over P_train.
    rule
        The rule.
    masks
        Its sub-rules in R⁻, as masks of the parts that are kept.
    negatives
        Negatives that fit its head.

    Returns
    -------
    list
        One for all sub-rules that keep the same atoms and have the same witnesses: the shortest of them.
    """
    found: list[Shortcut] = []
    simpler: list[int] = []
    groups = by_atoms(rule, masks)  # fewest atoms first
    for group in groups:
        atoms = group.atoms.bit_count()
        fewer = atoms < len(rule.body) - len(rule.inequalities)
        minimal = fewer and not any(group.atoms & few == few for few in simpler)
        simpler.append(group.atoms)
        for kept, variants, derived in _apart(engine, group, negatives.triples):
            found.append(
                Shortcut(
                    "sub-rule",
                    str(sub_rule(rule, kept)),
                    (atoms, kept.bit_count()),
                    int(derived.sum()),
                    int((derived & negatives.predicted).sum()),
                    # Of one atoms' sub-rules it is enough to test the shortest.
                    minimal and kept == min(group.masks, key=_shortest),
                    variants,
                )
            )
    return found


def _apart(engine: Engine, group: SubRules, triples: Triples) -> Iterator[tuple[int, int, Mask]]:
    """Yield the sub-rules that the triples tell apart: one, how many are like it, and its witnesses."""
    known = concluded(engine, group, triples)
    columns, same = np.zeros((1, 0), dtype=bool), np.zeros(len(group.masks), dtype=np.int64)
    if len(known.others):
        columns, same = np.unique(known.by.T, axis=0, return_inverse=True)
        same = same.ravel()
    for place, column in enumerate(columns):
        alike = [group.masks[i] for i in np.flatnonzero(same == place).tolist()]
        derived = known.every.copy()
        derived[known.others[column]] = True
        yield min(alike, key=_shortest), len(alike), derived


def _shortest(mask: int) -> tuple[int, int]:
    return mask.bit_count(), mask


def head_shortcuts(
    rule: Rule, negatives: Negatives, conclusions: Mapping[str, Mask], *, needed: bool
) -> list[Shortcut]:
    """Return what a system may have learned that knows a rule's head, but nothing of its body.

    Parameters
    ----------
    rule
        The rule.
    negatives
        Negatives that fit its head.
    conclusions
        By baseline, to which of the rule's conclusions in P_test it says true. A baseline that does not say
        so to nearly all of them is no shortcut of this rule.
    needed
        Whether the rule must be told from these.
    """
    everything = np.ones(len(negatives.triples), dtype=bool)
    head = str(rule.head)
    candidates = [("relation", f"every {head}", everything)]
    candidates += [
        ("baseline", f"{name} -> {head}", negatives.baselines[name])
        for name, said in conclusions.items()
        if len(said) and said.mean() >= HIGH
    ]
    return [
        Shortcut(
            "relation" if kind == "relation" else "baseline",
            text,
            (0, place),
            int(said.sum()),
            int((said & negatives.predicted).sum()),
            needed,
        )
        for place, (kind, text, said) in enumerate(candidates)
    ]
