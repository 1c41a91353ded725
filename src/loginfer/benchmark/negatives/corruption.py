"""Negatives by replacing constants: relevance-based sampling, position-aware and random object corruption.

Relevance-based (rb): triples over the heads' predicates and the constants of the support. Position-aware (pa):
conclusions with a constant replaced by one seen in the same position. Random object (rc): each positive once
more, with any other object.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.benchmark import POSITIONS, NegativeSet, Split
from loginfer.benchmark.negatives.context import (
    ALL,
    Context,
    SplitNegatives,
    TakenNegatives,
    assemble,
    draw_in_turn,
    origins_from,
    shortfall,
)
from loginfer.benchmark.negatives.spaces import Space, TripleSet, draw, rectangle, union
from loginfer.engine.binding import relation_of
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Ints, member, sorted_unique
from loginfer.logic.rule import Atom, Constant, Rule, Variable
from loginfer.progress import each
from loginfer.randomness import generator

# -- relevance-based -----------------------------------------------------------------------------------


def relevance_based(context: Context) -> NegativeSet:
    """Draw the three sets from N_cand, without what is true, one after the other and disjoint."""
    space = relevance_space(context)

    def draw_split(split: Split, taken: TakenNegatives) -> SplitNegatives:
        rng = generator(context.recipe.seed, "negatives", "rb", split)
        drawn = draw(space, context.positives.sizes[split], rng, context.truth.negative, taken=taken)
        return SplitNegatives(drawn.triples, origins_from("relevance", len(drawn.triples)), shortfall(drawn))

    return assemble(context, "rb", draw_in_turn(context, draw_split))


def relevance_space(context: Context) -> Space:
    """Return N_cand: Const_sup × relations in heads × Const_sup and Const_sup × {type} × types in heads."""
    graph = context.kg
    constants = support_constants(context)
    relations: set[int] = set()
    types = [np.empty(0, dtype=np.int32)]
    for rule in context.rules:
        if not _is_type(rule.head, graph):
            relations.add(relation_of(rule.head, graph))
        elif isinstance(rule.head.object, Constant):
            types.append(np.array([graph.entity_id(rule.head.object.name)], dtype=np.int32))
        else:  # a variable in place of the type, which the paper does not have: the types it stands for
            types.append(context.engine.projection(rule).right)
    parts = [rectangle(constants, relation, constants) for relation in sorted(relations)]
    if graph.type_relation is not None:
        parts.append(rectangle(constants, graph.type_relation, np.concatenate(types)))
    return union(parts)


def support_constants(context: Context) -> Ids:
    """Return Const_sup: the constants of all triples of K that match a rule's body, sorted."""
    graph = context.kg
    in_support = np.zeros(len(graph.entities), dtype=bool)
    # Rules that differ in their heads only have the same support.
    bodies = {frozenset(rule.body): rule for rule in context.rules}
    for _, rule in each(list(bodies.values()), "collecting constants of the support", context.progress):
        # A type is no constant.
        terms = {t for atom in rule.atoms for t in (atom.terms[:1] if _is_type(atom, graph) else atom.terms)}
        for variable in (t for t in terms if isinstance(t, Variable)):
            itself = Rule(rule.body, Atom(variable, rule.head.relation, variable))
            in_support[context.engine.projection(itself).left] = True
        named = [graph.entities.get(t.name) for t in terms if isinstance(t, Constant)]
        ids = [i for i in named if i is not None]
        if ids and context.engine.support(rule):
            in_support[ids] = True
    return np.flatnonzero(in_support).astype(np.int32)


def _is_type(atom: Atom, graph: KnowledgeGraph) -> bool:
    return graph.type_relation is not None and relation_of(atom, graph) == graph.type_relation


# -- position-aware ------------------------------------------------------------------------------------

# By whether corrupting a subject gives a triple, plus 2 if corrupting an object does.
_POSITION = np.array([POSITIONS.index(p) for p in ("", "subject", "object", "either")], dtype=np.int8)

# So many triples are looked up in one go.
_AT_A_TIME = 2**22


