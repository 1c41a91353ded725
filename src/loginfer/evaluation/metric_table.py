"""Every metric as one row of a table: what it is called, how it is computed, and where it is shown.

Evaluations compute what stands here; terminal, notebooks, reports and tables show it. `register_metric` adds a
row. The table loads without NumPy, so that the command line can start with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from loginfer.errors import InputError

MetricGroup = Literal["classification", "relation_thresholds", "calibration", "pairs", "ranking"]
# All but ranking, in the order in which they are shown.
TEST_GROUPS: tuple[MetricGroup, ...] = ("classification", "relation_thresholds", "calibration", "pairs")
Compute: TypeAlias = Callable[..., float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Parameters
    ----------
    key
        Its name in `metrics.json`. Ranking metrics are computed for constants and for relations: `mrr` is
        found there as `c_mrr` and `r_mrr`.
    title
        What people read.
    group
        Whether it is about predictions, about those with a threshold for each relation, about confidences, about pairs
        of a conclusion and its twin, or about ranks.
    compute
        Returns the value, or None where it is not defined. A classification metric gets `truth` int8[n], 1
        for positives, `scores` float64[n] and `predicted` int8[n]; one of calibration the same with confidences
        for scores, one of thresholds with the decisions of these; a metric of pairs gets the scores of the
        conclusions float64[k] and of their twins float64[k]; a ranking metric gets `ranks` float64[m] and the
        numbers of `competitors` int64[m]; at least one of each.
    share
        Whether it is shown in percent.
    needs_threshold
        Whether a classification metric looks at `predicted`; without a threshold it is not defined.
    pooled
        Whether a ranking metric of constants is that of subjects and objects together, not the mean of both.
    shown
        Whether tables show it unless they are asked for others.
    headline
        Whether it comes first, and stands where there is room for one metric of its group only.
    lower_is_better
        Whether the best system has the smallest value.
    """

    key: str
    title: str
    group: MetricGroup
    compute: Compute
    share: bool = True
    needs_threshold: bool = True
    pooled: bool = False
    shown: bool = True
    headline: bool = False
    lower_is_better: bool = False


# How a metric of each group is written in `metrics.json`, and what is put before its title.
_VARIANTS: dict[MetricGroup, dict[str, str]] = {
    **{group: {"": ""} for group in TEST_GROUPS},
    "ranking": {"c_": "C-", "r_": "R-"},
}


def _sklearn(function: str, *, labels: tuple[int, ...] = (1,), on: str = "predicted", **options: Any) -> Compute:
    """Return a metric of scikit-learn that needs triples of some labels to be defined."""

    def compute(truth: Any, scores: Any, predicted: Any) -> float | None:
        from sklearn import metrics

        if not all((truth == label).any() for label in labels):
            return None
        return float(getattr(metrics, function)(truth, scores if on == "scores" else predicted, **options))

    return compute


def twin_points(conclusions: Any, twins: Any) -> Any:
    """Return float64[k]: 1 where a conclusion has a higher score than its twin, ½ for a tie, 0 for a lower one."""
    return (conclusions > twins) + 0.5 * (conclusions == twins)


def _calibration_error(truth: Any, confidences: Any, _: Any) -> float:
    """Return by how much mean confidence and share of positives differ in a bin, in the mean over all triples."""
    from loginfer.evaluation.thresholds import reliability

    counts, confidence, share = reliability(truth, confidences)
    return float((counts * abs(confidence - share)).sum() / len(truth))


def hits_at(k: int, *, shown: bool = True) -> Metric:
    """Return Hits@k: the share of ranks up to k."""
    return Metric(f"hits@{k}", f"Hits@{k}", "ranking", lambda ranks, _: float((ranks <= k).mean()), shown=shown)


def _adjusted_mean_rank_index(ranks: Any, competitors: Any) -> float | None:
    """Return 1 - (MR - 1) / (E[MR] - 1), where chance gives the rank 1 + n / 2 among n competitors."""
    return float(1 - (ranks.mean() - 1) / (competitors.mean() / 2)) if competitors.any() else None


