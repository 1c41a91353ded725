"""The answer in words."""

from dataclasses import replace

import pytest

from loginfer.report import collect, verdicts
from loginfer.report.collection import Cell
from loginfer.report.facts import ShortcutFigure, benchmark_labels
from loginfer.report.verdicts import CellVerdict, verdicts_in


class NamedRun:
    """As much of a run as a verdict asks for."""

    def __init__(self, system):
        self.system = system


def verdict(system, value, best=0.7, benchmark="kg-one-nm", **rules):
    shortcut = None if best is None else ShortcutFigure("learned", best, (best - 0.02, best + 0.02))
    counts = {name.replace("_", " "): count for name, count in rules.items()}
    return CellVerdict(Cell(system, benchmark, (NamedRun(system),)), value, shortcut, counts)


@pytest.mark.parametrize(
    ("value", "rules", "outcome"),
    [
        (0.9, {"learned": 11, "in_part": 9}, "learned"),
        (0.9, {"learned": 1, "untested": 10, "not_learned": 9}, "learned"),
        (0.9, {"untested": 20}, "above"),
        (0.9, {"learned": 9, "in_part": 11}, "in part"),
        (0.9, {"shortcut": 11, "learned": 9}, "shortcut"),
        (0.71, {"learned": 20}, "cannot tell"),
        (0.6, {"untested": 20}, "cannot tell"),
        (0.6, {"learned": 9, "in_part": 11}, "cannot tell"),
        (0.6, {"learned": 9, "in_part": 10, "shortcut": 1}, "shortcut"),
        (0.6, {"untested": 5, "in_part": 5, "not_learned": 10}, "not learned"),
        (0.6, {"not_learned": 11, "shortcut": 9}, "not learned"),
        (0.6, {"in_part": 16, "not_learned": 4}, "not learned"),
        (0.9, {"not_testable": 9}, "above"),
        (0.7, {}, "cannot tell"),
    ],
)
def test_what_it_comes_to_follows_from_accuracy_shortcut_and_rules(value, rules, outcome):
    assert verdict("transe", value, **rules).outcome == outcome


def test_of_one_benchmark_each_system_has_its_figures():
    cells = [
        verdict("oracle", 1, learned=20),
        verdict("simpbl", 0.5, not_learned=20),
        verdict("rotate", 0.907, 0.657, learned=9, untested=3, shortcut=4, not_learned=4, not_testable=2),
    ]
    answer = verdicts_in(cells)
    assert answer.headline == "On kg-one-nm: RotatE learns the rules."
    assert list(answer.systems) == ["rotate", "simpbl", "oracle"]
    assert answer.systems["rotate"] == (
        "90.7 %, best shortcut 65.7 %; 9 of 20 rules learned, 3 not told from a shortcut, 4 replaced by a shortcut"
    )
    assert answer.systems["oracle"] == "100.0 %; it knows the rules"
    assert answer.shortcuts == ""


def test_over_several_benchmarks_each_system_says_what_it_learns_and_where_it_takes_shortcuts():
    cells = []
    for pattern, transe, counts in (("one", 0.6, {"shortcut": 20}), ("two", 0.9, {"learned": 12, "in_part": 8})):
        name = f"kg-{pattern}-nm"
        cells += [
            verdict("contrast", 0.99, benchmark=name, learned=9, untested=11),
            verdict("transe", transe, benchmark=name, **counts),
        ]
    cells += [verdict("transe", 0.6, benchmark="kg-three-nm", shortcut=20)]
    cells += [verdict("contrast", 0.5, benchmark="kg-three-nm", not_learned=20)]
    answer = verdicts_in(cells)
    assert answer.headline == (
        "Contrast learns one and two; TransE learns two; no system learns three; "
        "TransE only takes shortcuts on one and three."
    )
    assert answer.systems["transe"] == (
        "70.0 % in the mean; learns two (90.0 %, 12 of 20 rules, 8 in part); "
        "only takes shortcuts on one (60.0 %) and three (60.0 %)"
    )
    assert "learns one (99.0 %, 9 of 20 rules, 11 untested)" in answer.systems["contrast"]
    assert answer.systems["contrast"].endswith("does not learn three (50.0 %)")
    assert answer.shortcuts == "70.0 % on one, 70.0 % on two and 70.0 % on three"


