"""McNemar's test, Holm's correction and paired intervals, against scipy and plain resampling."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from loginfer.report.statistics import (
    DECISION_METRICS,
    Decisions,
    auc_difference,
    decision_differences,
    holm,
    mcnemar,
    pairs_of,
)


def made_up(seed, shift, positives=120, negatives=80):
    draw = np.random.default_rng(seed)
    positive, negative = draw.normal(shift, 1, positives).round(1), draw.normal(0, 1, negatives).round(1)
    return Decisions(positive, negative, positive >= shift / 2, negative >= shift / 2)


TRUTH = [1] * 120 + [0] * 80


def balanced(decisions):
    return balanced_accuracy_score(TRUTH, np.concatenate([decisions.predicted_positive, decisions.predicted_negative]))


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial_test(first, second):
    wanted = binomtest(first, first + second, 0.5).pvalue if first + second else 1.0
    assert float(mcnemar(first, second)) == pytest.approx(wanted)


def test_mcnemar_takes_thousands_of_disagreements():
    found = mcnemar([0, 5000, 4000], [5000, 0, 4100])
    assert found[0] == found[1] < 1e-300
    assert found[2] == pytest.approx(binomtest(4000, 8100, 0.5).pvalue)


def by_definition(p):
    """Holm: the i-th smallest is multiplied by how many are left, and never below a smaller one."""
    found = {}
    ordered = sorted(range(len(p)), key=lambda place: p[place])
    for i, place in enumerate(ordered):
        found[place] = min(1.0, max((len(p) - j) * p[ordered[j]] for j in range(i + 1)))
    return [found[place] for place in range(len(p))]


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_follows_its_definition(p):
    assert holm(p).tolist() == pytest.approx(by_definition(p))


def test_pairs_count_triples_that_one_decides_rightly():
    systems = {f"s{i}": made_up(i, shift) for i, shift in enumerate((2.0, 1.0, 0.9))}
    pairs = pairs_of(systems, "benchmark")
    assert [(pair.first, pair.second) for pair in pairs] == list(itertools.combinations(systems, 2))
    for pair in pairs:
        one, other = systems[pair.first].right, systems[pair.second].right
        only = [int(sum(a and not b for a, b in zip(x, y, strict=True))) for x, y in ((one, other), (other, one))]
        assert [pair.only_first, pair.only_second] == only
        assert pair.p == pytest.approx(binomtest(only[0], sum(only), 0.5).pvalue)
        assert pair.difference == pytest.approx(balanced(systems[pair.first]) - balanced(systems[pair.second]))
        assert pair.interval.low <= pair.difference <= pair.interval.high
    assert [pair.adjusted for pair in pairs] == pytest.approx(by_definition([pair.p for pair in pairs]))
    assert pairs[0].significant
    assert not pairs[2].significant
    assert pairs == pairs_of(systems, "benchmark")


def test_systems_without_a_threshold_are_not_compared():
    bare = Decisions(np.zeros(3), np.zeros(3), None, None)
    assert pairs_of({"a": made_up(0, 1), "b": bare}) == []
    assert decision_differences(made_up(0, 1), bare) == {}
    assert pairs_of({}) == []


def test_a_system_does_not_differ_from_itself():
    same = made_up(0, 1)
    (pair,) = pairs_of({"a": same, "b": same})
    assert (pair.p, pair.adjusted, pair.difference, pair.interval.low, pair.interval.high) == (1, 1, 0, 0, 0)
    difference, interval = auc_difference(same, same)
    assert (difference, interval.low, interval.high) == (0, 0, 0)


def test_paired_intervals_are_those_of_asking_both_about_the_same_triples():
    one, other = made_up(0, 1.5), made_up(1, 1.0)
    draw = np.random.default_rng(3)
    drawn = {"balanced_accuracy": [], "roc_auc": []}
    for _ in range(500):
        there, missing = draw.integers(120, size=120), draw.integers(80, size=80)
        values = []
        for each in (one, other):
            right = each.predicted_positive[there].mean() / 2 + (~each.predicted_negative[missing]).mean() / 2
            apart = each.positive[there][:, None] - each.negative[missing]
            values.append((right, ((apart > 0) + (apart == 0) / 2).mean()))
        for name, mine, theirs in zip(drawn, *values, strict=True):
            drawn[name].append(mine - theirs)
    found = decision_differences(one, other, "x")
    assert set(found) == set(DECISION_METRICS)
    for name, (difference, interval) in {**found, "roc_auc": auc_difference(one, other, "x")}.items():
        assert interval.low < difference < interval.high
        if name in drawn:
            low, high = np.quantile(drawn[name], [0.025, 0.975])
            assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.025), name


def test_the_difference_of_areas_is_that_of_scikit_learn():
    one, other = made_up(0, 1.5), made_up(1, 1.0)
    areas = [roc_auc_score(TRUTH, np.concatenate([each.positive, each.negative])) for each in (one, other)]
    assert auc_difference(one, other)[0] == pytest.approx(areas[0] - areas[1])
    assert auc_difference(made_up(0, 1, positives=0), made_up(0, 1, positives=0)) is None
