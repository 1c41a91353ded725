"""Reading an export: verified, and every set of triples by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from loginfer.benchmark.exporting.interface import EXPORT, Exported, NamedTriple
from loginfer.benchmark.exporting.registry import FORMATS, format_named
from loginfer.benchmark.manifest import file_sum
from loginfer.benchmark.values import SPLITS
from loginfer.errors import InputError
from loginfer.files import reading

__all__ = ["read_about", "read_export"]

_AGAIN = "export the benchmark again"


def read_export(path: str | Path, *, verify: bool = True) -> Exported:
    """Read a folder that `export_benchmark` wrote.

    Parameters
    ----------
    path
        The folder.
    verify
        Compare sizes and checksums with `export.json`.

    Returns
    -------
    The positives of each split, the negatives of each method and split, and the context graph if there is
    one: by name, in the benchmark's order.

    Raises
    ------
    InputError
        If it is no export, or damaged.
    """
    folder = Path(path)
    about = read_about(folder)
    if verify:
        _verify(folder, about["files"])
    read = format_named(about["to"]).reader(folder, about)
    positives: dict[str, list[NamedTriple]] = {split: [] for split in SPLITS}
    negatives: dict[str, dict[str, list[NamedTriple]]] = {
        method: {split: [] for split in SPLITS} for method in about["negatives"]
    }
    context: list[NamedTriple] | None = None
    for told in about["sets"]:
        triples = _read_set(folder, told, read)
        if told.get("context"):
            context = triples
        elif told["method"] is None:
            positives[told["split"]] = triples
        else:
            negatives.setdefault(told["method"], {})[told["split"]] = triples
    return Exported(about["to"], about["benchmark"], positives, negatives, context, about)


def _read_set(
    folder: Path, told: Mapping[str, Any], read: Callable[[Path], list[NamedTriple]]
) -> list[NamedTriple]:
    triples = [] if told["file"] is None else read(folder / told["file"])
    if len(triples) != told["triples"]:
        where = str(folder / (told["file"] or EXPORT))
        raise InputError(f"{len(triples):,} triples, expected {told['triples']:,}", where=where, hint=_AGAIN)
    return triples


def read_about(folder: Path) -> dict[str, Any]:
    """Read the `export.json` of a folder.

    Raises
    ------
    InputError
        If there is none that this version understands.
    """
    from loginfer.benchmark.exporting.writing import FORMAT, FORMAT_VERSION

    path = folder / EXPORT
    if folder.is_dir() and not path.is_file():
        raise InputError(f"`{folder}` is no export: it has no `{EXPORT}`", hint="`loginfer export` makes one")
    with reading(path):
        content = path.read_bytes()
    try:
        about = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"no JSON: {error}", where=str(path), hint=_AGAIN) from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError(f'its "format" is not "{FORMAT}"', where=str(path), hint=_AGAIN)
    if about.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"the export has the format {json.dumps(about.get('format_version'))}; this program reads format "
            f"{FORMAT_VERSION}",
            where=str(path),
            hint="use the version of loginfer that wrote it, or export the benchmark again",
        )
    if not _makes_sense(about):
        raise InputError("its content makes no sense", where=str(path), hint=_AGAIN)
    return about


def _makes_sense(about: Mapping[str, Any]) -> bool:
    kinds = {"to": str, "benchmark": str, "negatives": dict, "sets": list, "files": dict}
    if not all(isinstance(about.get(key), kind) for key, kind in kinds.items()) or about["to"] not in FORMATS:
        return False
    files = about["files"]
    fine = all(_is_inside(name) and _is_sum(entry) for name, entry in files.items())
    return fine and all(_is_set(told, files) for told in about["sets"])


def _is_sum(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("bytes"), int)
        and isinstance(entry.get("sha256"), str)
    )


def _is_set(told: Any, files: Mapping[str, Any]) -> bool:
    return (
        isinstance(told, dict)
        and told.get("split") in SPLITS
        and isinstance(told.get("method", 0), str | None)
        and isinstance(told.get("triples"), int)
        and isinstance(told.get("file", 0), str | None)
        and (told["file"] is None or told["file"] in files)
    )


def _is_inside(name: str) -> bool:
    """Whether a file's name leads nowhere but into the folder."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _verify(folder: Path, files: Mapping[str, Any]) -> None:
    for name, entry in files.items():
        path = folder / name
        if not path.is_file():
            raise InputError(f"`{name}` is missing", where=str(folder), hint=_AGAIN)
        with reading(path):
            size = path.stat().st_size
        if size != entry["bytes"]:
            what = f"{size:,} bytes, expected {entry['bytes']:,}"
        elif (found := file_sum(path)) != entry["sha256"]:
            what = f"the sha256 {found}, expected {entry['sha256']}"
        else:
            continue
        hint = f"{_AGAIN}; read_export(…, verify=False) reads it as it is"
        raise InputError(f"`{name}` was changed: it has {what}", where=str(folder), hint=hint)
