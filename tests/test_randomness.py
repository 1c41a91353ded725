"""Randomness depends on the seed and the stage alone, and is fair."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from loginfer.randomness import generator, hash_order, salt


def test_stages_have_numbers_of_their_own_that_never_change():
    assert generator(0, "head", "x").integers(2**32, size=2).tolist() == [3992891869, 108626804]
    assert salt(0, "positives", "r") == salt(0, "positives", "r")
    assert len({salt(seed, stage) for seed in range(50) for stage in "abc"}) == 150


@given(keys=st.lists(st.integers(0, 2**62), unique=True), seed=st.integers(0, 2**64 - 1), data=st.data())
def test_hash_order_does_not_depend_on_the_order_of_the_keys(keys, seed, data):
    shuffled = data.draw(st.permutations(keys))
    first = np.array(keys, dtype=np.int64)
    second = np.array(shuffled, dtype=np.int64)
    ordered = first[hash_order(first, seed)]
    assert ordered.tolist() == second[hash_order(second, seed)].tolist()
    assert sorted(ordered.tolist()) == sorted(keys)
    count = data.draw(st.integers(0, len(keys) + 2))
    assert first[hash_order(first, seed, count)].tolist() == ordered[:count].tolist()


def test_every_key_is_as_likely_to_be_sampled_as_any_other():
    keys = np.arange(40, dtype=np.int64)
    drawn = np.zeros(40)
    for seed in range(3000):
        drawn[hash_order(keys, salt(seed, "test"), 8)] += 1
    # Eight of forty are drawn each time, so the counts vary a little less than independent ones.
    assert stats.chisquare(drawn).pvalue > 1e-3
    assert drawn.std() > 10
