"""Diagnosis: which rules a system learned, which it replaced by a shortcut, and which baseline it follows.

For each rule of R: the recall of its conclusions in P_test, and for each of its sub-rules in R⁻ the
false-positive rate on the sub-rule's witnesses in N_test. It does not matter how the negatives were drawn: an
engine says which of them a sub-rule concludes from P_train, from which a system that learned it would do so.
Negatives that follow from the rules themselves, as they may under the protocol `paper`, are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.negatives.undesired import kept_masks
from loginfer.benchmark.rule_triples import Pairs, fits_head, negatives_of, own_conclusions
from loginfer.benchmark.shortcuts import BINARY, shortcut
from loginfer.benchmark.values import Benchmark, BenchmarkRule
from loginfer.engine import Engine, open_engine_in
from loginfer.errors import LimitError
from loginfer.evaluation.correlation import baseline_correlations
from loginfer.evaluation.thresholds import Thresholds
from loginfer.evaluation.values import Predictions
from loginfer.evaluation.verdicts import (
    HALF,
    HIGH,
    LEAST,
    LOW,
    VERDICTS,
    RuleDiagnosis,
    Verdict,
    diagnose_rule,
)
from loginfer.evaluation.witnesses import Negatives, head_shortcuts, sub_rule_shortcuts

__all__ = ["Diagnosis", "diagnose"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a system made of a benchmark.

    Parameters
    ----------
    rules
        One diagnosis for each rule, in the benchmark's order; empty if the rules are not known.
    baselines
        How far the scores follow each shortcut baseline (see `baseline_correlations`).
    derivable
        How many negatives of N_test follow from the rules and were left out.
    notes
        What could not be looked at.
    """

    rules: tuple[RuleDiagnosis, ...]
    baselines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    derivable: int = 0
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """How many rules have each verdict."""
        found = Counter(rule.verdict for rule in self.rules)
        return {verdict: found[verdict] for verdict in VERDICTS}

    def summary(self) -> list[str]:
        """Return what was found in a few sentences."""
        found = [self._counted()] if self.rules else []
        for verdict in ("shortcut", "untested"):
            alike = [rule for rule in self.rules if rule.verdict == verdict]
            if alike:
                found.append(_example(min(alike, key=lambda rule: len(rule.rule))))  # names may be long
        follows = self._followed()
        found += [follows] if follows else []
        if self.derivable:
            found.append(
                f"{self.derivable:,} negative{_s(self.derivable)} of test "
                f"follow{'' if self.derivable > 1 else 's'} from the rules and "
                f"{'were' if self.derivable > 1 else 'was'} left out"
            )
        return [*found, *self.notes]

    def _counted(self) -> str:
        words: dict[Verdict, str] = {
            "learned": "learned",
            "untested": "learned as far as the negatives tell",
            "shortcut": "replaced by a shortcut",
            "in part": "learned in part",
            "not learned": "not learned",
            "not testable": "with too few conclusions to tell",
        }
        parts = [f"{count:,} {words[verdict]}" for verdict, count in self.verdicts.items() if count]
        return f"of {len(self.rules):,} rule{_s(len(self.rules))}: {', '.join(parts)}"

    def _followed(self) -> str | None:
        known = {name: row["correlation"] for name, row in self.baselines.items()}
        strong = {name: rho for name, rho in known.items() if rho is not None and abs(rho) >= HALF}
        if not strong:
            return None
        name = max(strong, key=lambda name: abs(strong[name]))
        accuracy = self.baselines[name]["accuracy"]
        alone = "" if accuracy is None else f"; `{name}` alone is right in {accuracy:.1%} of the test triples"
        how = "follow" if strong[name] > 0 else "run against"
        return f"the scores {how} `{name}` (ρ = {strong[name]:.2f}){alone}"

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "summary": self.summary(),
            "verdicts": dict(self.verdicts),
            "limits": {"least": LEAST, "low": LOW, "half": HALF, "high": HIGH},
            "derivable_negatives": self.derivable,
            "baselines": {name: dict(row) for name, row in self.baselines.items()},
            "rules": [rule.as_dict() for rule in self.rules],
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from loginfer.evaluation.evaluation_html import diagnosis_fragment

        return diagnosis_fragment(self.as_dict())


