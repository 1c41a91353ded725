"""Measures behind a rule in our own syntax."""

import pytest

from loginfer.logic import parse_rule
from loginfer.logic.rule import ScoredRule
from loginfer.logic.rule_files import format_rules, parse_rules

RULE = parse_rule("(x,r,y), x != y -> (y,s,x)")


def test_measures_are_written_behind_a_rule_and_read_back():
    scored = ScoredRule(RULE, 10, 9, 0.9, (("weight", "1.25"), ("intercept", "-3e-05")))
    text = format_rules([scored, ScoredRule(RULE)])
    assert text.splitlines()[0].endswith("# weight=1.25 intercept=-3e-05")
    assert "#" not in text.splitlines()[1]
    read = parse_rules(text)
    assert read.dialect == "arrow"
    assert read.rules == (scored, ScoredRule(RULE))


@pytest.mark.parametrize(
    "comment", ["# why not", "# weight", "# weight=1 and more", "# =1", "# weight = 1", "", "# a=b=c"]
)
def test_other_comments_are_no_measures(comment):
    assert parse_rules(f"{RULE} {comment}\n", "arrow").rules == (ScoredRule(RULE),)


def test_a_name_that_looks_like_a_measure_stays_a_name():
    rule = parse_rule("(x,<a # weight=1>,y) -> (x,<b # weight=2>,y)")
    assert parse_rules(format_rules([rule]), "arrow").rules == (ScoredRule(rule),)


def test_measures_that_could_not_be_read_back_are_left_out():
    for extra in ((("head coverage", "0.5"),), (("weight", "one half"),), (("weight", ""),)):
        assert format_rules([ScoredRule(RULE, extra=extra)]) == f"{RULE}\n"
