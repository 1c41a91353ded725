"""The whole derivation of a triple that follows in several steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.rounds import Rounds
from loginfer.benchmark.story import Derivation, Step

__all__ = ["depth_of", "steps_to"]

Ids = tuple[int, int, int]


def depth_of(rounds: Rounds, triple: Ids) -> int:
    """Return in how many steps a triple follows: 0 in K, -1 if it does not."""
    return int(rounds.depths(np.array([triple], dtype=np.int32))[0])


def steps_to(
    rounds: Rounds, triple: Ids, derivation: Callable[[int, npt.NDArray[np.int32]], Derivation]
) -> tuple[Step, ...]:
    """Return what follows on the way to a triple, each with the first rule and witness, by depth.

    Parameters
    ----------
    rounds
        What follows from K, step by step.
    triple
        Ids of a triple that follows.
    derivation
        Tells of a rule, by its place, and a witness.
    """
    graph = rounds.kg
    found: dict[Ids, Step] = {}
    pending = [triple]
    while pending:
        asked = pending.pop()
        depth = depth_of(rounds, asked)
        if asked in found or depth < 1:
            continue
        row = np.array([asked], dtype=np.int32)
        place = int(rounds.derivations(row).rule[0])
        witness = rounds.over(depth).witnesses(rounds.rules[place], limit=1, conclusion=asked).values[0]
        told = derivation(place, witness)
        (names,) = graph.names(row)
        found[asked] = Step(names, depth, told)
        pending += [
            (graph.entity_id(s), graph.relation_id(r), graph.entity_id(o)) for s, r, o in told.premises
        ]
    return tuple(found[ids] for ids in sorted(found, key=lambda ids: (found[ids].depth, ids)))
