"""The files of RotatE's code (KnowledgeGraphEmbedding) and of the many programs that took them over.

`entities.dict` and `relations.dict` have an id and a name a line, the others a triple of names. The readers
strip each line, so a name must not begin or end with white space.
"""

from __future__ import annotations

import re

from loginfer.benchmark.export import base

ENTITIES, RELATIONS = "entities.dict", "relations.dict"
_STRIPPED = re.compile(r"\A\s+|\s+\Z")


def write(job: base.Job) -> base.Written:
    """Write the dictionaries and lines of names."""
    texts = base.safe_texts(job.benchmark.graph, _STRIPPED, _STRIPPED)
    base.write_id_names(job, (ENTITIES, RELATIONS), texts)
    base.write_named_sets(job, texts)
    files = [(ENTITIES, "ids and names of constants and types"), (RELATIONS, "ids and names of relations")]
    return base.Written(files, base.usage("rotate"), texts.about, texts.notes)


FORMAT = base.ExportFormat("rotate", write, lambda folder, about: base.read_named_lines(about))
