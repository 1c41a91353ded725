"""A rule's head in SQL: from values of its variables to conclusion triples, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import Bound, bind
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Rule
from loginfer.logic.sql import Layout
from loginfer.logic.terms import Constant, Term, Variable

__all__ = ["head_columns", "head_conditions", "head_rows", "head_values", "looks_like_head"]


def head_columns(rule: Rule, layout: Layout) -> tuple[str, str]:
    """Return the expressions for a conclusion's subject and object over a projection q to the head."""
    places: dict[Term, int] = {v: i for i, v in enumerate(rule.head.variables)}

    def write(term: Term) -> str:
        return layout.write_constant(term.name) if isinstance(term, Constant) else f"q.c{places[term]}"

    return write(rule.head.subject), write(rule.head.object)


def head_conditions(rule: Rule, relation: int, layout: Layout) -> list[str]:
    """Return what a triple in a table a must satisfy to look like a rule's head."""
    conditions = [f"a.r = {relation}"]
    for column, term in (("s", rule.head.subject), ("o", rule.head.object)):
        if isinstance(term, Constant):
            conditions.append(f"a.{column} = {layout.write_constant(term.name)}")
    if isinstance(rule.head.subject, Variable) and rule.head.subject == rule.head.object:
        conditions.append("a.s = a.o")
    return conditions


def head_rows(rule: Rule, relation: int, layout: Layout, table: str) -> str:
    """Return a query for the values c0, c1 that a table gives to the head's variables.

    They are distinct where the table's triples are: the others' values follow from theirs.
    """
    shown = [
        f"a.{'s' if variable == rule.head.subject else 'o'} AS c{i}"
        for i, variable in enumerate(rule.head.variables)
    ]
    where = " AND ".join(head_conditions(rule, relation, layout))
    return f"SELECT {', '.join(shown) or '1 AS present'} FROM {table} AS a WHERE {where}"


def head_values(rule: Rule, graph: KnowledgeGraph, conclusion: Sequence[int]) -> dict[Variable, int] | None:
    """Return the values that a conclusion gives to the head's variables, or None if it cannot be one."""
    subject, relation, object_ = (int(i) for i in conclusion)
    head = bind(rule, graph).head
    if head.relation != relation:
        return None
    values: dict[Variable, int] = {}
    for term, bound, value in (
        (rule.head.subject, head.subject, subject),
        (rule.head.object, head.object, object_),
    ):
        known = values.setdefault(term, value) if isinstance(term, Variable) else ~bound
        if known != value:
            return None
    return values


def looks_like_head(bound: Bound, triples: Triples) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which triples have the relation and the constants of a rule's head."""
    head = bound.head
    alike: npt.NDArray[np.bool_] = triples[:, 1] == head.relation
    for column, term in ((0, head.subject), (2, head.object)):
        if term < 0:
            alike &= triples[:, column] == ~term
    if head.subject == head.object and head.subject >= 0:
        alike &= triples[:, 0] == triples[:, 2]
    return alike
