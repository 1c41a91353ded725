"""LibKGE: `dataset.yaml`, and tab-separated files of ids that it lists.

The keys are those that LibKGE's own preprocessing writes. Negatives and the context graph are further files
of the type `triples`, to be had with `dataset.load_triples("train_negatives_pa")`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from loginfer.benchmark.export import base
from loginfer.benchmark.folder.manifest import Role
from loginfer.errors import OutputError

DESCRIPTION = "dataset.yaml"
ENTITIES, RELATIONS = "entity_ids.del", "relation_ids.del"
SUBJECT_RELATION_OBJECT = (0, 1, 2)


def key_of(role: Role) -> str:
    """Return what `dataset.yaml` calls a set; a dot would begin another level there."""
    if role.context:
        return "context"
    return role.split if role.method is None else f"{role.split}_negatives_{role.method.replace('.', '_')}"


def file_of(role: Role) -> str:
    """Return the file of a set: `train.del`, `train_negatives_pa.del`, `context.del`."""
    if role.context or role.method is None:
        return f"{key_of(role)}.del"
    return f"{role.split}_negatives_{role.method}.del"


def write(job: base.Job) -> base.Written:
    """Write names, triples and `dataset.yaml`."""
    graph = job.benchmark.graph
    base.write_id_names(job, (ENTITIES, RELATIONS), base.Texts(list(graph.entities), list(graph.relations)))
    for role, triples in job.sets():
        base.write_ids(job.folder / file_of(role), triples, SUBJECT_RELATION_OBJECT, b"\t")
    base.write_text(job.folder / DESCRIPTION, _description(job))
    files = [
        (ENTITIES, "ids and names of constants and types"),
        (RELATIONS, "ids and names of relations"),
        (DESCRIPTION, "the files and their sizes, for LibKGE"),
    ]
    usage = base.usage("libkge", name=shlex.quote(job.name))
    for method in list(job.benchmark.negatives)[:1]:
        usage += base.usage("libkge_negatives", key=key_of(Role("test", method)))
    return base.Written(files, usage, notes=_small_sets(job))


def _small_sets(job: base.Job) -> list[str]:
    """Warn of small sets: LibKGE reads a file with numpy, to which one line is a vector, and none an empty one."""
    small = [f"`{file_of(role)}`" for role, triples in job.sets() if len(triples) < 2]
    if not small:
        return []
    return [f"LibKGE reads sets of two triples and more; there are fewer in {', '.join(small)}"]


def _description(job: base.Job) -> str:
    """Return the text of `dataset.yaml`, keys in order."""
    graph = job.benchmark.graph
    values: dict[str, str | int] = {
        "name": job.name,
        "num_entities": len(graph.entities),
        "num_relations": len(graph.relations),
        "files.entity_ids.filename": ENTITIES,
        "files.entity_ids.type": "map",
        "files.relation_ids.filename": RELATIONS,
        "files.relation_ids.type": "map",
    }
    for role, triples in job.sets():
        key = f"files.{key_of(role)}"
        if f"{key}.filename" in values:
            hint = "export one at a time: --negatives"
            raise OutputError(f"two methods would both be called `{key_of(role)}` in `{DESCRIPTION}`", hint=hint)
        values |= {f"{key}.filename": file_of(role), f"{key}.type": "triples", f"{key}.size": len(triples)}
        if role.method is None and not role.context:
            values[f"{key}.split_type"] = role.split
    return "dataset:\n" + "".join(
        f"  {key}: {base.quoted(value) if isinstance(value, str) else value}\n" for key, value in sorted(values.items())
    )


def reader(folder: Path, about: Mapping[str, Any]) -> Callable[[Path], list[base.NamedTriple]]:
    """Return what reads one file of triples."""
    entities, relations = (base.read_id_names(folder / name, id_first=True) for name in (ENTITIES, RELATIONS))
    return lambda path: base.read_ids(path, (entities, relations), SUBJECT_RELATION_OBJECT)


FORMAT = base.ExportFormat("libkge", write, reader, file_of)
