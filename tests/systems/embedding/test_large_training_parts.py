"""Parts of entities: all pairs are visited, and every triple is learned from once, beside its own rows."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loginfer.systems.embedding.large import Buckets, Partition
from loginfer.systems.embedding.steps import Data
from loginfer.systems.embedding.transe import TransE


@given(parts=st.integers(3, 12), seed=st.integers(0, 9), epoch=st.integers(0, 3))
def test_a_tour_has_every_pair_once_and_changes_one_part_at_a_time(parts, seed, epoch):
    split = Partition(parts, 1, None, parts)
    tour = split.tour(seed, epoch)
    pairs = sorted(tuple(sorted(pair)) for pair in tour)
    assert pairs == [(a, b) for a in range(parts) for b in range(a + 1, parts)]
    for before, after in itertools.pairwise(tour):
        assert sum(x == y for x, y in zip(before, after, strict=True)) == 1


@pytest.mark.parametrize("parts", [1, 2])
def test_one_or_two_parts_need_one_stop(parts):
    assert Partition(parts, 5, None, 5 * parts).tour(0, 0) == [tuple(range(parts))]


@st.composite
def splits(draw):
    entities = draw(st.integers(2, 30))
    parts = draw(st.integers(2, 6))
    split = Partition.of(TransE(partitions=parts, seed=draw(st.integers(0, 3))), entities)
    ends = st.integers(0, entities - 1)
    triples = draw(st.lists(st.tuples(ends, st.integers(0, 2), ends), max_size=40))
    return split, np.array(triples, dtype=np.int32).reshape(-1, 3)


@given(splits())
def test_every_triple_is_in_one_bucket_and_its_places_are_those_of_its_ends(made):
    split, triples = made
    everybody = np.arange(split.entities, dtype=np.int32)
    types = everybody[::3].copy()
    data = Data(triples, triples[::2].copy(), everybody, types, np.arange(3, dtype=np.int32), -1)
    buckets = Buckets(data, split, 0)
    entity_of = np.argsort(split.rows)
    found, wrong = [], []
    for pair in split.tour(0, 0):
        here = buckets.data(pair)
        assert buckets.count(pair) == len(here.positives)
        rows = np.concatenate([np.arange(*split.bounds(part)) for part in pair]).astype(np.int32)
        places = np.concatenate([p * split.size + np.arange(np.diff(split.bounds(x))[0]) for p, x in enumerate(pair)])
        assert split.places(rows, pair).tolist() == places.tolist()
        assert set(here.positives[:, [0, 2]].ravel().tolist()) <= set(rows.tolist())
        found += [(entity_of[s], r, entity_of[o]) for s, r, o in here.positives.tolist()]
        wrong += [(entity_of[s], r, entity_of[o]) for s, r, o in here.negatives.tolist()]
        assert here.constants.tolist() == sorted(rows.tolist())
        assert set(entity_of[here.types]) == set(entity_of[rows]) & set(types.tolist())
        assert (np.diff(here.types) > 0).all()
    assert sorted(found) == sorted(map(tuple, triples.tolist()))
    assert sorted(wrong) == sorted(map(tuple, triples[::2].tolist()))


def test_names_that_are_neighbours_do_not_share_a_part():
    split = Partition.of(TransE(partitions=4), 1000)
    first = split.rows[:250] // split.size
    assert np.bincount(first, minlength=4).min() > 30
