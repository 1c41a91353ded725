"""The metrics of parts of a test set: per relation, rule, pattern, kind of negative, and depth.

They are the figures of `metrics.classification`, for hundreds of groups of triples in the time that scikit-learn
needs for one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import POSITIONS, Benchmark
from loginfer.benchmark.negatives.methods import SOURCES
from loginfer.benchmark.shortcut_gate import rule_triples
from loginfer.evaluation.metric_table import twin_points
from loginfer.evaluation.predictions import Counts, LabelledScores, Predictions, Scores, labelled_triples
from loginfer.evaluation.thresholds import Thresholds
from loginfer.kg.graph import places_of
from loginfer.logic.rule import Atom, Negation
from loginfer.logic.subrules import EDITS

Mask = npt.NDArray[np.bool_]
Fractions = npt.NDArray[np.float64]

# The pattern of rules that were given rather than found.
GIVEN = "given"


def breakdown(benchmark: Benchmark, predictions: Predictions, thresholds: Thresholds) -> dict[str, Any]:
    """Return the metrics of parts of the test set, as JSON values.

    Returns
    -------
    dict
        `relations`
            By name. Type triples all have the type predicate.
        `rules`
            In the benchmark's order, each with its text, its pattern and the metrics. A rule's positives are
            its conclusions in P_test; a triple that several rules conclude counts for each. Its negatives
            are those that were drawn from its sub-rules or near misses; negatives of which no rule is
            recorded count for each rule whose head they fit. Where conclusions have twins, also `twin_accuracy`
            of the pairs whose conclusion is the rule's, its 95 % interval (Wilson), and the number of `pairs`.
        `patterns`
            By the pattern's text, `given` for rules that were given: the triples of all its rules, each once.
        `negatives`
            By kind: those negatives against all of P_test, with `false_positive_rate`. The kind is the
            source, with the position that was replaced, the edit that makes the near miss, or the number of
            ≠-free atoms that a sub-rule keeps: `sub-rule: 3 of 3 atoms` forgets inequalities only.
            Negations, where the rule has some, are counted on their own.
        `depths`
            By the number of steps in which conclusions follow: those positives against all of N_test. Only
            for a benchmark of several steps.

        Each part also has the counts `tp`, `fp`, `tn`, `fn`. Parts that need rules, provenance or
        origins are empty for a benchmark without them.
    """
    scores = predictions.test
    triples = labelled_triples(benchmark, predictions.method, "test")
    predicted = map(thresholds.predict, triples, (scores.positive, scores.negative))
    rows = LabelledRows(scores.positive, scores.negative, *predicted)

    relation_ids, relation = np.unique(np.vstack(triples)[:, 1], return_inverse=True)
    by_relation = group_metrics(rows, relation.ravel(), np.arange(len(rows)), len(relation_ids))
    rule, row = rule_triples(benchmark, predictions.method)
    patterns = [benchmark_rule.pattern or GIVEN for benchmark_rule in benchmark.rules]
    by_rule = group_metrics(rows, rule, row, len(patterns))
    depths = _by_depth(benchmark, rows)
    return {
        "relations": dict(sorted(zip(benchmark.graph.relations.names(relation_ids), by_relation, strict=True))),
        "rules": [
            {"rule": str(benchmark_rule.rule), "pattern": pattern, **metrics, **of_pairs}
            for benchmark_rule, pattern, metrics, of_pairs in zip(
                benchmark.rules, patterns, by_rule, twin_figures(scores, rule, row, len(patterns)), strict=True
            )
        ],
        "patterns": _by_pattern(rows, patterns, rule, row),
        "negatives": _by_kind(benchmark, predictions.method, rows),
        **({"depths": depths} if depths else {}),
    }


def _by_pattern(rows: LabelledRows, patterns: Sequence[str], rule: Counts, row: Counts) -> dict[str, dict[str, Any]]:
    names, of_rule = np.unique(np.array(patterns, dtype=str), return_inverse=True)
    each_once = np.unique(of_rule.ravel()[rule] * len(rows) + row)
    group, row = np.divmod(each_once, max(len(rows), 1))
    return dict(zip(names.tolist(), group_metrics(rows, group, row, len(names)), strict=True))


def _by_kind(benchmark: Benchmark, method: str | None, rows: LabelledRows) -> dict[str, dict[str, Any]]:
    kinds = negative_kinds(benchmark, method)
    if kinds is None:
        return {}
    names, kind = kinds
    group = np.concatenate([np.repeat(np.arange(len(names)), rows.positives), kind])
    row = np.concatenate([np.tile(np.arange(rows.positives), len(names)), np.arange(rows.negatives) + rows.positives])
    return {
        name: {"false_positive_rate": metrics["fp"] / (metrics["fp"] + metrics["tn"]), **metrics}
        for name, metrics in zip(names, group_metrics(rows, group, row, len(names)), strict=True)
    }


def _by_depth(benchmark: Benchmark, rows: LabelledRows) -> dict[str, dict[str, Any]]:
    """Return the metrics of the positives of each depth against all negatives; none for a single step."""
    provenance = benchmark.provenance
    if provenance is None or not provenance.deep:
        return {}
    keys = benchmark.graph.keys
    concluded, index = places_of(keys.pack(provenance.triples), keys.pack(benchmark.positives.test))
    rows_concluded = np.flatnonzero(concluded)
    depths, depth = np.unique(provenance.depth[index[rows_concluded]], return_inverse=True)
    group = np.concatenate([depth.ravel(), np.repeat(np.arange(len(depths)), rows.negatives)])
    row = np.concatenate([rows_concluded, np.tile(np.arange(rows.negatives) + rows.positives, len(depths))])
    return dict(zip(map(str, depths.tolist()), group_metrics(rows, group, row, len(depths)), strict=True))


# -- pairs of a conclusion and its twin --------------------------------------------------------------


def twin_figures(scores: LabelledScores, group: Counts, row: Counts, size: int) -> list[dict[str, Any]]:
    """Return `twin_accuracy`, `twin_interval` and `pairs` of each group; nothing for any if there are no twins.

    Parameters
    ----------
    scores
        The triples.
    group, row
        int64[m], int64[m]: which group has which row, positives first. A group has the pairs of its positives.
    size
        How many groups there are.
    """
    conclusion, twin = scores.pairs
    if not len(twin):
        return [{} for _ in range(size)]
    is_positive = row < len(scores.positive)
    group, row = group[is_positive], row[is_positive]

    def total(values: Fractions) -> Fractions:
        by_conclusion = np.bincount(conclusion, weights=values, minlength=len(scores.positive))
        return np.asarray(np.bincount(group, weights=by_conclusion[row], minlength=size), dtype=np.float64)

    points, pairs = total(twin_points(scores.positive[conclusion], scores.negative[twin])), total(np.ones(len(twin)))
    return [
        {"twin_accuracy": p / n if n else None, "twin_interval": wilson(p / n, n) if n else None, "pairs": int(n)}
        for p, n in zip(points.tolist(), pairs.tolist(), strict=True)
    ]


def wilson(share: float, count: float) -> list[float]:
    """Return the 95 % interval of a share of `count` trials by Wilson's formula; with ties it is wider than need be."""
    z = NormalDist().inv_cdf(0.975)
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return [max((middle - half) / (1 + z * z / count), 0.0), min((middle + half) / (1 + z * z / count), 1.0)]


