"""Shortcut scorers and the oracle, once, with score().

Shortcut baselines: classifiers that know no rule, to show what a benchmark gives away for free.

Each looks at P_train (or at K, where that is known) and gives every triple a score. The score says nothing
about truth by itself: which side of which threshold is called positive is fitted on P_valid and N_valid, and
the accuracy is counted on P_test and N_test. A benchmark on which one of them does well can be passed
without inference.

The oracle: it knows the rules, and predicts what they derive from P_train.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.program import everything_entailed
from loginfer.engine import Engine
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import distinct_keys, member, places_of
from loginfer.logic.rule import Rule

Scores = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]

# Where the scores are 0 and 1, a benchmark without valid can still be judged: 1 is the prediction "true".
BINARY = ("adjacent", "other-relation", "simpbl")


class Scorer(Protocol):
    """Whatever gives triples scores."""

    def scores(self, triples: Triples) -> Scores:
        """Return float64[n], one score a triple."""
        ...


class RelationName:
    """The share of positives among a relation's labelled triples; 0.5 for a relation without any.

    Parameters
    ----------
    positives, negatives
        Labelled triples, those of valid.
    relations
        How many relations there are.
    """

    def __init__(self, positives: Triples, negatives: Triples, relations: int) -> None:
        true = np.bincount(positives[:, 1], minlength=relations).astype(np.float64)
        all_ = true + np.bincount(negatives[:, 1], minlength=relations)
        self._share = np.divide(true, all_, out=np.full(relations, 0.5), where=all_ > 0)

    def scores(self, triples: Triples) -> Scores:
        """Return the share of positives of each triple's relation."""
        return np.asarray(self._share[triples[:, 1]])


class _Popularity:
    """The number of triples of P_train that mention a constant, in either position."""

    column: int

    def __init__(self, train: KnowledgeGraph) -> None:
        ends = train.triples[:, ::2]
        degree = np.bincount(ends.ravel(), minlength=len(train.entities))
        loops = train.triples[ends[:, 0] == ends[:, 1], 0]
        degree -= np.bincount(loops, minlength=len(train.entities))
        self._degree = degree.astype(np.float64)

    def scores(self, triples: Triples) -> Scores:
        """Return the degree of each triple's constant."""
        return np.asarray(self._degree[triples[:, self.column]])


class SubjectPopularity(_Popularity):
    """The number of triples of P_train that mention the subject."""

    column = 0


class ObjectPopularity(_Popularity):
    """The number of triples of P_train that mention the object."""

    column = 2


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

    def scores(self, triples: Triples) -> Scores:
        """Return 1 for triples between adjacent constants, 0 for others."""
        forward = member(self._pairs, _pairs(triples, 0, 2, self._size))
        return (forward | member(self._pairs, _pairs(triples, 2, 0, self._size))).astype(np.float64)


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

    def scores(self, triples: Triples) -> Scores:
        """Return 1 where another relation holds, 0 elsewhere."""
        if not len(self._pairs):
            return np.zeros(len(triples))
        wanted = _pairs(triples, 0, 2, len(self._kg.entities))
        found, places = places_of(self._pairs, wanted)
        relations = np.where(found, self._relations[places], 0)
        return (relations > self._kg.contains(triples)).astype(np.float64)


