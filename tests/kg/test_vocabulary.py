import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loginfer.kg import Vocabulary
from loginfer.kg import vocabulary as module

names = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=20)
quick = settings(max_examples=50, deadline=None)


@quick
@given(names)
def test_ids_follow_the_order_of_bytes_and_not_that_of_mention(words):
    vocabulary = Vocabulary.of(words)
    assert list(vocabulary) == sorted(set(words), key=str.encode)
    assert vocabulary == Vocabulary.of(reversed(words))
    assert hash(vocabulary) == hash(Vocabulary.of(reversed(words)))


@quick
@given(names, names)
def test_a_name_is_found_exactly_if_it_is_there(words, others):
    vocabulary = Vocabulary.of(words)
    for name in [*words, *others]:
        found = vocabulary.get(name)
        assert (found is not None) == (name in set(words)) == (name in vocabulary)
        if found is not None:
            assert vocabulary[found] == name
            assert vocabulary.index(name) == found


@quick
@given(names, names)
def test_a_union_holds_both_and_is_itself_when_nothing_is_new(words, others):
    vocabulary = Vocabulary.of(words)
    assert list(vocabulary.union(others)) == list(Vocabulary.of([*words, *others]))
    assert vocabulary.union(words) is vocabulary


@pytest.mark.parametrize("many", [10**9, 0], ids=["in Python", "compiled"])
@quick
@given(words=names, others=names)
def test_positions_in_another_vocabulary_are_those_of_the_names(many, words, others):
    mine, other = Vocabulary.of(words), Vocabulary.of(others)
    before, module.MANY = module.MANY, many
    try:
        positions = mine.positions_in(other)
    finally:
        module.MANY = before
    assert positions.dtype == np.int32
    assert positions.tolist() == [-1 if other.get(n) is None else other.get(n) for n in mine]


def test_names_of_many_ids_come_in_the_order_asked():
    vocabulary = Vocabulary.of(["b", "a", "c"])
    assert vocabulary.names([2, 0, 2]) == ["c", "a", "c"]
    assert vocabulary.names([]) == []


def test_it_behaves_as_a_sequence():
    vocabulary = Vocabulary.of(["b", "a", "c"])
    assert len(vocabulary) == 3
    assert vocabulary[-1] == "c"
    assert vocabulary[0:2] == ["a", "b"]
    with pytest.raises(IndexError, match="no name has the id 3"):
        vocabulary[3]
    with pytest.raises(ValueError, match="'z' is not in the vocabulary"):
        vocabulary.index("z")
    assert 5 not in vocabulary
    assert "Vocabulary(3 names" in repr(vocabulary)


def test_it_cannot_be_changed():
    vocabulary = Vocabulary.of(["a"])
    with pytest.raises(ValueError, match="read-only"):
        vocabulary.data[0] = 0


def test_a_lone_surrogate_is_found_nowhere():
    assert Vocabulary.of(["a"]).get("\ud800") is None


def test_an_empty_vocabulary_is_fine():
    empty = Vocabulary.of([])
    assert len(empty) == 0
    assert list(empty.union(["x"])) == ["x"]
    assert empty.get("x") is None
