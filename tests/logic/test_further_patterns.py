"""Patterns that have a name beyond the paper's Table 1."""

import pytest

from loginfer.errors import UnknownNameError
from loginfer.logic import FURTHER_NAMES, PATTERN_NAMES, all_patterns, collapses, patterns, symmetries
from loginfer.logic.patterns import parse_pattern, pattern_named

TEXTS = {
    "super-hierarchy": "(x,_R,y), (y,_S,z) -> (x,_P,y)",
    "cup": "(x,_R,y), (y,_S,z), (w,_T,x) -> (x,_P,y)",
    "fork": "(x,_R,y), (y,_S,z), (y,_T,w), z != w -> (x,_P,y)",
}


@pytest.mark.parametrize("name", TEXTS)
def test_they_are_there_by_name_and_not_among_the_papers_seven(name):
    assert str(pattern_named(name)) == TEXTS[name]
    assert name in FURTHER_NAMES
    assert name not in PATTERN_NAMES
    assert len(patterns()) == 7
    assert [p.name for p in all_patterns()] == [*PATTERN_NAMES, *FURTHER_NAMES]


def test_super_hierarchy_has_a_short_name():
    assert pattern_named(" SHIER ") is pattern_named("super-hierarchy") is parse_pattern("super-hierarchy")


def test_the_prongs_of_a_fork_can_be_exchanged_and_those_of_a_cup_not():
    assert symmetries(pattern_named("fork")) == ((0, 1, 2), (0, 2, 1))
    assert symmetries(pattern_named("cup")) == ((0, 1, 2),)
    assert all(collapses(pattern_named(name)) == () for name in TEXTS)


def test_an_unknown_name_comes_with_the_new_ones_too():
    with pytest.raises(UnknownNameError, match="did you mean `fork`"):
        pattern_named("forks")
