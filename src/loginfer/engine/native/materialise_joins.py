"""Conclusions of a rule with any body, with one atom read from its delta, by the generic join."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from loginfer.engine.binding import Bound
from loginfer.engine.native.join import Projection, exists, project
from loginfer.engine.native.materialise_relations import LOW, Ids, Keys, Members, Pairs, pack
from loginfer.engine.native.materialise_rules import Join
from loginfer.engine.native.store import PairStore
from loginfer.kg import KnowledgeGraph

__all__ = ["JoinRound"]

# No array of pairs is longer.
MOST = 2**31 - 1


class JoinRound:
    """The relations that some rules read in one round, laid out for the generic join.

    Each relation or set has an id of its own, and its delta the next one. So has each negated relation: what
    is negated was complete before the first round.

    Parameters
    ----------
    joins
        The rules.
    graph
        The graph before the first round.
    """

    def __init__(self, joins: Iterable[Join], graph: KnowledgeGraph) -> None:
        self._ids: dict[int, int] = {}
        self._negated: dict[int, int] = {}
        pairs: dict[int, tuple[Ids, Ids]] = {}
        for join in joins:
            for source, atom in zip(join.sources, join.rule.atoms, strict=True):
                if id(source) not in self._ids:
                    full = self._ids[id(source)] = len(pairs)
                    pairs[full] = _columns(_all_keys(source, ~atom.object))
                    if source.old:
                        pairs[full + 1] = _columns(_delta_keys(source, ~atom.object))
                    else:
                        pairs[full + 1] = pairs[full]
            for negation in join.rule.negations:
                if negation.relation not in self._negated:
                    self._negated[negation.relation] = len(pairs)
                    pairs[len(pairs)] = graph.index.pairs(negation.relation)
        self._store = PairStore(len(graph.entities), pairs)

    def _body(self, join: Join, part: int) -> Bound:
        atoms = tuple(
            replace(atom, relation=self._ids[id(source)] + (i == part))
            for i, (atom, source) in enumerate(zip(join.rule.atoms, join.sources, strict=True))
        )
        negations = tuple(replace(n, relation=self._negated[n.relation]) for n in join.rule.negations)
        return replace(join.rule, atoms=atoms, negations=negations)

    def exists(self, join: Join, part: int) -> bool:
        """Say whether the body has a witness with one atom in its delta."""
        return exists(self._store, self._body(join, part))

    def members(self, join: Join, part: int, variable: int) -> Ids:
        """Return the values of a variable in such witnesses."""
        return project(self._store, self._body(join, part), (variable,), MOST).left

    def pairs(self, join: Join, part: int, limit: int) -> Projection:
        """Return the values of the head's two variables in such witnesses.

        Raises
        ------
        LimitError
            When there are more than `limit` to list.
        """
        head = join.rule.head
        return project(self._store, self._body(join, part), (head.subject, head.object), limit)


def _all_keys(source: Pairs | Members, constant: int) -> Keys:
    return source.keys if isinstance(source, Pairs) else pack(source.members, constant)


def _delta_keys(source: Pairs | Members, constant: int) -> Keys:
    return source.delta if isinstance(source, Pairs) else pack(np.sort(source.delta), constant)


def _columns(keys: Keys) -> tuple[Ids, Ids]:
    return (keys >> 32).astype(np.int32), (keys & LOW).astype(np.int32)
