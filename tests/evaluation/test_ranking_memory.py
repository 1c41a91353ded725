"""Many constants are ranked in blocks within a limit of memory."""

import tracemalloc

import numpy as np
import pytest
from tests.support.rankings import as_lists, made

from loginfer.evaluation.ranking import rank

MANY = 150_000


class Hashed:
    """Scores with ties, computed from ids; remembers the largest block it was asked for."""

    def __init__(self):
        self.largest = 0
        self.widest = 0

    def score(self, triples):
        self.largest = max(self.largest, len(triples))
        return _hashed(*(triples[:, i] for i in range(3)))


class HashedCandidates(Hashed):
    def score_candidates(self, triples, position, candidates):
        self.largest = max(self.largest, len(triples) * len(candidates))
        self.widest = max(self.widest, len(candidates))
        columns = [triples[:, [i]] for i in range(3)]
        columns[("subject", "relation", "object").index(position)] = candidates[None]
        return _hashed(*columns)


def _hashed(s, r, o):
    mixed = np.asarray(s * np.int64(7919) + r * np.int64(104729) + o * np.int64(1299709))
    mixed ^= mixed >> 7
    return (mixed % 5003).astype(np.float32)


@pytest.fixture(scope="module")
def large():
    """A path through many constants."""
    ids = np.arange(MANY - 1)
    train = np.stack([ids, ids % 2, ids + 1], axis=1)
    test = [(i * 3001, i % 2, i * 2003 + 7) for i in range(40)]
    return made(train, test=test)


def expected(benchmark, position):
    """Return the unfiltered counts with one whole row after the other."""
    column = ("subject", "relation", "object").index(position)
    everyone = np.arange(MANY, dtype=np.int32)
    above, ties = [], []
    for triple in benchmark.positives.test:
        columns = list(triple)
        columns[column] = everyone
        scores = _hashed(*columns)
        above.append(int((scores > scores[triple[column]]).sum()))
        ties.append(int((scores == scores[triple[column]]).sum()) - 1)
    return above, ties


@pytest.mark.parametrize("limit", [2**20, 8 * MANY, 256 * 2**20])
def test_above_100_000_constants_blocks_stay_within_the_limit(large, limit):
    scorer = HashedCandidates()
    found = {r.position: r for r in rank(scorer, large, ranking=["unfiltered"], memory_limit=limit)}
    assert 0 < 8 * scorer.largest <= limit
    assert scorer.widest < MANY
    for position in ("subject", "object"):
        above, ties = expected(large, position)
        assert found[position].above.tolist() == above
        assert found[position].ties.tolist() == ties
        assert sum(ties) > 100


def test_a_scorer_of_triples_is_asked_for_blocks_within_the_limit_too(large):
    plain, candidates = Hashed(), HashedCandidates()
    found = rank(plain, large, memory_limit=2**20)
    assert 0 < 20 * plain.largest <= 2**20
    assert list(map(as_lists, found)) == list(map(as_lists, rank(candidates, large)))


def test_the_memory_of_a_process_stays_near_the_limit():
    ids = np.arange(20_000)
    benchmark = made(np.stack([ids, ids % 2, (ids + 1) % 20_000], axis=1), test=[(i, 0, i) for i in range(200)])
    rank(HashedCandidates(), benchmark)  # compiles, and builds what is kept
    limit = 2**20
    tracemalloc.start()
    rank(HashedCandidates(), benchmark, memory_limit=limit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The toy needs three numbers of 8 bytes for each score; all scores of a position would take 16 MB.
    assert peak < 6 * limit
