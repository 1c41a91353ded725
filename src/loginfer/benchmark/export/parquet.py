"""Parquet: a file for each set with the columns subject, relation, object, label, method and split.

Beside them are the rules, the provenance of the conclusions and the origins of the negatives, as tables.
"""

from __future__ import annotations

from loginfer.benchmark.export.base import (
    ExportFormat,
    Job,
    Written,
    file_with,
    read_triples,
    triple_writer,
    write_side_tables,
)

_USAGE = """\
```python
import duckdb

duckdb.sql("SELECT * FROM 'path/of/this/folder/test*.parquet' LIMIT 10").show()
```

Any program that reads Parquet will do: pandas, Polars, Arrow, Spark. `label` is 1 for positives and 0 for
negatives; `method` says which negatives, and is empty for positives.
"""


def write(job: Job) -> Written:
    """Write the tables."""
    write_set = triple_writer(job, words=True)
    for role, triples in job.sets():
        write_set(job.folder / FORMAT.file_of(role), role, triples)
    return Written(write_side_tables(job), _USAGE)


FORMAT = ExportFormat("parquet", write, lambda folder, about: read_triples, file_with(".parquet"), any_name=True)
