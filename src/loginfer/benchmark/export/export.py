"""Writing an export, complete or not at all, and reading one: verified, with every set of triples by name."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypedDict

from loginfer._version import __version__
from loginfer.benchmark.benchmark import SPLITS, Benchmark, Split
from loginfer.benchmark.export import NO_FORMATS
from loginfer.benchmark.export.base import EXPORT, Exported, ExportFormat, Job, NamedTriple, Written, write_readme
from loginfer.benchmark.folder.manifest import MANIFEST, SumEntry, as_json, folder_sums
from loginfer.benchmark.folder.reading import load_benchmark
from loginfer.benchmark.folder.writing import check_graph, refuse_foreign
from loginfer.documents import Matching, Size, read_document
from loginfer.errors import InputError, OutputError, UnknownNameError
from loginfer.files import atomic_folder, check_folder, file_sum, reading

FORMAT = "loginfer-export"
FORMAT_VERSION = 1
_AGAIN = "export the benchmark again"

FORMATS: dict[str, ExportFormat] = {}


def register_export(new: ExportFormat) -> ExportFormat:
    """Add a format to which benchmarks can be exported; users may add their own."""
    FORMATS[new.name] = new
    return new


for _module in pkgutil.iter_modules([str(Path(__file__).parent)]):
    if _module.name not in NO_FORMATS:
        register_export(import_module(f"loginfer.benchmark.export.{_module.name}").FORMAT)


def format_named(name: str) -> ExportFormat:
    """Return a format.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    key = name.strip().casefold()
    if key not in FORMATS:
        raise UnknownNameError("format of exports", name, FORMATS)
    return FORMATS[key]


# -- writing ---------------------------------------------------------------------------------------


def check_export(to: str, out: str | Path, *, force: bool = False) -> None:
    """Complain now, before the work, if an export could not be written to this folder.

    Parameters
    ----------
    to, out, force
        As for `export_benchmark`.
    """
    format_named(to)
    check_folder(out, force=force, may_replace=_may_replace)
    try:
        str(Path(out).resolve()).encode()
    except UnicodeEncodeError:
        shown = str(out).encode(errors="backslashreplace").decode()
        raise OutputError(f"the path `{shown}` is no UTF-8", hint="choose another place") from None


def export(
    benchmark: Benchmark | str | Path,
    to: str,
    out: str | Path,
    *,
    negatives: Sequence[str] | str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write a benchmark in the format of another program.

    The same benchmark always gives the same bytes. `read_export` reads the folder again, without loss.

    Parameters
    ----------
    benchmark
        A benchmark, or its folder.
    to
        One of `FORMATS`.
    out
        The new folder. Missing folders above it are created.
    negatives
        Whose negatives to write; those of all methods by default.
    force
        Replace an existing export or an empty folder; nothing else is ever replaced.

    Returns
    -------
    The content of `export.json`.

    Raises
    ------
    UnknownNameError
        If there is no such format or method.
    OutputError
        If the folder exists, lies in the benchmark's or cannot be written, or the format cannot hold a name.

    Examples
    --------
    >>> import loginfer
    >>> loginfer.export("wn-trian", to="pykeen", out="wn-trian-pykeen")["positives"]  # doctest: +SKIP
    """
    check_export(to, out, force=force)
    format_ = format_named(to)
    benchmark = load_benchmark(benchmark)
    _refuse_inside(out, benchmark.path)
    benchmark = _with_methods(benchmark, negatives)
    if not format_.any_name:
        check_graph(benchmark.graph)
    with atomic_folder(out, force=force, may_replace=_may_replace) as folder:
        job = Job(benchmark, folder, Path(out).resolve().name, _notes(benchmark))
        written = format_.write(job)
        write_readme(job, format_, written)
        about = _about(job, format_, written)
        (folder / EXPORT).write_text(as_json(about), encoding="utf-8", newline="\n")
    return about


export_benchmark = export


def _refuse_inside(out: str | Path, source: Path | None) -> None:
    """Refuse an output inside the benchmark's folder, which would no longer match its manifest."""
    if source is not None and source.is_dir() and source.resolve() in Path(out).resolve().parents:
        raise OutputError(f"`{out}` lies in the benchmark's folder `{source}`", hint="choose a folder outside of it")


def _with_methods(benchmark: Benchmark, methods: Sequence[str] | str | None) -> Benchmark:
    """Return the benchmark with the negatives of these methods only."""
    if methods is None:
        return benchmark
    methods = (methods,) if isinstance(methods, str) else methods
    for method in methods:
        if method not in benchmark.negatives:
            if not benchmark.negatives:
                raise InputError("the benchmark has no negatives", hint="leave --negatives out")
            raise UnknownNameError("method", method, benchmark.negatives)
    selected = {method: negative_set for method, negative_set in benchmark.negatives.items() if method in methods}
    return replace(benchmark, negatives=selected)


def _about(job: Job, format_: ExportFormat, written: Written) -> dict[str, Any]:
    benchmark = job.benchmark
    manifest = None if benchmark.path is None else benchmark.path / MANIFEST
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "to": format_.name,
        "benchmark": benchmark.name,
        # None for a benchmark without a folder, or without a manifest in it.
        "source": {"manifest_sha256": file_sum(manifest) if manifest is not None and manifest.is_file() else None},
        "versions": {"loginfer": __version__},
        "type_predicate": benchmark.graph.type_predicate or "",
        **written.about,
        "entities": len(benchmark.graph.entities),
        "relations": len(benchmark.graph.relations),
        "positives": dict(benchmark.positives.sizes),
        "negatives": {method: dict(negative_set.splits.sizes) for method, negative_set in benchmark.negatives.items()},
        **({} if benchmark.context is None else {"context": len(benchmark.context)}),
        **({} if benchmark.noise is None else {"noise": benchmark.noise.as_dict()}),
        "notes": [*job.notes, *written.notes],
        "sets": _sets(job, format_),
        "files": {name: asdict(sums) for name, sums in folder_sums(job.folder).items()},
    }


