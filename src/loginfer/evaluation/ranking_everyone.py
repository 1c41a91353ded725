"""Ranks among all candidates, filtered and unfiltered: one pass over the scores, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from loginfer.benchmark.values import Benchmark
from loginfer.evaluation.ranking_blocks import BlockScorer, Scores, no_number, slices
from loginfer.evaluation.ranking_candidates import Question, questions
from loginfer.evaluation.values import Counts, Protocol, Ranks
from loginfer.kg import KnowledgeGraph
from loginfer.systems.interface import POSITIONS, Position

__all__ = ["OPEN", "Progress", "ranks_among_candidates"]

# Called with what is being done, how much of it is done, and how much there is.
Progress: TypeAlias = Callable[[str, int, int | None], None]

# The protocols that rank against all candidates, in the order of the rows of counts.
OPEN: tuple[Protocol, Protocol] = ("unfiltered", "filtered")


def ranks_among_candidates(
    blocks: BlockScorer,
    benchmark: Benchmark,
    positions: Sequence[Position] = POSITIONS,
    progress: Progress | None = None,
) -> list[Ranks]:
    """Return the ranks of P_test in some positions, unfiltered and filtered.

    Parameters
    ----------
    blocks
        Who gives the scores.
    benchmark
        The benchmark.
    positions
        Which positions.
    progress
        Called with what is being done, the queries that are answered, and how many there are.
    """
    asked = {position: questions(benchmark, position) for position in positions}
    total = sum(len(question.queries) for several in asked.values() for question in several)
    done = 0
    found: list[Ranks] = []
    for position, several in asked.items():
        tallies = []
        for question in several:
            tallies.append(_tally(question))
            for answered in _count(blocks, benchmark.graph, question, tallies[-1]):
                done += answered
                if progress is not None:
                    progress("ranking", done, total)
        found += _ranks(position, several, tallies)
    return found


@dataclass(frozen=True, slots=True)
class _Tally:
    """Competitors of the test triples of a question, in the order of `Question.places`.

    Each is int64[2, m], a row for each protocol of `OPEN`.
    """

    above: Counts
    ties: Counts
    competitors: Counts


def _tally(question: Question) -> _Tally:
    """Return who competes, with nobody above or tied yet."""
    size = len(question.candidates)
    known = np.diff(question.known_starts)[question.rows]
    competitors = np.stack([size - (question.own < size), size - known])
    return _Tally(np.zeros_like(competitors), np.zeros_like(competitors), competitors)


def _ranks(position: Position, several: list[Question], tallies: list[_Tally]) -> Iterator[Ranks]:
    """Yield the ranks of one position, with the test triples in their order again."""
    nobody = np.empty(0, dtype=np.int64)
    places = np.concatenate([nobody, *(question.places for question in several)])
    order = np.argsort(places)
    for row, protocol in enumerate(OPEN):
        above, ties, competitors = (
            np.concatenate([nobody, *(getattr(tally, name)[row] for tally in tallies)])[order]
            for name in _Tally.__slots__
        )
        yield Ranks(protocol, position, places[order], above, ties, competitors)


# -- block by block --------------------------------------------------------------------------------


def _count(blocks: BlockScorer, graph: KnowledgeGraph, question: Question, tally: _Tally) -> Iterator[int]:
    """Fill a tally block by block; yield how many queries each block answers."""
    rows, columns = blocks.shape(len(question.queries), len(question.asked))
    for some in slices(len(question.queries), rows):
        part = question.part(some)
        mine = slice(int(question.starts[some.start]), int(question.starts[some.stop]))
        counts = np.stack([tally.above[:, mine], tally.ties[:, mine]])
        if columns >= len(question.asked):
            # All in one block, so that whoever ties does so bit by bit.
            scores = blocks.scores(part.queries, part.position, part.asked)
            own = scores[part.rows, part.own]
            _check_own(graph, part, own)
            _compare(graph, part, scores, slice(0, len(part.candidates)), own, counts)
        else:
            own = _own_scores(blocks, part, columns)
            _check_own(graph, part, own)
            for candidates in slices(len(part.candidates), columns):
                scores = blocks.scores(part.queries, part.position, part.candidates[candidates])
                _compare(graph, part, scores, candidates, own, counts)
        tally.above[:, mine], tally.ties[:, mine] = counts
        yield len(part.queries)


def _own_scores(blocks: BlockScorer, part: Question, columns: int) -> Scores:
    """Return float[m], the scores of the test triples themselves, asked for as candidates."""
    values, place = np.unique(part.own, return_inverse=True)
    own: Scores = np.zeros(len(part.own))
    for some in slices(len(values), columns):
        scores = blocks.scores(part.queries, part.position, part.asked[values[some]])
        here = (some.start <= place) & (place < some.stop)
        own = own.astype(scores.dtype, copy=False)
        own[here] = scores[part.rows[here], place[here] - some.start]
    return own


def _check_own(graph: KnowledgeGraph, part: Question, own: Scores) -> None:
    if np.isnan(own).any():
        first = int(np.isnan(own).argmax())
        raise no_number(graph, part.triple(part.rows[first], part.asked[part.own[first]]))


def _compare(
    graph: KnowledgeGraph, part: Question, scores: Scores, candidates: slice, own: Scores, counts: Counts
) -> None:
    """Add to counts, int64[2, 2, m], who of some candidates is above a test triple, and who ties with it."""
    from loginfer.evaluation.ranking_kernels import count

    bad = count(
        scores,
        candidates.start,
        candidates.stop,
        part.starts,
        part.own,
        own.astype(scores.dtype, copy=False),
        part.known_starts,
        part.known,
        counts,
    )
    if bad >= 0:
        row, column = divmod(bad, scores.shape[1])
        raise no_number(graph, part.triple(row, part.candidates[candidates.start + column]))
