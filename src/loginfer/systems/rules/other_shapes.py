"""Rules of other shapes than paths, applied by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from loginfer.engine import Engine, Projection, open_engine
from loginfer.engine.binding import ABSENT, relation_of
from loginfer.errors import LimitError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Rule
from loginfer.logic.scored import ScoredRule
from loginfer.logic.terms import Constant

__all__ = ["OtherRules", "Predicted", "confidences"]

Ids = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

# Conclusions that are kept for the next block of queries, pairs of all rules together.
KEPT = 2**25


class Predicted(NamedTuple):
    """What rules predict, sorted by triple or query, and best rule first.

    Parameters
    ----------
    starts
        int64[n + 1], where the predictions of each triple or query begin.
    found
        int64[m, 3], the turn of a rule, the rank of its confidence and, for queries, which candidate.
    """

    starts: Longs
    found: Longs


def confidences(others: Sequence[ScoredRule]) -> npt.NDArray[np.float64]:
    """Return float64[m]: a rule of which nobody says how sure it is counts as certain."""
    return np.array(
        [1.0 if rule.confidence is None else rule.confidence for rule in others], dtype=np.float64
    )


class OtherRules:
    """Rules of any shape over a graph.

    Parameters
    ----------
    graph
        The graph.
    rules
        The rules.
    turns, ranks
        For each its turn among all rules, and the rank of its confidence; -1 for rules to leave out.
    """

    def __init__(self, graph: KnowledgeGraph, rules: Sequence[Rule], turns: Longs, ranks: Ids) -> None:
        # A head with a name that has no id predicts nothing anybody could ask about.
        heads = np.array([_head_relation(rule, graph) for rule in rules], dtype=np.int32)
        used = np.flatnonzero((heads != ABSENT) & (ranks >= 0))
        used = used[np.argsort(turns[used])]
        self._graph = graph
        self._rules = [rules[place] for place in used.tolist()]
        self._heads, self._turns, self._ranks = heads[used], turns[used], ranks[used].astype(np.int64)
        self._conclusions: dict[tuple[int, bool], tuple[Ids, Ids]] = {}
        self._kept = 0

    @cached_property
    def _engine(self) -> Engine:
        return open_engine(self._graph)

    def of_triples(self, triples: Triples) -> Predicted:
        """Return which rules predict which triples."""
        if not self._rules:
            return _nothing(len(triples))
        found = self._engine.derivations(self._rules, triples)
        columns = np.zeros(len(found.rule), dtype=np.int32)
        return self._predicted(len(triples), found.triple, found.rule, columns)

    def of_queries(self, queries: Ids, subject_open: bool, column: Ids) -> Predicted:
        """Return which rules predict which candidates.

        Parameters
        ----------
        queries
            int32[n, 2], relations and known ends.
        subject_open
            Whether the subjects are asked for.
        column
            int32[entities], the place of each entity among the candidates, -1 for the rest.
        """
        places: list[Longs] = []
        rules: list[Longs] = []
        columns: list[Ids] = []
        asked = {r: np.flatnonzero(queries[:, 0] == r) for r in np.unique(queries[:, 0]).tolist()}
        for number, head in enumerate(self._heads.tolist()):
            mine = asked.get(head)
            if mine is None:
                continue
            query, entity = self._ends(number, queries[mine, 1], subject_open, column)
            wanted = column[entity] >= 0
            places.append(mine[query[wanted]])
            columns.append(column[entity[wanted]])
            rules.append(np.full(len(places[-1]), number, dtype=np.int64))
        if not places:
            return _nothing(len(queries))
        place, rule = np.concatenate(places), np.concatenate(rules)
        order = np.lexsort((rule, place))
        return self._predicted(len(queries), place[order], rule[order], np.concatenate(columns)[order])

    def of_pairs(self, pairs: Ids, column: Ids) -> Predicted:
        """Return which rules predict which relations between two entities.

        Parameters
        ----------
        pairs
            int32[n, 2], subjects and objects.
        column
            int32[relations], the place of each among the candidates, -1 for the rest.
        """
        heads = np.unique(self._heads[column[self._heads] >= 0])
        if not len(heads):
            return _nothing(len(pairs))
        triples = np.empty((len(pairs), len(heads), 3), dtype=np.int32)
        triples[:, :, 0], triples[:, :, 1], triples[:, :, 2] = pairs[:, :1], heads, pairs[:, 1:]
        found = self._engine.derivations(self._rules, triples.reshape(-1, 3))
        pair, head = np.divmod(found.triple, len(heads))
        order = np.lexsort((found.rule, pair))
        return self._predicted(len(pairs), pair[order], found.rule[order], column[heads[head[order]]])

    def _predicted(self, size: int, place: Longs, rule: Longs, columns: Ids) -> Predicted:
        starts = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(np.bincount(place, minlength=size), out=starts[1:])
        return Predicted(starts, np.column_stack([self._turns[rule], self._ranks[rule], columns]))

    def _ends(self, number: int, known: Ids, subject_open: bool, column: Ids) -> tuple[Longs, Ids]:
        """Return the open ends that a rule predicts for known ends: places in `known`, entities."""
        try:
            found = self._engine.projection(self._rules[number])
        except LimitError:
            return self._one_by_one(number, known, subject_open, column)
        near, far = (found.right, found.left) if subject_open else (found.left, found.right)
        if found.product:
            place = np.flatnonzero(np.isin(known, near))
            pairs = np.repeat(place, len(far)), np.tile(far, len(place))
            differ = pairs[1] != known[pairs[0]] if found.unequal else slice(None)
            return pairs[0][differ], pairs[1][differ]
        near, far = self._sorted(number, subject_open, found)
        low, high = np.searchsorted(near, known), np.searchsorted(near, known, side="right")
        sizes = high - low
        place = np.repeat(np.arange(len(known)), sizes)
        return place, far[np.arange(len(place)) + np.repeat(low - (np.cumsum(sizes) - sizes), sizes)]

    def _sorted(self, number: int, subject_open: bool, found: Projection) -> tuple[Ids, Ids]:
        """Return a rule's conclusions sorted by the known end, and keep them if they are not too many."""
        if not subject_open:
            return found.left, found.right
        kept = self._conclusions.get((number, subject_open))
        if kept is None:
            order = np.argsort(found.right, kind="stable")
            kept = found.right[order], found.left[order]
            if self._kept + len(order) <= KEPT:
                self._kept += len(order)
                self._conclusions[number, subject_open] = kept
        return kept

    def _one_by_one(self, number: int, known: Ids, subject_open: bool, column: Ids) -> tuple[Longs, Ids]:
        """Ask about each candidate, where a rule has more conclusions than can be listed."""
        entities = np.flatnonzero(column >= 0).astype(np.int32)
        places: list[Longs] = [np.empty(0, dtype=np.int64)]
        found: list[Ids] = [np.empty(0, dtype=np.int32)]
        for place, end in enumerate(known.tolist()):
            triples = np.full((len(entities), 3), self._heads[number], dtype=np.int32)
            triples[:, 0], triples[:, 2] = (entities, end) if subject_open else (end, entities)
            derived = self._engine.derives([self._rules[number]], triples)
            found.append(entities[derived])
            places.append(np.full(len(found[-1]), place, dtype=np.int64))
        return np.concatenate(places), np.concatenate(found)


def _nothing(size: int) -> Predicted:
    return Predicted(np.zeros(size + 1, dtype=np.int64), np.empty((0, 3), dtype=np.int64))


def _head_relation(rule: Rule, graph: KnowledgeGraph) -> int:
    constants = [term.name for term in rule.head.terms if isinstance(term, Constant)]
    if any(graph.entities.get(name) is None for name in constants):
        return ABSENT
    return relation_of(rule.head, graph)
