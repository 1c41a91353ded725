"""The materialisation M_R(K), semi-naively: each round joins what the last one added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from loginfer.engine.binding import ABSENT, bind, relation_of
from loginfer.engine.interface import Materialisation
from loginfer.engine.sql.queries import head_columns, project, refuse_product
from loginfer.engine.sql.session import Session, stacked
from loginfer.errors import LimitError
from loginfer.logic.dialects.queries import exclusions
from loginfer.logic.rule import Atom, Constant, Rule
from loginfer.logic.stratification import stratified
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.engine.sql.engine import SqlEngine

# Tables of one run: all that was derived, with its depth; what the last round added; what this one adds.
DERIVED, DELTA, FRESH = "derived", "delta", "fresh"

# Rules for one relation are evaluated in one query, up to this many at a time.
TOGETHER = 16

# What triples there are, as far as it matters to a rule: a relation, or the type predicate with a type.
Kinds = set[tuple[int, int]]


def materialise(
    engine: SqlEngine,
    session: Session,
    rules: Sequence[Rule],
    max_rounds: int | None,
    max_triples: int | None,
    progress: Progress | None,
) -> Materialisation:
    """Apply rules until nothing new follows, all inside the database.

    Round i + 1 evaluates the rules on K_i alone, so the depth of a triple is the least i with it in K_i.
    From the second round on a witness needs a triple of the last one: each atom in turn is taken from those,
    the atoms before it from older ones, the atoms behind it from all. With negation that is done stratum by
    stratum; the first round of a stratum is on all that is known then.
    """
    strata = stratified(list(dict.fromkeys(rules)))
    for rule in rules:
        bind(rule, engine.graph)  # a head that the graph cannot express is refused before any work
    run = _Rounds(engine, session, max_triples)
    rounds = total = 0
    try:
        run.start()
        for stratum in strata:
            added: Kinds | None = None
            while count := run.round(stratum, added, rounds + 1, total):
                if max_rounds is not None and rounds == max_rounds:
                    raise LimitError(
                        f"the rules still derive new triples after {max_rounds:,} rounds",
                        hint="allow more rounds, or none to go on until nothing new follows",
                    )
                rounds += 1
                total += count
                added = run.added()
                if progress is not None:
                    progress(f"round {rounds}", total, None)
        return run.result(rounds)
    finally:
        run.end()


class _Rounds:
    """The tables of one materialisation."""

    def __init__(self, engine: SqlEngine, session: Session, max_triples: int | None) -> None:
        self.engine = engine
        self.session = session
        self.graph = engine.graph
        self.triples = engine.layout.table
        every = f"(SELECT s, r, o FROM {self.triples} UNION ALL SELECT s, r, o FROM {DERIVED})"
        self.all_triples = replace(engine.layout, table=every)
        self.present: Kinds = set()
        self.max_triples = max_triples

    def start(self) -> None:
        self.end()
        empty = f"SELECT s, r, o, CAST(0 AS INTEGER) AS depth FROM {self.triples} WHERE 1 = 0"
        self.session.create(DERIVED, empty)
        self.present = self._kinds(self.triples)

    def end(self) -> None:
        for table in (DERIVED, DELTA, FRESH):
            self.session.drop(table)

    def round(self, rules: Sequence[Rule], added: Kinds | None, number: int, total: int) -> int:
        """Evaluate the rules on what is known; leave what is new in `DELTA` and return how much it is."""
        session = self.session
        session.drop(FRESH)
        session.create(FRESH, f"SELECT s, r, o FROM {self.triples} WHERE 1 = 0")
        by_head: dict[int, list[str]] = {}
        for rule in rules:
            relation = bind(rule, self.graph).head.relation
            for tables in self._sources(rule, added, number):
                by_head.setdefault(relation, []).append(self._apply(rule, tables))
        for relation, queries in by_head.items():
            for i in range(0, len(queries), TOGETHER):
                candidates = session.append(FRESH, self._new(relation, queries[i : i + TOGETHER], total))
                self._check(total + candidates, number)
        session.drop(DELTA)
        count = session.create(DELTA, f"SELECT DISTINCT s, r, o FROM {FRESH} ORDER BY r, s, o")
        self._check(total + count, number)
        if count:
            session.append(DERIVED, f"SELECT s, r, o, CAST({number} AS INTEGER) FROM {DELTA}")
        return count

    def _sources(self, rule: Rule, added: Kinds | None, number: int) -> Iterator[dict[Atom, str] | None]:
        """Yield the tables to take the atoms of a rule from, once for each atom that may match new triples.

        None, for the graph alone, in the very first round; no tables, for all that is known, in the first one
        of another stratum. Nothing for a rule with an atom that no triple matches.
        """
        kinds = {atom: self._kind(atom) for atom in rule.atoms}
        if not self.present.issuperset(kinds.values()):
            return
        if added is None:
            yield None if number == 1 else {}
            return
        older = f"SELECT s, r, o FROM {DERIVED} WHERE depth < {number - 1}"
        old = f"(SELECT s, r, o FROM {self.triples} UNION ALL {older})"
        before: list[Atom] = []
        for atom, kind in kinds.items():
            if kind in added:
                yield {**dict.fromkeys(before, old), atom: DELTA}
                before.append(atom)

    def _kind(self, atom: Atom) -> tuple[int, int]:
        relation = relation_of(atom, self.graph)
        if relation == self.graph.type_relation and isinstance(atom.object, Constant):
            entity = self.graph.entities.get(atom.object.name)
            return relation, ABSENT - 1 if entity is None else entity
        return relation, ABSENT

    def added(self) -> Kinds:
        """Return the kinds of triples that the last round added."""
        kinds = self._kinds(DELTA)
        self.present |= kinds
        return kinds

    def _kinds(self, table: str) -> Kinds:
        type_id = ABSENT if self.graph.type_relation is None else self.graph.type_relation
        kinds: Kinds = set()
        relation, object_ = self.session.columns(
            f"SELECT DISTINCT r, CASE WHEN r = {type_id} THEN o ELSE {ABSENT} END FROM {table}"
        )
        for r, o in zip(relation.tolist(), object_.tolist(), strict=True):
            kinds |= {(r, o), (r, ABSENT)}
        return kinds

    def _apply(self, rule: Rule, tables: dict[Atom, str] | None) -> str:
        """Return a query for the conclusions s, o of a rule, some atoms taken from other tables."""
        layout = self.engine.layout if tables is None else self.all_triples
        projection = project(
            rule.atoms,
            (*rule.inequalities, *exclusions(rule, layout)),
            rule.head.variables,
            layout,
            self.session.dialect,
            estimate=self.engine.estimate,
            tables=tables,
        )
        sizes = [int(self.session.row(part)[0]) for part in projection.parts]
        refuse_product(sizes, self.engine.max_conclusions, f"what `{rule}` derives")
        subject, object_ = head_columns(rule, self.all_triples)
        return (
            f"SELECT CAST({subject} AS INTEGER) AS s, CAST({object_} AS INTEGER) AS o\nFROM (\n{projection.sql}\n) AS q"
        )

    def _new(self, relation: int, queries: Sequence[str], total: int) -> str:
        """Return a query for the distinct pairs of some queries that the relation does not have yet."""
        together = "\nUNION ALL\n".join(queries)
        query = (
            f"SELECT DISTINCT p.s, CAST({relation} AS INTEGER) AS r, p.o FROM (\n{together}\n) AS p\n"
            f"WHERE NOT EXISTS (SELECT 1 FROM {self.all_triples.table} AS k "
            f"WHERE k.r = {relation} AND k.s = p.s AND k.o = p.o)"
        )
        if self.max_triples is not None:
            query += f"\nLIMIT {max(self.max_triples - total, 0) + 1}"
        return query

    def _check(self, total: int, number: int) -> None:
        if self.max_triples is not None and total > self.max_triples:
            raise LimitError(
                f"the rules derive more than {self.max_triples:,} new triples (reached in round {number})",
                hint="allow more triples, or look for the rule that derives so many",
            )

    def result(self, rounds: int) -> Materialisation:
        columns = self.session.columns(f"SELECT s, r, o, depth FROM {DERIVED} ORDER BY s, r, o")
        return Materialisation(stacked(columns[:3]), columns[3].astype(np.int32), rounds)
