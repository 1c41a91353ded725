"""Checks of the rules: readable, of their pattern's shape, all different, counted right, frequent enough."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loginfer.benchmark.auditing.choice import wrong_measures
from loginfer.benchmark.auditing.inductive import sample_size
from loginfer.benchmark.auditing.material import Material
from loginfer.benchmark.auditing.report import CannotCheckError, Example, Problem, error, note, warning
from loginfer.benchmark.auditing.shapes import predicates, represents
from loginfer.benchmark.auditing.steps import new_conclusions
from loginfer.benchmark.complements import connected_otherwise, matched_size
from loginfer.benchmark.layout import RULES
from loginfer.benchmark.rules import named_patterns
from loginfer.benchmark.values import SPLITS, BenchmarkRule
from loginfer.engine.bodies import predicate_names
from loginfer.errors import InputError
from loginfer.kg import Triples
from loginfer.logic import canonical_text, parse_pattern
from loginfer.logic.near_misses import is_own_complement

__all__ = ["equal_rules", "rare_rules", "rule_counts", "rule_shapes", "rules_readable"]

_NOT_COUNTED = -1  # support, new and sampled of a folder without manifest


def rules_readable(material: Material) -> Iterator[Problem]:
    """Rules parse, are safe, and are those of the manifest."""
    raw = material.folder
    for problem in raw.problems:
        if problem.file == RULES and problem.kind not in ("missing", "bytes", "sha256"):
            yield error(problem.count, problem.message, [Example(problem.message, problem.where or RULES)])
            return
    if not raw.rules_known:
        raise CannotCheckError("the rules are not known (no rules.txt)")


def _where(number: int) -> str:
    """Return where a rule is, counted from 0 as in all files of a benchmark."""
    return f"{RULES}, rule {number}"


def rule_shapes(material: Material) -> Iterator[Problem]:
    """Each rule is represented by its pattern, and its pattern is one of the recipe's."""
    rules = material.known_rules
    if all(known.pattern is None for known in rules):
        raise CannotCheckError("no rule says which pattern it represents")
    wrong: list[Example] = []
    for number, known in enumerate(rules):
        if known.pattern is None:
            continue
        try:
            fits = represents(parse_pattern(known.pattern), known.rule)
        except InputError:
            fits = False
        if not fits:
            wrong.append(Example(f"`{known.rule}` is not of the shape `{known.pattern}`", _where(number)))
    if wrong:
        yield error(len(wrong), f"{len(wrong):,} rules are not represented by their pattern", wrong)
    yield from _patterns_asked(material)


def _patterns_asked(material: Material) -> Iterator[Problem]:
    """Each pattern of the recipe has its k1 rules, and there are no others."""
    recipe = material.benchmark.recipe
    if recipe is None or not recipe.patterns:
        return
    try:
        wanted = {canonical_text(pattern): pattern.name for pattern in named_patterns(recipe)}
    except InputError as problem:
        yield error(1, f"the recipe's patterns make no sense: {problem.message}")
        return
    found = dict.fromkeys(wanted, 0)
    for known in material.benchmark.rules:
        try:
            text = canonical_text(parse_pattern(known.pattern or ""))
        except InputError:
            text = ""
        found[text] = found.get(text, 0) + 1
    for text, count in found.items():
        if text not in wanted:
            yield error(count, f"{count:,} rules have a pattern that the recipe does not ask for")
        elif count > recipe.k1 or (count < recipe.k1 and not recipe.allow_fewer):
            message = f"the pattern `{wanted[text]}` has {count:,} rules; the recipe asks for {recipe.k1:,}"
            yield error(abs(count - recipe.k1), message)


def equal_rules(material: Material) -> Iterator[Problem]:
    """No two rules are the same up to variable renaming and atom order."""
    first: dict[str, int] = {}
    again: list[Example] = []
    for number, rule in enumerate(material.rules):
        other = first.setdefault(canonical_text(rule), number)
        if other != number:
            again.append(Example(f"`{rule}` is the same as rule {other}", _where(number)))
    if again:
        yield error(len(again), f"{len(again):,} rules are there more than once", again)


