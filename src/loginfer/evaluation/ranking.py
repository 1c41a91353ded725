"""Where each test triple stands among its competitors.

Four protocols say who these are (see `loginfer.evaluation.predictions.Protocol`). `given` is the definition of
section 2.2: the given negatives. `filtered` and `unfiltered` rank against all candidates; they share one pass over
the scores, which are asked for block by block, within a limit of memory. `seen` is `filtered` for a benchmark whose
valid and test have lost the triples with names that train has not seen.

Test triples that differ only in the position that is ranked, such as (s, R, o₁) and (s, R, o₂) for the object, ask one
query: (s, R, ?). Its scores are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import Benchmark, Signature, Splits
from loginfer.errors import InputError, LimitError, UnknownNameError
from loginfer.evaluation.predictions import PROTOCOLS, Counts, LabelledScores, Predictions, Protocol, Ranks, numbers
from loginfer.kernels import kernel
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import places_of
from loginfer.progress import Progress, report_progress
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
# So many names that train has not seen are listed.
NAMED = 3
# A scorer of candidates prepares each candidate for each block: so many queries at least should share that.
ROWS = 32


def rank(
    scorer: Scorer | None,
    benchmark: Benchmark,
    *,
    negatives: str | None = None,
    ranking: Sequence[Protocol] = ("filtered", "given"),
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
    negatives
        Whose N_test `given` means; by default that of the predictions, or the only one.
    ranking
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
    _check_names("ranking protocol", ranking, PROTOCOLS)
    _check_names("position", positions, POSITIONS)
    possible = [protocol for protocol in ranking if protocol not in left_out(benchmark, ranking)]
    blocks = None if scorer is None else BlockScorer(scorer, memory_limit)
    ranks: list[Ranks] = []
    if "given" in possible:
        if negatives is None and predictions is not None:
            negatives = predictions.method
        method = choose_method(benchmark, negatives) or ""  # there are some, or `given` were left out
        scores = _labelled_scores(blocks, benchmark, method, predictions)
        ranks += [given_ranks(benchmark, method, scores, position) for position in positions]
    if set(possible) - {"given"}:
        if blocks is None:
            hint = "ask for the protocol `given`"
            raise InputError("scores of the test triples alone do not rank them against all candidates", hint=hint)
        if set(possible) & set(OPEN):
            ranks += ranks_among_candidates(blocks, benchmark, positions, progress)
        if "seen" in possible:
            seen, splits = candidate_names(benchmark)[0], benchmark.positives
            rows = np.flatnonzero(seen.covers(splits.test))
            reduced = Splits(splits.train, splits.valid[seen.covers(splits.valid)], splits.test[rows])
            found = ranks_among_candidates(blocks, replace(benchmark, positives=reduced), positions, progress)
            ranks += [replace(r, protocol="seen", places=rows[r.places]) for r in found if r.protocol == "filtered"]
    return [part for protocol in possible for part in ranks if part.protocol == protocol]


def left_out(benchmark: Benchmark, protocols: Sequence[Protocol] = PROTOCOLS) -> dict[Protocol, str]:
    """Return the protocols under which a benchmark cannot be ranked, each with a note that says why."""
    if "given" in protocols and not benchmark.negatives:
        return {"given": f"no ranks under `given`: {benchmark.name} has no negatives to rank against"}
    return {}


def ranking_notes(benchmark: Benchmark, protocols: Sequence[Protocol]) -> list[str]:
    """Return what to know about ranks under these protocols: which are left out, and which names train has not seen."""
    notes = list(left_out(benchmark, protocols).values())
    graph, test, (seen, names) = benchmark.graph, benchmark.positives.test, candidate_names(benchmark)
    lists = []
    for kind in ("constants", "types", "relations"):
        vocabulary = graph.relations if kind == "relations" else graph.entities
        if count := len(ids := np.flatnonzero(getattr(names, kind) & ~getattr(seen, kind))):
            listed = ", ".join(f"`{vocabulary[int(i)]}`" for i in ids[:NAMED])
            more = f" and {count - NAMED:,} more" if count > NAMED else ""
            lists.append(f"{count:,} {kind if count > 1 else kind[:-1]} ({listed}{more})")
    if lists and set(protocols) - {"given"}:
        where = "train" if benchmark.context is None else "the context graph"
        notes.append(
            f"{where} has not seen {' and '.join(lists)} of valid and test, which {(~seen.covers(test)).sum():,} of "
            f"{len(test):,} test triples have; `filtered` ranks these too, among all constants, as most papers do; "
            "`seen` leaves them out (--ranking filtered,seen)"
        )
    return notes


def _check_names(kind: str, names: Sequence[str], allowed: Sequence[str]) -> None:
    for name in names:
        if name not in allowed:
            raise UnknownNameError(kind, name, allowed)


def _labelled_scores(
    blocks: BlockScorer | None, benchmark: Benchmark, method: str, predictions: Predictions | None
) -> LabelledScores:
    """Return the scores of P_test and N_test: the predictions, or what the scorer says."""
    test, negatives = benchmark.positives.test, benchmark.negatives[method].splits.test
    if predictions is not None:
        _check_predictions(predictions, benchmark, method)
        labelled = predictions.test
    elif blocks is not None:
        labelled = LabelledScores(blocks.of_many(test), blocks.of_many(negatives))
    else:
        raise InputError("nothing to rank by: neither a scorer nor predictions were given")
    for triples, scores in ((test, labelled.positive), (negatives, labelled.negative)):
        if np.isnan(scores).any():
            raise no_number(benchmark.graph, triples[np.isnan(scores).argmax()])
    return labelled


def _check_predictions(predictions: Predictions, benchmark: Benchmark, method: str) -> None:
    if predictions.method != method:
        raise InputError(f"the predictions are for the negatives `{predictions.method}`, not for `{method}`")
    expected = (len(benchmark.positives.test), len(benchmark.negatives[method].splits.test))
    actual = (len(predictions.test.positive), len(predictions.test.negative))
    if actual != expected:
        raise InputError(
            f"{actual[0]:,} and {actual[1]:,} scores for the {expected[0]:,} triples of P_test and {expected[1]:,} "
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
    test_rows, negative_rows = np.arange(len(test)), np.arange(len(negatives))
    if position == "relation" and graph.type_relation is not None:
        test_rows = np.flatnonzero(test[:, 1] != graph.type_relation)
        negative_rows = np.flatnonzero(negatives[:, 1] != graph.type_relation)
    test, negatives = test[test_rows], negatives[negative_rows]
    test_scores, negative_scores = scores.positive[test_rows], scores.negative[negative_rows]

    # Queries and scores become whole numbers in the same order: one sorted list of (query, score) of the
    # negatives then says where a test triple's query begins, and where its own score would stand.
    test_query, negative_query = _numbered(*(query_keys(triples, position, graph) for triples in (test, negatives)))
    test_code, negative_code = _numbered(test_scores, negative_scores)
    base = len(test_scores) + len(negative_scores) + 1
    listed = np.sort(negative_query * base + negative_code)
    begin, end = np.searchsorted(listed, test_query * base), np.searchsorted(listed, (test_query + 1) * base)
    low = np.searchsorted(listed, test_query * base + test_code)
    high = np.searchsorted(listed, test_query * base + test_code, side="right")
    above, ties, competitors = end - high, high - low, end - begin

    # A triple that is labelled both true and false does not compete with itself.
    order = np.argsort(graph.keys.pack(negatives))
    itself, index = places_of(graph.keys.pack(negatives)[order], graph.keys.pack(test))
    if itself.any():
        code_as_negative = negative_code[order[index[itself]]]
        above[itself] -= code_as_negative > test_code[itself]
        ties[itself] -= code_as_negative == test_code[itself]
        competitors[itself] -= 1
    return Ranks("given", position, test_rows, above, ties, competitors)


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
    groups = {position: query_groups(benchmark, position) for position in positions}
    total = sum(len(group.queries) for position_groups in groups.values() for group in position_groups)
    done = 0
    ranks: list[Ranks] = []
    for position, position_groups in groups.items():
        test_rows = [np.empty(0, dtype=np.int64)]
        competitors = [np.empty((2, 0), dtype=np.int64)]
        counts = [np.empty((2, 2, 0), dtype=np.int64)]
        for group in position_groups:
            size = len(group.candidates)
            num_positives = np.diff(group.positive_starts)[group.rows]
            test_rows.append(group.test_rows)
            competitors.append(np.stack([np.full(len(group.rows), size - 1), size - num_positives]))
            counts.append(np.zeros((2, 2, len(group.test_rows)), dtype=np.int64))
            for answered in _count(blocks, benchmark.graph, group, counts[-1]):
                done += answered
                report_progress(progress, "ranking", done, total)
        all_rows = np.concatenate(test_rows)
        order = np.argsort(all_rows)
        (above, ties), against = np.concatenate(counts, axis=2)[:, :, order], np.concatenate(competitors, axis=1)
        ranks += [
            Ranks(protocol, position, all_rows[order], above[row], ties[row], against[row, order])
            for row, protocol in enumerate(OPEN)
        ]
    return ranks


def _count(blocks: BlockScorer, graph: KnowledgeGraph, group: QueryGroup, counts: Counts) -> Iterator[int]:
    """Count competitors block by block; yield how many queries each block answers.

    Counts are int64[2, 2, m]: those above (0) and tied (1), for each protocol of `OPEN`, of each test triple of the
    group.
    """
    rows, columns = blocks.shape(len(group.queries), len(group.candidates))
    for query_slice in slices(len(group.queries), rows):
        part = group.part(query_slice)
        triple_slice = slice(int(group.starts[query_slice.start]), int(group.starts[query_slice.stop]))
        part_counts = counts[:, :, triple_slice].copy()
        # All in one block where that is possible, so that ties are equal bit by bit.
        whole = blocks.scores(part.queries, part.position, part.candidates) if columns >= len(part.candidates) else None
        own_scores = _own_scores(blocks, part, columns) if whole is None else whole[part.rows, part.own_columns]
        if np.isnan(own_scores).any():
            first = int(np.isnan(own_scores).argmax())
            raise no_number(graph, part.triple(part.rows[first], part.candidates[part.own_columns[first]]))
        for candidates in slices(len(part.candidates), columns):
            scores = blocks.scores(part.queries, part.position, part.candidates[candidates]) if whole is None else whole
            _compare(graph, part, scores, candidates, own_scores, part_counts)
        counts[:, :, triple_slice] = part_counts
        yield len(part.queries)


def _own_scores(blocks: BlockScorer, part: QueryGroup, columns: int) -> BlockScores:
    """Return float[m], the scores of the test triples themselves, asked for as candidates."""
    values, index = np.unique(part.own_columns, return_inverse=True)
    own_scores: BlockScores = np.zeros(len(part.own_columns))
    for value_slice in slices(len(values), columns):
        scores = blocks.scores(part.queries, part.position, part.candidates[values[value_slice]])
        in_slice = (value_slice.start <= index) & (index < value_slice.stop)
        own_scores = own_scores.astype(scores.dtype, copy=False)
        own_scores[in_slice] = scores[part.rows[in_slice], index[in_slice] - value_slice.start]
    return own_scores


def _compare(
    graph: KnowledgeGraph, part: QueryGroup, block: BlockScores, columns: slice, own_scores: BlockScores, counts: Counts
) -> None:
    """Add to counts, int64[2, 2, m], how many of some candidates are above each test triple, and how many tie."""
    own_scores = own_scores.astype(block.dtype, copy=False)
    positives = part.positive_starts, part.positive_columns
    bad = count(block, columns.start, columns.stop, part.starts, part.own_columns, own_scores, *positives, counts)
    if bad >= 0:
        row, column = divmod(bad, block.shape[1])
        raise no_number(graph, part.triple(row, part.candidates[columns.start + column]))


@kernel
def count(
    scores: npt.NDArray[Any],
    begin: int,
    end: int,
    starts: Counts,
    own_columns: npt.NDArray[np.int32],
    own_scores: npt.NDArray[Any],
    positive_starts: Counts,
    positive_columns: npt.NDArray[np.int32],
    counts: Counts,
) -> int:
    """Add up the competitors of a block's test triples; return the flat index of a score that is NaN, or -1.

    Parameters
    ----------
    scores
        float[n, ≥ end - begin]: row i has the candidates begin … end - 1 of query i; the rest is not read.
    begin, end
        Which candidates.
    starts, own_columns, own_scores
        int64[n + 1], int32[m], float[m]: test triple t of query i, starts[i] ≤ t < starts[i + 1], is
        candidate own_columns[t] itself and has the score own_scores[t].
    positive_starts, positive_columns
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
            own_score = own_scores[t]
            higher = 0
            same = 0
            for j in range(width):
                higher += row[j] > own_score
                same += row[j] == own_score
            # It is left out by its index: asked in another block, its score might differ in the last bit.
            if begin <= own_columns[t] < end:
                counts[0, 0, t] -= row[own_columns[t] - begin] > own_score
                counts[1, 0, t] -= row[own_columns[t] - begin] == own_score
            counts[0, 0, t] += higher
            counts[1, 0, t] += same
            for p in range(positive_starts[i], positive_starts[i + 1]):
                if begin <= positive_columns[p] < end:
                    higher -= row[positive_columns[p] - begin] > own_score
                    same -= row[positive_columns[p] - begin] == own_score
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
    queries
        int32[q, 3], one triple for each query; what it has in the position does not matter.
    starts, test_rows
        int64[q + 1], int64[m]: `test_rows[starts[i]:starts[i + 1]]` are the triples of P_test that ask query i.
    own_columns
        int32[m]: what each of them has in the position, as an index into `candidates`.
    positive_starts, positive_columns
        int64[q + 1], int32[k]: for each query the candidates that make it a triple of P_all, as ascending
        indices into `candidates`.
    """

    position: Position
    candidates: Ids
    queries: Triples
    starts: Counts
    test_rows: Counts
    own_columns: Ids
    positive_starts: Counts
    positive_columns: Ids

    @property
    def rows(self) -> Counts:
        """int64[m]: the query of each entry of `test_rows`."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.starts))

    def part(self, query_slice: slice) -> QueryGroup:
        """Return the group with these consecutive queries only."""
        bounds = slice(query_slice.start, query_slice.stop + 1)
        starts, positive_starts = self.starts[bounds], self.positive_starts[bounds]
        triple_slice, positive_slice = (slice(int(s[0]), int(s[-1])) for s in (starts, positive_starts))
        return replace(
            self,
            queries=self.queries[query_slice],
            starts=starts - starts[0],
            test_rows=self.test_rows[triple_slice],
            own_columns=self.own_columns[triple_slice],
            positive_starts=positive_starts - positive_starts[0],
            positive_columns=self.positive_columns[positive_slice],
        )

    def triple(self, row: int, value: int) -> Ids:
        """Return int32[3]: a query with a value in the position."""
        triple: Ids = self.queries[row].copy()
        triple[POSITIONS.index(self.position)] = value
        return triple


