"""DuckDB applying rules: one `SELECT DISTINCT` a body, on one thread, which costs it the least."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perf.peers.duckdb_tables import connect

# {0}, {1}, … are the relations of the body; the columns are the head's two variables.
QUERIES = {
    "triangle": """
        SELECT DISTINCT a.s, a.o FROM e a JOIN e b ON a.s = b.s JOIN e c ON c.s = a.o AND c.o = b.o
        WHERE a.r = {0} AND b.r = {1} AND c.r = {2}""",
    "diamond": """
        SELECT DISTINCT a.s, a.o
        FROM e a JOIN e b ON a.s = b.s JOIN e c ON c.s = a.o JOIN e d ON d.s = b.o AND d.o = c.o
        WHERE a.r = {0} AND b.r = {1} AND c.r = {2} AND d.r = {3} AND a.o <> b.o AND a.s <> c.o""",
    # The same, helped by hand: forget z first, remembering only whether there are two of them.
    "diamond by hand": """
        WITH bd AS (
            SELECT b.s AS x, d.o AS w, min(b.o) AS low, max(b.o) AS high FROM e b JOIN e d ON d.s = b.o
            WHERE b.r = {1} AND d.r = {3} AND b.s <> d.o GROUP BY ALL)
        SELECT DISTINCT a.s, a.o
        FROM e a JOIN e c ON c.s = a.o JOIN bd ON bd.x = a.s AND bd.w = c.o
        WHERE a.r = {0} AND c.r = {2} AND (low <> a.o OR high <> a.o)""",
    "chain": """
        SELECT DISTINCT a.s, c.o FROM kg a JOIN kg b ON a.o = b.s JOIN kg c ON b.o = c.s
        WHERE a.r = {0} AND b.r = {1} AND c.r = {2}""",
}


def conclude(triples: str, bodies: str, pattern: str, query: str | None = None) -> Any:
    """Prepare to count the distinct conclusions of each body; counting spares DuckDB handing them over."""
    connection = connect(triples)
    relations = json.loads(Path(bodies).read_text())[pattern]
    text = QUERIES[query or pattern]

    def call() -> list[int]:
        questions = (f"SELECT count(*) FROM ({text.format(*row)})" for row in relations)
        return [connection.execute(question).fetchone()[0] for question in questions]

    return call, list
