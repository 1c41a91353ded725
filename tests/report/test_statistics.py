"""Intervals over seeds and over test triples, against plain resampling and scikit-learn."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk
from tests.support.made_up_benchmarks import family

from loginfer.evaluation import evaluate, load_run
from loginfer.report.collection import Cell, collect
from loginfer.report.statistics import (
    DECISION_METRICS,
    Decisions,
    decision_metrics,
    decisions_of,
    grouped_scores,
    resampled_auc,
    seed_interval,
    triple_intervals,
)


class FakeCell(Cell):
    """A cell with the values of a metric, without any runs."""

    def __init__(self, values):
        super().__init__("system", "benchmark", ())
        object.__setattr__(self, "known", list(values))

    def values(self, metric, protocol=None):
        return self.known


def made_up(positives=150, negatives=90, shift=1.0, digits=1):
    draw = np.random.default_rng(0)
    positive, negative = draw.normal(shift, 1, positives), draw.normal(0, 1, negatives)
    positive, negative = positive.round(digits), negative.round(digits)
    return Decisions(positive, negative, positive >= shift / 2, negative >= shift / 2)


def of_sklearn(decisions):
    truth = [1] * len(decisions.positive) + [0] * len(decisions.negative)
    said = np.concatenate([decisions.predicted_positive, decisions.predicted_negative])
    return {
        "balanced_accuracy": sk.balanced_accuracy_score(truth, said),
        "accuracy": sk.accuracy_score(truth, said),
        "f1": sk.f1_score(truth, said, zero_division=0),
        "precision": sk.precision_score(truth, said, zero_division=0),
        "recall": sk.recall_score(truth, said),
        "roc_auc": sk.roc_auc_score(truth, np.concatenate([decisions.positive, decisions.negative])),
    }


def plain(decisions):
    """The same by counting, which is quick enough for many resamples."""
    tp, fp = decisions.predicted_positive.sum(), decisions.predicted_negative.sum()
    positives, negatives = len(decisions.positive), len(decisions.negative)
    apart = decisions.positive[:, None] - decisions.negative
    return {
        "balanced_accuracy": tp / positives / 2 + (negatives - fp) / negatives / 2,
        "accuracy": (tp + negatives - fp) / (positives + negatives),
        "f1": 2 * tp / (tp + fp + positives),
        "precision": tp / (tp + fp),
        "recall": tp / positives,
        "roc_auc": ((apart > 0) + (apart == 0) / 2).mean(),
    }


def resampled(decisions, draw):
    """One resample, triple by triple."""
    there = draw.integers(len(decisions.positive), size=len(decisions.positive))
    missing = draw.integers(len(decisions.negative), size=len(decisions.negative))
    return Decisions(
        decisions.positive[there],
        decisions.negative[missing],
        decisions.predicted_positive[there],
        decisions.predicted_negative[missing],
    )


# -- seeds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[], [0.7]])
def test_fewer_than_two_seeds_have_no_interval(values):
    assert seed_interval(FakeCell(values), "f1") is None


def test_the_interval_of_two_seeds_is_from_one_to_the_other():
    found = seed_interval(FakeCell([0.8, 0.6]), "f1")
    assert (found.low, found.high, found.over, found.count) == (0.6, 0.8, "seeds", 2)


def test_the_interval_of_four_seeds_is_that_of_all_resamples():
    values = [0.5, 0.53, 0.61, 0.9]
    every = [np.mean(drawn) for drawn in itertools.product(values, repeat=4)]
    found = seed_interval(FakeCell(values), "f1")
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(every, [0.025, 0.975])), abs=0.03)
    assert found == seed_interval(FakeCell(values), "f1")


# -- metrics ------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_decision_metrics_are_those_of_scikit_learn(positives, negatives, data):
    tp, fp = data.draw(st.integers(0, positives)), data.draw(st.integers(0, negatives))
    said = Decisions(np.zeros(positives), np.zeros(negatives), np.arange(positives) < tp, np.arange(negatives) < fp)
    found = decision_metrics(np.array([tp]), np.array([fp]), positives, negatives)
    assert set(found) == set(DECISION_METRICS)
    wanted = of_sklearn(said)
    for name, values in found.items():
        assert values[0] == pytest.approx(wanted[name]), name


SCORES = st.lists(st.integers(0, 12).map(float), min_size=1, max_size=40).map(np.array)


@settings(max_examples=50)
@given(SCORES, SCORES, st.sampled_from([1, 2, 5, 100]))
def test_the_area_does_not_depend_on_how_scores_are_grouped(positive, negative, groups):
    there, missing, inner = grouped_scores(positive, negative, groups)
    assert (there.sum(), missing.sum()) == (len(positive), len(negative))
    assert len(there) <= groups
    found = resampled_auc(there[None, :], missing[None, :], inner)[0]
    truth = [1] * len(positive) + [0] * len(negative)
    assert found == pytest.approx(sk.roc_auc_score(truth, np.concatenate([positive, negative])))


def test_areas_of_resamples_are_those_of_weighted_triples():
    decisions, draw = made_up(), np.random.default_rng(1)
    values = np.unique(np.concatenate([decisions.positive, decisions.negative]))
    weights = [draw.integers(0, 4, len(values)) for _ in range(2)]
    found = resampled_auc(weights[0][None, :], weights[1][None, :], np.full(len(values), 0.5))[0]
    truth = [1] * len(values) + [0] * len(values)
    wanted = sk.roc_auc_score(truth, np.tile(values, 2), sample_weight=np.concatenate(weights))
    assert found == pytest.approx(wanted)


# -- triples ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shift", "digits"), [(1, 1), (0.5, 9), (3.5, 9)])
def test_intervals_over_triples_are_those_of_resampling_triple_by_triple(shift, digits):
    decisions = made_up(shift=shift, digits=digits)
    found = triple_intervals(decisions, "system", "benchmark")
    draw = np.random.default_rng(2)
    drawn = [plain(resampled(decisions, draw)) for _ in range(1000)]
    exact = of_sklearn(decisions)
    assert plain(decisions) == pytest.approx(exact)
    assert set(found) == {*DECISION_METRICS, "roc_auc"}
    for name, interval in found.items():
        low, high = np.quantile([each[name] for each in drawn], [0.025, 0.975])
        assert interval.low <= exact[name] <= interval.high
        assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.15 * (high - low)), name
        assert (interval.over, interval.count) == ("triples", 240)


def test_intervals_depend_on_the_names_and_on_nothing_else():
    decisions = made_up()
    assert triple_intervals(decisions, "a", "b") == triple_intervals(decisions, "a", "b")
    assert triple_intervals(decisions, "a", "b") != triple_intervals(decisions, "a", "c")


def test_without_triples_of_both_labels_there_are_no_intervals():
    assert triple_intervals(made_up(negatives=0)) == {}
    assert triple_intervals(made_up(positives=0)) == {}


def test_without_a_threshold_there_is_only_the_area():
    decisions = dataclasses.replace(made_up(), predicted_positive=None, predicted_negative=None)
    assert set(triple_intervals(decisions)) == {"roc_auc"}
    assert decisions.right is None


# -- runs ---------------------------------------------------------------------------------------


def test_decisions_of_a_run_give_its_metrics(small_runs):
    for cell in collect([small_runs]).cells:
        for run in cell.runs:
            known = run.metrics()["metrics"]
            for name, value in of_sklearn(decisions_of(run)).items():
                assert value == pytest.approx(known[name]), (run.path, name)


def test_relations_keep_their_own_thresholds(tmp_path):
    made = evaluate(
        family(), "transe", settings={"epochs": 2}, negatives="qg", threshold="relation", out=tmp_path / "r"
    )
    assert made.measures.thresholds.kind == "relation"
    found = of_sklearn(decisions_of(load_run(tmp_path / "r")))
    for name, value in found.items():
        assert value == pytest.approx(made.metrics[name]), name


def test_a_run_without_thresholds_has_no_decisions(tmp_path):
    evaluate(family(valid=False), "transe", settings={"epochs": 1}, negatives="pa", out=tmp_path / "r")
    decisions = decisions_of(load_run(tmp_path / "r"))
    assert decisions.right is None
    assert len(decisions.positive)
