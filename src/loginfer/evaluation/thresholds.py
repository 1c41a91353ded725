"""What a score says: from which on a triple is predicted, and how likely it makes the triple.

Section 2.2 of the paper: a triple has a confidence in [0, 1], and is predicted if that reaches a threshold. Systems
give any numbers. `Thresholds` are chosen for these, one for all or one for each relation, and `Calibration` makes
confidences of them: on P_valid and N_valid, never on test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.shortcuts import counts_from
from loginfer.errors import InputError, UnknownNameError
from loginfer.evaluation.predictions import Counts, LabelledScores, Predictions, Scores
from loginfer.kg import Triples, Vocabulary

# What a threshold is chosen for.
Criterion = Literal["accuracy", "f1", "balanced_accuracy"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)

# One threshold for all triples, or one for the triples of each relation.
Kind = Literal["global", "relation"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def fit_threshold(positive: npt.ArrayLike, negative: npt.ArrayLike, criterion: Criterion = "accuracy") -> float:
    """Return the best threshold for labelled scores; a score that reaches it counts as true.

    Thresholds between the same two neighbouring scores do equally well. Where neighbouring gaps do, too,
    they make one interval. Of several intervals that are equally good the widest counts, of equally wide ones
    the lowest, and the threshold is the middle of it. The gaps below and above all scores are taken to be as
    wide as the gaps next to them (1 where there is no other), so that a threshold is always finite.

    Parameters
    ----------
    positive, negative
        The scores; any numbers but NaN and infinities.
    criterion
        What must be best. If all labels are the same, that is accuracy in any case.

    Raises
    ------
    InputError
        Without scores, or if some are not finite.
    """
    if criterion not in CRITERIA:
        raise UnknownNameError("criterion", criterion, CRITERIA)
    true_scores, false_scores = (np.asarray(s, dtype=np.float64).ravel() for s in (positive, negative))
    values, true, false = counts_from(true_scores, false_scores)
    if not len(values):
        hint = "the benchmark has no triples in valid: give a threshold, such as 0.5"
        raise InputError("there are no labelled scores to choose a threshold on", hint=hint)
    if not np.isfinite(values).all():
        raise InputError("a threshold cannot be chosen: some scores of valid are not finite numbers")
    quality = _quality(true, false, criterion)
    return _middle(values, quality == quality.max())


def _quality(true: Counts, false: Counts, criterion: Criterion) -> npt.NDArray[np.float64]:
    """Return the criterion for each cut. Quotients of counts: equal values are equal bit by bit."""
    positives, negatives = int(true[0]), int(false[0])
    if criterion == "accuracy" or not positives or not negatives:
        return (true + negatives - false).astype(np.float64)
    if criterion == "f1":
        return np.asarray(2 * true / (true + false + positives))
    return (true * negatives + (negatives - false) * positives).astype(np.float64)


def _middle(values: Scores, best: npt.NDArray[np.bool_]) -> float:
    """Return the middle of the widest run of best cuts; cut i lies between edges i and i + 1."""
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        below, above = (values[1] - values[0], values[-1] - values[-2]) if len(values) > 1 else (1.0, 1.0)
        edges = np.concatenate([[values[0] - below], values, [values[-1] + above]]).clip(-largest, largest)
    change = np.flatnonzero(np.diff(np.concatenate([[False], best, [False]]).astype(np.int8)))
    low, high = edges[change[::2]], edges[change[1::2]]
    # Halves, since the sum or difference of two large numbers is no number.
    widest = int(np.argmax(high / 2 - low / 2))
    middle = float(low[widest] / 2 + high[widest] / 2)
    # Rounding may bring the middle of a tiny gap down to the score below, which must not reach it.
    return min(max(middle, math.nextafter(float(low[widest]), math.inf)), float(high[widest]))


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which score on triples are predicted.

    Parameters
    ----------
    kind
        `global` or `relation`.
    value
        The threshold for all triples; with `relation`, for those of the other relations.
    criterion
        What it was chosen for; None if it was given.
    relations
        By name, the thresholds of the relations that have their own.
    vocabulary
        The names of the relations' ids; needed where some have their own threshold.
    """

    kind: Kind
    value: float
    criterion: Criterion | None = None
    relations: Mapping[str, float] = field(default_factory=dict)
    vocabulary: Vocabulary | None = field(default=None, repr=False, compare=False)

    @classmethod
    def fixed(cls, value: float) -> Thresholds:
        """Return one threshold for all triples that was not chosen but given."""
        if not math.isfinite(value):
            raise InputError(f"a threshold must be a finite number, not {value}")
        return cls("global", float(value))

    def of(self, triples: Triples) -> Scores:
        """Return float64[n], the threshold of each triple."""
        if not self.relations:
            return np.full(len(triples), self.value)
        if self.vocabulary is None:
            raise ValueError("thresholds of relations need the benchmark's vocabulary")
        by_id = np.full(len(self.vocabulary), self.value)
        for name, value in self.relations.items():
            by_id[self.vocabulary.index(name)] = value
        return np.asarray(by_id[triples[:, 1]])

    def predict(self, triples: Triples, scores: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which triples are predicted, given their scores."""
        return np.asarray(np.asarray(scores, dtype=np.float64) >= self.of(triples))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values; relations in the order of their names."""
        description: dict[str, Any] = {"kind": self.kind, "criterion": self.criterion, "value": self.value}
        if self.kind == "relation":
            description["relations"] = dict(sorted(self.relations.items()))
        return description

    @classmethod
    def from_dict(cls, description: Mapping[str, Any], benchmark: Benchmark | None = None) -> Thresholds:
        """Return what `as_dict` described.

        Parameters
        ----------
        description
            The JSON values.
        benchmark
            The benchmark that it is for; needed where relations have their own threshold.

        Raises
        ------
        InputError
            If the values do not describe thresholds, or name a relation that the benchmark does not have.
        """
        try:
            kind, criterion, value = description["kind"], description.get("criterion"), float(description["value"])
            relations = {str(name): float(threshold) for name, threshold in description.get("relations", {}).items()}
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise InputError(f"no description of thresholds: {problem!r}") from None
        if kind not in KINDS:
            raise UnknownNameError("kind of threshold", str(kind), KINDS)
        if criterion is not None and criterion not in CRITERIA:
            raise UnknownNameError("criterion", str(criterion), CRITERIA)
        if not all(map(math.isfinite, [value, *relations.values()])):
            raise InputError("a threshold must be a finite number")
        vocabulary = None if benchmark is None else benchmark.graph.relations
        if vocabulary is not None:
            for name in relations:
                if name not in vocabulary:
                    raise UnknownNameError("relation", name, vocabulary, where="thresholds")
        return cls(cast(Kind, kind), value, cast(Criterion | None, criterion), relations, vocabulary)


def fit_thresholds(
    predictions: Predictions, benchmark: Benchmark, kind: Kind = "global", criterion: Criterion = "accuracy"
) -> Thresholds:
    """Choose thresholds on valid.

    Parameters
    ----------
    predictions
        The scores of P_valid and N_valid.
    benchmark
        The benchmark that they are for.
    kind
        `relation` chooses one for each relation that has both positives and negatives in valid; the others
        have the global one.
    criterion
        What must be best.

    Raises
    ------
    InputError
        If there is nothing to choose them on: no triples in valid, or no negatives among them.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of threshold", kind, KINDS)
    scores = predictions.valid
    if not len(scores.positive) or not len(scores.negative):
        missing = "positives" if not len(scores.positive) else "negatives"
        hint = "give a threshold, such as 0.5 for scores of 0 and 1"
        raise InputError(f"no threshold can be chosen: {benchmark.name} has no {missing} in valid", hint=hint)
    overall = fit_threshold(scores.positive, scores.negative, criterion)
    vocabulary = benchmark.graph.relations
    if kind == "global":
        return Thresholds(kind, overall, criterion, {}, vocabulary)
    method = predictions.method
    negatives = benchmark.negatives[method].splits.valid if method is not None else np.empty((0, 3), np.int32)
    true, false = benchmark.positives.valid[:, 1], negatives[:, 1]
    relations = {}
    for relation in np.intersect1d(true, false).tolist():
        positive, negative = scores.positive[true == relation], scores.negative[false == relation]
        relations[vocabulary[relation]] = fit_threshold(positive, negative, criterion)
    return Thresholds(kind, overall, criterion, relations, vocabulary)


# -- confidences ------------------------------------------------------------------------------------

# Into so many parts valid is split to find the better mapping.
FOLDS = 5
# So many bins hold the triples whose confidences are compared with what came true.
RELIABILITY_BINS = 10

_LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True, slots=True)
class Calibration:
    """Makes confidences of scores: how likely a triple is true, between 0 and 1, never lower for a higher score.

    As likely as among the labelled triples of valid, of which mostly half are true.

    Parameters
    ----------
    kind
        `platt`: the log-odds are on a line between two scores, and constant beyond them; `isotonic`: they rise in
        steps.
    scores
        float64[n], ascending: the lowest and the highest score of valid, or the score at which each step begins.
    log_odds
        float64[n], ascending: those at these scores.
    """

    kind: Literal["platt", "isotonic"]
    scores: Scores
    log_odds: Scores

    @classmethod
    def of(cls, valid: LabelledScores) -> Calibration:
        """Return the mapping that fits the positives and negatives of valid.

        Platt scaling, unless isotonic regression has the lower log loss in a cross-validation: of the triples in the
        order of their scores every fifth is left out in turn. Both aim at Platt's targets, (n + 1) / (n + 2) for n
        positives and 1 / (n + 2) for n negatives, so that no triple is certain.
        """
        scores, true = valid.labelled
        scores = scores.clip(-_LARGEST, _LARGEST)
        fold = np.empty(len(scores), dtype=np.int64)
        fold[np.lexsort((true, scores))] = np.arange(len(scores)) % FOLDS

        def loss(fit: Callable[[Scores, npt.NDArray[np.bool_]], Calibration]) -> float:
            log_odds = np.empty(len(scores))
            for left_out in (fold == number for number in range(FOLDS)):
                log_odds[left_out] = fit(scores[~left_out], true[~left_out])._log_odds(scores[left_out])
            return float(np.logaddexp(0, np.where(true, -log_odds, log_odds)).mean())

        fit = _fit_isotonic if loss(_fit_isotonic) < loss(_fit_platt) - 1e-6 else _fit_platt  # not by rounding
        return fit(scores, true)

    def confidence(self, scores: npt.ArrayLike) -> Scores:
        """Return float64[…], the confidences; scores are any numbers but NaN."""
        from scipy.special import expit

        return np.asarray(expit(self._log_odds(np.asarray(scores, dtype=np.float64))))

    def _log_odds(self, scores: Scores) -> Scores:
        if self.kind == "platt":
            return _between(scores, self.scores, self.log_odds)
        return self.log_odds[np.maximum(np.searchsorted(self.scores, scores, side="right") - 1, 0)]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"kind": self.kind, "scores": self.scores.tolist(), "log_odds": self.log_odds.tolist()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Calibration:
        """Return what `as_dict` described.

        Raises
        ------
        InputError
            If the values do not describe a calibration.
        """
        try:
            kind = description["kind"]
            rows = np.array([description["scores"], description["log_odds"]], dtype=np.float64)
        except (KeyError, TypeError, ValueError) as problem:
            raise InputError(f"no description of a calibration: {problem!r}") from None
        fits = kind in ("platt", "isotonic") and rows.ndim == 2 and rows.size and np.isfinite(rows).all()
        if not fits or (np.diff(rows) < 0).any():
            raise InputError("no description of a calibration: scores and log-odds are not finite and ascending")
        return cls(kind, *rows)


def _between(scores: Scores, known: Scores, values: Scores | tuple[float, float]) -> Scores:
    """Return for each score what lies between the values of known scores, in proportion; beyond them the last one."""
    unit = np.abs(known).max() or 1.0  # the difference of two large numbers may be none
    with np.errstate(over="ignore"):
        return np.interp(scores / unit, known / unit, values)


def _targets(true: npt.NDArray[np.bool_], shares: npt.NDArray[np.generic]) -> Scores:
    """Return Platt's targets for shares of positives, 0 and 1 for single triples."""
    lowest, highest = 1 / ((~true).sum() + 2), (true.sum() + 1) / (true.sum() + 2)
    return np.asarray(lowest + (highest - lowest) * shares)


def _fit_platt(scores: Scores, true: npt.NDArray[np.bool_]) -> Calibration:
    from scipy.optimize import minimize
    from scipy.special import expit

    target, ends = _targets(true, true), np.array([scores.min(), scores.max()])
    place = _between(scores, ends, (0.0, 1.0))
    middle = place.mean()

    def loss(line: Scores) -> tuple[float, list[float]]:
        log_odds = line[0] * (place - middle) + line[1]
        error = expit(log_odds) - target
        value = (np.logaddexp(0, log_odds) - target * log_odds).mean()
        return value, [(error * (place - middle)).mean(), error.mean()]

    # No falling line: what a system scores higher is not less likely.
    slope, height = minimize(loss, (0.0, 0.0), jac=True, method="TNC", bounds=[(0, None), (None, None)], tol=1e-12).x
    return Calibration("platt", ends, slope * (np.array([0.0, 1.0]) - middle) + height)


def _fit_isotonic(scores: Scores, true: npt.NDArray[np.bool_]) -> Calibration:
    from scipy.special import logit
    from sklearn.isotonic import isotonic_regression

    values, index, counts = np.unique(scores, return_inverse=True, return_counts=True)
    shares = isotonic_regression(np.bincount(index.ravel(), weights=true) / counts, sample_weight=counts)
    steps = np.flatnonzero(np.diff(shares, prepend=-1.0))
    return Calibration("isotonic", values[steps], logit(_targets(true, shares[steps])))


def reliability(truth: npt.NDArray[np.generic], confidence: Scores) -> tuple[Counts, Scores, Scores]:
    """Return how many triples each bin holds, the mean of their confidences, and the share of them that is true.

    Bins hold equal numbers of triples, but for equal confidences, which are in one; empty bins are left out.

    Parameters
    ----------
    truth
        Of n triples, 1 for positives.
    confidence
        float64[n].
    """
    edges = np.percentile(confidence, np.linspace(0, 100, RELIABILITY_BINS + 1))
    bins = np.searchsorted(edges[1:-1], confidence)
    counts = np.bincount(bins)
    filled = np.flatnonzero(counts)
    confidences, trues = (np.bincount(bins, weights=values)[filled] for values in (confidence, truth))
    return counts[filled].astype(np.int64), confidences / counts[filled], trues / counts[filled]
