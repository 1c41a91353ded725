"""DuckDB counting every body of a pattern in one query.

One thread costs DuckDB the least CPU time here. Its optimizer `partial_aggregate_pushdown` makes the
triangle ten times as expensive and is switched off; for the other queries it makes no difference.
"""

from __future__ import annotations

from typing import Any

BEST = "partial_aggregate_pushdown"

# `kg` holds the triples as columns s, r, o; `e` holds those with s <> o. The count is the last column.
QUERIES = {
    "single": "SELECT r, count(*) AS n FROM kg GROUP BY ALL",
    # Sum-product: count the ends per middle entity first.
    "composition": """
        WITH i AS (SELECT o AS y, r, count(*) AS c FROM kg GROUP BY ALL),
             j AS (SELECT s AS y, r, count(*) AS c FROM kg GROUP BY ALL)
        SELECT i.r, j.r, sum(i.c * j.c)::BIGINT AS n FROM i JOIN j USING (y) GROUP BY ALL""",
    "intersection": """
        SELECT a.r, b.r, count(*) AS n FROM kg a JOIN kg b ON a.s = b.s AND a.o = b.o AND a.r < b.r
        GROUP BY ALL""",
    "triangle": """
        SELECT a.r, b.r, c.r, count(*) AS n FROM e a
        JOIN e b ON a.s = b.s JOIN e c ON c.s = a.o AND c.o = b.o GROUP BY ALL""",
    # The same, helped by hand: paths first, their ends looked up as one packed key. Needs the
    # optimizer's own join order switched off.
    "triangle by hand": """
        SELECT a.r, b.r, c.r, count(*) AS n FROM e a JOIN e c ON c.s = a.o
        JOIN (SELECT s::BIGINT << 32 | o AS ends, r FROM e) b ON (a.s::BIGINT << 32 | c.o) = b.ends
        GROUP BY ALL""",
    # Two-paths aggregated by their ends and relations, joined with themselves; every unordered pair
    # once. Still counts y = z, so this is less than the question.
    "diamond with y = z": """
        WITH d AS MATERIALIZED (
            SELECT a.s AS x, b.o AS w, a.r << 16 | b.r AS k, count(*) AS c
            FROM e a JOIN e b ON a.o = b.s WHERE a.s <> b.o GROUP BY ALL)
        SELECT p.k, q.k, sum(p.c * q.c)::BIGINT AS n
        FROM d p JOIN d q ON p.x = q.x AND p.w = q.w AND p.k <= q.k GROUP BY ALL""",
    # The diamonds with y = z subtracted: exactly the table.
    "diamond": """
        WITH d AS MATERIALIZED (
            SELECT a.s AS x, b.o AS w, a.r << 16 | b.r AS k, count(*) AS c
            FROM e a JOIN e b ON a.o = b.s WHERE a.s <> b.o GROUP BY ALL),
        i AS MATERIALIZED (
            SELECT a.s AS x, a.o AS y, a.r AS r, b.r AS s FROM e a JOIN e b ON a.s = b.s AND a.o = b.o),
        u AS (
            SELECT p.k AS k, q.k AS l, sum(p.c * q.c)::BIGINT AS n
            FROM d p JOIN d q ON p.x = q.x AND p.w = q.w GROUP BY ALL
            UNION ALL
            SELECT i.r << 16 | j.r, i.s << 16 | j.s, -count(*)
            FROM i JOIN i j ON i.y = j.x WHERE i.x <> j.y GROUP BY ALL)
        SELECT k, l, sum(n)::BIGINT AS n FROM u GROUP BY ALL HAVING sum(n) > 0""",
}


def connect(triples: str, threads: int = 1, disabled: str = BEST) -> Any:
    """Open DuckDB over triples stored as an array: tables `kg` and `e`."""
    import duckdb
    import numpy as np
    import pyarrow as pa

    array = np.load(triples)
    connection = duckdb.connect(config={"threads": threads})
    columns = pa.table({name: np.ascontiguousarray(array[:, i]) for i, name in enumerate("sro")})
    connection.register("columns", columns)
    connection.execute("CREATE TABLE kg AS SELECT * FROM columns")
    connection.execute("CREATE TABLE e AS SELECT * FROM kg WHERE s <> o")
    connection.execute(f"SET disabled_optimizers = '{disabled}'")
    return connection


def rank(triples: str, query: str, threads: int = 1, disabled: str = BEST) -> Any:
    """Prepare one of the queries. The summary is the number of bodies and of all their witnesses."""
    connection = connect(triples, threads, disabled)

    def call() -> Any:
        connection.execute(f"CREATE OR REPLACE TABLE counted AS {QUERIES[query]}")
        return connection

    def summarise(connection: Any) -> list[int]:
        return list(connection.execute("SELECT count(*), sum(n)::BIGINT FROM counted").fetchone())

    return call, summarise
