"""Where each test triple stands among its competitors.

Three protocols say who these are (see `loginfer.evaluation.predictions.Protocol`). `given` is the definition of
section 2.2: the given negatives. `filtered` and `unfiltered` rank against all candidates; they share one pass over
the scores, which are asked for block by block, within a limit of memory.

Test triples that differ only in the position that is ranked, such as (s, R, o₁) and (s, R, o₂) for the object, ask one
query: (s, R, ?). Its scores are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark
from loginfer.errors import InputError, LimitError, UnknownNameError
from loginfer.evaluation.predictions import (
    PROTOCOLS,
    Counts,
    LabelledScores,
    Predictions,
    Protocol,
    Ranks,
    Scores,
    numbers,
)
from loginfer.kernels import kernel
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import places_of
from loginfer.progress import Progress
from loginfer.systems.interface import POSITIONS, CandidateScorer, Position, Scorer, choose_method

Ids = npt.NDArray[np.int32]
# Of float32 or float64, as the scorer likes.
BlockScores = npt.NDArray[np.floating[Any]]

# The protocols that rank against all candidates, in the order of the rows of counts.
OPEN: tuple[Protocol, Protocol] = ("unfiltered", "filtered")

MEMORY_LIMIT = 256 * 2**20

# Scores at a time, whatever the limit. Blocks of this size are given back to the allocator and taken again
# without asking the system for fresh pages.
CELLS = 2**22
# Triples at a time for a scorer that gets triples: it may need some hundred numbers for each.
PLAIN_CELLS = 2**18
# Bytes for each score, at most, and for the triple that is built for it.
SCORE_BYTES, TRIPLE_BYTES = 8, 12
# A scorer of candidates prepares each candidate for each block: so many queries at least should share that.
ROWS = 32


def rank(
    scorer: Scorer | None,
    benchmark: Benchmark,
    *,
    method: str | None = None,
    protocols: Sequence[Protocol] = ("filtered", "given"),
    positions: Sequence[Position] = POSITIONS,
    predictions: Predictions | None = None,
    memory_limit: int = MEMORY_LIMIT,
    progress: Progress | None = None,
) -> list[Ranks]:
    """Rank the triples of P_test in each position.

    Parameters
    ----------
    scorer
        Who gives the scores. One that has `score_candidates` is asked for blocks of candidates, any other for
        the scores of triples. None will do for `given` with predictions.
    benchmark
        The benchmark.
    method
        Whose N_test `given` means; by default that of the predictions, or the only one.
    protocols
        Whom to rank against. `given` is left out for a benchmark without negatives (see `left_out`).
    positions
        What to rank.
    predictions
        The scores of P_test and N_test, if they are known: `given` then asks the scorer nothing.
    memory_limit
        Bytes for the scores that are held at a time.
    progress
        Called with what is being done, the queries that are answered, and how many there are.

    Returns
    -------
    list of Ranks
        Protocol by protocol in the order asked for, in each position by position.

    Raises
    ------
    InputError
        If a score is NaN; the error names the triple.
    """
    _check_names("ranking protocol", protocols, PROTOCOLS)
    _check_names("position", positions, POSITIONS)
    possible = [protocol for protocol in protocols if protocol not in left_out(benchmark, protocols)]
    blocks = None if scorer is None else BlockScorer(scorer, memory_limit)
    ranks: list[Ranks] = []
    if "given" in possible:
        if method is None and predictions is not None:
            method = predictions.method
        method = choose_method(benchmark, method) or ""  # there are some, or `given` were left out
        scores = _labelled(blocks, benchmark, method, predictions)
        ranks += [given_ranks(benchmark, method, scores, position) for position in positions]
    if set(possible) & set(OPEN):
        if blocks is None:
            raise InputError(
                "scores of the test triples alone do not rank them against all candidates",
                hint="ask for the protocol `given`",
            )
        ranks += ranks_among_candidates(blocks, benchmark, positions, progress)
    return [each for protocol in possible for each in ranks if each.protocol == protocol]


def left_out(benchmark: Benchmark, protocols: Sequence[Protocol] = PROTOCOLS) -> dict[Protocol, str]:
    """Return the protocols under which a benchmark cannot be ranked, each with a note that says why."""
    if "given" in protocols and not benchmark.negatives:
        return {"given": f"no ranks under `given`: {benchmark.name} has no negatives to rank against"}
    return {}


def _check_names(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known)


def _labelled(
    blocks: BlockScorer | None, benchmark: Benchmark, method: str, predictions: Predictions | None
) -> LabelledScores:
    """Return the scores of P_test and N_test: the predictions, or what the scorer says."""
    test, negatives = benchmark.positives.test, benchmark.negatives[method].splits.test
    if predictions is not None:
        _check_predictions(predictions, benchmark, method)
        found = predictions.test
    elif blocks is not None:
        found = LabelledScores(blocks.of_many(test), blocks.of_many(negatives))
    else:
        raise InputError("nothing to rank by: neither a scorer nor predictions were given")
    for triples, scores in ((test, found.positive), (negatives, found.negative)):
        if np.isnan(scores).any():
            raise no_number(benchmark.graph, triples[np.isnan(scores).argmax()])
    return found


def _check_predictions(predictions: Predictions, benchmark: Benchmark, method: str) -> None:
    if predictions.method != method:
        raise InputError(f"the predictions are for the negatives `{predictions.method}`, not for `{method}`")
    wanted = (len(benchmark.positives.test), len(benchmark.negatives[method].splits.test))
    given = (len(predictions.test.positive), len(predictions.test.negative))
    if given != wanted:
        raise InputError(
            f"{given[0]:,} and {given[1]:,} scores for the {wanted[0]:,} triples of P_test and {wanted[1]:,} "
            f"of N_test of {benchmark.name}",
            hint="the predictions are those of another benchmark",
        )


# -- among the given negatives --------------------------------------------------------------------


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


# -- among all candidates -------------------------------------------------------------------------


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
    asked = {position: query_groups(benchmark, position) for position in positions}
    total = sum(len(group.queries) for several in asked.values() for group in several)
    done = 0
    ranks: list[Ranks] = []
    for position, several in asked.items():
        places = [np.empty(0, dtype=np.int64)]
        competitors = [np.empty((2, 0), dtype=np.int64)]
        counts = [np.empty((2, 2, 0), dtype=np.int64)]
        for group in several:
            size = len(group.candidates)
            known = np.diff(group.known_starts)[group.rows]
            places.append(group.places)
            competitors.append(np.stack([size - (group.own < size), size - known]))
            counts.append(np.zeros((2, 2, len(group.places)), dtype=np.int64))
            for answered in _count(blocks, benchmark.graph, group, counts[-1]):
                done += answered
                if progress is not None:
                    progress("ranking", done, total)
        everywhere = np.concatenate(places)
        order = np.argsort(everywhere)
        (above, ties), against = np.concatenate(counts, axis=2)[:, :, order], np.concatenate(competitors, axis=1)
        ranks += [
            Ranks(protocol, position, everywhere[order], above[row], ties[row], against[row, order])
            for row, protocol in enumerate(OPEN)
        ]
    return ranks


def _count(blocks: BlockScorer, graph: KnowledgeGraph, group: QueryGroup, counts: Counts) -> Iterator[int]:
    """Count competitors block by block; yield how many queries each block answers.

    Counts are int64[2, 2, m]: those above (0) and tied (1), for each protocol of `OPEN`, of each test triple of the
    group.
    """
    rows, columns = blocks.shape(len(group.queries), len(group.asked))
    for some in slices(len(group.queries), rows):
        part = group.part(some)
        mine = slice(int(group.starts[some.start]), int(group.starts[some.stop]))
        counted = counts[:, :, mine].copy()
        if columns >= len(group.asked):
            # All in one block, so that whoever ties does so bit by bit.
            scores = blocks.scores(part.queries, part.position, part.asked)
            own = scores[part.rows, part.own]
            _check_own(graph, part, own)
            _compare(graph, part, scores, slice(0, len(part.candidates)), own, counted)
        else:
            own = _own_scores(blocks, part, columns)
            _check_own(graph, part, own)
            for candidates in slices(len(part.candidates), columns):
                scores = blocks.scores(part.queries, part.position, part.candidates[candidates])
                _compare(graph, part, scores, candidates, own, counted)
        counts[:, :, mine] = counted
        yield len(part.queries)


def _own_scores(blocks: BlockScorer, part: QueryGroup, columns: int) -> BlockScores:
    """Return float[m], the scores of the test triples themselves, asked for as candidates."""
    values, place = np.unique(part.own, return_inverse=True)
    own: BlockScores = np.zeros(len(part.own))
    for some in slices(len(values), columns):
        scores = blocks.scores(part.queries, part.position, part.asked[values[some]])
        here = (some.start <= place) & (place < some.stop)
        own = own.astype(scores.dtype, copy=False)
        own[here] = scores[part.rows[here], place[here] - some.start]
    return own


def _check_own(graph: KnowledgeGraph, part: QueryGroup, own: BlockScores) -> None:
    if np.isnan(own).any():
        first = int(np.isnan(own).argmax())
        raise no_number(graph, part.triple(part.rows[first], part.asked[part.own[first]]))


def _compare(
    graph: KnowledgeGraph, part: QueryGroup, scores: BlockScores, candidates: slice, own: BlockScores, counts: Counts
) -> None:
    """Add to counts, int64[2, 2, m], who of some candidates is above a test triple, and who ties with it."""
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


@kernel
def count(
    scores: npt.NDArray[Any],
    begin: int,
    end: int,
    starts: Counts,
    own: npt.NDArray[np.int32],
    own_scores: npt.NDArray[Any],
    known_starts: Counts,
    known: npt.NDArray[np.int32],
    counts: Counts,
) -> int:
    """Add up the competitors of a block's test triples; return where a score is NaN, as a flat place, or -1.

    Parameters
    ----------
    scores
        float[n, ≥ end - begin]: row i has the candidates begin … end - 1 of query i; the rest is not read.
    begin, end
        Which candidates.
    starts, own, own_scores
        int64[n + 1], int32[m], float[m]: test triple t of query i, starts[i] ≤ t < starts[i + 1], is
        candidate own[t] itself and has the score own_scores[t].
    known_starts, known
        int64[n + 1], int32[k]: the candidates that make query i a positive, itself included.
    counts
        int64[2, 2, m], added to: competitors with a higher score (0) and with the same (1), among all
        candidates but itself (·, 0) and without the known positives (·, 1).
    """
    width = end - begin
    row_length: int = scores.shape[1]
    for i in range(len(starts) - 1):
        row = scores[i, :width]
        missing = 0
        for j in range(width):
            missing += row[j] != row[j]
        if missing:
            for j in range(width):
                if row[j] != row[j]:
                    return i * row_length + j
        for t in range(starts[i], starts[i + 1]):
            mine = own_scores[t]
            higher = 0
            same = 0
            for j in range(width):
                higher += row[j] > mine
                same += row[j] == mine
            # It is left out by its place: asked in another block, its score might differ in the last bit.
            if begin <= own[t] < end:
                counts[0, 0, t] -= row[own[t] - begin] > mine
                counts[1, 0, t] -= row[own[t] - begin] == mine
            counts[0, 0, t] += higher
            counts[1, 0, t] += same
            for p in range(known_starts[i], known_starts[i + 1]):
                if begin <= known[p] < end:
                    higher -= row[known[p] - begin] > mine
                    same -= row[known[p] - begin] == mine
            counts[0, 1, t] += higher
            counts[1, 1, t] += same
    return -1


# -- what is asked --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryGroup:
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
    starts: Counts
    places: Counts
    own: Ids
    known_starts: Counts
    known: Ids

    @property
    def asked(self) -> Ids:
        """int32[c + u]: all that has to be scored."""
        return np.concatenate([self.candidates, self.unseen]) if len(self.unseen) else self.candidates

    @property
    def rows(self) -> Counts:
        """int64[m]: the query of each entry of `places`."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.starts))

    def part(self, some: slice) -> QueryGroup:
        """Return the group with some consecutive queries only."""
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


