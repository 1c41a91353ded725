"""Checks of variants.

Checks of inductive benchmarks: the constants of test are not those of train, on either label.

Check of the noise: exactly what is recorded is wrong.

All other checks look at the benchmark without its noise. A label that was flipped without being recorded is
found by them: it makes a conclusion disappear, a negative derivable, or K another graph.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.auditing.material import Keys, Material, set_name
from loginfer.benchmark.auditing.report import CannotCheckError, Example, Problem, error, note
from loginfer.benchmark.benchmark import SPLITS, Benchmark, BenchmarkRule
from loginfer.benchmark.construction.inductive import refuse_rules, shares, side_of_test, train_share
from loginfer.benchmark.construction.noise import Noise, premises, reached
from loginfer.benchmark.folder.manifest import CONTEXT, NOISE
from loginfer.benchmark.recipe import share_of
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import member

Mask = npt.NDArray[np.bool_]


def sides_apart(material: Material) -> Iterator[Problem]:
    """Train and valid have constants of the train side only, test those of the context graph."""
    benchmark = material.benchmark
    context, recipe = benchmark.context, benchmark.recipe
    if context is None:
        if recipe is not None and recipe.inductive:
            yield error(1, f"the recipe is inductive, but there is no `{CONTEXT}` that can be read")
        return
    if recipe is not None and not recipe.inductive:
        yield error(1, f"there is a context graph, `{CONTEXT}`, but the recipe is not inductive")
    if not len(context):
        yield error(1, f"`{CONTEXT}` holds no triples")
    yield from _context(material, context)
    try:
        refuse_rules(benchmark.program)
    except InputError as problem:
        yield error(1, problem.message)
    is_test = side_of_test(context)
    for split, method, triples in material.sets():
        of = f"{set_name(split, method)}" + ("" if method is None else f" of `{method}`")
        ends = _ends(material.graph, triples)
        wrong = (~is_test[ends] if split == "test" else is_test[ends]).any(axis=1)
        if wrong.any():
            what = "that the context graph has not" if split == "test" else "of the context graph"
            count = int(wrong.sum())
            message = f"{count:,} triples of {of} have a constant {what}"
            yield error(count, message, material.examples(triples[wrong], split, method))
        # By the text of the paper, heads of rules that conclude nothing are names that only negatives have.
        if split == "test" and (method is None or material.protocol == "sound"):
            yield from _predicates(material, of, triples, method)


def _context(material: Material, context: KnowledgeGraph) -> Iterator[Problem]:
    """Check that the context graph has no repeated line and no triple of another set."""
    benchmark = material.benchmark
    if material.raw is not None and material.raw.context is not None:
        again = len(material.raw.context) - len(context)
        if again:
            yield error(again, f"`{CONTEXT}` repeats {again:,} triples")
    for split, method, triples in material.sets():
        both = triples[context.contains(triples)]
        if len(both):
            of = f"{set_name(split, method)}" + ("" if method is None else f" of `{method}`")
            message = f"the context graph and {of} share {len(both):,} triples"
            yield error(len(both), message, material.examples(both, split, method))
    told = benchmark.manifest.get("inductive") if benchmark.manifest else None
    if told is not None:
        constants = {"train": len(benchmark.graph.consts), "test": len(context.consts)}
        found = {"context": len(context), "constants": constants}
        if told != found:
            yield error(1, f"the manifest says {told} of the two sides", [Example(f"there are {found}")])


def _predicates(material: Material, of: str, triples: Triples, method: str | None) -> Iterator[Problem]:
    """Test asks for relations and types of P_train only."""
    graph = material.graph
    relations = np.zeros(len(graph.relations), dtype=bool)
    relations[graph.preds] = True
    types = np.zeros(len(graph.entities), dtype=bool)
    types[graph.types] = True
    typed = triples[:, 1] == (-1 if graph.type_relation is None else graph.type_relation)
    strange = triples[~relations[triples[:, 1]] | (typed & ~types[triples[:, 2]])]
    if len(strange):
        message = f"{len(strange):,} triples of {of} have a relation or type that P_train has not"
        yield error(len(strange), message, material.examples(strange, "test", method))


def _ends(graph: KnowledgeGraph, triples: Triples) -> npt.NDArray[np.int32]:
    """Return int32[n, 2]: the constants of triples; that of a type triple twice."""
    typed = triples[:, 1] == (-1 if graph.type_relation is None else graph.type_relation)
    return np.column_stack([triples[:, 0], np.where(typed, triples[:, 0], triples[:, 2])])


# -- what other checks ask -------------------------------------------------------------------------


def sample_size(material: Material, known: BenchmarkRule, conclusions: Triples) -> int:
    """Return how many of a rule's new conclusions an inductive recipe samples, on both sides together."""
    recipe, context = material.benchmark.recipe, material.benchmark.context
    if recipe is None or context is None:
        raise CannotCheckError("the recipe is not known (no manifest.json)")
    on_test = int(side_of_test(context)[conclusions[:, 0]].sum())
    on_train = len(conclusions) - on_test
    if not on_train or (recipe.protocol == "sound" and known.new < recipe.min_new):
        return 0
    most = shares(recipe)
    return min(on_train, most[0]) + min(on_test, most[1])


def inductive_shares(material: Material) -> Iterator[Problem]:
    """Each rule's sample on the train side is split by the ratio, and none is larger than its share of k2.

    A conclusion of several rules may have come from any of them, so what is certain are bounds: what no other
    rule derives is not more than its share.
    """
    benchmark, provenance = material.benchmark, material.provenance
    recipe, context = benchmark.recipe, benchmark.context
    if recipe is None or context is None:
        raise CannotCheckError("the recipe is not known (no manifest.json)")
    fitting = (provenance.rule >= 0) & (provenance.rule < len(material.rules))
    pair_rule, pair_triple = provenance.rule[fitting], provenance.conclusion[fitting]
    split = provenance.split[pair_triple]
    alone = np.bincount(pair_triple, minlength=len(provenance))[pair_triple] == 1
    most = shares(recipe)
    wrong: list[Example] = []
    for number, known in enumerate(benchmark.rules):
        only = np.bincount(split[(pair_rule == number) & alone], minlength=len(SPLITS))
        own = np.bincount(split[pair_rule == number], minlength=len(SPLITS))
        test = min(known.sampled, most[1])
        train_side = min(known.sampled, most[0])
        valid = train_side - train_share(recipe, train_side) + 1
        if only[2] > test or only[1] > valid or own.sum() < known.sampled - _lost(material):
            wrong.append(
                Example(f"`{known.rule}` has {' / '.join(map(str, own.tolist()))}", f"rules.txt, rule {number}")
            )
    if wrong:
        yield error(len(wrong), f"the conclusions of {len(wrong):,} rules are not split by {recipe.ratio}", wrong)


def _lost(material: Material) -> int:
    """Return how many conclusions of test the builder says it dropped."""
    for remark in material.benchmark.manifest.get("notes", ()) or material.benchmark.notes:
        words = str(remark).split(" conclusions of test have a relation or type")
        if len(words) == 2 and words[0].isdigit():
            return int(words[0])
    return 0


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
            Example(f"{n:,} of {set_name(split)}, not {given.noise.reached.get(split)}") for split, n in wrong.items()
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
    yield from told(missing[member(negatives, missing) | member(others, missing)], "{} missing premises are negatives")
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
                Example(f"`{key}` = {getattr(recipe, key)} of {pools[key]:,} is {share:,}, not {there[kind]:,}")
            )
    if wrong:
        yield error(len(wrong), "the noise is not as much as it should be", wrong)
