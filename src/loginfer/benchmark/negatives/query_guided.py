"""Query-guided sampling: conclusions of sub-rules, so that what is simpler than R is not learned.

R⁻ are the sub-rules of R that are undesired. Of the negatives, a share comes from what they conclude, the rest from
position-aware corruption.

Under `paper` the share is to the letter of the text: uniform over T_{R⁻}(K) ∖ P_all. Dropping parts of a body only
adds conclusions, so T_{R⁻}(K) is the union of what the minimal sub-rules of each rule conclude. Each of those is a
product of two sets, or a list of triples; or, where the list would be long, a product with a test.

Under `sound` each (rule, sub-rule) pair gets an equal share. Drawn uniformly from T_{R⁻}(K), nearly all negatives
would come from the few sub-rules that conclude most, products above all, and most undesired rules would have no
witness. So each pair gets as many negatives as every other, and what one cannot fill goes equally to the rest.

As in the text, candidates are split by the recipe's ratio before anything is drawn, so that train does not
use up the witnesses of a rare sub-rule: all candidates (triples that a sub-rule concludes and that are truly
negative) are put into one random order, and of the m candidates of a pair the first ⌊0.8 m⌋ in that order
are for train, those up to ⌊0.9 m⌋ for valid and the rest for test, with a ratio of 8:1:1; but of one or more,
train has one. Since the order is the same for all, pairs that share candidates agree about them, but for a
few next to the cuts. Where m is so large that candidates are drawn from a base and not counted, train, valid
and test draw from the same ones.

Each draw for a pair is uniform over the candidates that it has left. A triple that several pairs draw at the
same time goes to the one with the fewest candidates. Where fewer are wanted than there are pairs, a
random order of the pairs decides who gets one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from loginfer.benchmark.benchmark import SPLITS, NegativeSet, Origins, Split
from loginfer.benchmark.negatives import query_candidates
from loginfer.benchmark.negatives.context import (
    Context,
    SplitNegatives,
    TakenNegatives,
    assemble,
    draw_in_turn,
    origins_from,
    shortfall,
)
from loginfer.benchmark.negatives.corruption import draw_corruptions
from loginfer.benchmark.negatives.spaces import Draw, Sampler, Space, of_projection, rectangle, union
from loginfer.benchmark.program import kept_masks, minimal, sub_rule
from loginfer.engine import Engine
from loginfer.engine.binding import bind, relation_of, separate
from loginfer.errors import LimitError
from loginfer.kg import Triples
from loginfer.kg.graph import Ids, Ints, Keys, Mask, distinct_keys, places_of, run_starts
from loginfer.logic.rule import Rule
from loginfer.progress import each
from loginfer.randomness import generator, hash_order, salt


def query_guided(context: Context) -> NegativeSet:
    """Draw from the conclusions of R⁻, and the rest by position-aware corruption.

    Of the negatives of each split, a fraction of |R_complex| / |R|, rounded down, comes from sub-rules, as
    far as they conclude enough: R_complex are the rules with a sub-rule in R⁻. How they are
    drawn depends on the protocol: see `paper_share` and `sound_share`.
    """
    masks = kept_masks(context.rules)
    complex_rules = sum(bool(rule_masks) for rule_masks in masks)
    counts: dict[Split, int] = {
        split: size * complex_rules // len(context.rules) for split, size in context.positives.sizes.items()
    }
    nothing = SplitNegatives(np.empty((0, 3), dtype=np.int32), origins_from("sub-rule", 0))
    from_sub_rules = dict.fromkeys(SPLITS, nothing)
    notes: list[str] = []
    if complex_rules:
        share = paper_share if context.recipe.protocol == "paper" else sound_share
        from_sub_rules, notes = share(context, masks, counts)

    def draw_rest(split: Split, taken: TakenNegatives) -> SplitNegatives:
        missing = context.positives.sizes[split] - len(from_sub_rules[split].triples)
        if not missing:
            return from_sub_rules[split]
        rng = generator(context.recipe.seed, "negatives", "qg", "position", split)
        return _together(from_sub_rules[split], draw_corruptions(context, split, missing, rng, taken))

    negatives = assemble(context, "qg", draw_in_turn(context, draw_rest, from_sub_rules))
    return replace(negatives, notes=(*notes, *negatives.notes))


def _together(first: SplitNegatives, second: SplitNegatives) -> SplitNegatives:
    names = [column.name for column in fields(Origins)]
    columns = ([getattr(part.origins, name) for part in (first, second)] for name in names)
    origins = Origins(*map(np.concatenate, columns))
    return SplitNegatives(np.vstack([first.triples, second.triples]), origins, second.why)


# -- paper -------------------------------------------------------------------------------------------

# Where the subjects and objects of a sub-rule make more pairs than this, its conclusions are not listed if
# they can be found among those pairs.
LARGE = 2**20


@dataclass(frozen=True, slots=True)
class SubRuleSpace:
    """The conclusions of one minimal sub-rule.

    Parameters
    ----------
    rule
        Index in R of the rule it came from.
    kept
        The parts of that rule's body that it keeps, as a mask.
    relation
        Of its head.
    space
        T(K), or a set that contains it.
    test
        The sub-rule, if the space holds other triples, too.
    """

    rule: int
    kept: int
    relation: int
    space: Space
    test: Rule | None = None

    def contains(self, engine: Engine, triples: Triples) -> Mask:
        """Return bool[n]: which of these triples the sub-rule concludes."""
        is_concluded = self.space.contains(triples)
        if self.test is not None:
            rows = np.flatnonzero(is_concluded)
            is_concluded[rows] = engine.derives([self.test], triples[rows])
        return is_concluded


def paper_share(
    context: Context, masks: Sequence[Sequence[int]], counts: Mapping[Split, int]
) -> tuple[dict[Split, SplitNegatives], list[str]]:
    """Draw from C⁻_train, C⁻_valid and C⁻_test, and say where that fell short.

    C⁻ = T_{R⁻}(K) ∖ P_all is split by the recipe's ratio; from each part up to the wanted number of triples
    is drawn. That is the same as to draw for one split after the other, without repetition, from all of
    C⁻, but never more than the size of the part.

    Parameters
    ----------
    context
        What negatives are made from.
    masks
        For each rule its sub-rules in R⁻.
    counts
        How many triples to draw for each split.
    """
    parts = undesired_parts(context, masks)
    draw = _draw_candidates(context, parts, counts)
    # If fewer than asked for were drawn, there are no more, and all of them have been counted.
    size = len(draw.triples)
    first, second = context.recipe.cuts(size)
    limits = dict(zip(SPLITS, (first, second - first, size - second), strict=True))
    negatives: dict[Split, SplitNegatives] = {}
    notes: list[str] = []
    begin = 0
    for split in SPLITS:
        end = begin + min(counts[split], limits[split])
        triples = draw.triples[begin:end]
        begin = end
        rule, kept = _first_part(context.engine, parts, triples)
        negatives[split] = SplitNegatives(triples, origins_from("sub-rule", len(triples), rule=rule, kept=kept))
        if len(triples) < counts[split]:
            reason = f"its part of all {size:,}" if draw.exhausted else shortfall(draw)
            notes.append(
                f"{len(triples):,} of the {counts[split]:,} negatives of {split} that were to come from "
                f"sub-rules do, {reason}"
            )
    return negatives, notes


def _draw_candidates(context: Context, parts: Sequence[SubRuleSpace], counts: Mapping[Split, int]) -> Draw:
    """Draw so many from C⁻ that each split's part of them is large enough, as far as there are so many."""
    space = union([part.space for part in parts])
    engine, negative = context.engine, context.truth.negative

    def accept(triples: Triples) -> Mask:
        is_candidate = concluded(engine, parts, triples)
        is_candidate[is_candidate] = negative(triples[is_candidate])
        return is_candidate

    shares = zip(SPLITS, context.recipe.shares, strict=True)
    enough = max(int((counts[split] + 1) / share) + 1 for split, share in shares)
    rng = generator(context.recipe.seed, "negatives", "qg", "sub-rules")
    tested = any(part.test is not None for part in parts)
    return Sampler(space, rng, accept if tested else negative).take(enough)


