"""Candidate spaces against the sets they stand for, and the draws from them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from loginfer.benchmark.negatives import spaces as overlaps
from loginfer.benchmark.negatives import spaces as sampler
from loginfer.benchmark.negatives import spaces as sieves
from loginfer.benchmark.negatives.spaces import Sampler, Space, draw, listed, of_projection, rectangle, union
from loginfer.engine import Projection
from loginfer.errors import LimitError
from loginfer.kg.graph import TripleKeys

KEYS = TripleKeys(8, 3)
EVERYTHING = np.array(list(product(range(8), range(3), range(8))), dtype=np.int32)

ids = st.lists(st.integers(0, 7), max_size=8)
relations = st.integers(0, 2)
triples = st.lists(st.tuples(st.integers(0, 7), relations, st.integers(0, 7)), max_size=12)


def everything_goes(asked):
    return np.ones(len(asked), dtype=bool)


def as_set(found) -> set[tuple[int, ...]]:
    return set(map(tuple, np.asarray(found).tolist()))


@st.composite
def parts(draw: st.DrawFn) -> tuple[Space, set[tuple[int, ...]]]:
    """A rectangle or a list, and the set it stands for."""
    if draw(st.integers(0, 3)) == 0:
        found = draw(triples)
        return listed(np.array(found, dtype=np.int32).reshape(-1, 3), KEYS), set(found)
    subjects, relation, objects, unequal = draw(ids), draw(relations), draw(ids), draw(st.booleans())
    every = {(s, relation, o) for s in subjects for o in objects if not (unequal and s == o)}
    return rectangle(subjects, relation, objects, unequal=unequal), every


def assert_is(space: Space, wanted: set[tuple[int, ...]]) -> None:
    assert space.size == len(wanted)
    places = np.arange(space.capacity)
    held = space.at(places)
    held = held[~space.leaves_out(places, held)]
    assert len(held) == len(wanted), "each triple has one place"
    assert as_set(held) == wanted
    assert as_set(EVERYTHING[space.contains(EVERYTHING)]) == wanted


@given(parts())
def test_a_rectangle_or_a_list_is_the_set_it_stands_for(part):
    assert_is(*part)


@given(st.lists(parts(), max_size=7))
@settings(max_examples=200)
def test_a_union_has_each_triple_of_its_parts_in_one_place(found):
    assert_is(union(space for space, _ in found), set().union(*(every for _, every in found)))


@given(st.lists(parts(), max_size=4), st.lists(parts(), max_size=4))
def test_unions_of_unions_are_unions(left, right):
    both = union([union(space for space, _ in left), union(space for space, _ in right)])
    assert_is(both, set().union(*(every for _, every in left + right)))


@given(parts(), st.integers(-3, 12), st.integers(-2, 5), st.integers(-3, 12))
def test_ids_that_a_space_does_not_know_are_not_in_it(part, subject, relation, object_):
    asked = np.array([[subject, relation, object_]], dtype=np.int32)
    assert part[0].contains(asked).tolist() == [(subject, relation, object_) in part[1]]


@given(ids, relations, ids, st.booleans(), st.booleans())
def test_a_projection_becomes_its_triples(subjects, relation, objects, together, unequal):
    left = np.unique(np.array(subjects, dtype=np.int32))
    right = np.unique(np.array(objects, dtype=np.int32))
    projection = Projection(left, right, True, unequal)
    if not together:
        projection = Projection(*projection.pairs())
    space = of_projection(projection, relation)
    wanted = {(s, relation, o) for s in subjects for o in objects if not (unequal and s == o)}
    assert_is(space, wanted)
    assert len(space.triples) == (0 if together else len(wanted))


def test_many_overlapping_rectangles_stay_small():
    rng = np.random.default_rng(0)
    # As 300 rules that conclude one type: one column each.
    one_type = [rectangle(rng.choice(50_000, 20_000, replace=False), 1, [7]) for _ in range(300)]
    assert len(union(one_type).relation) == 1
    # Chance overlaps of 40 rectangles would have 2^40 combinations; there are as many blocks as rows at most.
    sides = [(rng.choice(500, 200, replace=False), rng.choice(90, 30, replace=False)) for _ in range(40)]
    space = union(rectangle(subjects, 0, objects) for subjects, objects in sides)
    grid = np.zeros((500, 90), dtype=bool)
    for subjects, objects in sides:
        grid[np.ix_(subjects, objects)] = True
    assert space.size == grid.sum()
    assert len(space.relation) <= 90, "the side with fewer members is divided"
    s, o = np.nonzero(grid)
    assert as_set(space.at(np.arange(space.capacity))) == set(zip(s.tolist(), [0] * len(s), o.tolist(), strict=True))


@given(st.lists(parts(), max_size=7), st.lists(parts(), max_size=3), st.sampled_from([0, 10]))
@settings(max_examples=100)
def test_rectangles_that_overlap_in_too_many_ways_are_sieved(left, right, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlaps, "MOST_COLUMNS", most)
        patch.setattr(sieves, "_COMPARED", 5)
        one = union(space for space, _ in left)
        both = union([one, *(space for space, _ in right)])
    assert_is(one, set().union(*(every for _, every in left)))
    assert_is(both, set().union(*(every for _, every in left + right)))


def test_more_than_64_rectangles_are_sieved(monkeypatch):
    monkeypatch.setattr(overlaps, "MOST_COLUMNS", 0)
    rng = np.random.default_rng(0)
    sides = [(rng.choice(200, 20, replace=False), rng.choice(200, 20, replace=False)) for _ in range(100)]
    grid = np.zeros((200, 200), dtype=bool)
    for subjects, objects in sides:
        grid[np.ix_(subjects, objects)] = True
    space = union(rectangle(subjects, 0, objects) for subjects, objects in sides)
    assert space.size == grid.sum() < space.capacity
    got = draw(space, space.size + 1, rng, everything_goes)
    assert got.exhausted
    assert as_set(got.triples) == {(s, 0, o) for s, o in np.argwhere(grid).tolist()}


def test_sizes_beyond_64_bits_are_an_error():
    many = np.arange(2)
    wide = Space(
        relation=np.arange(3, dtype=np.int32), turned=np.zeros(3, dtype=bool), rows=many.astype(np.int32),
        row_starts=np.array([0, 2**31, 2**32, 3 * 2**31]), columns=many,
        column_starts=np.array([0, 2**31, 2**32, 3 * 2**31]), holes=many[:0],
        triples=np.empty((0, 3), dtype=np.int32),
    )  # fmt: skip
    with pytest.raises(LimitError, match="2\\^63"):
        _ = wide.size


# -- draws ------------------------------------------------------------------------------------------


@pytest.fixture(params=["all places in order", "random places, then the rest in order", "random places"])
def ways(request, monkeypatch):
    """The ways in which large and small spaces are searched, on small ones."""
    if request.param != "all places in order":
        monkeypatch.setattr(sampler, "_FEW", 0)
        monkeypatch.setattr(sampler, "_LEAST", 4)
        monkeypatch.setattr(sampler, "_MOST", 16)
    if request.param == "random places":
        monkeypatch.setattr(sampler, "_REST", 0)


def test_every_candidate_is_equally_likely_at_every_turn(ways):
    space = union([rectangle(range(5), 0, range(5), unequal=True), rectangle(range(3, 7), 0, [1, 6]),
                   listed(np.array([[7, 1, 7], [7, 2, 0]], dtype=np.int32), KEYS)])  # fmt: skip
    taken = listed(np.array([[0, 0, 1], [7, 2, 0]], dtype=np.int32), KEYS)
    every = space.at(np.arange(space.capacity))
    every = every[space.contains(every) & ~taken.contains(every) & (every.sum(axis=1) % 3 > 0)]
    candidates = every.tolist()
    number = {tuple(t): i for i, t in enumerate(candidates)}
    counts = np.zeros((4, len(candidates)), dtype=int)
    rng = np.random.default_rng(1)
    for _ in range(3000):
        one = Sampler(space, rng, lambda asked: asked.sum(axis=1) % 3 > 0, taken=taken)
        found = [*one.take(1).triples.tolist(), *one.take(3).triples.tolist()]
        for turn, triple in enumerate(found):
            counts[turn, number[tuple(triple)]] += 1
    for turn in counts:
        assert chisquare(turn).pvalue > 1e-4


@given(parts=st.lists(parts(), min_size=1, max_size=4), counts=st.lists(st.integers(0, 30), max_size=5))
@settings(max_examples=60)
@pytest.mark.parametrize("few", [0, 2**22])
def test_draws_never_repeat_and_return_all_when_candidates_run_out(few, parts, counts):
    space = union(space for space, _ in parts)
    wanted = {t for _, every in parts for t in every if t[0] != 3}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "_FEW", few)
        patch.setattr(sampler, "_LEAST", 3)
        one = Sampler(space, np.random.default_rng(0), lambda asked: asked[:, 0] != 3)
        found: list[list[int]] = []
        for count in counts:
            got = one.take(count)
            assert len(got.triples) == min(count, len(wanted) - len(found))
            assert got.exhausted == (len(got.triples) < count)
            assert got.examined <= space.capacity
            found += got.triples.tolist()
        rest = one.take(1000)
    assert rest.exhausted
    every = found + rest.triples.tolist()
    assert len(every) == len(as_set(every))
    assert as_set(every) == wanted


def test_a_search_that_finds_nothing_is_given_up():
    space = rectangle(range(10**6), 0, range(10**6))
    one = Sampler(space, np.random.default_rng(0), lambda asked: np.zeros(len(asked), dtype=bool), limit=10**6)
    got = one.take(5)
    assert (len(got.triples), got.exhausted, got.examined) == (0, False, 10**6)


def test_a_rare_kind_in_a_large_space_is_found():
    space = rectangle(range(2200), 0, range(2200))
    got = draw(space, 10, np.random.default_rng(0), lambda asked: (asked[:, 0] == 7) & (asked[:, 2] < 5))
    assert got.exhausted
    assert as_set(got.triples) == {(7, 0, o) for o in range(5)}
    assert got.examined == space.capacity


def test_the_same_seed_gives_the_same_draws_however_they_are_divided():
    space = rectangle(range(5000), 0, range(5000))
    one, other = (Sampler(space, np.random.default_rng(5), everything_goes) for _ in range(2))
    first = one.take(100).triples
    assert np.array_equal(first, other.take(100).triples)
    assert not as_set(first) & as_set(one.take(5000).triples)
