import pytest

from loginfer.errors import InputError, LogInferError, ParseError, UnknownNameError, nearest

RELATIONS = ["/people/person/nationality", "/people/person/places_lived", "/film/film/country"]


def test_an_error_says_what_where_and_what_to_do():
    error = InputError("`x` is odd", where="rules.txt:3", hint="make it even")
    assert str(error) == "rules.txt:3: `x` is odd\n  hint: make it even"
    assert isinstance(error, LogInferError)


def test_a_parse_error_points_at_the_column():
    error = ParseError("(x,R y)", 6, "a comma")
    lines = str(error).splitlines()
    assert lines[0] == "expected a comma at column 6, found 'y)'"
    assert lines[1].index("(") + 5 == lines[2].index("^")


def test_a_parse_error_behind_the_text_finds_the_end():
    assert "found the end" in str(ParseError("(x", 3, "a comma"))


@pytest.mark.parametrize("name", ["nationality", "/people/person/nationalty", "Nationality", "natonality"])
def test_the_nearest_name_is_found_by_its_last_part_and_despite_typos(name):
    assert nearest(name, RELATIONS)[0] == "/people/person/nationality"


def test_an_unknown_name_comes_with_the_nearest_ones_or_with_none():
    assert "did you mean `/film/film/country`?" in str(UnknownNameError("relation", "country", RELATIONS))
    assert "did you mean" not in str(UnknownNameError("relation", "zzzzzz", RELATIONS))


def test_a_few_known_names_are_all_offered_where_none_is_near():
    assert "choose one of `cat`, `dog`" in str(UnknownNameError("animal", "zzzzzz", ["cat", "dog"]))
    assert "choose" not in str(UnknownNameError("animal", "zzzzzz", [f"cat{i}" for i in range(100)]))