def undesired_parts(context: Context, masks: Sequence[Sequence[int]] | None = None) -> list[SubRuleSpace]:
    """Return what the minimal sub-rules of each rule conclude; together that is T_{R⁻}(K)."""
    masks = kept_masks(context.rules) if masks is None else masks
    rng = generator(context.recipe.seed, "negatives", "qg", "trials")
    minimal_masks: dict[tuple[int, ...], list[int]] = {}  # rules of one shape share their sub-rules
    parts: list[SubRuleSpace] = []
    for index, rule in each(context.rules, "evaluating sub-rules", context.progress):
        rule_masks = tuple(masks[index])
        if rule_masks not in minimal_masks:
            minimal_masks[rule_masks] = minimal(rule_masks)
        relation = relation_of(rule.head, context.kg)
        for kept in minimal_masks[rule_masks]:
            smaller = sub_rule(rule, kept)
            space, exact = _conclusions(context.engine, smaller, rng)
            parts.append(SubRuleSpace(index, kept, relation, space, None if exact else smaller))
    return parts


def concluded(engine: Engine, parts: Sequence[SubRuleSpace], triples: Triples) -> Mask:
    """Return bool[n]: which triples are in T_{R⁻}(K)."""
    is_concluded = np.zeros(len(triples), dtype=bool)
    for part, rows in _by_relation(parts, triples):
        rows = rows[~is_concluded[rows]]
        is_concluded[rows] = part.contains(engine, triples[rows])
    return is_concluded


