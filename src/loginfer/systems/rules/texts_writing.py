"""Mined rules as lines of text, a hundred thousand of them in a second.

Names are looked up and checked once each, and lines are put together from them without rules in between.
AnyBURL quotes nothing: where a name could be misread, a rule goes through the dialect, which reads back what
it writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from loginfer.errors import InputError, UnknownNameError
from loginfer.kg import RDF_TYPE, TYPE_NAMES, KnowledgeGraph
from loginfer.logic.dialects import dialect_named
from loginfer.logic.dialects.base import Dialect
from loginfer.logic.scored import ScoredRule, ZeroRule
from loginfer.logic.terms import Constant, Variable, quote
from loginfer.systems.rules.other_shapes import confidences
from loginfer.systems.rules.texts_names import path_rule
from loginfer.systems.rules.values import BOTH, NONE, OBJECT, MinedRules

__all__ = ["LOOP", "rule_lines"]

# A name without anything that means something to AnyBURL's readers.
_PLAIN = re.compile(r"[^\s(),]+")
# What AnyBURL writes instead of a loop's other end.
LOOP = "me_myself_i"

# What would end a column or a line.
_SPLITS = re.compile(r"[\t\n\r]")
_OUR_SYNTAX = "write LogInfer's own syntax (--to arrow)"

# The head's variables, then those along the path.
_VARIABLES = {"anyburl": ("X", "Y", "ABC"), "arrow": ("x", "y", "abc")}


def rule_lines(mined: MinedRules, graph: KnowledgeGraph, dialect: str = "anyburl") -> Iterator[str]:
    """Yield mined rules as lines, best first: predictions, correct predictions, confidence, rule.

    Parameters
    ----------
    mined
        The rules.
    graph
        Has their names.
    dialect
        `anyburl` or `arrow`.

    Raises
    ------
    InputError
        If a rule cannot be written in the dialect; the hint says in which it can.
    """
    if dialect not in _VARIABLES:
        raise UnknownNameError("dialect for mined rules", dialect, _VARIABLES)
    chosen = dialect_named(dialect)
    writer = _Writer(mined, graph, chosen)
    given = np.concatenate([mined.paths.confidence, confidences(mined.others)])
    places = np.concatenate([mined.paths.best_first, np.arange(len(mined.paths), len(given))])
    for place in places[np.argsort(-given[places], kind="stable")].tolist():
        if place < len(mined.paths):
            yield writer.path(place)
        else:
            yield _written(chosen, mined.others[place - len(mined.paths)])


class _Writer:
    """Writes the path rules of a table."""

    def __init__(self, mined: MinedRules, graph: KnowledgeGraph, dialect: Dialect) -> None:
        self._paths, self._graph, self._dialect = mined.paths, graph, dialect
        self._arrow = dialect.name == "arrow"
        paths = mined.paths
        relations = np.unique(np.concatenate([paths.head, paths.body[paths.body != NONE] // 2]))
        constants = np.unique(np.concatenate([paths.head_constant, paths.end_constant]))
        # As the dialect writes them; None for a name that could be misread.
        self._relations = {r: self._relation(r) for r in relations.tolist()}
        self._constants = {c: self._constant(c) for c in constants.tolist() if c != NONE}
        self._rows = [
            column.tolist()
            for column in (
                paths.head,
                paths.variables,
                paths.head_constant,
                paths.end_constant,
                paths.body,
                paths.predictions,
                paths.correct,
                paths.confidence,
            )
        ]

    def _relation(self, number: int) -> str | None:
        name = self._graph.relations[number]
        if number == self._graph.type_relation:
            return "type" if self._arrow else RDF_TYPE
        if self._arrow:
            return quote(name)
        return name if _PLAIN.fullmatch(name) and name not in TYPE_NAMES else None

    def _constant(self, number: int) -> str | None:
        name = self._graph.entities[number]
        if self._arrow:
            return quote(name)
        return name if _PLAIN.fullmatch(name) and len(name) > 1 and name != LOOP else None

    def path(self, place: int) -> str:
        """Write one rule."""
        head, variables, head_constant, end_constant, body, *measures = (row[place] for row in self._rows)
        x, y, along = _VARIABLES[self._dialect.name]
        ends: tuple[str | None, str | None] = (x, y)
        nodes: list[str | None] = [x, y]
        steps = [step for step in body if step != NONE]
        if variables != BOTH:
            constant = self._constants[head_constant]
            ends = (constant, y) if variables == OBJECT else (x, constant)
            last = self._constants[end_constant] if end_constant != NONE else along[max(len(steps) - 1, 0)]
            nodes = [y if variables == OBJECT else x, last]
        nodes[1:1] = along[: max(len(steps) - 1, 0)]
        atoms = [(ends[0], self._relations[head], ends[1])]
        for number, step in enumerate(steps):
            here, there = nodes[number], nodes[number + 1]
            if step & 1:
                here, there = there, here
            atoms.append((here, self._relations[step >> 1], there))
        return self._line(place, measures, atoms)

    def _line(
        self, place: int, measures: list[int | float], atoms: list[tuple[str | None, str | None, str | None]]
    ) -> str:
        """Put a line together; the head is the first atom."""
        if any(None in atom for atom in atoms):
            return _careful(self._dialect, path_rule(self._paths, place, self._graph))
        predictions, correct, confidence = measures
        columns = f"{predictions}\t{correct}\t{confidence!r}\t"
        if not self._arrow:
            head, *body = [f"{r}({s},{o})" for s, r, o in atoms]
            return f"{columns}{head} <= {', '.join(body)}"
        head, *body = [f"({s},{r},{o})" for s, r, o in atoms]
        if not body:
            raise InputError(
                f"arrow cannot express a rule without a body that has a variable in its head: `{head}`",
                hint="write AnyBURL's format (--to anyburl), or leave such rules out",
            )
        return f"{columns}{', '.join(body)} -> {head}"


def _careful(dialect: Dialect, rule: ScoredRule | ZeroRule) -> str:
    """Write a rule with names that could be misread, if they are not."""
    if isinstance(rule, ScoredRule):
        return _written(dialect, rule)
    terms = [t.name.upper() if isinstance(t, Variable) else str(t.name) for t in rule.head.terms]
    columns = f"{rule.predictions}\t{rule.correct}\t{rule.confidence!r}"
    text = f"{rule.head.relation}({','.join(terms)}) <= "
    too_short = any(isinstance(t, Constant) and len(t.name) < 2 for t in rule.head.terms)
    try:
        back = None if too_short or _SPLITS.search(text) else dialect.read_any(f"{columns}\t{text}", None, {})
    except InputError:
        back = None
    if back != rule:
        raise InputError(
            f"AnyBURL cannot express these names so that they can be told apart: `{rule.head}`",
            hint=_OUR_SYNTAX,
        )
    return f"{columns}\t{text}"


def _written(dialect: Dialect, rule: ScoredRule) -> str:
    try:
        return dialect.write(rule)
    except InputError as error:
        hint = error.hint or (_OUR_SYNTAX if dialect.name != "arrow" else None)
        raise InputError(error.message, where=error.where, hint=hint) from None
