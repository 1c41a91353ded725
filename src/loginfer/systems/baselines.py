"""Systems that learn nothing: the paper's SimpBL, simple shortcuts, and the oracle.

Most of their scorers are those of `loginfer.benchmark.shortcuts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from loginfer.benchmark import shortcuts
from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.learned_shortcut import training_triples
from loginfer.engine import open_engine
from loginfer.errors import InputError
from loginfer.kg import Triples
from loginfer.settings import check_settings, setting


@dataclass(frozen=True, kw_only=True)
class SimpBL:
    """The paper's baseline: (a, b, c) is true iff a triple involves a and b, and one involves b and c."""

    index: Literal["train", "train+valid"] = setting(
        "train", "Which positives are looked into; train+valid is what the authors' script did."
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def fit(self, benchmark: Benchmark) -> shortcuts.ShortcutScorer:
        """Look into the positives."""
        triples = benchmark.seen.triples
        if self.index == "train+valid":
            triples = np.vstack([triples, benchmark.positives.valid])
        return shortcuts.SimpBLScorer(triples, len(benchmark.graph.relations))


@dataclass(frozen=True)
class _Shortcut:
    # K, where it is known, says more than P_train: shortcuts are meant to find what a benchmark gives away.
    sees_everything: ClassVar[bool] = True


class RelationNameShortcut(_Shortcut):
    """The share of positives among the validation triples with that relation."""

    def fit(self, benchmark: Benchmark) -> shortcuts.ShortcutScorer:
        """Count labels in valid; where there is none, among the conclusions of train and N_train."""
        if not benchmark.negatives:
            raise InputError(
                f"relation-name counts negatives, and {benchmark.name} has none", hint="choose another system"
            )
        method, negatives = next(iter(benchmark.negatives.items()))
        labelled = benchmark.positives.valid, negatives.splits.valid
        if not len(labelled[0]):
            labelled = training_triples(benchmark, method)
        return RelationNameScorer(*labelled, len(benchmark.graph.relations))


class RelationNameScorer:
    """The share of positives among a relation's labelled triples; 0.5 for a relation without any.

    Parameters
    ----------
    positives, negatives
        Labelled triples.
    relations
        How many relations there are.
    """

    def __init__(self, positives: Triples, negatives: Triples, relations: int) -> None:
        true = np.bincount(positives[:, 1], minlength=relations).astype(np.float64)
        all_ = true + np.bincount(negatives[:, 1], minlength=relations)
        self._share = np.divide(true, all_, out=np.full(relations, 0.5), where=all_ > 0)

    def score(self, triples: Triples) -> shortcuts.Scores:
        """Return the share of positives of each triple's relation."""
        return np.asarray(self._share[triples[:, 1]])


class SubjectPopularityShortcut(_Shortcut):
    """How many triples of P_train mention the subject."""

    def fit(self, benchmark: Benchmark) -> shortcuts.ShortcutScorer:
        """Count triples."""
        return shortcuts.Popularity(benchmark.seen, 0)


class ObjectPopularityShortcut(_Shortcut):
    """How many triples of P_train mention the object."""

    def fit(self, benchmark: Benchmark) -> shortcuts.ShortcutScorer:
        """Count triples."""
        return shortcuts.Popularity(benchmark.seen, 2)


class AdjacentShortcut(_Shortcut):
    """Whether the graph has any triple between the two constants."""

    def fit(self, benchmark: Benchmark) -> shortcuts.ShortcutScorer:
        """Look into the graph."""
        return shortcuts.Adjacent(shortcuts.visible_graph(benchmark))


class OtherRelationShortcut(_Shortcut):
    """Whether the graph has a triple from subject to object with another relation."""

    def fit(self, benchmark: Benchmark) -> shortcuts.ShortcutScorer:
        """Look into the graph."""
        return shortcuts.OtherRelation(shortcuts.visible_graph(benchmark))


@dataclass(frozen=True)
class Oracle:
    """Predicts what the benchmark's rules derive from P_train in one step.

    Of a noisy benchmark it knows P_train without the noise, of an inductive one the context graph, too. Where
    conclusions follow in several steps, it takes as many as there are.
    """

    sees_everything: ClassVar[bool] = True

    def fit(self, benchmark: Benchmark) -> shortcuts.OracleScorer:
        """Apply the rules.

        Raises
        ------
        InputError
            If the benchmark's rules are not known.
        """
        if not benchmark.rules:
            hint = "build the benchmark with loginfer, which keeps its rules"
            raise InputError(f"the rules of {benchmark.name} are not known, so there is no oracle for it", hint=hint)
        return shortcuts.oracle_of(benchmark, open_engine(benchmark.clean.seen), benchmark.program)
