"""Near misses in the suite: beside the paper's benchmarks, and never among them unless asked for."""

import pytest

from loginfer.benchmark.construction.suite import all_entries, entries, groups, near_misses, select
from loginfer.errors import InputError, UnknownNameError

WITHOUT_TWINS = ["WN-sym"]


def test_each_graph_and_pattern_has_near_misses_plain_and_as_twins():
    names = [entry.name for entry in near_misses()]
    assert len(names) == len(set(names)) == 2 * len(groups()) - len(WITHOUT_TWINS)
    assert "LogInfer-WN-hier-nm" in names
    assert "LogInfer-WN-hier-nmm" in names
    plain, matched = (entry.recipe({}) for entry in near_misses() if entry.name.startswith("LogInfer-FB-sym-"))
    assert plain.negatives == matched.negatives == ("nm",)
    assert plain.match == ()
    assert matched.match == ("all",)
    assert matched.name == "LogInfer-FB-sym-nmm"
    assert plain.changed(match=matched.match, name=matched.name) == matched


def test_where_conclusions_have_no_twins_there_is_a_reason_and_only_plain_near_misses():
    assert [group.name for group in groups() if group.no_twins] == WITHOUT_TWINS
    for name in WITHOUT_TWINS:
        assert [entry.name for entry in select([f"{name}-*"], near_misses())] == [f"LogInfer-{name}-nm"]
        with pytest.raises(UnknownNameError):
            select([f"{name}-nmm"])


def test_the_papers_suite_is_what_it_was():
    assert len(entries()) == 39
    assert not any("nm" in entry.name.split("-") for entry in select())
    assert select(["WN-*"]) == tuple(entry for entry in entries() if entry.group.name.startswith("WN-"))
    assert not any(entry.method == "nm" for entry in select(["*"]))


def test_near_misses_are_chosen_by_name():
    assert {entry.method for entry in select(["*-nm"])} == {"nm"}
    assert [entry.name for entry in select(["wn-hier-NMM", "WN-hier-pa"])] == [
        "LogInfer-WN-hier-pa", "LogInfer-WN-hier-nmm",
    ]  # fmt: skip
    with pytest.raises(UnknownNameError):
        select(["WN-hier-nmn"])
    assert [e.name for e in select(["WN-hier-*"], all_entries())] == [
        f"LogInfer-WN-hier-{method}" for method in ("rb", "pa", "nm", "nmm")
    ]


def test_all_entries_keep_the_order_of_the_suite():
    every = all_entries()
    assert [entry for entry in every if entry.method != "nm"] == list(entries())
    assert len(every) == 39 + len(near_misses())


def test_near_misses_need_the_protocol_sound():
    entry = next(entry for entry in near_misses())
    with pytest.raises(InputError, match="sound"):
        entry.recipe({"protocol": "paper"})
