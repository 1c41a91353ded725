"""PyKEEN: lines of names that `TriplesFactory.from_path` reads, and our ids as JSON.

PyKEEN numbers labels in the order of their code points, which is that of their UTF-8 bytes and so ours. It
sees only the names of the file it reads, however; with the maps beside the files its ids are always ours.

It reads lines as CSV does: a field that begins with a double quote goes on to the next one. Names that begin
so are quoted. It cannot read a file without lines: a set without triples has no file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from loginfer.benchmark.export import base
from loginfer.errors import InputError

ENTITIES, RELATIONS = "entity_to_id.json", "relation_to_id.json"

_USAGE = """\
```python
import json
from pathlib import Path

from pykeen.triples import TriplesFactory

folder = Path("path/of/this/folder")
ids = {
    f"{kind}_to_id": json.loads((folder / f"{kind}_to_id.json").read_text(encoding="utf-8"))
    for kind in ("entity", "relation")
}
train = TriplesFactory.from_path(folder / "train.txt", **ids)
test = TriplesFactory.from_path(folder / "test.txt", **ids)
```

The maps give every name the id that it has in LogInfer. Without them PyKEEN numbers the names of the file
that it reads, in the same order; ids differ as soon as one name is missing there.
"""


def write(job: base.Job) -> base.Written:
    """Write lines of names and the maps."""
    graph = job.benchmark.graph
    entities, relations = list(graph.entities), list(graph.relations)
    texts = base.Texts([_quoted(name) for name in entities], [_quoted(name) for name in relations])
    base.write_named_sets(job, texts, empty=False)
    for name, words in ((ENTITIES, entities), (RELATIONS, relations)):
        base.write_text(job.folder / name, _map(words))
    files = [(ENTITIES, "the id of each constant and type"), (RELATIONS, "the id of each relation")]
    return base.Written(files, _USAGE)


def _map(names: Sequence[str]) -> str:
    """Return names and ids as JSON, one a line."""
    lines = (f"{json.dumps(name, ensure_ascii=False)}: {number}" for number, name in enumerate(names))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if name.startswith('"') else name


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    if len(text) < 2 or not text.endswith('"'):
        raise InputError(f"`{text[:60]}` begins with a quote and does not end with one")
    return text[1:-1].replace('""', '"')


FORMAT = base.ExportFormat(
    "pykeen", write, lambda folder, about: base.read_named_lines(about, _unquoted), empty_sets=False
)