def query_groups(benchmark: Benchmark, position: Position) -> list[QueryGroup]:
    """Return what has to be asked to rank P_test in one position, without groups that no test triple is in.

    Subjects are ranked against all constants, relations against all relations, objects against all constants, or all
    types in a type triple. A type triple has no relation to corrupt.
    """
    test, (consts, types, relations) = benchmark.positives.test, candidate_names(benchmark)[1].ids
    type_relation = -1 if benchmark.graph.type_relation is None else benchmark.graph.type_relation
    if position == "subject":
        parts = [(np.arange(len(test)), consts)]
    else:
        is_type = test[:, 1] == type_relation
        plain = consts if position == "object" else relations[relations != type_relation]
        parts = [(np.flatnonzero(~is_type), plain)]
        if position == "object":
            parts.append((np.flatnonzero(is_type), types))
    if not any(len(rows) for rows, _ in parts):
        return []
    everything = benchmark.everything
    keys = query_keys(everything.triples, position, everything)
    keys *= _size(everything, position)
    keys += everything.triples[:, POSITIONS.index(position)]
    keys.sort()
    return [_query_group(benchmark, position, rows, ids, keys) for rows, ids in parts if len(rows)]


def candidate_names(benchmark: Benchmark) -> tuple[Signature, Signature]:
    """Return the names that P_train has, and these with the names of P_valid and P_test: the candidates.

    Of an inductive benchmark the constants are those of the context graph, and of P_test.
    """
    seen, names = Signature(benchmark.graph), Signature(benchmark.graph)
    if benchmark.context is not None:
        seen.constants, names.constants = (Signature(benchmark.context).constants for _ in range(2))
    else:
        names.add(benchmark.positives.valid)
    names.add(benchmark.positives.test)
    return seen, names


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
    benchmark: Benchmark, position: Position, rows: Counts, candidates: Ids, positives: Counts
) -> QueryGroup:
    """Group test triples into queries; `positives` are the triples of P_all as sorted keys, position last."""
    size = _size(benchmark.graph, position)
    test = benchmark.positives.test[rows]
    keys, first, query = np.unique(query_keys(test, position, benchmark.graph), return_index=True, return_inverse=True)
    order = np.argsort(query.ravel(), kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(query.ravel(), minlength=len(keys)))])
    values = test[order, POSITIONS.index(position)]
    column = np.full(size, -1, dtype=np.int32)
    column[candidates] = np.arange(len(candidates), dtype=np.int32)
    positive_columns, positive_starts = _positives_of_queries(positives, keys, size, column)
    return QueryGroup(
        position, candidates, test[first], starts, rows[order], column[values], positive_starts, positive_columns
    )


