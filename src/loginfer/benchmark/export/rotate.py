"""The files of RotatE's code (KnowledgeGraphEmbedding) and of the many programs that took them over.

`entities.dict` and `relations.dict` have an id and a name a line, the others a triple of names. The readers
strip each line, so a name must not begin or end with white space.
"""

from __future__ import annotations

import re

from loginfer.benchmark.export import base

ENTITIES, RELATIONS = "entities.dict", "relations.dict"
_STRIPPED = re.compile(r"\A\s+|\s+\Z")

_USAGE = """\
```sh
python -u codes/run.py --do_train --do_valid --do_test --data_path path/of/this/folder \\
    --model RotatE --double_entity_embedding --save_path models/RotatE
```

The program draws its own negatives, and does not look at those in the files beside.
"""


def write(job: base.Job) -> base.Written:
    """Write the dictionaries and lines of names."""
    texts = base.safe_texts(job.benchmark.graph, _STRIPPED, _STRIPPED)
    base.write_id_names(job, (ENTITIES, RELATIONS), texts)
    base.write_named_sets(job, texts)
    files = [(ENTITIES, "ids and names of constants and types"), (RELATIONS, "ids and names of relations")]
    return base.Written(files, _USAGE, texts.about, texts.notes)


FORMAT = base.ExportFormat("rotate", write, lambda folder, about: base.read_named_lines(about))
