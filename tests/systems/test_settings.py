from dataclasses import dataclass
from typing import Literal

import pytest

from loginfer.errors import InputError, UnknownNameError
from loginfer.settings import check_settings, configure, setting, settings_of


@dataclass(frozen=True, kw_only=True)
class Learner:
    size: int = setting(10, "How many.", least=1, most=99)
    rate: float = setting(0.5, "How fast.", least=0)
    careful: bool = setting(False, "Whether to be careful.")
    mode: Literal["fast", "slow"] = setting("fast", "Which way.")
    limit: int | None = setting(None, "How long.")

    def __post_init__(self):
        check_settings(self)

    def fit(self, benchmark):
        return self


class Plain:
    def __init__(self, depth=3, name="a", *, rate: float = 1, **others):
        self.depth, self.name, self.rate = depth, name, rate


def test_texts_are_read_as_what_the_setting_is():
    made = configure(Learner, {"size": "7", "rate": "1e-2", "careful": "yes", "mode": "SLOW", "limit": "4"})
    assert (made.size, made.rate, made.careful, made.mode, made.limit) == (7, 0.01, True, "slow", 4)
    assert configure(Learner, {"limit": "none"}).limit is None


def test_a_class_of_ones_own_needs_no_declarations():
    made = configure(Plain, {"depth": "5", "rate": "2"})
    assert (made.depth, made.name, made.rate) == (5, "a", 2.0)
    assert list(settings_of(Plain)) == ["depth", "name", "rate"]


def test_an_unknown_setting_comes_with_the_nearest_one():
    with pytest.raises(UnknownNameError, match=r"unknown setting of Learner `siz`\n  hint: did you mean `size`"):
        configure(Learner, {"siz": "3"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": "many"}, "`size` must be a whole number, not `many`"),
        ({"size": "1.5"}, "`size` must be a whole number"),
        ({"size": "0"}, "`size` must be at least 1, not 0"),
        ({"size": "100"}, "`size` must be at most 99"),
        ({"rate": "nan"}, "`rate` must be a finite number"),
        ({"careful": "perhaps"}, "`careful` must be true or false"),
        ({"mode": "middling"}, "unknown value of `mode` `middling`"),
    ],
)
def test_a_bad_value_is_refused_with_the_reason(values, message):
    with pytest.raises(InputError, match=message):
        configure(Learner, values)


def test_bounds_hold_in_python_too():
    with pytest.raises(InputError, match="at least 1"):
        Learner(size=0)


def test_a_setting_without_default_must_be_given():
    class Needy:
        def __init__(self, path):
            self.path = path

    with pytest.raises(InputError, match="needs the setting `path`"):
        configure(Needy, {})
    assert configure(Needy, {"path": "x"}).path == "x"


def test_settings_say_what_they_are():
    known = settings_of(Learner)
    assert known["mode"].choices == ("fast", "slow")
    assert known["mode"].kind == "fast|slow"
    assert known["limit"].kind == "a whole number or none"
    assert (known["size"].meaning, known["size"].default) == ("How many.", 10)


class Chooses:
    def __init__(self, layers: Literal[1, 2] = 1, how: Literal["Sum", "max"] | None = "max",
                 width: Literal["auto"] | int = "auto"):  # fmt: skip
        self.chosen = (layers, how, width)


def test_choices_may_be_numbers_and_have_alternatives():
    assert configure(Chooses, {"layers": "2", "how": "none", "width": "5"}).chosen == (2, None, 5)
    assert configure(Chooses, {"layers": 2, "how": "sum", "width": "AUTO"}).chosen == (2, "Sum", "auto")
    assert configure(Chooses, {"width": 7}).chosen == (1, "max", 7)
    assert settings_of(Chooses)["layers"].kind == "1|2"
    for wrong in ({"layers": "3"}, {"layers": 3}, {"how": "mean"}, {"width": "wide"}):
        with pytest.raises(UnknownNameError):
            configure(Chooses, wrong)
