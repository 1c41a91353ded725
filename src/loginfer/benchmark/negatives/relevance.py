"""Relevance-based sampling: triples over the heads' predicates and the constants of the support."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.negatives.context import Context
from loginfer.benchmark.negatives.found import Found, Taken, assemble, in_turn, made, reason
from loginfer.benchmark.randomness import generator
from loginfer.benchmark.spaces import Space, draw, rectangle, union
from loginfer.benchmark.values import NegativeSet, Split
from loginfer.engine.binding import relation_of
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import Atom, Rule
from loginfer.logic.terms import Constant, Variable

__all__ = ["relevance_based", "relevance_space", "support_constants"]


def relevance_based(context: Context) -> NegativeSet:
    """Draw the three sets from N_cand, without what is true, one after the other and disjoint."""
    space = relevance_space(context)

    def draw_all(order: Sequence[Split]) -> dict[Split, Found]:
        found: dict[Split, Found] = {}
        for split in order:
            rng = generator(context.recipe.seed, "negatives", "rb", split)
            before = Taken(context, (known.triples for known in found.values()))
            drawn = draw(space, context.positives.sizes[split], rng, context.truth.negative, taken=before)
            found[split] = Found(drawn.triples, made("relevance", len(drawn.triples)), reason(drawn))
        return found

    return assemble(context, "rb", in_turn(context, draw_all))


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


def support_constants(context: Context) -> npt.NDArray[np.int32]:
    """Return Const_sup: the constants of all triples of K that match a rule's body, sorted."""
    graph = context.kg
    found = np.zeros(len(graph.entities), dtype=bool)
    # Rules that differ in their heads only have the same support.
    bodies = {frozenset(rule.body): rule for rule in context.rules}
    for done, rule in enumerate(bodies.values()):
        if context.progress:
            context.progress("collecting constants of the support", done, len(bodies))
        terms = dict.fromkeys(term for atom in rule.atoms for term in _constant_terms(atom, graph))
        known = [v for v in terms if isinstance(v, Variable)]
        for variable in known:
            found[_values(context, rule, variable)] = True
        named = [graph.entities.get(c.name) for c in terms if isinstance(c, Constant)]
        ids = [i for i in named if i is not None]
        if ids and context.engine.support(rule):
            found[ids] = True
    return np.flatnonzero(found).astype(np.int32)


def _values(context: Context, rule: Rule, variable: Variable) -> npt.NDArray[np.int32]:
    """Return all values of a variable in the witnesses of a rule."""
    itself = Rule(rule.body, Atom(variable, rule.head.relation, variable))
    return context.engine.projection(itself).left


def _constant_terms(atom: Atom, graph: KnowledgeGraph) -> list[object]:
    """Return the terms of an atom that stand for constants: a type does not."""
    return [atom.subject] if _is_type(atom, graph) else [atom.subject, atom.object]


def _is_type(atom: Atom, graph: KnowledgeGraph) -> bool:
    return graph.type_relation is not None and relation_of(atom, graph) == graph.type_relation
