"""Inductive benchmarks: the constants of test are not those of train.

The rules are selected on K as always. Then the constants of K are divided into a train side and a test side,
and with them the triples: K_train, and the context graph K_test. What lies across is dropped. Train and valid
get conclusions of the rules over K_train, test those over K_test; a negative has constants of one side only.
Types are predicates, and stand on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.complements import MatchedSample, needs_matching
from loginfer.benchmark.division import Division, Opener, divide, refuse_rules, shares, side_of_test
from loginfer.benchmark.negatives import Context, sample_negatives
from loginfer.benchmark.positives import Positives, strangers, trace
from loginfer.benchmark.randomness import hash_order, salt
from loginfer.benchmark.recipe import Recipe
from loginfer.benchmark.rules import Selection
from loginfer.benchmark.values import SPLITS, NegativeSet, Splits
from loginfer.engine import Engine, Progress
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.triples import keys_without, merged_keys
from loginfer.logic.rule import Rule

__all__ = ["Sides", "inductive_sides", "train_share"]

Keys = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sides:
    """Everything that an inductive benchmark is made from.

    Parameters
    ----------
    division
        The two graphs.
    selection
        R, with support and new conclusions counted on the two sides together.
    positives
        P_train, P_valid and P_test.
    train, test
        What negatives are made from: one context for train and valid, one for test.
    """

    division: Division
    selection: Selection
    positives: Positives
    train: Context
    test: Context

    def negatives(self, method: str) -> NegativeSet:
        """Return the negatives of one method: each split's from its own side."""
        first, second = (sample_negatives(side, method) for side in (self.train, self.test))
        return NegativeSet(
            method,
            Splits(first.splits.train, first.splits.valid, second.splits.test),
            {split: (second if split == "test" else first).origins[split] for split in SPLITS},
            {split: (second if split == "test" else first).asked[split] for split in SPLITS},
            (*(f"train side: {note}" for note in first.notes), *(f"test side: {n}" for n in second.notes)),
        )


def train_share(recipe: Recipe, size: int) -> int:
    """Return how many of a rule's conclusions on the train side go to train; the others go to valid."""
    train, valid, _ = recipe.shares
    return int(size * train / (train + valid))


# -- positives -------------------------------------------------------------------------------------


def inductive_sides(
    recipe: Recipe,
    graph: KnowledgeGraph,
    selection: Selection,
    open_engine: Opener,
    progress: Progress | None = None,
) -> Sides:
    """Divide K, and distribute the conclusions of the rules on each side.

    Parameters
    ----------
    recipe
        What to build.
    graph
        K.
    selection
        The rules that were selected on K.
    open_engine
        Opens an engine over a graph.
    progress
        Called with what is being done, how much is done, and how much there is.
    """
    refuse_rules(selection.program)
    division = divide(recipe, graph, selection.program, open_engine, progress)
    over_both = open_engine(division.both)
    counted, samples = _sampled(recipe, over_both, selection, side_of_test(division.test), progress)
    positives = _distributed(recipe, over_both, counted, samples, division, progress)
    splits = positives.splits
    nothing: Triples = np.empty((0, 3), dtype=np.int32)

    def context(side: KnowledgeGraph, own: Splits, more: Triples) -> Context:
        return Context(recipe, open_engine(side), open_engine, counted.program, own, progress, more)

    return Sides(
        division,
        counted,
        positives,
        context(division.train, Splits(splits.train, splits.valid, nothing), nothing),
        context(division.test, Splits(nothing, nothing, splits.test), division.test.triples),
    )


def _sampled(
    recipe: Recipe, engine: Engine, selection: Selection, is_test: Mask, progress: Progress | None
) -> tuple[Selection, list[tuple[Keys, Keys]]]:
    """Return the selection counted on both sides, and of each rule the sampled keys of either side."""
    rules, samples = [], []
    for number, known in enumerate(selection.rules):
        if progress:
            progress("applying rules on both sides", number, len(selection.rules))
        new, found = _of_sides(recipe, engine, known.rule, is_test)
        # What nothing in train shows, test does not ask for.
        if not len(found[0]) or (recipe.protocol == "sound" and new < recipe.min_new):
            found = [some[:0] for some in found]
        sampled = sum(map(len, found))
        rules.append(replace(known, support=engine.support(known.rule), new=new, sampled=sampled))
        samples.append((found[0], found[1]))
    return replace(selection, rules=tuple(rules), notes=_notes(selection, samples)), samples


