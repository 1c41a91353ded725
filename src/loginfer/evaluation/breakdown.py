"""Figures of parts.

The metrics of test conclusions by depth: in how many steps they follow.

The metrics of the parts of a test set: per relation, per rule, per pattern, per kind of negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loginfer.benchmark.benchmark import POSITIONS, Benchmark, Origins
from loginfer.benchmark.negatives.methods import SOURCES
from loginfer.benchmark.shortcut_gate import Pairs, negatives_of, rule_triples
from loginfer.evaluation.metrics import Rows, group_metrics
from loginfer.evaluation.thresholds import Thresholds
from loginfer.evaluation.values import Counts, Predictions
from loginfer.kg.graph import places_of
from loginfer.logic.rule import Atom, Negation
from loginfer.logic.subrules import EDITS


def by_depth(benchmark: Benchmark, rows: Rows) -> dict[str, dict[str, Any]]:
    """Return the metrics of the positives of each depth against all negatives; none for a single step.

    Parameters
    ----------
    benchmark
        The benchmark.
    rows
        P_test and N_test with scores and predictions.
    """
    known = benchmark.provenance
    if known is None or not known.deep:
        return {}
    keys = benchmark.graph.keys
    found, places = places_of(keys.pack(known.triples), keys.pack(benchmark.positives.test))
    own = np.flatnonzero(found)
    depths, group = np.unique(known.depth[places[own]], return_inverse=True)
    against = np.arange(rows.positives, rows.positives + rows.negatives)
    made = group_metrics(
        rows,
        np.concatenate([group.ravel().astype(np.int64), np.repeat(np.arange(len(depths)), rows.negatives)]),
        np.concatenate([own, np.tile(against, len(depths))]),
        len(depths),
    )
    return {str(depth): metrics for depth, metrics in zip(depths.tolist(), made, strict=True)}


# What stands for the pattern of rules that were given.
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
            recorded count for each rule whose head they fit.
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

        Each part also has the counts `tp`, `fp`, `tn`, `fn`. Parts that cannot be told from a benchmark
        without rules, provenance or origins are empty.
    """
    rows = labelled_rows(benchmark, predictions, thresholds)
    rules = rule_triples(benchmark, predictions.method)
    depths = by_depth(benchmark, rows)
    return {
        "relations": _relations(benchmark, predictions.method, rows),
        "rules": _rules(benchmark, rows, rules),
        "patterns": _patterns(benchmark, rows, rules),
        "negatives": _kinds(benchmark, predictions.method, rows),
        **({"depths": depths} if depths else {}),
    }


def labelled_rows(benchmark: Benchmark, predictions: Predictions, thresholds: Thresholds) -> Rows:
    """Return P_test and N_test with their scores and what is predicted."""
    scores = predictions.test
    negatives = negatives_of(benchmark, predictions.method)
    return Rows(
        scores.positive,
        scores.negative,
        thresholds.predict(benchmark.positives.test, scores.positive),
        thresholds.predict(negatives, scores.negative),
    )


# -- relations -------------------------------------------------------------------------------------


def _relations(benchmark: Benchmark, method: str | None, rows: Rows) -> dict[str, dict[str, Any]]:
    triples = np.vstack([benchmark.positives.test, negatives_of(benchmark, method)])
    ids, group = np.unique(triples[:, 1], return_inverse=True)
    made = group_metrics(rows, group.ravel().astype(np.int64), np.arange(len(rows)), len(ids))
    names = benchmark.graph.relations.names(ids)
    return dict(sorted(zip(names, made, strict=True)))


# -- rules and patterns ----------------------------------------------------------------------------


def _rules(benchmark: Benchmark, rows: Rows, pairs: Pairs) -> list[dict[str, Any]]:
    made = group_metrics(rows, *pairs, len(benchmark.rules))
    return [
        {"rule": str(known.rule), "pattern": known.pattern or GIVEN, **metrics}
        for known, metrics in zip(benchmark.rules, made, strict=True)
    ]


def _patterns(benchmark: Benchmark, rows: Rows, pairs: Pairs) -> dict[str, dict[str, Any]]:
    names = sorted({known.pattern or GIVEN for known in benchmark.rules})
    place = {name: i for i, name in enumerate(names)}
    of_rule = np.array([place[known.pattern or GIVEN] for known in benchmark.rules], dtype=np.int64)
    if not names:
        return {}
    rule, row = pairs
    once = np.unique(of_rule[rule] * len(rows) + row)
    made = group_metrics(rows, once // max(len(rows), 1), once % max(len(rows), 1), len(names))
    return dict(zip(names, made, strict=True))


# -- kinds of negatives ----------------------------------------------------------------------------


def _origins(benchmark: Benchmark, method: str | None) -> Origins | None:
    return None if method is None else benchmark.negatives[method].origins.get("test")


def negative_kinds(benchmark: Benchmark, method: str | None) -> tuple[list[str], Counts] | None:
    """Return the kinds of N_test by name, and int64[n]: the kind of each negative; None if nobody knows."""
    origins = _origins(benchmark, method)
    if origins is None or not len(origins):
        return None
    columns = (origins.source, origins.position, origins.rule, origins.kept, origins.edit)
    codes = np.column_stack(columns)
    distinct, code = np.unique(codes, axis=0, return_inverse=True)
    names, kind = np.unique([_kind(benchmark, *row) for row in distinct.tolist()], return_inverse=True)
    return names.tolist(), kind.ravel()[code.ravel()].astype(np.int64)


def _kinds(benchmark: Benchmark, method: str | None, rows: Rows) -> dict[str, dict[str, Any]]:
    known = negative_kinds(benchmark, method)
    if known is None:
        return {}
    names, own = known
    group = np.concatenate([np.repeat(np.arange(len(names)), rows.positives), own])
    row = np.concatenate([np.tile(np.arange(rows.positives), len(names)), np.arange(rows.negatives) + rows.positives])
    made = group_metrics(rows, group, row, len(names))
    return {
        name: {"false_positive_rate": metrics["fp"] / (metrics["fp"] + metrics["tn"]), **metrics}
        for name, metrics in zip(names, made, strict=True)
    }


def _kind(benchmark: Benchmark, source: int, position: int, rule: int, kept: int, edit: int) -> str:
    """Return what a negative of this origin is called: `position: subject`, `sub-rule: 1 of 3 atoms`."""
    name = SOURCES[source]
    if POSITIONS[position]:
        name += f": {POSITIONS[position]}"
    if edit:
        name += f": {EDITS[edit]}"
    if kept and 0 <= rule < len(benchmark.rules):
        body = benchmark.rules[rule].rule.body
        atoms = [i for i, part in enumerate(body) if isinstance(part, Atom)]
        name += f": {sum(kept >> i & 1 for i in atoms)} of {len(atoms)} atoms"
        denied = [i for i, part in enumerate(body) if isinstance(part, Negation)]
        if denied:
            name += f", {sum(kept >> i & 1 for i in denied)} of {len(denied)} negations"
    return name
