"""A graph in several files: a folder or an archive with train, valid and test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from loginfer.errors import InputError
from loginfer.files import reading
from loginfer.kg.archive import read_archive
from loginfer.kg.formats.interface import Format
from loginfer.kg.formats.openke import ENTITIES, OPENKE, RELATIONS
from loginfer.kg.formats.registry import format_by_ending
from loginfer.kg.formats.source import Source

__all__ = ["archive_sources", "folder_sources"]

# The parts of a split data set, in the order in which they are read, by the names people give them.
PARTS = {"train": "train", "valid": "valid", "validation": "valid", "dev": "valid", "test": "test"}
ORDER = ("train", "valid", "test")
LISTED = 10


def folder_sources(folder: Path) -> tuple[Format, list[Source]]:
    """Find the files of a graph in a folder, or in the one sub-folder that has them."""
    with reading(folder):
        files = sorted(path for path in folder.iterdir() if path.is_file())
        for below in sorted(path for path in folder.iterdir() if path.is_dir()):
            files += sorted(path for path in below.iterdir() if path.is_file())
    sources = [(path.relative_to(folder).as_posix(), Source.of(path)) for path in files]
    return _choose(sources, f"folder `{folder}`")


def archive_sources(path: Path) -> tuple[Format, list[Source]]:
    """Find the files of a graph in an archive."""
    members = read_archive(path, wanted=lambda name: _usable(name) and format_by_ending(name) is not None)
    sources = [(m.name, Source(f"{path}:{m.name}", Path(m.name), m.content or b"")) for m in members]
    return _choose(sources, f"archive `{path}`")


def _usable(name: str) -> bool:
    """Leave out hidden files and what the Mac's archiver adds."""
    return not any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts)


def _choose(found: Sequence[tuple[str, Source]], what: str) -> tuple[Format, list[Source]]:
    folders: dict[str, dict[str, Source]] = {}
    for name, source in found:
        path = PurePosixPath(name)
        if _usable(name) and len(path.parts) <= 2 and format_by_ending(name) is not None:
            folders.setdefault(str(path.parent), {})[path.name] = source
    complete = [choice for files in folders.values() if (choice := _parts(files, what)) is not None]
    if len(complete) == 1:
        return complete[0]
    single = [source for files in folders.values() for source in files.values()]
    if not complete and len(single) == 1:
        known = format_by_ending(single[0].path.name)
        if known is not None and known is not OPENKE:
            return known, single
    names = [f"`{name}`" for name, _ in found if _usable(name)]
    listed = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    trouble = "several sets of train/valid/test" if complete else "no graph"
    raise InputError(
        f"{trouble} in {what}; found " + (listed or "nothing"),
        hint="expected train, valid and test (.txt, .tsv, .nt, .ttl, .parquet; also .gz, .zst), "
        f"or {ENTITIES}, {RELATIONS} and train2id.txt, at the top or in one sub-folder",
    )


def _parts(files: dict[str, Source], what: str) -> tuple[Format, list[Source]] | None:
    """Return the files of one folder that make up a graph, or None if there is no train file."""
    by_name = {source.file_name: source for source in files.values()}
    if ENTITIES in by_name and RELATIONS in by_name and "train2id.txt" in by_name:
        triples = [by_name[f"{p}2id.txt"] for p in PARTS if f"{p}2id.txt" in by_name]
        return OPENKE, [by_name[ENTITIES], by_name[RELATIONS], *triples]
    parts: dict[str, Source] = {}
    for _, source in sorted(files.items()):
        part = PARTS.get(PurePosixPath(source.file_name).stem)
        if part is not None:
            if part in parts:
                raise InputError(
                    f"two {part} files in {what}: `{parts[part].path.name}` and `{source.path.name}`",
                    hint="keep one of them, or give the file",
                )
            parts[part] = source
    if "train" not in parts:
        return None
    chosen = [parts[part] for part in ORDER if part in parts]
    formats = {known.name: known for s in chosen if (known := format_by_ending(s.path.name)) is not None}
    if len(formats) > 1:
        raise InputError(
            f"the files in {what} have different formats: " + ", ".join(f"`{s.path.name}`" for s in chosen),
            hint="convert them to one format first",
        )
    return next(iter(formats.values())), chosen
