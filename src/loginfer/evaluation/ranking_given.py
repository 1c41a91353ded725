"""Ranks among the given negatives: the definition of section 2.2."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.lookup import places_of
from loginfer.benchmark.values import Benchmark
from loginfer.evaluation.ranking_candidates import query_keys
from loginfer.evaluation.values import LabelledScores, Ranks
from loginfer.systems.interface import Position

__all__ = ["given_ranks"]


def given_ranks(benchmark: Benchmark, method: str, scores: LabelledScores, position: Position) -> Ranks:
    """Return where each triple of P_test stands among those of N_test that differ from it in one position.

    Parameters
    ----------
    benchmark
        The benchmark.
    method
        Whose N_test.
    scores
        Those of P_test and N_test.
    position
        Which position. `type` is no relation: type triples are left out where relations are ranked.
    """
    graph = benchmark.graph
    test, negatives = benchmark.positives.test, benchmark.negatives[method].splits.test
    places, rivals = np.arange(len(test)), np.arange(len(negatives))
    if position == "relation" and graph.type_relation is not None:
        places = np.flatnonzero(test[:, 1] != graph.type_relation)
        rivals = np.flatnonzero(negatives[:, 1] != graph.type_relation)
    test, negatives = test[places], negatives[rivals]
    mine, theirs = scores.positive[places], scores.negative[rivals]

    # Queries and scores as whole numbers in the same order: one sorted list of (query, score) then answers
    # for every test triple where its query's negatives begin, and where its own score would stand.
    query, other_query = _numbered(*(query_keys(triples, position, graph) for triples in (test, negatives)))
    score, other_score = _numbered(mine, theirs)
    base = len(mine) + len(theirs) + 1
    listed = np.sort(other_query * base + other_score)
    begin, end = np.searchsorted(listed, query * base), np.searchsorted(listed, (query + 1) * base)
    low = np.searchsorted(listed, query * base + score)
    high = np.searchsorted(listed, query * base + score, side="right")
    above, ties, competitors = end - high, high - low, end - begin

    # A triple that is labelled both true and false does not compete with itself.
    order = np.argsort(graph.keys.pack(negatives))
    itself, where = places_of(graph.keys.pack(negatives)[order], graph.keys.pack(test))
    if itself.any():
        again = other_score[order[where[itself]]]
        above[itself] -= again > score[itself]
        ties[itself] -= again == score[itself]
        competitors[itself] -= 1
    return Ranks("given", position, places, above, ties, competitors)


def _numbered(
    first: npt.NDArray[np.generic], second: npt.NDArray[np.generic]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return two arrays of values as whole numbers in the same order, from 0 on."""
    numbers = np.unique(np.concatenate([first, second]), return_inverse=True)[1].ravel()
    return numbers[: len(first)], numbers[len(first) :]