@dataclass(frozen=True)
class Corruptions:
    """C′ of one split, before true triples are excluded.

    Parameters
    ----------
    of_subject
        All (s′, R, o) with a conclusion (s, R, o), where s′ is a subject of R in P_all; for types all
        (e′, type, t) with a conclusion (e, type, t), where e′ has a type in P_all.
    of_object
        All (s, R, o′) with a conclusion (s, R, o), where o′ is an object of R in P_all.
    """

    of_subject: Space
    of_object: Space

    @cached_property
    def space(self) -> Space:
        """Both together."""
        return union([self.of_subject, self.of_object])

    def positions(self, triples: Triples) -> npt.NDArray[np.int8]:
        """Return int8[n], indices of `POSITIONS`: which position was replaced."""
        positions = np.empty(len(triples), dtype=np.int8)
        for start in range(0, len(triples), _AT_A_TIME):
            part = triples[start : start + _AT_A_TIME]
            subject, object_ = self.of_subject.contains(part), self.of_object.contains(part)
            positions[start : start + _AT_A_TIME] = _POSITION[subject.astype(np.int8) + 2 * object_.astype(np.int8)]
        return positions


def position_aware(context: Context) -> NegativeSet:
    """Draw from C′_train, C′_valid ∖ N_train and C′_test ∖ (N_train ∪ N_valid)."""

    def draw_split(split: Split, taken: TakenNegatives) -> SplitNegatives:
        rng = generator(context.recipe.seed, "negatives", "pa", split)
        return draw_corruptions(context, split, context.positives.sizes[split], rng, taken)

    return assemble(context, "pa", draw_in_turn(context, draw_split))


def draw_corruptions(
    context: Context, split: Split, count: int, rng: np.random.Generator, taken: TripleSet
) -> SplitNegatives:
    """Draw negatives for a split by position-aware corruption.

    Parameters
    ----------
    context
        What negatives are made from.
    split
        Whose conclusions are corrupted.
    count
        How many to draw, at most.
    rng
        The randomness.
    taken
        What has been taken already.
    """
    candidates = corruptions(context, split)
    drawn = draw(candidates.space, count, rng, context.truth.negative, taken=taken)
    why = shortfall(drawn)
    # Looking up neighbours one after the other is much faster.
    triples = sorted_unique(drawn.triples, context.kg.keys)
    del drawn  # there may be a hundred million of them
    origins = origins_from("position", len(triples), position=candidates.positions(triples))
    return SplitNegatives(triples, origins, why)


def corruptions(context: Context, split: Split) -> Corruptions:
    """Return C′ of a split as two rectangles for each relation R of its conclusions C.

    They are (subjects of R in P_all × objects of R in C) and (subjects of R in C × objects of R in P_all).
    """
    everything, concluded = context.everything, context.concluded(split)
    of_subject, of_object = [], []
    for relation in concluded.preds.tolist():
        all_sides, conclusion_sides = everything.sides(relation), concluded.sides(relation)
        of_subject.append(rectangle(all_sides[0], relation, conclusion_sides[1]))
        if relation != everything.type_relation:  # of a type triple only the constant is corrupted
            of_object.append(rectangle(conclusion_sides[0], relation, all_sides[1]))
    return Corruptions(union(of_subject), union(of_object))


# -- random object -------------------------------------------------------------------------------------

# How many objects each positive that has none yet tries, round after round; then all are tried.
_TRIES = (1, 1, 2, 4, 8, 16)
# So many triples are tested in one go.
_MOST = 2**22