# -- kinds of negatives ----------------------------------------------------------------------------


def negative_kinds(benchmark: Benchmark, method: str | None) -> tuple[list[str], Counts] | None:
    """Return the kinds of N_test by name, and int64[n]: the kind of each negative; None if it was not recorded."""
    origins = None if method is None else benchmark.negatives[method].origins.get("test")
    if origins is None or not len(origins):
        return None
    columns = (origins.source, origins.position, origins.rule, origins.kept, origins.edit)
    distinct, code = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    names, kind = np.unique([_kind(benchmark, *row) for row in distinct.tolist()], return_inverse=True)
    return names.tolist(), kind.ravel()[code.ravel()].astype(np.int64)


def _kind(benchmark: Benchmark, source: int, position: int, rule: int, kept: int, edit: int) -> str:
    """Return what a negative of this origin is called: `position: subject`, `sub-rule: 1 of 3 atoms`."""
    name = SOURCES[source]
    if POSITIONS[position]:
        name += f": {POSITIONS[position]}"
    if edit:
        name += f": {EDITS[edit]}"
    if kept and 0 <= rule < len(benchmark.rules):
        body = benchmark.rules[rule].rule.body
        for kind, before, noun in ((Atom, ": ", "atoms"), (Negation, ", ", "negations")):
            parts = [i for i, part in enumerate(body) if isinstance(part, kind)]
            if parts or kind is Atom:
                name += f"{before}{sum(kept >> i & 1 for i in parts)} of {len(parts)} {noun}"
    return name


# -- metrics of many groups at once ----------------------------------------------------------------


