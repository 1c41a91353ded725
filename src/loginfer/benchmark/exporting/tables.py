"""Parquet files of exports: sets of triples with labels, and what else is known as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from loginfer.benchmark.exporting.interface import Job, NamedTriple
from loginfer.benchmark.layout import Role
from loginfer.benchmark.tables import (
    NameColumns,
    coded,
    row_groups,
    word_type,
    write_negatives,
    write_parts,
    write_provenance,
)
from loginfer.benchmark.values import SPLITS, Benchmark, Origins
from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg import Triples

__all__ = ["LABELS", "NOISE", "ORIGINS", "PROVENANCE", "RULES", "read_triples", "triple_writer", "write_more"]

LABELS = ("negative", "positive")
RULES, PROVENANCE, ORIGINS = "rules.parquet", "provenance.parquet", "origins.parquet"
NOISE = "noise.parquet"


def triple_writer(job: Job, *, words: bool) -> Callable[[Path, Role, Triples], None]:
    """Return what writes a set of triples with the columns subject, relation, object and label.

    Parameters
    ----------
    job
        What is written.
    words
        Whether the columns method and split follow.
    """
    import pyarrow as pa

    names = NameColumns(job.benchmark)
    more = [("method", word_type()), ("split", word_type())] if words else []
    schema = pa.schema([*names.fields(), ("label", pa.int64()), *more])

    def columns(role: Role, triples: Triples) -> list[Any]:
        first = np.zeros(len(triples), dtype=np.int8)
        found = [*names.columns(triples), pa.array(np.full(len(triples), int(role.method is None)))]
        if words:
            positive = np.full(len(triples), role.method is None)
            found.append(coded(first, [role.method or ""], missing=positive))
            found.append(coded(first + np.int8(SPLITS.index(role.split)), SPLITS))
        return found

    def write(path: Path, role: Role, triples: Triples) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            parts = (columns(role, triples[start:stop]) for start, stop in row_groups(len(triples)))
            write_parts(stream, schema, parts)

    return write


def write_more(job: Job) -> list[tuple[str, str]]:
    """Write rules, provenance, origins of negatives and noise, as far as they are known.

    Returns
    -------
    The files, each with what it holds.
    """
    benchmark, files = job.benchmark, []
    if benchmark.rules:
        _write_rules(job)
        files.append((RULES, "the rules, counted from 0 in the order of the rows"))
    if benchmark.provenance is not None and len(benchmark.provenance):
        with (job.folder / PROVENANCE).open("wb") as stream:
            write_provenance(benchmark, benchmark.provenance, stream)
        files.append((PROVENANCE, "for every conclusion each rule that derives it, with one witness"))
    if any(map(len, _origins(benchmark.clean))):
        with (job.folder / ORIGINS).open("wb") as stream:
            write_negatives(benchmark.clean, stream)
        before = "" if benchmark.noise is None else ", before the noise"
        files.append((ORIGINS, f"for every negative where it came from{before}"))
    if benchmark.noise is not None:
        from loginfer.benchmark.noise_tables import write_noise

        with (job.folder / NOISE).open("wb") as stream:
            write_noise(benchmark, benchmark.noise, stream)
        files.append((NOISE, "what is wrong with the positives and negatives of train on purpose"))
    return files


def _origins(benchmark: Benchmark) -> Iterator[Origins]:
    for made in benchmark.negatives.values():
        yield from made.origins.values()


def _write_rules(job: Job) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rules = job.benchmark.rules
    columns: dict[str, Any] = {
        "rule": pa.array([str(known.rule) for known in rules], pa.string()),
        "pattern": pa.array([known.pattern for known in rules], pa.string()),
        "support": pa.array([known.support for known in rules], pa.int64()),
        "new": pa.array([known.new for known in rules], pa.int64()),
        "sampled": pa.array([known.sampled for known in rules], pa.int64()),
        "confidence": pa.array([known.confidence for known in rules], pa.float64()),
        "overlap": pa.array([known.overlap for known in rules], pa.float64()),
    }
    pq.write_table(pa.table(columns), job.folder / RULES, compression="zstd", store_schema=False)


def read_triples(path: Path) -> list[NamedTriple]:
    """Read the triples of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with reading(path), pq.ParquetFile(path) as file:
            found = file.read(columns=["subject", "relation", "object"])
            columns = [found.column(name).to_pylist() for name in ("subject", "relation", "object")]
    except (pa.ArrowException, KeyError, OSError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise InputError(f"no readable Parquet file of triples: {why}", where=str(path)) from error
    return list(zip(*columns, strict=True))
