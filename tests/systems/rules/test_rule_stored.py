"""Mined rules as arrays and back."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save
from tests.support.rule_brute_force import path_tables

from loginfer.errors import InputError
from loginfer.logic.dialects.arrow import parse_rule
from loginfer.logic.rule import ScoredRule
from loginfer.systems.rules.mined import MinedRules, RuleTable, from_arrays, to_arrays

OTHERS = (
    ScoredRule(parse_rule("(x,R,y), (x,S,y), x != y -> (y,<ö, >,x)"), 12, 3, 0.25),
    ScoredRule(parse_rule("(x,type,<a b>) -> (x,R,<new\\nline>)"), None, None, 0.1 + 0.2),
    ScoredRule(parse_rule("(?who,R,y) -> (y,R,?who)"), 0, 0, None),
)


def same(first: RuleTable, second: RuleTable) -> bool:
    return all(np.array_equal(getattr(first, f.name), getattr(second, f.name)) for f in fields(RuleTable))


@settings(max_examples=30)
@given(path_tables(), st.booleans(), st.integers(0, len(OTHERS)))
def test_rules_survive_being_stored(table, distinct, others):
    rules = MinedRules(table, OTHERS[:others], distinct)
    found = from_arrays(load(save(to_arrays(rules))))
    assert same(found.paths, table)
    assert found.others == rules.others
    assert found.distinct is distinct


def stored() -> dict:
    table = RuleTable.of(head=[1, 2], body=[[3, 4], [5, -1]], confidence=[0.5, 0.25])
    return to_arrays(MinedRules(table, OTHERS))


@pytest.mark.parametrize("name", sorted(stored()))
def test_a_missing_array_is_named(name):
    arrays = stored()
    del arrays[name]
    with pytest.raises(InputError, match=f"no `{name}`"):
        from_arrays(arrays)


@pytest.mark.parametrize("name", sorted(stored()))
def test_an_array_of_another_kind_is_named(name):
    arrays = stored()
    arrays[name] = arrays[name].astype(np.complex64)
    with pytest.raises(InputError, match=f"`{name}` is complex64"):
        from_arrays(arrays)


@pytest.mark.parametrize("name", sorted(set(stored()) - {"others"}))
def test_an_array_of_another_length_is_refused(name):
    arrays = stored()
    arrays[name] = np.concatenate([arrays[name], arrays[name][:1]])
    with pytest.raises(InputError, match="damaged"):
        from_arrays(arrays)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("head", -1),
        ("variables", 7),
        ("variables", 1),  # without a constant in the head
        ("head_constant", 4),  # in a cyclic rule
        ("end_constant", 4),
        ("body", [-1, 4, -1]),
        ("body", [-1, -1, -1]),
        ("body", [-2, -1, -1]),
    ],
)
def test_a_row_that_is_no_path_rule_is_named(name, value):
    arrays = stored()
    arrays[name] = arrays[name].copy()
    arrays[name][1] = value
    with pytest.raises(InputError, match="row 1 is no path rule"):
        from_arrays(arrays)


def test_other_rules_that_are_no_text_or_no_rules_are_refused():
    arrays = stored()
    arrays["others"] = np.array([0xFF], dtype=np.uint8)
    with pytest.raises(InputError, match="is no text"):
        from_arrays(arrays)
    arrays["others"] = np.frombuffer(b"(x,R,y) -> \n", dtype=np.uint8)
    with pytest.raises(InputError, match="the stored rules:1"):
        from_arrays(arrays)
