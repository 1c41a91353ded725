"""Checks of noisy and inductive benchmarks.

Inductive: positives and negatives of test have other constants than train. Noise: exactly what is recorded is wrong.
All other checks look at the benchmark without its noise. They find a label that was flipped without being recorded: it
makes a conclusion disappear, a negative derivable, or K another graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from loginfer.benchmark.auditing.audited import AuditedBenchmark, rule_location, set_name
from loginfer.benchmark.auditing.findings import Example, Finding, error, errors, note, warning
from loginfer.benchmark.benchmark import BenchmarkRule, Signature
from loginfer.benchmark.construction.inductive import refuse_rules, shares, side_of_test, train_share
from loginfer.benchmark.construction.noise import KINDS, Noise, premises, reached
from loginfer.benchmark.folder.manifest import CONTEXT, NOISE
from loginfer.benchmark.recipe import share_of
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Keys, member

# -- new constants ----------------------------------------------------------------------------------


def is_inductive(audited: AuditedBenchmark) -> bool:
    """Say whether a benchmark is inductive, or should be."""
    recipe = audited.benchmark.recipe
    return audited.benchmark.context is not None or (recipe is not None and recipe.inductive)


def sides_apart(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Train and valid have constants of the train side only, test those of the context graph."""
    benchmark = audited.benchmark
    context, recipe = benchmark.context, benchmark.recipe
    if context is None:
        if recipe is not None and recipe.inductive:
            yield error(1, f"the recipe is inductive, but there is no `{CONTEXT}` that can be read")
        return
    if recipe is not None and not recipe.inductive:
        yield error(1, f"there is a context graph, `{CONTEXT}`, but the recipe is not inductive")
    if not len(context):
        yield error(1, f"`{CONTEXT}` holds no triples")
    yield from _context_problems(audited, context)
    yield from _wrong_share(audited, context)
    try:
        refuse_rules(benchmark.program)
    except InputError as problem:
        yield error(1, problem.message)
    is_test, train_signature = side_of_test(context), Signature(audited.graph)
    for split, method, triples in audited.benchmark.sets():
        name = set_name(split, method, full=True)
        typed = triples[:, 1] == audited.graph.type_relation
        ends = np.column_stack([triples[:, 0], np.where(typed, triples[:, 0], triples[:, 2])])
        wrong = (~is_test[ends] if split == "test" else is_test[ends]).any(axis=1)
        what = "that the context graph has not" if split == "test" else "of the context graph"
        yield from audited.about(triples[wrong], f"{{}} triples of {name} have a constant {what}", split, method)
        # By the text of the paper, heads of rules that conclude nothing are names that only negatives have.
        if split == "test" and (method is None or audited.protocol == "sound"):
            unknown = triples[~train_signature.covers_predicates(triples)]
            message = f"{{}} triples of {name} have a relation or type that P_train has not"
            yield from audited.about(unknown, message, "test", method)


def _context_problems(audited: AuditedBenchmark, context: KnowledgeGraph) -> Iterator[Finding]:
    """Check that the context graph has no repeated line and no triple of another set."""
    benchmark = audited.benchmark
    if audited.source is not None and audited.source.context is not None:
        repeated = len(audited.source.context.triples) - len(context)
        if repeated:
            yield error(repeated, f"`{CONTEXT}` repeats {repeated:,} triples")
    for split, method, triples in audited.benchmark.sets():
        shared, name = triples[context.contains(triples)], set_name(split, method, full=True)
        yield from audited.about(shared, f"the context graph and {name} share {{}} triples", split, method)
    recorded = benchmark.manifest.get("inductive") if benchmark.manifest else None
    if recorded is not None:
        constants = {"train": len(benchmark.graph.consts), "test": len(context.consts)}
        actual = {"context": len(context), "constants": constants}
        if recorded != actual:
            yield error(1, f"the manifest says {recorded} of the two sides", [Example(f"there are {actual}")])


# What the builder notes about the division: triples dropped, triples of K, and regions.
_DIVIDED = re.compile(r"([\d,]+) of ([\d,]+) triples of K are dropped.* grew in ([\d,]+) regions")