def _notes(benchmark: Benchmark) -> list[str]:
    notes = []
    if benchmark.context is not None:
        notes.append(
            "inductive: no constant of test is in train, what is known of them is the context graph; a "
            "system that learns a vector for each constant has none for these"
        )
    if benchmark.noise is not None:
        notes.append("positives and negatives of train are written with their noise")
    return notes


def _sets(job: Job, format_: ExportFormat) -> list[Mapping[str, Any]]:
    """Return what each file of triples holds; a set without a file is empty."""
    return [
        {
            "split": role.split,
            "method": role.method,
            **({"context": True} if role.context else {}),
            "file": format_.file_of(role) if format_.empty_sets or len(triples) else None,
            "triples": len(triples),
        }
        for role, triples in job.sets()
    ]


def _may_replace(folder: Path) -> None:
    """Refuse to replace a folder that is no export, or also holds other files."""
    try:
        about = read_about(folder)
    except InputError as error:
        hint = "choose another folder, or remove it yourself"
        raise OutputError(f"`{folder}` is not replaced: it is no export", hint=hint) from error
    ours = {*about["files"], EXPORT}
    files = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir())
    refuse_foreign(folder, [name for name in files if name not in ours])


# -- reading ---------------------------------------------------------------------------------------


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
    for entry in about["sets"]:
        triples = [] if entry["file"] is None else read(folder / entry["file"])
        if len(triples) != entry["triples"]:
            where = str(folder / (entry["file"] or EXPORT))
            raise InputError(f"{len(triples):,} triples, expected {entry['triples']:,}", where=where, hint=_AGAIN)
        if entry.get("context"):
            context = triples
        elif entry["method"] is None:
            positives[entry["split"]] = triples
        else:
            negatives.setdefault(entry["method"], {})[entry["split"]] = triples
    return Exported(about["to"], about["benchmark"], positives, negatives, context, about)


def read_about(folder: Path) -> dict[str, Any]:
    """Read the `export.json` of a folder.

    Raises
    ------
    InputError
        If there is none that this version understands.
    """
    path = folder / EXPORT
    if folder.is_dir() and not path.is_file():
        raise InputError(f"`{folder}` is no export: it has no `{EXPORT}`", hint="`loginfer export` makes one")
    about: dict[str, Any] = read_document(path, _ExportEntry, what="export", hint=_AGAIN, form=(FORMAT, FORMAT_VERSION))
    if about["to"] not in FORMATS:
        raise UnknownNameError("format of exports", about["to"], FORMATS, where=str(path))
    unlisted = [entry["file"] for entry in about["sets"] if entry["file"] not in (None, *about["files"])]
    if unlisted:
        raise InputError(f'"files" does not have `{unlisted[0]}`', where=str(path), hint=_AGAIN)
    return about


class _Set(TypedDict):
    split: Split
    method: str | None
    triples: Size
    file: str | None


class _ExportEntry(TypedDict):
    to: str
    benchmark: str
    negatives: dict[str, Any]
    sets: list[_Set]
    files: dict[Annotated[str, Matching(r"(?!/)(?!(.*/)?\.\.?(/|\Z))[^\\\0]+", "a file below the folder")], SumEntry]


def _verify(folder: Path, files: Mapping[str, Any]) -> None:
    for name, entry in files.items():
        path = folder / name
        if not path.is_file():
            raise InputError(f"`{name}` is missing", where=str(folder), hint=_AGAIN)
        with reading(path):
            size = path.stat().st_size
        if size != entry["bytes"]:
            what = f"{size:,} bytes, expected {entry['bytes']:,}"
        elif (actual := file_sum(path)) != entry["sha256"]:
            what = f"the sha256 {actual}, expected {entry['sha256']}"
        else:
            continue
        hint = f"{_AGAIN}; read_export(…, verify=False) reads it as it is"
        raise InputError(f"`{name}` was changed: it has {what}", where=str(folder), hint=hint)
