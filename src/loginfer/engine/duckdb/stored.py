"""How files become a graph in a DuckDB database, and how it is opened again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from loginfer.engine.duckdb.session import DuckDBSession
from loginfer.engine.sql.stored import StoredGraph
from loginfer.engine.sql.vocabulary import vocabulary_of
from loginfer.errors import InputError
from loginfer.kg import TYPE_NAMES, Vocabulary
from loginfer.kg.formats.parquet import COLUMN_NAMES
from loginfer.logic.sql import quote_identifier, quote_text

__all__ = ["bad_line", "ingest", "read_stored_graph"]

FORMAT = 1


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
    return vocabulary_of(session.arrow_column(f"SELECT name FROM {table} ORDER BY id"))
