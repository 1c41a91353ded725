"""Scorers that learn nothing: simple ones, which know no rule, and the oracle, which knows them all.

A simple one looks at P_train (or at K, where that is known) and gives every triple a score. The score says nothing
about truth by itself: a cut says which side of which threshold is called positive. The oracle predicts what the rules
derive from P_train. How far one gets on a benchmark without any rule is measured in `learned_shortcut`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.program import everything_entailed
from loginfer.engine import Engine
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Keys, Mask, distinct_keys, member, places_of, ranges
from loginfer.logic.rule import Rule

Scores = npt.NDArray[np.float64]

# The columns of a triple by what candidates are asked for.
_COLUMNS = {"subject": 0, "relation": 1, "object": 2}


class ShortcutScorer(Protocol):
    """Whatever gives triples scores."""

    def score(self, triples: Triples) -> Scores:
        """Return float64[n], one score a triple."""
        ...


class Popularity:
    """The number of triples of P_train that mention a constant, in either position.

    Parameters
    ----------
    train
        P_train.
    column
        Whose popularity counts: 0 for that of the subject, 2 for that of the object.
    """

    def __init__(self, train: KnowledgeGraph, column: int) -> None:
        ends = train.triples[:, ::2]
        once = np.concatenate([ends[:, 0], ends[ends[:, 0] != ends[:, 1], 1]])
        self._degree = np.bincount(once, minlength=len(train.entities)).astype(np.float64)
        self._column = column

    def score(self, triples: Triples) -> Scores:
        """Return the degree of each triple's constant."""
        return np.asarray(self._degree[triples[:, self._column]])


class Adjacent:
    """1 if K has a triple between x and y, in either direction.

    Parameters
    ----------
    kg
        K; P_train where K is not known.
    """

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._size = len(kg.entities)
        self._pairs = distinct_keys(_pairs(kg.triples, 0, 2, self._size))

    def connects(self, triples: Triples, first: int, second: int) -> Mask:
        """Return bool[n]: whether K has a triple from one column's constant to another's."""
        return member(self._pairs, _pairs(triples, first, second, self._size))

    def score(self, triples: Triples) -> Scores:
        """Return 1 for triples between adjacent constants, 0 for others."""
        return (self.connects(triples, 0, 2) | self.connects(triples, 2, 0)).astype(np.float64)


class OtherRelation:
    """1 if K has a triple from x to y with another relation than the one in question.

    Parameters
    ----------
    kg
        K; P_train where K is not known.
    """

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg = kg
        self._pairs, self._relations = np.unique(_pairs(kg.triples, 0, 2, len(kg.entities)), return_counts=True)

    def score(self, triples: Triples) -> Scores:
        """Return 1 where another relation holds, 0 elsewhere."""
        if not len(self._pairs):
            return np.zeros(len(triples))
        connected, indices = places_of(self._pairs, _pairs(triples, 0, 2, len(self._kg.entities)))
        relations = np.where(connected, self._relations[indices], 0)
        return (relations > self._kg.contains(triples)).astype(np.float64)


def connected_otherwise(graph: KnowledgeGraph, triples: Triples, rule: Rule) -> Mask:
    """Return bool[n]: whether K connects the ends of conclusions by another relation, as the body does.

    Parameters
    ----------
    graph
        The graph K.
    triples
        Conclusions of the rule.
    rule
        A rule whose one atom says in which direction its conclusions are connected.
    """
    head = rule.head
    columns = [2 * head.terms.index(term) if term in head.terms else 0 for term in rule.atoms[0].terms]
    return OtherRelation(graph).score(triples[:, [columns[0], 1, columns[1]]]) > 0


