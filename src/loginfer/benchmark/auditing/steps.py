"""Checks of conclusions that follow in several steps: their depths, and premises that follow before them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.material import Keys, Material
from loginfer.benchmark.auditing.report import Problem, error

__all__ = ["late_premises", "new_conclusions", "wrong_depths"]


def wrong_depths(material: Material) -> Iterator[Problem]:
    """Each conclusion follows in as many steps as is told, and not in fewer."""
    provenance = material.provenance
    if provenance.deep != (material.depth > 1):
        told = "tells" if provenance.deep else "does not tell"
        yield error(1, f"provenance {told} in how many steps conclusions follow, against the recipe")
        return
    if not provenance.deep:
        return
    wrong = np.flatnonzero(material.rounds.depths(provenance.triples) != provenance.depth)
    if len(wrong):
        yield error(
            len(wrong),
            f"{len(wrong):,} conclusions do not follow in the number of steps that is told",
            material.examples(provenance.triples[wrong]),
        )


def late_premises(material: Material, pairs: Keys, keys: Keys) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which premises do not follow in fewer steps than their conclusion.

    Parameters
    ----------
    material
        A benchmark of several steps.
    pairs
        int64[n], places in the provenance's list of pairs.
    keys
        int64[n], a premise of each; -1 for one with an unknown constant.
    """
    provenance, known = material.provenance, keys >= 0
    depth = np.full(len(keys), -1, dtype=np.int8)
    depth[known] = material.rounds.depths(material.graph.keys.unpack(keys[known]))
    return np.asarray((depth < 0) | (depth >= provenance.depth[provenance.conclusion[pairs]]))


def new_conclusions(material: Material, number: int) -> int:
    """Return how many new triples a rule concludes, at all depths that count."""
    rounds = material.rounds
    rule = material.rules[number]
    return sum(len(rounds.over(d).conclusions(rule, new=True)) for d in range(1, rounds.steps + 1))
