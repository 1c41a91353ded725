"""The files of RotatE's code (KnowledgeGraphEmbedding) and of the many programs that took them over.

`entities.dict` and `relations.dict` have an id and a name a line, the others a triple of names. The readers
strip each line, so a name must not begin or end with white space.
"""

from __future__ import annotations

import re

from loginfer.benchmark.export.base import (
    ExportFormat,
    Job,
    Written,
    read_named_lines,
    safe_texts,
    write_id_names,
    write_named_sets,
)

ENTITIES, RELATIONS = "entities.dict", "relations.dict"
_STRIPPED = re.compile(r"\A\s+|\s+\Z")

_USAGE = """\
```sh
python -u codes/run.py --do_train --do_valid --do_test --data_path path/of/this/folder \\
    --model RotatE --double_entity_embedding --save_path models/RotatE
```

The program draws its own negatives, and does not look at those in the files beside.
"""


def write(job: Job) -> Written:
    """Write the dictionaries and lines of names."""
    texts = safe_texts(job.benchmark.graph, _STRIPPED, _STRIPPED)
    write_id_names(job, (ENTITIES, RELATIONS), texts)
    write_named_sets(job, texts)
    files = [(ENTITIES, "ids and names of constants and types"), (RELATIONS, "ids and names of relations")]
    return Written(files, _USAGE, texts.about, texts.notes)


FORMAT = ExportFormat("rotate", write, lambda folder, about: read_named_lines(about))
