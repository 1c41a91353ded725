"""Confidences of scores, against scikit-learn: how they are fitted, what they keep, and how good they are."""

import json
import math
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from tests.support.made_up_benchmarks import family

from loginfer.errors import InputError
from loginfer.evaluation import Calibration, LabelledScores, evaluate, load_run
from loginfer.evaluation.metric_table import METRICS
from loginfer.evaluation.metrics import classification
from loginfer.evaluation.seeds import summarise
from loginfer.evaluation.thresholds import FOLDS, RELIABILITY_BINS, reliability

few = st.integers(-3, 3).map(float)
any_number = st.one_of(few, st.floats(allow_nan=False))
lists = st.one_of(st.lists(few, min_size=1, max_size=25), st.lists(any_number, min_size=1, max_size=25))


def labelled(positive, negative):
    return LabelledScores(np.array(positive, dtype=np.float64), np.array(negative, dtype=np.float64))


def drawn(seed, size, kind):
    """Labelled scores: with log-odds on a line, or in a step."""
    draw = np.random.default_rng(seed)
    scores = draw.normal(0, 2, size).round(2)
    chance = 1 / (1 + np.exp(1 - scores)) if kind == "line" else np.where(scores > 1.5, 0.9, 0.2)
    true = draw.random(size) < chance
    return labelled(scores[true], scores[~true])


# -- metrics ---------------------------------------------------------------------------------------

confidences = st.lists(st.one_of(st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.floats(0, 1)), min_size=1, max_size=40)


@given(confidences, confidences)
@settings(max_examples=100)
def test_brier_score_and_calibration_error_are_those_of_scikit_learn(positive, negative):
    p, n = np.array(positive), np.array(negative)
    found = classification(p, n, p > 0.5, n > 0.5, group="calibration")
    truth, confidence = np.repeat([1, 0], [len(p), len(n)]), np.concatenate([p, n])
    assert found["brier_score"] == pytest.approx(brier_score_loss(truth, confidence))

    shares, means = calibration_curve(truth, confidence, strategy="quantile", n_bins=RELIABILITY_BINS)
    counts, our_means, our_shares = reliability(truth, confidence)
    assert (our_means, our_shares) == (pytest.approx(means), pytest.approx(shares))
    assert counts.sum() == len(truth)
    error = sum(count * abs(m - s) for count, m, s in zip(counts, means, shares, strict=True)) / len(truth)
    assert found["calibration_error"] == pytest.approx(error)


def test_bins_hold_equal_numbers_but_for_equal_confidences():
    truth = np.arange(100) % 2
    assert reliability(truth, np.arange(100) / 100)[0].tolist() == [10] * RELIABILITY_BINS
    assert reliability(truth, np.repeat([0.1, 0.9], 50))[0].tolist() == [50, 50]
    counts, means, shares = reliability(truth, np.full(100, 0.7))
    assert (counts.tolist(), means.tolist(), shares.tolist()) == ([100], [pytest.approx(0.7)], [0.5])


def test_the_best_error_is_the_smallest():
    assert [name for name, metric in METRICS.items() if metric.lower_is_better] == [
        "brier_score", "calibration_error", "mr",
    ]  # fmt: skip


# -- fitting ---------------------------------------------------------------------------------------


@given(lists, lists, st.lists(any_number, max_size=20))
@settings(max_examples=60, deadline=None)
def test_confidences_lie_between_0_and_1_and_never_fall(positive, negative, others):
    made = Calibration.of(labelled(positive, negative))
    scores = np.sort([*positive, *negative, *others, -math.inf, math.inf])
    found = made.confidence(scores)
    assert ((found > 0) & (found < 1)).all() or made.kind == "platt"
    assert ((found >= 0) & (found <= 1)).all()
    # Rounding may take the last bit where neighbours differ in it alone.
    assert (np.diff(found) >= -1e-12).all()
    again = Calibration.from_dict(json.loads(json.dumps(made.as_dict(), allow_nan=False)))
    assert again.confidence(scores).tolist() == found.tolist()


@pytest.mark.parametrize("kind", ["line", "step"])
@pytest.mark.parametrize("size", [9, 40, 500])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_mapping_is_that_of_scikit_learn_with_the_lower_log_loss_on_left_out_triples(kind, size, seed):
    scores, true = (valid := drawn(seed, size, kind)).labelled
    assert 0 < true.sum() < size
    fold = np.empty(size, dtype=int)
    fold[np.lexsort((true, scores))] = np.arange(size) % FOLDS

    def targets(true):
        return (true.sum() + 1) / (true.sum() + 2), 1 / ((~true).sum() + 2)

    def platt(scores, true, asked):
        high, low = targets(true)
        weights = np.where(true, high, low)
        rows, labels = np.tile(scores, 2)[:, None], np.repeat([1, 0], len(scores))
        model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
        model.fit(rows, labels, sample_weight=np.concatenate([weights, 1 - weights]))
        if model.coef_[0, 0] < 0:
            return np.full(len(asked), weights.mean())
        return model.predict_proba(asked.clip(scores.min(), scores.max())[:, None])[:, 1]

    def isotonic(scores, true, asked):
        high, low = targets(true)
        model = IsotonicRegression(out_of_bounds="clip").fit(scores, np.where(true, high, low))
        at = np.array([max(scores[scores <= score], default=scores.min()) for score in asked])  # steps, not slopes
        return model.predict(at)

    losses = {}
    for fit in (platt, isotonic):
        left_out = np.empty(size)
        for number in range(FOLDS):
            out = fold == number
            left_out[out] = fit(scores[~out], true[~out], scores[out]) if out.any() else 0
        losses[fit] = log_loss(true, left_out, labels=[0, 1])
    found = Calibration.of(valid)
    best = min((platt, isotonic), key=losses.get)
    assert found.kind == best.__name__
    assert found.confidence(scores) == pytest.approx(best(scores, true, scores), abs=2e-4)
    if size == 500:
        assert found.kind == {"line": "platt", "step": "isotonic"}[kind]


