"""Short forms of names: readable, and never the same for two names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loginfer.kg.vocabulary import (
    LONGEST,
    Vocabulary,
    middle,
    names_shown_as,
    short_names,
    shortened,
    stands_for,
    triple_text,
)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("http://swat.cse.lehigh.edu/onto/univ-bench.owl#takesCourse", "takesCourse"),
        ("http://www.University0.edu", "www.University0.edu"),
        ("http://example.org/a/", "a/"),
        ("/film/actor/film./film/performance/film", "film"),
        ("/film/film/genre", "genre"),
        ("http://shop.org/customer/71", "customer/71"),
        ("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "rdf:type"),
        ("http://www.w3.org/2004/02/skos/core#prefLabel", "skos:prefLabel"),
        ("https://schema.org/name", "schema:name"),
        ('"7"^^<http://www.w3.org/2001/XMLSchema#integer>', '"7"^^xsd:integer'),
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


# Names that end alike, are part of one another, or look like a short form of another.
NAMESPACES = [
    "http://a.org/b#",
    "http://a.org/",
    "https://schema.org/",
    "/film/film/",
    "/a/b./c/",
    "urn:x:",
    "",
    "b/",
    "ex:",
]
NAMES = st.builds(str.__add__, st.sampled_from(NAMESPACES), st.text("/#:ab7. (…é", max_size=6)) | st.sampled_from(
    ["b", "/a/b", "a/b", "71", "/skill/71", "http://x.org/customer/71", "schema:b", "Ann", "Ann (b)", '"b"@en',
     '"7"^^<http://www.w3.org/2001/XMLSchema#integer>', '"7"^^xsd:integer', "x" * 80, "http://a.org/" + "x" * 80]
)  # fmt: skip
LABELS = st.dictionaries(NAMES, st.sampled_from(["Ann", "Bob", "b", "Ann (b)", "rdf:b", "y" * 99]), max_size=4)


@given(st.lists(NAMES), LABELS, st.sampled_from([None, 5, LONGEST]))
def test_different_names_have_different_short_forms(names, labels, longest):
    found = short_names(names, longest, labels)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(found)


def test_a_name_that_ends_in_a_colon_can_be_typed_as_it_is_shown():
    names = Vocabulary.of(["https://schema.org/:", "https://schema.org/a:", "https://schema.org/a:b"])
    assert [names_shown_as(form, names) for form in short_names(names, among=[names]).values()] == [[0], [1], [2]]


@given(st.lists(NAMES, min_size=1), LABELS, st.data())
def test_what_is_shown_can_be_typed(names, labels, data):
    """Of the names of a graph some are shown; each form leads back to its name, whatever else the graph has."""
    entities = Vocabulary.of(names)
    shown = data.draw(st.lists(st.sampled_from(sorted(set(names)))))
    forms = short_names(shown, labels=labels, among=[entities])
    assert {form: [entities[i] for i in names_shown_as(form, entities, labels)] for form in forms.values()} == {
        form: [name] for name, form in forms.items()
    }
    assert all(stands_for(form, name, labels.get(name)) for name, form in forms.items())


@given(st.lists(NAMES), NAMES)
def test_names_are_found_by_their_ends(names, text):
    vocabulary = Vocabulary.of(names)
    assert vocabulary.ending_in(text) == [i for i, name in enumerate(vocabulary) if name.endswith(text)]


def test_a_text_may_stand_for_several_names():
    names = Vocabulary.of(["http://x.org/customer/71", "http://x.org/skill/71", "http://x.org/skill/171", "/m/02", "y"])

    def found(text, **labels):
        return [names[i] for i in names_shown_as(text, names, labels)]

    assert found("71") == ["http://x.org/customer/71", "http://x.org/skill/71"]
    assert found("skill/71") == ["http://x.org/skill/71"]
    assert found("02") == found("/m/02") == ["/m/02"]
    assert found("Bob", y="Bob") == ["y"]
    assert found("x.org") == found("") == found("…") == []


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


def test_a_label_comes_first_and_two_of_the_same_label_are_told_apart():
    names = ["http://x.org/p/1", "http://x.org/p/2", "http://x.org/p/3"]
    labels = {names[0]: "Ann", names[1]: "Ann", names[2]: "Bob"}
    assert list(short_names(names, labels=labels).values()) == ["Ann (1)", "Ann (2)", "Bob"]
