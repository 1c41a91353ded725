"""Twin accuracy: the share of pairs in which a conclusion has a higher score than its twin."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.made_up_benchmarks import couples, paired

from loginfer.cli.evaluate import print_figures
from loginfer.errors import InputError
from loginfer.evaluation import Evaluator, MetricOptions, evaluate, load_run
from loginfer.evaluation.breakdown import twin_figures, wilson
from loginfer.evaluation.evaluating import evaluate_scores
from loginfer.evaluation.metric_table import headlines, shown_metrics
from loginfer.evaluation.metrics import measure, pair_metrics
from loginfer.evaluation.predictions import LabelledScores, read_labelled
from loginfer.evaluation.runs import score_run
from loginfer.evaluation.score_files import read_scores
from loginfer.evaluation.seeds import summarise


def by_loops(positive, negative, twin, among=None):
    """The accuracy and the number of pairs, of all conclusions or of some; None without pairs."""
    points = [
        Fraction(1 if positive[row] > score else 0) + (Fraction(1, 2) if positive[row] == score else 0)
        for score, row in zip(negative, twin, strict=True)
        if row >= 0 and (among is None or row in among)
    ]
    return (float(sum(points) / len(points)) if points else None), len(points)


@st.composite
def labelled(draw):
    """Few distinct scores, so that there are ties; a conclusion may have several twins."""
    score = st.integers(0, 3).map(float)
    positive = draw(st.lists(score, max_size=8))
    twins = st.tuples(score, st.integers(-1, len(positive) - 1))
    negative = draw(st.lists(twins, max_size=8))
    return positive, [s for s, _ in negative], [row for _, row in negative]


def scores_of(positive, negative, twin):
    return LabelledScores(np.array(positive, dtype=float), np.array(negative, dtype=float), np.array(twin, dtype="i4"))


@given(labelled())
@settings(max_examples=100)
def test_it_is_that_of_the_definition(parts):
    share, _ = by_loops(*parts)
    assert pair_metrics(scores_of(*parts)) == ({} if share is None else {"twin_accuracy": share})


@given(labelled(), st.data())
@settings(max_examples=60)
def test_a_group_has_the_pairs_of_its_conclusions(parts, data):
    positive, negative, _ = parts
    rows = st.sets(st.integers(0, max(len(positive) + len(negative) - 1, 0)))
    groups = [sorted(data.draw(rows)) if positive or negative else [] for _ in range(3)]
    group = np.repeat(np.arange(3), [len(own) for own in groups])
    row = np.array([i for own in groups for i in own], dtype=np.int64)
    found = twin_figures(scores_of(*parts), group, row, 3)
    for own, figures in zip(groups, found, strict=True):
        share, count = by_loops(*parts, among=own)
        if by_loops(*parts)[1] == 0:
            assert figures == {}
        else:
            interval = wilson(share, count) if count else None
            assert figures == {"twin_accuracy": share, "twin_interval": interval, "pairs": count}


def test_ties_count_half():
    assert pair_metrics(scores_of([1, 1, 1, 5], [0, 1, 2, 9], [0, 1, 2, -1])) == {"twin_accuracy": 0.5}
    assert pair_metrics(scores_of([1, 1], [1, 0], [0, 1])) == {"twin_accuracy": 0.75}


@pytest.mark.parametrize("twin", [[0], [0, 2]])
def test_twins_of_other_triples_are_refused(twin):
    with pytest.raises(InputError, match="the twins of these scores are not among their triples"):
        scores_of([1, 2], [1, 2], twin)


@pytest.mark.parametrize(("share", "count"), [(0.0, 3), (1.0, 3), (0.5, 10), (0.25, 7), (0.9, 400)])
def test_the_interval_of_a_rule_holds_the_shares_that_would_not_surprise(share, count):
    low, high = wilson(share, count)
    assert 0 <= low <= share <= high <= 1
    # Wilson's ends: there the share is 1.96 standard errors away.
    for end in (low, high):
        if 0 < end < 1:
            assert abs(share - end) / math.sqrt(end * (1 - end) / count) == pytest.approx(1.959964, abs=1e-5)


# -- of a benchmark ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made():
    return paired()


@pytest.fixture(scope="module")
def run(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins") / "run"
    return folder, evaluate(made, "transe", settings={"epochs": 3}, out=folder)


def expected(made, evaluation, among=None):
    test = evaluation.outcome.predictions.test
    twin = made.negatives["pa"].origins["test"].twin
    return by_loops(test.positive, test.negative, twin.tolist(), among)


def test_an_evaluation_has_it_beside_balanced_accuracy(made, run):
    folder, evaluation = run
    share, count = expected(made, evaluation)
    assert count > 5
    assert evaluation.metrics["twin_accuracy"] == share
    assert load_run(folder).metrics()["metrics"]["twin_accuracy"] == share
    assert list(headlines("classification", "pairs")) == ["balanced_accuracy", "twin_accuracy"]
    assert list(shown_metrics("classification", "pairs"))[:3] == ["balanced_accuracy", "twin_accuracy", "roc_auc"]


def test_terminal_and_notebook_show_it(run, capsys):
    _, evaluation = run
    print_figures(evaluation.as_dict())
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["twin", "accuracy", f"{100 * evaluation.metrics['twin_accuracy']:.1f}"] in lines
    assert ["accuracy", "recall", "twin", "accuracy", "worst", "rules"] in lines
    assert "twin accuracy" in evaluation._repr_html_()


def test_it_needs_no_threshold(made, run):
    _, evaluation = run
    predictions = evaluation.outcome.predictions
    empty = LabelledScores(np.empty(0), np.empty(0))
    measures = measure(made, type(predictions)("pa", empty, predictions.test), [], MetricOptions(diagnosis=False))
    assert measures.metrics["balanced_accuracy"] is None
    assert measures.metrics["twin_accuracy"] == evaluation.metrics["twin_accuracy"]


def test_each_rule_has_that_of_its_conclusions(made, run):
    _, evaluation = run
    keys = made.graph.keys
    test = keys.pack(made.positives.test).tolist()
    provenance = made.provenance
    packed = keys.pack(provenance.triples)[provenance.conclusion].tolist()
    counts = []
    for number, figures in enumerate(evaluation.measures.breakdown["rules"]):
        derived = {key for key, rule in zip(packed, provenance.rule.tolist(), strict=True) if rule == number}
        own = {row for row, key in enumerate(test) if key in derived}
        share, count = expected(made, evaluation, own)
        assert (figures["twin_accuracy"], figures["pairs"]) == (share, count)
        assert figures["twin_interval"] == wilson(share, count)
        counts.append(count)
    assert min(counts) > 0


def test_scores_from_files_and_arrays_have_it_too(made, run, tmp_path):
    _, evaluation = run
    evaluator = Evaluator(made)
    rows = evaluator.names()
    scores = {
        f"{split}_{label[:3]}": getattr(getattr(evaluation.outcome.predictions, split), label)
        for split in ("valid", "test")
        for label in ("positive", "negative")
    }
    assert evaluator.eval(scores)["twin_accuracy"] == evaluation.metrics["twin_accuracy"]
    assert "twin_accuracy" in evaluator.expected_output_format
    lines = ["\t".join([*name, repr(float(s))]) for key in rows for name, s in zip(rows[key], scores[key], strict=True)]
    (tmp_path / "scores.tsv").write_text("\n".join(sorted(lines)) + "\n")
    predictions = read_scores(tmp_path / "scores.tsv", made, "pa")
    found = evaluate_scores(predictions, made, MetricOptions())
    assert found.metrics["twin_accuracy"] == evaluation.metrics["twin_accuracy"]


def test_a_run_is_scored_again_with_and_without_the_benchmark(made, run):
    folder, evaluation = run
    for benchmark in (None, made):
        measures = score_run(load_run(folder), benchmark=benchmark)
        assert measures.metrics == evaluation.metrics
    rules = measures.breakdown["rules"]
    assert rules == evaluation.measures.breakdown["rules"]


def test_a_run_with_twins_that_it_does_not_have_is_told(run, tmp_path):
    folder, _ = run
    table = pq.read_table(folder / "predictions.parquet")
    wrong = pa.array([10**6] * len(table), pa.int32())
    table = table.set_column(table.column_names.index("twin"), "twin", wrong)
    pq.write_table(table, tmp_path / "predictions.parquet")
    with pytest.raises(InputError, match="not among their triples"):
        read_labelled(tmp_path / "predictions.parquet", "pa", None)


def test_several_seeds_have_a_mean_and_an_interval(made, capsys):
    answers = [evaluate(made, "transe", settings={"epochs": 1}, seed=seed).as_dict() for seed in range(3)]
    summary = summarise(answers)
    low, high = summary["interval"]["metrics"]["twin_accuracy"]
    assert low <= summary["metrics"]["twin_accuracy"] <= high
    print_figures(summary)
    line = next(line for line in capsys.readouterr().out.splitlines() if "twin accuracy" in line)
    assert f"{100 * low:.1f} to {100 * high:.1f}" in line


def test_without_twins_nothing_tells_of_them(tmp_path, capsys):
    plain = couples(16)
    evaluation = evaluate(plain, "transe", settings={"epochs": 1}, out=tmp_path / "run")
    print_figures(evaluation.as_dict())
    texts = [capsys.readouterr().out, evaluation._repr_html_(), json.dumps(evaluation.as_dict())]
    texts += [file.read_text() for file in (tmp_path / "run").glob("*.json")]
    texts += [Evaluator(plain).expected_output_format]
    assert not any("twin" in text for text in texts)
    assert "twin" not in pq.read_table(tmp_path / "run" / "predictions.parquet").column_names
