"""An engine whose triples live in an SQL database: everything but the database.

Below the engine: which triples of a table rules derive. A rule is asked for on its own: its body is projected to the
head's variables, among the values that the table has for them. Where each query has its price whatever it is about,
rules that differ in their predicates alone are asked for together: the predicates are columns, and a table of rules
says which go with each other.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from loginfer.engine import binding
from loginfer.engine.bodies import counted_templates, finish_table, rank_negated
from loginfer.engine.interface import BodyTable, Derivations, Materialisation, Projection, Witnesses
from loginfer.engine.registry import MAX_CONCLUSIONS
from loginfer.engine.sql.materialise import materialise
from loginfer.engine.sql.planning import Statistics, measure
from loginfer.engine.sql.queries import (
    Among,
    ProjectionQuery,
    count_witnesses,
    hashed,
    head_columns,
    head_conditions,
    head_rows,
    project,
    rank_query,
    refuse_product,
)
from loginfer.engine.sql.session import Session, StoredGraph, fresh_name, stacked
from loginfer.errors import InputError, LimitError
from loginfer.kg import RDF_TYPE, TYPE_NAMES, KnowledgeGraph, Triples
from loginfer.kg.formats.tsv import has_header
from loginfer.kg.graph import Ids, Ints, Mask, TripleKeys, equal_pairs, run_starts
from loginfer.logic.dialects.queries import Check, Exclusion, Layout, exclusions
from loginfer.logic.rule import Atom, Constant, Inequality, Negation, Pattern, Rule, Template, Term, Variable
from loginfer.progress import Progress

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
        ids = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
        sizes = np.array([keys.entities, keys.relations, keys.entities])
        valid_rows = np.flatnonzero(((ids >= 0) & (ids < sizes)).all(axis=1))
        packed = keys.pack(ids[valid_rows])
        order = np.argsort(packed, kind="stable")
        self._keys = keys
        self._packed, self._rows = packed[order], valid_rows[order]
        self.triples = keys.unpack(self._packed[run_starts(self._packed)])

    def rows(self, answer: Triples) -> tuple[Ints, Ints]:
        """Return where triples of an answer stand: pairs of a row of the answer and a row of the asked triples."""
        answer_rows, positions = equal_pairs(self._keys.pack(answer), self._packed)
        return answer_rows, self._rows[positions]


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

    number: int
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
    head_variables = rule.head.variables
    if rule.negations or not isinstance(head.subject, Variable):
        return None
    if len(head_variables) != (1 if rule.head.is_type else 2) or not _close(rule, head_variables):
        return None
    atoms = []
    for i, atom in enumerate(dict.fromkeys(rule.atoms)):
        if atom.is_type != (binding.relation_of(atom, graph) == graph.type_relation) or (
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


def _close(rule: Rule, head_variables: Sequence[Variable]) -> bool:
    """Say whether the atoms of every other variable hold all head variables, and no second other variable."""
    for variable in rule.variables:
        if variable in head_variables:
            continue
        around = {v for atom in rule.atoms if variable in atom.variables for v in atom.variables}
        if around != {variable, *head_variables}:
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
    """Provide a query for the triples of a table that rules of one shape derive, as `derived_by` for one rule.

    Parameters
    ----------
    shape, rules
        The rules' common shape, and the rules with the numbers that stand for them.
    graph, layout
        The graph K.
    session
        The database, which holds a temporary table of the rules.
    table
        A table of distinct triples s, r, o.
    """
    members = [_member(number, rule, graph) for number, rule in rules]
    rules_table = fresh_name("rules")
    columns = {"n": [m.number for m in members], "h": [m.relation for m in members]}
    columns["t"] = [m.type for m in members]
    for i in range(len(shape.atoms)):
        columns[f"p{i}"] = [m.predicates[i] for m in members]
    session.load(rules_table, {name: np.array(values, dtype=np.int32) for name, values in columns.items()})
    try:
        yield _query(shape, members, layout, session, table, rules_table)
    finally:
        session.drop(rules_table)


def _member(number: int, rule: Rule, graph: KnowledgeGraph) -> _Member:
    head = binding.bind(rule, graph).head
    predicates = []
    for atom in dict.fromkeys(rule.atoms):
        predicate: int | None = binding.relation_of(atom, graph)
        if atom.is_type and isinstance(atom.object, Constant):
            predicate = graph.entities.get(atom.object.name)
        predicates.append(binding.ABSENT if predicate is None else predicate)
    return _Member(number, head.relation, ~head.object if rule.head.is_type else binding.ABSENT, tuple(predicates))


def _query(
    shape: RuleShape, members: Sequence[_Member], layout: Layout, session: Session, table: str, rules_table: str
) -> str:
    head = [shape.subject] if shape.object is None else [shape.subject, shape.object]
    templates = [template for atom in shape.atoms for template in atom.templates]
    outputs = [f"a.{'so'[i]} AS c{i}" for i in range(len(head))]
    outputs += [f"b.p{i} AS c{len(head) + i}" for i in range(len(templates))]
    outputs.append(f"b.n AS c{len(outputs)}")
    matched = "a.r = b.h" + (" AND a.o = b.t" if shape.object is None else "")
    asked_rows = f"SELECT {', '.join(outputs)} FROM {table} AS a, {rules_table} AS b WHERE {matched}"
    projection = project(
        shape.atoms,
        shape.inequalities,
        [*head, NUMBER],
        layout,
        session.dialect,
        tables=_only(shape, members, layout),
        among=(asked_rows, [*head, *templates, NUMBER]),
    )
    object_ = "b.t" if shape.object is None else "q.c1"
    return (
        f"SELECT q.c0 AS s, b.h AS r, {object_} AS o, b.n AS rule "
        f"FROM (\n{projection.sql}\n) AS q, {rules_table} AS b\nWHERE q.c{len(head)} = b.n"
    )


def _only(shape: RuleShape, members: Sequence[_Member], layout: Layout) -> dict[Atom, str]:
    """Return, for each atom with a relation template, the triples of the relations it can stand for."""
    tables = {}
    for i, atom in enumerate(shape.atoms):
        if not atom.is_type:
            ids = ", ".join(str(r) for r in sorted({m.predicates[i] for m in members}))
            tables[atom] = f"(SELECT s, r, o FROM {layout.table} WHERE r IN ({ids}))"
    return tables


def id_layout(graph: KnowledgeGraph, table: str = "triples") -> Layout:
    """Return the layout of a table of ids; a name that the graph does not have is -1, like no id."""

    def constant(name: str) -> str:
        entity = graph.entities.get(name)
        return str(binding.ABSENT if entity is None else entity)

    return Layout(
        table,
        write_relation=lambda name: str(binding.relation_named(name, graph)),
        write_constant=constant,
        type_predicate=graph.type_predicate,
    )


class SqlEngine:
    """Exact evaluation of rules by SQL (see `interface.Engine`).

    Parameters
    ----------
    graph
        The graph K: its vocabularies are used, its triples are in the database.
    session
        The database, with the graph's ids in a table `triples` with the columns s, r, o.
    max_conclusions
        The largest number of conclusions, or witnesses, of one rule that is written down. A head whose
        variables no atom connects has the product of two sets as its conclusions.
    """

    name = "sql"

    def __init__(self, graph: KnowledgeGraph, session: Session, *, max_conclusions: int = MAX_CONCLUSIONS) -> None:
        self._graph = graph
        self._session = session
        self.max_conclusions = max_conclusions
        self.layout = id_layout(graph, graph.table if isinstance(graph, StoredGraph) else "triples")

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph K."""
        return self._graph

    @cached_property
    def statistics(self) -> Statistics:
        """Degrees, from which the order of joins is chosen."""
        return measure(self._session, self.layout.table)

    def estimate(self, atoms: Sequence[Atom]) -> float:
        """Return the expected number of rows in the join of some atoms."""
        return self.statistics.estimate(atoms, lambda atom: binding.relation_of(atom, self.graph))

    # -- counting -------------------------------------------------------------------------------

    def rank_sql(self, pattern: Pattern, violated: Sequence[Negation] = ()) -> str:
        """Return the query that `rank_bodies` runs: columns c0, c1, … for the templates, and n.

        For a pattern with negations it runs several, each with some of them violated (`negated_bodies`).
        """
        return rank_query(pattern, self.layout, self._session.dialect, self.estimate, violated)

    def rank_bodies(
        self,
        pattern: Pattern,
        top: int | None = None,
        *,
        complete: bool | None = None,
        progress: Progress | None = None,
    ) -> BodyTable:
        """Return the exact support of every body of a pattern, or of the `top` largest.

        All bodies are counted, so they are always complete.
        """
        if progress:
            progress(f"counting the bodies of `{pattern.name}`", 0, None)
        if pattern.negations:
            return rank_negated(self.graph, pattern, top, lambda violated: self._counts(pattern, violated))
        return finish_table(self.graph, pattern, *self._counts(pattern), top)

    def _counts(self, pattern: Pattern, violated: Sequence[Negation] = ()) -> tuple[Ids, Ints]:
        """Return the predicates and the support of all bodies; see `rank_sql`."""
        width = len(counted_templates(pattern, violated))
        columns = "".join(f"c{i}, " for i in range(width))
        # A count beyond 64 bits becomes -1.
        narrow = f"CAST(CASE WHEN n < {2**63} THEN n ELSE -1 END AS BIGINT)"
        *predicates, support = self._session.columns(
            f"SELECT {columns}{narrow} AS n FROM (\n{self.rank_sql(pattern, violated)}\n) AS counts"
        )
        if (support < 0).any():
            raise LimitError(f"bodies of `{pattern.name}` have more than 2^63 witnesses on this graph")
        return stacked(predicates, len(support)), support.astype(np.int64)

    def support(self, rule: Rule) -> int:
        """Return the number of witnesses: substitutions of all variables of the body."""
        binding.bind(rule, self.graph)  # every engine refuses a head that the graph cannot express
        query = count_witnesses(rule, self.layout, self._session.dialect, self.estimate)
        return query.total(self._session.row(query.sql))

    # -- conclusions ----------------------------------------------------------------------------

    def conclusions(self, rule: Rule, *, new: bool = False) -> Triples:
        """Return T_r(K), the distinct conclusion triples; with `new`, T_r(K) ∖ K."""
        with self._table("concluded") as table:
            # Counted in the database, which can hold more than memory, before it is fetched.
            self._refuse([self._session.create(table, self._concluded(rule, new=new))], rule)
            subjects, objects = self._session.columns(f"SELECT s, o FROM {table} ORDER BY s, o")
        return stacked([subjects, binding.bind(rule, self.graph).head.relation, objects])

    def _concluded(self, rule: Rule, *, new: bool) -> str:
        """Return a query for the subjects s and objects o of a rule's conclusions."""
        relation = binding.bind(rule, self.graph).head.relation
        projection = self._project_rule(rule, rule.head.variables)
        self._refuse_product(projection, rule)
        subject, object_ = head_columns(rule, self.layout)
        query = f"SELECT {subject} AS s, {object_} AS o FROM (\n{projection.sql}\n) AS q"
        if new:
            query += (
                f"\nWHERE NOT EXISTS (SELECT 1 FROM {self.layout.table} AS k "
                f"WHERE k.r = {relation} AND k.s = {subject} AND k.o = {object_})"
            )
        return query

    def sample_conclusions(self, rule: Rule, salt: int, count: int) -> tuple[int, Ints]:
        """Return |T_r(K) ∖ K|, and the keys of the first `count` of these triples in hash order.

        All of them stay in the database.
        """
        keys, relation = self.graph.keys, binding.bind(rule, self.graph).head.relation
        key = (
            f"(CAST(s AS BIGINT) * {keys.relations} + {relation}) * CAST({keys.entities} AS BIGINT) + CAST(o AS BIGINT)"
        )
        with self._table("concluded") as table:
            total = self._session.create(table, self._concluded(rule, new=True))
            rows = hashed(f"SELECT s, o FROM {table}", key, salt, self._session.dialect)
            subjects, objects = self._session.columns(
                f"SELECT s, o FROM (\n{rows}\n) AS hashed ORDER BY h LIMIT {count}"
            )
        return total, keys.pack(stacked([subjects, relation, objects]))

    def conclusions_in_parts(self, rule: Rule, *, new: bool = False) -> Iterator[Triples]:
        """Yield what `conclusions` returns, at once; its limit holds (see `interface.Engine`)."""
        yield self.conclusions(rule, new=new)

    def projection(self, rule: Rule) -> Projection:
        """Return the distinct subjects and objects of a rule's conclusions (see `interface.Engine`)."""
        bound = binding.bind(rule, self.graph)
        keep = rule.head.variables
        if len(keep) < 2:
            columns = self._distinct(rule, self._checks(rule), keep)
            return Projection.of(bound.head, columns[0])
        apart = binding.separate(bound, (bound.head.subject, bound.head.object))
        if apart is None:
            left, right = self._distinct(rule, self._checks(rule), keep)
            return Projection(left, right)
        rest = [e for e in self._checks(rule) if isinstance(e, Exclusion) or set(e.terms) != set(keep)]
        (left,), (right,) = (self._distinct(rule, rest, [variable]) for variable in keep)
        return Projection(left, right, True, len(apart.inequalities) < len(bound.inequalities))

    def _distinct(self, rule: Rule, inequalities: Sequence[Check], keep: Sequence[Variable]) -> list[Ids]:
        """Return the distinct values of some variables, sorted; for no variables, one row or none."""
        query = self._project(rule.atoms, inequalities, keep)
        self._refuse_product(query, rule)
        order = ", ".join(f"c{i}" for i in range(len(keep))) or "present"
        with self._table("concluded") as table:
            self._refuse([self._session.create(table, query.sql)], rule)
            columns = self._session.columns(f"SELECT {order} FROM {table} ORDER BY {order}")
        return [column.astype(np.int32) for column in columns]

    def _project(
        self, atoms: Sequence[Atom], inequalities: Sequence[Check], keep: Sequence[Variable], among: Among | None = None
    ) -> ProjectionQuery:
        return project(
            atoms, inequalities, keep, self.layout, self._session.dialect, estimate=self.estimate, among=among
        )

    def _project_rule(self, rule: Rule, keep: Sequence[Variable], among: Among | None = None) -> ProjectionQuery:
        return self._project(rule.atoms, self._checks(rule), keep, among)

    def _checks(self, rule: Rule) -> list[Check]:
        return [*rule.inequalities, *exclusions(rule, self.layout)]

    def _refuse_product(self, projection: ProjectionQuery, rule: Rule) -> None:
        self._refuse([int(self._session.row(part)[0]) for part in projection.parts], rule)

    def _refuse(self, sizes: Sequence[int], rule: Rule) -> None:
        refuse_product(sizes, self.max_conclusions, f"what `{rule}` asks for")

    # -- witnesses ------------------------------------------------------------------------------

    def witnesses(self, rule: Rule, *, limit: int | None = None, conclusion: Sequence[int] | None = None) -> Witnesses:
        """Return the first `limit` witnesses, all of them or those of one conclusion triple."""
        values = {} if conclusion is None else binding.head_values(binding.bind(rule, self.graph).head, conclusion)
        if values is None or (limit is not None and limit <= 0):
            return Witnesses(rule, np.empty((0, len(rule.variables)), dtype=np.int32))
        fixed = fixed_row({rule.variables[v]: value for v, value in values.items()})
        if limit is None or not rule.variables:
            if rule.variables and not values:
                self._refuse([self.support(rule)], rule)
            projection = self._project_rule(rule, rule.variables, fixed)
            self._refuse_product(projection, rule)
            return Witnesses(rule, self._ordered_rows(projection.sql, len(rule.variables)))
        return Witnesses(rule, self._first_rows(rule, limit, fixed))

    def _ordered_rows(self, query: str, width: int, limit: int | None = None) -> Ids:
        """Return the first `width` columns of a query in ascending order, all rows or the first few."""
        order = ", ".join(f"c{i}" for i in range(width)) or "1"
        cut = "" if limit is None else f"\nLIMIT {limit}"
        columns = self._session.columns(f"SELECT * FROM (\n{query}\n) AS q\nORDER BY {order}{cut}")
        return stacked(columns[:width], len(columns[0]))

    def _first_rows(self, rule: Rule, limit: int, fixed: Among | None) -> Ids:
        """Return the first `limit` witnesses without enumerating the others; `fixed` are values that some must have.

        The first `limit` values of the first k + 1 variables extend the first `limit` values of the first k:
        each of those has at least one extension.
        """
        among, rows = fixed, np.empty((0, 0), dtype=np.int32)
        with self._table("first_rows") as table:
            for i in range(len(rule.variables)):
                variables = rule.variables[: i + 1]
                query = self._project_rule(rule, variables, among).sql
                rows = self._ordered_rows(query, len(variables), limit)
                self._session.drop(table)
                self._session.load(table, {f"c{j}": rows[:, j] for j in range(len(variables))})
                among = _with_fixed(table, variables, fixed)
        return rows

    def first_witnesses(self, rule: Rule, triples: Triples) -> Ids:
        """Return the first witness of each triple, int32[n, v]; -1s where the rule does not derive it."""
        rows = np.full((len(triples), len(rule.variables)), -1, dtype=np.int32)
        bound = binding.bind(rule, self.graph)
        asked = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
        # Where the search for the values also shows which triples have none, no check is needed before.
        if depend_on_each_other(bound):
            possible = binding.fits_head(bound.head, asked[:, 0], asked[:, 2]) & (asked[:, 1] == bound.head.relation)
        else:
            possible = self.derives([rule], asked)
        if not possible.any():
            return rows

        witnesses = binding.combine(bound, asked[possible, ::2], partial(self._smallest_rows, rule))
        witnesses[(witnesses < 0).any(axis=1)] = -1
        rows[possible] = witnesses
        return rows

    def _smallest_rows(self, rule: Rule, part: binding.BodyPart, contexts: Ids) -> Ids:
        """Return the smallest values of a part for each row of its context, variable by variable; -1s for none."""
        bound, unbound = ([rule.variables[v] for v in vs] for vs in (part.context, part.variables))
        atoms = [a for a in rule.atoms if not set(unbound).isdisjoint(a.variables)]
        checks = [e for e in self._checks(rule) if not set(unbound).isdisjoint(e.variables)]
        rows, width = contexts, len(bound)
        with self._table("first_rows") as table:
            for variable in unbound:
                self._session.drop(table)
                if bound:
                    self._session.load(table, {f"c{i}": rows[:, i] for i in range(len(bound))})
                among = (f"SELECT * FROM {table}", bound) if bound else None
                query = self._project(atoms, checks, [*bound, variable], among).sql
                columns = ", ".join(f"c{i}" for i in range(len(bound)))
                prefix = f"{columns}, " if bound else ""
                grouped = f"\nGROUP BY {columns}" if bound else ""
                query = f"SELECT {prefix}min(c{len(bound)}) AS c{len(bound)} FROM (\n{query}\n) AS p{grouped}"
                bound = [*bound, variable]
                rows = self._ordered_rows(query, len(bound))
        smallest = np.full((len(contexts), len(unbound)), -1, dtype=np.int32)
        smallest[_among(contexts, rows[:, :width])] = rows[:, width:]
        return smallest

    # -- membership -----------------------------------------------------------------------------

    def derives(self, rules: Sequence[Rule], triples: Triples) -> Mask:
        """Return bool[n]: which of these triples are in T_R(K)."""
        is_derived = np.zeros(len(triples), dtype=bool)
        for rows, _ in self._derived(rules, triples):
            is_derived[rows] = True
        return is_derived

    def derived(self, rules: Sequence[Rule], graph: KnowledgeGraph) -> KnowledgeGraph:
        """Return the triples of another graph, over the same vocabularies, that are in T_R(K).

        Those of a graph in the same database stay there.
        """
        if not isinstance(graph, StoredGraph) or graph.session is not self._session:
            return self.graph.with_triples(graph.triples[self.derives(rules, graph.triples)])
        with self._table("derived_rows") as table:
            self._session.create(table, f"SELECT s, r, o FROM {graph.table} WHERE 1 = 0")
            for query in self._derived_rows(rules, graph):
                self._session.append(table, f"SELECT s, r, o FROM (\n{query}\n) AS d")
            distinct = fresh_name("derived")
            self._session.create(distinct, f"SELECT DISTINCT s, r, o FROM {table}")
        return graph.at(distinct)

    def _derived_rows(self, rules: Sequence[Rule], graph: StoredGraph) -> Iterator[str]:
        """Yield queries for the triples of a graph in this database that rules derive; run each before the next."""
        return self.derived_queries(rules, set(graph.preds.tolist()), graph.table)

    def derived_queries(self, rules: Sequence[Rule], heads: Collection[int], table: str) -> Iterator[str]:
        """Yield queries for all pairs of a triple of a table and a rule that derives it: s, r, o and rule.

        Run each query before taking the next one.

        Parameters
        ----------
        rules
            The rules; a rule's number is its index in this list.
        heads
            The relations that the table has; rules for others are passed over.
        table
            A table of distinct triples s, r, o.
        """
        singles: list[tuple[int, Rule]] = []
        by_shape: dict[RuleShape, list[tuple[int, Rule]]] = {}
        for number, rule in enumerate(rules):
            if binding.bind(rule, self.graph).head.relation in heads:
                shape = shape_of(rule, self.graph) if self._session.dialect.costly else None
                (singles if shape is None else by_shape.setdefault(shape, [])).append((number, rule))
        for shape, members in by_shape.items():
            if len(members) == 1:
                singles += members
                continue
            with derived_together(shape, members, self.graph, self.layout, self._session, table) as query:
                yield query
        for number, rule in singles:
            yield self.derived_by(rule, number, table)

    def derived_by(self, rule: Rule, number: int, table: str) -> str:
        """Return a query for the triples of a table that a rule derives: s, r, o, and the number of the rule."""
        relation = binding.bind(rule, self.graph).head.relation
        keep = rule.head.variables
        subject, object_ = head_columns(rule, self.layout)
        if keep:
            among: Among | None = (head_rows(rule, relation, self.layout, table), keep)
            beside, where = "", ""
        else:  # nothing says yet that the table has the only conclusion
            among = None
            beside = f"{table} AS a, "
            where = "\nWHERE " + " AND ".join(head_conditions(rule, relation, self.layout))
        projection = self._project_rule(rule, keep, among)
        outputs = [(subject, "s"), (str(relation), "r"), (object_, "o"), (str(number), "rule")]
        columns = ", ".join(f"CAST({value} AS INTEGER) AS {name}" for value, name in outputs)
        return f"SELECT {columns} FROM {beside}(\n{projection.sql}\n) AS q{where}"

    def derivations(self, rules: Sequence[Rule], triples: Triples) -> Derivations:
        """Return every pair of a triple and a rule that derives it in one step."""
        return Derivations.of(self._derived(rules, triples))

    def _derived(self, rules: Sequence[Rule], triples: Triples) -> Iterator[tuple[Ints, Ints]]:
        """Yield all pairs of a triple and a rule that derives it, as their indices."""
        asked = AskedTriples(triples, self.graph.keys)
        with self._table("asked") as table:
            self._session.load(table, {name: asked.triples[:, i] for i, name in enumerate("sro")})
            for query in self.derived_queries(rules, set(np.unique(asked.triples[:, 1]).tolist()), table):
                subject, relation, object_, rule = self._session.columns(query)
                answer_rows, rows = asked.rows(stacked([subject, relation, object_]))
                yield rows, rule[answer_rows].astype(np.int64)

    # -- closure --------------------------------------------------------------------------------

    def materialise(
        self,
        rules: Sequence[Rule],
        *,
        max_rounds: int | None = None,
        max_triples: int | None = None,
        progress: Progress | None = None,
    ) -> Materialisation:
        """Apply the rules until nothing new follows (see `interface.Engine`)."""
        return materialise(self, self._session, rules, max_rounds, max_triples, progress)

    @contextmanager
    def _table(self, name: str) -> Iterator[str]:
        try:
            yield name
        finally:
            self._session.drop(name)


