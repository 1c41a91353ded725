"""What an SQL engine asks of its database, and graphs whose triples stay in one.

The vocabularies of such a graph are in memory (the names' bytes and nothing more); the triples are not. A
`StoredGraph` answers what rules and benchmarks need (ids, signature, membership, the sides of a relation) from
the database and loads its triples only when somebody asks for the array itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from loginfer.engine.interface import Engine
from loginfer.engine.sql.queries import SqlDialect
from loginfer.kg import KnowledgeGraph, Triples, Vocabulary
from loginfer.kg.graph import Ids, Mask, sorted_unique


class Session(Protocol):
    """A connection to a database that holds the table `triples` of ids s, r, o.

    Tables made here are temporary: they go when the session ends.
    """

    @property
    def dialect(self) -> SqlDialect:
        """The database's dialect of SQL."""
        ...

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a query, with whole numbers of any size as they are."""
        ...

    def columns(self, query: str) -> list[npt.NDArray[Any]]:
        """Return the columns of a query as arrays of numbers."""
        ...

    def stream(self, query: str) -> Iterator[list[npt.NDArray[Any]]]:
        """Yield the columns of a query some rows at a time, in order.

        Run no other query until the stream is exhausted or closed.
        """
        ...

    def engine_over(self, graph: StoredGraph) -> Engine:
        """Return an engine over a graph in this database."""
        ...

    def load(self, table: str, columns: Mapping[str, npt.NDArray[np.integer[Any]]]) -> None:
        """Make a table of some arrays."""
        ...

    def create(self, table: str, query: str) -> int:
        """Make a table of a query's result; return the number of its rows."""
        ...

    def view(self, name: str, query: str) -> None:
        """Give a query a name, under which it can be read like a table."""
        ...

    def append(self, table: str, query: str) -> int:
        """Add a query's result to a table; return how many rows came."""
        ...

    def drop(self, table: str) -> None:
        """Drop a table if it exists."""
        ...


_numbers = count()


def fresh_name(stem: str) -> str:
    """Return a name for a table that no other has in this process."""
    return f"{stem}_{next(_numbers)}"


def stacked(columns: Sequence[npt.ArrayLike], length: int | None = None) -> Ids:
    """Return int32[n, k]: columns of a query's result side by side; one may be a number for all rows."""
    rows = np.empty((len(np.atleast_1d(columns[0])) if length is None else length, len(columns)), dtype=np.int32)
    for i, column in enumerate(columns):
        rows[:, i] = column
    return rows


