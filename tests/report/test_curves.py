"""ROC and precision-recall curves, and histograms of scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from loginfer.report.scores import BINS, MAX_POINTS, TOLERANCE, bins_of, precision_recall, roc


def samples():
    random = np.random.default_rng(3)
    yield "normal", random.normal(1, 1, 900), random.normal(0, 1, 1100)
    yield "with ties", random.integers(0, 7, 50).astype(float), random.integers(0, 5, 40).astype(float)
    yield "zeros and ones", np.array([1.0, 1, 0, 1]), np.array([0.0, 0, 1])
    yield "skewed", random.pareto(0.3, 700), random.pareto(0.5, 700)
    yield "apart", np.arange(10.0) + 100, np.arange(12.0)
    yield "upside down", np.arange(10.0), np.arange(12.0) + 100
    yield "large", random.normal(0, 1e307, 100), random.normal(0, 1e307, 100)
    yield "near", 1 + np.arange(60) * 2.0**-52, 1 + np.arange(60) * 2.0**-52
    yield "one each", np.array([0.3]), np.array([0.3])


SAMPLES = list(samples())
NAMES = [name for name, _, _ in SAMPLES]


def labelled(positive, negative):
    return np.r_[np.ones(len(positive)), np.zeros(len(negative))], np.r_[positive, negative]


@pytest.mark.parametrize(("name", "positive", "negative"), SAMPLES, ids=NAMES)
def test_areas_are_those_of_scikit_learn(name, positive, negative) -> None:
    labels, scores = labelled(positive, negative)
    assert roc(positive, negative).area == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    area = precision_recall(positive, negative).area
    assert area == pytest.approx(average_precision_score(labels, scores), abs=1e-12)


def distances(x, y, points):
    """How far each point is from a line through others, by brute force."""
    segments = np.stack([x[:-1], y[:-1], x[1:], y[1:]], 1)
    found = []
    for px, py in points:
        a, b = segments[:, :2], segments[:, 2:]
        d = b - a
        square = (d**2).sum(1)
        t = np.where(square > 0, (([px, py] - a) * d).sum(1) / np.where(square > 0, square, 1), 0).clip(0, 1)
        found.append(np.hypot(*(a + t[:, None] * d - [px, py]).T).min())
    return np.array(found)


@pytest.mark.parametrize(("name", "positive", "negative"), SAMPLES, ids=NAMES)
@pytest.mark.parametrize("max_points", [10, MAX_POINTS])
def test_few_points_stay_as_near_to_the_exact_curve_as_they_say(name, positive, negative, max_points) -> None:
    labels, scores = labelled(positive, negative)
    fall_out, recall, _ = roc_curve(labels, scores, drop_intermediate=False)
    made = roc(positive, negative, max_points=max_points)
    assert len(made.x) <= max_points
    assert distances(made.x, made.y, zip(fall_out, recall, strict=True)).max() <= made.error + 1e-9
    precision, recall, _ = precision_recall_curve(labels, scores)
    made = precision_recall(positive, negative, max_points=max_points)
    assert len(made.x) <= max_points
    # scikit-learn adds a point for predicting nothing, which is no point of the curve.
    points = list(zip(recall[:-1], precision[:-1], strict=True))
    assert distances(made.x, made.y, points).max() <= made.error + 1e-9


def test_two_hundred_points_are_enough_for_thousands_of_scores() -> None:
    random = np.random.default_rng(0)
    positive, negative = random.normal(1, 1, 4000), random.normal(0, 1, 4000)
    made = roc(positive, negative)
    assert len(made.x) <= MAX_POINTS
    assert made.error < 5 * TOLERANCE
    drawn = np.sum(np.diff(made.x) * (made.y[1:] + made.y[:-1])) / 2
    assert drawn == pytest.approx(made.area, abs=0.005)
    made = precision_recall(positive, negative)
    drawn = np.sum(np.diff(made.x) * (made.y[1:] + made.y[:-1])) / 2
    assert drawn == pytest.approx(made.area, abs=0.005)


def test_curves_go_from_side_to_side() -> None:
    for _, positive, negative in SAMPLES:
        made = roc(positive, negative)
        assert (made.x[0], made.y[0], made.x[-1], made.y[-1]) == (0, 0, 1, 1)
        made = precision_recall(positive, negative)
        assert (made.x[0], made.x[-1]) == (0, 1)
        assert (np.diff(made.x) >= 0).all()


def test_without_negatives_there_is_no_roc_curve() -> None:
    some, none = np.array([0.1, 0.4]), np.array([])
    assert roc(some, none) is None
    assert roc(none, some) is None
    assert precision_recall(none, some) is None
    assert precision_recall(some, none).area == 1


# -- histograms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "positive", "negative"), SAMPLES, ids=NAMES)
@pytest.mark.parametrize("threshold", [None, -1000.0, 0.0, 0.25, 1.0, 5.5, 1e9])
def test_every_score_is_in_one_bin_and_the_threshold_between_two(name, positive, negative, threshold) -> None:
    bins = bins_of([positive, negative], threshold)
    labels = bins.labels()
    assert len(set(labels)) == len(labels) == len(bins)
    assert (np.diff(bins.edges) > 0).all()
    assert len(bins) <= BINS + 3
    for part in (positive, negative):
        counts = bins.counts(part)
        assert counts.sum() == len(part)
        if threshold is None:
            assert bins.mark is None
        else:
            assert counts[bins.mark :].sum() == (part >= threshold).sum()


def test_few_different_scores_have_a_bar_each() -> None:
    bins = bins_of([np.array([0.0, 1, 1]), np.array([0.0])], 0.5)
    assert (bins.layout, bins.labels(), bins.mark) == ("values", ["0", "1"], 1)
    assert bins.counts(np.array([0.0, 1, 1])).tolist() == [1, 2]


def test_skewed_scores_have_bins_with_equal_numbers() -> None:
    random = np.random.default_rng(1)
    even = bins_of([random.normal(size=5000)])
    assert even.layout == "width"
    assert np.diff(even.edges) == pytest.approx(np.diff(even.edges)[0])
    scores = np.exp(random.normal(0, 6, 5000))
    skewed = bins_of([scores], 1.0)
    assert skewed.layout == "number"
    assert np.sort(skewed.counts(scores))[-1] < 2 * 5000 / BINS
    assert "skewed" in skewed.axis_text


def test_a_score_that_many_share_takes_one_bin() -> None:
    random = np.random.default_rng(2)
    scores = np.r_[np.zeros(5000), random.pareto(0.2, 500)]
    bins = bins_of([scores], 1e-9)
    assert bins.layout == "number"
    assert bins.counts(scores)[0] == 5000


def test_labels_have_as_many_digits_as_they_need() -> None:
    assert bins_of([np.array([0.1234561, 0.1234562])]).labels() == ["0.1234561", "0.1234562"]
    assert bins_of([np.array([-2.0, -0.0])]).labels() == ["−2", "0"]
