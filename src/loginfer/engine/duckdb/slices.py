"""Rules over a graph in DuckDB, one slice at a time: the triples of the relations that they mention.

What a rule derives depends on the triples of its body's relations alone. Of a graph that does not fit into
memory those often do, and compiled kernels are several times as fast on them as SQL, without writing down
conclusions by the billion. Where they do not fit either, SQL answers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import ABSENT, relation_named, relation_of
from loginfer.engine.duckdb.session import DuckDBSession
from loginfer.engine.interface import Derivations
from loginfer.engine.native import NativeEngine
from loginfer.engine.sql.engine import MAX_CONCLUSIONS, SqlEngine
from loginfer.engine.sql.stored import StoredGraph, fresh_name
from loginfer.kg import KnowledgeGraph, Triples
from loginfer.logic.rule import Atom, Rule

__all__ = ["SlicedEngine", "divided"]

# What a triple of a slice takes, with the indexes of it that kernels make.
BYTES = 48

_UNITS = {"k": 1, "m": 2, "g": 3, "t": 4}


class SlicedEngine(SqlEngine):
    """Exact evaluation of rules over a graph in DuckDB, by compiled kernels where a slice fits into memory.

    Parameters
    ----------
    graph
        The graph K. One in memory has no slices: then all is left to SQL.
    session
        The database.
    max_conclusions
        As for `SqlEngine`.
    slice_rows
        How many triples a slice may have; 0 leaves all to SQL. By default what the session has room for.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        session: DuckDBSession,
        *,
        max_conclusions: int = MAX_CONCLUSIONS,
        slice_rows: int | None = None,
    ) -> None:
        super().__init__(graph, session, max_conclusions=max_conclusions)
        self.slice_rows = session.slice_rows if slice_rows is None else slice_rows
        self._slice: tuple[frozenset[int], NativeEngine] | None = None

    def sample_conclusions(self, rule: Rule, salt: int, count: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Return |T_r(K) ∖ K|, and the keys of the first `count` of these triples in hash order."""
        near = self._near([rule], heads=True)
        if near is None:
            return super().sample_conclusions(rule, salt, count)
        return near.sample_conclusions(rule, salt, count)

    def first_witnesses(self, rule: Rule, triples: Triples) -> npt.NDArray[np.int32]:
        """Return the first witness of each triple (see `interface.Engine`)."""
        near = self._near([rule])
        if near is None:
            return super().first_witnesses(rule, triples)
        return near.first_witnesses(rule, triples)

    def derives(self, rules: Sequence[Rule], triples: Triples) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which of these triples are in T_R(K)."""
        found = np.zeros(len(triples), dtype=bool)
        # The slice that is there already comes first.
        for group in sorted(self._groups(rules), key=lambda group: not self._is_near(group)):
            left = np.flatnonzero(~found)
            found[left[self._derived_by(group, group, triples[left])]] = True
        return found

    def _derived_by(
        self, group: Sequence[Rule], rules: Sequence[Rule], triples: Triples
    ) -> npt.NDArray[np.bool_]:
        """Return which triples some rules of a group derive."""
        near = self._near(group)
        return super().derives(rules, triples) if near is None else near.derives(rules, triples)

    def derivations(self, rules: Sequence[Rule], triples: Triples) -> Derivations:
        """Return every pair of a triple and a rule that derives it in one step."""
        places, by, before = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)], 0
        for group in self._groups(rules):
            near = self._near(group)
            found = super().derivations(group, triples) if near is None else near.derivations(group, triples)
            places.append(found.triple)
            by.append(found.rule + before)
            before += len(group)
        triple, rule = np.concatenate(places), np.concatenate(by)
        order = np.lexsort((rule, triple))
        return Derivations(triple[order], rule[order])

    def derived(self, rules: Sequence[Rule], graph: KnowledgeGraph) -> KnowledgeGraph:
        """Return the triples of another graph that are in T_R(K); those of one in the same database stay."""
        if not self._sizes or not isinstance(graph, StoredGraph) or graph.session is not self._session:
            return super().derived(rules, graph)
        table = fresh_name("derived")
        with self._table("derived_rows") as rows:
            self._session.create(rows, f"SELECT s, r, o FROM {graph.table} WHERE 1 = 0")
            for group in self._groups(rules):
                by_head: dict[int, list[Rule]] = {}
                for rule in group:
                    by_head.setdefault(relation_of(rule.head, self.graph), []).append(rule)
                for relation, own in by_head.items():
                    triples = graph.of_relations([relation])
                    found = triples[self._derived_by(group, own, triples)]
                    with self._table("found") as name:
                        self._session.load(name, {end: found[:, i] for i, end in enumerate("sro")})
                        self._session.append(rows, f"SELECT s, r, o FROM {name}")
            self._session.create(table, f"SELECT DISTINCT s, r, o FROM {rows}")
        return graph.at(table)

    # -- slices ---------------------------------------------------------------------------------

    @cached_property
    def _sizes(self) -> dict[int, int]:
        """How many triples each relation has; none where there are no slices."""
        if not self.slice_rows or not isinstance(self.graph, StoredGraph):
            return {}
        relations, sizes = self._session.columns(
            f"SELECT r, count(*) FROM {self.graph.table} GROUP BY r ORDER BY r"
        )
        return dict(zip(relations.tolist(), sizes.tolist(), strict=True))

    def _relations(self, rules: Sequence[Rule], heads: bool = False) -> frozenset[int]:
        """Return the relations of the graph that bodies mention; with those of the heads if so wanted."""
        atoms = (atom for rule in rules for atom in _atoms(rule, heads))
        return frozenset({relation_named(str(atom.relation), self.graph) for atom in atoms} - {ABSENT})

    def _rows(self, relations: frozenset[int]) -> int:
        return sum(self._sizes.get(relation, 0) for relation in relations)

    def _groups(self, rules: Sequence[Rule]) -> Iterator[list[Rule]]:
        """Divide rules, in order, into groups whose slices fit into memory, as far as they can."""
        group: list[Rule] = []
        for rule in rules:
            if group and self._sizes and self._rows(self._relations([*group, rule])) > self.slice_rows:
                yield group
                group = []
            group.append(rule)
        if group:
            yield group

    def _is_near(self, rules: Sequence[Rule]) -> bool:
        return self._slice is not None and self._relations(rules) <= self._slice[0]

    def _near(self, rules: Sequence[Rule], heads: bool = False) -> NativeEngine | None:
        """Return an engine in memory over the slice of some rules; None where that has no room.

        What follows depends on bodies alone. Only who wants what is new needs `heads`.
        """
        if not self._sizes or not isinstance(self.graph, StoredGraph):
            return None
        wanted = self._relations(rules, heads)
        if self._rows(wanted) > self.slice_rows:
            return None
        if self._slice is None or not wanted <= self._slice[0]:
            self._slice = None  # before there is another one
            triples = self.graph.of_relations(sorted(wanted))
            self._slice = (wanted, NativeEngine(self.graph.with_triples(triples)))
        return self._slice[1]


def _atoms(rule: Rule, head: bool) -> Iterator[Atom]:
    yield from rule.atoms
    yield from (negation.atom for negation in rule.negations)
    if head:
        yield rule.head


def divided(memory_limit: str) -> tuple[str, int]:
    """Divide memory between DuckDB and slices: return DuckDB's limit, and how many triples slices may have.

    Parameters
    ----------
    memory_limit
        What both may use together, such as `4GB`, or `50%` of the machine's memory.
    """
    found = re.fullmatch(r"\s*([0-9.]+)\s*(?:([kmgt])(i?)b|%)\s*", memory_limit, re.IGNORECASE)
    if found is None:  # DuckDB's session says what is wrong with it
        return memory_limit, 0
    number, unit, binary = found.groups()
    if unit:
        size = float(number) * (1024 if binary else 1000) ** _UNITS[unit.lower()]
    else:
        try:
            size = float(number) / 100 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, ValueError, OSError):
            return memory_limit, 0
    half = int(size / 2)
    return f"{max(half // 1000, 1)}KB", half // BYTES