def _of_sides(recipe: Recipe, engine: Engine, rule: Rule, is_test: Mask) -> tuple[int, list[Keys]]:
    """Return how many new conclusions a rule has, and the sampled keys of either side in random order."""
    graph, wanted = engine.graph, shares(recipe)
    order = salt(recipe.seed, "positives", rule)
    matched = [MatchedSample(graph, rule, most, recipe.seed) for most in wanted]
    found: list[Keys] = [np.empty(0, dtype=np.int64) for _ in wanted]
    new = 0
    for part in engine.conclusions_in_parts(rule, new=True):
        new += len(part)
        side = is_test[part[:, 0]].astype(np.int64)
        for i, most in enumerate(wanted):
            own = part[side == i]
            if needs_matching(recipe, rule):
                matched[i].add(own)
                continue
            every = np.concatenate([found[i], graph.keys.pack(own)])
            found[i] = every[hash_order(every, order, most)]
    return new, [some.keys() for some in matched] if needs_matching(recipe, rule) else found


def _notes(selection: Selection, samples: Sequence[tuple[Keys, Keys]]) -> tuple[str, ...]:
    notes = list(selection.notes)
    # Those that conclude too little from K have their note already.
    silent = sum(
        bool(known.sampled) and not len(own) for known, (own, _) in zip(selection.rules, samples, strict=True)
    )
    if silent:
        notes.append(f"{silent:,} of {len(samples):,} rules have too few conclusions on the train side")
    untested = sum(bool(len(own)) and not len(other) for own, other in samples)
    if untested:
        notes.append(f"{untested:,} of {len(samples):,} rules have conclusions on the train side only")
    return tuple(notes)


def _distributed(
    recipe: Recipe,
    engine: Engine,
    selection: Selection,
    samples: Sequence[tuple[Keys, Keys]],
    division: Division,
    progress: Progress | None,
) -> Positives:
    """Distribute the samples; a conclusion of valid with a new name goes to train, one of test is dropped."""
    keys = division.train.keys
    nothing = np.empty(0, dtype=np.int64)
    cuts = [train_share(recipe, len(own)) for own, _ in samples]
    train = merged_keys(nothing, *(own[:cut] for (own, _), cut in zip(samples, cuts, strict=True)))
    valid = merged_keys(nothing, *(own[cut:] for (own, _), cut in zip(samples, cuts, strict=True)))
    valid = keys_without(valid, train)
    strange = strangers(division.train, train, valid)
    train, valid = merged_keys(train, strange), keys_without(valid, strange)
    test = merged_keys(nothing, *(own for _, own in samples))
    unknown = _unknown(division.train.with_triples(keys.unpack(merged_keys(division.train.packed, train))))
    lost = np.sort(test[unknown(keys.unpack(test))])
    test = keys_without(test, lost)
    notes = []
    if len(strange):
        notes.append(f"{len(strange)} conclusions went to train because they are the first with some name")
    size = len(division.train) + len(division.test) + division.dropped
    notes.append(
        f"{division.dropped:,} of {size:,} triples of K are dropped: they lie across the two sides, or only "
        f"the test side has their predicate; the test side grew in {division.regions:,} regions"
    )
    if len(lost):
        notes.append(f"{len(lost)} conclusions of test have a relation or type that train has not: dropped")
    if not len(test) or not len(train):
        raise InputError(
            f"no conclusions are left for {'test' if len(train) else 'train'}",
            hint="choose another inductive_share, other rules or another seed",
        )
    concluded = np.concatenate([train, valid, test])
    split = np.repeat(np.arange(len(SPLITS), dtype=np.int8), [len(train), len(valid), len(test)])
    order = np.argsort(concluded)
    provenance = trace(
        engine, selection.program, keys.unpack(concluded[order]), split[order], progress=progress
    )
    splits = Splits(
        keys.unpack(merged_keys(division.train.packed, train)), keys.unpack(valid), keys.unpack(test)
    )
    return Positives(splits, provenance, tuple(notes))


def _unknown(train: KnowledgeGraph) -> Callable[[Triples], Mask]:
    """Return what says which triples have a relation or a type that train has not."""
    relations = np.zeros(len(train.relations), dtype=bool)
    relations[train.preds] = True
    types = np.zeros(len(train.entities), dtype=bool)
    types[train.types] = True

    def unknown(triples: Triples) -> Mask:
        typed = triples[:, 1] == (-1 if train.type_relation is None else train.type_relation)
        return np.asarray(~relations[triples[:, 1]] | (typed & ~types[triples[:, 2]]))

    return unknown
