"""Materialisation by DuckDB in a semi-naive loop: one table per class and per property.

Each predicate has a table of what is known and one of what the last round added. A round is one statement
per head predicate: the union of its rules, each with one atom read from what the last round added, without
what is known. Ids are 32-bit integers, one thread: more of them cost more CPU at this size, not less.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from loginfer.engine.binding import Bound, BoundAtom, bind
from loginfer.kg import KnowledgeGraph
from loginfer.logic.rule import Rule

Predicate = tuple[int, int]


@dataclass(frozen=True)
class PeerRun:
    """What a peer derived and what it cost, in CPU seconds."""

    new: int
    load: float
    reason: float


class _Loop:
    """The tables, and the rules by head predicate."""

    def __init__(self, graph: KnowledgeGraph, rules: Sequence[Rule]) -> None:
        self.program = [b for b in dict.fromkeys(bind(rule, graph) for rule in rules) if not b.empty]
        atoms = dict.fromkeys(atom for rule in self.program for atom in (*rule.atoms, rule.head))
        self.binary = {atom.relation for atom in atoms if atom.object >= 0}
        self.database: Any = duckdb.connect(config={"threads": 1})
        self.database.execute("SET preserve_insertion_order = false")
        self.database.execute("SET disabled_optimizers = 'partial_aggregate_pushdown'")
        # One transaction: hundreds of small commits would cost a tenth of the time.
        self.database.execute("BEGIN")
        self.sizes: dict[Predicate, int] = {}
        self.deltas: dict[Predicate, int] = {}
        for key in dict.fromkeys(self.predicate(atom) for atom in atoms):
            self._create(graph, key)
        self.rules: dict[Predicate, list[Bound]] = {}
        for rule in self.program:
            self.rules.setdefault(self.predicate(rule.head), []).append(rule)

    def predicate(self, atom: BoundAtom) -> Predicate:
        return (atom.relation, -1 if atom.relation in self.binary else ~atom.object)

    def _create(self, graph: KnowledgeGraph, key: Predicate) -> None:
        relation, constant = key
        rows = graph.triples[graph.triples[:, 1] == relation]
        name = table(key)
        if constant < 0:
            facts = {"s": np.ascontiguousarray(rows[:, 0]), "o": np.ascontiguousarray(rows[:, 2])}
        else:
            facts = {"s": np.ascontiguousarray(rows[rows[:, 2] == constant, 0])}
        self.database.register("facts", facts)
        self.database.execute(f"CREATE TABLE {name} AS SELECT * FROM facts")
        self.database.execute(f"CREATE TABLE {name}_delta AS SELECT * FROM facts")
        self.database.unregister("facts")
        self.sizes[key] = self.deltas[key] = len(facts["s"])

    def select(self, rule: Bound, part: int) -> str:
        """Return the query for a rule's heads with one atom read from the last round's table."""
        places: dict[int, str] = {}
        tables, conditions = [], []
        for i, atom in enumerate(rule.atoms):
            key = self.predicate(atom)
            tables.append(f"{table(key)}{'_delta' if i == part else ''} a{i}")
            columns = [(atom.subject, f"a{i}.s")] + ([(atom.object, f"a{i}.o")] if key[1] < 0 else [])
            for term, column in columns:
                if term < 0:
                    conditions.append(f"{column} = {~term}")
                elif term in places:
                    conditions.append(f"{column} = {places[term]}")
                else:
                    places[term] = column

        def value(term: int) -> str:
            return places[term] if term >= 0 else str(~term)

        conditions += [f"{value(a)} <> {value(b)}" for a, b in rule.inequalities]
        wanted = [f"{value(rule.head.subject)} AS s"]
        if self.predicate(rule.head)[1] < 0:
            wanted.append(f"{value(rule.head.object)} AS o")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT DISTINCT {', '.join(wanted)} FROM {', '.join(tables)}{where}"

    def parts(self, rule: Bound) -> list[int]:
        """Return the atoms worth reading from the last round's tables."""
        keys = [self.predicate(atom) for atom in rule.atoms]
        if any(self.sizes[key] == 0 for key in keys):
            return []
        found = []
        for part, key in enumerate(keys):
            if self.deltas[key]:
                found.append(part)
            if self.sizes[key] == self.deltas[key]:
                break
        return found

    def round(self) -> int:
        added: dict[Predicate, int] = {}
        for key, rules in self.rules.items():
            selects = [self.select(rule, part) for rule in rules for part in self.parts(rule)]
            if selects:
                name = table(key)
                same = f"k.s = n.s{' AND k.o = n.o' if key[1] < 0 else ''}"
                self.database.execute(
                    f"CREATE OR REPLACE TABLE {name}_next AS SELECT DISTINCT n.* "
                    f"FROM ({' UNION ALL '.join(selects)}) n ANTI JOIN {name} k ON {same}"
                )
                count = self.database.execute(f"SELECT count(*) FROM {name}_next").fetchone()[0]
                if count:
                    added[key] = count
        for key, count in self.deltas.items():
            name = table(key)
            if key in added:
                self.database.execute(f"INSERT INTO {name} FROM {name}_next")
                self.database.execute(f"DROP TABLE {name}_delta")
                self.database.execute(f"ALTER TABLE {name}_next RENAME TO {name}_delta")
            elif count:
                self.database.execute(f"TRUNCATE {name}_delta")
            self.deltas[key] = added.get(key, 0)
            self.sizes[key] += added.get(key, 0)
        return sum(added.values())


def table(key: Predicate) -> str:
    return f"r{key[0]}" if key[1] < 0 else f"r{key[0]}c{key[1]}"


def materialise_with_duckdb(graph: KnowledgeGraph, rules: Sequence[Rule]) -> PeerRun:
    """Materialise; `graph` must hold the names of the rules' heads, and no rule an empty body."""
    begin = time.process_time()
    loop = _Loop(graph, rules)
    loaded = time.process_time()
    new = 0
    while added := loop.round():
        new += added
    return PeerRun(new, loaded - begin, time.process_time() - loaded)