# In the order of `metrics.json`. The paper's "AUC" is computed on hard decisions: what to hold against it is the
# balanced accuracy. ROC AUC is that of the confidences.
_BUILT_IN = (
    Metric("roc_auc", "ROC AUC", "classification", _sklearn("roc_auc_score", labels=(0, 1), on="scores"),
           needs_threshold=False),
    Metric("balanced_accuracy", "balanced accuracy", "classification",
           _sklearn("balanced_accuracy_score", labels=(0, 1)), headline=True),
    Metric("accuracy", "accuracy", "classification", _sklearn("accuracy_score", labels=())),
    Metric("f1", "F1", "classification", _sklearn("f1_score", zero_division=0)),
    Metric("precision", "precision", "classification", _sklearn("precision_score", zero_division=0)),
    Metric("recall", "recall", "classification", _sklearn("recall_score")),
    Metric("average_precision", "average precision", "classification",
           _sklearn("average_precision_score", on="scores"), needs_threshold=False),
    Metric("balanced_accuracy_relation_thresholds", "balanced accuracy with relation thresholds", "relation_thresholds",
           _sklearn("balanced_accuracy_score", labels=(0, 1)), headline=True),
    Metric("accuracy_relation_thresholds", "accuracy with relation thresholds", "relation_thresholds",
           _sklearn("accuracy_score", labels=()), shown=False),
    Metric("brier_score", "Brier score", "calibration", lambda truth, confidences, _:
           float(((confidences - truth) ** 2).mean()), needs_threshold=False, lower_is_better=True),
    Metric("calibration_error", "calibration error", "calibration", _calibration_error, needs_threshold=False,
           lower_is_better=True),
    Metric("twin_accuracy", "twin accuracy", "pairs",
           lambda conclusions, twins: float(twin_points(conclusions, twins).mean()), headline=True),
    Metric("mrr", "MRR", "ranking", lambda ranks, _: float((1 / ranks).mean()), headline=True),
    hits_at(1),
    hits_at(3, shown=False),
    hits_at(10),
    Metric("mr", "MR", "ranking", lambda ranks, _: float(ranks.mean()), share=False, shown=False,
           lower_is_better=True),
    Metric("amri", "AMRI", "ranking", _adjusted_mean_rank_index, pooled=True, shown=False),
)  # fmt: skip

METRICS: dict[str, Metric] = {metric.key: metric for metric in _BUILT_IN}


def register_metric(metric: Metric) -> None:
    """Add a metric to the table: from now on evaluations compute it, and tables show it.

    Parameters
    ----------
    metric
        The metric; its key must be new.

    Examples
    --------
    >>> from loginfer.evaluation import Metric, register_metric
    >>> def specificity(truth, scores, predicted):
    ...     return float((predicted[truth == 0] == 0).mean()) if (truth == 0).any() else None
    >>> register_metric(Metric("specificity", "specificity", "classification", specificity))  # doctest: +SKIP
    """
    if metric.key in METRICS:
        raise InputError(f"there is a metric `{metric.key}` already", hint="choose another key")
    METRICS[metric.key] = metric


def metrics_of(group: MetricGroup) -> list[Metric]:
    """Return the metrics of a group, in the order of the table."""
    return [metric for metric in METRICS.values() if metric.group == group]


def metric_titles(*groups: MetricGroup, of: Callable[[Metric], bool] = lambda metric: True) -> dict[str, str]:
    """Return the titles of all metrics of some groups, or of some of them, by their names in `metrics.json`."""
    return {
        f"{before_key}{metric.key}": f"{before_title}{metric.title}"
        for group in groups
        for before_key, before_title in _VARIANTS[group].items()
        for metric in metrics_of(group)
        if of(metric)
    }


def shown_metrics(*groups: MetricGroup) -> dict[str, str]:
    """Return names and titles of the metrics that tables show, headlines first."""
    return headlines(*groups) | metric_titles(*groups, of=lambda metric: metric.shown)


def headlines(*groups: MetricGroup) -> dict[str, str]:
    """Return names and titles of the metrics that come first."""
    return metric_titles(*groups, of=lambda metric: metric.headline and metric.shown)


def find_metric(name: str) -> Metric | None:
    """Return the metric that a name in `metrics.json` stands for: `c_mrr` and `mrr_subject` are `mrr`."""
    bare = name.removeprefix("c_").removeprefix("r_").removesuffix("_subject").removesuffix("_object")
    return METRICS.get(name) or METRICS.get(bare)


def metric_title(name: str) -> str:
    """Return what people read for a name in `metrics.json`; its words where the table does not know it."""
    return metric_titles(*_VARIANTS).get(name) or name.replace("_", " ")


def is_share(name: str) -> bool:
    """Say whether what a name in `metrics.json` stands for is shown in percent; a mean rank is not."""
    metric = find_metric(name)
    return metric is None or metric.share


def lower_is_better(name: str) -> bool:
    """Say whether the best system has the smallest value of what a name in `metrics.json` stands for."""
    metric = find_metric(name)
    return metric is not None and metric.lower_is_better


def metric_text(name: str, value: float | None) -> str:
    """Return a value with one digit, shares in percent; `-` for none."""
    return "-" if value is None else f"{100 * value if is_share(name) else value:.1f}"


def published_text(answer: Mapping[str, Any]) -> str:
    """Say what is published about a system on a benchmark beside what an evaluation found; empty if nothing is."""
    published, ours = answer.get("published") or {}, answer["ranking"].get("filtered")
    if not published or ours is None:
        return ""
    names = [name for name in metric_titles("ranking") if name in published]
    parts = (
        f"{metric_title(name)} {metric_text(name, ours[name])}, published {metric_text(name, published[name])}"
        for name in (["c_mrr"] if "c_mrr" in names else names)
    )
    return f"{'; '.join(parts)}: {published['source']}"