def random_object(context: Context) -> NegativeSet:
    """Give each positive (s, R, o) one (s, R, o′) of its own, o′ from Consts(K).

    Of (e, type, t) the type is replaced, by one of Types(K). What a positive gets is uniform over the
    candidates that are left to it.
    """
    graph = context.kg

    def draw_split(split: Split, taken: TakenNegatives) -> SplitNegatives:
        rng = generator(context.recipe.seed, "negatives", "rc", split)
        taken_keys = taken.packed
        claims = _Claims(taken_keys)
        positives = context.positives[split]
        is_type = positives[:, 1] == (-1 if graph.type_relation is None else graph.type_relation)
        _corrupt(context, positives[is_type], graph.types, rng, claims)
        _corrupt(context, positives[~is_type], graph.consts, rng, claims)
        keys = claims.keys[~member(taken_keys, claims.keys)]
        origins = origins_from("object", len(keys), position=POSITIONS.index("object"))
        return SplitNegatives(graph.keys.unpack(keys), origins, f"{ALL} for these positives")

    return assemble(context, "rc", draw_in_turn(context, draw_split))


class _Claims:
    """The keys of all negatives so far, sorted: nobody may claim one of them again."""

    def __init__(self, taken: Ints) -> None:
        self.keys = taken

    def claim(self, keys: Ints) -> Ints:
        """Claim keys that nobody has; of equal ones the first. Return the rows of those claimed."""
        order = np.argsort(keys, kind="stable")
        ascending = keys[order]
        is_new = ~member(self.keys, ascending)
        is_new[1:] &= ascending[1:] != ascending[:-1]
        merged = np.concatenate([self.keys, ascending[is_new]])
        merged.sort(kind="stable")  # two ascending runs without a key in common: one merge
        self.keys = merged
        return order[is_new]


def _corrupt(context: Context, positives: Triples, domain: Ids, rng: np.random.Generator, claims: _Claims) -> None:
    """Let each positive claim a triple with another object, as long as there is one for it."""
    pending = positives
    spent = 0
    for tries in _TRIES:
        # Once a positive has tried as often as there are objects, trying each of them once is cheaper.
        if not len(pending) or spent >= len(domain):
            break
        step = _MOST // tries
        parts = [pending[start : start + step] for start in range(0, len(pending), step)]
        pending = np.concatenate([_try(context, part, domain, tries, rng, claims) for part in parts])
        spent += tries
    if len(pending) and len(domain):
        _try_all(context, pending, domain, rng, claims)


def _try(
    context: Context, positives: Triples, domain: Ids, tries: int, rng: np.random.Generator, claims: _Claims
) -> Triples:
    """Let each positive claim the first good one of some random objects; return those without."""
    proposals = np.repeat(positives, tries, axis=0)
    proposals[:, 2] = domain[rng.integers(0, len(domain), size=len(proposals))]
    keys = context.kg.keys.pack(proposals).reshape(-1, tries)
    good = context.truth.negative(proposals).reshape(-1, tries)
    pending = np.ones(len(positives), dtype=bool)
    for turn in range(tries):
        rows = np.flatnonzero(pending & good[:, turn])
        pending[rows[claims.claim(keys[rows, turn])]] = False
    return positives[pending]


def _try_all(context: Context, positives: Triples, domain: Ids, rng: np.random.Generator, claims: _Claims) -> None:
    """Let positives with the same subject and relation share all that is left to them, at random."""
    relations = len(context.kg.relations)
    groups, sharing = np.unique(positives[:, 0].astype(np.int64) * relations + positives[:, 1], return_counts=True)
    step = max(_MOST // len(domain), 1)
    for start in range(0, len(groups), step):
        part, shares = groups[start : start + step], sharing[start : start + step]
        proposals = np.empty((len(part) * len(domain), 3), dtype=np.int32)
        proposals[:, 0] = np.repeat(part // relations, len(domain))
        proposals[:, 1] = np.repeat(part % relations, len(domain))
        proposals[:, 2] = np.tile(domain, len(part))
        keys = context.kg.keys.pack(proposals)
        rows = np.flatnonzero(context.truth.negative(proposals) & ~member(claims.keys, keys))
        rows = rows[rng.permutation(len(rows))]
        # By group, in random order within each: the first ones are taken.
        rows = rows[np.argsort(rows // len(domain), kind="stable")]
        group = rows // len(domain)
        rank = np.arange(len(group)) - np.searchsorted(group, group)
        claims.claim(keys[rows[rank < shares[group]]])