class LabelledRows:
    """Labelled triples with scores and predictions: the positives first, then the negatives.

    Parameters
    ----------
    positive, negative
        float64[|P|], float64[|N|]: the confidences.
    predicted_positive, predicted_negative
        bool[|P|], bool[|N|]: which of them are predicted.
    """

    def __init__(self, positive: Scores, negative: Scores, predicted_positive: Mask, predicted_negative: Mask) -> None:
        self.positives, self.negatives = len(positive), len(negative)
        self.scores: Scores = np.concatenate([positive, negative])
        self.predicted: Mask = np.concatenate([predicted_positive, predicted_negative])
        self.true: Mask = np.arange(len(self.scores)) < self.positives
        # Each score's index among the distinct scores: whole numbers sort faster, and equal ones stay equal.
        self.score_codes: Counts = np.unique(self.scores, return_inverse=True)[1].ravel().astype(np.int64)

    def __len__(self) -> int:
        return len(self.scores)


def group_metrics(rows: LabelledRows, group: Counts, row: Counts, size: int) -> list[dict[str, Any]]:
    """Return the metrics and counts of each group.

    Parameters
    ----------
    rows
        The triples.
    group, row
        int64[m], int64[m]: which group has which row. A row may be in several groups, once in each.
    size
        How many groups there are.

    Returns
    -------
    list
        For each group our classification metrics in the order of the table, then the counts; None for what is
        not defined (see `classification`). Metrics that others registered are those of the whole only.
    """
    true, predicted = rows.true[row], rows.predicted[row]
    tp, fp, tn, fn = (
        np.bincount(group[mask], minlength=size)
        for mask in (true & predicted, ~true & predicted, ~true & ~predicted, true & ~predicted)
    )
    positives, negatives = tp + fn, tn + fp
    recall = _share(tp, positives)
    roc_auc, average_precision = _curves(group, rows.score_codes[row], true, size)
    figures = {
        "roc_auc": roc_auc,
        "balanced_accuracy": (recall + _share(tn, negatives)) / 2,
        "accuracy": _share(tp + tn, positives + negatives),
        "f1": _share(2 * tp, np.where(positives > 0, positives + tp + fp, 0)),
        "precision": np.where(positives > 0, np.nan_to_num(_share(tp, tp + fp)), np.nan),
        "recall": recall,
        "average_precision": average_precision,
    }
    columns: dict[str, list[Any]] = {
        name: [None if value != value else value for value in values.tolist()] for name, values in figures.items()
    }
    columns |= {"tp": tp.tolist(), "fp": fp.tolist(), "tn": tn.tolist(), "fn": fn.tolist()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _curves(group: Counts, scores: Counts, true: Mask, size: int) -> tuple[Fractions, Fractions]:
    """Return ROC AUC and average precision of each group; NaN where they are not defined.

    ROC AUC is the share of pairs of a positive and a negative that are in the right order, ties counting half
    (Mann-Whitney); average precision the mean over the positives of the precision at their score.
    """
    order = np.lexsort((-scores, group))
    group, scores, true = group[order], scores[order], true[order]
    start = np.ones(len(group), dtype=bool)  # of a block: equal scores in one group
    start[1:] = (group[1:] != group[:-1]) | (scores[1:] != scores[:-1])
    firsts = np.flatnonzero(start)
    if not len(firsts):
        return np.full(size, np.nan), np.full(size, np.nan)
    owner = group[firsts]
    p, n = (np.add.reduceat(labels.astype(np.int64), firsts) for labels in (true, ~true))
    positives, negatives = _sum(owner, p, size), _sum(owner, n, size)
    # How many there are in each block and in the blocks of the same group with higher scores.
    p_from = np.cumsum(p) - (np.cumsum(positives) - positives)[owner]
    n_from = np.cumsum(n) - (np.cumsum(negatives) - negatives)[owner]
    below = negatives[owner] - n_from
    roc_auc = _share(_sum(owner, p * (2 * below + n), size), 2 * positives * negatives)
    precision = p * (p_from / (p_from + n_from))
    return roc_auc, _share(np.bincount(owner, weights=precision, minlength=size), positives)


def _sum(group: Counts, values: Counts, size: int) -> Counts:
    """Return the sum of whole numbers in each group, exactly."""
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, group, values)
    return sums


def _share(part: npt.NDArray[Any], total: Counts) -> Fractions:
    """Return part / whole; NaN where the whole is empty."""
    shares = np.full(len(total), np.nan)
    np.divide(part, total, out=shares, where=total > 0)
    return shares
