"""Which test triples belong to which rule: its conclusions, and the negatives that stand against it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import places_of
from loginfer.benchmark.values import Benchmark
from loginfer.engine.binding import relation_of
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Atom
from loginfer.logic.terms import Constant

__all__ = ["Pairs", "fits_head", "negatives_of", "own_conclusions", "rule_triples"]

Counts = npt.NDArray[np.int64]
Pairs = tuple[Counts, Counts]  # group, row


def negatives_of(benchmark: Benchmark, method: str | None) -> Triples:
    """Return N_test of a method; nothing for None."""
    if method is None:
        return np.empty((0, 3), dtype=np.int32)
    return benchmark.negatives[method].splits.test


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
    inside = found[known.conclusion] & (known.rule >= 0) & (known.rule < len(benchmark.rules))
    rule, row = known.rule[inside].astype(np.int64), places[known.conclusion[inside]]
    order = np.lexsort((row, rule))
    return rule[order], row[order]


def fits_head(head: Atom, graph: KnowledgeGraph, triples: Triples) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which triples could be conclusions of a rule with this head, by its names."""
    fits = triples[:, 1] == relation_of(head, graph)
    for column, term in ((0, head.subject), (2, head.object)):
        if isinstance(term, Constant):
            found = graph.entities.get(term.name)
            fits &= triples[:, column] == (-1 if found is None else found)
    if head.subject == head.object:
        fits &= triples[:, 0] == triples[:, 2]
    return np.asarray(fits)


def rule_triples(benchmark: Benchmark, method: str | None) -> Pairs:
    """Return which rule has which row: its conclusions in P_test, its negatives in N_test.

    Rows of negatives come after those of P_test. A negative belongs to the rule that its origin names. Where
    that names none, it belongs to every rule whose head it fits.
    """
    rule, row = own_conclusions(benchmark)
    negatives = negatives_of(benchmark, method)
    origins = None if method is None else benchmark.negatives[method].origins.get("test")
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
