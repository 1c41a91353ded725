"""SQL, which is only written: a query for a body's witnesses over a table `triples(s, r, o)` of names."""

from __future__ import annotations

from loginfer.logic.dialects.base import Dialect, no_directive
from loginfer.logic.dialects.statements import lines
from loginfer.logic.scored import ScoredRule

__all__ = ["SQL"]


def _write(scored: ScoredRule) -> str:
    from loginfer.logic.sql import body_to_sql

    return f"-- {scored.rule}\n{body_to_sql(scored.rule)};"


def _looks_like(text: str) -> bool:
    return False


SQL = Dialect(
    name="sql",
    about="SQL, a query for the witnesses of a rule's body (written only)",
    example="SELECT t0.s AS x, t0.o AS y FROM triples AS t0 WHERE t0.r = 'worksFor';",
    statements=lines,
    read_directive=no_directive,
    read_statement=None,
    write_statement=_write,
    looks_like=_looks_like,
)
