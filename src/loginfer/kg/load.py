"""The doors of the house: graphs come in by `read_graph` and go out by `write_graph`."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from loginfer.errors import InputError, OutputError
from loginfer.files import atomic_path, describe_os_error, reading, refuse_to_overwrite
from loginfer.kg.archive import is_archive
from loginfer.kg.formats.folder import archive_sources, folder_sources
from loginfer.kg.formats.interface import Format, Loaded, Progress, ReadOptions, ReadReport
from loginfer.kg.formats.openke import ENTITIES, OPENKE, RELATIONS, with_names
from loginfer.kg.formats.registry import FORMATS, format_by_ending, format_by_name, sniff
from loginfer.kg.formats.source import Source, compressed
from loginfer.kg.graph import KnowledgeGraph

__all__ = ["Loaded", "ReadOptions", "ReadReport", "check_output", "formats", "read_graph", "write_graph"]


def formats() -> list[Format]:
    """Return the known formats: each has a name, endings and a description."""
    return list(FORMATS)


def read_graph(
    path: str | Path, options: ReadOptions | None = None, progress: Progress | None = None
) -> Loaded:
    """Read a graph from a file, a folder or an archive.

    Parameters
    ----------
    path
        A file in one of the `formats`, or a folder or an archive (.tar, .tar.gz, .tgz, .tar.zst, .zip) with
        train, valid and test files, whose union is the graph.
    options
        How to read it.
    progress
        Called now and then with what is being read, how much of it is done, and how much there is.

    Returns
    -------
    The graph, and a report of what was read, merged and skipped.

    Raises
    ------
    InputError
        If there is no graph, with file and line where there is one.
    """
    options = options or ReadOptions()
    file = Path(path)
    with reading(file):
        known, sources = _sources(file, options)
    builder = known.builder(options.on_error == "skip")
    known.read(sources, builder, options, progress)
    if builder.statements == 0:
        examples = "".join(f"\n    {example}" for example in builder.examples)
        skipped = f", only {builder.skipped} bad lines:{examples}" if builder.skipped else ""
        raise InputError(f"`{file}` holds no triples{skipped}", hint=_expected(known))
    graph = builder.finish(options.type_predicate)
    if len(graph) == 0:
        raise InputError(f"`{file}` holds no triples that can be read", hint=_expected(known))
    report = ReadReport(
        files=tuple(builder.files),
        statements=builder.statements,
        triples=len(graph),
        skipped=builder.skipped,
        examples=tuple(builder.examples),
    )
    return Loaded(graph, report)


def _expected(known: Format) -> str:
    return f"expected {known.name}: {known.description}"


def _sources(path: Path, options: ReadOptions) -> tuple[Format, list[Source]]:
    given = format_by_name(options.format) if options.format else None
    if path.is_dir():
        if format_by_ending(path.name) is not None and not any(path.iterdir()):
            raise InputError(f"`{path}` is an empty folder, not a file")
        known, sources = folder_sources(path)
        return given or known, sources
    if is_archive(path):
        known, sources = archive_sources(path)
        return given or known, sources
    source = Source.of(path)
    source.size()  # a missing file is told before anything else
    known = given or format_by_ending(path.name) or sniff(source)
    if known is OPENKE:
        if source.file_name in (ENTITIES, RELATIONS):
            raise InputError(
                f"`{path}` holds names, not triples",
                hint=f"give `{path.parent}`, or a file such as train2id.txt",
            )
        return known, with_names(source)
    return known, [source]


def write_graph(
    graph: KnowledgeGraph, path: str | Path, *, format: str | None = None, force: bool = False
) -> None:
    """Write a graph to a file, or to a folder for OpenKE; nobody ever sees half of it.

    Parameters
    ----------
    graph
        What to write.
    path
        Where to; the ending chooses the format, and `.gz` or `.zst` behind it compresses.
    format
        Name of the format, if the ending does not say.
    force
        Replace what is there.

    Raises
    ------
    OutputError
        If it cannot be written, or exists already.
    """
    target = Path(path)
    known = check_output(target, format=format, force=force)
    if known.write_folder is not None:
        _write_folder(graph, target, known.write_folder, force)
        return
    if known.write is None:
        raise OutputError(f"{known.name} can only be read", hint="choose another format")
    with atomic_path(target, force=force) as temporary, temporary.open("wb") as raw:
        stream: BinaryIO
        with compressed(raw, target.name) as stream:
            known.write(graph, stream)


def check_output(path: str | Path, *, format: str | None = None, force: bool = False) -> Format:
    """Return the format in which a graph would be written; complain now, before the work, if it cannot be.

    Parameters
    ----------
    path, format, force
        As for `write_graph`.
    """
    target = Path(path)
    refuse_to_overwrite(target, force)
    known = format_by_name(format) if format else format_by_ending(target.name)
    if known is None:
        raise OutputError(
            f"`{target}` has no known ending",
            hint="choose one of " + ", ".join(e for f in FORMATS if f.write for e in f.endings),
        )
    if known.write_folder is not None and format_by_ending(target.name) is known:
        raise OutputError(f"`{target}` is one file of several", hint=f"give a folder: `{target.parent}`")
    return known


def _write_folder(
    graph: KnowledgeGraph, target: Path, write: Callable[[KnowledgeGraph, Path], None], force: bool
) -> None:
    """Write under a temporary name; an existing folder's files are replaced one by one at the end."""
    refuse_to_overwrite(target, force)
    temporary: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part"))
        write(graph, temporary)
        target.mkdir(exist_ok=True)
        for file in sorted(temporary.iterdir()):
            file.replace(target / file.name)
    except OSError as error:
        if error.errno is None:
            raise
        raise OutputError(
            f"cannot write `{target}`: {describe_os_error(error)}",
            hint="free some space or choose another place",
        ) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                shutil.rmtree(temporary)