def test_a_benchmark_that_a_shortcut_solves_is_said_to_tell_nothing():
    cells = [verdict(s, 0.99, 0.98, benchmark=b, untested=20) for b in ("kg-one", "kg-two") for s in ("boxe", "rotate")]
    answer = verdicts_in(cells)
    assert answer.headline == "No system is above the best shortcut on one and two."
    assert (
        answer.systems["boxe"] == "99.0 % in the mean; cannot be told from a shortcut on one (99.0 %) and two (99.0 %)"
    )


def test_long_lists_are_cut():
    cells = [verdict("transe", 0.6, benchmark=f"kg-{letter}", shortcut=9) for letter in "abcdefgh"]
    answer = verdicts_in(cells)
    assert "only takes shortcuts on a, b, c, d and 4 more" in answer.systems["transe"]
    assert answer.headline == "No system learns a, b, c, d and 4 more; TransE only takes shortcuts on all 8 benchmarks."


def test_systems_that_do_the_same_stand_together():
    cells = [verdict(s, 0.5, benchmark=b, shortcut=20) for b in ("kg-one", "kg-two") for s in ("transe", "boxe")]
    cells += [verdict("contrast", 0.99, benchmark=b, learned=20) for b in ("kg-one", "kg-two")]
    wanted = "Contrast learns both benchmarks; BoxE and TransE only take shortcuts on both benchmarks."
    assert verdicts_in(cells).headline == wanted
    cells = [verdict("contrast", 0.99, benchmark=f"kg-{p}", learned=20) for p in ("symmetry", "triangle", "diamond")]
    assert verdicts_in(cells).headline == "Contrast learns all 3 patterns."


def test_without_rules_and_shortcuts_only_the_best_is_named():
    answer = verdicts_in([verdict("transe", 0.8, None), verdict("boxe", 0.9, None)])
    assert answer.headline == "BoxE has the best balanced accuracy; what it learned is not known."
    assert answer.systems == {"boxe": "90.0 %", "transe": "80.0 %"}
    assert verdicts_in([verdict("oracle", 1)]).headline == "Only the oracle ran, which knows the rules."


def test_the_answer_of_runs_needs_no_folder_of_their_benchmark(small_runs):
    answer = verdicts(collect([small_runs / "runs"]))
    assert answer == verdicts(collect([small_runs]))
    assert set(answer.systems) == {"simpbl", "transe", "oracle"}
    assert "Family & co pa" in answer.shortcuts


def test_a_system_s_settings_stay_in_its_title():
    one = verdict("transe", 0.8, None)
    cell = replace(one.cell, system="transe (epochs=7)")
    assert verdicts_in([replace(one, cell=cell)]).headline.startswith("TransE (epochs=7) has the best")


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["lubm-composition-nm", "lubm-triangle-nm"], ["composition", "triangle"]),
        (["lubm-composition-nm", "lubm-hierarchy-pa"], ["composition-nm", "hierarchy-pa"]),
        (["a-b", "a-b-c"], ["b", "b-c"]),
        (["a-x-a", "a-a"], ["x-a", "a"]),
        (["lubm-composition-nm"], ["lubm-composition-nm"]),
        (["my-kg (k1=5)", "my-kg (k1=6)"], ["my-kg (k1=5)", "my-kg (k1=6)"]),
        (["LogInfer-FB-inter-pa", "LogInfer-FB-inter-qg"], ["FB-inter-pa", "FB-inter-qg"]),
    ],
)
def test_benchmarks_are_called_by_what_their_names_do_not_share(names, labels):
    assert list(benchmark_labels(names).values()) == labels