def _positives_of_queries(positives: Counts, keys: Counts, size: int, column: Ids) -> tuple[Ids, Counts]:
    """Return the candidates that make each query a positive, query by query, and where each query's begin."""
    begin = np.searchsorted(positives, keys * size)
    lengths = np.searchsorted(positives, (keys + 1) * size) - begin
    shift = begin - (np.cumsum(lengths) - lengths)
    values = positives[np.arange(lengths.sum()) + np.repeat(shift, lengths)] - np.repeat(keys * size, lengths)
    columns = column[values]
    query = np.repeat(np.arange(len(keys)), lengths)[columns >= 0]
    starts = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=len(keys)))])
    return columns[columns >= 0], starts


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
        # Scorers get copies: they may change them, and torch warns about arrays that are not writable.
        if self._by_candidates is not None:
            answer = self._by_candidates.score_candidates(queries.copy(), position, candidates.copy())
            return self._checked(answer, shape, f"{shape[0]} × {shape[1]} candidates")
        triples = np.empty((*shape, 3), dtype=np.int32)
        triples[:] = queries[:, None]
        triples[:, :, POSITIONS.index(position)] = candidates
        return self.of_triples(triples.reshape(-1, 3)).reshape(shape)

    def of_triples(self, triples: Triples) -> BlockScores:
        """Return float[n], the scores of triples."""
        return self._checked(self._scorer.score(triples), (len(triples),), f"{len(triples)} triples")

    def of_many(self, triples: Triples) -> npt.NDArray[np.float64]:
        """Return float64[n], the scores of triples, asked for in blocks."""
        # A scorer may use the array that it returns for the next block too.
        parts = [self.of_triples(triples[part].copy()).copy() for part in slices(len(triples), self.cells)]
        return np.concatenate([np.empty(0), *parts])

    def _checked(self, answer: Any, shape: tuple[int, ...], what: str) -> BlockScores:
        expected = f"one score for each is wanted: {shape}"
        scores = numbers(answer, expected)  # of the two types that counting is compiled for
        if scores.shape != shape:
            raise InputError(f"the scorer gave scores of the shape {scores.shape} for {what}", hint=expected)
        return np.ascontiguousarray(scores)


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
