"""Rules by DuckDB: from memory or disk, for graphs larger than memory."""

from loginfer.engine.duckdb.engine import DuckDBEngine

__all__ = ["DuckDBEngine"]
