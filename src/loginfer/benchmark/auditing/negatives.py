"""Checks of the negatives against the rules: what is labelled false must not be true after all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.material import Material
from loginfer.benchmark.auditing.report import CannotCheckError, Problem, error, note, warning
from loginfer.benchmark.negation import has_negations
from loginfer.benchmark.values import Split
from loginfer.engine import Engine
from loginfer.errors import InputError, LimitError
from loginfer.logic.stratification import stratified

__all__ = ["derivable_negatives", "entailed_negatives"]

# A benchmark that does not promise sound negatives is warned about from this share on.
NOTABLE = 0.01
# So many negatives that follow in several steps deserve attention whatever was promised.
MANY = 0.1

# The materialisation is given up when it becomes so many times larger than P_all, or so much larger.
_GROWTH = 10
_ALWAYS = 1_000_000


def derivable_negatives(material: Material) -> Iterator[Problem]:
    """No negative follows from the rules and P_all in one step; only `sound` promises that.

    With negation, what follows from K or P_train need not follow from P_all; it is looked for as well.
    """
    rules = material.rules
    for method, made in material.negatives.items():
        true = {
            split: material.over_everything.derives(rules, triples) for split, triples in made.splits.items()
        }
        for engine in _before(material):
            for split, triples in made.splits.items():
                true[split] |= engine.derives(rules, triples)
        yield from _told(material, method, true, "in one step")


def _before(material: Material) -> list[Engine]:
    """Return engines over less than P_all, from which more may follow if there are negations."""
    if not has_negations(material.rules):
        return []
    return (
        [material.over_train]
        if material.benchmark.kg is None
        else [material.over_premises, material.over_train]
    )


def entailed_negatives(material: Material) -> Iterator[Problem]:
    """No negative is in the materialisation of P_all; only a recipe with `materialised` promises that."""
    rules = material.rules
    negatives = material.negatives
    if not material.closure:
        raise CannotCheckError("the materialisation was not asked for")
    everything = material.benchmark.everything
    limit = max(_GROWTH * len(everything), _ALWAYS)
    if material.depth > 1 and material.benchmark.recipe is not None:
        limit = material.benchmark.recipe.max_triples
    try:
        stratified(rules)
    except InputError as problem:
        raise CannotCheckError(problem.message) from None
    try:
        closure = material.over_everything.materialise(rules, max_triples=limit, progress=material.progress)
    except LimitError:
        raise CannotCheckError(f"the materialisation has more than {limit:,} triples beyond P_all") from None
    true = everything.with_triples(closure.triples)
    for method, made in negatives.items():
        found = {split: true.contains(triples) for split, triples in made.splits.items()}
        yield from _told(material, method, found, "in any number of steps")


def _told(
    material: Material, method: str, true: Mapping[Split, npt.NDArray[np.bool_]], how: str
) -> Iterator[Problem]:
    counts = {split: int(found.sum()) for split, found in true.items()}
    if not any(counts.values()):
        return
    shares = {split: count / max(len(true[split]), 1) for split, count in counts.items()}
    recipe = material.benchmark.recipe
    say = note
    promised = recipe is not None and (how == "in one step" or recipe.materialised or recipe.depth > 1)
    if recipe is not None and recipe.protocol == "sound" and promised:
        say = error
    elif max(shares.values()) >= (NOTABLE if how == "in one step" else MANY):
        say = warning
    listed = ", ".join(f"{shares[split]:.1%} in {split}" for split in true)
    count = sum(counts.values())
    message = f"{count:,} negatives of `{method}` follow from the rules and P_all {how} ({listed})"
    if say is warning and how != "in one step":
        message += "; a recipe with `materialised` keeps them out"
    splits = material.benchmark.negatives[method].splits
    examples = [
        e for split, found in true.items() for e in material.examples(splits[split][found], split, method)
    ]
    yield say(count, message, examples)
