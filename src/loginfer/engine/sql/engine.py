"""An engine whose triples live in an SQL database: everything but the database."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import ABSENT, bind, relation_named, relation_of
from loginfer.engine.bodies import finish_table
from loginfer.engine.interface import BodyTable, Derivations, Materialisation, Progress, Projection, Witnesses
from loginfer.engine.negated_bodies import counted_templates, rank_negated
from loginfer.engine.parts import Part, combine, separate
from loginfer.engine.sql.heads import head_columns, head_values, looks_like_head
from loginfer.engine.sql.materialise import materialise
from loginfer.engine.sql.membership import Asked, derived_queries
from loginfer.engine.sql.projection import Among, ProjectionQuery, project, refuse_product
from loginfer.engine.sql.queries import count_witnesses, rank_query
from loginfer.engine.sql.session import Session
from loginfer.engine.sql.statistics import Statistics, measure
from loginfer.engine.sql.stored import StoredGraph, fresh_name
from loginfer.engine.sql.witnesses import (
    depend_on_each_other,
    first_rows,
    fixed_row,
    ordered_rows,
    smallest_rows,
)
from loginfer.errors import LimitError
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Atom, Negation, Pattern, Rule
from loginfer.logic.sql import Check, Exclusion, Layout, exclusions
from loginfer.logic.terms import Variable

__all__ = ["MAX_CONCLUSIONS", "SqlEngine", "id_layout"]

# A rule with more conclusions, or witnesses to list, than this is refused: the result is an array in memory.
MAX_CONCLUSIONS = 200_000_000


def id_layout(graph: KnowledgeGraph, table: str = "triples") -> Layout:
    """Return the layout of a table of ids; a name that the graph does not have is -1, like no id."""

    def constant(name: str) -> str:
        found = graph.entities.get(name)
        return str(ABSENT if found is None else found)

    return Layout(
        table,
        write_relation=lambda name: str(relation_named(name, graph)),
        write_constant=constant,
        type_predicate=graph.type_predicate,
    )


def _stacked(
    subjects: npt.NDArray[np.int32], relation: int, objects: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    triples = np.empty((len(subjects), 3), dtype=np.int32)
    triples[:, 0] = subjects
    triples[:, 1] = relation
    triples[:, 2] = objects
    return triples


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

    def __init__(
        self, graph: KnowledgeGraph, session: Session, *, max_conclusions: int = MAX_CONCLUSIONS
    ) -> None:
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
        return self.statistics.estimate(atoms, lambda atom: relation_of(atom, self.graph))

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

    def _counts(
        self, pattern: Pattern, violated: Sequence[Negation] = ()
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the predicates and the support of all bodies; see `rank_sql`."""
        width = len(counted_templates(pattern, violated))
        listed = "".join(f"c{i}, " for i in range(width))
        # A count beyond 64 bits becomes -1.
        narrow = f"CAST(CASE WHEN n < {2**63} THEN n ELSE -1 END AS BIGINT)"
        *predicates, support = self._session.columns(
            f"SELECT {listed}{narrow} AS n FROM (\n{self.rank_sql(pattern, violated)}\n) AS counts"
        )
        if (support < 0).any():
            raise LimitError(f"bodies of `{pattern.name}` have more than 2^63 witnesses on this graph")
        stacked = np.empty((len(support), len(predicates)), dtype=np.int32)
        for i, column in enumerate(predicates):
            stacked[:, i] = column
        return stacked, support.astype(np.int64)

    def support(self, rule: Rule) -> int:
        """Return the number of witnesses: substitutions of all variables of the body."""
        bind(rule, self.graph)  # every engine refuses a head that the graph cannot express
        query = count_witnesses(rule, self.layout, self._session.dialect, self.estimate)
        return query.total(self._session.row(query.sql))

    # -- conclusions ----------------------------------------------------------------------------

    def conclusions(self, rule: Rule, *, new: bool = False) -> Triples:
        """Return T_r(K), the distinct conclusion triples; with `new`, T_r(K) ∖ K."""
        with self._table("concluded") as table:
            # Counted in the database, which can hold more than memory, before it is fetched.
            self._refuse([self._session.create(table, self._concluded(rule, new=new))], rule)
            subjects, objects = self._session.columns(f"SELECT s, o FROM {table} ORDER BY s, o")
        return _stacked(subjects, bind(rule, self.graph).head.relation, objects)

    def _concluded(self, rule: Rule, *, new: bool) -> str:
        """Return a query for the subjects s and objects o of a rule's conclusions."""
        relation = bind(rule, self.graph).head.relation
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

    def sample_conclusions(self, rule: Rule, salt: int, count: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Return |T_r(K) ∖ K|, and the keys of the first `count` of these triples in hash order.

        All of them stay in the database.
        """
        keys, relation = self.graph.keys, bind(rule, self.graph).head.relation
        key = (
            f"(CAST(s AS BIGINT) * {keys.relations} + {relation}) * CAST({keys.entities} AS BIGINT) "
            "+ CAST(o AS BIGINT)"
        )
        with self._table("concluded") as table:
            total = self._session.create(table, self._concluded(rule, new=True))
            rows = self._session.hashed(f"SELECT s, o FROM {table}", key, salt)
            subjects, objects = self._session.columns(
                f"SELECT s, o FROM (\n{rows}\n) AS hashed ORDER BY h LIMIT {count}"
            )
        return total, keys.pack(_stacked(subjects, relation, objects))

    def conclusions_in_parts(self, rule: Rule, *, new: bool = False) -> Iterator[Triples]:
        """Yield what `conclusions` returns, at once; its limit holds (see `interface.Engine`)."""
        yield self.conclusions(rule, new=new)

    def projection(self, rule: Rule) -> Projection:
        """Return the distinct subjects and objects of a rule's conclusions (see `interface.Engine`)."""
        bound = bind(rule, self.graph)
        keep = rule.head.variables
        if len(keep) < 2:
            columns = self._distinct(rule, self._checks(rule), keep)
            return Projection.of(bound.head, columns[0])
        apart = separate(bound, (bound.head.subject, bound.head.object))
        if apart is None:
            left, right = self._distinct(rule, self._checks(rule), keep)
            return Projection(left, right)
        rest = [e for e in self._checks(rule) if isinstance(e, Exclusion) or set(e.terms) != set(keep)]
        (left,), (right,) = (self._distinct(rule, rest, [variable]) for variable in keep)
        return Projection(left, right, True, len(apart.inequalities) < len(bound.inequalities))

    def _distinct(
        self, rule: Rule, inequalities: Sequence[Check], keep: Sequence[Variable]
    ) -> list[npt.NDArray[np.int32]]:
        """Return the distinct values of some variables, sorted; for no variables, one row or none."""
        query = self._project(rule.atoms, inequalities, keep)
        self._refuse_product(query, rule)
        order = ", ".join(f"c{i}" for i in range(len(keep))) or "present"
        with self._table("concluded") as table:
            self._refuse([self._session.create(table, query.sql)], rule)
            columns = self._session.columns(f"SELECT {order} FROM {table} ORDER BY {order}")
        return [column.astype(np.int32) for column in columns]

    def _project(
        self,
        atoms: Sequence[Atom],
        inequalities: Sequence[Check],
        keep: Sequence[Variable],
        among: Among | None = None,
    ) -> ProjectionQuery:
        return project(
            atoms,
            inequalities,
            keep,
            self.layout,
            self._session.dialect,
            estimate=self.estimate,
            among=among,
        )

    def _project_rule(
        self, rule: Rule, keep: Sequence[Variable], among: Among | None = None
    ) -> ProjectionQuery:
        return self._project(rule.atoms, self._checks(rule), keep, among)

    def _checks(self, rule: Rule) -> list[Check]:
        return [*rule.inequalities, *exclusions(rule, self.layout)]

    def _refuse_product(self, projection: ProjectionQuery, rule: Rule) -> None:
        self._refuse([int(self._session.row(part)[0]) for part in projection.parts], rule)

    def _refuse(self, sizes: Sequence[int], rule: Rule) -> None:
        refuse_product(sizes, self.max_conclusions, f"what `{rule}` asks for")

    # -- witnesses ------------------------------------------------------------------------------

    def witnesses(
        self, rule: Rule, *, limit: int | None = None, conclusion: Sequence[int] | None = None
    ) -> Witnesses:
        """Return the first `limit` witnesses, all of them or those of one conclusion triple."""
        values: dict[Variable, int] | None = {}
        if conclusion is not None:
            values = head_values(rule, self.graph, conclusion)
        if values is None or (limit is not None and limit <= 0):
            return Witnesses(rule, np.empty((0, len(rule.variables)), dtype=np.int32))
        fixed = fixed_row(values)
        if limit is None or not rule.variables:
            if rule.variables and not values:
                self._refuse([self.support(rule)], rule)
            projection = self._project_rule(rule, rule.variables, fixed)
            self._refuse_product(projection, rule)
            return Witnesses(rule, ordered_rows(self._session, projection.sql, len(rule.variables)))
        with self._table("first_rows") as table:
            return Witnesses(rule, first_rows(self._session, rule, self._project_rule, limit, fixed, table))

    def first_witnesses(self, rule: Rule, triples: Triples) -> npt.NDArray[np.int32]:
        """Return the first witness of each triple, int32[n, v]; -1s where the rule does not derive it."""
        rows = np.full((len(triples), len(rule.variables)), -1, dtype=np.int32)
        bound = bind(rule, self.graph)
        asked = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
        # Where the search for the values tells of itself what has none, that need not be asked before.
        possible = (
            looks_like_head(bound, asked) if depend_on_each_other(bound) else self.derives([rule], asked)
        )
        if not possible.any():
            return rows

        def smallest(part: Part, asked: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
            context, wanted = ([rule.variables[v] for v in vs] for vs in (part.context, part.variables))
            atoms = [a for a in rule.atoms if not set(wanted).isdisjoint(a.variables)]
            inequalities = [e for e in self._checks(rule) if not set(wanted).isdisjoint(e.variables)]
            with self._table("first_rows") as table:
                return smallest_rows(
                    self._session,
                    lambda keep, among: self._project(atoms, inequalities, keep, among),
                    context,
                    wanted,
                    asked,
                    table,
                )

        found = combine(bound, asked[possible, ::2], smallest)
        found[(found < 0).any(axis=1)] = -1
        rows[possible] = found
        return rows

    # -- membership -----------------------------------------------------------------------------

    def derives(self, rules: Sequence[Rule], triples: Triples) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which of these triples are in T_R(K)."""
        found = np.zeros(len(triples), dtype=bool)
        for places, _ in self._derived(rules, triples):
            found[places] = True
        return found

    def derived(self, rules: Sequence[Rule], graph: KnowledgeGraph) -> KnowledgeGraph:
        """Return the triples of another graph, over the same vocabularies, that are in T_R(K).

        Those of a graph in the same database stay there.
        """
        if not isinstance(graph, StoredGraph) or graph.session is not self._session:
            return self.graph.with_triples(graph.triples[self.derives(rules, graph.triples)])
        heads = set(graph.preds.tolist())
        with self._table("derived_rows") as table:
            self._session.create(table, f"SELECT s, r, o FROM {graph.table} WHERE 1 = 0")
            for query in self._derived_queries(rules, heads, graph.table):
                self._session.append(table, f"SELECT s, r, o FROM (\n{query}\n) AS d")
            distinct = fresh_name("derived")
            self._session.create(distinct, f"SELECT DISTINCT s, r, o FROM {table}")
        return graph.at(distinct)

    def _derived_queries(self, rules: Sequence[Rule], heads: Collection[int], table: str) -> Iterator[str]:
        return derived_queries(
            rules, heads, self.graph, self.layout, self._session, table, self._project_rule
        )

    def derivations(self, rules: Sequence[Rule], triples: Triples) -> Derivations:
        """Return every pair of a triple and a rule that derives it in one step."""
        places, by = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for derived, rule in self._derived(rules, triples):
            places.append(derived)
            by.append(rule)
        triple, rule_ = np.concatenate(places), np.concatenate(by)
        order = np.lexsort((rule_, triple))
        return Derivations(triple[order], rule_[order])

    def _derived(
        self, rules: Sequence[Rule], triples: Triples
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Give all pairs of a triple and a rule that derives it, as their places."""
        asked = Asked(triples, self.graph.keys)
        with self._table("asked") as table:
            self._session.load(table, {name: asked.triples[:, i] for i, name in enumerate("sro")})
            for query in self._derived_queries(rules, set(np.unique(asked.triples[:, 1]).tolist()), table):
                subject, relation, object_, rule = self._session.columns(query)
                found = np.stack([subject, relation, object_], axis=1).astype(np.int32, copy=False)
                which, places = asked.places(found)
                yield places, rule[which].astype(np.int64)

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
        return materialise(
            self._session,
            self.graph,
            self.layout,
            rules,
            estimate=self.estimate,
            max_conclusions=self.max_conclusions,
            max_rounds=max_rounds,
            max_triples=max_triples,
            progress=progress,
        )

    @contextmanager
    def _table(self, name: str) -> Iterator[str]:
        try:
            yield name
        finally:
            self._session.drop(name)
