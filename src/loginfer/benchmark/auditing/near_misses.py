"""Checks of near misses: each follows from the edited rule that is told, and heads say nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.material import Material, set_name
from loginfer.benchmark.auditing.report import Problem, error, warning
from loginfer.benchmark.lookup import grouped
from loginfer.benchmark.negatives.near_miss_slots import heads_of
from loginfer.benchmark.tables import is_type_part
from loginfer.benchmark.values import EDITS, Origins
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.near_misses import Edit, edits_of, near_miss
from loginfer.logic.rule import Rule

__all__ = ["balanced_heads", "near_misses_hold", "told_near_miss"]

Mask = npt.NDArray[np.bool_]


def near_misses_hold(material: Material, triples: Triples, origins: Origins) -> Mask:
    """Return bool[n]: which triples the near misses that are told conclude from K."""
    fine = np.zeros(len(triples), dtype=bool)
    columns = (origins.rule, origins.edit, origins.part, origins.predicate)
    for told, places in grouped(*(column.astype(np.int64) for column in columns)):
        edited = told_near_miss(material.graph, material.rules, told)
        if edited is not None:
            fine[places] = material.over_premises.derives([edited], triples[places])
    return fine


def told_near_miss(graph: KnowledgeGraph, rules: tuple[Rule, ...], told: tuple[int, ...]) -> Rule | None:
    """Return the edited rule that the numbers rule, edit, part and predicate stand for; None if none does."""
    number, kind, part, predicate = told
    if not (0 <= number < len(rules) and 0 < kind < len(EDITS)):
        return None
    edit = Edit(EDITS[kind], part)
    if edit not in edits_of(rules[number]):
        return None
    if edit.kind != "replace":
        return near_miss(rules[number], edit)
    names = graph.entities if is_type_part(rules, number, part) else graph.relations
    if not 0 <= predicate < len(names):
        return None
    name = names[predicate]
    edited = near_miss(rules[number], edit, name)
    return None if edited == rules[number] else edited


def balanced_heads(material: Material) -> Iterator[Problem]:
    """Near misses: each split has as many negatives with a head as conclusions with it."""
    for method, made in material.negatives.items():
        if method != "nm":
            continue
        for split, triples in made.splits.items():
            positives = material.benchmark.positives[split]
            conclusions = positives[material.over_premises.derives(material.rules, positives)]
            heads = np.concatenate([heads_of(material.graph, t) for t in (conclusions, triples)])
            _, place = np.unique(heads, return_inverse=True)
            sides = np.split(place.ravel(), [len(conclusions)])
            counts = [np.bincount(side, minlength=int(place.max(initial=-1)) + 1) for side in sides]
            missing, spare = (int(np.maximum(a - b, 0).sum()) for a, b in (counts, counts[::-1]))
            name = set_name(split, method)
            if spare:
                message = f"{name} of `{method}` has {spare:,} triples more with some head than conclusions"
                yield error(spare, message)
            if missing:
                say = warning if len(triples) < made.asked.get(split, 0) else error
                yield say(
                    missing, f"{name} of `{method}` lacks {missing:,} triples with the head of conclusions"
                )
