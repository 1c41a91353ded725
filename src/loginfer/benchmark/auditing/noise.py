"""Check of the noise: exactly what is recorded is wrong.

All other checks look at the benchmark without its noise. A label that was flipped without being recorded is
found by them: it makes a conclusion disappear, a negative derivable, or K another graph.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loginfer.benchmark.auditing.material import Keys, Material, set_name
from loginfer.benchmark.auditing.report import CannotCheckError, Example, Problem, error, note
from loginfer.benchmark.layout import NOISE
from loginfer.benchmark.lookup import member
from loginfer.benchmark.noise import Noise
from loginfer.benchmark.noise_making import premises, reached
from loginfer.benchmark.recipe_variants import share_of
from loginfer.benchmark.values import Benchmark

__all__ = ["recorded_noise"]


def recorded_noise(material: Material) -> Iterator[Problem]:
    """Check that recorded flips are on the wrong side, missing premises are missing, and counts are right."""
    given, recipe = material.given, material.benchmark.recipe
    asked = recipe is not None and bool(recipe.flipped or recipe.missing)
    if given.noise is None:
        if asked:
            yield error(1, f"the recipe asks for noise, but there is no `{NOISE}` that can be read")
        return
    if recipe is not None and not asked:
        yield error(len(given.noise), f"there is a `{NOISE}`, but the recipe asks for no noise")
    yield from _places(material, given, given.noise)
    if not material.rules:
        return
    yield from _counts(material, given.noise)
    material.say("applying the rules to P_train with its noise")
    found = reached(material.benchmark, material.over_given)
    wrong = {split: n for split, n in found.items() if given.noise.reached.get(split) != n}
    if wrong:
        told = [
            Example(f"{n:,} of {set_name(split)}, not {given.noise.reached.get(split)}")
            for split, n in wrong.items()
        ]
        yield error(len(wrong), "the rules derive another number of conclusions from P_train", told)
    yield from _told(material, given.noise, found["test"])


def _told(material: Material, found: Noise, derived: int) -> Iterator[Problem]:
    """Say what is recorded, and what the rules can reach with it."""
    counts, size = found.as_dict(), len(material.benchmark.positives.test)
    if counts["flipped-positive"]:
        message = f"labels of train are flipped on purpose: {counts['flipped-positive']:,} conclusions, "
        yield note(
            counts["flipped-positive"] + counts["flipped-negative"],
            message + f"{counts['flipped-negative']:,} negatives",
        )
    if counts["missing"]:
        message = f"{counts['missing']:,} premises are missing from P_train on purpose; from what is there "
        yield note(counts["missing"], message + f"the rules derive {derived:,} of {size:,} triples of P_test")


def _places(material: Material, given: Benchmark, found: Noise) -> Iterator[Problem]:
    """Compare the recorded triples with the files of train, the provenance and the witnesses."""
    keys = given.graph.keys
    (method,) = given.negatives
    false = given.negatives[method].splits
    train = given.graph.packed
    negatives = keys.pack(false.train)
    others = np.sort(np.concatenate([keys.pack(false.valid), keys.pack(false.test)]))
    provenance = material.provenance
    conclusions = keys.pack(provenance.triples[provenance.split == 0])
    flipped, wrong, missing = (
        keys.pack(found.of(kind)) for kind in ("flipped-positive", "flipped-negative", "missing")
    )

    def told(bad: Keys, message: str) -> Iterator[Problem]:
        if len(bad):
            yield error(len(bad), message.format(f"{len(bad):,}"), material.examples(keys.unpack(bad)))

    yield from told(
        flipped[~member(conclusions, flipped)], "{} triples are flipped positives but no conclusions of train"
    )
    yield from told(
        flipped[~member(negatives, flipped) | member(train, flipped)],
        "{} flipped positives are not in N_train, or still in P_train",
    )
    yield from told(
        wrong[~member(train, wrong) | member(negatives, wrong)],
        "{} flipped negatives are not in P_train, or still in N_train",
    )
    yield from told(missing[member(train, missing)], "{} missing premises are in P_train")
    yield from told(
        missing[member(negatives, missing) | member(others, missing)], "{} missing premises are negatives"
    )
    if material.benchmark.rules:
        yield from told(
            missing[~member(premises(material.benchmark), missing)],
            "{} missing triples are premises of no recorded witness",
        )


def _counts(material: Material, found: Noise) -> Iterator[Problem]:
    """Compare the counts with the manifest, and the shares with the recipe."""
    there = found.as_dict()
    told = material.benchmark.manifest.get("noise") if material.benchmark.manifest else there
    if not isinstance(told, dict):
        yield error(1, "the manifest does not tell of the noise")
        told = there
    wrong = [
        Example(f"{there[kind]:,} are {kind}, the manifest says {told.get(kind)}")
        for kind in ("flipped-positive", "flipped-negative", "missing")
        if told.get(kind) != there[kind]
    ]
    if there["flipped-positive"] != there["flipped-negative"]:
        wrong.append(Example("another number of positives than of negatives is flipped"))
    recipe = material.benchmark.recipe
    if recipe is None:
        raise CannotCheckError("the recipe is not known (no manifest.json)")
    provenance = material.provenance
    conclusions = int((provenance.split == 0).sum())
    pools = {"flipped": conclusions, "missing": len(premises(material.benchmark))}
    for key, kind in (("flipped", "flipped-positive"), ("missing", "missing")):
        share = share_of(getattr(recipe, key), pools[key])
        if key == "flipped":
            share = min(share, len(found.negatives.splits.train))
        # A triple whose removal would take a name from P_train stays; the builder says so.
        if found.asked.get(key) != share or there[kind] > share:
            wrong.append(
                Example(
                    f"`{key}` = {getattr(recipe, key)} of {pools[key]:,} is {share:,}, not {there[kind]:,}"
                )
            )
    if wrong:
        yield error(len(wrong), "the noise is not as much as it should be", wrong)
