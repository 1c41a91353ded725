"""The five models behind one set of compiled functions, which switch over the model's number.

A triple is scored in two steps: its one end and its relation make a *query*, which is compared with the other
end. All corruptions of one end share the query, and their gradients with respect to it are added up before
they are led back to what it was made of.
"""

from __future__ import annotations

from typing import Any

from loginfer.compiled import fast_kernel, fast_spliced
from loginfer.systems.embedding.boxe import (
    add_box_gradient,
    aim,
    box_distance,
    pull_back_aim,
    pull_back_boxes,
    to_boxes,
)
from loginfer.systems.embedding.codes import BOXE, DISTMULT, DOT, L1, L2, MODULI, ROTATE, TRANSE
from loginfer.systems.embedding.complex import multiply, pull_back_product
from loginfer.systems.embedding.distmult import add_dot_gradient, dot, pull_back_scaling, scale
from loginfer.systems.embedding.rotate import (
    add_moduli_gradient,
    moduli_distance,
    pull_back_rotation,
    to_rotation,
)
from loginfer.systems.embedding.state import Ids, Model, Workspace
from loginfer.systems.embedding.system import Floats
from loginfer.systems.embedding.transe import (
    add_l1_gradient,
    add_l2_gradient,
    l1_distance,
    l2_distance,
    pull_back_translation,
    translate,
)

__all__ = [
    "add_gradient",
    "add_gradients",
    "derive",
    "derive_all",
    "make_query",
    "pull_back",
    "pull_back_derived",
    "score_candidates",
]


@fast_spliced
def make_query(code: int, side: Any, entity: Floats, relation: Floats, query: Floats) -> None:
    """Make the query of the known end of a triple and what is derived from its relation."""
    if code == TRANSE:
        translate(side, entity, relation, query)
    elif code == DISTMULT:
        scale(entity, relation, query)
    elif code == BOXE:
        aim(side, entity, relation, query)
    else:
        multiply(side, entity, relation, query)


@fast_spliced
def pull_back(
    code: int,
    side: Any,
    entity: Floats,
    relation: Floats,
    g_query: Floats,
    g_entity: Floats,
    g_relation: Floats,
) -> None:
    """Add the query's gradient to those of the known end and of what is derived from the relation."""
    if code == TRANSE:
        pull_back_translation(side, g_query, g_entity, g_relation)
    elif code == DISTMULT:
        pull_back_scaling(entity, relation, g_query, g_entity, g_relation)
    elif code == BOXE:
        pull_back_aim(side, g_query, g_entity, g_relation)
    else:
        pull_back_product(side, entity, relation, g_query, g_entity, g_relation)


@fast_spliced
def score_candidates(
    model: Model, query: Floats, entities: Floats, candidates: Ids, scores: Floats, start: int, end: int
) -> None:
    """Score candidates start to end for the end that a query lacks."""
    for i in range(start, end):
        candidate = entities[candidates[i]]
        if model.comparison == L1:
            scores[i] = model.offset - l1_distance(query, candidate)
        elif model.comparison == L2:
            scores[i] = model.offset - l2_distance(query, candidate)
        elif model.comparison == MODULI:
            scores[i] = model.offset - moduli_distance(query, candidate)
        elif model.comparison == DOT:
            scores[i] = model.offset + dot(query, candidate)
        else:
            scores[i] = model.offset - box_distance(query, candidate)


@fast_spliced
def add_gradients(
    model: Model, query: Floats, entities: Floats, work: Workspace, start: int, end: int
) -> None:
    """Add weight · ∂score of candidates start to end to the gradients of the query and of the candidates."""
    for i in range(start, end):
        candidate = entities[work.candidates[i]]
        g_candidate = work.g_entities[work.slots[work.candidates[i]]]
        add_gradient(model, work.weights[i], work.scores[i], query, candidate, work.g_query, g_candidate)


@fast_spliced
def add_gradient(
    model: Model,
    weight: Any,
    score: Any,
    query: Floats,
    candidate: Floats,
    g_query: Floats,
    g_candidate: Floats,
) -> None:
    """Add weight · ∂score to the gradients of a query and of a candidate for the end that it lacks."""
    if model.comparison == L1:
        add_l1_gradient(weight, query, candidate, g_query, g_candidate)
    elif model.comparison == L2:
        add_l2_gradient(weight, model.offset - score, query, candidate, g_query, g_candidate)
    elif model.comparison == MODULI:
        add_moduli_gradient(weight, query, candidate, g_query, g_candidate)
    elif model.comparison == DOT:
        add_dot_gradient(weight, query, candidate, g_query, g_candidate)
    else:
        add_box_gradient(weight, query, candidate, g_query, g_candidate)


# -- what is derived from a relation's parameters --------------------------------------------------


@fast_spliced
def derive(code: int, parameters: Floats, derived: Floats) -> None:
    """Derive what queries need from a relation's parameters; most models use these as they are."""
    if code == ROTATE:
        to_rotation(parameters, derived)
    elif code == BOXE:
        to_boxes(parameters, derived)
    else:
        for j in range(len(parameters)):
            derived[j] = parameters[j]


@fast_spliced
def pull_back_derived(code: int, derived: Floats, g_derived: Floats, g_parameters: Floats) -> None:
    """Set the gradient of a relation's parameters from that of what is derived from them."""
    if code == ROTATE:
        pull_back_rotation(derived, g_derived, g_parameters)
    elif code == BOXE:
        pull_back_boxes(derived, g_derived, g_parameters)
    else:
        for j in range(len(g_derived)):
            g_parameters[j] = g_derived[j]


@fast_kernel
def derive_all(code: int, parameters: Floats, derived: Floats) -> None:
    """Derive what queries need from all relations' parameters."""
    for r in range(len(parameters)):
        derive(code, parameters[r], derived[r])