class SimpBLScorer:
    """The paper's SimpBL: 1 for (a, b, c) iff there are a triple involving a and b and one involving b and c.

    A constant is involved as subject or as object.

    Parameters
    ----------
    triples
        Triples to look into: P_train; the authors' script looked into P_valid as well.
    relations
        How many relations there are.
    """

    def __init__(self, triples: Triples, relations: int) -> None:
        self._size = relations
        involved = [_pairs(triples, column, 1, relations) for column in (0, 2)]
        self._involved = distinct_keys(np.concatenate(involved))

    def score(self, triples: Triples) -> Scores:
        """Return 1 for triples that SimpBL predicts, 0 for others."""
        subject = self.involves(triples[:, 0], triples[:, 1])
        return (subject & self.involves(triples[:, 2], triples[:, 1])).astype(np.float64)

    def score_candidates(self, triples: Triples, position: str, candidates: Ids) -> Scores:
        """Return float64[n, c]; whom a relation involves is looked up once for each relation."""
        if position == "relation":
            relations = np.tile(candidates, len(triples))
            ends = [self.involves(np.repeat(triples[:, column], len(candidates)), relations) for column in (0, 2)]
            return (ends[0] & ends[1]).reshape(len(triples), -1).astype(np.float64)
        is_involved = self.involves(triples[:, 2 - _COLUMNS[position]], triples[:, 1])
        scores = np.zeros((len(triples), len(candidates)))
        for relation in np.unique(triples[is_involved, 1]):
            rows = is_involved & (triples[:, 1] == relation)
            scores[rows] = self.involves(candidates, np.full(len(candidates), relation, dtype=np.int32))
        return scores

    def involves(self, constants: Ids, relations: Ids) -> Mask:
        """Return for each constant and relation whether a known triple involves both."""
        return member(self._involved, constants.astype(np.int64) * self._size + relations)


def _pairs(triples: Triples, first: int, second: int, size: int) -> Keys:
    return np.asarray(triples[:, first].astype(np.int64) * size + triples[:, second])


def visible_graph(benchmark: Benchmark) -> KnowledgeGraph:
    """Return the graph that shortcuts look into: K, or P_train where K is not known."""
    return benchmark.graph if benchmark.kg is None else benchmark.kg


# -- from scores to decisions ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cut:
    """When a score counts as the prediction "true".

    Parameters
    ----------
    threshold
        Scores from here on do.
    reversed
        Scores below the threshold do instead.
    """

    threshold: float
    reversed: bool = False

    def predict(self, scores: Scores) -> Mask:
        """Return bool[n]: which scores count as true."""
        return np.asarray((scores >= self.threshold) != self.reversed)


def counts_from(positive: Scores, negative: Scores) -> tuple[Scores, Keys, Keys]:
    """Return the distinct scores, ascending, and how many positives and negatives lie from each of them on.

    Returns
    -------
    tuple
        float64[k], int64[k + 1], int64[k + 1]; the last counts are those above all scores: 0.
    """
    values, index = np.unique(np.concatenate([positive, negative]), return_inverse=True)
    at = [np.bincount(part, minlength=len(values)) for part in np.split(index.ravel(), [len(positive)])]
    true, false = (np.append(np.cumsum(counts[::-1])[::-1], 0).astype(np.int64) for counts in at)
    return values, true, false


def fit_cut(positive: Scores, negative: Scores) -> Cut:
    """Return the cut with the best balanced accuracy on labelled scores.

    A threshold lies halfway between two neighbouring scores. Of equally good cuts those that are not reversed
    come first, then the lowest.
    """
    values, true, false = counts_from(positive, negative)
    if not len(values):
        raise ValueError("no scores to fit a threshold on")
    # The share of positives and that of negatives, both times the number of pairs of one and the other.
    of_positives, of_negatives = max(len(negative), 1), max(len(positive), 1)
    right = true * of_positives + (len(negative) - false) * of_negatives
    wrong = len(positive) * of_positives + len(negative) * of_negatives - right
    turned = bool(wrong.max() > right.max())
    best = int(np.argmax(wrong if turned else right))
    edges = np.concatenate([[-np.inf], values, [np.inf]])
    low, high = float(edges[best]), float(edges[best + 1])
    if np.isinf(low) or np.isinf(high):
        return Cut(low if np.isinf(low) else high, turned)
    return Cut((low + high) / 2, turned)


