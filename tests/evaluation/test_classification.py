"""Classification metrics, against their definitions by loops."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.evaluation.breakdown import LabelledRows, group_metrics
from loginfer.evaluation.metric_table import metric_titles
from loginfer.evaluation.metrics import classification

METRICS = tuple(metric_titles("classification"))

scores = st.lists(st.integers(0, 4).map(float), max_size=12)


def by_loops(positive, negative, threshold):
    tp, fp = sum(s >= threshold for s in positive), sum(s >= threshold for s in negative)
    tn, fn = len(negative) - fp, len(positive) - tp
    found = dict.fromkeys(METRICS)
    if positive or negative:
        found["accuracy"] = (tp + tn) / (len(positive) + len(negative))
    if positive:
        found["precision"] = tp / (tp + fp) if tp + fp else 0.0
        found["recall"] = tp / len(positive)
        found["f1"] = 2 * tp / (2 * tp + fp + fn)
        # The mean over the positives of the precision among all triples with a score at least as high.
        found["average_precision"] = sum(
            sum(p >= s for p in positive) / sum(x >= s for x in (*positive, *negative)) for s in positive
        ) / len(positive)
    if positive and negative:
        found["balanced_accuracy"] = (tp / len(positive) + tn / len(negative)) / 2
        pairs = [1.0 if p > n else 0.5 if p == n else 0.0 for p in positive for n in negative]
        found["roc_auc"] = sum(pairs) / len(pairs)
    return found, {"tp": tp, "fp": fp, "tn": tn, "fn": fn}


@given(scores, scores, st.integers(0, 5))
@settings(max_examples=60)
def test_metrics_are_those_of_the_definitions(positive, negative, threshold):
    p, n = np.array(positive), np.array(negative)
    found = classification(p, n, p >= threshold, n >= threshold)
    expected, counts = by_loops(positive, negative, threshold)
    assert list(found) == list(METRICS)
    assert found == pytest.approx(expected, abs=1e-12)
    rows = LabelledRows(p, n, p >= threshold, n >= threshold)
    (all_of_them,) = group_metrics(rows, np.zeros(len(rows), dtype=np.int64), np.arange(len(rows)), 1)
    assert {name: all_of_them[name] for name in counts} == counts


def test_a_perfect_system_has_one_everywhere():
    p, n = np.array([0.9, 0.8]), np.array([0.1, 0.2, 0.3])
    assert classification(p, n, p > 0.5, n > 0.5) == dict.fromkeys(METRICS, 1.0)


def test_confidences_count_for_the_curves_and_decisions_for_the_rest():
    p, n = np.array([0.9, 0.8]), np.array([0.1, 0.2])
    found = classification(p, n, np.array([False, False]), np.array([True, False]))
    assert (found["roc_auc"], found["average_precision"]) == (1.0, 1.0)
    assert (found["balanced_accuracy"], found["precision"]) == (0.25, 0.0)


def test_heavy_libraries_are_loaded_only_when_used():
    modules = ("thresholds", "metric_table", "metrics", "breakdown", "diagnosis")
    program = "import sys\n" + "".join(f"import loginfer.evaluation.{name}\n" for name in modules)
    program += "print(*[name for name in ('sklearn', 'numba', 'torch', 'scipy', 'pyarrow') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
