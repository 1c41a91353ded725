"""Metrics are rows of one table: terminal, notebook and report show the same ones, and anybody adds to them."""

import subprocess
import sys

import pytest
from tests.support.made_up_benchmarks import family

from loginfer.cli.evaluate import print_figures
from loginfer.errors import InputError
from loginfer.evaluation import Evaluator, Metric, evaluate, load_run, register_metric
from loginfer.evaluation.metric_table import METRICS, find_metric, is_share, metric_text, metric_title, shown_metrics
from loginfer.report.collection import collect
from loginfer.report.facts import figures_of
from loginfer.report.tables import result_table, to_markdown


def specificity(truth, scores, predicted):
    return float((predicted[truth == 0] == 0).mean()) if (truth == 0).any() else None


def worst(ranks, competitors):
    return float(ranks.max())


@pytest.fixture
def registered():
    made = (
        Metric("specificity", "specificity", "classification", specificity),
        Metric("worst", "worst rank", "ranking", worst, share=False),
    )
    for metric in made:
        register_metric(metric)
    yield made
    for metric in made:
        del METRICS[metric.key]


def test_a_metric_from_outside_is_computed_and_shown_everywhere(registered, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    benchmark = family(methods=("pa",))
    made = evaluate(benchmark, "simpbl", ranking=("filtered", "given"), out=tmp_path / "run")
    value, ranks = made.metrics["specificity"], made.ranking["filtered"]
    assert 0 <= value <= 1
    (of_relations,) = [
        found for found in made.outcome.ranks if (found.protocol, found.position) == ("filtered", "relation")
    ]
    assert ranks["r_worst"] == of_relations.ranks().max()
    assert ranks["c_worst"] == (ranks["worst_subject"] + ranks["worst_object"]) / 2
    assert set(ranks["ties"]["optimistic"]) >= {"c_worst", "r_worst"}
    assert load_run(tmp_path / "run").metrics()["metrics"]["specificity"] == value

    print_figures(made.as_dict())
    shown = capsys.readouterr().out.splitlines()
    assert ["specificity", f"{100 * value:.1f}"] in [line.split() for line in shown]
    assert any("C-worst rank" in line and "R-worst rank" in line for line in shown)
    assert f"{ranks['c_worst']:.1f}" in next(line for line in shown if line.strip().startswith("filtered"))
    assert "specificity" in made._repr_html_()

    collection = collect([tmp_path])
    assert "specificity" in [figure.metric for figure in figures_of(collection)]
    table = to_markdown(result_table(collection, "specificity"))
    assert "Specificity, in percent" in table
    assert f"{100 * value:.1f}" in table
    assert "in percent" not in result_table(collection, "c_worst", "filtered").title


def test_a_metric_from_outside_is_an_evaluators_too(registered):
    evaluator = Evaluator(family(methods=("pa",)))
    found = evaluator.eval(evaluator.scores(lambda triples: triples[:, 0]))
    assert {"specificity", "given/c_worst", "given/r_worst"} <= set(found)
    assert "specificity" in evaluator.expected_output_format


def test_without_a_threshold_only_metrics_that_need_none_are_given(registered):
    benchmark = family(methods=())
    assert evaluate(benchmark, "simpbl").metrics["specificity"] is None


def test_a_key_stands_for_one_metric():
    with pytest.raises(InputError, match="there is a metric `f1` already"):
        register_metric(Metric("f1", "F-measure", "classification", specificity))


def test_terminal_and_report_show_the_same_metrics_in_the_same_order():
    assert list(shown_metrics("classification").values()) == [
        "balanced accuracy", "ROC AUC", "accuracy", "F1", "precision", "recall", "average precision",
    ]  # fmt: skip
    assert list(shown_metrics("ranking")) == ["c_mrr", "r_mrr", "c_hits@1", "c_hits@10", "r_hits@1", "r_hits@10"]


def test_names_in_files_lead_to_their_metric():
    assert find_metric("c_hits@10") is find_metric("hits@10_object") is METRICS["hits@10"]
    assert find_metric("tie") is None
    assert [is_share(name) for name in ("c_mrr", "c_mr", "mr_subject", "recall", "who knows")] == [1, 0, 0, 1, 1]
    assert [metric_title(name) for name in ("r_hits@3", "c_amri", "mrr_object")] == ["R-Hits@3", "C-AMRI", "mrr object"]
    assert [metric_text("c_mr", 12.34), metric_text("f1", 0.5), metric_text("f1", None)] == ["12.3", "50.0", "-"]


def test_the_table_loads_without_numpy():
    program = "import sys, loginfer.evaluation.metric_table; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
