"""Parquet: a file for each set with the columns subject, relation, object, label, method and split.

Beside them are the rules, the provenance of the conclusions and the origins of the negatives, as tables.
"""

from __future__ import annotations

from loginfer.benchmark.export.base import (
    ExportFormat,
    Job,
    Written,
    read_triples,
    triple_writer,
    write_more,
    write_readme,
)
from loginfer.benchmark.folder.manifest import Role
from loginfer.benchmark.folder.manifest import file_of as text_file

_USAGE = """\
```python
import duckdb

duckdb.sql("SELECT * FROM 'path/of/this/folder/test*.parquet' LIMIT 10").show()
```

Any program that reads Parquet will do: pandas, Polars, Arrow, Spark. `label` is 1 for positives and 0 for
negatives; `method` says which negatives, and is empty for positives.
"""


def file_of(role: Role) -> str:
    """Return the file of a set: `train.parquet`, `train_neg_pa.parquet`, `context.parquet`."""
    return text_file(role).removesuffix(".txt") + ".parquet"


def write(job: Job) -> Written:
    """Write the tables and a README."""
    write_set = triple_writer(job, words=True)
    for role, triples in job.sets():
        write_set(job.folder / file_of(role), role, triples)
    write_readme(job, FORMAT, write_more(job), _USAGE)
    return Written()


FORMAT = ExportFormat(
    name="parquet", file_of=file_of, write=write, reader=lambda folder, about: read_triples, any_name=True
)