class StoredGraph(KnowledgeGraph):
    """A knowledge graph in a database: same vocabularies, ids and answers, triples loaded when touched.

    `triples`, and what is built from it (`index`, `packed`, `with_names`), brings the whole graph into
    memory; length, signature, membership, sides, blocks and `with_more` do not.

    Parameters
    ----------
    session
        The database.
    entities, relations
        The vocabularies.
    type_predicate
        As for `KnowledgeGraph`.
    table
        A table or view of ids s, r, o, without duplicates.
    """

    in_memory = False

    def __init__(
        self,
        session: Session,
        entities: Vocabulary,
        relations: Vocabulary,
        type_predicate: str | None,
        table: str = "triples",
    ) -> None:
        nothing = np.empty((0, 3), dtype=np.int32)
        super().__init__(entities, relations, nothing, type_predicate=type_predicate)
        del self.__dict__["triples"]  # from here on the property below answers
        self.session = session
        self.table = table
        self._sides: dict[int, tuple[Ids, Ids]] = {}

    @cached_property
    def triples(self) -> Triples:  # type: ignore[override]
        """int32[n, 3], loaded from the database at the first use."""
        triples = stacked(self.session.columns(f"SELECT s, r, o FROM {self.table} ORDER BY s, r, o"))
        triples.setflags(write=False)
        return triples

    @cached_property
    def _size(self) -> int:
        return int(self.session.row(f"SELECT count(*) FROM {self.table}")[0])

    def __len__(self) -> int:
        return self._size

    def _ids(self, query: str) -> Ids:
        ids = self.session.columns(query)[0].astype(np.int32)
        ids.setflags(write=False)
        return ids

    @cached_property
    def preds(self) -> Ids:
        """Preds(K) without the types: ids of all relations in use, the type predicate included."""
        return self._ids(f"SELECT DISTINCT r FROM {self.table} ORDER BY r")

    @cached_property
    def types(self) -> Ids:
        """Types(K): ids, in the vocabulary of entities, of the types in use."""
        return self._ids(f"SELECT DISTINCT o FROM {self.table} WHERE r = {self._type_id} ORDER BY o")

    @cached_property
    def consts(self) -> Ids:
        """Consts(K): ids of the constants in use; a type counts only if it is used as a constant too."""
        objects = f"SELECT o FROM {self.table} WHERE r <> {self._type_id}"
        return self._ids(f"SELECT s FROM {self.table} UNION {objects} ORDER BY 1")

    @cached_property
    def looped(self) -> Ids:
        """Ids of the relations with a triple (x, R, x)."""
        return self._ids(f"SELECT DISTINCT r FROM {self.table} WHERE s = o ORDER BY r")

    @property
    def _type_id(self) -> int:
        return -1 if self.type_relation is None else self.type_relation

    # -- look-ups -------------------------------------------------------------------------------

    def sides(self, relation: int) -> tuple[Ids, Ids]:
        """Return the distinct subjects and the distinct objects of a relation, each sorted."""
        if relation not in self._sides:
            left, right = (
                f"SELECT {side} AS side, {end} AS id FROM {self.table} WHERE r = {relation}"
                for side, end in enumerate("so")
            )
            side, ids = self.session.columns(f"{left} UNION {right} ORDER BY side, id")
            both = np.split(ids.astype(np.int32), [int(np.count_nonzero(side == 0))])
            for side_ids in both:
                side_ids.setflags(write=False)
            self._sides[relation] = both[0], both[1]
        return self._sides[relation]

    def of_relations(self, relations: Sequence[int]) -> Triples:
        """Return the triples of some relations, in no particular order."""
        ids = ", ".join(map(str, relations)) or "NULL"
        return stacked(self.session.columns(f"SELECT s, r, o FROM {self.table} WHERE r IN ({ids})"))

    def contains(self, triples: npt.ArrayLike) -> Mask:
        """Return bool[m]: which of these triples of ids are in the graph."""
        ids = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
        is_contained = np.zeros(len(ids), dtype=bool)
        if not len(ids):
            return is_contained
        name = fresh_name("wanted")
        columns = {end: ids[:, i] for i, end in enumerate("sro")}
        self.session.load(name, {"i": np.arange(len(ids), dtype=np.int64), **columns})
        try:
            (rows,) = self.session.columns(
                f"SELECT a.i FROM {name} AS a, {self.table} AS k WHERE a.s = k.s AND a.r = k.r AND a.o = k.o"
            )
        finally:
            self.session.drop(name)
        is_contained[rows] = True
        return is_contained

    def blocks(self) -> Iterator[Triples]:
        """Yield all triples in order, some at a time. Exhaust or close it before any other query."""
        for columns in self.session.stream(f"SELECT s, r, o FROM {self.table} ORDER BY s, r, o"):
            yield stacked(columns)

    # -- other graphs ---------------------------------------------------------------------------

    def at(self, table: str) -> StoredGraph:
        """Return a graph over the same vocabularies whose triples are in another table."""
        return StoredGraph(self.session, self.entities, self.relations, self.type_predicate or "", table)

    def with_more(self, triples: Triples) -> KnowledgeGraph:
        """Return a graph over the same vocabularies that has these triples as well; they are stored too."""
        rows = sorted_unique(np.asarray(triples, dtype=np.int32), self.keys)
        rows = rows[~self.contains(rows)]
        if not len(rows):
            return self
        more, both = fresh_name("more"), fresh_name("both")
        self.session.load(more, {end: rows[:, i] for i, end in enumerate("sro")})
        self.session.view(both, f"SELECT s, r, o FROM {self.table} UNION ALL SELECT s, r, o FROM {more}")
        return self.at(both)


def vocabulary_of(column: Any) -> Vocabulary:
    """Return the vocabulary of an Arrow column of names, sorted by their bytes.

    The bytes are taken from Arrow as they are, without a Python string for each name.
    """
    import pyarrow as pa

    names = column.cast(pa.large_string()).combine_chunks()
    if isinstance(names, pa.ChunkedArray):
        names = pa.concat_arrays(names.chunks) if names.num_chunks else pa.array([], pa.large_string())
    return Vocabulary.of_arrow(names)