def rule_counts(material: Material) -> Iterator[Problem]:
    """Support, number of new conclusions and size of the sample are what the manifest says of each rule."""
    rules, recipe = material.known_rules, material.benchmark.recipe
    if all(known.support == _NOT_COUNTED for known in rules):
        raise CannotCheckError("nothing is told about the rules (no manifest.json)")
    material.say("counting the support of the rules")
    supports = _ranked(material)
    wrong: list[Example] = []
    for number, known in enumerate(rules):
        support = supports[number] if number in supports else material.over_kg.support(known.rule)
        if support != known.support:
            wrong.append(
                Example(f"`{known.rule}` has support {support:,}, not {known.support:,}", _where(number))
            )
            continue
        conclusions = material.over_kg.conclusions(known.rule, new=True)
        new = len(conclusions) if material.depth == 1 else new_conclusions(material, number)
        if new != known.new:
            text = f"`{known.rule}` has {new:,} new conclusions, not {known.new:,}"
            wrong.append(Example(text, _where(number)))
        elif recipe is not None and known.sampled != (asked := _sample_size(material, known, conclusions)):
            text = f"of `{known.rule}` {known.sampled:,} conclusions were sampled, not {asked:,}"
            wrong.append(Example(text, _where(number)))
    if wrong:
        yield error(len(wrong), f"the counts of {len(wrong):,} rules are wrong", wrong)
    yield from wrong_measures(material)


def _ranked(material: Material) -> dict[int, int]:
    """Return the supports of rules that are among those of their pattern with the largest support.

    Ranking a pattern's bodies is cheaper than counting the witnesses of each.
    """
    patterns: dict[str, list[int]] = {}
    for number, known in enumerate(material.known_rules):
        if known.pattern is not None:
            patterns.setdefault(known.pattern, []).append(number)
    passed = len(material.benchmark.manifest.get("passed_over", ()))
    found: dict[int, int] = {}
    for text, numbers in patterns.items():
        try:
            pattern = parse_pattern(text)
        except InputError:
            continue
        table = material.over_kg.rank_bodies(pattern, len(numbers) + passed, complete=False)
        supports = dict(zip(predicate_names(table, material.kg), table.support.tolist(), strict=True))
        for number in numbers:
            names = predicates(pattern, material.rules[number]) or {}
            key = tuple(names.get(template, "") for template in pattern.templates)
            if key in supports:
                found[number] = supports[key]
    return found


def _sample_size(material: Material, known: BenchmarkRule, conclusions: Triples) -> int:
    """Return how many conclusions the recipe samples: k2 at most, and under `sound` none of a rare rule."""
    recipe = material.benchmark.recipe
    if material.benchmark.context is not None:
        return sample_size(material, known, conclusions)
    if recipe is None or (recipe.protocol == "sound" and known.new < recipe.min_new):
        return 0
    if "adjacency" in recipe.match and is_own_complement(known.rule):
        if material.depth > 1:  # each depth has its own, so only a bound is certain
            return min(known.sampled, known.new, recipe.k2)
        connected = int(connected_otherwise(material.kg, conclusions, known.rule).sum())
        return matched_size(recipe.k2, known.new - connected, connected)
    return min(known.new, recipe.k2)


def rare_rules(material: Material) -> Iterator[Problem]:
    """Each rule has enough conclusions to be learned and tested."""
    rules, recipe, provenance = material.rules, material.benchmark.recipe, material.provenance
    there = (provenance.rule >= 0) & (provenance.rule < len(rules))
    table = np.zeros((len(rules), len(SPLITS)), dtype=np.int64)
    np.add.at(table, (provenance.rule[there], provenance.split[provenance.conclusion[there]]), 1)
    if recipe is not None and recipe.protocol == "sound" and recipe.patterns and not recipe.inductive:
        few = [i for i, known in enumerate(material.benchmark.rules) if 0 <= known.new < recipe.min_new]
        if few:
            yield error(
                len(few),
                f"{len(few):,} rules have fewer than {recipe.min_new} new conclusions, against the recipe",
                [Example(f"`{rules[i]}`", _where(i)) for i in few],
            )
    # Given rules stay whatever they conclude, and a rule's share of test may be other rules' share of train.
    say = warning if recipe is None or (recipe.protocol != "sound" and recipe.patterns) else note
    for column, split in enumerate(SPLITS):
        if split == "valid":
            continue
        none = np.flatnonzero(table[:, column] == 0).tolist()
        if none:
            yield say(
                len(none),
                f"{len(none):,} of {len(rules):,} rules have no conclusion in P_{split}",
                [Example(f"`{rules[i]}`", _where(i)) for i in none],
            )
