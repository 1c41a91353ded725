"""`noise.parquet`: what is wrong with P_train and N_train, triple by triple."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from loginfer.benchmark.noise import KINDS, Noise
from loginfer.benchmark.table_reading import codes_of, read_groups, renamed, triples_of
from loginfer.benchmark.tables import TRIPLE_COLUMNS, NameColumns, coded, row_groups, word_type, write_parts
from loginfer.benchmark.values import Benchmark
from loginfer.errors import InputError
from loginfer.kg import Triples

if TYPE_CHECKING:
    from loginfer.kg.scan.builder import GraphBuilder

__all__ = ["NOISE_COLUMNS", "NoiseTable", "read_noise", "write_noise"]

NOISE_COLUMNS = {
    **TRIPLE_COLUMNS,
    "kind": "flipped-positive: a conclusion that stands in N_train; flipped-negative: a negative that stands "
    "in P_train; missing: a premise that P_train does not have.",
}


@dataclass(frozen=True, slots=True)
class NoiseTable:
    """The rows of `noise.parquet`: int32[n, 3], and int8[n], places in `KINDS`."""

    triples: Triples
    kind: npt.NDArray[np.int8]

    def finish(self, entity_ids: npt.NDArray[np.int32], relation_ids: npt.NDArray[np.int32]) -> NoiseTable:
        """Return the table over the final vocabularies, sorted by triple.

        Raises
        ------
        InputError
            If a triple is there twice.
        """
        triples = renamed(self.triples, entity_ids, relation_ids)
        order = np.lexsort((triples[:, 2], triples[:, 1], triples[:, 0]))
        triples = triples[order]
        if len(triples) > 1 and (triples[1:] == triples[:-1]).all(axis=1).any():
            raise InputError("a triple is there twice")
        return NoiseTable(triples, self.kind[order])


def write_noise(benchmark: Benchmark, noise: Noise, stream: IO[bytes]) -> None:
    """Write one row for each triple."""
    import pyarrow as pa

    names = NameColumns(benchmark)
    schema = pa.schema([*names.fields(), ("kind", word_type())])
    write_parts(
        stream,
        schema,
        (
            [*names.columns(noise.triples[start:stop]), coded(noise.kind[start:stop], KINDS)]
            for start, stop in row_groups(len(noise))
        ),
    )


def read_noise(path: Path, builder: GraphBuilder) -> NoiseTable:
    """Read `noise.parquet`; its names are interned in the builder's tables."""
    parts = [(np.empty((0, 3), dtype=np.int32), np.empty(0, dtype=np.int8))]
    parts += (
        (triples_of(columns, builder), codes_of(columns["kind"], KINDS, "kind"))
        for columns in read_groups(path, NOISE_COLUMNS, nullable=())
    )
    triples, kind = (np.concatenate(column) for column in zip(*parts, strict=True))
    return NoiseTable(triples, kind)
