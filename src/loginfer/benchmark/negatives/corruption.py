"""Negatives by replacing constants: relevance-based sampling, position-aware and random corruption.

Relevance-based (rb): triples over the heads' predicates and the constants of the support. Position-aware (pa):
conclusions with a constant replaced by one seen in the same position. Random (rc): each positive once more, with
any other object, or subject or relation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations

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
from loginfer.benchmark.negatives.methods import SOURCES
from loginfer.benchmark.negatives.spaces import Space, TripleSet, draw, rectangle, union
from loginfer.benchmark.recipe import PARTS
from loginfer.engine.binding import relation_of
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.kg.graph import Ids, Ints, Keys, keys_without, member, sorted_unique
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


# -- random --------------------------------------------------------------------------------------------

# How many values each positive that has no negative yet tries, round after round; then all are tried.
_TRIES = (1, 1, 2, 4, 8, 16)
# So many triples are tested in one go.
_MOST = 2**22
# What is recorded of a part of a triple that is random; the source says so of a relation, which is no position.
_SOURCE_OF = np.array([SOURCES.index(part) for part in PARTS], dtype=np.int8)
_POSITION_OF = np.array([POSITIONS.index(part if part in POSITIONS else "") for part in PARTS], dtype=np.int8)


def random_corruption(context: Context) -> NegativeSet:
    """Give each positive (s, R, o) one of its own, by the recipe's `corrupt`: (s′, R, o), (s, R′, o) or (s, R, o′).

    s′ and o′ are of Consts(K), R′ of Rels(K). Of (e, type, t) the type is replaced by one of Types(K), and `type`
    itself stays. Of several parts each positive draws the one to be replaced; if it has no candidate left there, each
    of the others is as likely. What it gets is uniform over the candidates of that part that are left to it.
    """
    graph = context.kg
    orders = list(permutations(part for part in PARTS if part in context.recipe.corrupt))

    def draw_split(split: Split, taken: TakenNegatives) -> SplitNegatives:
        rng = generator(context.recipe.seed, "negatives", "rc", split)
        claims = _Claims(taken.packed)
        positives = context.positives[split]
        is_type = positives[:, 1] == (-1 if graph.type_relation is None else graph.type_relation)
        order_of = rng.integers(len(orders), size=len(positives)) if len(orders) > 1 else np.zeros(len(positives))
        # The parts that were replaced, and the keys of what that gave.
        drawn: list[tuple[str, Keys]] = []
        for number, order in enumerate(orders):
            for of_types in (True, False):
                pending = positives[(order_of == number) & (is_type == of_types)]
                for part in order:
                    before = claims.keys
                    pending = _corrupt(context, pending, PARTS.index(part), _values(graph, part, of_types), rng, claims)
                    drawn.append((part, keys_without(claims.keys, before)))
        keys = np.concatenate([new for _, new in drawn])
        replaced = np.repeat([PARTS.index(part) for part, _ in drawn], [len(new) for _, new in drawn])
        origins = origins_from("object", len(keys), position=_POSITION_OF[replaced])
        origins = replace(origins, source=_SOURCE_OF[replaced])
        return SplitNegatives(graph.keys.unpack(keys), origins, f"{ALL} for these positives")

    return assemble(context, "rc", draw_in_turn(context, draw_split))


def _values(graph: KnowledgeGraph, part: str, of_types: bool) -> Ids:
    """Return what a part of a triple may be replaced by; nothing for the relation of (e, type, t)."""
    if part == "relation":
        return graph.rels[:0] if of_types else graph.rels
    return graph.types if of_types and part == "object" else graph.consts


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


def _corrupt(
    context: Context, positives: Triples, column: int, domain: Ids, rng: np.random.Generator, claims: _Claims
) -> Triples:
    """Let each positive claim a triple with another value in a column, as long as there is one; return the others."""
    pending = positives
    spent = 0
    for tries in _TRIES:
        # Once a positive has tried as often as there are values, trying each of them once is cheaper.
        if not len(pending) or spent >= len(domain):
            break
        step = _MOST // tries
        parts = [pending[start : start + step] for start in range(0, len(pending), step)]
        pending = np.concatenate([_try(context, part, column, domain, tries, rng, claims) for part in parts])
        spent += tries
    if len(pending) and len(domain):
        pending = _try_all(context, pending, column, domain, rng, claims)
    return pending


def _try(
    context: Context,
    positives: Triples,
    column: int,
    domain: Ids,
    tries: int,
    rng: np.random.Generator,
    claims: _Claims,
) -> Triples:
    """Let each positive claim the first good one of some random values; return those without."""
    proposals = np.repeat(positives, tries, axis=0)
    proposals[:, column] = domain[rng.integers(0, len(domain), size=len(proposals))]
    keys = context.kg.keys.pack(proposals).reshape(-1, tries)
    good = context.truth.negative(proposals).reshape(-1, tries)
    pending = np.ones(len(positives), dtype=bool)
    for turn in range(tries):
        rows = np.flatnonzero(pending & good[:, turn])
        pending[rows[claims.claim(keys[rows, turn])]] = False
    return positives[pending]


def _try_all(
    context: Context, positives: Triples, column: int, domain: Ids, rng: np.random.Generator, claims: _Claims
) -> Triples:
    """Let positives that differ in the column alone share all that is left to them at random; return those without."""
    key = context.kg.keys
    alike = positives.copy()
    alike[:, column] = 0
    groups, group_of, sharing = np.unique(key.pack(alike), return_inverse=True, return_counts=True)
    served = np.zeros(len(groups), dtype=np.int64)
    step = max(_MOST // len(domain), 1)
    for start in range(0, len(groups), step):
        part, shares = groups[start : start + step], sharing[start : start + step]
        proposals = np.repeat(key.unpack(part), len(domain), axis=0)
        proposals[:, column] = np.tile(domain, len(part))
        keys = key.pack(proposals)
        rows = np.flatnonzero(context.truth.negative(proposals) & ~member(claims.keys, keys))
        rows = rows[rng.permutation(len(rows))]
        # By group, in random order within each: the first ones are taken.
        rows = rows[np.argsort(rows // len(domain), kind="stable")]
        group = rows // len(domain)
        rank = np.arange(len(group)) - np.searchsorted(group, group)
        chosen = rank < shares[group]
        claims.claim(keys[rows[chosen]])
        served[start : start + step] = np.bincount(group[chosen], minlength=len(part))
    # The first of those that are alike were served.
    turn = np.empty(len(positives), dtype=np.int64)
    order = np.argsort(group_of, kind="stable")
    turn[order] = np.arange(len(positives)) - np.searchsorted(group_of[order], group_of[order])
    return positives[turn >= served[group_of]]
