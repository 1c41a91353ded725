"""What a verdict needs, and how correlation is counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.evaluation.diagnosis import Diagnosis, Shortcut, diagnose_rule, spearman


def verdict(conclusions, predicted, *shortcuts):
    found = diagnose_rule("rule", None, conclusions, predicted, shortcuts, len(shortcuts))
    return found.verdict, None if found.instead is None else found.instead.text


def known(text, witnesses, predicted, size=(1, 1), needed=True):
    return Shortcut("sub-rule", text, size, witnesses, predicted, needed)


def test_verdicts_need_enough_conclusions_and_a_high_recall():
    fine = known("a", 10, 0)
    assert verdict(4, 4, fine) == ("not testable", None)
    assert verdict(0, 0) == ("not testable", None)
    assert verdict(10, 4, fine) == ("not learned", None)
    assert verdict(10, 5, fine) == ("in part", None)
    assert verdict(10, 7, fine) == ("in part", None)
    assert verdict(10, 8, fine) == ("learned", None)


def test_the_rates_of_shortcuts_decide_where_recall_is_high():
    assert verdict(10, 10, known("a", 10, 2)) == ("learned", None)
    assert verdict(10, 10, known("a", 10, 3)) == ("in part", None)
    assert verdict(10, 10, known("a", 10, 5)) == ("shortcut", "a")
    # Too few witnesses say nothing.
    assert verdict(10, 10, known("a", 4, 4)) == ("untested", "a")
    assert verdict(10, 10, known("a", 4, 4, needed=False)) == ("learned", None)
    assert verdict(10, 10, known("a", 4, 4), known("b", 10, 3)) == ("in part", None)


def test_of_several_shortcuts_the_simplest_is_named():
    long, short = known("long", 10, 10, size=(2, 2)), known("short", 10, 6, size=(1, 2))
    assert verdict(10, 10, long, short) == ("shortcut", "short")
    assert verdict(10, 10, long, known("short", 10, 1)) == ("shortcut", "long")
    # Equally simple: the one with the higher rate.
    assert verdict(10, 10, short, known("worse", 10, 9, size=(1, 2))) == ("shortcut", "worse")
    untested = (known("b", 0, 0, size=(2, 2)), known("a", 1, 0))
    assert verdict(10, 10, *untested) == ("untested", "a")


def test_a_summary_counts_in_words():
    rules = [
        diagnose_rule("r", None, n, p, [known("s", w, w)], 1)
        for n, p, w in [(9, 9, 9), (9, 9, 0), (9, 1, 9), (1, 1, 9)]
    ]
    assert Diagnosis(tuple(rules)).summary()[0] == (
        "of 4 rules: 1 learned as far as the negatives tell, 1 replaced by a shortcut, 1 not learned, "
        "1 with too few conclusions to tell"
    )


# -- correlation -----------------------------------------------------------------------------------

pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=20)


@given(pairs)
@settings(max_examples=50)
def test_correlation_is_spearmans_with_ties(values):
    stats = pytest.importorskip("scipy.stats")
    a, b = np.array(values, dtype=float).T
    found = spearman(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(float(stats.spearmanr(a, b).statistic), abs=1e-12)


def test_nothing_has_no_correlation():
    assert spearman(np.zeros(0), np.zeros(0)) is None
    assert spearman(np.ones(1), np.ones(1)) is None
