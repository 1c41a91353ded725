"""Reading and writing graphs in any format: `read_graph` and `write_graph`.

A graph is one file, or a folder or an archive with train, valid and test.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from loginfer.errors import InputError, OutputError, UnknownNameError
from loginfer.files import atomic_path, describe_os_error, reading, refuse_to_overwrite
from loginfer.kg.formats import base
from loginfer.kg.graph import KnowledgeGraph
from loginfer.kg.selection import selected
from loginfer.progress import Progress

if TYPE_CHECKING:
    from loginfer.kg.formats.scan import GraphBuilder

ORDER = ("train", "valid", "test", "context")
LISTED = 10


def format_by_name(name: str) -> base.Format:
    """Return a format by its name; the error lists the nearest ones."""
    names = {format_.name: format_ for format_ in base.formats()}
    if name.lower() in names:
        return names[name.lower()]
    error = UnknownNameError("format", name, names)
    error.hint = error.hint or "known are " + ", ".join(names)
    raise error


def format_by_ending(name: str) -> base.Format | None:
    """Return the format of a file by its name, compressed or not; the longest ending decides."""
    plain = base.split_compression(name.lower())[0]
    endings = {ending: format_ for format_ in base.formats() for ending in format_.endings if plain.endswith(ending)}
    return endings[max(endings, key=len)] if endings else None


def sniff(source: base.Source) -> base.Format:
    """Guess the format of a file with an unknown ending by its first lines."""
    if source.file_name.endswith(".n3"):
        raise InputError(f"`{source.name}` is RDF in a format that is not read", hint="convert it to N-Triples (.nt)")
    if source.content is None and not source.path.is_file():
        raise InputError(f"`{source.name}` is a pipe, read only once", hint="give its format (--format)")
    with source.open() as (stream, _):
        head = stream.read(4096)
    text = head.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    first = next(lines, "")
    for format_ in reversed(base.formats()):
        if format_.looks_like(head, first):
            return format_
    raise InputError(
        f"cannot tell the format of `{source.name}`",
        hint="give it (--format), or a name that ends in "
        + ", ".join(ending for format_ in base.formats() for ending in format_.endings),
    )


def folder_sources(folder: Path) -> tuple[base.Format, list[base.Source]]:
    """Find the files of a graph in a folder, or in the one sub-folder that has them."""
    with reading(folder):
        files = sorted(path for path in folder.iterdir() if path.is_file())
        for below in sorted(path for path in folder.iterdir() if path.is_dir()):
            files += sorted(path for path in below.iterdir() if path.is_file())
    sources = [(path.relative_to(folder).as_posix(), base.Source.of(path)) for path in files]
    return _choose(sources, f"folder `{folder}`")


def archive_sources(path: Path, limits: base.UnpackLimits | None = None) -> tuple[base.Format, list[base.Source]]:
    """Find the files of a graph in an archive."""
    members = base.read_archive(path, select=lambda n: _usable(n) and format_by_ending(n) is not None, limits=limits)
    sources = [(m.name, base.Source(f"{path}:{m.name}", Path(m.name), m.content or b"")) for m in members]
    return _choose(sources, f"archive `{path}`")


def _usable(name: str) -> bool:
    """Leave out hidden files and what the Mac's archiver adds."""
    return not any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts)


def _choose(candidates: Sequence[tuple[str, base.Source]], what: str) -> tuple[base.Format, list[base.Source]]:
    folders: dict[str, dict[str, base.Source]] = {}
    for name, source in candidates:
        path = PurePosixPath(name)
        if _usable(name) and len(path.parts) <= 2 and format_by_ending(name) is not None:
            folders.setdefault(str(path.parent), {})[path.name] = source
    complete = [choice for files in folders.values() if (choice := _parts(files, what)) is not None]
    if len(complete) == 1:
        return complete[0]
    single = [source for files in folders.values() for source in files.values()]
    if not complete and len(single) == 1:
        format_ = format_by_ending(single[0].path.name)
        if format_ is not None and format_.files_in is None:
            return format_, single
    names = [f"`{name}`" for name, _ in candidates if _usable(name)]
    listed = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    trouble = "several sets of train/valid/test" if complete else "no graph"
    endings = ", ".join(ending for format_ in base.formats() if not format_.files for ending in format_.endings)
    others = ", or ".join(format_.files for format_ in base.formats() if format_.files)
    hint = f"expected train, valid and test ({endings}; also .gz, .zst), or {others}, at the top or in one sub-folder"
    raise InputError(f"{trouble} in {what}; found " + (listed or "nothing"), hint=hint)


def _parts(files: dict[str, base.Source], what: str) -> tuple[base.Format, list[base.Source]] | None:
    """Return the files of one folder that make up a graph, or None if there is no train file."""
    by_name = {source.file_name: source for source in files.values()}
    for format_ in base.formats():
        if format_.files_in is not None and (complete := format_.files_in(by_name)) is not None:
            return format_, complete
    parts: dict[str, base.Source] = {}
    for name, source in sorted(files.items()):
        stem = PurePosixPath(base.split_compression(name.lower())[0]).stem
        if (part := "context" if base.is_context(name) else base.PARTS.get(stem)) is not None:
            if part in parts:
                message = f"two {part} files in {what}: `{parts[part].path.name}` and `{source.path.name}`"
                raise InputError(message, hint="keep one of them, or give the file")
            parts[part] = source
    if "train" not in parts:
        return None
    sources = [parts[part] for part in ORDER if part in parts]
    formats_by_name = {
        by_ending.name: by_ending for s in sources if (by_ending := format_by_ending(s.path.name)) is not None
    }
    if len(formats_by_name) > 1:
        message = f"the files in {what} have different formats: " + ", ".join(f"`{s.path.name}`" for s in sources)
        raise InputError(message, hint="convert them to one format first")
    return next(iter(formats_by_name.values())), sources