def _wrong_share(audited: AuditedBenchmark, context: KnowledgeGraph) -> Iterator[Finding]:
    """Check that the test side can be the recipe's share of the constants of K.

    A constant whose triples were all dropped is on neither side any more: one for each on the train side, two on the
    test side. There, each constant has a triple with the region that it joined, unless a relation or type is dropped.
    """
    recipe, kg = audited.benchmark.recipe, audited.benchmark.kg
    if recipe is None or not recipe.inductive or kg is None:
        return
    divided = next(filter(None, map(_DIVIDED.match, audited.benchmark.notes)), None)
    dropped, size, regions = (0, 0, 0) if divided is None else (int(n.replace(",", "")) for n in divided.groups())
    if size - dropped != len(kg):
        yield error(1, f"the manifest does not note how K was divided, of which {len(kg):,} triples are left")
        return
    share, test, both = recipe.inductive_share, len(context.consts), len(kg.consts)
    for lost, say in ((2 * dropped, error), (min(regions, 2 * dropped), warning)):
        if share_of(share, both + dropped) < test or share_of(share, both + lost) > test + lost:
            yield say(1, f"test has {test:,} of {both:,} constants, the recipe asks for a share of {share:g}")
            return


def inductive_sample_size(audited: AuditedBenchmark, context: KnowledgeGraph, rule: BenchmarkRule, new: Triples) -> int:
    """Return how many of a rule's new conclusions an inductive recipe samples, on both sides together."""
    recipe = audited.recipe
    on_test = int(side_of_test(context)[new[:, 0]].sum())
    on_train = len(new) - on_test
    if not on_train or (recipe.protocol == "sound" and rule.new < recipe.min_new):
        return 0
    most = shares(recipe)
    size = min(on_train, most[0]) + min(on_test, most[1])
    return min(rule.sampled, size) if recipe.match else size  # twins tell how many


