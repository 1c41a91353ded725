"""Writing a benchmark's folder, so that it is complete or not there at all."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loginfer.benchmark.benchmark import SPLITS, Benchmark
from loginfer.benchmark.folder import manifest
from loginfer.errors import OutputError
from loginfer.files import atomic_folder, check_folder
from loginfer.kg import KnowledgeGraph, Triples, Vocabulary

if TYPE_CHECKING:
    from typing import BinaryIO


def check_output(path: str | Path, *, force: bool = False) -> None:
    """Complain now, before the work, if a benchmark could not be written to this folder.

    Parameters
    ----------
    path, force
        As for `write_benchmark`.
    """
    check_folder(path, force=force, may_replace=_may_replace)


def check_graph(graph: KnowledgeGraph) -> None:
    """Complain now, before the work, about a name that cannot be part of a line."""
    from loginfer.kg.formats.tsv import refuse_names

    for vocabulary in (graph.entities, graph.relations):
        try:
            refuse_names(vocabulary, b"\t\n\r\0", "the lines of a benchmark's files")
        except OutputError as error:
            raise OutputError(error.message, hint="give it another name in the graph") from error


def write_benchmark(benchmark: Benchmark, path: str | Path, *, force: bool = False) -> dict[str, Any]:
    """Write a benchmark's folder; it is complete or not there at all.

    Parameters
    ----------
    benchmark
        What to write.
    path
        The folder. Missing folders above it are created.
    force
        Replace an existing benchmark or an empty folder; nothing else is ever replaced.

    Returns
    -------
    The manifest.

    Raises
    ------
    OutputError
        If the folder exists, cannot be written, or is being written by another run; or if a name cannot be
        part of a line.
    """
    from loginfer.benchmark.folder.card import make_card, make_croissant

    texts = _texts(benchmark)
    with atomic_folder(path, force=force, may_replace=_may_replace) as folder:
        writer = _Writer(folder)
        _write_triples(benchmark, writer)
        for name, text in texts.items():
            writer.text(name, text)
        _write_tables(benchmark, writer)
        kg = None if benchmark.kg is None else manifest.kg_figures(benchmark.kg, graph_sum(benchmark.kg))
        writer.text(manifest.CARD, make_card(benchmark, kg, list(writer.files)))
        writer.text(manifest.CROISSANT, manifest.as_json(make_croissant(benchmark, writer.files)))
        record = manifest.make_manifest(benchmark, kg, writer.files)
        writer.text(manifest.MANIFEST, manifest.as_json(record))
    return record


def _may_replace(folder: Path) -> None:
    """Refuse to replace a folder with anything in it that is not a benchmark's."""
    entries = sorted(folder.iterdir())
    foreign = [entry.name for entry in entries if not (entry.is_file() and manifest.is_ours(entry.name))]
    refuse_foreign(folder, foreign)
    roles = [manifest.role_of(entry.name) for entry in entries]
    if not (folder / manifest.MANIFEST).exists() and not any(role and role.method for role in roles):
        message = f"`{folder}` is not replaced: it is no benchmark, as it has no `{manifest.MANIFEST}`"
        raise OutputError(message, hint="choose another folder, or remove it yourself")


def refuse_foreign(folder: Path, foreign: list[str]) -> None:
    """Refuse to replace a folder that also holds these files."""
    if foreign:
        shown = ", ".join(f"`{name}`" for name in foreign[:3]) + (", …" if len(foreign) > 3 else "")
        hint = "choose another folder, or move your files out of it"
        raise OutputError(f"`{folder}` is not replaced: it also holds {shown}", hint=hint)


def _texts(benchmark: Benchmark) -> dict[str, str]:
    """Return the texts of small files; complain now about what cannot be written."""
    from loginfer.logic.dialects import HEADING
    from loginfer.logic.rule_files import format_rules

    check_graph(benchmark.graph)
    for method in benchmark.negatives:
        if not manifest.is_method(method):
            raise OutputError(f"negatives called `{method}` cannot be written: it is part of files' names")
    graph = benchmark.graph
    rows = [row for row in graph.labels.items() if row[0] in graph.entities or row[0] in graph.relations]
    labels = {manifest.LABELS: "".join(f"{name}\t{label}\n" for name, label in sorted(rows))} if rows else {}
    if not benchmark.rules:
        return labels
    heading = f"{HEADING}{' '.join(benchmark.name.split())}, one a line, in order; see {manifest.CARD}.\n"
    return {manifest.RULES: heading + format_rules(benchmark.program), **labels}


