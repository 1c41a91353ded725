"""Mined rules as values: path rules as arrays over the ids of one graph, other shapes by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.logic.scored import ScoredRule

__all__ = ["BOTH", "LONGEST", "NONE", "OBJECT", "SUBJECT", "MinedRules", "RuleTable"]

Ids: TypeAlias = npt.NDArray[np.int32]
Counts: TypeAlias = npt.NDArray[np.int64]

# Atoms in the body of a path rule, at most.
LONGEST = 3
# No constant, no further atom.
NONE = -1
# Which places of a path rule's head are variables.
BOTH, SUBJECT, OBJECT = 0, 1, 2


@dataclass(frozen=True)
class RuleTable:
    """Path rules over the ids of a graph, one row each.

    A body is a path of directed relations 2·R + d: with d = 0 the step goes from subject to object, with
    d = 1 from object to subject. What is at both ends says which shape a rule has:

        cyclic   h(X,Y) ⇐ b1(X,A), b2(A,B), b3(B,Y)   variables BOTH; the path leads from X to Y
        AC1      h(X,c) ⇐ b1(X,A), b2(A,d)            variables SUBJECT, both constants
        AC2      h(X,c) ⇐ b1(X,A), b2(A,B)            variables SUBJECT, no `end_constant`
        zero     h(X,c) ⇐                             variables SUBJECT, empty body

    and the last three likewise as h(c,X) with variables OBJECT. The path of an acyclic rule starts at X.

    Parameters
    ----------
    head
        int32[m], the head's relation.
    variables
        int8[m]: BOTH, SUBJECT or OBJECT.
    head_constant, end_constant
        int32[m], NONE where there is none.
    body
        int32[m, LONGEST], directed relations, NONE behind the last.
    predictions, correct
        int64[m], as the miner counted them.
    confidence
        float64[m], what the rule is worth when it is applied.
    """

    head: Ids
    variables: npt.NDArray[np.int8]
    head_constant: Ids
    end_constant: Ids
    body: Ids
    predictions: Counts
    correct: Counts
    confidence: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.head)

    @cached_property
    def length(self) -> npt.NDArray[np.int64]:
        """int64[m], atoms in the body."""
        return np.asarray(np.count_nonzero(self.body != NONE, axis=1), dtype=np.int64)

    def take(self, places: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> RuleTable:
        """Return some of the rules, by place or by mask."""
        return RuleTable(*(getattr(self, field.name)[places] for field in fields(self)))

    @classmethod
    def empty(cls) -> RuleTable:
        """Return a table without rules."""
        return cls.of(head=[], variables=[], body=np.empty((0, LONGEST)))

    @classmethod
    def of(
        cls,
        *,
        head: npt.ArrayLike,
        body: npt.ArrayLike,
        variables: npt.ArrayLike | None = None,
        head_constant: npt.ArrayLike | None = None,
        end_constant: npt.ArrayLike | None = None,
        predictions: npt.ArrayLike | None = None,
        correct: npt.ArrayLike | None = None,
        confidence: npt.ArrayLike | None = None,
    ) -> RuleTable:
        """Make a table; without `variables` all rules are cyclic, and what is not given is NONE or 0.

        `body` may have fewer than `LONGEST` columns.
        """
        heads = np.asarray(head, dtype=np.int32)
        size = len(heads)
        # Without rows, -1 could stand for any number of columns.
        given = np.asarray(body, dtype=np.int32).reshape(size, -1 if size else 0)
        bodies = np.full((size, LONGEST), NONE, dtype=np.int32)
        bodies[:, : given.shape[1]] = given

        def filled(
            values: npt.ArrayLike | None, default: int, kind: type[np.generic]
        ) -> npt.NDArray[np.generic]:
            return np.full(size, default, dtype=kind) if values is None else np.asarray(values, dtype=kind)

        return cls(
            heads,
            filled(variables, BOTH, np.int8),  # type: ignore[arg-type]
            filled(head_constant, NONE, np.int32),  # type: ignore[arg-type]
            filled(end_constant, NONE, np.int32),  # type: ignore[arg-type]
            bodies,
            filled(predictions, 0, np.int64),  # type: ignore[arg-type]
            filled(correct, 0, np.int64),  # type: ignore[arg-type]
            filled(confidence, 0, np.float64),  # type: ignore[arg-type]
        )

    @classmethod
    def joined(cls, tables: Sequence[RuleTable]) -> RuleTable:
        """Return the rules of several tables, one after the other."""
        if not tables:
            return cls.empty()
        return cls(*(np.concatenate([getattr(t, field.name) for t in tables]) for field in fields(cls)))

    @cached_property
    def best_first(self) -> Counts:
        """int64[m], the places of all rules: by confidence, then correct predictions, then by what they are.

        The order does not depend on the order of the rows, so that files and scores do not either.
        """
        keys = (
            *self.body.T[::-1],
            self.end_constant,
            self.head_constant,
            self.variables,
            self.head,
            self.length,
            -self.correct,
            -self.confidence,
        )
        return np.lexsort(keys)


@dataclass(frozen=True)
class MinedRules:
    """What a miner has found, or a file holds.

    Parameters
    ----------
    paths
        Rules of AnyBURL's shapes.
    others
        Rules of any other shape, by name.
    distinct
        Whether different variables of a path rule stand for different entities, which differ from its
        constants too: so AnyBURL and RuleN count and apply theirs. Otherwise path rules mean what they say
        as Datalog. Other shapes always do.
    """

    paths: RuleTable
    others: tuple[ScoredRule, ...] = ()
    distinct: bool = True

    def __len__(self) -> int:
        return len(self.paths) + len(self.others)
