"""Thresholds, against a search through all cuts."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.made_up_benchmarks import family

from loginfer.benchmark.benchmark import Splits
from loginfer.errors import InputError, UnknownNameError
from loginfer.evaluation.metrics import MetricOptions, measure
from loginfer.evaluation.predictions import LabelledScores, Predictions
from loginfer.evaluation.thresholds import CRITERIA, Thresholds, fit_threshold, fit_thresholds

few = st.integers(-3, 3).map(float)
any_finite = st.floats(-1e6, 1e6)
lists = st.one_of(st.lists(few, max_size=12), st.lists(any_finite, max_size=12))


def quality(threshold, positive, negative, criterion):
    """The criteria by their definitions."""
    tp = sum(score >= threshold for score in positive)
    fp = sum(score >= threshold for score in negative)
    fn, tn = len(positive) - tp, len(negative) - fp
    if criterion == "accuracy" or not positive or not negative:
        return (tp + tn) / (len(positive) + len(negative))
    if criterion == "f1":
        return 2 * tp / (2 * tp + fp + fn)
    return (tp / len(positive) + tn / len(negative)) / 2


def best_gaps(positive, negative, criterion):
    """All gaps between neighbouring scores with the best quality, as pairs of edges."""
    values = sorted({*positive, *negative})
    first, last = (values[1] - values[0], values[-1] - values[-2]) if len(values) > 1 else (1.0, 1.0)
    edges = [values[0] - first, *values, values[-1] + last]
    gaps = list(itertools.pairwise(edges))
    # A score reaches the threshold that it equals: the upper edge of a gap stands for all of the gap.
    found = [quality(high if high in values else math.inf, positive, negative, criterion) for _, high in gaps]
    return [gap for gap, value in zip(gaps, found, strict=True) if value == pytest.approx(max(found), abs=1e-12)]


def joined(gaps):
    """Neighbouring gaps as one interval."""
    found = []
    for low, high in gaps:
        if found and found[-1][1] == low:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return found


@pytest.mark.parametrize("criterion", CRITERIA)
@given(positive=lists, negative=lists)
@settings(max_examples=80)
def test_the_threshold_lies_in_the_middle_of_the_widest_best_interval(criterion, positive, negative):
    if not positive and not negative:
        return
    found = fit_threshold(positive, negative, criterion)
    intervals = joined(best_gaps(positive, negative, criterion))
    widest = max(high - low for low, high in intervals)
    middles = [(low + high) / 2 for low, high in intervals if high - low == pytest.approx(widest)]
    assert any(found == pytest.approx(middle, rel=1e-9, abs=1e-9) for middle in middles)


@pytest.mark.parametrize("criterion", CRITERIA)
@given(positive=lists, negative=lists)
@settings(max_examples=80)
def test_no_threshold_is_better(criterion, positive, negative):
    if not positive and not negative:
        return
    found = fit_threshold(positive, negative, criterion)
    best = max(quality(cut, positive, negative, criterion) for cut in (*positive, *negative, math.inf))
    assert quality(found, positive, negative, criterion) == pytest.approx(best, abs=1e-12)
    assert math.isfinite(found)


def test_ties_are_settled_by_the_middle():
    assert fit_threshold([3, 5], [0, 1]) == 2.0
    assert fit_threshold([1, 1, 1], [0, 0]) == 0.5
    # 2 or 3 as the lowest true score are equally good, and so is everything between 1 and 3.
    assert fit_threshold([2, 3, 4], [0, 1, 2]) == 2.0
    # Two intervals, (0, 1) and (2, 5), with one that is worse between them: the wider one.
    assert fit_threshold([1, 5], [0, 2]) == 3.5
    # Equally wide: the lower one.
    assert fit_threshold([1, 3], [0, 2]) == 0.5


def test_a_threshold_beyond_all_scores_is_finite():
    assert fit_threshold([1, 2], []) == 0.5
    assert fit_threshold([], [1, 2]) == 2.5
    assert fit_threshold([7], []) == 6.5
    assert fit_threshold([0], [1, 1]) == 1.5


def test_criteria_differ_where_labels_are_uneven():
    positive, negative = [1.0, 2.0], [0.0, 1.0, 1.0, 1.0, 1.0]
    assert fit_threshold(positive, negative, "accuracy") == 1.5
    positive, negative = [1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 0.0]
    assert fit_threshold(positive, negative, "f1") == 0.5
    assert fit_threshold(positive, negative, "accuracy") == 1.5
    assert fit_threshold(positive, negative, "balanced_accuracy") == 0.5


@pytest.mark.parametrize("low", [1.0, -1.0, 0.0, 1e300, -1e300, 5e-324])
def test_neighbouring_numbers_are_told_apart(low):
    high = math.nextafter(low, math.inf)
    found = fit_threshold([high], [low])
    assert low < found <= high


def test_numbers_at_the_ends_of_the_range_give_a_finite_threshold():
    largest = np.finfo(np.float64).max
    assert -largest < fit_threshold([largest], [-largest]) <= largest
    assert fit_threshold([-largest, largest], []) == -largest
    assert math.isfinite(fit_threshold([-largest], [largest]))


def test_nothing_or_no_number_is_refused():
    with pytest.raises(InputError, match="no labelled scores"):
        fit_threshold([], [])
    with pytest.raises(InputError, match="not finite"):
        fit_threshold([math.nan], [0.0])
    with pytest.raises(InputError, match="not finite"):
        fit_threshold([1.0], [-math.inf])
    with pytest.raises(UnknownNameError, match="criterion `acuracy`"):
        fit_threshold([1.0], [0.0], "acuracy")  # type: ignore[arg-type]


# -- of a benchmark --------------------------------------------------------------------------------


def scored(benchmark, method="pa"):
    """Scores that differ from relation to relation."""
    negatives = benchmark.negatives[method].splits

    def score(triples, label):
        return triples[:, 1] * 10.0 + label

    return Predictions(
        method,
        *(
            LabelledScores(score(benchmark.positives[split], 1), score(negatives[split], 0))
            for split in ("valid", "test")
        ),
    )


def with_valid(benchmark, positives, negatives, method="pa"):
    made = benchmark.negatives[method]
    return replace(
        benchmark,
        positives=replace(benchmark.positives, valid=np.array(positives, dtype=np.int32)),
        negatives={method: replace(made, splits=replace(made.splits, valid=np.array(negatives, dtype=np.int32)))},
    )


BOTH = ([(0, 0, 1), (0, 1, 1), (0, 1, 2)], [(1, 0, 0), (1, 1, 0), (1, 2, 0)])


def test_relations_with_both_labels_have_their_own_threshold():
    made = with_valid(family(), *BOTH)
    predictions = scored(made)
    found = fit_thresholds(predictions, made, "relation")
    names = made.graph.relations
    assert found.relations == {names[0]: 0.5, names[1]: 10.5}
    assert found.value == fit_thresholds(predictions, made).value
    asked = np.array([(0, 0, 0), (0, 1, 0), (0, 2, 0)], dtype=np.int32)
    assert found.of(asked).tolist() == [0.5, 10.5, found.value]
    assert found.predict(asked, [0.5, 10.4, found.value]).tolist() == [True, False, True]


def test_thresholds_by_relation_are_fitted_once(monkeypatch):
    kinds = []
    counted = lambda *words: kinds.append(words[2]) or fit_thresholds(*words)  # noqa: E731
    monkeypatch.setattr("loginfer.evaluation.metrics.fit_thresholds", counted)
    made = with_valid(family(), *BOTH)
    for kind in ("relation", "global"):
        measure(made, scored(made), [], MetricOptions(kind, diagnosis=False))
    assert kinds == ["relation", "global", "relation"]


rows = st.lists(st.tuples(st.integers(0, 2), few), min_size=1, max_size=15)


@pytest.mark.parametrize("kind", ["global", "relation", 1.5])
@given(sets=st.tuples(rows, rows, rows, rows))
@settings(max_examples=25, deadline=None)
def test_accuracy_with_relation_thresholds_is_reported_beside_any_other(kind, sets):
    valid, test = sets[:2], sets[2:]
    options = MetricOptions(kind, diagnosis=False)
    bench, negatives = family(), family().negatives["pa"]
    triples = [np.array([(0, r, 1) for r, _ in part], dtype=np.int32) for part in sets]
    splits = [Splits(bench.positives.train, *triples[::2]), Splits(negatives.splits.train, *triples[1::2])]
    bench = replace(bench, positives=splits[0], negatives={"pa": replace(negatives, splits=splits[1], origins={})})
    scores = [LabelledScores(*(np.array([s for _, s in part]) for part in split)) for split in (valid, test)]
    found = measure(bench, Predictions("pa", *scores), [], options).metrics

    def best(parts):
        """The lowest of the widest best gaps between the scores of valid, by its middle."""
        gaps = joined(best_gaps(*parts, "accuracy"))
        return sum(max(gaps, key=lambda gap: (gap[1] - gap[0], -gap[0]))) / 2

    overall = best([[s for _, s in part] for part in valid])
    cuts = {}
    for relation in range(3):
        parts = [[s for r, s in part if r == relation] for part in valid]
        cuts[relation] = best(parts) if all(parts) else overall
    recall, rejected = ([(s >= cuts[r]) == label for r, s in part] for part, label in zip(test, (1, 0), strict=True))
    right = np.concatenate([recall, rejected]).mean()
    assert found["accuracy_relation_thresholds"] == pytest.approx(right)
    balanced = (np.mean(recall) + np.mean(rejected)) / 2
    assert found["balanced_accuracy_relation_thresholds"] == pytest.approx(balanced)
    if kind == "relation":
        assert found["accuracy"] == found["accuracy_relation_thresholds"]


def test_one_threshold_is_for_all_relations():
    made = with_valid(family(), *BOTH)
    found = fit_thresholds(scored(made), made, criterion="f1")
    assert (found.kind, found.criterion, found.relations) == ("global", "f1", {})
    asked = np.array([(0, 0, 0), (0, 2, 0)], dtype=np.int32)
    assert found.predict(asked, [found.value, found.value - 1]).tolist() == [True, False]


@pytest.mark.parametrize("kind", ["global", "relation"])
def test_thresholds_are_the_same_after_json(kind):
    made = with_valid(family(), *BOTH)
    found = fit_thresholds(scored(made), made, kind)
    again = Thresholds.from_dict(json.loads(json.dumps(found.as_dict())), made)
    assert again == found
    asked = np.array([(0, 0, 0), (0, 1, 0), (0, 2, 0)], dtype=np.int32)
    assert again.of(asked).tolist() == found.of(asked).tolist()


def test_without_valid_a_threshold_must_be_given():
    made = family(valid=False)
    with pytest.raises(InputError, match="no positives in valid"):
        fit_thresholds(scored(made), made)
    given_ = Thresholds.fixed(0.5)
    assert given_.as_dict() == {"kind": "global", "criterion": None, "value": 0.5}
    assert given_.predict(made.positives.test, [0.5, 0.4, 0.6]).tolist() == [True, False, True]
    with pytest.raises(InputError, match="finite"):
        Thresholds.fixed(math.nan)


def test_without_negatives_no_threshold_can_be_chosen():
    made = replace(family(), negatives={})
    scores = LabelledScores(np.ones(1), np.ones(0))
    with pytest.raises(InputError, match="no negatives in valid"):
        fit_thresholds(Predictions(None, scores, scores), made)


@pytest.mark.parametrize(
    "given_",
    [
        {},
        {"kind": "global"},
        {"kind": "everywhere", "value": 1},
        {"kind": "global", "value": "high"},
        {"kind": "global", "value": 1, "criterion": "luck"},
        {"kind": "relation", "value": 1, "relations": {"likse": 2}},
        {"kind": "relation", "value": 1, "relations": [1]},
        {"kind": "global", "value": math.inf},
    ],
)
def test_what_describes_no_thresholds_is_refused(given_):
    with pytest.raises(InputError):
        Thresholds.from_dict(given_, family())
