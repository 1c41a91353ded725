"""A fitted rule system: it scores triples, and all candidates of a query, by the rules that predict them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from loginfer.engine import Engine, Projection, open_engine
from loginfer.engine.binding import ABSENT, relation_of
from loginfer.errors import InputError, LimitError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import equal_pairs
from loginfer.kg.vocabulary import offsets_of
from loginfer.logic.rule import Constant, Rule
from loginfer.systems.interface import POSITIONS, Arrays, FiringRule, Position
from loginfer.systems.rules.application import (
    ConfidenceLevels,
    CyclicBodies,
    EnginePredictions,
    answer_ends,
    answer_relations,
    cyclic_bodies,
    rule_lists,
    running_scores,
    score_triples,
)
from loginfer.systems.rules.mined import NONE, MinedRules, RuleTable, to_arrays
from loginfer.systems.rules.paths import Ids, Longs, edges_of, new_scratch
from loginfer.systems.rules.texts import path_rule

Values = npt.NDArray[np.float64]

# Triples that are scored at a time, where they are made for it.
_BLOCK = 2**18


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
        `maximum`, `noisy-or` or `sum` (see `loginfer.systems.rules.application`).

    Raises
    ------
    InputError
        If the rules have ids that the graph does not have.
    """

    never = 0.0

    def __init__(self, graph: KnowledgeGraph, rules: MinedRules, aggregation: str = "maximum") -> None:
        _check_ids(rules.paths, graph)
        self.graph = graph
        self.rules = rules
        self._levels, ranks = ConfidenceLevels.of(rules.confidence, aggregation)
        orders = np.empty(len(rules), dtype=np.int64)
        orders[rules.best_first] = np.arange(len(rules))
        paths = rules.paths
        self._edges = edges_of(graph)
        self._lists = rule_lists(
            paths, orders[: len(paths)], ranks[: len(paths)], len(graph.relations), len(graph.entities)
        )
        self._others = OtherRules(
            graph, [rule.rule for rule in rules.others], orders[len(paths) :], ranks[len(paths) :]
        )

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
        distinct, column = np.unique(np.asarray(candidates, dtype=np.int32), return_inverse=True)
        given_ends = np.delete(rows, POSITIONS.index(position), axis=1)
        queries, query = np.unique(given_ends, axis=0, return_inverse=True)
        if position == "relation":
            scores = self._relations(queries, distinct)
        else:
            # The relation first.
            queries = np.ascontiguousarray(queries if position == "subject" else queries[:, ::-1])
            scores = self._ends(queries, position == "subject", distinct)
        if not np.array_equal(query.ravel(), np.arange(len(queries))):
            scores = scores[query.ravel()]
        if not np.array_equal(column.ravel(), np.arange(len(distinct))):
            scores = scores[:, column.ravel()]
        return scores

    def arrays(self) -> Arrays:
        """Return the rules as arrays."""
        return to_arrays(self.rules)

    def explain(self, triple: npt.ArrayLike) -> list[FiringRule]:
        """Return all rules that predict a triple, best first."""
        fired = np.empty(len(self.rules) + 1, dtype=np.int64)
        count = self._score(np.asarray(triple, dtype=np.int32).reshape(1, 3), np.zeros(1), fired)
        return [self._firing(index) for index in self.rules.best_first[fired[:count]].tolist()]

    def _firing(self, index: int) -> FiringRule:
        confidence, number = float(self.rules.confidence[index]), index - len(self.rules.paths)
        if number >= 0:
            return FiringRule(self.rules.others[number], confidence)
        return FiringRule(path_rule(self.rules.paths, index, self.graph), confidence, self.rules.distinct)

    def _score(self, triples: Triples, scores: Values, fired: Longs) -> int:
        others = self._others.of_triples(triples)
        scores_so_far = running_scores(self._levels, 1)
        distinct = self.rules.distinct
        scratch = np.empty(len(self.rules), dtype=np.int64)
        return int(
            score_triples(self._edges, self._lists, scores_so_far, triples, others, distinct, scores, scratch, fired)
        )

    def _ends(self, queries: Ids, subject_open: bool, candidates: Ids) -> Values:
        """Score all candidates for one end, given relations and the other ends."""
        column = _columns_of(candidates, len(self.graph.entities))
        scores, running = np.zeros((len(queries), len(candidates))), running_scores(self._levels, len(candidates))
        others, distinct = self._others.of_queries(queries, subject_open, column), self.rules.distinct
        scratch, chosen = new_scratch(len(self.graph.entities)), np.empty(len(self.rules), dtype=np.int64)
        answer_ends(
            self._edges, self._lists, running, queries, subject_open, column, others, distinct, scores, scratch, chosen
        )
        return scores

    def _relations(self, pairs: Ids, candidates: Ids) -> Values:
        """Score all candidates for the relation between two entities."""
        column = _columns_of(candidates, len(self.graph.relations))
        scores, running = np.zeros((len(pairs), len(candidates))), running_scores(self._levels, len(candidates))
        others, distinct = self._others.of_pairs(pairs, column), self.rules.distinct
        chosen = np.empty(len(self.rules), dtype=np.int64)
        answer_relations(
            self._edges, self._lists, self._bodies, running, pairs, column, others, distinct, scores, chosen
        )
        return scores

    @cached_property
    def _bodies(self) -> CyclicBodies:
        return cyclic_bodies(self._lists, len(self.graph.relations))