class SimpBL:
    """The paper's SimpBL: 1 for (a, b, c) iff there are a triple involving a and b and one involving b and c.

    A constant is involved as subject or as object.

    Parameters
    ----------
    known
        Triples to look into: P_train; the authors' script looked into P_valid as well.
    relations
        How many relations there are.
    """

    def __init__(self, known: Triples, relations: int) -> None:
        self._size = relations
        involved = [_pairs(known, column, 1, relations) for column in (0, 2)]
        self._involved = distinct_keys(np.concatenate(involved))

    def scores(self, triples: Triples) -> Scores:
        """Return 1 for triples that SimpBL predicts, 0 for others."""
        subject = self.involves(triples[:, 0], triples[:, 1])
        return (subject & self.involves(triples[:, 2], triples[:, 1])).astype(np.float64)

    def involves(self, constants: npt.NDArray[np.int32], relations: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Return for each constant and relation whether a known triple involves both."""
        return member(self._involved, constants.astype(np.int64) * self._size + relations)


def _pairs(triples: Triples, first: int, second: int, size: int) -> Keys:
    return np.asarray(triples[:, first].astype(np.int64) * size + triples[:, second])


# -- by name ---------------------------------------------------------------------------------------

Index = Literal["train", "train+valid"]


def _relation_name(benchmark: Benchmark, method: str, _: Index) -> Scorer:
    negatives = benchmark.negatives[method].splits.valid
    return RelationName(benchmark.positives.valid, negatives, len(benchmark.graph.relations))


def _simpbl(benchmark: Benchmark, _: str, index: Index) -> Scorer:
    known = benchmark.seen.triples
    if index == "train+valid":
        known = np.vstack([known, benchmark.positives.valid])
    return SimpBL(known, len(benchmark.graph.relations))


def _kg(benchmark: Benchmark) -> KnowledgeGraph:
    return benchmark.graph if benchmark.kg is None else benchmark.kg


SHORTCUTS: Mapping[str, Callable[[Benchmark, str, Index], Scorer]] = {
    "relation-name": _relation_name,
    "subject-popularity": lambda benchmark, _, __: SubjectPopularity(benchmark.seen),
    "object-popularity": lambda benchmark, _, __: ObjectPopularity(benchmark.seen),
    "adjacent": lambda benchmark, _, __: Adjacent(_kg(benchmark)),
    "other-relation": lambda benchmark, _, __: OtherRelation(_kg(benchmark)),
    "simpbl": _simpbl,
}


def shortcut(name: str, benchmark: Benchmark, method: str, *, index: Index = "train") -> Scorer:
    """Return a shortcut baseline by name.

    Parameters
    ----------
    name
        A key of `SHORTCUTS`.
    benchmark
        What it looks into: P_train, K, and for `relation-name` the labels of valid.
    method
        Whose negatives of valid `relation-name` looks at.
    index
        What `simpbl` looks into.
    """
    return SHORTCUTS[name](benchmark, method, index)


# -- from scores to accuracy -----------------------------------------------------------------------


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

    def predict(self, scores: Scores) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which scores count as true."""
        return np.asarray((scores >= self.threshold) != self.reversed)


def counts_from(positive: Scores, negative: Scores) -> tuple[Scores, Keys, Keys]:
    """Return the distinct scores, ascending, and how many positives and negatives lie from each of them on.

    Returns
    -------
    tuple
        float64[k], int64[k + 1], int64[k + 1]; the last counts are those above all scores: 0.
    """
    values, place = np.unique(np.concatenate([positive, negative]), return_inverse=True)
    place = place.ravel()
    at = [np.bincount(part, minlength=len(values)) for part in np.split(place, [len(positive)])]
    true, false = (np.append(np.cumsum(found[::-1])[::-1], 0).astype(np.int64) for found in at)
    return values, true, false


def fit_cut(positive: Scores, negative: Scores) -> Cut:
    """Return the cut with the best accuracy on labelled scores.

    A threshold lies halfway between two neighbouring scores. Of equally good cuts those that are not reversed
    come first, then the lowest.
    """
    values, true, false = counts_from(positive, negative)
    if not len(values):
        raise ValueError("no scores to fit a threshold on")
    right = true + len(negative) - false
    wrong = len(positive) + len(negative) - right
    turned = bool(wrong.max() > right.max())
    best = int(np.argmax(wrong if turned else right))
    edges = np.concatenate([[-np.inf], values, [np.inf]])
    low, high = float(edges[best]), float(edges[best + 1])
    if np.isinf(low) or np.isinf(high):
        return Cut(low if np.isinf(low) else high, turned)
    return Cut((low + high) / 2, turned)


def accuracy(scorer: Scorer, cut: Cut, positives: Triples, negatives: Triples) -> float | None:
    """Return the share of correct predictions; None without triples."""
    size = len(positives) + len(negatives)
    if not size:
        return None
    right = int(cut.predict(scorer.scores(positives)).sum())
    right += len(negatives) - int(cut.predict(scorer.scores(negatives)).sum())
    return right / size


def shortcut_accuracies(benchmark: Benchmark, method: str) -> dict[str, dict[str, Any]]:
    """Return how well each shortcut does on one method's negatives.

    Parameters
    ----------
    benchmark
        The benchmark.
    method
        Whose negatives.

    Returns
    -------
    dict
        For each baseline `accuracy` on test, `valid_accuracy`, `threshold` (None if all scores are called the
        same) and `reversed`: whether scores below the threshold are called true. Without valid, only those
        that need no fitting. Without test, nothing.
    """
    positives, negatives = benchmark.positives, benchmark.negatives[method].splits
    if not len(positives.test) or not len(negatives.test):
        return {}
    found: dict[str, dict[str, Any]] = {}
    for name in SHORTCUTS:
        fitted = fitted_shortcut(name, benchmark, method)
        if fitted is None:
            continue
        scorer, cut = fitted
        found[name] = {
            "accuracy": accuracy(scorer, cut, positives.test, negatives.test),
            "valid_accuracy": accuracy(scorer, cut, positives.valid, negatives.valid),
            "threshold": cut.threshold if np.isfinite(cut.threshold) else None,
            "reversed": cut.reversed,
        }
    return found


def fitted_shortcut(name: str, benchmark: Benchmark, method: str) -> tuple[Scorer, Cut] | None:
    """Return a shortcut with the cut that is best on valid; None where it needs valid and there is none."""
    positives, negatives = benchmark.positives.valid, benchmark.negatives[method].splits.valid
    labelled = len(positives) > 0 and len(negatives) > 0
    if not labelled and name not in BINARY:
        return None
    scorer = shortcut(name, benchmark, method)
    if not labelled:
        return scorer, Cut(0.5)
    return scorer, fit_cut(scorer.scores(positives), scorer.scores(negatives))


def oracle_of(benchmark: Benchmark, engine: Engine, rules: Sequence[Rule]) -> Oracle | DeepOracle:
    """Return the oracle of a benchmark: where conclusions follow in several steps, it takes them all.

    Parameters
    ----------
    benchmark
        The benchmark.
    engine, rules
        As for `Oracle`.
    """
    if benchmark.recipe is None or benchmark.depth == 1:
        return Oracle(engine, rules)
    return DeepOracle(engine, rules, benchmark.recipe.max_triples)


class DeepOracle:
    """Scores 1 for triples of M_R(P_train), 0 for others.

    Parameters
    ----------
    engine, rules
        As for `Oracle`.
    max_triples
        Give up when more triples follow.
    """

    def __init__(self, engine: Engine, rules: Sequence[Rule], max_triples: int) -> None:
        graph = engine.graph
        closure = everything_entailed(engine, rules, max_triples)
        self._true = graph.with_triples(np.vstack([graph.triples, closure.triples]))

    def scores(self, triples: Triples) -> npt.NDArray[np.float64]:
        """Return 1 for triples that follow, 0 for others."""
        return self._true.contains(triples).astype(np.float64)


class Oracle:
    """Scores 1 for triples of T_R(P_train), 0 for others.

    Parameters
    ----------
    engine
        An engine over P_train, whose vocabularies hold every name of the rules' heads.
    rules
        R.
    """

    def __init__(self, engine: Engine, rules: Sequence[Rule]) -> None:
        self._engine = engine
        self._rules = tuple(rules)

    def scores(self, triples: Triples) -> npt.NDArray[np.float64]:
        """Return 1 for triples that the rules derive, 0 for others."""
        return self._engine.derives(self._rules, triples).astype(np.float64)


def oracle_accuracy(oracle: Oracle | DeepOracle, benchmark: Benchmark, method: str) -> dict[str, Any]:
    """Return how well the oracle does on test with one method's negatives.

    Returns
    -------
    dict
        `accuracy`, `recall` and `false_positive_rate`; None for a figure that has no triples.
    """
    positives = oracle.scores(benchmark.positives.test)
    negatives = oracle.scores(benchmark.negatives[method].splits.test)
    size = len(positives) + len(negatives)
    right = int(positives.sum()) + len(negatives) - int(negatives.sum())
    return {
        "accuracy": right / size if size else None,
        "recall": float(positives.mean()) if len(positives) else None,
        "false_positive_rate": float(negatives.mean()) if len(negatives) else None,
    }
