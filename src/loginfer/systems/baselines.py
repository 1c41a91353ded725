"""Systems that learn nothing: the paper's SimpBL, the shortcuts of the audit, and the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from loginfer.benchmark import shortcuts
from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.program import everything_entailed
from loginfer.engine import open_engine
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import distinct_keys, member, places_of
from loginfer.systems.interface import POSITIONS, Position
from loginfer.systems.registry import check_settings, setting

Ids = npt.NDArray[np.int32]
Keys = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


class ShortcutScorer:
    """A shortcut baseline as a scorer."""

    def __init__(self, baseline: shortcuts.Scorer) -> None:
        self._baseline = baseline

    def score(self, triples: Triples) -> Values:
        """Return the baseline's scores."""
        return self._baseline.scores(triples)


@dataclass(frozen=True, kw_only=True)
class SimpBL:
    """The paper's baseline: (a, b, c) is true iff a triple involves a and b, and one involves b and c."""

    index: Literal["train", "train+valid"] = setting(
        "train", "Which positives are looked into; train+valid is what the authors' script did."
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def fit(self, benchmark: Benchmark) -> SimpBLScorer:
        """Look into the positives."""
        known = benchmark.seen.triples
        if self.index == "train+valid":
            known = np.vstack([known, benchmark.positives.valid])
        return SimpBLScorer(shortcuts.SimpBL(known, len(benchmark.graph.relations)))


class SimpBLScorer:
    """SimpBL as a scorer: 1 for triples whose relation occurs with both constants, 0 for others."""

    def __init__(self, baseline: shortcuts.SimpBL) -> None:
        self._baseline = baseline

    def score(self, triples: Triples) -> Values:
        """Return the baseline's predictions."""
        return self._baseline.scores(triples)

    def score_candidates(self, triples: Triples, position: Position, candidates: Ids) -> Values:
        """Return float64[n, c]; whom a relation involves is looked up once a relation."""
        involves = self._baseline.involves
        if position == "relation":
            ends = [
                involves(np.repeat(triples[:, column], len(candidates)), np.tile(candidates, len(triples)))
                for column in (0, 2)
            ]
            return (ends[0] & ends[1]).reshape(len(triples), -1).astype(np.float64)
        known = involves(triples[:, 2 if position == "subject" else 0], triples[:, 1])
        scores = np.zeros((len(triples), len(candidates)))
        for relation in np.unique(triples[known, 1]):
            rows = known & (triples[:, 1] == relation)
            scores[rows] = involves(candidates, np.full(len(candidates), relation, dtype=np.int32))
        return scores


@dataclass(frozen=True)
class _Shortcut:
    """A shortcut of the audit by its name there."""

    name: ClassVar[str]
    # K, where it is known, says more than P_train: shortcuts are meant to find what a benchmark gives away.
    sees_everything: ClassVar[bool] = True

    def fit(self, benchmark: Benchmark) -> ShortcutScorer:
        """Look into the benchmark."""
        method = next(iter(benchmark.negatives), "")
        return ShortcutScorer(shortcuts.shortcut(self.name, benchmark, method))


class RelationNameShortcut(_Shortcut):
    """The share of positives among the validation triples with that relation."""

    name = "relation-name"

    def fit(self, benchmark: Benchmark) -> ShortcutScorer:
        """Count labels in valid."""
        if not benchmark.negatives:
            raise InputError(
                f"relation-name counts negatives, and {benchmark.name} has none", hint="choose another system"
            )
        return super().fit(benchmark)


class SubjectPopularityShortcut(_Shortcut):
    """How many triples of P_train mention the subject."""

    name = "subject-popularity"


class ObjectPopularityShortcut(_Shortcut):
    """How many triples of P_train mention the object."""

    name = "object-popularity"


class AdjacentShortcut(_Shortcut):
    """Whether the graph has any triple between the two constants."""

    name = "adjacent"


class OtherRelationShortcut(_Shortcut):
    """Whether the graph has a triple from subject to object with another relation."""

    name = "other-relation"


# -- the oracle ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Oracle:
    """Predicts what the benchmark's rules derive from P_train in one step.

    Of a noisy benchmark it knows P_train without the noise, of an inductive one the context graph, too. Where
    conclusions follow in several steps, it takes as many as there are.
    """

    sees_everything: ClassVar[bool] = True

    def fit(self, benchmark: Benchmark) -> OracleScorer:
        """Apply the rules.

        Raises
        ------
        InputError
            If the benchmark's rules are not known.
        """
        if not benchmark.rules:
            raise InputError(
                f"the rules of {benchmark.name} are not known, so there is no oracle for it",
                hint="build the benchmark with loginfer, which keeps its rules",
            )
        engine = open_engine(benchmark.clean.seen)
        if benchmark.recipe is not None and benchmark.depth > 1:
            limit = benchmark.recipe.max_triples
            found = everything_entailed(engine, benchmark.program, limit)
            return OracleScorer(benchmark.graph, [engine.graph.triples, found.triples])
        return OracleScorer(benchmark.graph, [engine.conclusions(rule) for rule in benchmark.program])


class OracleScorer:
    """Scores 1 for triples of T_R(P_train), 0 for others.

    Parameters
    ----------
    graph
        Gives the vocabularies.
    conclusions
        The conclusions of each rule.
    """

    def __init__(self, graph: KnowledgeGraph, conclusions: Sequence[Triples]) -> None:
        self._sizes = (len(graph.entities), len(graph.relations), len(graph.entities))
        self._triples = np.vstack([np.empty((0, 3), dtype=np.int32), *conclusions])
        self._ordered: dict[Position, Keys] = {}

    def score(self, triples: Triples) -> Values:
        """Return 1 for triples that the rules derive, 0 for others."""
        return member(self._keys("object"), self._pack(triples, "object")).astype(np.float64)

    def score_candidates(self, triples: Triples, position: Position, candidates: Ids) -> Values:
        """Return float64[n, c]: 1 where the triple with that candidate is derived."""
        column, keys = POSITIONS.index(position), self._keys(position)
        first = triples.copy()
        first[:, column] = 0
        start = self._pack(first, position)
        # The derived values of a query stand together, from its smallest possible key on.
        low, high = np.searchsorted(keys, start), np.searchsorted(keys, start + self._sizes[column])
        rows = np.repeat(np.arange(len(triples)), high - low)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
        derived = keys[np.repeat(low, high - low) + places] - start[rows]
        order = np.argsort(candidates, kind="stable")
        found, where = places_of(candidates[order].astype(np.int64), derived)
        scores = np.zeros((len(triples), len(candidates)))
        scores[rows[found], order[where[found]]] = 1
        return scores

    def _keys(self, position: Position) -> Keys:
        """Return all conclusions as sorted keys that count fastest in one position."""
        if position not in self._ordered:
            self._ordered[position] = distinct_keys(self._pack(self._triples, position))
        return self._ordered[position]

    def _pack(self, triples: Triples, position: Position) -> Keys:
        last = POSITIONS.index(position)
        keys = np.zeros(len(triples), dtype=np.int64)
        for column in [c for c in range(3) if c != last] + [last]:
            keys = keys * self._sizes[column] + triples[:, column]
        return keys
