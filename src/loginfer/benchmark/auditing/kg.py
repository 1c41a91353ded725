"""Checks of what is left of K: its checksum, and the lists of names that go with P_train."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from loginfer.benchmark.auditing.material import Material
from loginfer.benchmark.auditing.report import CannotCheckError, Example, Problem, error
from loginfer.benchmark.layout import CANDIDATES
from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg import KnowledgeGraph, Vocabulary

__all__ = ["candidate_files", "graph_sum", "kg_sum"]


class _Digest(io.RawIOBase):
    """A file that keeps nothing but its checksum."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.digest.update(view)
        return len(view)


def graph_sum(graph: KnowledgeGraph) -> str:
    """Return the sha256 of a graph: its triples as lines of three names, sorted, with tabs in between."""
    from loginfer.kg.formats.lines import write_lines

    entities, relations = ((names.data, names.offsets) for names in (graph.entities, graph.relations))
    sink = _Digest()
    write_lines(sink, graph.triples, (entities, relations, entities), b"\t", b"\n")  # type: ignore[arg-type]
    return sink.digest.hexdigest()


def kg_sum(material: Material) -> Iterator[Problem]:
    """P_train without its conclusions is the graph that the manifest says the benchmark was made from."""
    told = (material.manifest.get("kg") or {}).get("sha256")
    if told is None:
        raise CannotCheckError("the manifest does not tell the checksum of K")
    found = graph_sum(material.kg)
    if found != told:
        yield error(
            1,
            "P_train without its conclusions is not the graph K that the manifest tells of: some triple of "
            "K was removed, added or changed",
            [Example(f"sha256 {found}, expected {told}", material.file("train"))],
        )


def candidate_files(material: Material) -> Iterator[Problem]:
    """Compare the candidate files with the constants, relations and types of P_train."""
    folder, graph = material.folder.path, material.given.graph
    ranked = graph if material.given.context is None else material.given.context
    sources = zip(
        CANDIDATES,
        ((graph.entities, ranked.consts), (graph.relations, graph.rels), (graph.entities, graph.types)),
        strict=True,
    )
    seen = False
    for name, (vocabulary, ids) in sources:
        if not (folder / name).is_file():
            continue
        seen = True
        yield from _compared(folder / name, name, vocabulary, ids)
    if not seen:
        raise CannotCheckError("there are no candidate files")


def _compared(path: Any, name: str, vocabulary: Vocabulary, ids: Any) -> Iterator[Problem]:
    try:
        with reading(path):
            lines = path.read_bytes().decode("utf-8").splitlines()
    except (UnicodeDecodeError, InputError):
        yield error(1, f"`{name}` cannot be read", [Example(f"`{name}`", name)])
        return
    # Released files have an id behind each name.
    listed = [line.split("\t")[0] for line in lines if line.strip()]
    places = Vocabulary.of(listed)
    wanted = np.zeros(len(vocabulary), dtype=bool)
    wanted[ids] = True
    found = places.positions_in(vocabulary)
    known = found[found >= 0]
    strange = [places[i] for i in np.flatnonzero((found < 0) | ~wanted[found])[:5].tolist()]
    count = int(((found < 0) | ~wanted[found]).sum())
    wanted[known] = False
    missing = np.flatnonzero(wanted)
    repeated = len(listed) - len(places)
    examples = [Example(f"`{text}` is not in P_train", name) for text in strange]
    examples += [Example(f"`{vocabulary[i]}` is missing", name) for i in missing[:5].tolist()]
    if count or len(missing) or repeated:
        total = count + len(missing) + repeated
        yield error(total, f"`{name}` differs from the names of P_train in {total:,} places", examples)
