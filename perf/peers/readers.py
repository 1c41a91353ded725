"""Reading triples and encoding their names as numbers, by Polars and by pyoxigraph."""

from __future__ import annotations

from typing import Any


def polars_tsv(files: list[str]) -> Any:
    """Prepare Polars' reader of tab-separated text, all columns categorical."""

    def call() -> Any:
        import polars as pl

        columns = dict.fromkeys("sro", pl.Categorical)
        options: dict[str, Any] = {"separator": "\t", "has_header": False, "quote_char": None}
        frames = [pl.read_csv(file, schema=columns, **options) for file in files]
        return pl.concat(frames).select(pl.all().to_physical())

    return call, len


def polars_parquet(file: str) -> Any:
    """Prepare Polars' reader of Parquet, all columns made categorical."""

    def call() -> Any:
        import polars as pl

        return pl.read_parquet(file).select(pl.all().cast(pl.Categorical).to_physical())

    return call, len


def oxigraph_ntriples(file: str) -> Any:
    """Prepare pyoxigraph's parser and a dictionary for each kind of name."""

    def call() -> Any:
        import numpy as np
        import pyoxigraph

        entities: dict[Any, int] = {}
        relations: dict[Any, int] = {}
        ids = []
        for s, r, o, _ in pyoxigraph.parse(path=file, format=pyoxigraph.RdfFormat.N_TRIPLES):
            ids.append(
                (
                    entities.setdefault(s, len(entities)),
                    relations.setdefault(r, len(relations)),
                    entities.setdefault(o, len(entities)),
                )
            )
        return np.array(ids, dtype=np.int32)

    return call, len
