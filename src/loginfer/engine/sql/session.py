"""What is asked of a database; graphs in it.

What an SQL engine asks of its database.

A graph whose triples stay in a database.

The vocabularies are in memory (the names' bytes and nothing more); the triples are not. A `StoredGraph`
answers what rules and benchmarks need (ids, signature, membership, the sides of a relation) from the database
and loads its triples only when somebody asks for the array itself.

Vocabularies out of a database.

How large joins will be: a few moments of the degrees of every relation.

Witnesses in order, the first few without the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, pairwise
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from loginfer.engine.binding import Bound, parts
from loginfer.engine.interface import Engine
from loginfer.engine.sql.queries import Among, ProjectionQuery, SqlDialect
from loginfer.kg import KnowledgeGraph, Triples, Vocabulary
from loginfer.kg.graph import sorted_unique
from loginfer.logic.rule import Atom, Rule, Template, Variable


class Session(Protocol):
    """A connection to a database that holds the table `triples` of ids s, r, o.

    Tables made here are temporary: they go when the session ends.
    """

    @property
    def dialect(self) -> SqlDialect:
        """What the database speaks."""
        ...

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of a query, with whole numbers of any size as they are."""
        ...

    def columns(self, query: str) -> list[npt.NDArray[Any]]:
        """Return the columns of a query as arrays of numbers."""
        ...

    def stream(self, query: str) -> Iterator[list[npt.NDArray[Any]]]:
        """Yield the columns of a query some rows at a time, in order.

        Nothing else may be asked until it is finished or let go.
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


Ids = npt.NDArray[np.int32]

_numbers = count()


def fresh_name(stem: str) -> str:
    """Return a name for a table that no other has in this process."""
    return f"{stem}_{next(_numbers)}"


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
        columns = self.session.columns(f"SELECT s, r, o FROM {self.table} ORDER BY s, r, o")
        triples = np.stack(columns, axis=1).astype(np.int32)
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
            for found in both:
                found.setflags(write=False)
            self._sides[relation] = both[0], both[1]
        return self._sides[relation]

    def of_relations(self, relations: Sequence[int]) -> Triples:
        """Return the triples of some relations, in no particular order."""
        wanted = ", ".join(map(str, relations)) or "NULL"
        columns = self.session.columns(f"SELECT s, r, o FROM {self.table} WHERE r IN ({wanted})")
        return np.stack(columns, axis=1).astype(np.int32, copy=False)

    def contains(self, triples: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return bool[m]: which of these triples of ids are in the graph."""
        wanted = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
        found = np.zeros(len(wanted), dtype=bool)
        if not len(wanted):
            return found
        name = fresh_name("wanted")
        columns = {end: wanted[:, i] for i, end in enumerate("sro")}
        self.session.load(name, {"i": np.arange(len(wanted), dtype=np.int64), **columns})
        try:
            (places,) = self.session.columns(
                f"SELECT a.i FROM {name} AS a, {self.table} AS k WHERE a.s = k.s AND a.r = k.r AND a.o = k.o"
            )
        finally:
            self.session.drop(name)
        found[places] = True
        return found

    def blocks(self) -> Iterator[Triples]:
        """Yield all triples in order, some at a time. Finish, or let go, before asking anything else."""
        for columns in self.session.stream(f"SELECT s, r, o FROM {self.table} ORDER BY s, r, o"):
            yield np.stack(columns, axis=1).astype(np.int32, copy=False)

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

    The bytes are taken over as Arrow has them, without a Python string a name.
    """
    import pyarrow as pa

    names = column.cast(pa.large_string()).combine_chunks()
    if isinstance(names, pa.ChunkedArray):
        names = pa.concat_arrays(names.chunks) if names.num_chunks else pa.array([], pa.large_string())
    if not len(names):
        return Vocabulary.of(())
    _, offsets, data = names.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[names.offset : names.offset + len(names) + 1]
    size = int(places[-1] - places[0])
    whole = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, np.uint8)
    return Vocabulary(whole[int(places[0]) : int(places[0]) + size], places - places[0])


# Stands for all relations at once, as a template does.
ALL = -1

Side = Literal[0, 1]


@dataclass(frozen=True, slots=True)
class _Degrees:
    """One side of a relation: how many triples, how many distinct values, and Σ degree²."""

    triples: float
    values: float
    squares: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """Degrees of all relations.

    Parameters
    ----------
    degrees
        For each relation's id (`ALL` for all of them together) those of its subjects and its objects.
    two_paths
        Σ over all values of in-degree · out-degree, over all relations.
    """

    degrees: dict[int, tuple[_Degrees, _Degrees]]
    two_paths: float

    def estimate(self, atoms: Sequence[Atom], relation_id: Callable[[Atom], int]) -> float:
        """Return the expected number of rows in the join of some atoms.

        Each value shared by k positions divides the product of the sizes k - 1 times by the number of
        values there are; equal positions by the smaller number that skewed degrees amount to.
        """
        rows = 1.0
        places: dict[Variable, list[tuple[int, Side]]] = defaultdict(list)
        for atom in atoms:
            relation = ALL if isinstance(atom.relation, Template) else relation_id(atom)
            sides = self._of(relation)
            rows *= sides[0].triples
            for side, term in ((0, atom.subject), (1, atom.object)):
                if isinstance(term, Variable):
                    places[term].append((relation, 0 if side == 0 else 1))
                elif not isinstance(term, Template):
                    rows /= sides[side].values
        for positions in places.values():
            for one, other in pairwise(positions):
                rows /= self._values(one, other)
        return rows

    def _of(self, relation: int) -> tuple[_Degrees, _Degrees]:
        nothing = _Degrees(1.0, 1.0, 1.0)
        return self.degrees.get(relation, (nothing, nothing))

    def _values(self, one: tuple[int, Side], other: tuple[int, Side]) -> float:
        left, right = self._of(one[0])[one[1]], self._of(other[0])[other[1]]
        if one == other:
            return left.triples**2 / left.squares
        if one[0] == other[0] == ALL:
            return left.triples**2 / max(self.two_paths, 1.0)
        return max(left.values, right.values)


def measure(session: Session, table: str) -> Statistics:
    """Compute the statistics of a table of triples s, r, o in the database."""
    sides: list[dict[int, _Degrees]] = []
    for column in ("s", "o"):
        grouped = f"SELECT r, count(*) AS d FROM {table} GROUP BY r, {column}"
        every = f"SELECT {ALL} AS r, count(*) AS d FROM {table} GROUP BY {column}"
        moments = "r, sum(d), count(*), sum(CAST(d AS DOUBLE) * d)"
        relation, triples, values, squares = session.columns(
            f"SELECT {moments} FROM (({grouped}) UNION ALL ({every})) AS degrees GROUP BY r"
        )
        sides.append(
            {
                int(r): _Degrees(float(n), float(v), float(q))
                for r, n, v, q in zip(relation, triples, values, squares, strict=True)
            }
        )
    out, into = (f"SELECT {c} AS v, count(*) AS d FROM {table} GROUP BY {c}" for c in ("s", "o"))
    (paths,) = session.columns(
        f"SELECT coalesce(sum(CAST(a.d AS DOUBLE) * b.d), 0) FROM ({out}) AS a, ({into}) AS b WHERE a.v = b.v"
    )
    return Statistics({r: (degrees, sides[1][r]) for r, degrees in sides[0].items()}, float(paths[0]))


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
