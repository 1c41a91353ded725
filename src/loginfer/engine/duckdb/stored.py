"""A graph whose triples stay in a database, and how files become one.

The vocabularies are in memory (the names' bytes and nothing more); the triples are not. A `StoredGraph`
answers what rules need (ids, signature, membership) from the database and loads its triples only when
somebody asks for the array itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from loginfer.engine.duckdb.session import DuckDBSession
from loginfer.errors import InputError
from loginfer.kg import TYPE_NAMES, KnowledgeGraph, Triples, Vocabulary
from loginfer.kg.formats.parquet import COLUMN_NAMES
from loginfer.logic.sql import quote_identifier, quote_text

__all__ = ["StoredGraph", "bad_line", "ingest", "read_stored_graph"]

FORMAT = 1


class StoredGraph(KnowledgeGraph):
    """A knowledge graph in a database: same vocabularies, ids and answers, triples loaded when touched.

    `triples`, and what is built from it (`index`, `packed`, `with_triples`, `with_names`), brings the
    whole graph into memory; length, signature and membership do not.

    Parameters
    ----------
    session
        The database, with a table `triples` of ids s, r, o.
    entities, relations
        The vocabularies.
    type_predicate
        As for `KnowledgeGraph`.
    """

    def __init__(
        self,
        session: DuckDBSession,
        entities: Vocabulary,
        relations: Vocabulary,
        type_predicate: str | None,
    ) -> None:
        nothing = np.empty((0, 3), dtype=np.int32)
        super().__init__(entities, relations, nothing, type_predicate=type_predicate)
        del self.__dict__["triples"]  # from here on the property below answers
        self._session = session

    @cached_property
    def triples(self) -> Triples:  # type: ignore[override]
        """int32[n, 3], loaded from the database at the first use."""
        columns = self._session.columns("SELECT s, r, o FROM triples ORDER BY s, r, o")
        triples = np.stack(columns, axis=1).astype(np.int32)
        triples.setflags(write=False)
        return triples

    @cached_property
    def _size(self) -> int:
        return int(self._session.row("SELECT count(*) FROM triples")[0])

    def __len__(self) -> int:
        return self._size

    def _ids(self, query: str) -> npt.NDArray[np.int32]:
        ids = self._session.columns(query)[0].astype(np.int32)
        ids.setflags(write=False)
        return ids

    @cached_property
    def preds(self) -> npt.NDArray[np.int32]:
        """Preds(K) without the types: ids of all relations in use, the type predicate included."""
        return self._ids("SELECT DISTINCT r FROM triples ORDER BY r")

    @cached_property
    def types(self) -> npt.NDArray[np.int32]:
        """Types(K): ids, in the vocabulary of entities, of the types in use."""
        return self._ids(f"SELECT DISTINCT o FROM triples WHERE r = {self._type_id} ORDER BY o")

    @cached_property
    def consts(self) -> npt.NDArray[np.int32]:
        """Consts(K): ids of the constants in use; a type counts only if it is used as a constant too."""
        objects = f"SELECT o FROM triples WHERE r <> {self._type_id}"
        return self._ids(f"SELECT s FROM triples UNION {objects} ORDER BY 1")

    @property
    def _type_id(self) -> int:
        return -1 if self.type_relation is None else self.type_relation

    def contains(self, triples: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return bool[m]: which of these triples of ids are in the graph."""
        wanted = np.asarray(triples, dtype=np.int32).reshape(-1, 3)
        found = np.zeros(len(wanted), dtype=bool)
        columns: dict[str, Any] = {name: wanted[:, i] for i, name in enumerate("sro")}
        with self._session.arrow({"i": np.arange(len(wanted)), **columns}) as name:
            (places,) = self._session.columns(
                f"SELECT a.i FROM {name} AS a, triples AS k WHERE a.s = k.s AND a.r = k.r AND a.o = k.o"
            )
        found[places] = True
        return found


# -- from files to ids --------------------------------------------------------------------------------------


