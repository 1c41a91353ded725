"""A power-law graph of any size straight into a Parquet file, relation by relation: memory for one of them.

The laws are those of `power_law`; the graph is another one, since its triples are drawn in another order.

    python -m perf.power_law_file 100000000 graph.parquet
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from loginfer.files import atomic_path
from loginfer.kg import Vocabulary
from perf.power_law import Plan, numbered, planned

__all__ = ["write_power_law"]

ROWS = 2**20
COLUMNS = ("subject", "relation", "object")

Longs = npt.NDArray[np.int64]


def write_power_law(
    file: Path, triples: int, *, relations: int = 1000, entities: int | None = None, seed: int = 0
) -> None:
    """Write a graph; the same arguments give the same bytes.

    Parameters
    ----------
    file
        The Parquet file, with the columns subject, relation and object.
    triples, relations, entities, seed
        As for `power_law_graph`.
    """
    plan = planned(triples, relations=relations, entities=entities, seed=seed)
    names = _column(numbered("e", len(plan.ids)))
    schema = pa.schema([(column, pa.string()) for column in COLUMNS])
    with atomic_path(file, force=True) as part, pq.ParquetWriter(part, schema, compression="zstd") as sink:
        for relation, name in enumerate(numbered("r", relations)):
            pairs = _pairs(plan, relation)
            for first in range(0, len(pairs), ROWS):
                subjects, objects = np.divmod(pairs[first : first + ROWS], len(plan.ids))
                same = pa.repeat(pa.scalar(name, pa.string()), len(subjects))
                block = [names.take(pa.array(subjects)), same, names.take(pa.array(objects))]
                sink.write_table(pa.table([column.cast(pa.string()) for column in block], schema=schema))


def _pairs(plan: Plan, relation: int) -> Longs:
    """Return the distinct pairs of a relation, sorted, each as subject · constants + object."""
    wanted, size = int(plan.wanted[relation]), len(plan.ids)
    found = np.empty(0, dtype=np.int64)
    while len(found) < wanted:
        missing = wanted - len(found)
        subjects, objects = plan.draw(np.full(missing, relation))
        found = np.unique(np.concatenate([found, subjects * size + objects]))
    return found


def _column(names: Vocabulary) -> pa.LargeStringArray:
    buffers = (pa.py_buffer(np.ascontiguousarray(part)) for part in (names.offsets, names.data))
    return pa.LargeStringArray.from_buffers(len(names), *buffers)


def main() -> None:
    """Write a graph, and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triples", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--relations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    write_power_law(given.file, given.triples, relations=given.relations, seed=given.seed)
    print(f"{given.file}: {given.file.stat().st_size / 2**20:,.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
