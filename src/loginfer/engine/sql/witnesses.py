"""Witnesses in order, the first few without the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import Bound
from loginfer.engine.parts import parts
from loginfer.engine.sql.projection import Among, ProjectionQuery
from loginfer.engine.sql.session import Session
from loginfer.logic.rule import Rule
from loginfer.logic.terms import Variable

__all__ = ["depend_on_each_other", "first_rows", "fixed_row", "ordered_rows", "smallest_rows"]

Rows: TypeAlias = npt.NDArray[np.int32]


def ordered_rows(session: Session, query: str, width: int, limit: int | None = None) -> Rows:
    """Return the first `width` columns of a query in ascending order, all rows or the first few."""
    order = ", ".join(f"c{i}" for i in range(width)) or "1"
    cut = "" if limit is None else f"\nLIMIT {limit}"
    columns = session.columns(f"SELECT * FROM (\n{query}\n) AS q\nORDER BY {order}{cut}")
    rows = np.empty((len(columns[0]), width), dtype=np.int32)
    for i in range(width):
        rows[:, i] = columns[i]
    return rows


def fixed_row(values: Mapping[Variable, int]) -> Among | None:
    """Return one row of values to restrict a projection by, or None if there are no values."""
    if not values:
        return None
    shown = ", ".join(f"CAST({value} AS INTEGER) AS c{i}" for i, value in enumerate(values.values()))
    return f"SELECT {shown}", list(values)


def first_rows(
    session: Session,
    rule: Rule,
    project: Callable[[Rule, Sequence[Variable], Among | None], ProjectionQuery],
    limit: int,
    fixed: Among | None,
    table: str,
) -> Rows:
    """Return the first `limit` witnesses without enumerating the others.

    The first `limit` values of the first k + 1 variables extend the first `limit` values of the first k:
    each of those has at least one extension.

    Parameters
    ----------
    session
        The database.
    rule
        A rule with at least one variable.
    project
        Projects the rule's body to some variables, among some rows.
    limit
        How many witnesses.
    fixed
        Values that some variables must have.
    table
        Name of a table to keep the values so far in.
    """
    among = fixed
    rows = np.empty((0, 0), dtype=np.int32)
    for i in range(len(rule.variables)):
        known = rule.variables[: i + 1]
        rows = ordered_rows(session, project(rule, known, among).sql, len(known), limit)
        session.drop(table)
        session.load(table, {f"c{j}": rows[:, j] for j in range(len(known))})
        among = _with_fixed(table, known, fixed)
    return rows


def _with_fixed(table: str, known: Sequence[Variable], fixed: Among | None) -> Among:
    """Return the rows of a table together with the fixed values of variables it does not have yet."""
    columns = [f"t.c{i} AS c{i}" for i in range(len(known))]
    query, variables = fixed or ("", ())
    extra = [variable for variable in variables if variable not in known]
    columns += [f"w.c{list(variables).index(v)} AS c{len(known) + i}" for i, v in enumerate(extra)]
    beside = f", ({query}) AS w" if extra else ""
    return f"SELECT {', '.join(columns)} FROM {table} AS t{beside}", [*known, *extra]


def smallest_rows(
    session: Session,
    project: Callable[[Sequence[Variable], Among | None], ProjectionQuery],
    context: Sequence[Variable],
    part: Sequence[Variable],
    asked: Rows,
    table: str,
) -> Rows:
    """Return the smallest values of some variables for each row of a context, variable by variable.

    Rows without any have -1s.

    Parameters
    ----------
    session
        The database.
    project
        Projects a body to some variables, among some rows.
    context, part
        The variables that have values, and those that want them.
    asked
        int32[m, context], ascending and distinct: values of the context.
    table
        Name of a table to keep the values so far in.
    """
    known = list(context)
    rows = asked
    for variable in part:
        session.drop(table)
        if known:
            session.load(table, {f"c{i}": rows[:, i] for i in range(len(known))})
        query = project([*known, variable], (f"SELECT * FROM {table}", known) if known else None).sql
        columns = ", ".join(f"c{i}" for i in range(len(known)))
        shown = f"{columns}, " if known else ""
        grouped = f"\nGROUP BY {columns}" if known else ""
        query = f"SELECT {shown}min(c{len(known)}) AS c{len(known)} FROM (\n{query}\n) AS p{grouped}"
        known.append(variable)
        rows = ordered_rows(session, query, len(known))
    found = np.full((len(asked), len(part)), -1, dtype=np.int32)
    found[_among(asked, rows[:, : len(context)])] = rows[:, len(context) :]
    return found


def _among(asked: Rows, rows: Rows) -> npt.NDArray[np.int64]:
    """Return the places of rows of at most two columns among others, ascending and distinct."""
    keys, wanted = np.zeros(len(asked), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    for i in range(asked.shape[1]):
        keys, wanted = keys << 32 | asked[:, i], wanted << 32 | rows[:, i]
    return np.searchsorted(keys, wanted)


def depend_on_each_other(bound: Bound) -> bool:
    """Say whether every part of the body is about one and the same set of variables besides the head's.

    Then values of these for a conclusion say that the rule derives it, and no values that it does not.
    """
    ends = tuple(dict.fromkeys(t for t in (bound.head.subject, bound.head.object) if t >= 0))
    apart = parts(bound, ends)
    if bound.empty or len(apart) != 1 or apart[0].context != ends:
        return False
    inside = set(apart[0].variables)
    pairs = [{atom.subject, atom.object} for atom in bound.atoms]
    pairs += [set(pair) for pair in bound.inequalities]
    pairs += [set(negation.variables) for negation in bound.negations]
    return all(pair & inside for pair in pairs)