def ingest(
    session: DuckDBSession,
    paths: Sequence[Path],
    *,
    type_predicate: str | None = None,
    entities: Iterable[str] = (),
    relations: Iterable[str] = (),
) -> None:
    """Read files of names into the tables `entities`, `relations` and `triples` of a new database.

    Ids are places in the order of the names' UTF-8 bytes, which is how DuckDB compares texts: the same
    ids that a `KnowledgeGraph` of these triples has.

    Parameters
    ----------
    session
        A database of its own.
    paths
        TSV/TXT (also .gz, .zst) or Parquet files; the graph is their union.
    type_predicate
        As for `KnowledgeGraph`.
    entities, relations
        Names that the vocabularies shall hold besides, such as those of rules' heads.
    """
    names = [_names_query(session, path) for path in paths]
    session.create(
        "names", "\nUNION ALL\n".join(names) if names else "SELECT '' AS s, '' AS r, '' AS o LIMIT 0"
    )
    (empty,) = session.row("SELECT count(*) FROM names WHERE s IS NULL OR r IS NULL OR o IS NULL")
    if empty:
        listed = ", ".join(f"`{path}`" for path in paths)
        raise InputError(f"{empty:,} triples in {listed} have an empty subject, relation or object")
    if type_predicate is None:
        # As in a graph in memory: the data's own type predicate is not doubled by the rules' rdf:type.
        wanted = ", ".join(quote_text(name) for name in TYPE_NAMES)
        own = {name for (name,) in session.rows(f"SELECT DISTINCT r FROM names WHERE r IN ({wanted})")}
        type_predicate = next((name for name in TYPE_NAMES if name in own), None)
    if type_predicate:
        relations = [name for name in relations if name not in TYPE_NAMES]
    for table, query, more in (
        ("entities", "SELECT s AS name FROM names UNION ALL SELECT o FROM names", entities),
        ("relations", "SELECT r AS name FROM names", relations),
    ):
        with session.arrow({"name": _texts(more)}) as extra:
            session.create(
                table,
                "SELECT CAST(row_number() OVER (ORDER BY name) - 1 AS INTEGER) AS id, name FROM "
                f"(SELECT DISTINCT name FROM ({query} UNION ALL SELECT name FROM {extra}) AS a) AS b "
                "ORDER BY id",
                keep=True,
            )
    session.create(
        "triples",
        "SELECT DISTINCT s.id AS s, r.id AS r, o.id AS o "
        "FROM names AS n, entities AS s, relations AS r, entities AS o "
        "WHERE n.s = s.name AND n.r = r.name AND n.o = o.name ORDER BY r, s, o",
        keep=True,
    )
    session.drop("names")
    predicate = "NULL" if type_predicate is None else quote_text(type_predicate)
    session.create("about", f"SELECT {FORMAT} AS format, CAST({predicate} AS VARCHAR) AS type", keep=True)


def read_stored_graph(session: DuckDBSession, database: Path) -> StoredGraph:
    """Return the graph that `ingest` left in a database."""
    import duckdb

    try:
        format_, type_predicate = session.row("SELECT format, type FROM about")
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise InputError(
            f"`{database}` is a DuckDB database, but holds no graph",
            hint="make one from files with DuckDBEngine.from_files",
        ) from error
    if format_ != FORMAT:
        raise InputError(
            f"`{database}` has format {format_}, this version reads {FORMAT}", hint="make it anew"
        )
    return StoredGraph(
        session, _vocabulary(session, "entities"), _vocabulary(session, "relations"), type_predicate
    )


def _names_query(session: DuckDBSession, path: Path) -> str:
    """Return a query for the names s, r, o in a file."""
    if not path.is_file():
        raise InputError(f"no file `{path}`", hint="check the path")
    text = quote_text(str(path))
    plain = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    if plain.endswith(".parquet"):
        s, r, o = _parquet_columns(session, text, path)
        return f"SELECT {s} AS s, {r} AS r, {o} AS o FROM read_parquet({text})"
    if plain.endswith((".tsv", ".txt")):
        return (
            f"SELECT s, r, o FROM read_csv({text}, auto_detect = false, delim = '\t', header = false, "
            "quote = '', escape = '', columns = {'s': 'VARCHAR', 'r': 'VARCHAR', 'o': 'VARCHAR'})"
        )
    raise InputError(
        f"cannot ingest `{path}`: unknown file ending",
        hint="use .tsv, .txt (also with .gz or .zst) or .parquet; `loginfer kg convert` makes them",
    )


def _parquet_columns(session: DuckDBSession, text: str, path: Path) -> list[str]:
    """Return the columns for subject, relation and object, by the names that our own reader knows."""
    found = {str(row[0]).lower(): row for row in session.rows(f"DESCRIBE SELECT * FROM read_parquet({text})")}
    for names in COLUMN_NAMES:
        if all(name in found for name in names):
            for name in names:
                if found[name][1] != "VARCHAR":
                    raise InputError(
                        f"column `{found[name][0]}` holds {found[name][1]}, expected strings", where=str(path)
                    )
            return [quote_identifier(str(found[name][0])) for name in names]
    raise InputError("expected columns subject, relation, object", where=str(path))


def bad_line(error: Exception) -> InputError | None:
    """Return what DuckDB says about a line it cannot read as an error of ours, if it says so."""
    text = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line is None:
        return None
    file = re.search(r"^\s*file = (.*)$", text, re.MULTILINE)
    found = re.search(r"Expected Number of Columns: 3 Found: (\d+)", text)
    message = "expected three columns, separated by tabs"
    if found:
        message += f", found {found[1]}"
    elif "unicode" in text:
        message += ", in UTF-8"
    return InputError(message, where=f"{file[1].strip() if file else 'input'}:{line[1]}")


def _texts(names: Iterable[str]) -> Any:
    import pyarrow as pa

    return pa.array(sorted(set(names)), type=pa.string())


def _vocabulary(session: DuckDBSession, table: str) -> Vocabulary:
    """Load a table of names; the bytes come over as Arrow has them, without a Python string a name."""
    import pyarrow as pa

    column = session.arrow_column(f"SELECT name FROM {table} ORDER BY id")
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
