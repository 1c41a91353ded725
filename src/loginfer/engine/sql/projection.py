"""Queries for the distinct values of some variables over all witnesses of a body, as SQL text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from loginfer.engine.sql.elimination import Estimate, Source, plan_elimination
from loginfer.engine.sql.queries import Dialect, Writer, column_order
from loginfer.errors import LimitError
from loginfer.logic.rule import Atom
from loginfer.logic.sql import Check, Column, Exclusion, Factor, Layout, atom_factor, is_contradiction, join
from loginfer.logic.terms import Template

__all__ = ["Among", "ProjectionQuery", "project", "refuse_product"]

# Rows to restrict a projection to: a query for distinct c0, c1, … and what these columns stand for.
Among: TypeAlias = tuple[str, Sequence[Column]]


@dataclass(frozen=True, slots=True)
class ProjectionQuery:
    """A query for distinct rows with the columns c0, c1, … (`present` if there are none to keep).

    Parameters
    ----------
    sql
        The query.
    parts
        If the kept columns fall apart into components that share nothing, a query for the size of each
        component: the result is their product.
    """

    sql: str
    parts: tuple[str, ...]


def project(
    atoms: Sequence[Atom],
    inequalities: Sequence[Check],
    keep: Sequence[Column],
    layout: Layout,
    dialect: Dialect,
    *,
    estimate: Estimate | None = None,
    tables: Mapping[Atom, str] | None = None,
    among: Among | None = None,
) -> ProjectionQuery:
    """Write a query for the distinct values of some variables over all witnesses of a body.

    Parameters
    ----------
    atoms, inequalities
        The body; exclusions are among the inequalities.
    keep
        The variables whose values are wanted, in the order of the columns; templates may be among them.
    layout, dialect
        Where triples live and what the database speaks.
    estimate
        The expected size of a join.
    tables
        Atoms to be taken from other tables of triples, such as those of the last round.
    among
        Only witnesses with these values.
    """
    atoms = tuple(dict.fromkeys(atoms))
    writer = Writer(layout, dialect, False, column_order(atoms, keep))
    contradiction = any(is_contradiction(e) for e in inequalities)
    inequalities = tuple(dict.fromkeys(e for e in inequalities if e.variables or isinstance(e, Exclusion)))
    # What restricts comes first, for databases that join in the order in which tables are written.
    factors = [] if among is None else list(_restrictions(writer, *among))
    sources = [Source(f.scope) for f in factors]
    factors += [atom_factor(atom, layout, (tables or {}).get(atom)) for atom in atoms]
    sources += [Source(f.scope, frozenset([i])) for i, f in enumerate(factors[len(sources) :])]
    plan = plan_elimination(sources, atoms, inequalities, keep, counting=False, estimate=estimate)
    factors = writer.run(plan, factors)
    rest = writer.needed([factors[i] for i in plan.rest])
    writer.use(rest)
    joined = join(rest, plan.inequalities, layout, contradiction)
    shown = ", ".join(f"{joined.expressions[v]} AS c{i}" for i, v in enumerate(keep))
    sql = f"SELECT {shown or '1 AS present'}\n{joined.text}"
    if not keep:
        sql += "\nLIMIT 1"
    groups = _components(rest)
    if contradiction or sum(any(f.scope for f in group) for group in groups) < 2:
        return ProjectionQuery(writer.text(sql), ())
    # Groups without columns have one row or none: then there is no product.
    parts = [writer.text(f"SELECT count(*) AS v0\n{join(group, (), layout).text}") for group in groups]
    return ProjectionQuery(writer.text(sql), tuple(parts))


def _restrictions(writer: Writer, rows: str, columns: Sequence[Column]) -> Iterator[Factor]:
    """Give a table of wanted rows as a factor, and each of its variables as one more.

    The single columns restrict joins that do not hold all of them yet. With templates among the columns no
    join may do without the rows themselves.
    """
    name = writer.add(rows)
    yield Factor(name, tuple((f"c{i}", v) for i, v in enumerate(columns)))
    writer.uses[name] = 1
    if len(columns) > 1 and not any(isinstance(column, Template) for column in columns):
        for i, variable in enumerate(columns):
            single = writer.add(f"SELECT DISTINCT c{i} AS c0 FROM {name}")
            writer.implied[single] = name
            yield Factor(single, (("c0", variable),))
        writer.uses[name] += len(columns)


def _components(factors: Sequence[Factor]) -> list[list[Factor]]:
    """Split factors into groups that share no column."""
    groups: list[tuple[set[Column], list[Factor]]] = []
    for factor in factors:
        scope, members = set(factor.scope), [factor]
        apart = []
        for other_scope, others in groups:
            if other_scope & scope:
                scope |= other_scope
                members = [*others, *members]
            else:
                apart.append((other_scope, others))
        groups = [*apart, (scope, members)]
    return [members for _, members in groups]


def refuse_product(sizes: Sequence[int], limit: int, what: str) -> None:
    """Raise `LimitError` if the product of some sizes exceeds a limit."""
    if sizes and prod(sizes) > limit:
        shown = " × ".join(f"{size:,}" for size in sizes if size > 1)
        raise LimitError(
            f"{what} has {shown} rows, more than {limit:,}",
            hint="add an atom that connects the head's variables, or raise the engine's `max_conclusions`",
        )
