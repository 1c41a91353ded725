"""The regression against another optimiser, and what is done with rows and columns before it."""

import numpy as np
import pytest
from scipy.optimize import minimize

from loginfer.systems.contrast.fit import Design, Head, HeadRows, fit, logistic_l1, offset_for, pruned
from loginfer.systems.contrast.kernels import TRAIN_NEGATIVE, TRAIN_POSITIVE, VALID_NEGATIVE, VALID_POSITIVE


def design_of(matrix):
    rows, columns = np.nonzero(matrix)
    pairs = np.stack([rows, columns], axis=1).astype(np.int32)
    return Design.of_pairs(np.arange(matrix.shape[1], dtype=np.int64), pairs, len(matrix))


@pytest.mark.parametrize("seed", range(4))
def test_weights_are_those_of_a_bounded_minimisation(seed):
    random = np.random.default_rng(seed)
    matrix = random.random((60, 8)) < 0.3
    signs = np.where(matrix[:, 0] | (random.random(60) < 0.3), 1.0, -1.0)
    costs, penalties = random.random(60) + 0.5, np.full(8, 1.5)
    design, weights = design_of(matrix), np.zeros(9)
    logistic_l1(design.pointers, design.rows, signs, costs, penalties, weights, 1e-9, 10_000)

    def loss(at):
        return costs @ np.logaddexp(0, -signs * (matrix @ at[:-1] + at[-1])) + penalties @ at[:-1]

    bounds = [(0, None)] * 8 + [(None, None)]
    best = minimize(loss, np.zeros(9), bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-14})
    assert loss(weights) == pytest.approx(best.fun, abs=1e-5)
    assert weights[:-1].min() >= 0


def test_joining_equal_rows_changes_no_weight():
    random = np.random.default_rng(5)
    matrix = random.random((200, 4)) < 0.4
    signs = np.where(random.random(200) < 0.5, 1.0, -1.0)
    design = design_of(matrix)
    joined, became, first = design.with_equal_rows_joined(signs)
    assert joined.size == len(np.unique(np.column_stack([matrix, signs]), axis=0))
    found = []
    for one, sign, cost in (
        (design, signs, np.ones(200)),
        (joined, signs[first], np.bincount(became, minlength=joined.size).astype(float)),
    ):
        weights = np.zeros(5)
        logistic_l1(one.pointers, one.rows, sign, cost, np.ones(4), weights, 1e-9, 10_000)
        found.append(weights)
    assert found[0] == pytest.approx(found[1], abs=1e-5)


def test_of_bodies_that_fire_for_the_same_rows_the_shortest_stays():
    matrix = np.array([[1, 1, 0, 1], [0, 0, 1, 0], [1, 1, 1, 1]], dtype=bool)
    kept = design_of(matrix).without_repetition(np.array([3, 1, 2, 1]))
    assert kept.codes.tolist() == [1, 2]
    assert kept.column(0).tolist() == [0, 2]


def test_the_offset_balances_positives_and_negatives():
    margins, signs = np.zeros(4), np.array([1.0, 1.0, 1.0, -1.0])
    assert offset_for(margins, signs, np.ones(4), 0.0) == pytest.approx(np.log(3))
    assert 0 < offset_for(margins, signs, np.ones(4), 5.0) < np.log(3)


def test_a_conjunction_is_preferred_to_its_parts_and_needless_bodies_are_dropped():
    """Bodies 0 and 1 together, which is body 2, make a row positive; body 3 is chance."""
    random = np.random.default_rng(1)
    matrix = random.random((900, 4)) < 0.5
    matrix[:, 2] = matrix[:, 0] & matrix[:, 1]
    signs = np.where(matrix[:, 2], 1, -1)
    train = np.arange(900) < 600
    groups = np.where(
        train, np.where(signs > 0, TRAIN_POSITIVE, TRAIN_NEGATIVE), np.where(signs > 0, VALID_POSITIVE, VALID_NEGATIVE)
    )
    rows = HeadRows(Head(0), np.zeros((900, 2), dtype=np.int32), groups.astype(np.int64))
    design = design_of(matrix)
    parts = fit(design.take(np.array([0, 1, 3])), np.ones(3, dtype=np.int64), rows)
    assert parts.accuracy == 1
    assert parts.alone < 0.9
    whole = pruned(fit(design, np.array([1, 1, 2, 1]), rows, parts), rows)
    assert whole.alone == 1
    assert whole.design.codes.tolist() == [2]