def _conclusions(engine: Engine, rule: Rule, rng: np.random.Generator) -> tuple[Space, bool]:
    """Return the conclusions of a rule, or a product that contains them, and which of the two."""
    relation = relation_of(rule.head, engine.graph)
    wide = None
    if len(rule.atoms) > 1 and len(rule.head.variables) == 2 and _connected(engine, rule):
        wide = query_candidates.rectangle_of(engine, rule)
    if wide is None or len(wide) <= LARGE:
        return of_projection(engine.projection(rule), relation), True
    if engine.derives([rule], wide.draw(rng, query_candidates.TRIALS)).sum() < query_candidates.ENOUGH:
        with contextlib.suppress(LimitError):
            return of_projection(engine.projection(rule), relation), True
    return rectangle(wide.left, relation, wide.right), False


def _connected(engine: Engine, rule: Rule) -> bool:
    """Say whether anything but an inequality of the two connects the variables of a head."""
    bound = bind(rule, engine.graph)
    return separate(bound, (bound.head.subject, bound.head.object)) is None


def _first_part(engine: Engine, parts: Sequence[SubRuleSpace], triples: Triples) -> tuple[Ids, Ids]:
    """Return for each triple the first sub-rule that concludes it: the rule's index and the mask."""
    rule = np.full(len(triples), -1, dtype=np.int32)
    kept = np.zeros(len(triples), dtype=np.int32)
    for part, rows in _by_relation(parts, triples):
        rows = rows[rule[rows] < 0]
        rows = rows[part.contains(engine, triples[rows])]
        rule[rows], kept[rows] = part.rule, part.kept
    return rule, kept


def _by_relation(parts: Sequence[SubRuleSpace], triples: Triples) -> list[tuple[SubRuleSpace, Ints]]:
    """Return with each part the rows of the triples that have its relation."""
    order = np.argsort(triples[:, 1], kind="stable")
    relations = triples[order, 1]
    begins = np.searchsorted(relations, [part.relation for part in parts])
    ends = np.searchsorted(relations, [part.relation for part in parts], side="right")
    return [(part, order[begin:end]) for part, begin, end in zip(parts, begins, ends, strict=True)]


