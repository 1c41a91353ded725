"""Whom a test triple is ranked against: the candidates for each position, and the positives among them.

Test triples that differ in the position in question only, such as (s, R, o₁) and (s, R, o₂) for the object,
ask one query: (s, R, ?). Its scores are computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.values import Benchmark
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.systems.interface import POSITIONS, Position

__all__ = ["Question", "others", "query_keys", "questions"]

Ids = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Question:
    """Test triples that are ranked in one position against the same candidates, as queries.

    Parameters
    ----------
    position
        Which position.
    candidates
        int32[c], what may stand there, ascending.
    unseen
        int32[u], values of test triples that are no candidates: P_train does not have them. They are scored
        beside the candidates and are nobody's competitors.
    queries
        int32[q, 3], one triple for each query; what it has in the position does not matter.
    starts, places
        int64[q + 1], int64[m]: `places[starts[i]:starts[i + 1]]` are the triples of P_test that ask query i.
    own
        int32[m]: what each of them has in the position, as a place in `candidates` followed by `unseen`.
    known_starts, known
        int64[q + 1], int32[k]: for each query the candidates that make it a triple of P_all, as ascending
        places in `candidates`.
    """

    position: Position
    candidates: Ids
    unseen: Ids
    queries: Triples
    starts: Longs
    places: Longs
    own: Ids
    known_starts: Longs
    known: Ids

    @property
    def asked(self) -> Ids:
        """int32[c + u]: all that has to be scored."""
        return np.concatenate([self.candidates, self.unseen]) if len(self.unseen) else self.candidates

    @property
    def rows(self) -> Longs:
        """int64[m]: the query of each entry of `places`."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.starts))

    def part(self, some: slice) -> Question:
        """Return the question with some consecutive queries only."""
        starts, known_starts = (s[some.start : some.stop + 1] for s in (self.starts, self.known_starts))
        mine, known = (slice(int(s[0]), int(s[-1])) for s in (starts, known_starts))
        return replace(
            self,
            queries=self.queries[some],
            starts=starts - starts[0],
            places=self.places[mine],
            own=self.own[mine],
            known_starts=known_starts - known_starts[0],
            known=self.known[known],
        )

    def triple(self, row: int, value: int) -> Ids:
        """Return int32[3]: a query with a value in the position."""
        triple: Ids = self.queries[row].copy()
        triple[POSITIONS.index(self.position)] = value
        return triple


def questions(benchmark: Benchmark, position: Position) -> list[Question]:
    """Return what has to be asked to rank P_test in one position, without questions that nobody asks.

    Subjects are ranked against Consts(P_train), relations against Rels(P_train), objects against
    Consts(P_train), or Types(P_train) in a type triple. A type triple has no relation to corrupt. Of an
    inductive benchmark the constants are those of the context graph.
    """
    train, test = benchmark.graph, benchmark.positives.test
    consts = train.consts if benchmark.context is None else benchmark.context.consts
    if position == "subject":
        chosen = [(np.arange(len(test)), consts)]
    else:
        is_type = test[:, 1] == (-1 if train.type_relation is None else train.type_relation)
        plain = consts if position == "object" else train.rels
        chosen = [(np.flatnonzero(~is_type), plain)]
        if position == "object":
            chosen.append((np.flatnonzero(is_type), train.types))
    if not any(len(places) for places, _ in chosen):
        return []
    everything = benchmark.everything
    keys = query_keys(everything.triples, position, everything)
    keys *= _size(everything, position)
    keys += everything.triples[:, POSITIONS.index(position)]
    keys.sort()
    return [
        _question(benchmark, position, places, candidates, keys)
        for places, candidates in chosen
        if len(places)
    ]


def others(position: Position) -> tuple[int, int]:
    """Return the two columns of a triple beside a position."""
    first, second = (column for column in range(3) if POSITIONS[column] != position)
    return first, second


def query_keys(triples: Triples, position: Position, graph: KnowledgeGraph) -> Longs:
    """Return int64[n], one number for each triple: the same for triples that differ in the position only."""
    first, second = others(position)
    keys = triples[:, first].astype(np.int64)
    keys *= _size(graph, POSITIONS[second])
    keys += triples[:, second]
    return keys


def _size(graph: KnowledgeGraph, position: Position) -> int:
    return len(graph.relations if position == "relation" else graph.entities)


def _question(
    benchmark: Benchmark, position: Position, places: Longs, candidates: Ids, positives: Longs
) -> Question:
    """Group test triples into queries; `positives` are the triples of P_all as sorted keys, position last."""
    size = _size(benchmark.graph, position)
    test = benchmark.positives.test[places]
    wanted, first, query = np.unique(
        query_keys(test, position, benchmark.graph), return_index=True, return_inverse=True
    )
    order = np.argsort(query.ravel(), kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(query.ravel(), minlength=len(wanted)))])
    values = test[order, POSITIONS.index(position)]
    column = np.full(size, -1, dtype=np.int32)
    column[candidates] = np.arange(len(candidates), dtype=np.int32)
    known, known_starts = _among(positives, wanted, size, column)
    unseen = np.unique(values[column[values] < 0])
    column[unseen] = np.arange(len(candidates), len(candidates) + len(unseen), dtype=np.int32)
    return Question(
        position, candidates, unseen, test[first], starts, places[order], column[values], known_starts, known
    )


def _among(positives: Longs, wanted: Longs, size: int, column: Ids) -> tuple[Ids, Longs]:
    """Return the candidates that make each query a positive, and where each query's begin."""
    begin = np.searchsorted(positives, wanted * size)
    lengths = np.searchsorted(positives, (wanted + 1) * size) - begin
    shift = begin - (np.cumsum(lengths) - lengths)
    values = positives[np.arange(lengths.sum()) + np.repeat(shift, lengths)] - np.repeat(
        wanted * size, lengths
    )
    found = column[values]
    query = np.repeat(np.arange(len(wanted)), lengths)[found >= 0]
    starts = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=len(wanted)))])
    return found[found >= 0], starts
