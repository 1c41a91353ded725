"""From the kernels' rows to mined rules: what is about loops becomes a rule by name."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loginfer.kg import RDF_TYPE, KnowledgeGraph
from loginfer.logic.rule import Atom, Rule
from loginfer.logic.scored import ScoredRule
from loginfer.logic.terms import Constant, Term, Variable
from loginfer.systems.rules.anyburl_counting import (
    BODY,
    END_CONSTANT,
    HEAD,
    HEAD_CONSTANT,
    VARIABLES,
)
from loginfer.systems.rules.values import NONE, OBJECT, MinedRules, RuleTable
from loginfer.systems.rules.walks_graph import Ids

__all__ = ["as_rules"]

_X = Variable("x")
_INNER = (Variable("a"), Variable("b"), Variable("c"))


def as_rules(graph: KnowledgeGraph, rules: Ids, counts: npt.NDArray[np.int64]) -> MinedRules:
    """Return rows of rules and counts as mined rules.

    A path rule cannot say h(X,X). Rules with the special constant of loops (see `walks_graph`) therefore
    become rules of other shapes, without it: h(X,X) ⇐ b(X,A).
    """
    itself = len(graph.entities)
    loops = (rules[:, HEAD_CONSTANT] == itself) | (rules[:, END_CONSTANT] == itself)
    table = RuleTable.of(
        head=rules[~loops, HEAD],
        variables=rules[~loops, VARIABLES],
        head_constant=rules[~loops, HEAD_CONSTANT],
        end_constant=rules[~loops, END_CONSTANT],
        body=rules[~loops, BODY:],
        predictions=counts[~loops, 0],
        correct=counts[~loops, 1],
        confidence=counts[~loops, 1] / counts[~loops, 0],
    )
    others = [
        ScoredRule(_about_loops(graph, row), int(predictions), int(correct), int(correct) / int(predictions))
        for row, (predictions, correct) in zip(rules[loops], counts[loops], strict=True)
    ]
    return MinedRules(table, tuple(others))


def _about_loops(graph: KnowledgeGraph, row: Ids) -> Rule:
    """Return the acyclic rule of a row, with X for the special constant."""
    itself = len(graph.entities)

    def atom(left: Term, step: int, right: Term) -> Atom:
        relation = graph.relations[step >> 1]
        name = RDF_TYPE if step >> 1 == graph.type_relation else relation
        return Atom(left, name, right) if step & 1 == 0 else Atom(right, name, left)

    def end(constant: int, at: Variable) -> Term:
        return at if constant == itself else Constant(graph.entities[constant])

    head_step = 2 * int(row[HEAD]) + (1 if row[VARIABLES] == OBJECT else 0)
    steps = [int(step) for step in row[BODY:] if step != NONE]
    here = _X
    body = []
    for step, inner in zip(steps[:-1], _INNER, strict=False):
        body.append(atom(here, step, inner))
        here = inner
    last = _INNER[len(steps) - 1] if row[END_CONSTANT] == NONE else end(int(row[END_CONSTANT]), here)
    return Rule([*body, atom(here, steps[-1], last)], atom(_X, head_step, end(int(row[HEAD_CONSTANT]), _X)))