def inductive_shares(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Each rule's sample on the train side is split by the ratio, and none is larger than its share of k2.

    A conclusion of several rules may have been sampled for any of them, so only a bound is certain: the conclusions
    that no other rule derives are not more than its share.
    """
    recipe = audited.recipe
    on_train, on_test = shares(recipe)
    wrong: list[Example] = []
    for number, (benchmark_rule, counts, exclusive) in enumerate(audited.counts_by_rule()):
        train_side = min(benchmark_rule.sampled, on_train)
        valid, test = train_side - train_share(recipe, train_side) + 1, min(benchmark_rule.sampled, on_test)
        if (
            exclusive[2] > test
            or exclusive[1] > valid
            or counts.sum() < benchmark_rule.sampled - _dropped_from_test(audited)
        ):
            has = " / ".join(map(str, counts.tolist()))
            wrong.append(Example(f"`{benchmark_rule.rule}` has {has}", rule_location(number)))
    yield from errors(wrong, f"the conclusions of {{}} rules are not split by {recipe.ratio}")


def _dropped_from_test(audited: AuditedBenchmark) -> int:
    """Return how many conclusions of test the builder says it dropped."""
    for remark in audited.benchmark.manifest.get("notes", ()) or audited.benchmark.notes:
        words = str(remark).split(" conclusions of test have a relation or type")
        if len(words) == 2 and words[0].isdigit():
            return int(words[0])
    return 0


# -- noise ------------------------------------------------------------------------------------------


def is_noisy(audited: AuditedBenchmark) -> bool:
    """Say whether a benchmark has noise, or should have."""
    recipe = audited.benchmark.recipe
    return audited.with_noise.noise is not None or (recipe is not None and bool(recipe.flipped or recipe.missing))


def recorded_noise(audited: AuditedBenchmark) -> Iterator[Finding]:
    """Check that recorded flips are on the wrong side, missing premises are missing, and counts are right."""
    noisy, recipe = audited.with_noise, audited.benchmark.recipe
    expects_noise = recipe is not None and bool(recipe.flipped or recipe.missing)
    if noisy.noise is None:
        if expects_noise:
            yield error(1, f"the recipe asks for noise, but there is no `{NOISE}` that can be read")
        return
    if recipe is not None and not expects_noise:
        yield error(len(noisy.noise), f"there is a `{NOISE}`, but the recipe asks for no noise")
    yield from _misplaced(audited, noisy.noise)
    if not audited.rules:
        return
    yield from _wrong_counts(audited, noisy.noise)
    audited.say("applying the rules to P_train with its noise")
    derived = reached(audited.benchmark, audited.over_noisy)
    wrong = [
        Example(f"{n:,} of {set_name(split)}, not {expected}")
        for split, n in derived.items()
        if (expected := noisy.noise.reached.get(split)) != n
    ]
    yield from errors(wrong, "the rules derive another number of conclusions from P_train")
    yield from _summary(audited, noisy.noise, derived["test"])


def _summary(audited: AuditedBenchmark, noise: Noise, derived: int) -> Iterator[Finding]:
    """Say what is recorded, and what the rules can reach with it."""
    counts, size = noise.as_dict(), len(audited.benchmark.positives.test)
    positive, negative, missing = (counts[kind] for kind in KINDS)
    if positive:
        message = f"labels of train are flipped on purpose: {positive:,} conclusions, {negative:,} negatives"
        yield note(positive + negative, message)
    if missing:
        message = f"{missing:,} premises are missing from P_train on purpose; from what is there "
        yield note(missing, message + f"the rules derive {derived:,} of {size:,} triples of P_test")


def _misplaced(audited: AuditedBenchmark, noise: Noise) -> Iterator[Finding]:
    """Compare the recorded triples with the files of train, the provenance and the witnesses."""
    noisy, keys, provenance = audited.with_noise, audited.graph.keys, audited.provenance
    (negative_set,) = noisy.negatives.values()
    train, negatives = noisy.graph.packed, keys.pack(negative_set.splits.train)
    later = np.sort(np.concatenate([keys.pack(negative_set.splits.valid), keys.pack(negative_set.splits.test)]))
    conclusions = keys.pack(provenance.triples[provenance.split == 0])
    flipped, wrong, missing = (keys.pack(noise.of(kind)) for kind in KINDS)

    def about(bad: Keys, message: str) -> Iterator[Finding]:
        yield from audited.about(keys.unpack(bad), message)

    misplaced = flipped[~member(conclusions, flipped)]
    yield from about(misplaced, "{} triples are flipped positives but no conclusions of train")
    misplaced = flipped[~member(negatives, flipped) | member(train, flipped)]
    yield from about(misplaced, "{} flipped positives are not in N_train, or still in P_train")
    misplaced = wrong[~member(train, wrong) | member(negatives, wrong)]
    yield from about(misplaced, "{} flipped negatives are not in P_train, or still in N_train")
    yield from about(missing[member(train, missing)], "{} missing premises are in P_train")
    yield from about(missing[member(negatives, missing) | member(later, missing)], "{} missing premises are negatives")
    if audited.benchmark.rules:
        misplaced = missing[~member(premises(audited.benchmark), missing)]
        yield from about(misplaced, "{} missing triples are premises of no recorded witness")


def _wrong_counts(audited: AuditedBenchmark, noise: Noise) -> Iterator[Finding]:
    """Compare the counts with the manifest, and the shares with the recipe."""
    counts = noise.as_dict()
    recorded = audited.benchmark.manifest.get("noise") if audited.benchmark.manifest else counts
    if not isinstance(recorded, dict):
        yield error(1, "the manifest does not tell of the noise")
        recorded = counts
    wrong = [
        Example(f"{counts[kind]:,} are {kind}, the manifest says {recorded.get(kind)}")
        for kind in KINDS
        if recorded.get(kind) != counts[kind]
    ]
    if counts["flipped-positive"] != counts["flipped-negative"]:
        wrong.append(Example("another number of positives than of negatives is flipped"))
    recipe, conclusions = audited.recipe, int((audited.provenance.split == 0).sum())
    pool = len(premises(audited.benchmark))
    flipped = min(share_of(recipe.flipped, conclusions), len(noise.negatives.splits.train))
    for key, kind, size, share in (
        ("flipped", "flipped-positive", conclusions, flipped),
        ("missing", "missing", pool, share_of(recipe.missing, pool)),
    ):
        # A triple whose removal would take a name from P_train stays; the builder says so.
        if noise.asked.get(key) != share or counts[kind] > share:
            wrong.append(Example(f"`{key}` = {getattr(recipe, key)} of {size:,} is {share:,}, not {counts[kind]:,}"))
    if wrong:
        yield error(len(wrong), "the noise is not as much as it should be", wrong)
