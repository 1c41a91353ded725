"""Queries for those triples of a table that rules derive.

A rule is asked for on its own: its body is projected to the head's variables, among the values that the table
has for them. Where each query has its price whatever it is about, rules that differ in their predicates alone
are asked for together: the predicates are columns, and a table of rules says which go with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import ABSENT, bind, relation_of
from loginfer.engine.sql.queries import Among, ProjectionQuery, head_columns, head_conditions, head_rows, project
from loginfer.engine.sql.session import Session, fresh_name
from loginfer.kg import RDF_TYPE, KnowledgeGraph, Triples
from loginfer.kg.graph import TripleKeys
from loginfer.logic.dialects.queries import Layout
from loginfer.logic.rule import Atom, Constant, Inequality, Rule, Template, Term, Variable

# Projects a rule's body to some variables, among some rows.
ProjectRule: TypeAlias = Callable[[Rule, Sequence[Variable], Among | None], ProjectionQuery]

# Stands for the number of a rule in a query for several.
NUMBER = Template("_N")


class AskedTriples:
    """Triples that are asked about, and where each stands.

    Parameters
    ----------
    triples
        int32[n, 3] in any order; ids that no name has are in no answer.
    keys
        How to pack them.
    """

    def __init__(self, triples: npt.ArrayLike, keys: TripleKeys) -> None:
        given = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
        sizes = np.array([keys.entities, keys.relations, keys.entities])
        known = np.flatnonzero(((given >= 0) & (given < sizes)).all(axis=1))
        packed = keys.pack(given[known])
        order = np.argsort(packed, kind="stable")
        self._keys = keys
        self._packed, self._places = packed[order], known[order]
        first = np.ones(len(packed), dtype=bool)
        first[1:] = self._packed[1:] != self._packed[:-1]
        self.triples = keys.unpack(self._packed[first])

    def places(self, found: Triples) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return where triples of an answer stand: pairs of a row of the answer and a place."""
        packed = self._keys.pack(found)
        first = np.searchsorted(self._packed, packed, "left")
        many = np.searchsorted(self._packed, packed, "right") - first
        within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        return np.repeat(np.arange(len(found)), many), self._places[np.repeat(first, many) + within]


def derived_queries(
    rules: Sequence[Rule],
    heads: Collection[int],
    graph: KnowledgeGraph,
    layout: Layout,
    session: Session,
    table: str,
    project_rule: ProjectRule,
) -> Iterator[str]:
    """Give queries for all pairs of a triple of a table and a rule that derives it: s, r, o and rule.

    Each is to be run before the next one is asked for.

    Parameters
    ----------
    rules
        The rules; a rule's place is its number.
    heads
        The relations that the table has; rules for others are passed over.
    graph, layout, session
        The graph K and the database.
    table
        A table of distinct triples s, r, o.
    project_rule
        Projects a rule's body to some variables, among some rows.
    """
    alone: list[tuple[int, Rule]] = []
    alike: dict[RuleShape, list[tuple[int, Rule]]] = {}
    for place, rule in enumerate(rules):
        if bind(rule, graph).head.relation in heads:
            shape = shape_of(rule, graph) if session.dialect.costly else None
            (alone if shape is None else alike.setdefault(shape, [])).append((place, rule))
    for shape, members in alike.items():
        if len(members) == 1:
            alone += members
            continue
        with derived_together(shape, members, graph, layout, session, table) as query:
            yield query
    for place, rule in alone:
        yield derived_by(rule, place, graph, layout, table, project_rule)


def derived_by(
    rule: Rule, place: int, graph: KnowledgeGraph, layout: Layout, table: str, project_rule: ProjectRule
) -> str:
    """Return a query for the triples of a table that a rule derives: s, r, o, and the rule's place.

    Parameters
    ----------
    rule, place
        The rule, and the number that stands for it.
    graph, layout
        The graph K.
    table
        A table of distinct triples s, r, o.
    project_rule
        Projects the rule's body to some variables, among some rows.
    """
    relation = bind(rule, graph).head.relation
    keep = rule.head.variables
    subject, object_ = head_columns(rule, layout)
    if keep:
        among: Among | None = (head_rows(rule, relation, layout, table), keep)
        beside, where = "", ""
    else:  # nothing says yet that the table has the only conclusion
        among = None
        beside = f"{table} AS a, "
        where = "\nWHERE " + " AND ".join(head_conditions(rule, relation, layout))
    projection = project_rule(rule, keep, among)
    shown = [(subject, "s"), (str(relation), "r"), (object_, "o"), (str(place), "rule")]
    columns = ", ".join(f"CAST({value} AS INTEGER) AS {name}" for value, name in shown)
    return f"SELECT {columns} FROM {beside}(\n{projection.sql}\n) AS q{where}"


# -- several rules at once --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleShape:
    """What rules have in common that differ in their predicates alone.

    Parameters
    ----------
    atoms
        The atoms of the body with templates for relations and types.
    inequalities
        The inequalities of the body.
    subject, object
        The head's variables; no object for a type.
    """

    atoms: tuple[Atom, ...]
    inequalities: tuple[Inequality, ...]
    subject: Variable
    object: Variable | None