def _example(rule: RuleDiagnosis) -> str:
    instead = rule.instead
    text = "" if instead is None else instead.text
    recall = f"{rule.predicted:,} of {rule.conclusions:,} conclusions"
    if instead is None or rule.verdict == "untested":
        return f"for example `{rule.rule}` ({recall}), which no negatives tell from `{text}`"
    wrong = f"{instead.predicted:,} of {instead.witnesses:,} wrong ones"
    return f"for example `{text}` ({wrong}) instead of `{rule.rule}` ({recall})"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def diagnose(
    benchmark: Benchmark,
    predictions: Predictions,
    thresholds: Thresholds,
    *,
    engine: Engine | None = None,
) -> Diagnosis:
    """Say which rules a system learned, and which shortcuts.

    Parameters
    ----------
    benchmark
        The benchmark.
    predictions
        The system's scores of P_test and N_test.
    thresholds
        From which score on a triple is predicted.
    engine
        An engine over P_train; by default a native one is opened.
    """
    baselines = baseline_correlations(benchmark, predictions)
    if not benchmark.rules:
        return Diagnosis((), baselines, notes=("the rules of this benchmark are not known",))
    with ExitStack() as stack:
        opened = open_engine_in(stack, benchmark.clean.seen) if engine is None else engine
        looked = _Look(benchmark, predictions, thresholds, opened)
        rules = tuple(looked.at(place) for place in range(len(benchmark.rules)))
    return Diagnosis(rules, baselines, looked.derivable, looked.notes)


class _Look:
    """The test triples with all that is asked about them once for all rules."""

    def __init__(
        self, benchmark: Benchmark, predictions: Predictions, thresholds: Thresholds, engine: Engine
    ) -> None:
        self._benchmark, self._engine = benchmark, engine
        positives, negatives = benchmark.positives.test, negatives_of(benchmark, predictions.method)
        true = engine.derives(benchmark.program, negatives)
        self.derivable = int(true.sum())
        self._negatives = negatives[~true]
        self._wrong = thresholds.predict(negatives, predictions.test.negative)[~true]
        self._right = thresholds.predict(positives, predictions.test.positive)
        made = {name: shortcut(name, benchmark, predictions.method or "") for name in BINARY}
        self._on_negatives = {name: made[name].scores(self._negatives) > 0 for name in BINARY}
        self._on_positives = {name: made[name].scores(positives) > 0 for name in BINARY}
        rule, row = self._concluded()
        self._rows = np.split(row, np.searchsorted(rule, np.arange(1, len(benchmark.rules))))
        self._masks, self.notes = self._sub_rules()

    def _concluded(self) -> Pairs:
        """Return which rule concludes which triple of P_test; where nobody wrote it down, from P_train."""
        if self._benchmark.provenance is not None:
            return own_conclusions(self._benchmark)
        found = self._engine.derivations(self._benchmark.program, self._benchmark.positives.test)
        order = np.lexsort((found.triple, found.rule))
        return found.rule[order], found.triple[order]

    def _sub_rules(self) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
        try:
            return kept_masks(self._benchmark.program), ()
        except LimitError as problem:
            note = f"sub-rules were not looked at: {problem.message}"
            return ((),) * len(self._benchmark.rules), (note,)

    def at(self, place: int) -> RuleDiagnosis:
        """Return the diagnosis of a rule."""
        known: BenchmarkRule = self._benchmark.rules[place]
        rule, rows = known.rule, self._rows[place]
        fits = np.flatnonzero(fits_head(rule.head, self._benchmark.graph, self._negatives))
        negatives = Negatives(
            self._negatives[fits],
            self._wrong[fits],
            {name: said[fits] for name, said in self._on_negatives.items()},
        )
        shortcuts = sub_rule_shortcuts(self._engine, rule, self._masks[place], negatives)
        needed = not any(found.needed for found in shortcuts)
        if needed or not any(found.tested for found in shortcuts):
            said = {name: mask[rows] for name, mask in self._on_positives.items()}
            shortcuts += head_shortcuts(rule, negatives, said, needed=needed)
        return diagnose_rule(
            str(rule),
            known.pattern,
            len(rows),
            int(self._right[rows].sum()),
            shortcuts,
            len(self._masks[place]),
        )
