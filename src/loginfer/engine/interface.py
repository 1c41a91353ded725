"""What an engine does: evaluate rules over one graph, exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Pattern, Rule

__all__ = ["BodyTable", "Derivations", "Engine", "Materialisation", "Progress", "Witnesses"]

# Called with what is being done, how much of it is done, and how much there is (None: unknown).
Progress: TypeAlias = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class BodyTable:
    """The bodies of a pattern with their supports, largest first, ties by the text of the body.

    One body per rule up to variable renaming and atom order; bodies without a witness are left out.

    Parameters
    ----------
    pattern
        The pattern whose bodies these are.
    predicates
        int32[m, k], one column per template of `pattern.templates`: ids of relations, or of types (in the
        vocabulary of entities) for type templates.
    support
        int64[m], number of witnesses, descending.
    nonzero
        How many bodies have a witness; None if bodies outside the top were pruned unseen.
    """

    pattern: Pattern
    predicates: npt.NDArray[np.int32]
    support: npt.NDArray[np.int64]
    nonzero: int | None

    def __len__(self) -> int:
        return len(self.support)


@dataclass(frozen=True, slots=True)
class Witnesses:
    """Substitutions of a rule's body variables, in ascending order of the tuples of ids.

    Parameters
    ----------
    rule
        The rule they witness.
    values
        int32[m, v], one row a witness, one column per variable of `rule.variables`.
    """

    rule: Rule
    values: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Derivations:
    """Which rules derive which triples, sorted by triple, then rule.

    Parameters
    ----------
    triple
        int64[m], places in the list of triples that was asked about.
    rule
        int64[m], places in the list of rules.
    """

    triple: npt.NDArray[np.int64]
    rule: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Materialisation:
    """The triples that a program adds to a graph, M_R(K) ∖ K.

    Parameters
    ----------
    triples
        int32[m, 3], sorted.
    depth
        int32[m], the round in which each was first derived: the least i with the triple in K_i.
    rounds
        Rounds that added something.
    """

    triples: Triples
    depth: npt.NDArray[np.int32]
    rounds: int

    def __len__(self) -> int:
        return len(self.triples)


class Engine(Protocol):
    """Exact evaluation of rules over one graph.

    Ids are those of the graph's vocabularies. All results are sorted and do not depend on the engine, the
    number of threads or the order of anything. A body that mentions a relation or constant the graph does
    not have has no witness; a head must be expressible (see `binding.extend`).
    """

    @property
    def name(self) -> str:
        """What the command line calls it."""
        ...

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph K."""
        ...

    def rank_bodies(
        self,
        pattern: Pattern,
        top: int | None = None,
        *,
        complete: bool | None = None,
        progress: Progress | None = None,
    ) -> BodyTable:
        """Return the exact support of every body of a pattern, or of the `top` largest.

        `complete` says whether the number of all bodies with a witness must be known too; by default it is
        as long as that is cheap.
        """
        ...

    def support(self, rule: Rule) -> int:
        """Return the number of witnesses: substitutions of all variables of the body."""
        ...

    def conclusions(self, rule: Rule, *, new: bool = False) -> Triples:
        """Return T_r(K), the distinct conclusion triples; with `new`, T_r(K) ∖ K."""
        ...

    def witnesses(
        self, rule: Rule, *, limit: int | None = None, conclusion: Sequence[int] | None = None
    ) -> Witnesses:
        """Return the first `limit` witnesses, all of them or those of one conclusion triple."""
        ...

    def derives(self, rules: Sequence[Rule], triples: Triples) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which of these triples are in T_R(K)."""
        ...

    def derivations(self, rules: Sequence[Rule], triples: Triples) -> Derivations:
        """Return every pair of a triple and a rule that derives it in one step."""
        ...

    def materialise(
        self,
        rules: Sequence[Rule],
        *,
        max_rounds: int | None = None,
        max_triples: int | None = None,
        progress: Progress | None = None,
    ) -> Materialisation:
        """Apply the rules until nothing new follows.

        Raises
        ------
        LimitError
            When a round beyond `max_rounds` would be needed, or more than `max_triples` are derived.
        """
        ...