@dataclass(frozen=True, slots=True)
class _Member:
    """A rule of a shape: its number, its head's relation and type (or -1), the ids of its predicates."""

    place: int
    relation: int
    type: int
    predicates: tuple[int, ...]


def shape_of(rule: Rule, graph: KnowledgeGraph) -> RuleShape | None:
    """Return the shape of a rule that can be asked for together with others; None if it cannot.

    Its head is (x, R, y) or (x, type, t), it has no negations, and every other variable is held by atoms that
    hold all variables of the head too: so each join begins with the triples that are asked for.
    """
    names: dict[Term, Term] = {v: Variable(f"v{i}") for i, v in enumerate(rule.variables)}
    head = rule.head.rename(names)
    known = rule.head.variables
    if rule.negations or not isinstance(head.subject, Variable):
        return None
    if len(known) != (1 if rule.head.is_type else 2) or not _close(rule, known):
        return None
    atoms = []
    for i, atom in enumerate(dict.fromkeys(rule.atoms)):
        if atom.is_type != (relation_of(atom, graph) == graph.type_relation) or (
            atom.is_type and not isinstance(atom.object, Constant)
        ):
            return None
        if atom.is_type:
            atoms.append(Atom(names.get(atom.subject, atom.subject), RDF_TYPE, Template(f"_t{i}")))
        else:
            atoms.append(replace(atom.rename(names), relation=Template(f"_R{i}")))
    inequalities = tuple(inequality.rename(names) for inequality in rule.inequalities)
    object_ = head.object if isinstance(head.object, Variable) else None
    return RuleShape(tuple(atoms), inequalities, head.subject, object_)


def _close(rule: Rule, known: Sequence[Variable]) -> bool:
    """Say whether the atoms of every other variable hold the known ones, and no second other variable."""
    for variable in rule.variables:
        if variable in known:
            continue
        around = {v for atom in rule.atoms if variable in atom.variables for v in atom.variables}
        if around != {variable, *known}:
            return False
    return True


@contextmanager
def derived_together(
    shape: RuleShape,
    rules: Sequence[tuple[int, Rule]],
    graph: KnowledgeGraph,
    layout: Layout,
    session: Session,
    table: str,
) -> Iterator[str]:
    """Give a query for the triples of a table that rules of one shape derive, as `derived_by` gives for one.

    Parameters
    ----------
    shape, rules
        The rules' common shape, and the rules with the numbers that stand for them.
    graph, layout
        The graph K.
    session
        The database, in which a table of rules is there for a while.
    table
        A table of distinct triples s, r, o.
    """
    members = [_member(place, rule, graph) for place, rule in rules]
    listed = fresh_name("rules")
    columns = {"n": [m.place for m in members], "h": [m.relation for m in members]}
    columns["t"] = [m.type for m in members]
    for i in range(len(shape.atoms)):
        columns[f"p{i}"] = [m.predicates[i] for m in members]
    session.load(listed, {name: np.array(values, dtype=np.int32) for name, values in columns.items()})
    try:
        yield _query(shape, members, layout, session, table, listed)
    finally:
        session.drop(listed)


def _member(place: int, rule: Rule, graph: KnowledgeGraph) -> _Member:
    head = bind(rule, graph).head
    predicates = []
    for atom in dict.fromkeys(rule.atoms):
        found: int | None = relation_of(atom, graph)
        if atom.is_type and isinstance(atom.object, Constant):
            found = graph.entities.get(atom.object.name)
        predicates.append(ABSENT if found is None else found)
    return _Member(place, head.relation, ~head.object if rule.head.is_type else ABSENT, tuple(predicates))


def _query(
    shape: RuleShape, members: Sequence[_Member], layout: Layout, session: Session, table: str, listed: str
) -> str:
    head = [shape.subject] if shape.object is None else [shape.subject, shape.object]
    templates = [template for atom in shape.atoms for template in atom.templates]
    shown = [f"a.{'so'[i]} AS c{i}" for i in range(len(head))]
    shown += [f"b.p{i} AS c{len(head) + i}" for i in range(len(templates))]
    shown.append(f"b.n AS c{len(shown)}")
    matched = "a.r = b.h" + (" AND a.o = b.t" if shape.object is None else "")
    asked = f"SELECT {', '.join(shown)} FROM {table} AS a, {listed} AS b WHERE {matched}"
    projection = project(
        shape.atoms,
        shape.inequalities,
        [*head, NUMBER],
        layout,
        session.dialect,
        tables=_only(shape, members, layout),
        among=(asked, [*head, *templates, NUMBER]),
    )
    object_ = "b.t" if shape.object is None else "q.c1"
    return (
        f"SELECT q.c0 AS s, b.h AS r, {object_} AS o, b.n AS rule "
        f"FROM (\n{projection.sql}\n) AS q, {listed} AS b\nWHERE q.c{len(head)} = b.n"
    )


def _only(shape: RuleShape, members: Sequence[_Member], layout: Layout) -> dict[Atom, str]:
    """Return, for each atom with a relation template, the triples of the relations it can stand for."""
    tables = {}
    for i, atom in enumerate(shape.atoms):
        if not atom.is_type:
            ids = ", ".join(str(r) for r in sorted({m.predicates[i] for m in members}))
            tables[atom] = f"(SELECT s, r, o FROM {layout.table} WHERE r IN ({ids}))"
    return tables