def query_groups(benchmark: Benchmark, position: Position) -> list[QueryGroup]:
    """Return what has to be asked to rank P_test in one position, without groups that no test triple is in.

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
    return [_query_group(benchmark, position, places, candidates, keys) for places, candidates in chosen if len(places)]


def query_keys(triples: Triples, position: Position, graph: KnowledgeGraph) -> Counts:
    """Return int64[n], one number for each triple: the same for triples that differ in the position only."""
    first, second = (column for column in range(3) if POSITIONS[column] != position)
    keys = triples[:, first].astype(np.int64)
    keys *= _size(graph, POSITIONS[second])
    keys += triples[:, second]
    return keys


def _size(graph: KnowledgeGraph, position: Position) -> int:
    return len(graph.relations if position == "relation" else graph.entities)


def _query_group(
    benchmark: Benchmark, position: Position, places: Counts, candidates: Ids, positives: Counts
) -> QueryGroup:
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
    return QueryGroup(
        position, candidates, unseen, test[first], starts, places[order], column[values], known_starts, known
    )


def _among(positives: Counts, wanted: Counts, size: int, column: Ids) -> tuple[Ids, Counts]:
    """Return the candidates that make each query a positive, and where each query's begin."""
    begin = np.searchsorted(positives, wanted * size)
    lengths = np.searchsorted(positives, (wanted + 1) * size) - begin
    shift = begin - (np.cumsum(lengths) - lengths)
    values = positives[np.arange(lengths.sum()) + np.repeat(shift, lengths)] - np.repeat(wanted * size, lengths)
    found = column[values]
    query = np.repeat(np.arange(len(wanted)), lengths)[found >= 0]
    starts = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=len(wanted)))])
    return found[found >= 0], starts


