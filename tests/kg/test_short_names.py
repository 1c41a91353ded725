"""Short forms of names: readable, and never the same for two names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loginfer.kg.vocabulary import LONGEST, middle, short_names, shortened, triple_text


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("http://swat.cse.lehigh.edu/onto/univ-bench.owl#takesCourse", "takesCourse"),
        ("http://www.University0.edu", "www.University0.edu"),
        ("http://example.org/a/", "a/"),
        ("/film/actor/film./film/performance/film", "film"),
        ("/m/06cx9", "06cx9"),
        ("urn:isbn:12", "isbn:12"),
        ("AC/DC", "AC/DC"),
        ("/ or #", "/ or #"),
        ("/", "/"),
        ("", ""),
        ("_hypernym", "_hypernym"),
        ('"a literal"', '"a literal"'),
    ],
)
def test_the_last_part_of_an_iri_or_a_path_stands_for_it(name, short):
    assert short_names([name]) == {name: short}


def test_names_that_end_alike_show_as_much_as_tells_them_apart():
    names = ["/award/won/film", "/actor/film", "/x/won/film", "film"]
    assert short_names(names) == {
        "/award/won/film": "award/won/film",
        "/actor/film": "actor/film",
        "/x/won/film": "x/won/film",
        "film": "film",
    }


def test_a_long_name_has_a_gap_unless_another_one_would_look_like_it():
    first, second = "a" * 60 + "1" + "b" * 60, "a" * 60 + "2" + "b" * 60
    assert len(short_names([first])[first]) == LONGEST
    assert "…" in short_names([first])[first]
    assert short_names([first, second]) == {first: first, second: second}


@given(st.lists(st.text("/#:ab .", max_size=8) | st.sampled_from(["http://a/b", "http://c/b", "b", "/a/b"])))
def test_different_names_have_different_short_forms(names):
    found = short_names(names)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(found)


@given(st.text(max_size=30), st.integers(3, 20))
def test_a_gap_keeps_the_ends_and_the_length(name, length):
    found = middle(name, length)
    assert len(found) <= length
    assert found == name or (name.startswith(found.split("…")[0]) and "…" in found)


def test_iris_in_a_text_are_shortened():
    assert shortened("see (x,http://a.org/b#c,y) and <http://a.org/d>") == "see (x,c,y) and d"
    assert shortened("nothing / here") == "nothing / here"


def test_rules_keep_everything_but_namespaces():
    text = "(x,http://a.b/c#R,y), x != y -> (y,http://a.b/c#S,x)"
    assert shortened(text) == "(x,R,y), x != y -> (y,S,x)"


def test_iris_of_one_text_are_told_apart():
    assert shortened("(http://a/x#R, <http://a/y#R>)") == "(x#R, y#R)"


def test_publications_of_different_people_have_different_labels():
    names = [f"http://www.Department0.University0.edu/FullProfessor{i}/Publication2" for i in range(55)]
    assert len({triple_text((name, "p", names[0])) for name in names}) == 55
    assert short_names(names)[names[7]] == "FullProfessor7/Publication2"