def _columns_of(candidates: Ids, size: int) -> Ids:
    """Return int32[size]: the index of each id among the candidates, NONE for the rest."""
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
            hint = "mine the rules of this benchmark"
            raise InputError("the rules are over another graph: they have names that this one does not have", hint=hint)


# -- rules of other shapes than paths, applied by the engine -----------------------------------------

# Conclusions that are kept for the next block of queries, pairs of all rules together.
KEPT = 2**25


class OtherRules:
    """Rules of any shape over a graph.

    Parameters
    ----------
    graph
        The graph.
    rules
        The rules.
    orders, ranks
        For each its rank among all rules, best first, and the rank of its confidence; -1 for rules to leave out.
    """

    def __init__(self, graph: KnowledgeGraph, rules: Sequence[Rule], orders: Longs, ranks: Ids) -> None:
        # A head with a name that has no id predicts nothing anybody could ask about.
        heads = np.array([_head_relation(rule, graph) for rule in rules], dtype=np.int32)
        used = np.flatnonzero((heads != ABSENT) & (ranks >= 0))
        used = used[np.argsort(orders[used])]
        self._graph = graph
        self._rules = [rules[index] for index in used.tolist()]
        self._heads, self._orders, self._ranks = heads[used], orders[used], ranks[used].astype(np.int64)
        self._conclusions: dict[tuple[int, bool], tuple[Ids, Ids]] = {}
        self._kept = 0

    @cached_property
    def _engine(self) -> Engine:
        return open_engine(self._graph)

    def of_triples(self, triples: Triples) -> EnginePredictions:
        """Return which rules predict which triples."""
        if not self._rules:
            return _nothing(len(triples))
        derivations = self._engine.derivations(self._rules, triples)
        columns = np.zeros(len(derivations.rule), dtype=np.int32)
        return self._predicted(len(triples), derivations.triple, derivations.rule, columns)

    def of_queries(self, queries: Ids, subject_open: bool, column: Ids) -> EnginePredictions:
        """Return which rules predict which candidates.

        Parameters
        ----------
        queries
            int32[n, 2], relations and known ends.
        subject_open
            Whether the subjects are asked for.
        column
            int32[entities], the index of each entity among the candidates, -1 for the rest.
        """
        rows: list[Longs] = []
        rules: list[Longs] = []
        columns: list[Ids] = []
        rows_of_head = {r: np.flatnonzero(queries[:, 0] == r) for r in np.unique(queries[:, 0]).tolist()}
        for number, head in enumerate(self._heads.tolist()):
            head_rows = rows_of_head.get(head)
            if head_rows is None:
                continue
            query, entity = self._ends(number, queries[head_rows, 1], subject_open, column)
            is_candidate = column[entity] >= 0
            rows.append(head_rows[query[is_candidate]])
            columns.append(column[entity[is_candidate]])
            rules.append(np.full(len(rows[-1]), number, dtype=np.int64))
        if not rows:
            return _nothing(len(queries))
        row, rule = np.concatenate(rows), np.concatenate(rules)
        order = np.lexsort((rule, row))
        return self._predicted(len(queries), row[order], rule[order], np.concatenate(columns)[order])

    def of_pairs(self, pairs: Ids, column: Ids) -> EnginePredictions:
        """Return which rules predict which relations between two entities.

        Parameters
        ----------
        pairs
            int32[n, 2], subjects and objects.
        column
            int32[relations], the index of each among the candidates, -1 for the rest.
        """
        heads = np.unique(self._heads[column[self._heads] >= 0])
        if not len(heads):
            return _nothing(len(pairs))
        triples = np.empty((len(pairs), len(heads), 3), dtype=np.int32)
        triples[:, :, 0], triples[:, :, 1], triples[:, :, 2] = pairs[:, :1], heads, pairs[:, 1:]
        derivations = self._engine.derivations(self._rules, triples.reshape(-1, 3))
        pair, head = np.divmod(derivations.triple, len(heads))
        order = np.lexsort((derivations.rule, pair))
        return self._predicted(len(pairs), pair[order], derivations.rule[order], column[heads[head[order]]])

    def _predicted(self, size: int, row: Longs, rule: Longs, columns: Ids) -> EnginePredictions:
        starts = offsets_of(np.bincount(row, minlength=size))
        return EnginePredictions(starts, np.column_stack([self._orders[rule], self._ranks[rule], columns]))

    def _ends(self, number: int, known_ends: Ids, subject_open: bool, column: Ids) -> tuple[Longs, Ids]:
        """Return the open ends that a rule predicts for known ends: indices in `known_ends`, entities."""
        try:
            projection = self._engine.projection(self._rules[number])
        except LimitError:
            return self._one_by_one(number, known_ends, subject_open, column)
        near, far = (projection.right, projection.left) if subject_open else (projection.left, projection.right)
        if projection.product:
            index = np.flatnonzero(np.isin(known_ends, near))
            pairs = np.repeat(index, len(far)), np.tile(far, len(index))
            differ = pairs[1] != known_ends[pairs[0]] if projection.unequal else slice(None)
            return pairs[0][differ], pairs[1][differ]
        near, far = self._sorted(number, subject_open, projection)
        index, positions = equal_pairs(known_ends, near)
        return index, far[positions]

    def _sorted(self, number: int, subject_open: bool, projection: Projection) -> tuple[Ids, Ids]:
        """Return a rule's conclusions sorted by the known end, and keep them if they are not too many."""
        if not subject_open:
            return projection.left, projection.right
        kept = self._conclusions.get((number, subject_open))
        if kept is None:
            order = np.argsort(projection.right, kind="stable")
            kept = projection.right[order], projection.left[order]
            if self._kept + len(order) <= KEPT:
                self._kept += len(order)
                self._conclusions[number, subject_open] = kept
        return kept

    def _one_by_one(self, number: int, known_ends: Ids, subject_open: bool, column: Ids) -> tuple[Longs, Ids]:
        """Ask about each candidate, where a rule has more conclusions than can be listed."""
        entities = np.flatnonzero(column >= 0).astype(np.int32)
        indices: list[Longs] = [np.empty(0, dtype=np.int64)]
        open_ends: list[Ids] = [np.empty(0, dtype=np.int32)]
        for index, end in enumerate(known_ends.tolist()):
            triples = np.full((len(entities), 3), self._heads[number], dtype=np.int32)
            triples[:, 0], triples[:, 2] = (entities, end) if subject_open else (end, entities)
            derived = self._engine.derives([self._rules[number]], triples)
            open_ends.append(entities[derived])
            indices.append(np.full(len(open_ends[-1]), index, dtype=np.int64))
        return np.concatenate(indices), np.concatenate(open_ends)


def _nothing(size: int) -> EnginePredictions:
    return EnginePredictions(np.zeros(size + 1, dtype=np.int64), np.empty((0, 3), dtype=np.int64))


def _head_relation(rule: Rule, graph: KnowledgeGraph) -> int:
    constants = [term.name for term in rule.head.terms if isinstance(term, Constant)]
    if any(graph.entities.get(name) is None for name in constants):
        return ABSENT
    return relation_of(rule.head, graph)
