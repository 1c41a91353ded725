"""DuckDB mining all closed path rules up to length 2 in two queries, with exact counts.

Both directions of every triple stand in one table, with the directed relation d = 2·R or 2·R + 1. A path read
backwards connects the same pairs the other way round; so only one of the two is joined, with heads both ways.
"""

from __future__ import annotations

from typing import Any

from perf.peers.duckdb_tables import connect

DIRECTED = """CREATE OR REPLACE TABLE d AS
    SELECT s, 2 * r AS r, o FROM e UNION ALL SELECT o, 2 * r + 1, s FROM e"""
ONE = """
    WITH c AS (SELECT h.r AS h, b.r AS b, count(*) AS correct FROM d h JOIN d b ON h.s = b.s AND h.o = b.o
               WHERE h.r % 2 = 0 AND h.r <> b.r GROUP BY ALL HAVING count(*) >= $support),
         p AS (SELECT r AS b, count(*) AS predictions FROM d GROUP BY ALL)
    SELECT 1 AS length, correct, predictions FROM c JOIN p USING (b)
    WHERE correct / (predictions + 5) >= $confidence"""
# Heads are joined first, so that bodies without enough correct predictions are never counted.
TWO = """
    WITH c AS MATERIALIZED (
        SELECT h, b, g, count(*) AS correct FROM (
            SELECT DISTINCT h.r AS h, a.r AS b, z.r AS g, h.s, h.o
            FROM d h JOIN d a ON a.s = h.s JOIN d z ON z.s = a.o AND z.o = h.o WHERE h.r % 2 = 0)
        GROUP BY ALL HAVING count(*) >= $support),
    w AS MATERIALIZED (
        SELECT DISTINCT if(once, b, xor(g, 1)) AS b, if(once, g, xor(b, 1)) AS g
        FROM (SELECT b, g, b * 65536 + g <= xor(g, 1) * 65536 + xor(b, 1) AS once FROM c)),
    p AS MATERIALIZED (
        SELECT b, g, count(*) AS predictions FROM (
            SELECT DISTINCT w.b, w.g, a.s, z.o
            FROM w JOIN d a ON a.r = w.b JOIN d z ON z.r = w.g AND z.s = a.o WHERE a.s <> z.o)
        GROUP BY ALL),
    q AS (SELECT b, g, predictions FROM p UNION SELECT xor(g, 1), xor(b, 1), predictions FROM p)
    SELECT 2 AS length, correct, predictions FROM c JOIN q USING (b, g)
    WHERE correct / (predictions + 5) >= $confidence"""


def mine(triples: str, min_support: int, min_confidence: float) -> Any:
    """Prepare. The summary is how many rules of each length there are, and the sums of their counts."""
    connection = connect(triples)
    connection.execute(DIRECTED)
    values = {"support": min_support, "confidence": min_confidence}

    def call() -> Any:
        return [
            connection.execute(
                f"SELECT count(*), sum(correct)::BIGINT, sum(predictions)::BIGINT FROM ({query})", values
            ).fetchone()
            for query in (ONE, TWO)
        ]

    return call, lambda found: [list(map(int, row)) for row in found]
