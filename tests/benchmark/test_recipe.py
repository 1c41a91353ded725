"""Recipes: settings that make sense, written and read without loss, and ratios."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loginfer.benchmark import METHODS
from loginfer.benchmark.recipe import MATCHES, Recipe, parse_ratio, read_recipe, write_recipe
from loginfer.errors import InputError, UnknownNameError


def made(**settings) -> Recipe:
    """A recipe; near misses only where they belong."""
    if settings["protocol"] != "sound":
        settings["negatives"] = tuple(m for m in settings["negatives"] if m != "nm") or ("pa",)
    if "nm" not in settings["negatives"]:
        settings["match"] = ()
    return Recipe(**settings)


recipes = st.builds(
    made,
    kg=st.text(min_size=1).filter(lambda t: t.isprintable()),
    patterns=st.lists(st.sampled_from(["symmetry", "diamond", "(x,_R,y) -> (y,_R,x)"]), min_size=1).map(tuple),
    k1=st.integers(1, 10**6),
    k2=st.integers(1, 10**6),
    ratio=st.sampled_from(["8:1:1", "0.5:0.25:0.25", "80:10:10"]),
    negatives=st.lists(st.sampled_from(tuple(METHODS)), min_size=1, unique=True).map(tuple),
    match=st.lists(st.sampled_from(MATCHES), unique=True).map(tuple),
    protocol=st.sampled_from(["paper", "sound"]),
    min_new=st.integers(0, 100),
    min_support=st.none() | st.integers(1, 50),
    max_support=st.none() | st.integers(50, 100),
    seed=st.integers(0, 2**62),
    type_predicate=st.none() | st.sampled_from(["", "a type"]),
    name=st.none() | st.text(min_size=1).filter(lambda t: t.isprintable()),
)


@given(recipe=recipes)
def test_a_recipe_written_as_toml_is_read_back_the_same(recipe, tmp_path_factory):
    path = tmp_path_factory.mktemp("recipes") / "recipe.toml"
    write_recipe(recipe, path)
    assert read_recipe(path) == recipe
    assert Recipe.from_dict(recipe.as_dict()) == recipe


def test_rules_as_texts_survive_toml(tmp_path):
    recipe = Recipe("lubm", rules=('(x,"a b",y) -> (y,"a b",x)', "(x,R,y) -> (x,S,y)"))
    write_recipe(recipe, tmp_path / "recipe.toml")
    assert read_recipe(tmp_path / "recipe.toml") == recipe


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "neither patterns nor rules"),
        ({"patterns": ["symmetry"], "rules": "lubm-19"}, "both patterns and rules"),
        ({"rules": []}, "list of rules is empty"),
        ({"patterns": ["symmetry"], "k2": 0}, "`k2` must be at least 1, but is 0"),
        ({"patterns": ["symmetry"], "k1": 0}, "`k1` must be at least 1"),
        ({"patterns": ["symmetry"], "k1": "20"}, "`k1` must be a whole number"),
        ({"patterns": ["symmetry"], "k1": True}, "`k1` must be a whole number"),
        ({"patterns": 3}, "`patterns` must be a list of texts"),
        ({"patterns": [7]}, "`patterns[0]` must be a text, not 7"),
        ({"patterns": ["symmetry"], "seed": -1}, "`seed` must be at least 0"),
        ({"patterns": ["symmetry"], "ratio": "8:1"}, "three parts, those of train and test above 0"),
        ({"patterns": ["symmetry"], "ratio": "8:2:0"}, "three parts, those of train and test above 0"),
        ({"patterns": ["symmetry"], "ratio": "0:1:1"}, "three parts, those of train and test above 0"),
        ({"patterns": ["symmetry"], "ratio": "8:-1:2"}, "without valid like 2:0:1"),
        ({"patterns": ["symmetry"], "negatives": "pa", "corrupt": ["subject"]}, "add the method `rc`"),
        ({"patterns": ["symmetry"], "negatives": "rc", "corrupt": []}, "`corrupt` names no part"),
        ({"patterns": ["symmetry"], "negatives": "rc", "corrupt": ["subject", "subject"]}, "is given twice"),
        ({"patterns": ["symmetry"], "negatives": "rc", "corrupt": ["objekt"]}, "did you mean `object`"),
        ({"patterns": ["symmetry"], "ratio": "0.8:0.1:0.2"}, "add up to 1.1, not 1"),
        ({"patterns": ["symmetry"], "ratio": "80:10:20"}, "add up to 110, not 100"),
        ({"patterns": ["symmetry"], "ratio": "eight:1:1"}, "is no ratio"),
        ({"patterns": ["symmetry"], "ratio": "1e9998:1:1"}, "is no ratio"),
        ({"patterns": ["symmetry"], "ratio": f"{'9' * 5000}:1:1"}, "is no ratio"),
        ({"patterns": ["symmetry"], "negatives": []}, "no negatives"),
        ({"patterns": ["symmetry"], "negatives": ["pa", "pa"]}, "given twice"),
        ({"patterns": ["symmetry"], "min_support": 9, "max_support": 3}, "between 9 and 3"),
        ({"patterns": ["symmetry"], "min_support": 0}, "`min_support` must be at least 1, but is 0"),
        ({"patterns": ["symmetry"], "protocol": "paper", "materialised": True}, "is for the protocol `sound`"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings, message):
    with pytest.raises(InputError) as caught:
        Recipe.from_dict({"kg": "lubm", **settings}, where="recipe.toml")
    assert message in str(caught.value)
    assert caught.value.where == "recipe.toml"


@pytest.mark.parametrize(
    ("settings", "near"),
    [({"patern": ["symmetry"]}, "patterns"), ({"patterns": ["symmetry"], "negatives": ["pb"]}, "rb")],
)
def test_unknown_names_come_with_the_nearest_ones(settings, near):
    with pytest.raises(UnknownNameError) as caught:
        Recipe.from_dict({"kg": "lubm", **settings})
    assert near in str(caught.value)


def test_a_file_that_is_no_toml_is_named(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text("kg = \n")
    with pytest.raises(InputError, match="not a TOML file") as caught:
        read_recipe(path)
    assert caught.value.where == str(path)


@given(n=st.integers(0, 10**6))
def test_8_1_1_cuts_at_the_floors_of_8_and_9_tenths(n):
    recipe = Recipe("lubm", ("symmetry",))
    assert recipe.cuts(n) == (8 * n // 10, 9 * n // 10)


@given(parts=st.tuples(st.integers(1, 15), st.integers(0, 15), st.integers(1, 15)))
def test_shares_are_exact_and_add_up_to_one(parts):
    shares = parse_ratio(":".join(map(str, parts)))
    assert sum(shares) == 1
    assert all(share == Fraction(part, sum(parts)) for share, part in zip(shares, parts, strict=True))


def test_a_list_of_one_may_be_a_text():
    recipe = Recipe.from_dict({"kg": "kg", "patterns": "symmetry", "negatives": "qg"})
    assert (recipe.patterns, recipe.negatives) == (("symmetry",), ("qg",))
