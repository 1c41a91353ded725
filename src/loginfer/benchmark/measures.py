"""How hard a rule is to learn: its confidence, and how much of it an easier rule gives away.

confidence
    |T_r(K) ∩ K| / |T_r(K)|: the share of a rule's conclusions that the graph has already. Where the head is
    drawn at random it is near 0.
overlap
    |T_r(K)| / |T_s(K)| for the sub-rule s that concludes least: how far the rule coincides with the easiest
    rule that lacks one of its atoms. At 1 whoever learns that sub-rule needs to learn no more. Sub-rules that
    lack nothing but inequalities do not count, since they hardly ever conclude anything else. Where no atom
    can be left out (one atom, or a composition) it is the share of the conclusions (x, P, y) whose x and y
    the graph connects by a relation that the body does not have.
"""

from __future__ import annotations

import numpy as np

from loginfer.benchmark.lookup import member
from loginfer.benchmark.negatives.undesired import kept_masks, sub_rule
from loginfer.engine import Engine
from loginfer.engine.binding import bind
from loginfer.errors import LimitError
from loginfer.kg.triples import distinct_keys
from loginfer.logic.rule import Inequality, Rule

__all__ = ["concluded", "confidence", "overlap"]


def concluded(engine: Engine, rule: Rule) -> int:
    """Return |T_r(K)|."""
    try:
        return len(engine.projection(rule))
    except LimitError:  # too many pairs to hold at a time
        return sum(len(part) for part in engine.conclusions_in_parts(rule))


def confidence(engine: Engine, rule: Rule, new: int) -> float:
    """Return the share of a rule's conclusions that are in K.

    Parameters
    ----------
    engine
        An engine over K.
    rule
        The rule, which concludes something.
    new
        |T_r(K) ∖ K|.
    """
    return 1 - new / concluded(engine, rule)


def overlap(engine: Engine, rule: Rule) -> float | None:
    """Return how far a rule coincides with its easiest sub-rule; None where that is too large to tell.

    Parameters
    ----------
    engine
        An engine over K.
    rule
        The rule, which concludes something.
    """
    smaller = _with_fewer_atoms(rule)
    if not smaller:
        return _connected_otherwise(engine, rule)
    sizes = []
    for mask in smaller:
        try:
            sizes.append(len(engine.projection(sub_rule(rule, mask))))
        except LimitError:
            continue
    return concluded(engine, rule) / min(sizes) if sizes else None


def _with_fewer_atoms(rule: Rule) -> list[int]:
    """Return the largest sub-rules that lack an atom, negated or not: the others conclude what these do."""
    atoms = sum(1 << i for i, part in enumerate(rule.body) if not isinstance(part, Inequality))
    masks = [mask for mask in kept_masks([rule])[0] if mask & atoms != atoms]
    return [m for m in masks if not any(other != m and other & m == m for other in masks)]


def _connected_otherwise(engine: Engine, rule: Rule) -> float:
    """Return the share of conclusions whose ends K connects by a relation that the body does not have."""
    graph = engine.graph
    own = [atom.relation for atom in bind(rule, graph).atoms]
    size = len(graph.entities)
    others = graph.triples[~np.isin(graph.triples[:, 1], own)]
    known = distinct_keys(others[:, 0].astype(np.int64) * size + others[:, 2])
    found = total = 0
    for part in engine.conclusions_in_parts(rule):
        found += int(member(known, part[:, 0].astype(np.int64) * size + part[:, 2]).sum())
        total += len(part)
    return found / total