def test_scores_of_0_and_1_get_the_shares_of_positives():
    made = Calibration.of(labelled([1.0] * 30 + [0.0] * 10, [0.0] * 36 + [1.0] * 4))
    high, low = 41 / 42, 1 / 42
    wanted = [(10 * high + 36 * low) / 46, (30 * high + 4 * low) / 34]
    assert made.confidence([0.0, 1.0]) == pytest.approx(wanted, abs=1e-5)
    assert len(made.scores) == 2


def test_scores_that_say_nothing_or_the_opposite_get_one_confidence():
    for valid in (labelled([2.0], [2.0, 2.0]), labelled([0.0, 1.0], [5.0, 6.0])):
        found = Calibration.of(valid).confidence([-math.inf, 0.0, 2.0, 9.0])
        share = len(valid.positive) / len(valid)
        assert np.ptp(found) == pytest.approx(0, abs=1e-9)
        assert abs(found[0] - 0.5) <= abs(share - 0.5) + 1e-6


def test_impossible_triples_do_not_spoil_the_confidences_of_others():
    valid = drawn(3, 400, "line")
    impossible = replace(valid, negative=np.append(valid.negative, [-1e300] * 5))
    kept = labelled(impossible.positive, impossible.negative)
    error = np.abs(Calibration.of(kept).confidence([-2.0, 0.0, 2.0]) - Calibration.of(valid).confidence([-2, 0, 2]))
    assert error.max() < 0.12


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"kind": "platt", "scores": [1.0, 2.0], "log_odds": [0.0]},
        {"kind": "isotonic", "scores": [], "log_odds": []},
        {"kind": "isotonic", "scores": [1.0, 0.0], "log_odds": [0.0, 1.0]},
        {"kind": "isotonic", "scores": [0.0, 1.0], "log_odds": [1.0, 0.0]},
        {"kind": "isotonic", "scores": [0.0, 1.0], "log_odds": [1.0]},
        {"kind": "platt", "scores": [0.0, math.inf], "log_odds": [0.0, 1.0]},
        {"kind": "guess", "scores": [0.0, 1.0], "log_odds": [0.0, 1.0]},
        {"kind": ["platt"], "scores": 1.0, "log_odds": 2.0},
        {"kind": "isotonic", "scores": [[0.0]], "log_odds": [[0.0]]},
        {"kind": "isotonic", "scores": ["low"], "log_odds": [0.0]},
    ],
)
def test_what_describes_no_calibration_is_refused(wrong):
    with pytest.raises(InputError, match="no description of a calibration"):
        Calibration.from_dict(wrong)


# -- runs ------------------------------------------------------------------------------------------


def test_a_run_keeps_what_makes_confidences_of_scores(tmp_path):
    benchmark = family(methods=("pa",))
    made = evaluate(benchmark, "simpbl", out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    test = made.outcome.predictions.test
    truth, confidence = test.labelled[1], run.calibration().confidence(test.labelled[0])
    assert made.metrics["brier_score"] == run.metrics()["metrics"]["brier_score"]
    assert made.metrics["brier_score"] == pytest.approx(brier_score_loss(truth, confidence))
    assert run.as_dict()["calibration"] == made.as_dict()["calibration"] == run.calibration().as_dict()


def test_without_positives_in_valid_there_are_no_confidences(tmp_path):
    made = evaluate(family(valid=False), "simpbl", negatives="pa", out=tmp_path / "run")
    assert load_run(tmp_path / "run").calibration() is None
    assert made.metrics["brier_score"] is made.metrics["balanced_accuracy_relation_thresholds"] is None
    assert made.metrics["accuracy"] is not None


def test_runs_of_earlier_versions_are_read_and_summarised(tmp_path):
    made = evaluate(family(), "simpbl", negatives="pa", out=tmp_path / "run").as_dict()
    path = tmp_path / "run" / "metrics.json"
    older = json.loads(path.read_bytes())
    del older["calibration"]
    for name in ("brier_score", "calibration_error", *(n for n in older["metrics"] if n.endswith("_thresholds"))):
        del older["metrics"][name]
    path.write_text(json.dumps(older))
    run = load_run(tmp_path / "run", verify=False)
    assert run.calibration() is None
    both = summarise([made, run.as_dict() | {"seed": 1}])
    assert "brier_score" not in both["metrics"]
    assert summarise([made, made | {"seed": 1}])["deviation"]["metrics"]["brier_score"] == 0


@pytest.mark.data
def test_rulen_gains_six_points_by_relation_thresholds_on_a_file_of_the_paper(data_folder, tmp_path):
    archive = data_folder / "released" / "LogInfer-WN-trian-qg.tar.gz"
    if not archive.exists():
        pytest.skip("needs the paper's own folders")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    found = evaluate(tmp_path / "LogInfer-WN-trian-qg", "rulen", ranking=(), diagnosis=False).metrics
    assert found["accuracy"] == pytest.approx(0.887, abs=0.015)
    assert found["accuracy_relation_thresholds"] == pytest.approx(0.945, abs=0.015)
    assert found["brier_score"] < 0.1
    assert found["calibration_error"] < 0.03