class _Digest(io.RawIOBase):
    """A file that keeps nothing but its size and sha256."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.digest.update(view)
        self.bytes += len(view)
        return len(view)


class _SummedFile(_Digest):
    """A new file whose size and sha256 are known when it is closed."""

    def __init__(self, path: Path, sums: dict[str, manifest.FileSum]) -> None:
        super().__init__()
        self._sums, self._name = sums, path.name
        self._file = path.open("wb", buffering=0)

    def write(self, data: Any) -> int:
        view, done = memoryview(data).cast("B"), 0
        while done < len(view):
            done += self._file.write(view[done:]) or 0
        return super().write(view)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
            self._sums[self._name] = manifest.FileSum(self.bytes, self.digest.hexdigest())
        super().close()


class _Writer:
    """Writes files into a new folder and computes their checksums on the way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, manifest.FileSum] = {}

    def text(self, name: str, text: str) -> None:
        with self.open(name) as stream:
            stream.write(text.encode())

    def open(self, name: str) -> _SummedFile:
        return _SummedFile(self.folder / name, self.files)


def _write_triples(benchmark: Benchmark, writer: _Writer) -> None:
    for split in SPLITS:
        with writer.open(manifest.file_of(manifest.Role(split))) as stream:
            if split == "train":
                _write_graph(benchmark.graph, stream)
            else:
                _write_lines(benchmark.graph, benchmark.positives[split], stream)
    for method, negative_set in benchmark.negatives.items():
        for split, triples in negative_set.splits.items():
            with writer.open(manifest.file_of(manifest.Role(split, method))) as stream:
                _write_lines(benchmark.graph, triples, stream)
    graph, context = benchmark.graph, benchmark.context
    if context is not None:
        with writer.open(manifest.file_of(manifest.Role("test", context=True))) as stream:
            _write_lines(graph, context.triples, stream)
    entities, relations, types = manifest.CANDIDATES
    with writer.open(entities) as stream:
        _write_names(graph.entities, (graph if context is None else context).consts, stream)
    with writer.open(relations) as stream:
        _write_names(graph.relations, graph.rels, stream)
    if len(graph.types):
        with writer.open(types) as stream:
            _write_names(graph.entities, graph.types, stream)


def _write_graph(graph: KnowledgeGraph, stream: BinaryIO | io.RawIOBase) -> None:
    for triples in graph.blocks():
        _write_lines(graph, triples, stream)


def _write_lines(graph: KnowledgeGraph, triples: Triples, stream: BinaryIO | io.RawIOBase) -> None:
    from loginfer.kg.formats.tsv import write_lines

    write_lines(stream, triples, (graph.entities, graph.relations, graph.entities), b"\t", b"\n")  # type: ignore[arg-type]


def _write_names(vocabulary: Vocabulary, ids: Any, stream: io.RawIOBase) -> None:
    names = vocabulary.data.tobytes()
    starts, ends = vocabulary.offsets[ids].tolist(), vocabulary.offsets[ids + 1].tolist()
    stream.write(b"".join(names[a:b] + b"\n" for a, b in zip(starts, ends, strict=True)))


def _write_tables(benchmark: Benchmark, writer: _Writer) -> None:
    from loginfer.benchmark.folder.tables import write_negatives, write_noise, write_provenance

    if benchmark.provenance is not None:
        with writer.open(manifest.PROVENANCE) as stream:
            write_provenance(benchmark, benchmark.provenance, stream)  # type: ignore[arg-type]
    with writer.open(manifest.NEGATIVES) as stream:
        write_negatives(benchmark.clean, stream)  # type: ignore[arg-type]
    if benchmark.noise is not None:
        with writer.open(manifest.NOISE) as stream:
            write_noise(benchmark, benchmark.noise, stream)  # type: ignore[arg-type]


def graph_sum(graph: KnowledgeGraph) -> str:
    """Return the sha256 of a graph: its triples as lines of three names, sorted, with tabs in between."""
    sink = _Digest()
    _write_graph(graph, sink)
    return sink.digest.hexdigest()
