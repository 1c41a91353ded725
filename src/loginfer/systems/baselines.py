"""Systems that learn nothing: the paper's SimpBL, the shortcuts of the audit, and the oracle.

Their scorers are those of `loginfer.benchmark.shortcuts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from loginfer.benchmark import shortcuts
from loginfer.benchmark.benchmark import Benchmark
from loginfer.engine import open_engine
from loginfer.errors import InputError
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
        return shortcuts.shortcut("simpbl", benchmark, "", index=self.index)


@dataclass(frozen=True)
class _Shortcut:
    """A shortcut of the audit by its name there."""

    name: ClassVar[str]
    # K, where it is known, says more than P_train: shortcuts are meant to find what a benchmark gives away.
    sees_everything: ClassVar[bool] = True

    def fit(self, benchmark: Benchmark) -> shortcuts.ShortcutScorer:
        """Look into the benchmark."""
        return shortcuts.shortcut(self.name, benchmark, next(iter(benchmark.negatives), ""))


class RelationNameShortcut(_Shortcut):
    """The share of positives among the validation triples with that relation."""

    name = "relation-name"

    def fit(self, benchmark: Benchmark) -> shortcuts.ShortcutScorer:
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
            raise InputError(
                f"the rules of {benchmark.name} are not known, so there is no oracle for it",
                hint="build the benchmark with loginfer, which keeps its rules",
            )
        return shortcuts.oracle_of(benchmark, open_engine(benchmark.clean.seen), benchmark.program)