# -- sound -------------------------------------------------------------------------------------------

# A base is looked at completely if it has up to FEW triples, or up to EASY times as many as will be drawn from it
# on average, since drawing would take as long; but never if it has more than MANY.
FEW, EASY, MANY = 2**15, 8, 2**22

# Stands for the number of candidates of a pair where they are not counted: more than any limit.
_UNCOUNTED = np.iinfo(np.int64).max


def sound_share(
    context: Context, masks: Sequence[Sequence[int]], counts: Mapping[Split, int]
) -> tuple[dict[Split, SplitNegatives], list[str]]:
    """Draw truly negative conclusions of sub-rules, an equal share for each pair.

    Parameters
    ----------
    context
        What negatives are made from.
    masks
        For each rule its sub-rules in R⁻.
    counts
        How many triples to draw for each split.
    """
    groups = [query_candidates.groups_of(index, rule, masks[index]) for index, rule in enumerate(context.rules)]
    few = min(max(FEW, EASY * sum(counts.values()) // sum(map(len, groups))), MANY)
    sources = _sources(context, groups, few)
    rules = np.concatenate([np.full(len(s.group.masks), s.group.rule, dtype=np.int32) for s in sources])
    kept = np.concatenate([np.array(s.group.masks, dtype=np.int32) for s in sources])
    shares = _Shares(context, sources, len(rules), few)
    unpack = context.kg.keys.unpack
    negatives: dict[Split, SplitNegatives] = {}
    witnessed: dict[Split, int] = {}
    for part, split in enumerate(SPLITS):
        rng = generator(context.recipe.seed, "negatives", "qg", "shares", split)
        pairs, keys = shares.share_out(part, counts[split], rng)
        origins = origins_from("sub-rule", len(pairs), rule=rules[pairs], kept=kept[pairs])
        negatives[split] = SplitNegatives(unpack(keys), origins)
        witnessed[split] = shares.witnessed(pairs, keys)
    notes = [
        f"{len(negatives[split].triples):,} of the {counts[split]:,} negatives of {split} that were to come "
        "from sub-rules do, all that could be found"
        for split in SPLITS
        if len(negatives[split].triples) < counts[split]
    ]
    if shares.without:
        notes.append(
            f"{shares.without:,} of the {len(rules):,} sub-rules, counted for each rule, conclude "
            "nothing that is truly negative"
        )
    notes.append(
        f"of the {len(rules):,} sub-rules, counted for each rule, at least {witnessed['train']:,} have "
        f"a witness among the negatives of train, {witnessed['valid']:,} of valid, "
        f"{witnessed['test']:,} of test"
    )
    return negatives, notes


def _sources(
    context: Context, groups: Sequence[Sequence[query_candidates.SubRuleGroup]], few: int
) -> list[query_candidates.SubRuleSource]:
    """Return the groups of all rules with their bases; their pairs are numbered in this order."""
    rng = generator(context.recipe.seed, "negatives", "qg", "trials")
    sources: list[query_candidates.SubRuleSource] = []
    first = 0
    for index, rule in each(context.rules, "evaluating sub-rules", context.progress):
        bases = query_candidates.CandidateBases(context.engine, rule, few, rng)
        for group in groups[index]:
            sources.append(query_candidates.SubRuleSource(group, bases.of(group), first))
            first += len(group.masks)
    return sources


class _Shares:
    """Gives the pairs of all groups their shares, for one split after the other.

    Parameters
    ----------
    context
        What negatives are made from.
    sources
        The groups with their bases.
    pairs
        How many pairs they have.
    few
        Of bases with up to this many triples, all are looked at.
    """

    def __init__(
        self, context: Context, sources: Sequence[query_candidates.SubRuleSource], pairs: int, few: int
    ) -> None:
        packing, negative = context.kg.keys, context.truth.negative
        by_base: dict[int, list[query_candidates.SubRuleSource]] = {}  # groups of one rule share their bases
        for source in sources:
            if len(source.base) <= few:
                by_base.setdefault(id(source.base), []).append(source)
        packed = [packing.pack(same_base[0].base.every()) for same_base in by_base.values()]
        negative_keys = distinct_keys(np.concatenate([np.empty(0, dtype=np.int64), *packed]))
        negative_keys = negative_keys[negative(packing.unpack(negative_keys))]
        self._taken = query_candidates.TakenKeys(negative_keys)
        order = hash_order(negative_keys, salt(context.recipe.seed, "negatives", "qg", "parts"))
        self._listed = query_candidates.ListedPool(pairs, self._taken, order, context.recipe.cuts)
        for same_base, keys in zip(by_base.values(), packed, strict=True):
            is_negative, indices = places_of(negative_keys, keys)
            self._listed.add(context.engine, same_base, indices[is_negative])
        self._drawn = query_candidates.DrawnPool(context.engine, pairs, negative, self._taken)
        self._drawn.add([source for source in sources if len(source.base) > few])
        self.candidates = np.where(self._drawn.open, _UNCOUNTED, self._listed.finish())

    @property
    def without(self) -> int:
        """How many pairs have no candidate, or none that was found."""
        in_vain = ~self._drawn.open & (self.candidates == _UNCOUNTED) & (self._drawn.candidate_counts == 0)
        return int(((self.candidates == 0) | in_vain).sum())

    def witnessed(self, pairs: Ints, keys: Keys) -> int:
        """Return how many pairs have a witness among these triples, as far as that is known.

        A witness of a sub-rule is a negative that it concludes, whichever pair it was drawn for.
        """
        is_witnessed = self._listed.witnessed(keys)
        is_witnessed[pairs] = True
        return int(is_witnessed.sum())

    def share_out(self, part: int, count: int, rng: np.random.Generator) -> tuple[Ints, Keys]:
        """Draw for one split, an index of `SPLITS`; return pairs and keys side by side.

        In each round every pair that is not done gets half of what would be its share if nobody ran out, at
        least one; in the last, some get one.
        """
        pairs = len(self.candidates)
        drawn_counts = np.zeros(pairs, dtype=np.int64)
        order = rng.permutation(pairs)
        batches: list[tuple[Ints, Keys]] = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
        self._counts = self._listed.refresh(part)
        while (left := count - int(drawn_counts.sum())) > 0:
            open_pairs = order[(self._drawn.open | (self._counts > 0))[order]]
            if not len(open_pairs):
                break
            # What one could not fill goes to those that have least.
            open_pairs = open_pairs[np.argsort(drawn_counts[open_pairs], kind="stable")]
            need = np.zeros(pairs, dtype=np.int64)
            need[open_pairs[:left]] = max(1, left // (2 * len(open_pairs)))
            needed = need.copy()
            batches += self._fill(part, need, -(-left // len(open_pairs)), rng)
            drawn_counts += needed - need
        return np.concatenate([pair for pair, _ in batches]), np.concatenate([keys for _, keys in batches])

    def _fill(self, part: int, need: Ints, ahead: int, rng: np.random.Generator) -> list[tuple[Ints, Keys]]:
        """Draw what pairs need; `need` is left with what could not be filled."""
        batches: list[tuple[Ints, Keys]] = []
        while need.any():
            proposals = [self._listed.propose(need, self._counts, rng), self._drawn.propose(need, ahead, rng)]
            pairs, keys = (np.concatenate([p[i] for p in proposals]) for i in range(2))
            if not len(pairs):
                break
            scarce = np.where(self._drawn.open, _UNCOUNTED, self._counts)[pairs]
            first = np.lexsort((rng.random(len(pairs)), scarce, keys))
            first = first[run_starts(keys[first])]
            pairs, keys = pairs[first], keys[first]
            self._taken.add(keys)
            need -= np.bincount(pairs, minlength=len(need))
            batches.append((pairs, keys))
            self._counts = self._listed.refresh(part)
        return batches
