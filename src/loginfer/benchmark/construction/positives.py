"""Step 2, distributing rule application results (section 3.2), in one step or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import SPLITS, PassedOver, Provenance, Signature, Splits, StoredSplits, reordered
from loginfer.benchmark.construction.rules import (
    Selection,
    head_notes,
    named_patterns,
    refuse_silence,
    sample_new,
    silent_rules,
)
from loginfer.benchmark.negatives import Context
from loginfer.benchmark.negatives.twins import Twins, pair
from loginfer.benchmark.program import Rounds, has_negations, looked_at, negation_notes, without_retractable
from loginfer.benchmark.recipe import Recipe
from loginfer.engine import Engine
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ints, Keys, Mask, TripleKeys, keys_without, merged_keys
from loginfer.kg.vocabulary import offsets_of
from loginfer.logic.rule import Rule
from loginfer.progress import Progress, each
from loginfer.randomness import hash_order, salt

# How many rounds of pairing tell which rules have twins; and of how many times k1 rules they are chosen.
_SCREENING, CANDIDATES = 2, 3
# Why a candidate with too few of them is passed over.
WITH_TWIN = "conclusions have a twin"


@dataclass(frozen=True, slots=True)
class Positives:
    """P_train, P_valid, P_test, and where their conclusions came from.

    Parameters
    ----------
    splits
        The three sets; P_train contains K.
    provenance
        Of every conclusion that was distributed.
    notes
        What a user should know.
    """

    splits: Splits
    provenance: Provenance
    notes: tuple[str, ...] = ()


def distribute(
    recipe: Recipe, engine: Engine, selection: Selection, progress: Progress | None = None, rounds: Rounds | None = None
) -> Positives:
    """Distribute the sampled conclusions of each rule over train, valid and test.

    P_train is K and every rule's share of train; P_valid the shares of valid that are not in P_train; P_test
    the shares of test that are in neither. A conclusion with a name that P_train would not have goes to train
    instead: the signature of the others must be included in that of P_train (section 2.2).

    With `rounds`, conclusions may follow in several steps, and the provenance tells in how many.
    """
    graph = engine.graph
    shares: tuple[list[Keys], ...] = ([], [], [])
    for sample in selection.samples:
        first, second = recipe.cuts(len(sample))
        for share, part in zip(shares, (sample[:first], sample[first:second], sample[second:]), strict=True):
            share.append(part)
    train, valid, test = (merged_keys(*share) for share in shares)
    valid = keys_without(valid, train)
    test = keys_without(keys_without(test, train), valid)
    moved = with_new_names(graph, train, np.concatenate([valid, test]))
    if len(moved):
        train = merged_keys(train, moved)
        valid, test = (keys_without(keys, moved) for keys in (valid, test))
    splits = _splits(graph, train, valid, test)
    triples, split = conclusions_of(graph.keys, train, valid, test)
    if rounds is None:
        provenance = trace(engine, selection.program, triples, split, progress=progress)
    else:
        provenance = trace_steps(rounds, triples, split, progress)
    notes: tuple[str, ...] = ()
    if len(moved):
        notes = (f"{len(moved)} conclusions went to train because they are the first with some name",)
    return Positives(splits, provenance, notes)


def universe(graph: KnowledgeGraph, samples: Sequence[Keys]) -> Splits:
    """Return as P_train K with all conclusions that might be chosen; nothing as P_valid and P_test."""
    nothing: Triples = np.empty((0, 3), dtype=np.int32)
    return Splits(graph.keys.unpack(merged_keys(graph.packed, *map(np.sort, samples))), nothing, nothing)


def choose_paired(context: Context, selection: Selection, side: Mask | None = None) -> Twins:
    """Return twins of sampled conclusions, none of which is true whichever of them are chosen.

    Parameters
    ----------
    context
        With the `universe` of the samples as positives.
    selection
        The rules, and conclusions to choose from.
    side
        See `pair`.
    """
    twins = pair(context, side)
    if has_negations(selection.program):  # which may derive more from fewer conclusions
        derives = context.open_engine(context.everything).derives
        is_true = derives(without_retractable(selection.program), context.kg.keys.unpack(twins.twin))
        twins = twins[np.flatnonzero(~is_true)]
    return twins


def paired_sample(recipe: Recipe, sample: Keys, twins: Twins) -> Keys:
    """Return those conclusions of a rule that have a twin; none of a rule with fewer than `min_new`."""
    paired = sample[twins.rows_of(sample)[0]]
    return paired if len(paired) >= recipe.min_new else paired[:0]


def with_twins(selection: Selection, samples: Sequence[Keys], twins: Twins) -> Selection:
    """Return the same rules with those of their conclusions that have a twin, and a note on what is given up.

    Raises
    ------
    InputError
        When no conclusion has a twin.
    """
    refuse_unpaired(twins, samples)
    rules = tuple(replace(rule, sampled=len(sample)) for rule, sample in zip(selection.rules, samples, strict=True))
    before, after = (sum(len(sample) > 0 for sample in part) for part in (selection.samples, samples))
    given_up = f"; {before - after:,} of {before:,} rules have no conclusion left" if after < before else ""
    note = f"twins: {twins.note}{given_up}"
    return replace(selection, rules=rules, samples=tuple(samples), notes=(*selection.notes, note))


def refuse_unpaired(twins: Twins, samples: Sequence[Keys]) -> None:
    """Raise `InputError` when no conclusion is left."""
    if not any(map(len, samples)):
        hint = 'match on fewer features, lower min_new, set select = "twins", or leave out `match`'
        raise InputError(f"conclusions have too few twins: {twins.note}", hint=hint)


def widened(recipe: Recipe) -> Recipe:
    """Return a recipe that selects more rules, where those with twins will be chosen among them."""
    return recipe.changed(k1=CANDIDATES * recipe.k1, allow_fewer=True) if recipe.select == "twins" else recipe


def rules_with_twins(recipe: Recipe, context: Context, selection: Selection) -> Selection:
    """Return the k1 rules of each pattern whose conclusions have the most twins; the others are passed over.

    Raises
    ------
    InputError
        When there are fewer such rules than the recipe asks for.
    """
    twins = pair(context, rounds=_SCREENING)
    counts = [min(int(twins.rows_of(sample)[0].sum()), recipe.k2) for sample in selection.samples]
    chosen: list[int] = []
    notes: list[str] = []
    for pattern in named_patterns(recipe):
        of_pattern = [i for i, rule in enumerate(selection.rules) if rule.pattern == str(pattern)]
        numbers = [i for i in of_pattern if counts[i] >= recipe.min_new]
        if len(numbers) < recipe.k1:
            scarce = (
                f"only {len(numbers):,} of {recipe.k1:,} rules of `{pattern.name}` have enough conclusions with a twin"
            )
            if not recipe.may_have_fewer:
                hint = "be content with them (--allow-fewer)" if numbers else "match on fewer features"
                raise InputError(scarce, hint=hint)
            notes.append(scarce)
        most = sorted(numbers, key=lambda i: (selection.rules[i].rule in selection.unlike, -counts[i], i))[: recipe.k1]
        notes += head_notes(pattern, [selection.rules[i] for i in most], selection.unlike)
        chosen += sorted(most)
    passed_over = [
        PassedOver(rule.rule, rule.pattern or "", rule.support, rule.new, f"{counts[i]:,} {WITH_TWIN}")
        for i, rule in enumerate(selection.rules)
        if i not in chosen
    ]
    refuse_unpaired(twins, [selection.samples[i] for i in chosen])
    return replace(
        selection,
        rules=tuple(selection.rules[i] for i in chosen),
        samples=tuple(selection.samples[i] for i in chosen),
        passed_over=(*selection.passed_over, *passed_over),
        # Not how many candidates there were.
        notes=(*notes, *negation_notes([selection.rules[i].rule for i in chosen])),
    )


def _splits(graph: KnowledgeGraph, train: Keys, valid: Keys, test: Keys) -> Splits:
    """Return P_train = K ∪ train, P_valid and P_test; where K stays in a database, P_train does too."""
    later = graph.keys.unpack(valid), graph.keys.unpack(test)
    if graph.in_memory:
        return Splits(graph.keys.unpack(merged_keys(graph.packed, train)), *later)
    return StoredSplits(graph.with_more(graph.keys.unpack(train)), *later)


def conclusions_of(keys: TripleKeys, *parts: Keys) -> tuple[Triples, npt.NDArray[np.int8]]:
    """Return the conclusions of train, valid and test, sorted, and int8[n], the split of each."""
    concluded = np.concatenate(parts)
    split = np.repeat(np.arange(len(SPLITS), dtype=np.int8), [len(part) for part in parts])
    order = np.argsort(concluded)
    return keys.unpack(concluded[order]), split[order]


def with_new_names(graph: KnowledgeGraph, train: Keys, others: Keys) -> Keys:
    """Return the keys of triples with a name that neither K nor these training triples have, sorted."""
    signature = Signature(graph)
    signature.add(graph.keys.unpack(train))
    return np.sort(others[~signature.covers(graph.keys.unpack(others))])


def trace(
    engine: Engine,
    rules: Sequence[Rule],
    conclusions: Triples,
    split: npt.NDArray[np.int8],
    *,
    progress: Progress | None = None,
) -> Provenance:
    """Return all rules that derive each conclusion, with the first witness of each.

    Parameters
    ----------
    engine
        An engine over K.
    rules
        R.
    conclusions
        int32[n, 3], sorted.
    split
        int8[n], indices of `SPLITS`.
    progress
        Called with what is being done, how much is done, and how much there is.
    """
    derivations = engine.derivations(rules, conclusions)
    width = np.array([len(rule.variables) for rule in rules], dtype=np.int64)
    offsets = offsets_of(width[derivations.rule])
    values = np.empty(int(offsets[-1]), dtype=np.int32)
    by_rule = np.argsort(derivations.rule, kind="stable")
    ends = np.cumsum(np.bincount(derivations.rule, minlength=len(rules)))
    for i, rule in each(rules, "finding witnesses", progress):
        pairs = by_rule[ends[i - 1] if i else 0 : ends[i]]
        if len(pairs):
            rows = engine.first_witnesses(rule, conclusions[derivations.triple[pairs]])
            values[offsets[pairs][:, None] + np.arange(width[i])] = rows
    return Provenance(conclusions, split, derivations.triple, derivations.rule.astype(np.int32), offsets, values)


def trace_steps(
    rounds: Rounds, conclusions: Triples, split: npt.NDArray[np.int8], progress: Progress | None = None
) -> Provenance:
    """Return the provenance of conclusions of several steps: those at depth d are traced in K_{d-1}.

    Parameters
    ----------
    rounds
        K and what follows from it, step by step.
    conclusions, split, progress
        As for `trace`.
    """
    depth = rounds.depths(conclusions)
    parts = []
    for step in range(1, rounds.steps + 1):
        rows = np.flatnonzero(depth == step)
        engine = rounds.over(step)
        part = trace(engine, rounds.rules, conclusions[rows], split[rows], progress=progress)
        parts.append((rows, part))
    return joined(parts, conclusions, split, depth)


def deepen(recipe: Recipe, selection: Selection, rounds: Rounds, progress: Progress | None = None) -> Selection:
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
    rules, samples = [], []
    for _, rule in each(selection.rules, "applying rules step by step", progress):
        by_depth = [sample_new(recipe, rounds.over(d), rule.rule) for d in range(1, rounds.steps + 1)]
        shares = equal_shares([len(sample) for _, sample in by_depth], looked_at(recipe, recipe.k2, rule.rule))
        sample = np.concatenate([sample[:n] for (_, sample), n in zip(by_depth, shares, strict=True)])
        new = sum(count for count, _ in by_depth)
        if recipe.protocol == "sound" and new < recipe.min_new:
            sample = sample[:0]
        rules.append(replace(rule, new=new, sampled=len(sample)))
        samples.append(_shuffled(recipe, rule.rule, sample))
    refuse_silence(rules, recipe, rounds.kg)
    notes = (*selection.notes, *silent_rules(rules, recipe), *_depth_notes(recipe, rounds))
    return replace(selection, rules=tuple(rules), samples=tuple(samples), notes=notes)


def _shuffled(recipe: Recipe, rule: object, sample: Ints) -> Ints:
    """Return a sample in random order, so that each split has a share of every depth.

    It is not the order by which the conclusions of a depth were drawn: in that one, those of a depth with
    many would come before those of a depth with few, and train would get the former, test the latter.
    """
    return np.asarray(sample[hash_order(sample, salt(recipe.seed, "positives", "steps", rule))])


def _depth_notes(recipe: Recipe, rounds: Rounds) -> tuple[str, ...]:
    """Say when nothing new follows at the depth that was asked for."""
    if rounds.steps == recipe.depth:
        return ()
    steps = "one step" if rounds.steps == 1 else f"{rounds.steps} steps"
    return (f"everything follows in {steps}; the depth asked for is {recipe.depth}",)


def equal_shares(available: Sequence[int], total: int) -> list[int]:
    """Share out a number equally; what one cannot take goes to the others, a rest to the first.

    Parameters
    ----------
    available
        How many each can take.
    total
        How many there are to share out.
    """
    shares = [0] * len(available)
    while open_ := [i for i, most in enumerate(available) if shares[i] < most]:
        left = total - sum(shares)
        share = left // len(open_)
        if not share:
            for i in open_[:left]:
                shares[i] += 1
            break
        for i in open_:
            shares[i] += min(share, available[i] - shares[i])
    return shares


def joined(
    parts: Sequence[tuple[Ints, Provenance]], triples: Triples, split: npt.NDArray[np.int8], depth: npt.NDArray[np.int8]
) -> Provenance:
    """Put the provenance of the conclusions of each depth together.

    Parameters
    ----------
    parts
        For each depth the rows of its conclusions in the list of all, and their provenance.
    triples, split, depth
        All conclusions, sorted; their splits; their depths.
    """
    conclusion = np.concatenate([rows[part.conclusion] for rows, part in parts])
    rule = np.concatenate([part.rule for _, part in parts])
    lengths = np.concatenate([np.diff(part.offsets) for _, part in parts])
    order = np.lexsort((rule, conclusion))
    offsets, values = reordered(lengths, np.concatenate([part.values for _, part in parts]), order)
    return Provenance(triples, split, conclusion[order], rule[order], offsets, values, depth)