def read_graph(
    path: str | Path,
    options: base.ReadOptions | None = None,
    progress: Progress | None = None,
    files: Mapping[str, base.Source] | None = None,
) -> base.Loaded:
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
    files
        What is there by name, if that is known already.

    Returns
    -------
    The graph, and a report of what was read, merged and skipped.

    Raises
    ------
    InputError
        If there is no graph, with file and line where there is one.
    LimitError
        If a compressed file unpacks to more than `max_unpacked` allows.
    """
    options = options or base.ReadOptions()
    file = Path(path)
    builder, hint = _filled_builder(file, options, progress, files)
    graph = builder.finish(options.type_predicate)
    notes = list(builder.notes)
    if builder.quads:
        notes.append(f"the names of graphs are ignored, which {builder.quads:,} statements have")
    if len(graph) == 0:
        raise InputError(f"`{file}` holds no triples that can be read", hint=hint)
    report = base.ReadReport(
        files=tuple(builder.files),
        statements=builder.statements,
        triples=len(graph),
        skipped=builder.skipped,
        examples=tuple(builder.examples),
        notes=tuple(notes),
    )
    return selected(base.Loaded(graph, report), options)


def read_statements(path: str | Path) -> list[tuple[str, str, str]]:
    """Return the triples of a file by name, in the file's order, repeated ones included."""
    entities, relations, keys = _filled_builder(Path(path), base.ReadOptions())[0].finish_keys()
    graph = KnowledgeGraph.from_keys(entities, relations, keys.copy())
    return graph.names(graph.keys.unpack(keys))


def _filled_builder(
    file: Path,
    options: base.ReadOptions,
    progress: Progress | None = None,
    files: Mapping[str, base.Source] | None = None,
) -> tuple[GraphBuilder, str]:
    """Return what was read, and what was expected."""
    with reading(file):
        limits = base.UnpackLimits.of(options)
        named = None if files is None else _choose(list(files.items()), f"`{file}`")
        format_, sources = named or _sources(file, options, limits)
        sources = [replace(source, limits=limits) for source in sources]
    for name in ("columns", "delimiter"):
        if getattr(options, name) is not None and not format_.has_columns:
            tables = " or ".join(format_.name for format_ in base.formats() if format_.has_columns)
            hint = f"leave --{name} out, or give --format {tables}"
            raise InputError(f"--{name} is for tables, and this is {format_.name}", where=str(file), hint=hint)
    builder = format_.builder(options.on_error == "skip")
    format_.read(sources, builder, options, progress)
    hint = f"expected {format_.name}: {format_.description}"
    if builder.statements == 0:
        examples = "".join(f"\n    {example}" for example in builder.examples)
        skipped = f", only {builder.skipped} bad lines:{examples}" if builder.skipped else ""
        raise InputError(f"`{file}` holds no triples{skipped}", hint=hint)
    return builder, hint


def _sources(path: Path, options: base.ReadOptions, limits: base.UnpackLimits) -> tuple[base.Format, list[base.Source]]:
    requested = format_by_name(options.format) if options.format else None
    if path.is_dir():
        if format_by_ending(path.name) is not None and not any(path.iterdir()):
            raise InputError(f"`{path}` is an empty folder, not a file")
        format_, sources = folder_sources(path)
        return requested or format_, sources
    if base.is_archive(path):
        format_, sources = archive_sources(path, limits)
        return requested or format_, sources
    source = base.Source.of(path)
    source.size()  # complain about a missing file before anything else
    format_ = requested or format_by_ending(path.name) or sniff(source)
    return format_, [source] if format_.files_with is None else format_.files_with(source)


def write_graph(graph: KnowledgeGraph, path: str | Path, *, format: str | None = None, force: bool = False) -> None:
    """Write a graph to a file, or to a folder for OpenKE; it is complete or not there at all.

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
    format_ = check_output(target, format=format, force=force)
    if format_.write_folder is not None:
        _write_folder(graph, target, format_.write_folder, force)
        return
    if format_.write is None:
        raise OutputError(f"{format_.name} can only be read", hint="choose another format")
    with atomic_path(target, force=force) as temporary, temporary.open("wb") as raw:
        stream: BinaryIO
        with base.compressed(raw, target.name) as stream:
            format_.write(graph, stream)


def check_output(path: str | Path, *, format: str | None = None, force: bool = False) -> base.Format:
    """Return the format in which a graph would be written; complain now, before the work, if it cannot be.

    Parameters
    ----------
    path, format, force
        As for `write_graph`.
    """
    target = Path(path)
    refuse_to_overwrite(target, force)
    format_ = format_by_name(format) if format else format_by_ending(target.name)
    if format_ is None:
        hint = "choose one of " + ", ".join(e for f in base.formats() if f.write for e in f.endings)
        raise OutputError(f"`{target}` has no known ending", hint=hint)
    if format_.write_folder is not None and format_by_ending(target.name) is format_:
        raise OutputError(f"`{target}` is one file of several", hint=f"give a folder: `{target.parent}`")
    return format_


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
        hint = "free some space or choose another place"
        raise OutputError(f"cannot write `{target}`: {describe_os_error(error)}", hint=hint) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                shutil.rmtree(temporary)
