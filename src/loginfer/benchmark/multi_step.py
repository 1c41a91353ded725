"""Steps 1 and 2 for conclusions of several steps: samples from every depth, and where each came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.randomness import hash_order, salt
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.rounds import Rounds
from loginfer.benchmark.rules import Selection, refuse_silence, sample_new, silent_rules
from loginfer.benchmark.values import Provenance
from loginfer.engine import Progress
from loginfer.kg import Triples

__all__ = ["deepen", "equal_shares", "joined"]


def deepen(
    recipe: Recipe, selection: Selection, rounds: Rounds, progress: Progress | None = None
) -> Selection:
    """Return the same rules with samples of what each derives at every depth that counts.

    Of up to k2 conclusions of a rule each depth at which it derives something has an equal share; what one
    cannot fill goes to the others. Under `sound`, rules that derive fewer than `min_new` new triples at all
    depths together are not sampled.

    Raises
    ------
    InputError
        When nothing new follows at all.
    LimitError
        When more triples follow than the recipe allows.
    """
    chosen, samples = [], []
    for i, known in enumerate(selection.rules):
        if progress:
            progress("applying rules step by step", i, len(selection.rules))
        found = [sample_new(recipe, rounds.over(d), known.rule) for d in range(1, rounds.steps + 1)]
        shares = equal_shares([len(sample) for _, sample in found], recipe.k2)
        sample = np.concatenate([sample[:n] for (_, sample), n in zip(found, shares, strict=True)])
        new = sum(count for count, _ in found)
        if recipe.protocol == "sound" and new < recipe.min_new:
            sample = sample[:0]
        chosen.append(replace(known, new=new, sampled=len(sample)))
        samples.append(_shuffled(recipe, known.rule, sample))
    refuse_silence(chosen, recipe, rounds.kg)
    notes = (*selection.notes, *silent_rules(chosen, recipe), *_reached(recipe, rounds))
    return replace(selection, rules=tuple(chosen), samples=tuple(samples), notes=notes)


def _shuffled(recipe: Recipe, rule: object, sample: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a sample in random order, so that each split has a share of every depth.

    It is not the order by which the conclusions of a depth were drawn: in that one, those of a depth with
    many would come before those of a depth with few, and train would get the former, test the latter.
    """
    return np.asarray(sample[hash_order(sample, salt(recipe.seed, "positives", "steps", rule))])


def _reached(recipe: Recipe, rounds: Rounds) -> tuple[str, ...]:
    """Say when nothing new follows at the depth that was asked for."""
    if rounds.steps == recipe.depth:
        return ()
    steps = "one step" if rounds.steps == 1 else f"{rounds.steps} steps"
    return (f"everything follows in {steps}; the depth asked for is {recipe.depth}",)


def equal_shares(available: Sequence[int], wanted: int) -> list[int]:
    """Share out a number equally; what one cannot take goes to the others, a rest to the first.

    Parameters
    ----------
    available
        How many each can take.
    wanted
        How many there are to share out.
    """
    shares = [0] * len(available)
    while open_ := [i for i, most in enumerate(available) if shares[i] < most]:
        left = wanted - sum(shares)
        each = left // len(open_)
        if not each:
            for i in open_[:left]:
                shares[i] += 1
            break
        for i in open_:
            shares[i] += min(each, available[i] - shares[i])
    return shares


def joined(
    parts: Sequence[tuple[npt.NDArray[np.int64], Provenance]],
    triples: Triples,
    split: npt.NDArray[np.int8],
    depth: npt.NDArray[np.int8],
) -> Provenance:
    """Put the provenance of the conclusions of each depth together.

    Parameters
    ----------
    parts
        For each depth the places of its conclusions in the list of all, and their provenance.
    triples, split, depth
        All conclusions, sorted; their splits; their depths.
    """
    conclusion = np.concatenate([places[part.conclusion] for places, part in parts])
    rule = np.concatenate([part.rule for _, part in parts])
    lengths = np.concatenate([np.diff(part.offsets) for _, part in parts])
    values = np.concatenate([part.values for _, part in parts])
    order = np.lexsort((rule, conclusion))
    starts = np.cumsum(lengths) - lengths
    offsets = np.zeros(len(order) + 1, dtype=np.int64)
    np.cumsum(lengths[order], out=offsets[1:])
    places = np.repeat(starts[order] - offsets[:-1], lengths[order]) + np.arange(offsets[-1])
    return Provenance(triples, split, conclusion[order], rule[order], offsets, values[places], depth)
