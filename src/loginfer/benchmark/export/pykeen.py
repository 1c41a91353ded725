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


def write(job: base.Job) -> base.Written:
    """Write lines of names and the maps."""
    graph = job.benchmark.graph
    entities, relations = list(graph.entities), list(graph.relations)
    texts = base.Texts([_quoted(name) for name in entities], [_quoted(name) for name in relations])
    base.write_named_sets(job, texts, empty=False)
    for name, words in ((ENTITIES, entities), (RELATIONS, relations)):
        base.write_text(job.folder / name, _map(words))
    files = [(ENTITIES, "the id of each constant and type"), (RELATIONS, "the id of each relation")]
    return base.Written(files, base.usage("pykeen"))


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
