"""Inductive benchmarks: the constants of test are not those of train.

The rules are selected on K as always. Then the constants of K are divided into a train side and a test side,
and with them the triples: K_train, and the context graph K_test. What lies across is dropped. Train and valid
get conclusions of the rules over K_train, test those over K_test; a negative has constants of one side only.
Types are predicates, and stand on both sides.

A random division of the constants cuts nearly every region of a graph: of a triple's two constants both must
fall on the same side. Here the test side grows in regions instead. Each starts at a random constant, and in
turn takes the constant most of whose triples lead into the region. Few regions keep most triples, but may
miss whole subjects of a graph; with one region a constant the division is random again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loginfer.benchmark.benchmark import SPLITS, NegativeSet, Signature, Splits
from loginfer.benchmark.construction.positives import (
    Positives,
    choose_paired,
    conclusions_of,
    paired_sample,
    trace,
    universe,
    with_new_names,
    with_twins,
)
from loginfer.benchmark.construction.rules import Selection
from loginfer.benchmark.negatives import Context, sample_negatives
from loginfer.benchmark.negatives.twins import Twins
from loginfer.benchmark.program import looked_at
from loginfer.benchmark.recipe import Recipe, share_of
from loginfer.engine import Engine
from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Ints, Keys, Mask, keys_without, merged_keys
from loginfer.logic.rule import Atom, Constant, Rule, Term, Variable
from loginfer.progress import Progress, each
from loginfer.randomness import hash_order, salt


def grown(graph: KnowledgeGraph, count: int, regions: int, seed: int) -> Mask:
    """Return bool[entities]: the constants of the test side.

    Parameters
    ----------
    graph
        The graph.
    count
        How many constants to take.
    regions
        How many regions to grow; with `count` of them every constant is one.
    seed
        Decides where they start, and between constants that are equally near.
    """
    constants = graph.consts
    order = constants[hash_order(constants.astype(np.int64), salt(seed, "division"))]
    is_test = np.zeros(len(graph.entities), dtype=bool)
    if regions >= count:
        is_test[order[:count]] = True
        return is_test
    steps = graph.with_triples(graph.triples[graph.triples[:, 1] != graph.type_relation]).steps
    turn = np.zeros(len(graph.entities), dtype=np.int64)
    turn[order] = np.arange(len(order))
    growing = [_Region(steps.pointers, steps.ends, turn) for _ in range(regions)]
    starts = iter(order.tolist())
    for number in range(count):
        region = growing[number % regions]
        constant = region.nearest(is_test)
        if constant is None:  # it has just begun, or nothing is left around it
            constant = next(start for start in starts if not is_test[start])
        is_test[constant] = True
        region.add(constant)
    return is_test


class _Region:
    """A region of a graph that grows.

    Parameters
    ----------
    offsets, neighbours
        The constants next to constant i are `neighbours[offsets[i]:offsets[i + 1]]`, once for each triple.
    turn
        Who comes first of those that are equally near.
    """

    def __init__(self, offsets: Ints, neighbours: Ids, turn: Ints) -> None:
        self._offsets = offsets
        self._neighbours = neighbours
        self._turn = turn
        self._inside: dict[int, int] = {}
        self._heap: list[tuple[float, int, int, int]] = []

    def add(self, constant: int) -> None:
        """Add a constant; those next to it come nearer."""
        neighbours = self._neighbours[self._offsets[constant] : self._offsets[constant + 1]]
        near, times = np.unique(neighbours, return_counts=True)
        degrees = (self._offsets[near + 1] - self._offsets[near]).tolist()
        turns = self._turn[near].tolist()
        for other, more, degree, turn in zip(near.tolist(), times.tolist(), degrees, turns, strict=True):
            inside = self._inside[other] = self._inside.get(other, 0) + more
            heapq.heappush(self._heap, (-inside / degree, turn, inside, other))

    def nearest(self, taken: Mask) -> int | None:
        """Return the constant with the largest share of triples into the region; None if there is none."""
        while self._heap:
            _, _, inside, constant = heapq.heappop(self._heap)
            # What was pushed before the constant came nearer is out of date.
            if not taken[constant] and inside == self._inside[constant]:
                return constant
        return None


Opener = Callable[[KnowledgeGraph], Engine]

# Numbers of regions that are tried; the last one makes a random division.
REGIONS = (16, 128, 1024, 2**62)


@dataclass(frozen=True, slots=True)
class Division:
    """The two sides of a graph.

    Parameters
    ----------
    train, test
        K_train and K_test, over the vocabularies of K.
    regions
        In how many regions the test side was grown.
    dropped
        How many triples of K are in neither: their constants are on different sides, or they are on the test
        side and have a relation or type that K_train has not.
    """

    train: KnowledgeGraph
    test: KnowledgeGraph
    regions: int
    dropped: int

    @property
    def both(self) -> KnowledgeGraph:
        """K_train and K_test together."""
        return self.train.with_triples(np.vstack([self.train.triples, self.test.triples]))


def side_of_test(context: KnowledgeGraph) -> Mask:
    """Return bool[entities]: the constants of a context graph."""
    is_test = np.zeros(len(context.entities), dtype=bool)
    is_test[context.consts] = True
    return is_test


def shares(recipe: Recipe) -> tuple[int, int]:
    """Return how many conclusions a rule contributes at most: to train and valid, and to test.

    k2 is cut by the ratio: of 2,000 with 8:1:1, 1,800 and 200.
    """
    _, second = recipe.cuts(recipe.k2)
    return second, recipe.k2 - second


# -- rules -----------------------------------------------------------------------------------------


def refuse_rules(rules: Sequence[Rule]) -> None:
    """Complain about rules that look beyond one side.

    Raises
    ------
    InputError
        For a rule with a constant, which would have to be on both sides, or with a body whose parts share
        no variable, which could have premises on both.
    """
    for rule in rules:
        constants = [
            term.name
            for atom in rule
            for term in ((atom.subject,) if atom.is_type else atom.terms)
            if isinstance(term, Constant)
        ]
        if constants:
            raise InputError(
                f"`{rule}` names the constant `{constants[0]}`, and the constants of an inductive "
                "benchmark's test are not those of train",
                hint="leave the rule out, or build without `inductive`",
            )
        if not _connected(rule):
            raise InputError(
                f"the body of `{rule}` falls into parts that share no variable: its premises could be on "
                "both sides of an inductive benchmark",
                hint="leave the rule out, or build without `inductive`",
            )


def _connected(rule: Rule) -> bool:
    """Say whether variables connect the body's atoms, and each negated atom with them.

    A negated atom connects nothing itself: its constants may be on both sides, where no triple is.
    """
    parts, denied = (
        [_joining(atom) for atom in atoms] for atoms in (rule.atoms, [negation.atom for negation in rule.negations])
    )
    if not parts:
        return True
    reached: set[Term] = set(parts[0])
    while grown_by := [part for part in parts if part & reached and not part <= reached]:
        reached.update(*grown_by)
    return all(part & reached for part in (*parts, *denied))


def _joining(atom: Atom) -> set[Term]:
    """Return the variables that can join an atom to others: those that stand for constants, not for types."""
    return {term for term in ((atom.subject,) if atom.is_type else atom.terms) if isinstance(term, Variable)}


# -- dividing ----------------------------------------------------------------------------------


def divide(
    recipe: Recipe, graph: KnowledgeGraph, rules: Sequence[Rule], open_engine: Opener, progress: Progress | None = None
) -> Division:
    """Divide a graph so that its rules have as many conclusions on the test side as can be.

    Several numbers of regions are tried; each rule counts up to its share of test. Of divisions that are
    equally good the one with the fewest regions, which drops the fewest triples, is taken.

    Parameters
    ----------
    recipe
        The share of constants for test, k2 and ratio, the seed.
    graph
        K.
    rules
        R.
    open_engine
        Opens an engine over a graph.
    progress
        Called with what is being done, how much is done, and how much there is.
    """
    count = share_of(recipe.inductive_share, len(graph.consts))
    if count == 0 or count == len(graph.consts):
        message = f"{recipe.inductive_share} of {len(graph.consts):,} constants leaves one side without any"
        raise InputError(message, hint="choose another inductive_share, or a larger graph")
    _, test_share = shares(recipe)
    best: tuple[int, Division] | None = None
    tried = sorted({min(regions, count) for regions in REGIONS})
    for _, regions in each(tried, "dividing the constants", progress):
        division = _cut(graph, grown(graph, count, regions, recipe.seed), regions)
        engine = open_engine(division.test)
        worth = sum(min(_new(engine, rule), test_share) for rule in rules)
        if best is None or worth > best[0]:
            best = worth, division
    if best is None or best[0] == 0:
        message = f"no rule concludes anything new among {count:,} of {len(graph.consts):,} constants"
        raise InputError(message, hint="choose another inductive_share, other rules or another seed")
    return best[1]


def _cut(graph: KnowledgeGraph, is_test: Mask, regions: int) -> Division:
    triples = graph.triples
    subject = is_test[triples[:, 0]]
    inside = (triples[:, 1] == graph.type_relation) | (is_test[triples[:, 2]] == subject)
    train = graph.with_triples(triples[inside & ~subject])
    test = graph.with_triples(triples[inside & subject & Signature(train).covers_predicates(triples)])
    return Division(train, test, regions, len(graph) - len(train) - len(test))


def _new(engine: Engine, rule: Rule) -> int:
    return sum(len(part) for part in engine.conclusions_in_parts(rule, new=True))


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
    recipe: Recipe, graph: KnowledgeGraph, selection: Selection, open_engine: Opener, progress: Progress | None = None
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
    is_test = side_of_test(division.test)
    counted, samples = _sample_sides(recipe, over_both, selection, is_test, progress)
    twins = None
    if recipe.match:
        both = replace(counted, samples=tuple(np.concatenate(sides) for sides in samples))
        conclusions = universe(division.both, both.samples)
        pairing = Context(recipe, over_both, open_engine, counted.program, conclusions, progress)
        twins = choose_paired(pairing, both, is_test)
        samples = [_with_twins(recipe, sides, twins) for sides in samples]
        counted = with_twins(both, [np.concatenate(sides) for sides in samples], twins)
    positives = _distribute(recipe, over_both, counted, samples, division, progress)
    splits, rules = positives.splits, counted.program
    nothing: Triples = np.empty((0, 3), dtype=np.int32)

    def context(side: KnowledgeGraph, side_splits: Splits, more: Triples) -> Context:
        return Context(recipe, open_engine(side), open_engine, rules, side_splits, progress, more, twins=twins)

    train = context(division.train, Splits(splits.train, splits.valid, nothing), nothing)
    test = context(division.test, Splits(nothing, nothing, splits.test), division.test.triples)
    return Sides(division, counted, positives, train, test)


def _sample_sides(
    recipe: Recipe, engine: Engine, selection: Selection, is_test: Mask, progress: Progress | None
) -> tuple[Selection, list[tuple[Keys, Keys]]]:
    """Return the selection counted on both sides, and of each rule the sampled keys of either side."""
    rules, samples = [], []
    for _, rule in each(selection.rules, "applying rules on both sides", progress):
        new, keys = _sample_rule(recipe, engine, rule.rule, is_test)
        # What nothing in train shows, test does not ask for.
        if not len(keys[0]) or (recipe.protocol == "sound" and new < recipe.min_new):
            keys = [side_keys[:0] for side_keys in keys]
        sampled = sum(map(len, keys))
        rules.append(replace(rule, support=engine.support(rule.rule), new=new, sampled=sampled))
        samples.append((keys[0], keys[1]))
    return replace(selection, rules=tuple(rules), notes=_notes(selection, samples)), samples


def _sample_rule(recipe: Recipe, engine: Engine, rule: Rule, is_test: Mask) -> tuple[int, list[Keys]]:
    """Return how many new conclusions a rule has, and the sampled keys of either side in random order."""
    graph, limits = engine.graph, [looked_at(recipe, most, rule) for most in shares(recipe)]
    order = salt(recipe.seed, "positives", rule)
    keys: list[Keys] = [np.empty(0, dtype=np.int64) for _ in limits]
    new = 0
    for part in engine.conclusions_in_parts(rule, new=True):
        new += len(part)
        side = is_test[part[:, 0]].astype(np.int64)
        for i, most in enumerate(limits):
            candidates = np.concatenate([keys[i], graph.keys.pack(part[side == i])])
            keys[i] = candidates[hash_order(candidates, order, most)]
    return new, keys


def _with_twins(recipe: Recipe, sides: tuple[Keys, Keys], twins: Twins) -> tuple[Keys, Keys]:
    """Return the conclusions of either side that have a twin, as many as may be distributed."""
    paired = paired_sample(recipe, np.concatenate(sides), twins)
    train, test = (keys[np.isin(keys, paired)][:most] for keys, most in zip(sides, shares(recipe), strict=True))
    return train, test[: len(test) if len(train) else 0]


def _notes(selection: Selection, samples: Sequence[tuple[Keys, Keys]]) -> tuple[str, ...]:
    notes = list(selection.notes)
    # Those that conclude too little from K have their note already.
    had_samples = [rule.sampled > 0 for rule in selection.rules]
    silent = sum(sampled and not len(train) for sampled, (train, _) in zip(had_samples, samples, strict=True))
    if silent:
        notes.append(f"{silent:,} of {len(samples):,} rules have too few conclusions on the train side")
    untested = sum(bool(len(train)) and not len(test) for train, test in samples)
    if untested:
        notes.append(f"{untested:,} of {len(samples):,} rules have conclusions on the train side only")
    return tuple(notes)


def _distribute(
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
    cuts = [train_share(recipe, len(sample)) for sample, _ in samples]
    train = merged_keys(nothing, *(sample[:cut] for (sample, _), cut in zip(samples, cuts, strict=True)))
    valid = merged_keys(nothing, *(sample[cut:] for (sample, _), cut in zip(samples, cuts, strict=True)))
    valid = keys_without(valid, train)
    moved = with_new_names(division.train, train, valid)
    train, valid = merged_keys(train, moved), keys_without(valid, moved)
    test = merged_keys(nothing, *(sample for _, sample in samples))
    signature = Signature(division.train)
    signature.add(keys.unpack(train))
    lost = np.sort(test[~signature.covers_predicates(keys.unpack(test))])
    test = keys_without(test, lost)
    notes = []
    if len(moved):
        notes.append(f"{len(moved)} conclusions went to train because they are the first with some name")
    size = len(division.train) + len(division.test) + division.dropped
    notes.append(
        f"{division.dropped:,} of {size:,} triples of K are dropped: they lie across the two sides, or only "
        f"the test side has their predicate; the test side grew in {division.regions:,} regions"
    )
    if len(lost):
        notes.append(f"{len(lost)} conclusions of test have a relation or type that train has not: dropped")
    if not len(test) or not len(train):
        hint = "choose another inductive_share, other rules or another seed"
        raise InputError(f"no conclusions are left for {'test' if len(train) else 'train'}", hint=hint)
    provenance = trace(engine, selection.program, *conclusions_of(keys, train, valid, test), progress=progress)
    splits = Splits(keys.unpack(merged_keys(division.train.packed, train)), keys.unpack(valid), keys.unpack(test))
    return Positives(splits, provenance, tuple(notes))
