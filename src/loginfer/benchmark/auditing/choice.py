"""Checks of rules that were not chosen by their support: their measures are right, and in the interval."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose

from loginfer.benchmark.auditing.material import Material
from loginfer.benchmark.auditing.report import Example, Problem, error
from loginfer.benchmark.choice_settings import parse_interval
from loginfer.benchmark.layout import RULES
from loginfer.benchmark.measures import concluded, overlap
from loginfer.benchmark.values import BenchmarkRule

__all__ = ["wrong_measures"]


def wrong_measures(material: Material) -> Iterator[Problem]:
    """Confidence and overlap are what the manifest says of each rule, and where the recipe wants them."""
    recipe = material.benchmark.recipe
    if recipe is None or (recipe.select == "support" and recipe.head == "drawn"):
        return
    if recipe.inductive:
        return  # rules are chosen on K, of which the folder holds what is left on the two sides
    wrong = []
    for number, known in enumerate(material.known_rules):
        if (text := _measured(material, known)) is None and recipe.interval is not None:
            value = getattr(known, recipe.select_by)
            low, high = parse_interval(recipe.interval)
            if value is not None and not low <= value <= high:
                text = f"has the {recipe.select_by} {value:,.4g}, outside {recipe.interval}"
        if text is not None:
            wrong.append(Example(f"`{known.rule}` {text}", f"{RULES}, rule {number}"))
    if wrong:
        yield error(len(wrong), f"the measures of {len(wrong):,} rules are wrong", wrong)


def _measured(material: Material, known: BenchmarkRule) -> str | None:
    """Say what is wrong with the measures of a rule; None if nothing is."""
    engine, rule = material.over_kg, known.rule
    if known.confidence is None:
        return "has no measures"
    there = concluded(engine, rule)
    new = len(engine.conclusions(rule, new=True))
    if there == 0 or not isclose(known.confidence, 1 - new / there):
        return f"does not have the confidence {known.confidence:.4g}"
    found = overlap(engine, rule)
    if (found is None) != (known.overlap is None) or not isclose(found or 0, known.overlap or 0):
        return f"does not have the overlap {known.overlap}"
    return None
