"""Rules as a scorer.

A fitted rule system: it scores triples by the rules that predict them.

Whether a rule is a path rule: the shape of its atoms, without any names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.systems.interface import POSITIONS, Arrays, Position
from loginfer.systems.rules.application import (
    OtherRules,
    answer_ends,
    answer_relations,
    confidences,
    new_board,
    score_triples,
)
from loginfer.systems.rules.mined import BOTH, LONGEST, NONE, OBJECT, SUBJECT, MinedRules, RuleTable, Worth, to_arrays
from loginfer.systems.rules.paths import Bodies, bodies_of, edges_of, new_scratch, rule_lists

Ids = npt.NDArray[np.int32]
Values = npt.NDArray[np.float64]

# Triples that are scored at a time, where they are made for it.
_BLOCK = 2**18


class Reason(NamedTuple):
    """A rule that predicts a triple.

    Parameters
    ----------
    place
        Where it stands in `MinedRules.paths`, or in `MinedRules.others`.
    other
        Whether it stands among the others.
    confidence
        Its confidence.
    """

    place: int
    other: bool
    confidence: float


class RuleScorer:
    """Scores triples by rules over a graph; one that no rule predicts scores 0.

    Rules are applied to the graph as it is, once, whether the triple in question is part of it or not.

    Parameters
    ----------
    graph
        P_train.
    rules
        The rules, over its ids. One with a confidence of 0 predicts nothing.
    aggregation
        `maximum`, `noisy-or` or `sum` (see `loginfer.systems.rules.mined`).

    Raises
    ------
    InputError
        If the rules have ids that the graph does not have.
    """

    def __init__(self, graph: KnowledgeGraph, rules: MinedRules, aggregation: str = "maximum") -> None:
        _check_ids(rules.paths, graph)
        self.graph = graph
        self.rules = rules
        paths = rules.paths
        given = np.concatenate([paths.confidence, confidences(rules.others)])
        self._worth, ranks = Worth.of(given, aggregation)
        # Best first; of equal ones path rules before others, each in the order they have among themselves.
        places = np.concatenate([paths.best_first, np.arange(len(paths), len(given))])
        self._order = places[np.argsort(-given[places], kind="stable")]
        turns = np.empty(len(given), dtype=np.int64)
        turns[self._order] = np.arange(len(given))
        self._confidence = given
        self._edges = edges_of(graph)
        self._lists = rule_lists(
            paths, turns[: len(paths)], ranks[: len(paths)], len(graph.relations), len(graph.entities)
        )
        self._others = OtherRules(graph, [rule.rule for rule in rules.others], turns[len(paths) :], ranks[len(paths) :])

    def score(self, triples: Triples) -> Values:
        """Return float64[n], one score a triple of int32[n, 3]."""
        rows = np.ascontiguousarray(triples, dtype=np.int32).reshape(-1, 3)
        scores = np.zeros(len(rows))
        for start in range(0, len(rows), _BLOCK):
            part = slice(start, start + _BLOCK)
            self._score(rows[part], scores[part], np.empty(0, dtype=np.int64))
        return scores

    def score_candidates(self, triples: Triples, position: Position, candidates: Ids) -> Values:
        """Return float64[n, c]: the scores of each triple with each candidate in that position."""
        rows = np.ascontiguousarray(triples, dtype=np.int32).reshape(-1, 3)
        wanted, column = np.unique(np.asarray(candidates, dtype=np.int32), return_inverse=True)
        known = np.delete(rows, POSITIONS.index(position), axis=1)
        queries, query = np.unique(known, axis=0, return_inverse=True)
        if position == "relation":
            scores = self._relations(queries, wanted)
        else:
            # The relation first.
            queries = np.ascontiguousarray(queries if position == "subject" else queries[:, ::-1])
            scores = self._ends(queries, position == "subject", wanted)
        if not np.array_equal(query.ravel(), np.arange(len(queries))):
            scores = scores[query.ravel()]
        if not np.array_equal(column.ravel(), np.arange(len(wanted))):
            scores = scores[:, column.ravel()]
        return scores

    def arrays(self) -> Arrays:
        """Return the rules as arrays."""
        return to_arrays(self.rules)

    def explain(self, triple: npt.ArrayLike) -> list[Reason]:
        """Return all rules that predict a triple, best first."""
        fired = np.empty(len(self._order) + 1, dtype=np.int64)
        count = self._score(np.asarray(triple, dtype=np.int32).reshape(1, 3), np.zeros(1), fired)
        return list(self._reasons(fired[:count]))

    def _reasons(self, turns: npt.NDArray[np.int64]) -> Iterator[Reason]:
        paths = len(self.rules.paths)
        for place in self._order[turns].tolist():
            other = place >= paths
            yield Reason(place - paths if other else place, other, float(self._confidence[place]))

    def _score(self, triples: Triples, scores: Values, fired: npt.NDArray[np.int64]) -> int:
        others = self._others.of_triples(triples)
        board = new_board(self._worth, 1)
        distinct = self.rules.distinct
        chosen = np.empty(len(self._order), dtype=np.int64)
        return int(score_triples(self._edges, self._lists, board, triples, others, distinct, scores, chosen, fired))

    def _ends(self, queries: Ids, subject_open: bool, candidates: Ids) -> Values:
        """Score all candidates for one end, given relations and the other ends."""
        column = _places(candidates, len(self.graph.entities))
        scores = np.zeros((len(queries), len(candidates)))
        answer_ends(
            self._edges,
            self._lists,
            new_board(self._worth, len(candidates)),
            queries,
            subject_open,
            column,
            self._others.of_queries(queries, subject_open, column),
            self.rules.distinct,
            scores,
            new_scratch(len(self.graph.entities)),
            np.empty(len(self._order), dtype=np.int64),
        )
        return scores

    def _relations(self, pairs: Ids, candidates: Ids) -> Values:
        """Score all candidates for the relation between two entities."""
        column = _places(candidates, len(self.graph.relations))
        scores = np.zeros((len(pairs), len(candidates)))
        answer_relations(
            self._edges,
            self._lists,
            self._bodies,
            new_board(self._worth, len(candidates)),
            pairs,
            column,
            self._others.of_pairs(pairs, column),
            self.rules.distinct,
            scores,
            np.empty(len(self._order), dtype=np.int64),
        )
        return scores

    @cached_property
    def _bodies(self) -> Bodies:
        return bodies_of(self._lists, len(self.graph.relations))


def _places(candidates: Ids, size: int) -> Ids:
    """Return int32[size]: the place of each id among the candidates, NONE for the rest."""
    column = np.full(size, NONE, dtype=np.int32)
    column[candidates] = np.arange(len(candidates), dtype=np.int32)
    return column


def _check_ids(paths: RuleTable, graph: KnowledgeGraph) -> None:
    """Raise an error for rules that are not over the ids of a graph."""
    for ids, size in (
        (paths.head, len(graph.relations)),
        (paths.body // 2, len(graph.relations)),
        (paths.head_constant, len(graph.entities)),
        (paths.end_constant, len(graph.entities)),
    ):
        if ids.size and int(ids.max()) >= size:
            raise InputError(
                "the rules are over another graph: they have names that this one does not have",
                hint="mine the rules of this benchmark",
            )


# The places of an atom: the name of a variable each, or None for a constant.
CONSTANT = None
Places: TypeAlias = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class PathShape:
    """How the atoms of a rule make a path.

    Parameters
    ----------
    variables
        Which places of the head are variables: BOTH, SUBJECT or OBJECT.
    steps
        The atoms of the body in the order of the path: place in the body, and the direction of the step.
    end
        Whether the path ends in a constant.
    """

    variables: int
    steps: tuple[tuple[int, int], ...]
    end: bool


def path_shape(head: Places, body: Sequence[Places]) -> PathShape | None:
    """Return how a rule's atoms make a path, or None if they do not.

    Variables may have any names, atoms any order and direction.
    """
    subject, object_ = head
    if len(body) > LONGEST or subject == object_:
        return None
    if subject is None:
        return _path(OBJECT, object_, None, body)
    if object_ is None:
        return _path(SUBJECT, subject, None, body)
    return _path(BOTH, subject, object_, body) if body else None


def _path(variables: int, start: str | None, goal: str | None, body: Sequence[Places]) -> PathShape | None:
    for order in permutations(range(len(body))):
        steps = _walk(start, goal, body, order)
        if steps is not None:
            end = bool(body) and CONSTANT in body[order[-1]]
            return PathShape(variables, steps, end)
    return None


def _walk(
    start: str | None, goal: str | None, body: Sequence[Places], order: tuple[int, ...]
) -> tuple[tuple[int, int], ...] | None:
    """Go along the atoms in one order; None where they do not hang together, or meet a variable twice."""
    here, met, steps = start, {start}, []
    for number, place in enumerate(order):
        direction = 0 if body[place][0] == here else 1
        if body[place][direction] != here:
            return None
        here = body[place][1 - direction]
        last = number == len(order) - 1
        if here in met or (here is CONSTANT and not (last and goal is None)):
            return None
        if goal is not None and (here == goal) != last:
            return None
        met.add(here)
        steps.append((place, direction))
    return tuple(steps)
