"""Checks of the six sets: what the definition of a benchmark demands (section 2.2), without any rule."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.material import Material, set_name
from loginfer.benchmark.auditing.report import CannotCheckError, Problem, error, note, warning
from loginfer.benchmark.values import SPLITS
from loginfer.kg import Triples

__all__ = ["balance", "conclusions_in_kg", "disjoint", "duplicates", "names_of_negatives", "signature"]


def duplicates(material: Material) -> Iterator[Problem]:
    """No triple is in a file twice."""
    if not material.lines:
        raise CannotCheckError("the benchmark is in memory, where sets have no duplicates")
    for (split, method), lines in material.lines.items():
        keys = material.graph.keys.pack(lines.triples)
        order = np.argsort(keys, kind="stable")
        again = np.sort(order[1:][keys[order][1:] == keys[order][:-1]])
        if len(again):
            examples = material.examples(lines.triples[again], split, method, occurrence=1)
            yield error(len(again), f"`{lines.file}` repeats {_count(again, 'triple')}", examples)


def disjoint(material: Material) -> Iterator[Problem]:
    """No two sets share a triple: neither among positives and negatives, nor across."""
    positive: list[tuple[str, str | None]] = [(split, None) for split in SPLITS]
    yield from _overlaps(material, list(combinations(positive, 2)))
    for method in material.benchmark.negatives:
        negative: list[tuple[str, str | None]] = [(split, method) for split in SPLITS]
        pairs = [(p, n) for p in positive for n in negative]
        yield from _overlaps(material, [*pairs, *combinations(negative, 2)])


def _overlaps(
    material: Material, pairs: list[tuple[tuple[str, str | None], tuple[str, str | None]]]
) -> Iterator[Problem]:
    for one, two in pairs:
        both = np.intersect1d(material.packed[one], material.packed[two], assume_unique=True)
        if len(both):
            names = " and ".join(set_name(*key) for key in (one, two))
            method = two[1]
            of = "" if method is None else f" of `{method}`"
            examples = material.examples(material.graph.keys.unpack(both), *two)
            yield error(len(both), f"{names}{of} share {_count(both, 'triple')}", examples)


def conclusions_in_kg(material: Material) -> Iterator[Problem]:
    """P_valid and P_test hold conclusions that are new: none is in K."""
    for split in ("valid", "test"):
        triples = material.benchmark.positives[split]
        known = triples[material.kg.contains(triples)]
        if len(known):
            message = f"{_count(known, 'triple')} of {set_name(split)} are in K"
            yield error(len(known), message, material.examples(known, split))


def signature(material: Material) -> Iterator[Problem]:
    """Sig(P_valid) and Sig(P_test) are included in Sig(P_train)."""
    for split in ("valid", "test"):
        strange = _strange(material, material.benchmark.positives[split])
        if len(strange):
            message = f"{_count(strange, 'triple')} of {set_name(split)} have a name that P_train has not"
            yield error(len(strange), message, material.examples(strange, split))


def names_of_negatives(material: Material) -> Iterator[Problem]:
    """Whether the negatives use names that P_train has not: they can be told apart by that alone."""
    for method, negatives in material.negatives.items():
        strange = {split: _strange(material, triples) for split, triples in negatives.splits.items()}
        count = sum(map(len, strange.values()))
        if count:
            listed = ", ".join(f"{len(found):,} in {split}" for split, found in strange.items())
            message = f"{count:,} negatives of `{method}` have a name that P_train has not ({listed})"
            # Heads of rules that conclude nothing are names that only negatives have: the text wants them.
            say = note if material.protocol is not None else warning
            examples = [e for s, found in strange.items() for e in material.examples(found, s, method)]
            yield say(count, message, examples)


def _strange(material: Material, triples: Triples) -> Triples:
    """Return the triples with a constant, type or relation that no training triple has in such a place.

    Constants and types are different things: a name that is only known as a type is no known constant.
    """
    graph = material.benchmark.seen
    constants = np.zeros(len(graph.entities), dtype=bool)
    constants[graph.consts] = True
    types = np.zeros(len(graph.entities), dtype=bool)
    types[graph.types] = True
    relations = np.zeros(len(graph.relations), dtype=bool)
    relations[graph.preds] = True
    is_type = np.zeros(len(triples), dtype=bool)
    if graph.type_relation is not None:
        is_type = triples[:, 1] == graph.type_relation
    objects = np.where(is_type, types[triples[:, 2]], constants[triples[:, 2]])
    known = constants[triples[:, 0]] & relations[triples[:, 1]] & objects
    return np.asarray(triples[~known])


def balance(material: Material) -> Iterator[Problem]:
    """There are as many negatives as positives in each split; near misses are as many as conclusions."""
    for method, negatives in material.negatives.items():
        if method == "nm":
            continue  # as many as conclusions: see `balanced_heads`
        for split, triples in negatives.splits.items():
            wanted, found = len(material.benchmark.positives[split]), len(triples)
            if wanted == found:
                continue
            if material.raw is not None and (split, method) not in material.lines:
                continue  # a file that is not there is told elsewhere
            message = (
                f"{set_name(split)} has {wanted:,} triples, {set_name(split, method)} of `{method}` {found:,}"
            )
            # The builder says so when it runs out of candidates.
            admitted = bool(negatives.notes) and negatives.asked.get(split) == wanted and found < wanted
            say = warning if admitted else error
            yield say(abs(wanted - found), message + (": candidates ran out" if admitted else ""))


def _count(things: npt.NDArray[np.generic], word: str) -> str:
    return f"{len(things):,} {word}" + ("" if len(things) == 1 else "s")
