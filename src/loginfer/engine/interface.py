"""What an engine does: evaluate rules over one graph, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from loginfer.engine.binding import BoundAtom
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Ints, Mask
from loginfer.logic.rule import Pattern, Rule
from loginfer.progress import Progress as Progress


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
    predicates: Ids
    support: Ints
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
    values: Ids

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Projection:
    """The distinct values that one or two variables take in the witnesses of a body.

    Parameters
    ----------
    left, right
        int32. Values of the first and second variable, side by side, sorted by first, then second; for a
        product the two sets of values, each sorted. For one variable both are its values.
    product
        Whether every value of `left` goes with every value of `right`.
    unequal
        For a product: whether the two values must differ.
    """

    left: Ids
    right: Ids
    product: bool = False
    unequal: bool = False

    @classmethod
    def of(cls, head: BoundAtom, values: Ids) -> Projection:
        """Return the projection to a head with fewer than two variables.

        `values` are those of its variable; without any, only their number counts, which is 0 or 1.
        """
        left, right = (
            values if term >= 0 else np.full(len(values), ~term, dtype=np.int32) for term in (head.subject, head.object)
        )
        return cls(left, right)

    def __len__(self) -> int:
        if not self.product:
            return len(self.left)
        size = len(self.left) * len(self.right)
        if self.unequal:
            size -= len(np.intersect1d(self.left, self.right, assume_unique=True))
        return size

    def pairs(self) -> tuple[Ids, Ids]:
        """Return the pairs one by one, side by side, sorted."""
        if not self.product:
            return self.left, self.right
        left, right = np.repeat(self.left, len(self.right)), np.tile(self.right, len(self.left))
        if self.unequal:
            differ = left != right
            left, right = left[differ], right[differ]
        return left, right


@dataclass(frozen=True, slots=True)
class Derivations:
    """Which rules derive which triples, sorted by triple, then rule.

    Parameters
    ----------
    triple
        int64[m], indices into the list of triples that was asked about.
    rule
        int64[m], indices into the list of rules.
    """

    triple: Ints
    rule: Ints

    @classmethod
    def of(cls, pairs: Iterable[tuple[Ints, Ints]]) -> Derivations:
        """Return some pairs of triples and rules, given as arrays side by side, in order."""
        nothing = np.empty(0, dtype=np.int64)
        triple, rule = (np.concatenate(side) for side in zip((nothing, nothing), *pairs, strict=True))
        order = np.lexsort((rule, triple))
        return cls(triple[order], rule[order])


@dataclass(frozen=True, slots=True)
class Materialisation:
    """The triples that a program adds to a graph, M_R(K) ∖ K.

    With negation the rules are applied stratum by stratum (see `logic.stratification`), each until nothing new
    follows, and rounds are counted over all strata.

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
    depth: Ids
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

        Bodies with a negation that excludes no witness are left out: they have the witnesses of a shorter body,
        as those with the same atom twice have. `complete` says whether the number of all bodies with a witness
        must be known too; by default it is as long as that is cheap.
        """
        ...

    def support(self, rule: Rule) -> int:
        """Return the number of witnesses: substitutions of all variables of the body that satisfy it.

        Variables that only a negation has are not among them.
        """
        ...

    def conclusions(self, rule: Rule, *, new: bool = False) -> Triples:
        """Return T_r(K), the distinct conclusion triples; with `new`, T_r(K) ∖ K."""
        ...

    def conclusions_in_parts(self, rule: Rule, *, new: bool = False) -> Iterator[Triples]:
        """Yield T_r(K) or T_r(K) ∖ K in disjoint parts, in no particular order.

        An engine that can do so has a part in memory at a time, so that there may be any number of
        conclusions.
        """
        ...

    def sample_conclusions(self, rule: Rule, salt: int, count: int) -> tuple[int, Ints]:
        """Return |T_r(K) ∖ K|, and the keys of up to `count` of these triples in a random order.

        The order is that of `randomness.hash_order` of their keys (see `TripleKeys`) with this salt, the first
        ones are returned.
        """
        ...

    def projection(self, rule: Rule) -> Projection:
        """Return the distinct subjects and objects of a rule's conclusions.

        Unlike `conclusions` this is never large for a body that falls apart between the head's variables,
        such as (x,S,z), (y,T,w) -> (x,P,y): that is a product of two sets. The arrays may be kept for the
        next call: do not write to them.

        Raises
        ------
        LimitError
            When too many pairs that are no product would have to be listed.
        """
        ...

    def witnesses(self, rule: Rule, *, limit: int | None = None, conclusion: Sequence[int] | None = None) -> Witnesses:
        """Return the first `limit` witnesses, all of them or those of one conclusion triple."""
        ...

    def first_witnesses(self, rule: Rule, triples: Triples) -> Ids:
        """Return the first witness of each triple, int32[n, v]; -1s where the rule does not derive it.

        A row is what `witnesses(rule, limit=1, conclusion=triple)` finds, one column per variable of
        `rule.variables`; but all triples are looked at together.
        """
        ...

    def derives(self, rules: Sequence[Rule], triples: Triples) -> Mask:
        """Return bool[n]: which of these triples are in T_R(K)."""
        ...

    def derived(self, rules: Sequence[Rule], graph: KnowledgeGraph) -> KnowledgeGraph:
        """Return the triples of another graph, over the same vocabularies, that are in T_R(K)."""
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
        InputError
            When the rules are not stratified.
        """
        ...