# -- witnesses: what restricts them, and where they stand ---------------------------------------------------


def fixed_row(values: Mapping[Variable, int]) -> Among | None:
    """Return one row of values to restrict a projection by, or None if there are no values."""
    if not values:
        return None
    columns = ", ".join(f"CAST({value} AS INTEGER) AS c{i}" for i, value in enumerate(values.values()))
    return f"SELECT {columns}", list(values)


def _with_fixed(table: str, table_variables: Sequence[Variable], fixed: Among | None) -> Among:
    """Return the rows of a table together with the fixed values of variables it does not have yet."""
    columns = [f"t.c{i} AS c{i}" for i in range(len(table_variables))]
    query, variables = fixed or ("", ())
    extra = [variable for variable in variables if variable not in table_variables]
    columns += [f"w.c{list(variables).index(v)} AS c{len(table_variables) + i}" for i, v in enumerate(extra)]
    beside = f", ({query}) AS w" if extra else ""
    return f"SELECT {', '.join(columns)} FROM {table} AS t{beside}", [*table_variables, *extra]


def _among(distinct_rows: Ids, rows: Ids) -> Ints:
    """Return the positions of rows of at most two columns among `distinct_rows`, which are ascending."""
    keys, row_keys = np.zeros(len(distinct_rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    for i in range(distinct_rows.shape[1]):
        keys, row_keys = keys << 32 | distinct_rows[:, i], row_keys << 32 | rows[:, i]
    return np.searchsorted(keys, row_keys)


def depend_on_each_other(bound: binding.Bound) -> bool:
    """Say whether every part of the body is about one and the same set of variables besides the head's.

    Then a rule derives a conclusion just when these variables have values for it.
    """
    ends = tuple(dict.fromkeys(t for t in (bound.head.subject, bound.head.object) if t >= 0))
    apart = binding.parts(bound, ends)
    if bound.empty or len(apart) != 1 or apart[0].context != ends:
        return False
    inside = set(apart[0].variables)
    pairs = [{atom.subject, atom.object} for atom in bound.atoms]
    pairs += [set(pair) for pair in bound.inequalities]
    pairs += [set(negation.variables) for negation in bound.negations]
    return all(pair & inside for pair in pairs)


class DatabaseEngine(SqlEngine, ABC):
    """An SQL engine with a database of its own, made of a graph in memory or, for larger ones, of files.

    After `from_files` and `open`, `graph` is a `StoredGraph`, whose vocabularies are in memory and whose triples
    stay in the database until somebody asks for the array. Close it after use, or use it in a `with` statement;
    what it put on disk goes then, or when it is collected.

    Parameters
    ----------
    graph
        The graph K.
    **options
        As in `Options`.
    """

    Options: ClassVar[type[Any]]

    def __init__(self, graph: KnowledgeGraph, **options: Any) -> None:
        settings = self.Options(**options)
        self._start(graph, *self._connect(settings, len(graph)), settings)
        try:
            self._load(graph.triples)
        except BaseException:
            self.close()
            raise

    def _start(self, graph: KnowledgeGraph, session: Any, close: Callable[[], None], options: Any) -> None:
        super().__init__(graph, session, max_conclusions=options.max_conclusions)
        self._finalizer = weakref.finalize(self, close)

    @classmethod
    def open(cls, place: str | Path, **options: Any) -> Self:
        """Open what `from_files` made; it is only read.

        Parameters
        ----------
        place
            The file or folder.
        **options
            As for the class.
        """
        settings = cls.Options(**options)
        engine = cls.__new__(cls)
        engine._start(*cls._read(Path(place), settings), settings)
        return engine

    @classmethod
    def from_files(
        cls,
        paths: Sequence[str | Path],
        place: str | Path,
        *,
        type_predicate: str | None = None,
        entities: Iterable[str] = (),
        relations: Iterable[str] = (),
        force: bool = False,
        **options: Any,
    ) -> Self:
        """Read TSV or Parquet files of names straight into a place on disk, and open it.

        Neither the names nor the triples need to fit into memory while they are read; afterwards the names do.

        Parameters
        ----------
        paths
            TSV/TXT files (also compressed) with three columns, or Parquet files with the columns that
            `load_graph` knows; the graph is their union.
        place
            What to make: a file for DuckDB, a folder for Spark.
        type_predicate
            As for `KnowledgeGraph`.
        entities, relations
            Names that the vocabularies shall hold besides, such as those of the heads of rules.
        force
            Replace what is there.
        **options
            As for the class.
        """
        for path in paths:
            if has_header(Path(path)):
                raise InputError(f"the first line of `{path}` is a header", hint="convert the file to Parquet")
        names = ExtraNames(type_predicate, entities, relations)
        with cls._written([Path(path) for path in paths], Path(place), names, force, cls.Options(**options)):
            return cls.open(place, **options)

    # -- what a database does in its own way -----------------------------------------------------

    @classmethod
    @abstractmethod
    def _connect(cls, options: Any, triples: int) -> tuple[Session, Callable[[], None]]:
        """Return an empty database for so many triples, and what closes it."""

    @abstractmethod
    def _load(self, triples: Triples) -> None:
        """Make the table `triples`."""

    @classmethod
    @abstractmethod
    def _read(cls, place: Path, options: Any) -> tuple[StoredGraph, Session, Callable[[], None]]:
        """Return the graph that is stored in a place, its database, and what closes that."""

    @classmethod
    @abstractmethod
    def _written(
        cls, paths: Sequence[Path], place: Path, names: ExtraNames, force: bool, options: Any
    ) -> AbstractContextManager[None]:
        """Store the triples of files in a place; it is opened inside the `with` block."""

    # -- closing ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Give back what it owns, and remove its temporary files. Closing twice is fine."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class ExtraNames:
    """What names a graph made of files has besides those in the files.

    Parameters
    ----------
    type_predicate
        As for `KnowledgeGraph`.
    entities, relations
        Names that the vocabularies shall hold, such as those of the heads of rules.
    """

    type_predicate: str | None
    entities: Iterable[str]
    relations: Iterable[str]

    def settled(self, used: Collection[str]) -> ExtraNames:
        """Choose the type predicate from the relations in use.

        As in a graph in memory, the data's own type predicate is not doubled by the rules' rdf:type.
        """
        type_predicate = self.type_predicate
        if type_predicate is None:
            type_predicate = next((name for name in TYPE_NAMES if name in used), None)
        more = [name for name in self.relations if not type_predicate or name not in TYPE_NAMES]
        return ExtraNames(type_predicate, self.entities, more)
