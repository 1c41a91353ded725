"""The metrics of the parts of a test set: per relation, per rule, per pattern, per kind of negative."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import places_of
from loginfer.benchmark.values import POSITIONS, SOURCES, Benchmark, Origins
from loginfer.engine.binding import relation_of
from loginfer.evaluation.groups import Rows, group_metrics
from loginfer.evaluation.thresholds import Thresholds
from loginfer.evaluation.values import Counts, Predictions
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Atom
from loginfer.logic.terms import Constant

__all__ = [
    "GIVEN",
    "breakdown",
    "fits_head",
    "labelled_rows",
    "negative_kinds",
    "negatives_of",
    "own_conclusions",
]

# What stands for the pattern of rules that were given.
GIVEN = "given"

Mask = npt.NDArray[np.bool_]
Pairs = tuple[Counts, Counts]  # group, row


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
            are those that query-guided sampling drew from its sub-rules; negatives of which no rule is
            recorded count for each rule whose head they fit.
        `patterns`
            By the pattern's text, `given` for rules that were given: the triples of all its rules, each once.
        `negatives`
            By kind: those negatives against all of P_test, with `false_positive_rate`. The kind is the
            source, with the position that was replaced or the number of ≠-free atoms that a sub-rule keeps:
            `sub-rule: 3 of 3 atoms` forgets inequalities only.

        Each part also has the counts `tp`, `fp`, `tn`, `fn`. Parts that cannot be told from a benchmark
        without rules, provenance or origins are empty.
    """
    rows = labelled_rows(benchmark, predictions, thresholds)
    rules = _of_rules(benchmark, predictions.method)
    return {
        "relations": _relations(benchmark, predictions.method, rows),
        "rules": _rules(benchmark, rows, rules),
        "patterns": _patterns(benchmark, rows, rules),
        "negatives": _kinds(benchmark, predictions.method, rows),
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


def negatives_of(benchmark: Benchmark, method: str | None) -> Triples:
    """Return N_test of one method; nothing for None."""
    if method is None:
        return np.empty((0, 3), dtype=np.int32)
    return benchmark.negatives[method].splits.test


# -- relations -------------------------------------------------------------------------------------


def _relations(benchmark: Benchmark, method: str | None, rows: Rows) -> dict[str, dict[str, Any]]:
    triples = np.vstack([benchmark.positives.test, negatives_of(benchmark, method)])
    ids, group = np.unique(triples[:, 1], return_inverse=True)
    made = group_metrics(rows, group.ravel().astype(np.int64), np.arange(len(rows)), len(ids))
    names = benchmark.graph.relations.names(ids)
    return dict(sorted(zip(names, made, strict=True)))


# -- rules and patterns ----------------------------------------------------------------------------


def own_conclusions(benchmark: Benchmark) -> Pairs:
    """Return which rule concludes which triple of P_test: places in the rules, places in P_test.

    Sorted by rule, then triple; empty where that is not known.
    """
    known = benchmark.provenance
    if known is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    keys = benchmark.graph.keys
    test = keys.pack(benchmark.positives.test)
    found, places = places_of(test, keys.pack(known.triples))
    inside = found[known.conclusion]
    rule, row = known.rule[inside].astype(np.int64), places[known.conclusion[inside]]
    order = np.lexsort((row, rule))
    return rule[order], row[order]


def fits_head(head: Atom, graph: KnowledgeGraph, triples: Triples) -> Mask:
    """Return bool[n]: which triples could be conclusions of a rule with this head, by its names."""
    fits = triples[:, 1] == relation_of(head, graph)
    for column, term in ((0, head.subject), (2, head.object)):
        if isinstance(term, Constant):
            found = graph.entities.get(term.name)
            fits &= triples[:, column] == (-1 if found is None else found)
    if head.subject == head.object:
        fits &= triples[:, 0] == triples[:, 2]
    return np.asarray(fits)


def _of_rules(benchmark: Benchmark, method: str | None) -> Pairs:
    """Return which rule has which row: its conclusions in P_test, its negatives in N_test."""
    rule, row = own_conclusions(benchmark)
    negatives = negatives_of(benchmark, method)
    origins = _origins(benchmark, method)
    recorded = np.full(len(negatives), -1) if origins is None else origins.rule
    # Rules that share a head share the negatives that fit it.
    others = np.flatnonzero(recorded < 0)
    by_head: dict[Atom, Counts] = {}
    groups, rows = [rule], [row]
    offset = len(benchmark.positives.test)
    for place, known in enumerate(benchmark.rules):
        head = known.rule.head
        if head not in by_head:
            by_head[head] = others[fits_head(head, benchmark.graph, negatives[others])]
        groups.append(np.full(len(by_head[head]), place, dtype=np.int64))
        rows.append(by_head[head] + offset)
    own = np.flatnonzero((recorded >= 0) & (recorded < len(benchmark.rules)))
    groups.append(recorded[own].astype(np.int64))
    rows.append(own + offset)
    return np.concatenate(groups), np.concatenate(rows)


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
    codes = np.column_stack([origins.source, origins.position, origins.rule, origins.kept])
    distinct, code = np.unique(codes, axis=0, return_inverse=True)
    names, kind = np.unique([_kind(benchmark, *row) for row in distinct.tolist()], return_inverse=True)
    return names.tolist(), kind.ravel()[code.ravel()].astype(np.int64)


def _kinds(benchmark: Benchmark, method: str | None, rows: Rows) -> dict[str, dict[str, Any]]:
    known = negative_kinds(benchmark, method)
    if known is None:
        return {}
    names, own = known
    group = np.concatenate([np.repeat(np.arange(len(names)), rows.positives), own])
    row = np.concatenate(
        [np.tile(np.arange(rows.positives), len(names)), np.arange(rows.negatives) + rows.positives]
    )
    made = group_metrics(rows, group, row, len(names))
    return {
        name: {"false_positive_rate": metrics["fp"] / (metrics["fp"] + metrics["tn"]), **metrics}
        for name, metrics in zip(names, made, strict=True)
    }


def _kind(benchmark: Benchmark, source: int, position: int, rule: int, kept: int) -> str:
    """Return what a negative of this origin is called: `position: subject`, `sub-rule: 1 of 3 atoms`."""
    name = SOURCES[source]
    if POSITIONS[position]:
        name += f": {POSITIONS[position]}"
    if kept and 0 <= rule < len(benchmark.rules):
        body = benchmark.rules[rule].rule.body
        atoms = [i for i, part in enumerate(body) if isinstance(part, Atom)]
        name += f": {sum(kept >> i & 1 for i in atoms)} of {len(atoms)} atoms"
    return name
