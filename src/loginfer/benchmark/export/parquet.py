"""Parquet: a file for each set with the columns subject, relation, object, label, method and split.

Beside them are the rules, the provenance of the conclusions and the origins of the negatives, as tables.
"""

from __future__ import annotations

from loginfer.benchmark.export import base


def write(job: base.Job) -> base.Written:
    """Write the tables."""
    write_set = base.triple_writer(job, words=True)
    for role, triples in job.sets():
        write_set(job.folder / FORMAT.file_of(role), role, triples)
    return base.Written(base.write_side_tables(job), base.usage("parquet"))


FORMAT = base.ExportFormat(
    "parquet", write, lambda folder, about: base.read_triples, base.file_with(".parquet"), any_name=True
)