# -- scores in blocks -----------------------------------------------------------------------------


class BlockScorer:
    """Asks a scorer for the scores of many candidates, as much at a time as the limit allows.

    Parameters
    ----------
    scorer
        A scorer of candidates, or of triples only.
    memory_limit
        Bytes for the scores of a block, and the triples that are built for it.
    """

    def __init__(self, scorer: Scorer, memory_limit: int = MEMORY_LIMIT) -> None:
        self._scorer = scorer
        self._by_candidates = scorer if isinstance(scorer, CandidateScorer) else None
        bytes_each = SCORE_BYTES if self._by_candidates else SCORE_BYTES + TRIPLE_BYTES
        self.cells = min(CELLS if self._by_candidates else PLAIN_CELLS, memory_limit // bytes_each)
        if self.cells < 1:
            raise LimitError(f"{memory_limit} bytes are too few to rank in", hint="allow some megabytes")

    def shape(self, queries: int, candidates: int) -> tuple[int, int]:
        """Return how many queries and how many candidates make a block.

        All candidates, if enough queries fit into a block then.
        """
        enough = min(queries, ROWS if self._by_candidates else 1)
        if candidates * enough <= self.cells:
            return max(1, min(queries, self.cells // max(candidates, 1))), max(candidates, 1)
        rows = min(enough, self.cells)
        return rows, self.cells // rows

    def scores(self, queries: Triples, position: Position, candidates: Ids) -> BlockScores:
        """Return float[n, c]: the scores of each query with each candidate in that position."""
        shape = (len(queries), len(candidates))
        if self._by_candidates is not None:
            found = self._by_candidates.score_candidates(queries, position, candidates)
            return self._checked(found, shape, f"{shape[0]} × {shape[1]} candidates")
        triples = np.empty((*shape, 3), dtype=np.int32)
        triples[:] = queries[:, None]
        triples[:, :, POSITIONS.index(position)] = candidates
        return self.of_triples(triples.reshape(-1, 3)).reshape(shape)

    def of_triples(self, triples: Triples) -> BlockScores:
        """Return float[n], the scores of triples."""
        return self._checked(self._scorer.score(triples), (len(triples),), f"{len(triples)} triples")

    def of_many(self, triples: Triples) -> Scores:
        """Return float64[n], the scores of triples, asked for in blocks."""
        parts = [self.of_triples(triples[part]) for part in slices(len(triples), self.cells)]
        return np.concatenate([np.empty(0), *parts])

    def _checked(self, answer: Any, shape: tuple[int, ...], what: str) -> BlockScores:
        expected = f"one score for each is wanted: {shape}"
        found = numbers(answer, expected)  # of the two types that counting is compiled for
        if found.shape != shape:
            raise InputError(f"the scorer gave scores of the shape {found.shape} for {what}", hint=expected)
        return np.ascontiguousarray(found)


def no_number(graph: KnowledgeGraph, triple: npt.ArrayLike) -> InputError:
    """Return the error about a triple whose score is NaN."""
    names = ", ".join(graph.names(triple)[0])
    return InputError(
        f"the score of the triple ({names}) is NaN, so nothing can be ranked against it",
        hint="give a triple about which nothing is known a low score",
    )


def slices(total: int, size: int) -> Iterator[slice]:
    """Yield consecutive slices of at most `size`."""
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))