# -- the oracle ------------------------------------------------------------------------------------


class OracleScorer:
    """Scores 1 for triples of T_R(P_train), 0 for others; with several steps, for triples of M_R(P_train).

    Parameters
    ----------
    engine
        An engine over P_train, whose vocabularies hold every name of the rules' heads.
    rules
        R.
    max_triples
        Take as many steps as there are, and give up when more triples follow. None: take one step.
    """

    def __init__(self, engine: Engine, rules: Sequence[Rule], max_triples: int | None = None) -> None:
        graph = engine.graph
        self._engine = engine
        self._rules = tuple(rules)
        self._sizes = (len(graph.entities), len(graph.relations), len(graph.entities))
        self._true: KnowledgeGraph | None = None
        self._sorted: dict[str, Keys] = {}
        if max_triples is not None:
            closure = everything_entailed(engine, rules, max_triples)
            self._true = graph.with_triples(np.vstack([graph.triples, closure.triples]))

    def score(self, triples: Triples) -> Scores:
        """Return 1 for triples that the rules derive, 0 for others."""
        if self._true is not None:
            return self._true.contains(triples).astype(np.float64)
        return self._engine.derives(self._rules, triples).astype(np.float64)

    def score_candidates(self, triples: Triples, position: str, candidates: Ids) -> Scores:
        """Return float64[n, c]: 1 where the triple with that candidate is derived."""
        column, keys = _COLUMNS[position], self._keys(position)
        first = triples.copy()
        first[:, column] = 0
        start = self._pack(first, position)
        # The derived values of a query stand together, from its smallest possible key on.
        low, high = np.searchsorted(keys, start), np.searchsorted(keys, start + self._sizes[column])
        rows, positions = ranges(low, high - low)
        derived = keys[positions] - start[rows]
        order = np.argsort(candidates, kind="stable")
        is_candidate, indices = places_of(candidates[order].astype(np.int64), derived)
        scores = np.zeros((len(triples), len(candidates)))
        scores[rows[is_candidate], order[indices[is_candidate]]] = 1
        return scores

    def _keys(self, position: str) -> Keys:
        """Return all conclusions as sorted keys that count fastest in one position."""
        if position not in self._sorted:
            if self._true is None:
                conclusions = [self._engine.conclusions(rule) for rule in self._rules]
                derived = np.vstack([np.empty((0, 3), dtype=np.int32), *conclusions])
            else:
                derived = self._true.triples
            self._sorted[position] = distinct_keys(self._pack(derived, position))
        return self._sorted[position]

    def _pack(self, triples: Triples, position: str) -> Keys:
        last = _COLUMNS[position]
        keys = np.zeros(len(triples), dtype=np.int64)
        for column in [c for c in range(3) if c != last] + [last]:
            keys = keys * self._sizes[column] + triples[:, column]
        return keys


def oracle_of(benchmark: Benchmark, engine: Engine, rules: Sequence[Rule]) -> OracleScorer:
    """Return the oracle of a benchmark: where conclusions follow in several steps, it takes them all.

    Parameters
    ----------
    benchmark
        The benchmark.
    engine, rules
        As for `OracleScorer`.
    """
    recipe = benchmark.recipe
    return OracleScorer(engine, rules, None if recipe is None or benchmark.depth == 1 else recipe.max_triples)


def oracle_accuracy(oracle: OracleScorer, benchmark: Benchmark, method: str) -> dict[str, Any]:
    """Return how well the oracle does on test with one method's negatives.

    Returns
    -------
    dict
        `accuracy`, `recall` and `false_positive_rate`; None for a figure that has no triples.
    """
    true, false = (oracle.score(s.test) for s in (benchmark.positives, benchmark.negatives[method].splits))
    size = len(true) + len(false)
    return {
        "accuracy": (int(true.sum()) + len(false) - int(false.sum())) / size if size else None,
        "recall": float(true.mean()) if len(true) else None,
        "false_positive_rate": float(false.mean()) if len(false) else None,
    }
