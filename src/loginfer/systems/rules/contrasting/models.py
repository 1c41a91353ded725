"""What is learnt about one head: an intercept and weighted bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loginfer.errors import InputError
from loginfer.kg import KnowledgeGraph
from loginfer.logic.scored import ScoredRule
from loginfer.logic.terms import Constant
from loginfer.systems.rules.contrasting.bodies import Bodies
from loginfer.systems.rules.contrasting.rows import Head

__all__ = ["HeadModel", "WeightedBody", "head_of", "models_of", "scored_rules"]


@dataclass(frozen=True, slots=True)
class WeightedBody:
    """A body of a head's model.

    Parameters
    ----------
    code
        The body (see `Bodies`).
    weight
        What it adds to the log-odds where it fires.
    correct, predictions
        For how many positives of train it fires, and for how many rows of train altogether.
    """

    code: int
    weight: float
    correct: int
    predictions: int


@dataclass(frozen=True, slots=True)
class HeadModel:
    """The log-odds of (x, head, y): the intercept plus the weights of the bodies that fire.

    Parameters
    ----------
    head
        The head.
    intercept
        The log-odds where no body fires.
    bodies
        The bodies, largest weight first.
    """

    head: Head
    intercept: float
    bodies: tuple[WeightedBody, ...]


def scored_rules(models: Iterable[HeadModel], bodies: Bodies) -> tuple[ScoredRule, ...]:
    """Return the rules of all models, each with its weight and its head's intercept."""
    return tuple(
        ScoredRule(
            bodies.rule(body.code, model.head.relation, model.head.type),
            body.predictions,
            body.correct,
            body.correct / max(body.predictions, 1),
            (("weight", repr(body.weight)), ("intercept", repr(model.intercept))),
        )
        for model in models
        for body in model.bodies
    )


def head_of(scored: ScoredRule, graph: KnowledgeGraph) -> Head:
    """Return the head of a rule as ids of a graph."""
    head = scored.rule.head
    if not head.is_type:
        return Head(graph.relation_id(str(head.relation)))
    if graph.type_relation is None or not isinstance(head.object, Constant):
        raise InputError(f"the graph has no types, but `{scored.rule}` predicts one")
    return Head(graph.type_relation, graph.entity_id(head.object.name))


def models_of(
    rules: Sequence[ScoredRule], graph: KnowledgeGraph, intercepts: Mapping[Head, float] | None = None
) -> tuple[tuple[HeadModel, ...], Bodies]:
    """Return the models that weighted rules make up, and the bodies they speak of.

    Parameters
    ----------
    rules
        Rules with the measure `weight`, and `intercept` where that is not given otherwise.
    graph
        The graph they are applied to.
    intercepts
        Of heads; also of those that have no rules.

    Raises
    ------
    InputError
        If a rule has no weight.
    """
    known = Bodies(graph)
    given = tuple(scored.rule for scored in rules if known.code_of(scored.rule) is None)
    bodies = Bodies(graph, given)
    found: dict[Head, list[WeightedBody]] = {head: [] for head in intercepts or {}}
    constants = dict(intercepts or {})
    for scored in rules:
        measures = dict(scored.extra)
        try:
            weight, intercept = float(measures["weight"]), float(measures.get("intercept", "0"))
        except (KeyError, ValueError):
            raise InputError(
                f"`{scored.rule}` has no weight, which contrast needs",
                hint="write # weight=1.5 behind the rule",
            ) from None
        head = head_of(scored, graph)
        constants.setdefault(head, intercept)
        code = bodies.code_of(scored.rule)
        if code is None:
            code = bodies.given_code(scored.rule)
        body = WeightedBody(code, weight, scored.correct or 0, scored.predictions or 0)
        found.setdefault(head, []).append(body)
    models = (HeadModel(head, constants[head], in_order(found[head], bodies)) for head in sorted(found))
    return tuple(models), bodies


def in_order(found: Iterable[WeightedBody], bodies: Bodies) -> tuple[WeightedBody, ...]:
    """Return bodies in the order in which their weights are added: those that an engine evaluates last."""
    return tuple(sorted(found, key=lambda body: (bodies.is_given(body.code), -body.weight, body.code)))
