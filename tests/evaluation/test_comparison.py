"""Evaluations beside each other."""

from __future__ import annotations

from loginfer.evaluation.seeds import comparison_rows


def evaluation(system: str, accuracy: float | None, **more):
    return {"system": system, "benchmark": "b", "negatives": "pa", "metrics": {"balanced_accuracy": accuracy}, **more}


def test_the_best_comes_first_and_what_is_not_known_last():
    rows = comparison_rows([evaluation("a", 0.6), evaluation("b", None), evaluation("c", 0.9), evaluation("d", 0.0)])
    assert [row["system"] for row in rows] == ["c", "a", "d", "b"]
    assert rows[0]["interval"] is rows[0]["learned"] is rows[0]["c_mrr"] is rows[0]["seconds"] is None


def test_without_labels_the_best_c_mrr_comes_first():
    answers = [
        evaluation(name, None, ranking={"filtered": {"c_mrr": c_mrr}}) for name, c_mrr in (("a", 0.2), ("b", 0.3))
    ]
    assert [row["system"] for row in comparison_rows([*answers, evaluation("c", None)])] == ["b", "a", "c"]


def test_a_row_counts_verdicts_and_takes_the_filtered_ranks():
    verdicts = {
        "learned": 9, "untested": 2, "shortcut": 4, "in part": 1, "not learned": 3, "not testable": 1,
    }  # fmt: skip
    answer = evaluation(
        "rotate", 0.907,
        interval={"metrics": {"balanced_accuracy": [0.89, 0.92]}},
        ranking={"given": {"c_mrr": 0.9}, "filtered": {"c_mrr": 0.3}},
        diagnosis={"verdicts": verdicts, "best_shortcut": {"balanced_accuracy": 0.657}},
        seconds=12.5,
        published={"c_mrr": 0.4, "source": "a paper"},
    )  # fmt: skip
    (row,) = comparison_rows([answer])
    assert row == {
        "system": "rotate", "benchmark": "b", "negatives": "pa", "balanced_accuracy": 0.907, "interval": [0.89, 0.92],
        "shortcut_accuracy": 0.657, "learned": 9, "shortcut": 4, "not_learned": 4, "open": 3, "c_mrr": 0.3,
        "published_c_mrr": 0.4, "seconds": 12.5,
    }  # fmt: skip


def test_several_seeds_bring_what_they_learned_in_the_mean():
    learned = {"verdicts": {"learned": 1.5, "shortcut": 0.5}, "best_shortcut": {"balanced_accuracy": 0.6}}
    (row,) = comparison_rows([evaluation("a", 0.8, learned=learned)])
    assert (row["learned"], row["shortcut"], row["shortcut_accuracy"]) == (1.5, 0.5, 0.6)
