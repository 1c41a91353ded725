"""OpenKE: files of numbers, each with the number of its lines in the first one.

`entity2id.txt` and `relation2id.txt` have a name and its id, the others the ids of head, tail and
relation, in this order. OpenKE splits at white space, so names have none.

`type_constrain.txt` has two lines for each relation, the heads and the tails that it has in train, valid or
test. OpenKE reads two lines for each line of `relation2id.txt`: a relation without triples has empty ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from loginfer.benchmark.benchmark import Benchmark
from loginfer.benchmark.export import base
from loginfer.benchmark.folder.manifest import Role
from loginfer.kg.formats.openke import ENTITIES, RELATIONS

TYPES = "type_constrain.txt"
HEAD_TAIL_RELATION = (0, 2, 1)
_SPACE = re.compile(r"\s")


def write(job: base.Job) -> base.Written:
    """Write names, triples and types."""
    texts = base.safe_texts(job.benchmark.graph, _SPACE, _SPACE)
    base.write_id_names(job, (ENTITIES, RELATIONS), texts, id_first=False, counted=True)
    for role, triples in job.sets():
        base.write_ids(job.folder / FORMAT.file_of(role), triples, HEAD_TAIL_RELATION, b" ", b"%d\n" % len(triples))
    with (job.folder / TYPES).open("w", encoding="ascii", newline="\n") as stream:
        stream.writelines(_types(job.benchmark))
    files = [
        (ENTITIES, "names and ids of constants and types"),
        (RELATIONS, "names and ids of relations"),
        (TYPES, "for each relation the heads, then the tails that it has in train, valid or test"),
    ]
    return base.Written(files, base.usage("openke"), texts.about, [*texts.notes, *_empty_sets(job.benchmark)])


def _empty_sets(benchmark: Benchmark) -> list[str]:
    """Warn of empty sets: OpenKE takes the first triple of each set without asking whether there is one."""
    empty = [f"`{FORMAT.file_of(Role(split))}`" for split, size in benchmark.positives.sizes.items() if not size]
    return [f"OpenKE reads no empty sets; there are no triples in {', '.join(empty)}"] if empty else []


def _types(benchmark: Benchmark) -> Iterator[str]:
    triples = np.vstack([split_triples for _, split_triples in benchmark.positives.items()])
    triples = triples[np.argsort(triples[:, 1], kind="stable")]
    relations = len(benchmark.graph.relations)
    bounds = np.searchsorted(triples[:, 1], np.arange(relations + 1))
    yield f"{relations}\n"
    for relation in range(relations):
        part = triples[bounds[relation] : bounds[relation + 1]]
        for column in (0, 2):
            ids = np.unique(part[:, column]).tolist()
            yield "\t".join(map(str, [relation, len(ids), *ids])) + "\n"


def reader(folder: Path, about: Mapping[str, Any]) -> Callable[[Path], list[base.NamedTriple]]:
    """Return what reads one file of triples."""
    entities, relations = (
        base.read_id_names(folder / name, id_first=False, counted=True, decode=base.decoder(about, kind))
        for name, kind in ((ENTITIES, "entities"), (RELATIONS, "relations"))
    )
    return lambda path: base.read_ids(path, (entities, relations), HEAD_TAIL_RELATION, counted=True)


FORMAT = base.ExportFormat("openke", write, reader, base.file_with("2id.txt"))
